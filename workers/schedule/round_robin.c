/* SPDX-License-Identifier: BSD-3-Clause */
/* Each worker in turn; who has no credit is passed over and loses the turn. */
#include "schedule/schedule.h"

static uint16_t round_robin_pick(const struct pick_table *table, const struct pick_load *load,
				 uint32_t hash, uint32_t *turn)
{
	unsigned int n = table->n;
	/* no division per request: a turn beyond the table comes from a larger one, or the start */
	unsigned int i = *turn < n ? *turn : *turn % n;

	for (unsigned int tried = 0; tried < n; tried++) {
		uint16_t worker = table->worker[i];

		i = i + 1 == n ? 0 : i + 1;
		if (load->credits[worker] != 0) {
			*turn = i;
			return worker;
		}
	}
	return WORKER_NONE;
}

const struct schedule_policy schedule_round_robin = {
	.name = "round-robin",
	.pick = round_robin_pick,
};
