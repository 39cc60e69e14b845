/* SPDX-License-Identifier: BSD-3-Clause */
/* Powers of five to 128 bits, for numbers to and from text. */
#ifndef LB_JSON_POWERS_H
#define LB_JSON_POWERS_H

#include <stdint.h>

#define JSON_POWER_FIRST       (-342)
#define JSON_POWER_LAST        324
#define JSON_POWER_EXACT_FIRST 0
#define JSON_POWER_EXACT_LAST  55

/*
 * 5^e for each e from JSON_POWER_FIRST on: its first 128 bits, rounded down, the higher word first.
 * The highest bit is set. Exact from JSON_POWER_EXACT_FIRST to JSON_POWER_EXACT_LAST.
 */
extern const uint64_t json_powers[JSON_POWER_LAST - JSON_POWER_FIRST + 1][2];

/* Returns floor(log2(10^e)), for |e| up to 1,233: 1741647 / 2^19 is log2(10) to seven digits. */
static inline int json_log2_of_power(int e)
{
	return (e * 1741647) >> 19;
}

#endif
