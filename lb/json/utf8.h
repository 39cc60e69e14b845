/* SPDX-License-Identifier: BSD-3-Clause */
/* Characters of UTF-8 byte by byte, as RFC 3629, 4 has them: no surrogates, none longer than it
 * must be. */
#ifndef LB_JSON_UTF8_H
#define LB_JSON_UTF8_H

#include <stdbool.h>
#include <stdint.h>

/* A character beyond ASCII, begun. */
struct utf8 {
	uint8_t left; /* bytes that are to come; 0: between characters */
	uint8_t low;  /* the next one is at least this, */
	uint8_t high; /* and at most this */
};

/* The first byte, 0x80 or more. False: no character begins so. */
static inline bool utf8_begin(struct utf8 *u, uint8_t c)
{
	if (c < 0xc2 || c > 0xf4)
		return false;
	u->left = c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
	u->low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
	u->high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
	return true;
}

/* The next byte. False: it does not belong to the character. */
static inline bool utf8_next(struct utf8 *u, uint8_t c)
{
	if (c < u->low || c > u->high)
		return false;
	u->left--;
	u->low = 0x80;
	u->high = 0xbf;
	return true;
}

#endif
