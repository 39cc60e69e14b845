/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Maglev hashing (Eisenbud et al., NSDI 2016, section 3.4): each worker walks its own permutation
 * of the table, and workers take turns to claim their next free entry. The result depends on names
 * and weights only, so load balancers that number their workers differently still agree.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/schedule.h"

/*
 * A prime. When one of 512 workers leaves, its own 0.2 % of the flows move, and 0.4 % of the
 * others' flows (0.9 % with 65,537 entries). A lookup reads one cache line with either size. The
 * size does not depend on the number of workers, because a change of it would move nearly every
 * flow.
 */
#define SIZE 262147
_Static_assert(WORKERS_MAX < SIZE / 200, "every worker gets its share of entries");

uint32_t workers_maglev_size = SIZE;

/* One worker's walk through the table. */
struct walk {
	const struct worker *worker;
	uint32_t next, skip;
	uint32_t owed; /* weight saved up so far; an entry costs the largest weight */
};

/* FNV-1a with a seed, then the finalizer of MurmurHash3 so that near names land far apart. */
static uint64_t maglev_name_hash(const char *name, uint64_t seed)
{
	uint64_t h = 0xcbf29ce484222325ull ^ seed;

	for (; *name != '\0'; name++)
		h = (h ^ (uint8_t)*name) * 0x100000001b3ull;
	h = (h ^ h >> 33) * 0xff51afd7ed558ccdull;
	h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53ull;
	return h ^ h >> 33;
}

static int walk_by_name(const void *a, const void *b)
{
	const struct walk *x = a, *y = b;

	return strcmp(x->worker->spec.name, y->worker->spec.name);
}

/* Sorted by name, because numbers differ between load balancers. */
static struct walk *walks_create(const struct pick_table *table, const struct worker *const *member)
{
	struct walk *walk = calloc(table->n, sizeof(*walk));

	if (walk == NULL)
		return NULL;
	for (unsigned int i = 0; i < table->n; i++) {
		const char *name = member[i]->spec.name;

		walk[i].worker = member[i];
		walk[i].next = maglev_name_hash(name, 0) % table->n_entries;
		walk[i].skip =
			maglev_name_hash(name, 0x9e3779b97f4a7c15ull) % (table->n_entries - 1) + 1;
	}
	qsort(walk, table->n, sizeof(*walk), walk_by_name);
	return walk;
}

/*
 * Claim the next free entry of a worker's walk. The size is prime, so every skip visits every
 * entry. <taken> has one bit per entry, so that the search stays in the first-level cache.
 */
static void maglev_claim_next(struct pick_table *table, uint64_t *taken, struct walk *walk)
{
	uint32_t at = walk->next, skip = walk->skip, n = table->n_entries;

	while (taken[at / 64] >> at % 64 & 1)
		at = at + skip < n ? at + skip : at + skip - n;
	taken[at / 64] |= UINT64_C(1) << at % 64;
	table->entry[at] = walk->worker->number;
	walk->next = at;
}

static void maglev_fill(struct pick_table *table, uint64_t *taken, struct walk *walk)
{
	unsigned int n = table->n, claimed = 0;
	uint32_t heaviest = 0;

	for (unsigned int i = 0; i < n; i++)
		if (walk[i].worker->spec.weight > heaviest)
			heaviest = walk[i].worker->spec.weight;
	for (unsigned int i = 0; claimed < table->n_entries; i = i + 1 == n ? 0 : i + 1) {
		walk[i].owed += walk[i].worker->spec.weight;
		if (walk[i].owed < heaviest)
			continue;
		walk[i].owed -= heaviest;
		maglev_claim_next(table, taken, &walk[i]);
		claimed++;
	}
}

static int maglev_fill_table(struct pick_table *table, const struct worker *const *member)
{
	struct walk *walk = walks_create(table, member);
	uint64_t *taken = calloc(table->n_entries / 64 + 1, sizeof(*taken));
	int ret = walk != NULL && taken != NULL ? 0 : -ENOMEM;

	if (ret == 0)
		maglev_fill(table, taken, walk);
	free(walk);
	free(taken);
	return ret;
}

static int maglev_prepare(struct pick_table *table, const struct worker *const *member)
{
	int ret = 0;

	/* A single worker has all entries, so one entry is enough. */
	table->n_entries = table->n == 1 ? 1 : workers_maglev_size;
	table->entry = malloc(table->n_entries * sizeof(*table->entry));
	if (table->entry == NULL)
		return -ENOMEM;
	if (table->n == 1)
		table->entry[0] = table->worker[0];
	else
		ret = maglev_fill_table(table, member);
	return ret == 0 ? schedule_prepare_cost(table, member) : ret;
}

static uint16_t maglev_pick(const struct pick_table *table, struct pick_load *load, uint32_t hash,
			    struct pick_state *state)
{
	uint16_t worker = table->entry[(uint64_t)hash * table->n_entries >> 32];

	return load->credits[worker] != 0 ? worker : WORKER_NONE;
}

const struct schedule_policy schedule_maglev = {
	.name = "maglev",
	.prepare = maglev_prepare,
	.pick = maglev_pick,
};
