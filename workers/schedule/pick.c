/* SPDX-License-Identifier: BSD-3-Clause */
/* Pick tables and the list of policies. */
#include <errno.h>
#include <stdlib.h>

#include "schedule/schedule.h"

static const struct schedule_policy *const policies[PICK_POLICIES] = {
	[PICK_ROUND_ROBIN] = &schedule_round_robin,
	[PICK_WEIGHTED] = &schedule_weighted,
	[PICK_MAGLEV] = &schedule_maglev,
	[PICK_LEAST_OUTSTANDING] = &schedule_least_outstanding,
	[PICK_POWER_OF_TWO] = &schedule_power_of_two,
	[PICK_EARLIEST_FINISH] = &schedule_earliest_finish,
};

static uint64_t last_serial; /* control thread */

const char *pick_policy_name(enum pick_policy policy)
{
	return (unsigned int)policy < PICK_POLICIES ? policies[policy]->name : "unknown";
}

static unsigned int pick_table_members(struct worker_pool *pool, const struct worker_set *in,
				       const struct worker **member)
{
	unsigned int n = 0;

	for (const struct worker *w = workers_next(pool, NULL); w != NULL;
	     w = workers_next(pool, w))
		if (w->state == WORKER_ACTIVE && worker_set_has(in, w->number))
			member[n++] = w;
	return n;
}

static void pick_table_add(struct pick_table *table, uint16_t number)
{
	uint32_t block = number / WORKER_BLOCK;

	table->worker[table->n++] = number;
	table->member[block] |= 1u << number % WORKER_BLOCK;
	table->blocks |= 1u << block;
}

struct pick_table *workers_pick_table_create(struct worker_pool *pool, const struct worker_set *in,
					     uint16_t soon, enum pick_policy policy)
{
	const struct worker *member[WORKERS_MAX];
	unsigned int n = pick_table_members(pool, in, member);
	struct pick_table *table = calloc(1, sizeof(*table) + n * sizeof(table->worker[0]));

	if (table == NULL)
		return NULL;
	table->policy = policy;
	table->serial = ++last_serial;
	table->soon = soon;
	for (unsigned int i = 0; i < n; i++)
		pick_table_add(table, member[i]->number);
	table->capacity = (float)n;
	if (n != 0 && policies[policy]->prepare != NULL &&
	    policies[policy]->prepare(table, member) < 0) {
		workers_pick_table_destroy(table);
		errno = ENOMEM;
		return NULL;
	}
	return table;
}

void workers_pick_table_destroy(struct pick_table *table)
{
	if (table == NULL)
		return;
	free(table->cost);
	free(table->entry);
	free(table->groups);
	free(table);
}

uint16_t workers_pick(const struct pick_table *table, struct pick_load *load, uint32_t hash,
		      struct pick_state *state)
{
	if (table->n > 1)
		return policies[table->policy]->pick(table, load, hash, state);
	return table->n == 1 && schedule_has_credit(load, table->worker[0]) ? table->worker[0]
									    : WORKER_NONE;
}
