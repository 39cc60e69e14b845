/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <time.h>

#include "lcore/queue.h"

static struct queue q;

static void fini(void)
{
	queue_fini(&q);
}

TestSuite(queue, .fini = fini);

static enum queue_verdict push(uint8_t level, uint8_t client, uint64_t tag,
			       struct waiting *displaced)
{
	struct waiting w = {.flow = client, .tag = tag, .level = level, .client_queue = client};
	struct waiting ignored;

	return queue_push(&q, &w, true, displaced != NULL ? displaced : &ignored);
}

static uint64_t take(void)
{
	uint32_t place = queue_first(&q, 0);

	cr_assert_neq(place, QUEUE_NONE);
	return queue_take(&q, place).tag;
}

Test(queue, one_client_is_served_in_its_own_order)
{
	cr_assert_eq(queue_init(&q, 8, 0), 0);
	for (uint64_t i = 1; i <= 8; i++)
		cr_assert_eq(push(2, 5, i, NULL), QUEUE_TAKEN);
	for (uint64_t i = 1; i <= 8; i++)
		cr_expect_eq(take(), i);
	cr_expect_eq(queue_first(&q, 0), QUEUE_NONE);
}

Test(queue, clients_take_turns_however_much_one_of_them_sends)
{
	cr_assert_eq(queue_init(&q, 100, 0), 0);
	for (uint64_t i = 0; i < 50; i++)
		push(2, 7, 700 + i, NULL);
	push(2, 8, 800, NULL);
	push(2, 63, 6300, NULL);
	push(2, 0, 1, NULL);
	cr_expect_eq(take(), 1);
	cr_expect_eq(take(), 700);
	cr_expect_eq(take(), 800);
	cr_expect_eq(take(), 6300);
	cr_expect_eq(take(), 701);
	cr_expect_eq(take(), 702);
}

Test(queue, a_higher_level_goes_first)
{
	cr_assert_eq(queue_init(&q, 8, 8), 0);
	push(4, 1, 4, NULL);
	push(2, 2, 2, NULL);
	push(1, 3, 1, NULL);
	push(QUEUE_LEVEL_REPLAY, 4, 9, NULL);
	cr_expect_eq(take(), 9);
	cr_expect_eq(take(), 1);
	cr_expect_eq(take(), 2);
	cr_expect_eq(take(), 4);
}

Test(queue, when_full_the_longest_client_queue_of_the_lowest_level_gives_up_its_oldest)
{
	struct waiting out = {0};

	cr_assert_eq(queue_init(&q, 4, 0), 0);
	push(2, 1, 10, NULL);
	push(2, 1, 11, NULL);
	push(2, 1, 12, NULL);
	push(2, 2, 20, NULL);
	cr_assert_eq(push(2, 3, 30, &out), QUEUE_DISPLACED);
	cr_expect_eq(out.tag, 10);
	cr_assert_eq(push(3, 4, 40, &out), QUEUE_REFUSED, "the lowest level is the newcomer's");
	cr_assert_eq(push(1, 1, 13, &out), QUEUE_DISPLACED);
	cr_expect_eq(out.tag, 11);
	cr_expect_eq(q.count, 4);
}

Test(queue, a_client_that_fills_the_queue_is_refused_and_others_are_not)
{
	struct waiting out;

	cr_assert_eq(queue_init(&q, 4, 0), 0);
	for (uint64_t i = 0; i < 4; i++)
		cr_assert_eq(push(2, 1, i, NULL), QUEUE_TAKEN);
	cr_expect_eq(push(2, 1, 99, &out), QUEUE_REFUSED);
	cr_expect_eq(push(2, 2, 50, &out), QUEUE_DISPLACED);
	cr_expect_eq(push(2, 2, 51, &out), QUEUE_DISPLACED);
	/* two each: no client has more than the newcomer */
	cr_expect_eq(push(2, 2, 52, &out), QUEUE_REFUSED);
}

Test(queue, replays_have_room_of_their_own_and_are_never_displaced)
{
	struct waiting out;

	cr_assert_eq(queue_init(&q, 1, 2), 0);
	cr_expect_eq(push(QUEUE_LEVEL_REPLAY, 1, 1, NULL), QUEUE_TAKEN);
	cr_expect_eq(push(QUEUE_LEVEL_REPLAY, 1, 2, NULL), QUEUE_TAKEN);
	cr_expect_eq(push(2, 1, 3, NULL), QUEUE_TAKEN);
	cr_expect_eq(push(1, 2, 4, &out), QUEUE_DISPLACED);
	cr_expect_eq(out.tag, 3);
	cr_expect_eq(push(QUEUE_LEVEL_REPLAY, 1, 5, NULL), QUEUE_REFUSED);
}

Test(queue, those_ahead_are_the_turns_of_others_and_ones_own)
{
	cr_assert_eq(queue_init(&q, 100, 4), 0);
	cr_expect_eq(queue_ahead(&q, 2, 1), 0);
	for (uint64_t i = 0; i < 50; i++)
		push(2, 7, i, NULL);
	cr_expect_eq(queue_ahead(&q, 2, 7), 50);
	cr_expect_eq(queue_ahead(&q, 2, 1), 1, "one turn of the long client queue");
	push(2, 1, 60, NULL);
	cr_expect_eq(queue_ahead(&q, 2, 1), 3, "its own, and two turns of the long client queue");
	push(1, 9, 70, NULL);
	cr_expect_eq(queue_ahead(&q, 2, 2), 3, "the higher level, and a turn of each client queue");
	cr_expect_eq(queue_ahead(&q, 1, 2), 1);
}

Test(queue, without_leave_to_grow_a_newcomer_is_in_only_for_another)
{
	struct waiting w = {.level = 2, .client_queue = 3, .tag = 30}, out;

	cr_assert_eq(queue_init(&q, 100, 0), 0);
	cr_expect_eq(queue_push(&q, &w, false, &out), QUEUE_REFUSED);
	push(2, 1, 10, NULL);
	push(2, 1, 11, NULL);
	cr_expect_eq(queue_push(&q, &w, false, &out), QUEUE_DISPLACED);
	cr_expect_eq(out.tag, 10);
	cr_expect_eq(q.count, 2);
}

Test(queue, lower_levels_can_be_looked_at_alone)
{
	cr_assert_eq(queue_init(&q, 8, 0), 0);
	push(1, 1, 10, NULL);
	push(3, 1, 30, NULL);
	cr_expect_eq(queue_at(&q, queue_first(&q, 0))->tag, 10);
	cr_expect_eq(queue_at(&q, queue_first(&q, 2))->tag, 30);
	cr_expect_eq(queue_first(&q, 4), QUEUE_NONE);
}

Test(queue, a_queue_without_places_refuses)
{
	cr_assert_eq(queue_init(&q, 0, 0), 0);
	cr_expect_eq(push(1, 0, 1, NULL), QUEUE_REFUSED);
	cr_expect_eq(queue_first(&q, 0), QUEUE_NONE);
}

Test(queue, a_request_passed_over_goes_to_the_end_and_the_next_client_has_its_turn)
{
	cr_assert_eq(queue_init(&q, 8, 0), 0);
	push(2, 1, 10, NULL);
	push(2, 1, 11, NULL);
	push(2, 2, 20, NULL);
	queue_pass(&q, queue_first(&q, 0));
	cr_expect_eq(take(), 20);
	cr_expect_eq(take(), 11);
	cr_expect_eq(take(), 10);
}

Test(queue, what_waits_is_found_by_flow_and_tag_within_a_budget)
{
	uint32_t budget = 10, place;

	cr_assert_eq(queue_init(&q, 8, 0), 0);
	push(2, 1, 10, NULL);
	push(2, 1, 11, NULL);
	push(3, 1, 12, NULL);
	place = queue_find(&q, 1, 1, 12, &budget);
	cr_assert_neq(place, QUEUE_NONE);
	cr_expect_eq(budget, 8);
	cr_expect_eq(queue_remove(&q, place).tag, 12);
	cr_expect_eq(queue_find(&q, 1, 1, 12, &budget), QUEUE_NONE);
	cr_expect_eq(queue_find(&q, 1, 2, 10, &budget), QUEUE_NONE);
	budget = 1;
	cr_expect_eq(queue_find(&q, 1, 1, 11, &budget), QUEUE_NONE);
	cr_expect_eq(budget, 0);
}

Test(queue, all_are_looked_at_in_turn_whoever_goes_meanwhile)
{
	uint32_t place;

	cr_assert_eq(queue_init(&q, 8, 0), 0);
	cr_expect_eq(queue_scan(&q), QUEUE_NONE);
	for (uint64_t tag = 0; tag < 4; tag++)
		push(2, tag % 2, tag, NULL);
	place = queue_scan(&q);
	cr_expect_eq(queue_at(&q, place)->tag, 0);
	queue_remove(&q, place);
	/* The next one is removed before the scan reaches it. */
	queue_remove(&q, queue_oldest(&q));
	cr_expect_eq(queue_at(&q, queue_scan(&q))->tag, 2);
	cr_expect_eq(queue_at(&q, queue_scan(&q))->tag, 3);
	push(2, 0, 4, NULL);
	/* Behind the newest comes the oldest. */
	cr_expect_eq(queue_at(&q, queue_scan(&q))->tag, 2);
	cr_expect_eq(queue_at(&q, queue_scan(&q))->tag, 3);
	cr_expect_eq(queue_at(&q, queue_scan(&q))->tag, 4);
	cr_expect_eq(queue_at(&q, queue_scan(&q))->tag, 2);
}

/* ns of this thread's CPU time: other processes' work is not counted. */
static uint64_t nanoseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
}

/* The time to remove all requests of one client queue, newest first; the best of five rounds. */
static uint64_t time_removals(uint32_t n)
{
	static uint32_t place[8192];
	uint64_t best = UINT64_MAX;

	cr_assert_eq(queue_init(&q, n, 0), 0);
	for (int round = 0; round < 5; round++) {
		uint64_t start;

		for (uint32_t i = 0; i < n; i++) {
			push(2, 9, i, NULL);
			place[i] = q.newest;
		}
		start = nanoseconds();
		for (uint32_t i = n; i-- > 0;)
			cr_assert_eq(queue_remove(&q, place[i]).tag, i);
		start = nanoseconds() - start;
		best = start < best ? start : best;
	}
	queue_fini(&q);
	return best;
}

/* 32 times as many requests: 1024 times the work if a removal walked the client queue. */
Test(queue, a_removal_costs_the_same_in_a_long_client_queue)
{
	uint64_t few = time_removals(256), many = time_removals(8192);

	cr_log_info("256: %lu ns, 8192: %lu ns", few, many);
	cr_expect_leq(many, few * 32 * 8, "%lu ns for 8192, %lu ns for 256", many, few);
}

/* The lists of the client queues must hold what the queue counts, in both directions. */
static void check_client_queues(void)
{
	uint32_t all = 0;

	for (unsigned int i = 0; i < QUEUE_LEVELS; i++) {
		uint32_t of_level = 0;

		for (unsigned int k = 0; k < QUEUE_CLIENTS; k++) {
			const struct client_queue *queue = &q.level[i].client[k];
			uint32_t n = 0, previous = QUEUE_NONE;

			for (uint32_t at = queue->first; at != QUEUE_NONE; at = q.entry[at].next) {
				cr_assert_eq(q.entry[at].previous, previous);
				cr_assert_eq(queue_at(&q, at)->level, i);
				cr_assert_eq(queue_at(&q, at)->client_queue, k);
				previous = at;
				n++;
			}
			cr_assert_eq(queue->last, previous);
			cr_assert_eq(q.level[i].length[k], n);
			cr_assert_eq(q.level[i].busy >> k & 1, n > 0);
			of_level += n;
		}
		cr_assert_eq(q.level[i].count, of_level);
		all += of_level;
	}
	cr_assert_eq(q.count, all);
}

/* A place somewhere in the middle. */
static uint32_t any_place(void)
{
	uint32_t place = queue_oldest(&q);

	for (int i = rand() % 16; i > 0 && place != QUEUE_NONE; i--)
		if (queue_newer(&q, place) != QUEUE_NONE)
			place = queue_newer(&q, place);
	return place;
}

/* Against a plain list: everything that went in comes out once, oldest first by age. */
Test(queue, random_work_loses_nothing_and_keeps_the_order_of_age)
{
	enum { PLACES = 64, STEPS = 200000 };
	static bool in[STEPS];
	uint64_t inside = 0;
	struct waiting out;

	srand(7);
	cr_assert_eq(queue_init(&q, PLACES, 16), 0);
	for (uint64_t step = 0; step < STEPS; step++) {
		uint64_t before = 0;
		uint32_t place = queue_first(&q, 0);

		switch (rand() % 4) {
		case 0:
		case 1:
			switch (push(rand() % QUEUE_LEVELS, rand() % 8, step, &out)) {
			case QUEUE_DISPLACED:
				cr_assert(in[out.tag]);
				in[out.tag] = false;
				inside--;
				/* fall through */
			case QUEUE_TAKEN:
				in[step] = true;
				inside++;
				break;
			default:
				break;
			}
			break;
		case 2:
			if (place != QUEUE_NONE && rand() % 8 == 0) {
				queue_pass(&q, place);
			} else if (place != QUEUE_NONE) {
				out = queue_take(&q, place);
				cr_assert(in[out.tag]);
				in[out.tag] = false;
				inside--;
			}
			break;
		default:
			place = any_place();
			if (place == QUEUE_NONE || rand() % 4 != 0)
				break;
			out = queue_remove(&q, place);
			cr_assert(in[out.tag]);
			in[out.tag] = false;
			inside--;
		}
		cr_assert_eq(q.count, inside);
		if (step % 64 == 0)
			check_client_queues();
		for (place = queue_oldest(&q); step % 64 == 0 && place != QUEUE_NONE;
		     place = queue_newer(&q, place)) {
			cr_assert(in[queue_at(&q, place)->tag]);
			cr_assert_geq(queue_at(&q, place)->tag, before);
			before = queue_at(&q, place)->tag;
		}
	}
}
