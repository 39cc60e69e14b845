/* SPDX-License-Identifier: BSD-3-Clause */
#include "view/rates.h"

/* To the nearest. The timer may be late, so the time that passed counts, not the period. */
static uint64_t per_second(uint64_t n, uint64_t ms)
{
	return (n * 1000 + ms / 2) / ms;
}

void rates_sample(struct rates *rates, const struct lb *lb, uint64_t now_ms)
{
	uint64_t ms = now_ms - rates->at_ms;

	if (rates->samples > 0 && ms == 0)
		return;
	for (unsigned int i = 0; i < lb_lcores(lb); i++) {
		struct conntrack_stats flows;

		conntrack_stats_read(lb_conntrack(lb, i), &flows);
		if (rates->samples > 0)
			rates->new_flows_per_s[i] =
				per_second(flows.inserted - rates->inserted[i], ms);
		rates->inserted[i] = flows.inserted;
	}
	rates->at_ms = now_ms;
	rates->samples += rates->samples < 2;
}

json_t *rates_new_flows(const struct rates *rates, unsigned int lcore)
{
	if (!rates || rates->samples < 2)
		return json_null();
	return json_integer((json_int_t)rates->new_flows_per_s[lcore]);
}
