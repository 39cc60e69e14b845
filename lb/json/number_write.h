/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers to text. Floating point: the fewest digits that a correct reader turns back into the same
 * number, and of those the nearest to it.
 */
#ifndef LB_JSON_NUMBER_WRITE_H
#define LB_JSON_NUMBER_WRITE_H

#include <stdint.h>

#define JSON_NUMBER_TEXT_MAX 25 /* characters of a number at most */
#define JSON_NUMBER_ROOM     40 /* bytes that a call may write to: it writes whole words */

/* Write to <at>, and return how many characters there are. Not terminated. */
uint32_t json_number_write_u64(char *at, uint64_t value);
uint32_t json_number_write_i64(char *at, int64_t value);

/* With a point or an exponent, so that readers without a schema see floating point: 1.0, 1e+30.
 * NaN and the infinities, which JSON lacks: null. */
uint32_t json_number_write_f32(char *at, float value);
uint32_t json_number_write_f64(char *at, double value);

#endif
