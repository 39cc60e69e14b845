/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers of JSON from text: exact integers, floating point rounded to nearest, ties to even. */
#ifndef LB_JSON_NUMBER_READ_H
#define LB_JSON_NUMBER_READ_H

#include <stdbool.h>
#include <stdint.h>

#define JSON_NUMBER_MAX 128 /* characters of a number */

/* A number as it is written: mantissa * 10^exponent, if no digit was dropped. */
struct json_number {
	const char *text; /* not terminated; valid as long as the token is */
	uint64_t mantissa;
	int32_t exponent;
	uint8_t length;
	bool negative;
	bool whole;   /* neither fraction nor exponent */
	bool dropped; /* digits that the mantissa has no room for, and that are not all 0 */
};

/*
 * Reads the number that begins at <at>, up to a character that belongs to none, or to <end>.
 * Returns how many characters it has; 0: it is none (RFC 8259, 6), or has more than
 * JSON_NUMBER_MAX.
 */
uint32_t json_number_read(const char *at, const char *end, struct json_number *n);

/* False: it is not whole, or out of range. */
bool json_number_u64(const struct json_number *n, uint64_t *value);
bool json_number_i64(const struct json_number *n, int64_t *value);

/* False: larger than the largest finite number. What is too small becomes a zero with its sign. */
bool json_number_f32(const struct json_number *n, float *value);
bool json_number_f64(const struct json_number *n, double *value);

#endif
