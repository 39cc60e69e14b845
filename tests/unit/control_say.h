/* SPDX-License-Identifier: BSD-3-Clause */
/* Passes a line to control_dispatch() and returns the reply as JSON, for tests and the fuzzer. */
#ifndef CONTROL_SAY_H
#define CONTROL_SAY_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/rpc.h"

/* The caller owns the reply; NULL for none. Ends the process when it is no JSON on one line. */
static inline json_t *control_say(struct control_connection *c, const char *line, size_t n)
{
	struct text text = {0};
	json_t *reply;

	control_dispatch(c, line, n, &text);
	reply = json_loadb(text.data, text.n, JSON_REJECT_DUPLICATES, NULL);
	if (text.failed || (text.n > 0 && (!reply || memchr(text.data, '\n', text.n)))) {
		fprintf(stderr, "not JSON on one line: %.*s\n", (int)text.n, text.data);
		abort();
	}
	text_free(&text);
	return reply;
}

#endif
