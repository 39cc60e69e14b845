/* SPDX-License-Identifier: BSD-3-Clause */
/* The value of a member of an object, for tests of the scanner. */
#ifndef SCAN_FIND_H
#define SCAN_FIND_H

#include <string.h>

#include "protocol/scan.h"

/* The value of the object's member <name>, brackets or quotes included. False: it has none. */
static inline bool scan_find(struct scan object, const char *name, struct scan *value)
{
	size_t n = strlen(name);
	struct scan key;

	while (scan_next_member(&object, &key, value))
		if ((size_t)(key.end - key.at) == n && memcmp(key.at, name, n) == 0)
			return true;
	return false;
}

#endif
