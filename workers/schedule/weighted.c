/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gives workers turns in proportion to their weights, spread evenly. The control thread computes
 * the order of one round; each lcore continues where it was. A worker without a credit loses its
 * turn.
 */
#include <errno.h>
#include <stdlib.h>

#include "schedule/schedule.h"

/*
 * Most turns of a round. Weights are exact while their sum over their common divisor is not more.
 */
#define TURNS_MAX 32768
_Static_assert(TURNS_MAX >= 32 * WORKERS_MAX, "light workers' turns must differ by weight");

/* Workers without a credit that are skipped before any worker with one is taken. */
#define TRIES 8

struct turn {
	uint64_t due; /* position in a round of 2^32 */
	uint16_t worker;
};

static uint32_t weighted_divisor(uint32_t a, uint32_t b)
{
	while (b != 0) {
		uint32_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* Compute each worker's turns per round; returns their sum. */
static uint32_t weighted_count_turns(const struct worker *const *member, unsigned int n,
				     uint32_t *turns)
{
	uint32_t common = 0, sum = 0;
	uint64_t total = 0;

	for (unsigned int i = 0; i < n; i++) {
		common = weighted_divisor(workers_weight(member[i]), common);
		total += workers_weight(member[i]);
	}
	for (unsigned int i = 0; i < n; i++) {
		uint64_t weight = workers_weight(member[i]);

		turns[i] = total / common <= TURNS_MAX
				   ? weight / common
				   : (weight * (TURNS_MAX - n) + total / 2) / total;
		turns[i] = turns[i] != 0 ? turns[i] : 1;
		sum += turns[i];
	}
	return sum;
}

static int turn_by_due(const void *a, const void *b)
{
	const struct turn *x = a, *y = b;

	if (x->due != y->due)
		return x->due < y->due ? -1 : 1;
	return x->worker < y->worker ? -1 : 1;
}

/* A worker's turns are equally far apart; the first is half that distance from the start. */
static void weighted_order(struct turn *turn, const struct pick_table *table, const uint32_t *turns)
{
	for (unsigned int i = 0; i < table->n; i++) {
		for (uint32_t k = 0; k < turns[i]; k++)
			*turn++ = (struct turn){
				.due = ((uint64_t)(2 * k + 1) << 31) / turns[i],
				.worker = table->worker[i],
			};
	}
}

static int weighted_prepare(struct pick_table *table, const struct worker *const *member)
{
	uint32_t turns[WORKERS_MAX], n = weighted_count_turns(member, table->n, turns);
	struct turn *turn = malloc(n * sizeof(*turn));

	table->entry = malloc(n * sizeof(*table->entry));
	if (turn == NULL || table->entry == NULL) {
		free(turn);
		return -ENOMEM;
	}
	table->n_entries = n;
	weighted_order(turn, table, turns);
	qsort(turn, n, sizeof(*turn), turn_by_due);
	for (uint32_t i = 0; i < n; i++)
		table->entry[i] = turn[i].worker;
	free(turn);
	return schedule_prepare_cost(table, member);
}

static uint16_t weighted_pick(const struct pick_table *table, struct pick_load *load, uint32_t hash,
			      struct pick_state *state)
{
	uint32_t n = table->n_entries, i = state->turn < n ? state->turn : state->turn % n;
	uint16_t worker = WORKER_NONE;

	for (unsigned int tried = 0; tried < TRIES; tried++) {
		worker = table->entry[i];
		i = i + 1 == n ? 0 : i + 1;
		state->turn = i;
		if (schedule_has_credit(load, worker))
			return worker;
	}
	return schedule_next(table, load, worker);
}

const struct schedule_policy schedule_weighted = {
	.name = "weighted",
	.prepare = weighted_prepare,
	.pick = weighted_pick,
};
