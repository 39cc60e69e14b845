/* SPDX-License-Identifier: BSD-3-Clause */
/* The state kept between picks, against a scan of every worker at each pick. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "schedule/lanes.h"
#include "pool.h"
#include "schedule/pick.h"
#include "pick_table.h"

#define SERVICES 4
#define STEPS    40000

static struct worker_pool *pool;
static struct pick_load load;
static uint64_t now;

static void setup(void)
{
	pool = workers_pool_create();
	workers_load_init(&load, 1000000000);
	srandom(20261122);
}

static void teardown(void)
{
	workers_pool_destroy(pool);
}

TestSuite(workers_smallest, .init = setup, .fini = teardown);

/* Workers of a few models, so that the members of different tables interleave. */
static void add_workers(unsigned int n, unsigned int models, bool weights)
{
	struct worker_spec spec = {
		.instance = 1,
		.slots = 8,
		.max_request = 1472,
		.max_reply = 1472,
		.max_batch = 1,
		.heartbeat_ms = 100,
	};
	char error[160] = "";

	for (unsigned int i = 0; i < n; i++) {
		struct worker *worker;

		snprintf(spec.name, sizeof(spec.name), "gpu-%u", i);
		snprintf(spec.model, sizeof(spec.model), "model-%u", i % models);
		spec.weight = weights ? 1u << random() % 4 : 1;
		worker = workers_register(pool, &spec, error, sizeof(error));
		cr_assert_not_null(worker, "%s", error);
		worker->state = WORKER_ACTIVE;
		workers_load_open(&load, i, 1 + random() % 8);
	}
}

static float key_of(const struct pick_table *table, uint16_t worker)
{
	if (table->policy == PICK_EARLIEST_FINISH)
		return load.run_ns[worker] + (float)load.outstanding[worker] * load.gap_ns[worker];
	return (float)(load.outstanding[worker] + 1) * table->cost[worker];
}

/* No worker in the table with a credit has a smaller key; WORKER_NONE: no worker has a credit. */
static void check_smallest(const struct pick_table *table, uint16_t picked, unsigned int step)
{
	cr_assert(picked == WORKER_NONE || workers_pick_table_has(table, picked));
	cr_assert(picked == WORKER_NONE || load.credits[picked] != 0);
	for (unsigned int i = 0; i < table->n; i++) {
		uint16_t other = table->worker[i];

		if (load.credits[other] == 0)
			continue;
		cr_assert_neq(picked, WORKER_NONE, "step %u: %u has a credit", step, other);
		cr_assert_leq(key_of(table, picked), key_of(table, other) * 1.000001f,
			      "step %u: %u was picked, %u is less busy", step, picked, other);
	}
}

static void change_something(unsigned int workers)
{
	uint16_t worker = random() % workers;

	now += random() % 1000;
	switch (random() % 16) {
	case 0:
		workers_load_close(&load, worker);
		break;
	case 1:
		workers_load_open(&load, worker, random() % 8);
		break;
	case 2:
		workers_load_relax(&load);
		break;
	case 3:
		if (load.credits[worker] != 0) {
			workers_load_sent(&load, worker, now);
			workers_load_unsent(&load, worker);
		}
		break;
	case 4 ... 7:
		if (load.credits[worker] != 0)
			workers_load_sent(&load, worker, now);
		break;
	default:
		if (load.outstanding[worker] != 0)
			workers_load_answered(&load, worker, now, random() % 10000);
		break;
	}
}

/*
 * Services take turns for a while each, so that each finds few changes, many or none. Earliest
 * finish guesses for workers that come back while its table stays; a new table is made now and
 * then.
 */
static void run_against_looking_at_all(enum pick_policy policy, unsigned int workers,
				       unsigned int models)
{
	struct pick_table *table[SERVICES] = {NULL};
	struct pick_state state[SERVICES] = {0};

	for (unsigned int step = 0; step < STEPS; step++) {
		unsigned int s = step / 64 % SERVICES;
		uint16_t picked;

		if (table[s] == NULL || random() % 500 == 0) {
			char model[WORKER_NAME_MAX];

			snprintf(model, sizeof(model), "model-%u", s % models);
			workers_pick_table_destroy(table[s]);
			table[s] = pick_table_of_model(pool, model, policy);
		}
		picked = workers_pick(table[s], &load, 0, &state[s]);
		check_smallest(table[s], picked, step);
		/* what is chosen is not always sent */
		if (picked != WORKER_NONE && random() % 8 != 0)
			workers_load_sent(&load, picked, now);
		for (unsigned int i = random() % 4; i > 0; i--)
			change_something(workers);
	}
	for (unsigned int s = 0; s < SERVICES; s++)
		workers_pick_table_destroy(table[s]);
}

Test(workers_smallest, least_outstanding_picks_as_if_it_looked_at_all_of_a_few)
{
	add_workers(12, 3, false);
	run_against_looking_at_all(PICK_LEAST_OUTSTANDING, 12, 3);
}

Test(workers_smallest, least_outstanding_picks_as_if_it_looked_at_all_of_a_thousand)
{
	add_workers(1000, 3, false);
	run_against_looking_at_all(PICK_LEAST_OUTSTANDING, 1000, 3);
}

Test(workers_smallest, least_outstanding_weighs_what_it_compares)
{
	add_workers(200, 2, true);
	run_against_looking_at_all(PICK_LEAST_OUTSTANDING, 200, 2);
}

Test(workers_smallest, earliest_finish_picks_as_if_it_looked_at_all)
{
	add_workers(200, 2, false);
	run_against_looking_at_all(PICK_EARLIEST_FINISH, 200, 2);
}

Test(workers_smallest, equals_of_a_thousand_take_turns)
{
	unsigned int times[WORKERS_MAX] = {0};
	struct pick_state state = {0};
	struct pick_table *table;

	add_workers(1000, 1, false);
	for (unsigned int i = 0; i < 1000; i++)
		workers_load_open(&load, i, 64);
	table = pick_table_of_model(pool, "model-0", PICK_LEAST_OUTSTANDING);
	/* the worker that was asked answers before the next request */
	for (unsigned int i = 0; i < 7000; i++) {
		uint16_t worker = workers_pick(table, &load, 0, &state);

		times[worker]++;
		workers_load_sent(&load, worker, now);
		workers_load_answered(&load, worker, now += 10, 5);
	}
	for (unsigned int i = 0; i < 1000; i++)
		cr_assert_eq(times[i], 7, "worker %u: %u", i, times[i]);
	workers_pick_table_destroy(table);
}

Test(workers_smallest, more_changes_than_can_be_counted_are_noticed)
{
	struct pick_state state = {0};
	struct pick_table *table;

	add_workers(100, 1, false);
	for (unsigned int i = 0; i < 100; i++)
		workers_load_open(&load, i, 64);
	table = pick_table_of_model(pool, "model-0", PICK_LEAST_OUTSTANDING);
	for (unsigned int i = 0; i < 100; i++)
		workers_load_sent(&load, i, now);
	workers_pick(table, &load, 0, &state);
	/* as if half a minute and many other services had gone by */
	load.changes += 1ull << 32;
	load.credits[70]++;
	load.outstanding[70]--;
	cr_assert_eq(workers_pick(table, &load, 0, &state), 70);
	workers_pick_table_destroy(table);
}

Test(workers_smallest, vector_and_plain_code_find_the_same_lanes)
{
	for (unsigned int round = 0; round < 20000; round++) {
		uint16_t outstanding[LANES];
		float base[LANES], slope[LANES];
		uint32_t key[LANES], among = (uint32_t)random() ^ (uint32_t)random() << 16;
		struct lanes_least a, b;

		if (round % 10 == 0)
			among = round % 20 == 0 ? 0 : UINT32_MAX;
		for (unsigned int i = 0; i < LANES; i++) {
			outstanding[i] = random() % 4;
			base[i] = slope[i] = (float)(1 + random() % 3);
			key[i] = (uint32_t)random() % 5;
		}
		a = lanes_least(key, among);
		b = lanes_least_plain(key, among);
		cr_assert(a.key == b.key && (among == 0 || a.lanes == b.lanes));
		a = lanes_least_loaded(outstanding, (struct lanes_keys){base, slope}, 0, among);
		b = lanes_least_loaded_plain(outstanding, (struct lanes_keys){base, slope}, 0,
					     among);
		cr_assert(a.key == b.key && (among == 0 || a.lanes == b.lanes));
	}
}
