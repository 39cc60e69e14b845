/* SPDX-License-Identifier: BSD-3-Clause */
/* Policies that use weights, and how slow start changes the weights. */
#include <criterion/criterion.h>

#include "pool.h"
#include "schedule/pick.h"
#include "workers_fixture.h"
#include "pick_table.h"

static struct worker_pool *pool;
static struct pick_load load;
static struct pick_state state;

static struct worker *add_worker(uint32_t weight)
{
	static unsigned int n;
	struct worker *worker = fixture_worker(pool, n++, 32768, weight);

	workers_load_open(&load, worker->number, 32768);
	return worker;
}

static void setup(void)
{
	pool = workers_pool_create();
	workers_load_init(&load, 1000000000);
}

static void teardown(void)
{
	workers_pool_destroy(pool);
}

TestSuite(workers_weighted, .init = setup, .fini = teardown);

/* Picks per worker of <n>, answered at once or never. */
static void count(enum pick_policy policy, unsigned int n, bool answered,
		  unsigned int times[WORKERS_MAX])
{
	struct pick_table *table = pick_table_of_model(pool, "echo", policy);

	for (unsigned int i = 0; i < WORKERS_MAX; i++)
		times[i] = 0;
	for (unsigned int i = 0; i < n; i++) {
		uint16_t worker = workers_pick(table, &load, i * 2654435761u, &state);

		cr_assert_lt(worker, WORKERS_MAX);
		times[worker]++;
		workers_load_sent(&load, worker, i);
		if (answered)
			workers_load_answered(&load, worker, i, 1);
	}
	workers_pick_table_destroy(table);
}

Test(workers_weighted, turns_are_exactly_as_many_as_the_weights_say)
{
	unsigned int times[WORKERS_MAX];

	add_worker(5);
	add_worker(1);
	add_worker(2);
	count(PICK_WEIGHTED, 800, true, times);
	cr_assert_eq(times[0], 500);
	cr_assert_eq(times[1], 100);
	cr_assert_eq(times[2], 200);
}

Test(workers_weighted, turns_of_one_worker_are_spread_over_the_round)
{
	static const uint16_t expected[] = {0, 2, 0, 0, 1, 0, 2, 0};
	struct pick_table *table;
	unsigned int in_a_row = 0;

	add_worker(5);
	add_worker(1);
	add_worker(2);
	table = pick_table_of_model(pool, "echo", PICK_WEIGHTED);
	cr_assert_eq(table->n_entries, 8);
	for (unsigned int i = 0; i < 80; i++) {
		uint16_t worker = workers_pick(table, &load, 0, &state);

		cr_assert_eq(worker, expected[i % 8], "turn %u: %u", i, worker);
		in_a_row = worker == 0 ? in_a_row + 1 : 0;
		cr_assert_leq(in_a_row, 2);
	}
	workers_pick_table_destroy(table);
}

Test(workers_weighted, equal_weights_are_a_plain_round)
{
	struct pick_table *table;

	for (unsigned int i = 0; i < 7; i++)
		add_worker(200);
	table = pick_table_of_model(pool, "echo", PICK_WEIGHTED);
	cr_assert_eq(table->n_entries, 7);
	for (unsigned int i = 0; i < 70; i++)
		cr_assert_eq(workers_pick(table, &load, 0, &state), i % 7);
	workers_pick_table_destroy(table);
}

Test(workers_weighted, weights_without_a_common_divisor_are_met_nearly)
{
	unsigned int times[WORKERS_MAX], total = 0, n = 1000000;

	for (unsigned int i = 0; i < 600; i++) {
		add_worker(1 + i * 37 % 256);
		total += workers_get(pool, i)->spec.weight;
	}
	count(PICK_WEIGHTED, n, true, times);
	for (unsigned int i = 0; i < 600; i++) {
		double share = (double)workers_get(pool, i)->spec.weight / total;

		cr_assert_float_eq((double)times[i] / n, share, 1.0 / 32768 + 0.03 * share,
				   "worker %u of weight %u: %u", i,
				   workers_get(pool, i)->spec.weight, times[i]);
	}
}

Test(workers_weighted, who_has_no_credit_loses_the_turn)
{
	struct pick_table *table;

	for (unsigned int i = 0; i < 100; i++)
		add_worker(1);
	for (unsigned int i = 0; i < 99; i++)
		workers_load_close(&load, i);
	table = pick_table_of_model(pool, "echo", PICK_WEIGHTED);
	for (unsigned int i = 0; i < 300; i++)
		cr_assert_eq(workers_pick(table, &load, 0, &state), 99);
	workers_pick_table_destroy(table);
}

Test(workers_weighted, least_outstanding_fills_workers_by_their_weights)
{
	unsigned int times[WORKERS_MAX];

	add_worker(1);
	add_worker(2);
	add_worker(5);
	count(PICK_LEAST_OUTSTANDING, 800, false, times);
	cr_assert_eq(times[0], 100);
	cr_assert_eq(times[1], 200);
	cr_assert_eq(times[2], 500);
}

Test(workers_weighted, power_of_two_prefers_the_heavier_of_equally_busy_ones)
{
	unsigned int times[WORKERS_MAX];

	add_worker(1);
	add_worker(4);
	count(PICK_POWER_OF_TWO, 1000, false, times);
	cr_assert_eq(times[0], 200);
	cr_assert_eq(times[1], 800);
}

Test(workers_weighted, power_of_two_keeps_loads_close_together)
{
	unsigned int times[WORKERS_MAX], least = UINT32_MAX, most = 0;

	for (unsigned int i = 0; i < 512; i++)
		add_worker(1);
	count(PICK_POWER_OF_TWO, 51200, false, times);
	for (unsigned int i = 0; i < 512; i++) {
		least = times[i] < least ? times[i] : least;
		most = times[i] > most ? times[i] : most;
	}
	/* one choice by chance would spread them by +-30 */
	cr_assert_leq(most, 104);
	cr_assert_geq(least, 90);
}

Test(workers_weighted, power_of_two_finds_the_only_one_with_a_credit)
{
	struct pick_table *table;

	for (unsigned int i = 0; i < 300; i++)
		add_worker(1);
	for (unsigned int i = 0; i < 300; i++)
		if (i != 123)
			workers_load_close(&load, i);
	table = pick_table_of_model(pool, "echo", PICK_POWER_OF_TWO);
	for (unsigned int i = 0; i < 1000; i++)
		cr_assert_eq(workers_pick(table, &load, i, &state), 123);
	workers_pick_table_destroy(table);
}

Test(workers_weighted, a_new_worker_gets_a_tenth_at_first_and_all_after_its_slow_start)
{
	cr_assert_eq(workers_slow_start_share(0, 10000), 100);
	cr_assert_eq(workers_slow_start_share(5000, 10000), 550);
	cr_assert_eq(workers_slow_start_share(9999, 10000), 999);
	cr_assert_eq(workers_slow_start_share(10000, 10000), WORKER_SHARE_FULL);
	cr_assert_eq(workers_slow_start_share(UINT64_MAX, 10000), WORKER_SHARE_FULL);
	cr_assert_eq(workers_slow_start_share(0, 0), WORKER_SHARE_FULL);
}

Test(workers_weighted, a_worker_that_warms_up_gets_less)
{
	static const enum pick_policy policies[] = {PICK_WEIGHTED, PICK_LEAST_OUTSTANDING};
	unsigned int times[WORKERS_MAX];

	add_worker(2)->share = workers_slow_start_share(0, 1000);
	add_worker(1);
	for (unsigned int i = 0; i < 2; i++) {
		count(policies[i], 1200, false, times);
		cr_assert_eq(times[0], 200, "%u", times[0]);
		cr_assert_eq(times[1], 1000);
		workers_load_open(&load, 0, 2000);
		workers_load_open(&load, 1, 2000);
	}
}

Test(workers_weighted, slow_start_moves_no_flow_of_maglev)
{
	struct pick_table *cold, *warm;

	add_worker(2)->share = 100;
	add_worker(1);
	cold = pick_table_of_model(pool, "echo", PICK_MAGLEV);
	workers_get(pool, 0)->share = 0;
	warm = pick_table_of_model(pool, "echo", PICK_MAGLEV);
	cr_assert_arr_eq(cold->entry, warm->entry, warm->n_entries * sizeof(warm->entry[0]));
	workers_pick_table_destroy(cold);
	workers_pick_table_destroy(warm);
}
