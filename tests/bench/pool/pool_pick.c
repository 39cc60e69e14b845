/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of a choice, with two workers and with 512. The measured time is of bursts of 32
 * choices, credits included; between them answers come from random workers, at different speeds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <x86intrin.h>

#include "pool/pool_bench.h"

#define BURST         32
#define BURSTS        2000
#define IN_FLIGHT_MAX 2048

struct picker {
	struct pick_table *table;
	struct pick_load load;
	struct pick_state state;
	uint16_t in_flight[IN_FLIGHT_MAX];
	unsigned int n;
	uint64_t random, now;
	uint32_t cycles[BURSTS];
};

static uint32_t chance(struct picker *p)
{
	p->random ^= p->random << 13;
	p->random ^= p->random >> 7;
	p->random ^= p->random << 17;
	return (uint32_t)(p->random >> 32);
}

/* A burst of requests; its time includes taking the credits and storing the choices. */
static uint32_t requests(struct picker *p)
{
	uint32_t hash[BURST];
	uint64_t begin;

	for (unsigned int i = 0; i < BURST; i++)
		hash[i] = chance(p);
	begin = __rdtsc();
	_mm_lfence();
	for (unsigned int i = 0; i < BURST; i++) {
		uint16_t worker = workers_pick(p->table, &p->load, hash[i], &p->state);

		workers_load_sent(&p->load, worker, p->now);
		p->in_flight[p->n++] = worker;
	}
	_mm_lfence();
	return (uint32_t)(__rdtsc() - begin);
}

static void answers(struct picker *p)
{
	for (unsigned int i = 0; i < BURST; i++) {
		unsigned int which = chance(p) % p->n;
		uint16_t worker = p->in_flight[which];

		p->in_flight[which] = p->in_flight[--p->n];
		p->now += 100 + chance(p) % 100;
		workers_load_answered(&p->load, worker, p->now, 10000 + worker * 100);
	}
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static double measure(struct picker *p, enum pick_policy policy, unsigned int workers)
{
	struct worker_pool *pool = pool_create(workers);
	unsigned int standing = workers * 2;

	memset(p, 0, sizeof(*p));
	workers_load_init(&p->load, 1000000000);
	p->random = 88172645463325252u + workers;
	p->table = pool_table(pool, policy);
	for (unsigned int i = 0; i < workers; i++)
		workers_load_open(&p->load, i, 1024);
	while (p->n < standing)
		requests(p);
	for (unsigned int i = 0; i < BURSTS; i++) {
		p->cycles[i] = requests(p);
		answers(p);
	}
	workers_pick_table_destroy(p->table);
	workers_pool_destroy(pool);
	qsort(p->cycles, BURSTS, sizeof(p->cycles[0]), compare);
	return (double)p->cycles[BURSTS / 2] / BURST;
}

void pool_pick(struct report *report)
{
	static const unsigned int workers[] = {2, 512};
	static struct picker picker;

	for (enum pick_policy policy = 0; policy < PICK_POLICIES; policy++) {
		double cycles[2];

		for (unsigned int i = 0; i < 2; i++) {
			cycles[i] = measure(&picker, policy, workers[i]);
			report_add(report, cycles[i], "pick_cycles_%u_%s", workers[i],
				   pick_policy_name(policy));
			if (policy == PICK_LEAST_OUTSTANDING)
				report_add(report, cycles[i], "pick_cycles_%u", workers[i]);
		}
		report_add(report, cycles[1] - cycles[0], "pick_cycles_more_%s",
			   pick_policy_name(policy));
	}
}

static double milliseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

void pool_maglev(struct report *report)
{
	struct worker_pool *pool = pool_create(512);
	double begin = milliseconds(), most = 0;
	struct pick_table *before = pool_table(pool, PICK_MAGLEV);

	report_add(report, milliseconds() - begin, "maglev_build_ms_512");
	report_add(report, before->n_entries * sizeof(before->entry[0]) / 1024.0, "maglev_kib");
	for (unsigned int gone = 0; gone < 512; gone += 73) {
		struct pick_table *after;
		uint32_t moved = 0;

		workers_get(pool, gone)->state = WORKER_DRAINING;
		after = pool_table(pool, PICK_MAGLEV);
		workers_get(pool, gone)->state = WORKER_ACTIVE;
		for (uint32_t i = 0; i < before->n_entries; i++)
			moved += before->entry[i] != after->entry[i];
		if (moved > most)
			most = moved;
		workers_pick_table_destroy(after);
	}
	report_add(report, 100.0 * most / before->n_entries, "maglev_moved_pct_1_of_512");
	workers_pick_table_destroy(before);
	workers_pool_destroy(pool);
}
