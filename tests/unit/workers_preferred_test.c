/* SPDX-License-Identifier: BSD-3-Clause */
/* Session affinity: a flow's preferred worker, its room, and which workers take the overflow. */
#include <criterion/criterion.h>

#include "schedule/preferred.h"
#include "workers_fixture.h"
#include "pick_table.h"

#define SLOTS 64
#define HASH  0x9abcdef0u

static struct worker_pool *pool;
static struct pick_load load;
static struct pick_state state;
static struct preferred_load all;
static uint64_t now;

static void setup(void)
{
	pool = workers_pool_create();
	workers_load_init(&load, 1000000000);
}

static void teardown(void)
{
	workers_pool_destroy(pool);
}

TestSuite(workers_preferred, .init = setup, .fini = teardown);

static void add_worker(unsigned int i, uint32_t weight)
{
	workers_load_open(&load, fixture_worker(pool, i, SLOTS, weight)->number, SLOTS);
}

static struct pick_table *table_of(unsigned int n, enum pick_policy policy)
{
	for (unsigned int i = 0; i < n; i++)
		add_worker(i, 1);
	return pick_table_of_model(pool, "echo", policy);
}

static void owe(uint16_t worker, unsigned int n)
{
	workers_load_open(&load, worker, SLOTS);
	for (unsigned int i = 0; i < n; i++)
		workers_load_sent(&load, worker, 0);
	now++;
}

static bool has_room(const struct pick_table *table, uint16_t preferred, uint32_t batch,
		     uint32_t percent)
{
	return workers_preferred_has_room(table, &load, preferred, batch, percent, now, &all);
}

Test(workers_preferred, is_the_last_worker_while_it_is_there_or_may_be_back)
{
	for (enum pick_policy policy = 0; policy < PICK_POLICIES; policy++) {
		struct pick_table *table;

		if (policy == PICK_MAGLEV)
			continue;
		table = pick_table_of_model(pool, "echo", policy);
		cr_expect_eq(workers_preferred(table, HASH, 2), WORKER_NONE, "nobody is there");
		workers_pick_table_destroy(table);
	}
	for (unsigned int i = 0; i < 4; i++)
		add_worker(i, 1);
	workers_get(pool, 3)->state = WORKER_SUSPECT;
	for (enum pick_policy policy = 0; policy < PICK_POLICIES; policy++) {
		struct pick_table *table = pick_table_of_model(pool, "echo", policy);

		if (policy != PICK_MAGLEV) {
			cr_expect_eq(workers_preferred(table, HASH, WORKER_NONE), WORKER_NONE);
			cr_expect_eq(workers_preferred(table, HASH, 2), 2);
			cr_expect_eq(workers_preferred(table, HASH, 3), WORKER_NONE);
			worker_set_add(&table->away, 3);
			cr_expect_eq(workers_preferred(table, HASH, 3), 3);
		}
		workers_pick_table_destroy(table);
	}
}

Test(workers_preferred, is_the_one_that_the_hash_names_with_maglev_wherever_the_flow_was)
{
	struct pick_table *table = table_of(5, PICK_MAGLEV);

	for (uint32_t hash = 0; hash < 1000; hash++) {
		uint32_t spread = hash * 4294967;
		uint16_t preferred = workers_pick(table, &load, spread, &state);

		cr_assert_eq(workers_preferred(table, spread, WORKER_NONE), preferred);
		cr_assert_eq(workers_preferred(table, spread, (preferred + 1) % 5), preferred);
	}
	workers_pick_table_destroy(table);
	table = pick_table_of_model(pool, "other", PICK_MAGLEV);
	cr_expect_eq(workers_preferred(table, HASH, 1), WORKER_NONE);
	workers_pick_table_destroy(table);
}

Test(workers_preferred, has_room_for_a_batch_however_little_the_others_owe)
{
	struct pick_table *table = table_of(4, PICK_ROUND_ROBIN);

	owe(0, 7);
	cr_expect(has_room(table, 0, 8, 125));
	owe(0, 8);
	cr_expect_not(has_room(table, 0, 8, 125));
	cr_expect(has_room(table, 0, 8, 0), "no bound");
	owe(0, SLOTS);
	cr_expect_not(has_room(table, 0, SLOTS * 2, 0), "no credit");
	workers_pick_table_destroy(table);
}

Test(workers_preferred, has_room_up_to_its_share_of_what_all_owe)
{
	struct pick_table *table = table_of(4, PICK_ROUND_ROBIN);

	/* 20 each on average: 25 are a quarter more. */
	owe(1, 20);
	owe(2, 20);
	owe(3, 15);
	owe(0, 25);
	cr_expect(has_room(table, 0, 1, 125));
	owe(3, 14);
	cr_expect_not(has_room(table, 0, 1, 125));
	cr_expect(has_room(table, 0, 1, 150));
	for (unsigned int i = 0; i < 4; i++)
		owe(i, 30);
	cr_expect(has_room(table, 0, 1, 100), "all owe the same");
	workers_pick_table_destroy(table);
	table = pick_table_of_model(pool, "echo", PICK_ROUND_ROBIN);
	owe(3, 0);
	for (unsigned int i = 0; i < 3; i++)
		cr_expect_not(has_room(table, i, 1, 125), "another table is looked at anew");
	workers_pick_table_destroy(table);
}

Test(workers_preferred, of_a_heavier_worker_has_more_room)
{
	static const enum pick_policy weighing[] = {PICK_WEIGHTED, PICK_MAGLEV,
						    PICK_LEAST_OUTSTANDING, PICK_POWER_OF_TWO};

	add_worker(0, 3);
	add_worker(1, 1);
	for (unsigned int i = 0; i < 4; i++) {
		struct pick_table *table = pick_table_of_model(pool, "echo", weighing[i]);

		owe(0, 30);
		owe(1, 10);
		cr_expect(has_room(table, 0, 1, 101), "%s", pick_policy_name(weighing[i]));
		cr_expect(has_room(table, 1, 1, 101));
		owe(1, 12);
		cr_expect_not(has_room(table, 1, 1, 101));
		workers_pick_table_destroy(table);
	}
}

Test(workers_preferred, without_a_credit_sends_elsewhere_as_the_policy_says)
{
	for (unsigned int i = 0; i < 40; i++)
		add_worker(i, 1);
	for (enum pick_policy policy = 0; policy < PICK_POLICIES; policy++) {
		struct pick_table *table = pick_table_of_model(pool, "echo", policy);

		for (unsigned int i = 0; i < 40; i++)
			owe(i, SLOTS);
		state = (struct pick_state){0};
		cr_expect_eq(workers_pick_elsewhere(table, &load, HASH, 3, &state), WORKER_NONE);
		/* The only one, wherever it is. */
		for (unsigned int i = 0; i < 40; i++) {
			owe(i, SLOTS - 1);
			cr_expect_eq(workers_pick_elsewhere(table, &load, HASH, 3, &state), i, "%s",
				     pick_policy_name(policy));
			owe(i, SLOTS);
		}
		workers_pick_table_destroy(table);
	}
}

Test(workers_preferred, with_a_credit_gives_away_only_to_one_that_owes_less)
{
	for (unsigned int i = 0; i < 6; i++)
		add_worker(i, 1);
	for (enum pick_policy policy = 0; policy < PICK_POLICIES; policy++) {
		struct pick_table *table = pick_table_of_model(pool, "echo", policy);
		unsigned int away = 0;

		state = (struct pick_state){0};
		for (unsigned int i = 0; i < 6; i++)
			owe(i, 20);
		if (policy != PICK_LEAST_OUTSTANDING && policy != PICK_EARLIEST_FINISH)
			for (uint32_t hash = 0; hash < 100; hash++)
				cr_assert_eq(workers_pick_elsewhere(table, &load, hash * 42949672,
								    2, &state),
					     2, "all owe the same");
		for (unsigned int i = 0; i < 6; i++)
			owe(i, i == 2 ? 20 : 10);
		for (uint32_t hash = 0; hash < 100; hash++)
			away += workers_pick_elsewhere(table, &load, hash * 42949672, 2, &state) !=
				2;
		cr_expect_eq(away, 100, "%s: %u", pick_policy_name(policy), away);
		workers_pick_table_destroy(table);
	}
}

Test(workers_preferred, of_a_maglev_flow_has_the_same_second_choice_each_time)
{
	struct pick_table *table = table_of(16, PICK_MAGLEV);
	unsigned int second[16] = {0}, used = 0;

	for (uint32_t flow = 0; flow < 400; flow++) {
		uint32_t hash = flow * 10737418;
		uint16_t preferred = workers_preferred(table, hash, WORKER_NONE), one;

		owe(preferred, SLOTS);
		one = workers_pick_elsewhere(table, &load, hash, preferred, &state);
		cr_assert_neq(one, preferred);
		cr_assert_eq(workers_pick_elsewhere(table, &load, hash, preferred, &state), one);
		if (preferred == 0)
			second[one]++;
		owe(preferred, 0);
	}
	for (unsigned int i = 0; i < 16; i++)
		used += second[i] != 0;
	cr_expect_gt(used, 4, "flows that prefer one worker go to %u others", used);
	workers_pick_table_destroy(table);
}

/* A session's worker is the same as long as it is there, and only its sessions move when it goes.
 */
Test(workers_preferred, of_a_session_moves_only_when_it_goes)
{
	for (enum pick_policy policy = 0; policy < PICK_POLICIES; policy++) {
		struct pick_table *table;
		uint16_t before[1000];
		unsigned int of[8] = {0};

		workers_pool_destroy(pool);
		pool = workers_pool_create();
		table = table_of(8, policy);
		for (uint32_t i = 0; i < 1000; i++) {
			before[i] = workers_preferred_of_session(table, i * 2654435761u);
			cr_assert(workers_pick_table_has(table, before[i]));
			of[before[i]]++;
		}
		for (unsigned int i = 0; i < 8; i++)
			cr_expect(of[i] > 60 && of[i] < 200, "worker %u: %u of 1000", i, of[i]);
		/* Maglev has a table of its own, which is made anew. */
		if (policy != PICK_MAGLEV)
			table->n--;
		for (uint32_t i = 0; i < 1000 && policy != PICK_MAGLEV; i++) {
			uint16_t now_at = workers_preferred_of_session(table, i * 2654435761u);

			cr_assert(now_at == before[i] || before[i] == table->worker[table->n]);
			cr_assert(now_at != table->worker[table->n]);
		}
		workers_pick_table_destroy(table);
	}
}
