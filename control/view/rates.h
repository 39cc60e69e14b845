/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How fast counters move, from samples that the control thread takes once a second: whoever asks
 * sees a rate at once and need not come back. Private to this folder and its tests.
 */
#ifndef CONTROL_RATES_H
#define CONTROL_RATES_H

#include <jansson.h>

#include "lb.h"

#define RATES_PERIOD_MS 1000

/* Start with all zeroes. */
struct rates {
	uint64_t at_ms; /* of the last sample */
	unsigned int samples;
	uint64_t inserted[LB_LCORES_MAX];
	uint64_t new_flows_per_s[LB_LCORES_MAX]; /* between the last two */
};

void rates_sample(struct rates *rates, const struct lb *lb, uint64_t now_ms);

/* null before there are two samples; <rates> may be NULL. */
json_t *rates_new_flows(const struct rates *rates, unsigned int lcore);

#endif
