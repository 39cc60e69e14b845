/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A sentence that comes again and again: it is said once, then with its count after a minute, two
 * more, four more, and so on to every hour.
 */
#ifndef REPEAT_H
#define REPEAT_H

#include <stdbool.h>
#include <stdint.h>

#define REPEAT_FIRST_MS 60000
#define REPEAT_MOST_MS  3600000

/* Begin with zeroes, and again when what the sentence was about is over. */
struct repeat {
	char text[512];
	uint64_t times; /* that it came */
	uint64_t first_ms, said_ms;
	uint64_t wait_ms; /* from then to the next time */
};

/* <text> comes at <now_ms>: is it to be said? Where times > 1, with that and for how long. */
bool repeat_says(struct repeat *repeat, const char *text, uint64_t now_ms);

#endif
