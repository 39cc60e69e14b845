/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Thins out a log line that comes again and again: logged at once, then with a count after one
 * minute, two more, four more, and so on, at most once per hour. Pure.
 */
#ifndef REPEAT_H
#define REPEAT_H

#include <stdbool.h>
#include <stdint.h>

#define REPEAT_FIRST_MS 60000
#define REPEAT_MOST_MS  3600000

/* Zero it at first, and again when the condition is over. */
struct repeat {
	char text[512];
	uint64_t times; /* how often it came */
	uint64_t first_ms, logged_ms;
	uint64_t wait_ms; /* from logged_ms to the next line */
};

/* Count <text>, which came at <now_ms>. True when a line is due; with times > 1 the line should
 * name times and first_ms. */
bool repeat_is_due(struct repeat *repeat, const char *text, uint64_t now_ms);

#endif
