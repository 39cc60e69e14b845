/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Find values in JSON text without building them: a reply may hold thousands of rows that are only
 * passed on. Checks no more than it needs to find ends; for the client and the CLI.
 */
#ifndef CONTROL_SCAN_H
#define CONTROL_SCAN_H

#include <stdbool.h>

/* Text that the caller owns. */
struct scan {
	const char *at, *end;
};

/*
 * The next member of an object: start with all of it, <*rest> moves on. <name> is between its
 * quotes. False: that was the last, see scan_object_ended().
 */
bool scan_next_member(struct scan *rest, struct scan *name, struct scan *value);
/* After the last member: was it an object to its end, with nothing behind it? */
bool scan_object_ended(struct scan rest);

/* The next element of an array: start with all of it, <*rest> moves on. False: that was the last.
 */
bool scan_element(struct scan *rest, struct scan *value);

#endif
