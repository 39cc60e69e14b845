/* SPDX-License-Identifier: BSD-3-Clause */
/* The speed of a worker, estimated from its answers, and how earliest-finish uses it. */
#include <criterion/criterion.h>

#include "pool.h"
#include "schedule/pick.h"
#include "workers_fixture.h"
#include "pick_table.h"

#define MS 1000000ull

static struct pick_load load;

static void setup(void)
{
	workers_load_init(&load, 1000000000); /* a tick is a ns */
	workers_load_open(&load, 0, 1024);
	workers_load_open(&load, 1, 1024);
}

TestSuite(workers_load, .init = setup);

Test(workers_load, a_credit_is_taken_and_given_back)
{
	cr_assert_eq(load.credits[0], 1024);
	workers_load_sent(&load, 0, 0);
	cr_assert_eq(load.credits[0], 1023);
	cr_assert_eq(load.outstanding[0], 1);
	workers_load_answered(&load, 0, 5, 5);
	workers_load_sent(&load, 0, 6);
	workers_load_unsent(&load, 0);
	cr_assert_eq(load.credits[0], 1024);
	cr_assert_eq(load.outstanding[0], 0);
	workers_load_close(&load, 0);
	cr_assert_eq(load.credits[0], 0);
}

/* Of a worker that runs 32 at a time at most. */
static uint64_t expected(uint16_t worker, uint64_t now)
{
	return workers_expected_finish_ns(&load, worker, now, 32);
}

Test(workers_load, nothing_is_expected_of_a_worker_that_has_answered_nothing)
{
	cr_assert_eq(expected(0, 0), 0);
	workers_load_sent(&load, 0, 0);
	workers_load_answered(&load, 0, 7, 0); /* it was not run */
	cr_assert_not(workers_load_is_measured(&load, 0));
	cr_assert_eq(expected(0, 7), 0);
	workers_load_sent(&load, 0, 10);
	workers_load_answered(&load, 0, 1010, 1000);
	cr_assert(workers_load_is_measured(&load, 0));
	cr_assert_eq(expected(0, 1010), 1000);
}

/* Keep <depth> outstanding; every <run> ns come <batch> answers. */
static uint64_t keep_busy(uint64_t now, unsigned int depth, unsigned int batch, uint64_t run,
			  unsigned int batches)
{
	while (load.outstanding[0] < depth)
		workers_load_sent(&load, 0, now);
	for (unsigned int i = 0; i < batches; i++) {
		now += run;
		for (unsigned int k = 0; k < batch; k++) {
			workers_load_answered(&load, 0, now + k, run);
			workers_load_sent(&load, 0, now + k);
		}
	}
	return now;
}

Test(workers_load, a_place_is_no_work_before_it_is_announced)
{
	uint64_t now = keep_busy(0, 1, 1, 2 * MS, 100);

	workers_load_answered(&load, 0, now, 2 * MS);
	workers_load_placed(&load, 0);
	cr_assert_eq(load.credits[0], 1023);
	for (unsigned int i = 0; i < 100; i++) {
		workers_load_sent(&load, 0, now += 100 * MS);
		workers_load_answered(&load, 0, now += 2 * MS, 2 * MS);
	}
	cr_assert_float_eq((double)load.gap_ns[0], 2e6, 1e4);
	cr_assert_float_eq((double)expected(0, now), 2e6, 1e5);
	workers_load_announced(&load, 0, now += 100 * MS);
	cr_assert_float_eq((double)expected(0, now), 2 * 2e6, 1e5);
	for (unsigned int i = 0; i < 16; i++) {
		workers_load_answered(&load, 0, now += 2 * MS, 2 * MS);
		workers_load_sent(&load, 0, now);
	}
	cr_assert_float_eq((double)load.gap_ns[0], 2e6, 1e4);
	workers_load_placed(&load, 0);
	workers_load_unplaced(&load, 0);
	cr_assert_eq(load.outstanding[0], 1);
	cr_assert_eq(load.placed[0], 0);
}

Test(workers_load, one_at_a_time_each_request_before_adds_a_run)
{
	uint64_t now = keep_busy(0, 5, 1, 2 * MS, 100);

	cr_assert_float_eq((double)load.run_ns[0], 2e6, 1e3);
	cr_assert_float_eq((double)load.gap_ns[0], 2e6, 1e4);
	cr_assert_float_eq((double)load.turn_ns[0], 2e6, 1e4);
	cr_assert_float_eq((double)expected(0, now), 6.0 * 2e6, 1e5);
	/* the first of them has run for half of its time */
	cr_assert_float_eq((double)expected(0, now + 1 * MS), 5.5 * 2e6, 1e5);
}

Test(workers_load, what_came_while_a_batch_runs_is_the_next_batch)
{
	uint64_t now = 0;

	/* Each batch of 8 takes 8 ms; then 8 others are sent. */
	for (unsigned int i = 0; i < 100; i++) {
		for (unsigned int k = 0; k < 8; k++)
			workers_load_sent(&load, 0, now);
		now += 8 * MS;
		for (unsigned int k = 0; k < 8; k++)
			workers_load_answered(&load, 0, now, 8 * MS);
	}
	cr_assert_float_eq((double)load.turn_ns[0], 8e6, 1e5);
	cr_assert_float_eq((double)expected(0, now), 8e6, 1e5);
	workers_load_sent(&load, 0, now);
	cr_assert_float_eq((double)expected(0, now + 6 * MS), 2e6 + 8e6, 1e5);
	for (unsigned int k = 0; k < 3; k++)
		workers_load_sent(&load, 0, now + 1 * MS);
	/* they run together */
	cr_assert_float_eq((double)expected(0, now + 6 * MS), 2e6 + 8e6, 1e5);
	cr_assert_float_eq((double)expected(0, now + 20 * MS), 8e6, 1e5, "it is late itself");
}

Test(workers_load, more_than_a_batch_end_by_whole_batches)
{
	uint64_t now = keep_busy(0, 16, 8, 8 * MS, 100) + 8;

	/* 16 are there: another one runs with the third batch, of up to 8. */
	cr_assert_float_eq((double)workers_expected_finish_ns(&load, 0, now, 8), 3 * 8e6, 4e6);
	cr_assert_lt(workers_expected_finish_ns(&load, 0, now + 4 * MS, 8),
		     workers_expected_finish_ns(&load, 0, now, 8));
}

Test(workers_load, in_batches_each_request_before_adds_its_part_of_a_run)
{
	keep_busy(0, 64, 32, 8 * MS, 100);
	cr_assert_float_eq((double)load.run_ns[0], 8e6, 1e3);
	/* edges of batches: one in eight more or less */
	cr_assert_float_eq((double)load.gap_ns[0], 8e6 / 32, 8e6 / 32 / 7, "%f",
			   (double)load.gap_ns[0]);
}

Test(workers_load, time_without_requests_is_not_counted)
{
	uint64_t now = 0;

	for (unsigned int i = 0; i < 100; i++) {
		now += 1000 * MS;
		workers_load_sent(&load, 0, now);
		now += 3 * MS;
		workers_load_answered(&load, 0, now, 3 * MS);
	}
	cr_assert_float_eq((double)load.gap_ns[0], 3e6, 1e4);
}

Test(workers_load, a_worker_that_slows_down_is_noticed_within_thirty_answers)
{
	uint64_t now = keep_busy(0, 4, 1, 1 * MS, 100);

	keep_busy(now, 4, 1, 5 * MS, 30);
	cr_assert_gt(load.gap_ns[0], 4e6f);
	cr_assert_gt(load.run_ns[0], 4e6f);
}

Test(workers_load, a_slow_worker_is_tried_again_after_ten_idle_seconds)
{
	workers_load_sent(&load, 0, 0);
	workers_load_answered(&load, 0, 5 * MS, 5 * MS);
	for (unsigned int i = 0; i < 10000 / LOAD_RELAX_MS; i++)
		workers_load_relax(&load);
	cr_assert_float_eq((double)load.run_ns[0], 1e6, 5e4);
	/* a worker that has requests tells its speed itself */
	workers_load_sent(&load, 1, 0);
	workers_load_answered(&load, 1, 5 * MS, 5 * MS);
	workers_load_sent(&load, 1, 6 * MS);
	for (unsigned int i = 0; i < 100; i++)
		workers_load_relax(&load);
	cr_assert_eq(load.run_ns[1], 5e6f);
}

static struct pick_table *table_of(struct worker_pool *pool, unsigned int n)
{
	for (unsigned int i = workers_count(pool, WORKER_ACTIVE); i < n; i++)
		fixture_worker(pool, i, 1024, 1);
	return pick_table_of_model(pool, "echo", PICK_EARLIEST_FINISH);
}

Test(workers_load, earliest_finish_gives_a_slow_worker_what_it_can_do)
{
	struct worker_pool *pool = workers_pool_create();
	struct pick_table *table = table_of(pool, 2);
	struct pick_state state = {0};
	unsigned int times[2] = {0};

	workers_load_sent(&load, 0, 0);
	workers_load_answered(&load, 0, 1 * MS, 1 * MS);
	workers_load_sent(&load, 1, 0);
	workers_load_answered(&load, 1, 5 * MS, 5 * MS);
	for (unsigned int i = 0; i < 60; i++) {
		uint16_t worker = workers_pick(table, &load, 0, &state);

		times[worker]++;
		workers_load_sent(&load, worker, 6 * MS);
	}
	cr_assert_eq(times[0], 50);
	cr_assert_eq(times[1], 10);
	workers_pick_table_destroy(table);
	workers_pool_destroy(pool);
}

Test(workers_load, earliest_finish_takes_a_new_worker_for_an_average_one)
{
	struct worker_pool *pool = workers_pool_create();
	struct pick_table *table = table_of(pool, 2);
	struct pick_state state = {0};
	unsigned int times[3] = {0};

	workers_load_sent(&load, 0, 0);
	workers_load_answered(&load, 0, 1 * MS, 1 * MS);
	workers_load_sent(&load, 1, 0);
	workers_load_answered(&load, 1, 1 * MS, 1 * MS);
	workers_pick(table, &load, 0, &state);
	workers_pick_table_destroy(table);
	workers_load_open(&load, 2, 1024);
	table = table_of(pool, 3);
	for (unsigned int i = 0; i < 30; i++) {
		uint16_t worker = workers_pick(table, &load, 0, &state);

		times[worker]++;
		workers_load_sent(&load, worker, 6 * MS);
	}
	cr_assert_eq(times[2], 10, "%u", times[2]);
	cr_assert_not(workers_load_is_measured(&load, 2));
	workers_pick_table_destroy(table);
	workers_pool_destroy(pool);
}

/* A worker with batches of several sizes: alone, a request takes less than in a full batch. */
Test(workers_load, a_request_alone_is_expected_to_take_what_it_takes_alone)
{
	uint64_t now = 0;

	for (unsigned int i = 0; i < 10; i++) {
		workers_load_sent(&load, 0, now);
		workers_load_answered(&load, 0, now += 1 * MS, 1 * MS);
	}
	now = keep_busy(now, 8, 8, 4 * MS, 50);
	while (load.outstanding[0] > 0)
		workers_load_answered(&load, 0, now += 1, 4 * MS);
	cr_assert_float_eq((double)load.run_ns[0], 4e6, 1e4);
	cr_assert_float_eq((double)expected(0, now), 1e6, 1e4);
	/* Beside another one, it is in a larger batch. */
	workers_load_sent(&load, 0, now);
	cr_assert_geq(expected(0, now), 4 * MS);
	workers_load_answered(&load, 0, now += 2 * MS, 2 * MS);
	cr_assert_float_eq((double)expected(0, now), 1e6 + 1e6 / 8, 1e4);
	/* The last one of a batch was not alone. */
	workers_load_sent(&load, 0, now);
	workers_load_sent(&load, 0, now);
	workers_load_answered(&load, 0, now += 9 * MS, 9 * MS);
	workers_load_answered(&load, 0, now, 9 * MS);
	cr_assert_float_eq((double)expected(0, now), 1e6 + 1e6 / 8, 1e4);
	workers_load_close(&load, 0);
	cr_assert_eq(load.alone_ns[0], 0);
}

/* --- workers that run requests by their deadlines ----------------------------------------------
 */

Test(workers_load, what_waits_at_a_worker_is_what_it_told_and_what_was_sent_since)
{
	cr_assert_not(load.by_deadline[0]);
	for (int i = 0; i < 3; i++)
		workers_load_sent(&load, 0, 0);
	workers_load_told(&load, 0, 2); /* the first runs */
	cr_assert(load.by_deadline[0]);
	cr_assert_eq(workers_load_waiting(&load, 0), 2);
	workers_load_sent(&load, 0, 1);
	workers_load_placed(&load, 0);
	cr_assert_eq(workers_load_waiting(&load, 0), 4);
	workers_load_answered(&load, 0, 10, 10);
	workers_load_told(&load, 0, 3);
	cr_assert_eq(workers_load_waiting(&load, 0), 4);
	workers_load_announced(&load, 0, 11);
	cr_assert_eq(workers_load_waiting(&load, 0), 4);
	workers_load_told(&load, 0, 0);
	cr_assert_eq(workers_load_waiting(&load, 0), 0);
}

Test(workers_load, the_first_request_of_an_idle_worker_waits_there_too)
{
	workers_load_told(&load, 0, 0);
	workers_load_sent(&load, 0, 5);
	cr_assert_eq(workers_load_waiting(&load, 0), 1);
	workers_load_sent(&load, 0, 6);
	cr_assert_eq(workers_load_waiting(&load, 0), 2);
}

Test(workers_load, a_new_link_knows_nothing_of_the_last_one)
{
	workers_load_told(&load, 0, 7);
	workers_load_close(&load, 0);
	workers_load_open(&load, 0, 16);
	cr_assert_not(load.by_deadline[0]);
	cr_assert_eq(workers_load_waiting(&load, 0), 0);
}

Test(workers_load, requests_gather_where_a_batch_has_begun)
{
	workers_load_told(&load, 0, 0);
	workers_load_told(&load, 1, 3);
	cr_assert(workers_load_gathers_before(&load, 1, 0, 0, 8));
	cr_assert_not(workers_load_gathers_before(&load, 0, 1, 0, 8));
	/* It is full: the next one begins elsewhere. */
	workers_load_told(&load, 1, 8);
	cr_assert(workers_load_gathers_before(&load, 0, 1, 0, 8));
	/* Both have begun: where fewer wait. */
	workers_load_told(&load, 0, 9);
	workers_load_told(&load, 1, 10);
	cr_assert(workers_load_gathers_before(&load, 0, 1, 0, 8));
	/* As many wait: where fewer run. */
	workers_load_told(&load, 1, 9);
	workers_load_sent(&load, 0, 0);
	workers_load_told(&load, 0, 9);
	cr_assert(workers_load_gathers_before(&load, 1, 0, 0, 8));
}

Test(workers_load, one_that_would_run_a_request_at_once_gets_it)
{
	for (uint16_t i = 0; i < 2; i++) {
		workers_load_sent(&load, i, 0);
		workers_load_answered(&load, i, 1000, 1000);
		workers_load_told(&load, i, 0);
	}
	workers_load_sent(&load, 1, 1000);
	cr_assert(workers_load_gathers_before(&load, 0, 1, 1000, 8));
	cr_assert_not(workers_load_gathers_before(&load, 1, 0, 1000, 8));
	/* Its requests have waited for as long as they run: others run where it would. */
	for (int i = 0; i < 50; i++)
		workers_load_waited(&load, 0, 1000);
	cr_assert(workers_load_gathers_before(&load, 1, 0, 1000, 8));
	/* They do no more. */
	for (int i = 0; i < 50; i++)
		workers_load_waited(&load, 0, 100);
	cr_assert(workers_load_gathers_before(&load, 0, 1, 1000, 8));
}

Test(workers_load, the_soonest_that_a_worker_could_be_done_is_by_full_batches)
{
	workers_load_sent(&load, 0, 0);
	workers_load_answered(&load, 0, 1000, 1000);
	workers_load_told(&load, 0, 0);
	cr_assert_eq(workers_soonest_finish_ns(&load, 0, 8), 1000);
	workers_load_told(&load, 0, 7);
	cr_assert_eq(workers_soonest_finish_ns(&load, 0, 8), 1000);
	workers_load_told(&load, 0, 16);
	cr_assert_eq(workers_soonest_finish_ns(&load, 0, 8), 3000);
}

/* Nothing sets it back for a worker that does not run by deadlines: days of requests one by one. */
Test(workers_load, a_worker_that_tells_nothing_may_have_any_number_of_requests)
{
	load.told[0] = INT32_MAX;
	workers_load_sent(&load, 0, 0);
	workers_load_answered(&load, 0, 1, 1);
	workers_load_told(&load, 0, 3);
	cr_assert_eq(workers_load_waiting(&load, 0), 3);
	workers_load_sent(&load, 0, 2);
	cr_assert_eq(workers_load_waiting(&load, 0), 4);
}
