/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pool.h"
#include "schedule/groups.h"
#include "schedule/lanes.h"

/* --- the groups of a table: control thread ---------------------------------------------------- */

struct labelled {
	const char *value; /* NULL: it has no such label */
	uint16_t worker;
};

static int labelled_by_value(const void *a, const void *b)
{
	const struct labelled *x = a, *y = b;
	int order;

	if (x->value == NULL || y->value == NULL)
		order = (x->value != NULL) - (y->value != NULL);
	else
		order = strcmp(x->value, y->value);
	return order != 0 ? order : (int)x->worker - (int)y->worker;
}

static struct labelled *groups_list(struct worker_pool *pool, const char *key, unsigned int *n)
{
	struct labelled *list = calloc(WORKERS_MAX, sizeof(*list));

	*n = 0;
	if (list == NULL)
		return NULL;
	for (const struct worker *w = workers_next(pool, NULL); w != NULL;
	     w = workers_next(pool, w))
		list[(*n)++] = (struct labelled){workers_label(w, key), (uint16_t)w->number};
	qsort(list, *n, sizeof(*list), labelled_by_value);
	return list;
}

static bool begins_group(const struct labelled *list, unsigned int i)
{
	return i == 0 || list[i].value == NULL || list[i - 1].value == NULL ||
	       strcmp(list[i].value, list[i - 1].value) != 0;
}

static void groups_fill(struct pick_groups *groups, const struct pick_table *table,
			const struct labelled *list, unsigned int n, const char *own)
{
	groups->own = PICK_NO_GROUP;
	for (unsigned int i = 0; i < WORKERS_MAX; i++)
		groups->of[i] = PICK_NO_GROUP;
	for (unsigned int i = 0; i < n; i++) {
		uint16_t worker = list[i].worker, group;

		group = groups->n += begins_group(list, i);
		groups->of[worker] = --group;
		if (own != NULL && list[i].value != NULL && strcmp(own, list[i].value) == 0)
			groups->own = group;
		if (workers_pick_table_has(table, worker))
			groups->member[group][worker / WORKER_BLOCK] |= 1u << worker % WORKER_BLOCK;
	}
}

int workers_pick_table_group(struct pick_table *table, struct worker_pool *pool,
			     enum pick_place place, const char *key, const char *own)
{
	struct pick_groups *groups;
	struct labelled *list;
	unsigned int n;

	if (place == PICK_ANYWHERE)
		return 0;
	list = groups_list(pool, key, &n);
	if (list == NULL)
		return -ENOMEM;
	groups = calloc(1, sizeof(*groups) + n * sizeof(groups->member[0]));
	if (groups != NULL) {
		groups->place = place;
		groups_fill(groups, table, list, n, own);
	}
	free(list);
	table->groups = groups;
	return groups != NULL ? 0 : -ENOMEM;
}

/* --- the pick: lcores ------------------------------------------------------------------------- */

/* The least key so far, and the workers that have it: the first one, and the first from the turn
 * on. */
struct groups_best {
	uint32_t key;
	uint16_t first, in_turn;
};

static inline void groups_compare(struct groups_best *best, struct lanes_least least,
				  uint32_t first, uint16_t turn)
{
	uint32_t later = least.lanes;

	if (least.key > best->key || least.lanes == 0)
		return;
	if (least.key < best->key)
		*best = (struct groups_best){least.key, WORKER_NONE, WORKER_NONE};
	if (best->first == WORKER_NONE)
		best->first = (uint16_t)(first + (uint32_t)__builtin_ctz(least.lanes));
	if (turn >= first + WORKER_BLOCK)
		later = 0;
	else if (turn > first)
		later &= ~0u << (turn - first);
	if (best->in_turn == WORKER_NONE && later != 0)
		best->in_turn = (uint16_t)(first + (uint32_t)__builtin_ctz(later));
}

uint16_t workers_pick_placed(const struct pick_table *table, const struct pick_load *load,
			     uint16_t anchor, uint16_t *turn)
{
	const struct pick_groups *groups = table->groups;
	const bool measured = table->policy == PICK_EARLIEST_FINISH;
	const struct lanes_keys keys = {measured ? load->run_ns : table->cost,
					measured ? load->gap_ns : table->cost};
	const uint32_t outside = groups->place == PICK_NEAR ? 0 : ~0u;
	struct groups_best best = {UINT32_MAX, WORKER_NONE, WORKER_NONE};
	uint16_t worker;

	if (anchor >= groups->n)
		return WORKER_NONE;
	for (uint32_t blocks = table->blocks; blocks != 0; blocks &= blocks - 1) {
		uint32_t b = (uint32_t)__builtin_ctz(blocks);
		uint32_t among =
			table->member[b] & load->open[b] & (groups->member[anchor][b] ^ outside);

		if (among != 0)
			groups_compare(&best,
				       lanes_least_loaded(load->outstanding, keys, b * WORKER_BLOCK,
							  among),
				       b * WORKER_BLOCK, *turn);
	}
	worker = best.in_turn != WORKER_NONE ? best.in_turn : best.first;
	if (worker != WORKER_NONE)
		*turn = worker + 1;
	return worker;
}
