/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds values in JSON text without building them: a reply may hold thousands of rows that are only
 * passed on. Checks the syntax only as far as finding the ends of values needs. For the client and
 * the CLI.
 */
#ifndef CONTROL_SCAN_H
#define CONTROL_SCAN_H

#include <stdbool.h>

/* Text that the caller owns. */
struct scan {
	const char *at, *end;
};

/*
 * Find the next member of an object. Start with <*rest> at the whole object; it moves on. <name> is
 * the text between the quotes. False after the last member; see scan_object_ended().
 */
bool scan_next_member(struct scan *rest, struct scan *name, struct scan *value);
/* After the last member: true when the object was complete, with nothing behind it. */
bool scan_object_ended(struct scan rest);

/*
 * Find the next element of an array. Start with <*rest> at the whole array; it moves on. False
 * after the last element.
 */
bool scan_element(struct scan *rest, struct scan *value);

#endif
