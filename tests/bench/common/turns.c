/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "common/turns.h"
#include "walk/loop.h"

void turns_end(struct turns *turns, uint64_t begin)
{
	uint64_t cycles = rte_rdtsc_precise() - begin;

	if (turns->n == TURNS_MAX)
		rig_die("too many turns for one measurement");
	turns->cycles[turns->n++] = RTE_MIN(cycles, (uint64_t)UINT32_MAX);
}

void turns_turn(struct turns *turns, struct lcore *lc)
{
	uint64_t before[LB_STAGES], begin;

	memcpy(before, lc->stats.stage_cycles, sizeof(before));
	begin = turns_begin();
	lb_poll(lc);
	turns_end(turns, begin);
	for (unsigned int s = 0; s < LB_STAGES; s++)
		turns->stage[turns->n - 1][s] = (uint32_t)(lc->stats.stage_cycles[s] - before[s]);
}

void turns_join(struct turns *turns, unsigned int first)
{
	for (unsigned int i = first + 1; i < turns->n; i++) {
		turns->cycles[first] += turns->cycles[i];
		for (unsigned int s = 0; s < LB_STAGES; s++)
			turns->stage[first][s] += turns->stage[i][s];
	}
	turns->n = RTE_MIN(turns->n, first + 1);
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static uint64_t limit_of(const struct turns *turns)
{
	static uint32_t sorted[TURNS_MAX];

	memcpy(sorted, turns->cycles, turns->n * sizeof(sorted[0]));
	qsort(sorted, turns->n, sizeof(sorted[0]), compare);
	return (uint64_t)sorted[turns->n / 2] * TURNS_DISTURBED;
}

struct cost turns_cost(struct turns *turns, unsigned int packets)
{
	struct cost cost = {0};
	uint64_t limit = limit_of(turns);
	unsigned int kept = 0;

	for (unsigned int i = 0; i < turns->n; i++) {
		if (turns->cycles[i] > limit) {
			cost.disturbed++;
			continue;
		}
		kept++;
		cost.total += turns->cycles[i];
		for (unsigned int s = 0; s < LB_STAGES; s++)
			cost.stage[s] += turns->stage[i][s];
	}
	cost.total /= (double)kept * packets;
	for (unsigned int s = 0; s < LB_STAGES; s++)
		cost.stage[s] /= (double)kept * packets;
	turns->n = 0;
	return cost;
}
