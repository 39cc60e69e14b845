/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "pool.h"
#include "schedule/pick.h"
#include "pick_table.h"

static struct worker_pool *pool;
static struct pick_load load;

static struct worker *add_worker(const char *name, const char *model)
{
	struct worker_spec spec = {
		.instance = 1,
		.slots = 64,
		.max_request = 1472,
		.max_reply = 1472,
		.max_batch = 1,
		.weight = 1,
		.heartbeat_ms = 100,
	};
	char error[160] = "";
	struct worker *worker;

	snprintf(spec.name, sizeof(spec.name), "%s", name);
	snprintf(spec.model, sizeof(spec.model), "%s", model);
	worker = workers_register(pool, &spec, error, sizeof(error));
	cr_assert_not_null(worker, "%s", error);
	worker->state = WORKER_ACTIVE;
	workers_load_open(&load, worker->number, spec.slots);
	return worker;
}

/* Gives the worker <n> outstanding requests, and one credit more. */
static void set_outstanding(uint16_t worker, unsigned int n)
{
	workers_load_open(&load, worker, n + 1);
	for (unsigned int i = 0; i < n; i++)
		workers_load_sent(&load, worker, 0);
}

static void add_workers(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		char name[WORKER_NAME_MAX];

		snprintf(name, sizeof(name), "gpu-%u", i);
		add_worker(name, "echo");
	}
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

TestSuite(workers_pick, .init = setup, .fini = teardown);

Test(workers_pick, a_table_takes_the_active_workers_of_its_model)
{
	struct pick_table *table;

	add_worker("a", "echo");
	add_worker("b", "mlp");
	add_worker("c", "echo")->state = WORKER_DRAINING;
	add_worker("d", "echo")->state = WORKER_JOINING;
	add_worker("e", "echo");
	for (enum pick_policy policy = 0; policy < PICK_POLICIES; policy++) {
		table = pick_table_of_model(pool, "echo", policy);
		cr_assert_eq(table->policy, policy);
		cr_assert_eq(table->n, 2);
		cr_assert_eq(table->worker[0], 0);
		cr_assert_eq(table->worker[1], 4);
		workers_pick_table_destroy(table);
	}
}

Test(workers_pick, membership_is_known_for_every_number)
{
	struct pick_table *table;

	add_workers(200);
	for (unsigned int i = 0; i < 200; i += 3)
		workers_remove(pool, workers_get(pool, i));
	table = pick_table_of_model(pool, "echo", PICK_ROUND_ROBIN);
	for (unsigned int i = 0; i <= UINT16_MAX; i++)
		cr_assert_eq(workers_pick_table_has(table, i), i < 200 && i % 3 != 0, "%u", i);
	workers_pick_table_destroy(table);
}

Test(workers_pick, an_empty_table_has_nobody_to_pick)
{
	struct pick_state state = {0};

	for (enum pick_policy policy = 0; policy < PICK_POLICIES; policy++) {
		struct pick_table *table = pick_table_of_model(pool, "echo", policy);

		cr_assert_eq(table->n, 0);
		cr_assert_eq(workers_pick(table, &load, 1, &state), WORKER_NONE);
		workers_pick_table_destroy(table);
	}
	workers_pick_table_destroy(NULL);
}

Test(workers_pick, every_policy_picks_the_last_number_when_it_is_the_only_one)
{
	add_workers(WORKERS_MAX);
	for (unsigned int i = 0; i < WORKERS_MAX - 1; i++)
		workers_remove(pool, workers_get(pool, i));
	for (enum pick_policy policy = 0; policy < PICK_POLICIES; policy++) {
		struct pick_table *table = pick_table_of_model(pool, "echo", policy);

		for (uint32_t start = 0; start < 3; start++) {
			struct pick_state state = {.turn = UINT32_MAX - start};

			cr_assert_eq(workers_pick(table, &load, start, &state), WORKERS_MAX - 1);
		}
		workers_pick_table_destroy(table);
	}
}

Test(workers_pick, nobody_is_picked_without_a_credit)
{
	struct pick_state state = {0};

	add_workers(10);
	for (unsigned int i = 0; i < 10; i++)
		workers_load_close(&load, i);
	for (enum pick_policy policy = 0; policy < PICK_POLICIES; policy++) {
		struct pick_table *table = pick_table_of_model(pool, "echo", policy);

		for (uint32_t hash = 0; hash < 100; hash++)
			cr_assert_eq(workers_pick(table, &load, hash, &state), WORKER_NONE);
		workers_pick_table_destroy(table);
	}
}

Test(workers_pick, round_robin_goes_around_and_skips_who_has_no_credit)
{
	static const uint16_t expected[] = {0, 1, 3, 4, 0, 1, 3, 4};
	struct pick_table *table;
	struct pick_state state = {0};

	add_workers(5);
	workers_load_close(&load, 2);
	table = pick_table_of_model(pool, "echo", PICK_ROUND_ROBIN);
	for (unsigned int i = 0; i < 8; i++)
		cr_assert_eq(workers_pick(table, &load, 0, &state), expected[i]);
	workers_pick_table_destroy(table);
}

Test(workers_pick, round_robin_accepts_a_turn_from_a_larger_table)
{
	struct pick_state state = {.turn = WORKERS_MAX};
	struct pick_table *table;

	add_workers(5);
	table = pick_table_of_model(pool, "echo", PICK_ROUND_ROBIN);
	cr_assert_eq(workers_pick(table, &load, 0, &state), 0);
	cr_assert_eq(workers_pick(table, &load, 0, &state), 1);
	state.turn = 700;
	cr_assert_eq(workers_pick(table, &load, 0, &state), 0);
	workers_pick_table_destroy(table);
}

Test(workers_pick, least_outstanding_picks_the_least_busy_with_a_credit)
{
	struct pick_state state = {0};
	static const uint16_t outstanding[] = {5, 3, 0, 4, 3, 9};
	struct pick_table *table;

	add_workers(6);
	for (uint16_t i = 0; i < 6; i++)
		set_outstanding(i, outstanding[i]);
	workers_load_close(&load, 2);
	workers_load_sent(&load, 1, 0);
	table = pick_table_of_model(pool, "echo", PICK_LEAST_OUTSTANDING);
	for (uint32_t start = 0; start < 2000; start++) {
		state.turn = start;
		cr_assert_eq(workers_pick(table, &load, 0, &state), 4);
	}
	workers_pick_table_destroy(table);
}

Test(workers_pick, least_outstanding_never_leaves_its_table)
{
	struct pick_table *table;
	struct pick_state state = {0};

	/* the others in the same range of numbers are idle, those of the table are not */
	for (unsigned int i = 0; i < 100; i++) {
		char name[WORKER_NAME_MAX];

		snprintf(name, sizeof(name), "gpu-%u", i);
		add_worker(name, i % 7 == 3 ? "echo" : "mlp");
		set_outstanding(i, i % 7 == 3 ? 50 : 0);
	}
	table = pick_table_of_model(pool, "echo", PICK_LEAST_OUTSTANDING);
	for (unsigned int i = 0; i < 1000; i++)
		cr_assert_eq(workers_pick(table, &load, 0, &state) % 7, 3);
	workers_pick_table_destroy(table);
}

Test(workers_pick, least_outstanding_lets_equals_take_turns)
{
	unsigned int picked[10] = {0};
	struct pick_table *table;
	struct pick_state state = {0};

	/* three busier ones in front must not hand their turns to one neighbour */
	add_workers(10);
	for (uint16_t i = 2; i <= 4; i++)
		set_outstanding(i, 1);
	table = pick_table_of_model(pool, "echo", PICK_LEAST_OUTSTANDING);
	for (unsigned int i = 0; i < 7000; i++)
		picked[workers_pick(table, &load, 0, &state)]++;
	for (unsigned int i = 0; i < 10; i++)
		cr_assert_eq(picked[i], i >= 2 && i <= 4 ? 0 : 1000, "worker %u: %u", i, picked[i]);
	workers_pick_table_destroy(table);
}

Test(workers_pick, least_outstanding_levels_the_load)
{
	struct pick_table *table;
	struct pick_state state = {0};

	add_workers(512);
	table = pick_table_of_model(pool, "echo", PICK_LEAST_OUTSTANDING);
	for (unsigned int i = 0; i < 512 * 20; i++) {
		uint16_t worker = workers_pick(table, &load, 0, &state);

		workers_load_sent(&load, worker, 0);
	}
	for (unsigned int i = 0; i < 512; i++)
		cr_assert_eq(load.outstanding[i], 20);
	workers_pick_table_destroy(table);
}

Test(workers_pick, policies_have_names)
{
	cr_assert_str_eq(pick_policy_name(PICK_ROUND_ROBIN), "round-robin");
	cr_assert_str_eq(pick_policy_name(PICK_MAGLEV), "maglev");
	cr_assert_str_eq(pick_policy_name(PICK_LEAST_OUTSTANDING), "least-outstanding");
	cr_assert_str_eq(pick_policy_name(PICK_WEIGHTED), "weighted");
	cr_assert_str_eq(pick_policy_name(PICK_POWER_OF_TWO), "power-of-two");
	cr_assert_str_eq(pick_policy_name(PICK_EARLIEST_FINISH), "earliest-finish");
	cr_assert_str_eq(pick_policy_name(PICK_POLICIES), "unknown");
}
