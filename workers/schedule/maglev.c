/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Maglev hashing (Eisenbud et al., NSDI 2016, section 3.4): each worker walks its own permutation
 * of the table and they take turns to claim the next entry that is still free. The result depends
 * on names and weights only, so load balancers that number their workers differently still agree.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/schedule.h"

_Static_assert(WORKERS_MAX < PICK_MAGLEV_SIZE / 60, "every worker gets its share of entries");

/* One worker's walk through the table. */
struct walk {
	const struct worker *worker;
	uint32_t next, skip;
	uint32_t owed; /* weight saved up; a turn costs the largest weight */
};

/* FNV-1a with a seed, then the finalizer of MurmurHash3 so that near names land far apart. */
static uint64_t name_hash(const char *name, uint64_t seed)
{
	uint64_t h = 0xcbf29ce484222325ull ^ seed;

	for (; *name != '\0'; name++)
		h = (h ^ (uint8_t)*name) * 0x100000001b3ull;
	h = (h ^ h >> 33) * 0xff51afd7ed558ccdull;
	h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53ull;
	return h ^ h >> 33;
}

static int by_name(const void *a, const void *b)
{
	const struct walk *x = a, *y = b;

	return strcmp(x->worker->spec.name, y->worker->spec.name);
}

/* The order of turns is that of names: numbers differ between load balancers. */
static struct walk *walks_create(const struct pick_table *table, const struct worker *const *member)
{
	struct walk *walk = calloc(table->n, sizeof(*walk));

	if (walk == NULL)
		return NULL;
	for (unsigned int i = 0; i < table->n; i++) {
		const char *name = member[i]->spec.name;

		walk[i].worker = member[i];
		walk[i].next = name_hash(name, 0) % PICK_MAGLEV_SIZE;
		walk[i].skip = name_hash(name, 0x9e3779b97f4a7c15ull) % (PICK_MAGLEV_SIZE - 1) + 1;
	}
	qsort(walk, table->n, sizeof(*walk), by_name);
	return walk;
}

/* The size is prime, so every skip visits every entry. */
static void claim_next(uint16_t *maglev, struct walk *walk)
{
	while (maglev[walk->next] != WORKER_NONE)
		walk->next = (walk->next + walk->skip) % PICK_MAGLEV_SIZE;
	maglev[walk->next] = walk->worker->number;
}

static void fill(uint16_t *maglev, struct walk *walk, unsigned int n)
{
	uint32_t heaviest = 0;
	unsigned int claimed = 0;

	for (unsigned int i = 0; i < n; i++)
		if (walk[i].worker->spec.weight > heaviest)
			heaviest = walk[i].worker->spec.weight;
	for (unsigned int i = 0; claimed < PICK_MAGLEV_SIZE; i = i + 1 == n ? 0 : i + 1) {
		walk[i].owed += walk[i].worker->spec.weight;
		if (walk[i].owed < heaviest)
			continue;
		walk[i].owed -= heaviest;
		claim_next(maglev, &walk[i]);
		claimed++;
	}
}

static int maglev_prepare(struct pick_table *table, const struct worker *const *member)
{
	struct walk *walk = walks_create(table, member);

	if (walk == NULL)
		return -ENOMEM;
	table->maglev = malloc(PICK_MAGLEV_SIZE * sizeof(*table->maglev));
	if (table->maglev == NULL) {
		free(walk);
		return -ENOMEM;
	}
	memset(table->maglev, 0xff, PICK_MAGLEV_SIZE * sizeof(*table->maglev));
	fill(table->maglev, walk, table->n);
	free(walk);
	return 0;
}

static uint16_t maglev_pick(const struct pick_table *table, const struct pick_load *load,
			    uint32_t hash, uint32_t *turn)
{
	uint16_t worker = table->maglev[hash % PICK_MAGLEV_SIZE];

	return load->credits[worker] != 0 ? worker : WORKER_NONE;
}

const struct schedule_policy schedule_maglev = {
	.name = "maglev",
	.prepare = maglev_prepare,
	.pick = maglev_pick,
};
