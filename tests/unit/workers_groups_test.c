/* SPDX-License-Identifier: BSD-3-Clause */
/* near and spread: groups of workers, and the pick in or out of one. */
#include "schedule/groups.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "pick_table.h"
#include "workers_fixture.h"

static struct worker_pool *pool;
static struct pick_table *table;
static struct pick_load load;
static uint16_t turn;

static void begin(void)
{
	pool = workers_pool_create();
	cr_assert_not_null(pool);
	workers_load_init(&load, 1000000);
}

static void end(void)
{
	workers_pick_table_destroy(table);
	workers_pool_destroy(pool);
}

TestSuite(workers_groups, .init = begin, .fini = end);

/* A worker on <host>; NULL: without the label. */
static struct worker *add(unsigned int i, const char *host)
{
	struct worker *w = fixture_worker(pool, i, 8, 1);

	if (host != NULL) {
		snprintf(w->spec.label[0].key, sizeof(w->spec.label[0].key), "host");
		snprintf(w->spec.label[0].value, sizeof(w->spec.label[0].value), "%s", host);
		w->spec.n_labels = 1;
	}
	return w;
}

static void group(enum pick_place place, const char *own, enum pick_policy policy)
{
	workers_pick_table_destroy(table);
	table = pick_table_of_model(pool, "echo", policy);
	cr_assert_not_null(table);
	cr_assert_eq(workers_pick_table_group(table, pool, place, "host", own), 0);
	for (const struct worker *w = workers_next(pool, NULL); w != NULL;
	     w = workers_next(pool, w))
		if (load.credits[w->number] == 0)
			workers_load_open(&load, (uint16_t)w->number, 8);
}

static uint16_t pick(uint16_t anchor)
{
	return workers_pick_placed(table, &load, anchor, &turn);
}

static void send(uint16_t worker, unsigned int n)
{
	while (n-- > 0)
		workers_load_sent(&load, worker, 0);
}

Test(workers_groups, equal_values_are_one_group_and_none_is_one_of_its_own)
{
	add(0, "b");
	add(1, "a");
	add(2, NULL);
	add(3, "b");
	add(4, NULL);
	group(PICK_SPREAD, "a", PICK_LEAST_OUTSTANDING);
	cr_assert_eq(table->groups->n, 4);
	cr_assert_eq(workers_group_of(table, 0), workers_group_of(table, 3));
	cr_assert_neq(workers_group_of(table, 0), workers_group_of(table, 1));
	cr_assert_neq(workers_group_of(table, 2), workers_group_of(table, 4));
	cr_assert_eq(table->groups->own, workers_group_of(table, 1));
	cr_assert_eq(workers_group_of(table, 5), PICK_NO_GROUP, "not registered");
	cr_assert_eq(workers_group_of(table, WORKER_NONE), PICK_NO_GROUP);
}

Test(workers_groups, anywhere_needs_no_groups)
{
	add(0, "a");
	table = pick_table_of_model(pool, "echo", PICK_LEAST_OUTSTANDING);
	cr_assert_eq(workers_pick_table_group(table, pool, PICK_ANYWHERE, "host", NULL), 0);
	cr_assert_null(table->groups);
}

Test(workers_groups, a_value_of_ours_that_no_worker_has_is_no_group)
{
	add(0, "a");
	add(1, NULL);
	group(PICK_NEAR, "z", PICK_LEAST_OUTSTANDING);
	cr_assert_eq(table->groups->own, PICK_NO_GROUP);
	cr_assert(workers_is_placed(table, 0, PICK_NO_GROUP), "without an anchor all are");
	cr_assert_eq(pick(PICK_NO_GROUP), WORKER_NONE);
}

Test(workers_groups, near_finds_the_least_loaded_of_the_group)
{
	for (unsigned int i = 0; i < 100; i++)
		add(i, i % 10 == 3 ? "here" : "there");
	group(PICK_NEAR, "here", PICK_LEAST_OUTSTANDING);
	for (uint16_t i = 3; i < 100; i += 10)
		send(i, 3);
	workers_load_unsent(&load, 63);
	cr_assert_eq(pick(table->groups->own), 63);
	cr_assert(workers_is_placed(table, 63, table->groups->own));
	cr_assert_not(workers_is_placed(table, 64, table->groups->own));
}

Test(workers_groups, spread_finds_the_least_loaded_outside)
{
	for (unsigned int i = 0; i < 40; i++)
		add(i, i < 39 ? "here" : "there");
	group(PICK_SPREAD, NULL, PICK_LEAST_OUTSTANDING);
	cr_assert_eq(pick(workers_group_of(table, 0)), 39, "the only one");
	send(39, 8);
	cr_assert_eq(pick(workers_group_of(table, 0)), WORKER_NONE, "and it is full");
	cr_assert_neq(pick(workers_group_of(table, 39)), 39);
}

Test(workers_groups, equal_loads_take_turns)
{
	unsigned int picked[4] = {0};

	for (unsigned int i = 0; i < 4; i++)
		add(i, i < 3 ? "here" : "there");
	group(PICK_NEAR, "here", PICK_LEAST_OUTSTANDING);
	for (unsigned int i = 0; i < 30; i++)
		picked[pick(table->groups->own)]++;
	for (unsigned int i = 0; i < 3; i++)
		cr_expect_eq(picked[i], 10, "worker %u: %u", i, picked[i]);
	cr_expect_eq(picked[3], 0);
}

Test(workers_groups, turns_go_round_over_blocks)
{
	unsigned int picked[100] = {0};

	for (unsigned int i = 0; i < 100; i++)
		add(i, i % 2 == 0 ? "even" : "odd");
	group(PICK_NEAR, "odd", PICK_LEAST_OUTSTANDING);
	for (unsigned int i = 0; i < 100; i++)
		picked[pick(table->groups->own)]++;
	for (unsigned int i = 0; i < 100; i++)
		cr_expect_eq(picked[i], i % 2 == 0 ? 0 : 2, "worker %u: %u", i, picked[i]);
}

Test(workers_groups, one_value_only_leaves_nothing_outside)
{
	for (unsigned int i = 0; i < 4; i++)
		add(i, "here");
	group(PICK_SPREAD, NULL, PICK_LEAST_OUTSTANDING);
	cr_assert_eq(pick(workers_group_of(table, 0)), WORKER_NONE);
}

Test(workers_groups, workers_that_are_no_members_have_groups_but_are_not_picked)
{
	struct worker *silent = add(0, "here");

	add(1, "here");
	add(2, "there");
	silent->state = WORKER_SUSPECT;
	group(PICK_NEAR, NULL, PICK_LEAST_OUTSTANDING);
	/* near a preferred worker that is silent */
	cr_assert_eq(pick(workers_group_of(table, 0)), 1);
	send(1, 8);
	cr_assert_eq(pick(workers_group_of(table, 0)), WORKER_NONE);
}

Test(workers_groups, weights_and_speeds_count_as_in_the_policy)
{
	struct worker *heavy = add(0, "here");

	heavy->spec.weight = 4;
	add(1, "here");
	group(PICK_NEAR, "here", PICK_LEAST_OUTSTANDING);
	send(0, 3);
	send(1, 1);
	cr_assert_eq(pick(table->groups->own), 0, "3 / 4 is less than 1");
	group(PICK_NEAR, "here", PICK_EARLIEST_FINISH);
	load.run_ns[0] = 1000;
	load.gap_ns[0] = 1000;
	load.run_ns[1] = 100;
	load.gap_ns[1] = 100;
	cr_assert_eq(pick(table->groups->own), 1, "4,000 ns and 200");
}
