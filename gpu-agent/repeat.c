/* SPDX-License-Identifier: BSD-3-Clause */
#include "repeat.h"

#include <stdio.h>
#include <string.h>

bool repeat_is_due(struct repeat *repeat, const char *text, uint64_t now_ms)
{
	/* A text that was cut to fit is compared up to the cut. */
	if (repeat->times == 0 || strncmp(repeat->text, text, sizeof(repeat->text) - 1) != 0) {
		*repeat = (struct repeat){.times = 1,
					  .first_ms = now_ms,
					  .logged_ms = now_ms,
					  .wait_ms = REPEAT_FIRST_MS};
		snprintf(repeat->text, sizeof(repeat->text), "%s", text);
		return true;
	}
	repeat->times++;
	if (now_ms - repeat->logged_ms < repeat->wait_ms)
		return false;
	repeat->logged_ms = now_ms;
	repeat->wait_ms *= 2;
	if (repeat->wait_ms > REPEAT_MOST_MS)
		repeat->wait_ms = REPEAT_MOST_MS;
	return true;
}
