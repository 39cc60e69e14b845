/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests that a deadline counts from the load balancer on, whose clock is another one: the same
 * requirements for the C loop and for the CUDA loop, with the plug-in echo.
 *
 *   waited_test cpu|cuda MODELS_FOLDER [TEST]
 *
 * Exits with 77 where there is no GPU.
 */
#include <string.h>
#include <unistd.h>

#include "loop_tests.h"

/* us; the load balancer's clock shows so much less than this machine's, and wraps on the way. */
#define OFFSET 0x12345678u

static uint32_t stamp(void)
{
	return ((uint32_t)(clock_now_ns() / 1000) - OFFSET) | 1;
}

static void ask(struct rig *rig, uint32_t slot, uint32_t deadline_us, uint32_t sent_us)
{
	memset(rig_slot(rig, 0, slot), (int)slot, 100);
	rig_submit(rig, 0, slot, 100,
		   &(struct ring_descriptor){.deadline_us = deadline_us, .sent_us = sent_us});
}

/* Statuses of the next <n> replies, by slot. */
static bool statuses(struct rig *rig, uint32_t n, uint8_t *status)
{
	struct rig_reply r;

	for (uint32_t i = 0; i < n; i++) {
		if (!await(rig, 0, &r))
			return false;
		status[r.slot] = r.status;
	}
	return true;
}

static bool start_slow(struct rig *rig)
{
	return begin(rig, (struct rig_params){.arguments = "max_request=100,kernel=1,"
							   "batch_us=40000",
					      .max_batch = 1});
}

/* The loop sees a request only when the batch before it has run: the time until then counts. */
static void counts_the_time_in_the_ring(struct rig *rig)
{
	uint8_t status[SLOTS];

	if (!start_slow(rig))
		return;
	rig_hold(rig, 0);
	ask(rig, 0, 0, stamp());
	ask(rig, 1, 20000, stamp());
	ask(rig, 2, 100000000, stamp());
	rig_release(rig, 0);
	REQUIRE(statuses(rig, 3, status), "no reply");
	REQUIRE(status[0] == RING_OK && status[2] == RING_OK, "statuses %u %u", status[0],
		status[2]);
	REQUIRE(status[1] == RING_EXPIRED, "20 ms of 40 ms in the ring: status %u", status[1]);
	COUNTED(expired, 1);
}

/* Without stamps, as of older load balancers, it counts from the loop's sight on. */
static void counts_from_its_sight_without_stamps(struct rig *rig)
{
	uint8_t status[SLOTS];

	if (!start_slow(rig))
		return;
	ask(rig, 0, 0, 0);
	pause_us(2000);
	ask(rig, 1, 20000, 0);
	REQUIRE(statuses(rig, 2, status), "no reply");
	REQUIRE(status[1] == RING_OK, "status %u", status[1]);
}

/* Stamps that make no sense expire nothing: no request is older than the last look at its ring. */
static void is_not_misled_by_a_broken_clock(struct rig *rig)
{
	uint8_t status[SLOTS];

	if (!begin(rig, (struct rig_params){.arguments = "max_request=100,kernel=1"}))
		return;
	for (uint32_t i = 0; i < 200; i++) {
		pause_us(100);
		ask(rig, i % SLOTS, 10000000, (stamp() - i * 20000000) | 1);
		REQUIRE(statuses(rig, 1, status), "no reply");
		REQUIRE(status[i % SLOTS] == RING_OK, "request %u: status %u", i,
			status[i % SLOTS]);
	}
}

/* Where agents take turns, a thread sees when a request comes while the model runs: that time is
 * part of what the stamp says, and counts once. */
static void counts_once_in_turns(struct rig *rig)
{
	uint8_t status[SLOTS] = {[8] = RING_EXPIRED};
	char path[64];

	if (gpu >= 0) {
		skipped = "turns are for CPUs";
		return;
	}
	snprintf(path, sizeof(path), "/tmp/waited-turns-%d", getpid());
	if (!begin(rig, (struct rig_params){.arguments = "max_request=100,delay_us=200000,sleep=1",
					    .max_batch = 4,
					    .turns = path}))
		return;
	unlink(path);
	/* It learns that a request takes 200 ms. */
	for (uint32_t i = 0; i < 3; i++) {
		ask(rig, i, 0, stamp());
		REQUIRE(statuses(rig, 1, status), "no reply");
	}
	for (uint32_t i = 0; i < TRIES && status[8] != RING_OK; i++) {
		ask(rig, 3, 0, stamp());
		pause_us(10000); /* it runs; the next four run together then, for 800 ms */
		for (uint32_t k = 4; k < 8; k++)
			ask(rig, k, 0, stamp());
		REQUIRE(statuses(rig, 1, status), "no reply");
		pause_us(10000);
		ask(rig, 8, 1300000, stamp());
		REQUIRE(statuses(rig, 5, status), "no reply");
	}
	REQUIRE(status[8] == RING_OK, "790 ms of 1300 ms in the ring: status %u", status[8]);
}

int main(int argc, char **argv)
{
	static const struct loop_test tests[] = {
		LOOP_TEST(counts_the_time_in_the_ring),
		LOOP_TEST(counts_from_its_sight_without_stamps),
		LOOP_TEST(is_not_misled_by_a_broken_clock),
		LOOP_TEST(counts_once_in_turns),
	};

	if (argc < 3) {
		fprintf(stderr, "usage: waited_test cpu|cuda MODELS_FOLDER [TEST]\n");
		return 2;
	}
	return loop_tests_run(argv[1], argv[2], argc > 3 ? argv[3] : NULL, tests,
			      sizeof(tests) / sizeof(tests[0]));
}
