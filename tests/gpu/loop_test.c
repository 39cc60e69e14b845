/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests a worker's loop: the same requirements for the C loop and for the CUDA loop.
 *
 *   loop_test cpu|cuda[-verbs|-proxy|-memory] MODELS_FOLDER WEIGHTS [TEST]
 *
 * On an RDMA device, which in loop_test is a ConnectX's stand-in, and in loop_rdma the real one
 * that $RIG_DEVICE and $RIG_ADDRESS name: -verbs: the loop rings it; -proxy: the proxy posts;
 * -memory (cuda): the loop rings it, and requests and replies lie in the GPU's memory.
 *
 * Exits with 77 where there is no GPU.
 */
#include <isa-l/crc.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "turns/turns.h"
#include "loop_tests.h"

static const char *weights;

static void fill(uint8_t *at, uint32_t n, uint32_t seed)
{
	for (uint32_t i = 0; i < n; i++)
		at[i] = (uint8_t)(seed * 2654435761u >> 24) + i * 7 + (i >> 8);
}

static bool filled(const uint8_t *at, uint32_t n, uint32_t seed)
{
	for (uint32_t i = 0; i < n; i++)
		if (at[i] != (uint8_t)((uint8_t)(seed * 2654435761u >> 24) + i * 7 + (i >> 8)))
			return false;
	return true;
}

static void ask(struct rig *rig, uint32_t link, uint32_t slot, uint32_t length, uint32_t seed,
		const struct ring_descriptor *with)
{
	fill(rig_slot(rig, link, slot), length, seed);
	rig_submit(rig, link, slot, length, with);
}

/* One request and its reply. */
static bool echoes(struct rig *rig, uint32_t link, uint32_t slot, uint32_t length, uint32_t seed)
{
	struct rig_reply r;

	ask(rig, link, slot, length, seed, NULL);
	return await(rig, link, &r) && r.slot == slot && r.status == RING_OK &&
	       r.header->length == length && r.header->sequence == rig->link[link].position &&
	       filled(r.bytes, length, seed);
}

/* --- tests -------------------------------------------------------------------------------------
 */

static void answers_every_length_lap_after_lap(struct rig *rig)
{
	static const uint32_t lengths[] = {1,   2,   3,    4,    5,    7,    8,    15,
					   16,  17,  63,   64,   65,   127,  511,  512,
					   513, 527, 1023, 1472, 2049, 4093, 4095, 4096};

	if (!begin(rig, (struct rig_params){0}))
		return;
	for (uint32_t i = 0; i < 10 * SLOTS; i++) {
		uint32_t length = lengths[i % (sizeof(lengths) / sizeof(lengths[0]))];

		REQUIRE(echoes(rig, 0, i * 5 % SLOTS, length, i), "request %u of %u bytes", i,
			length);
	}
	COUNTED(requests, 10 * SLOTS);
}

/* On a GPU a model with a kernel takes another path than one without. */
static void answers_by_a_kernel(struct rig *rig)
{
	if (!begin(rig,
		   (struct rig_params){.arguments = "max_request=100,kernel=1", .max_batch = 1}))
		return;
	for (uint32_t i = 0; i < 200; i++)
		REQUIRE(echoes(rig, 0, i * 5 % SLOTS, 1 + i % 100, i), "request %u", i);
}

/* Sizes around the bytes that a block has in flight, and those that it copies in one step. */
static void answers_large_ones_by_a_kernel(struct rig *rig)
{
	static const uint32_t lengths[] = {1,     4095,  4096,  4097,  7167,  7168,  7169, 9000,
					   16383, 16384, 16385, 17919, 17920, 17921, 19000};

	if (!begin(rig,
		   (struct rig_params){.arguments = "max_request=19000,kernel=1", .max_batch = 2}))
		return;
	for (uint32_t i = 0; i < 150; i++) {
		uint32_t length = lengths[i % (sizeof(lengths) / sizeof(lengths[0]))];

		REQUIRE(echoes(rig, 0, i * 5 % SLOTS, length, i), "request %u of %u bytes", i,
			length);
	}
}

/* Also around the bytes that a turn fetches while it takes a request; larger ones are read by the
 * model.
 */
static void answers_where_requests_lie(struct rig *rig)
{
	static const uint32_t lengths[] = {1,    15,    16,    17,    4096,  7168,  7169,
					   8000, 17919, 17920, 17921, 65536, 99999, 100000};

	if (!begin(rig, (struct rig_params){.arguments = "max_request=100000,kernel=1,in_place=1",
					    .max_batch = 1}))
		return;
	for (uint32_t i = 0; i < 140; i++) {
		uint32_t length = lengths[i % (sizeof(lengths) / sizeof(lengths[0]))];

		REQUIRE(echoes(rig, 0, i * 5 % SLOTS, length, i), "request %u of %u bytes", i,
			length);
	}
}

/* Batches, with good and bad sums, and one that the model does not take. */
static void answers_batches_where_requests_lie(struct rig *rig)
{
	struct rig_reply r;

	if (!begin(rig, (struct rig_params){.arguments = "max_request=9000,kernel=1,in_place=1",
					    .batch_timeout_us = 500}))
		return;
	for (uint32_t i = 0; i < 8 * SLOTS; i++) {
		uint32_t slot = i * 5 % SLOTS, length = 1 + i * 731 % 9000;
		struct ring_descriptor sum = {.flags = i % 3 ? RING_HAS_CRC : 0};

		fill(rig_slot(rig, 0, slot), length, slot);
		sum.crc32 = crc32_gzip_refl(0, rig_slot(rig, 0, slot), length) ^ (i % 3 == 2);
		rig_submit(rig, 0, slot, i % 16 == 0 ? 9001 : length, &sum);
		if (i % 5 != 4 && i != 8 * SLOTS - 1)
			continue;
		for (uint32_t left = i % 5 + 1; left > 0; left--) {
			uint32_t sent, was;

			REQUIRE(await(rig, 0, &r), "no reply");
			for (sent = i - i % 5; sent * 5 % SLOTS != r.slot; sent++)
				;
			was = sent % 16 == 0 || sent % 3 == 2 ? RING_BAD : RING_OK;
			REQUIRE(r.status == was, "request %u: status %u", sent, r.status);
			REQUIRE(was != RING_OK || (r.header->length == 1 + sent * 731 % 9000 &&
						   filled(r.bytes, r.header->length, r.slot)),
				"request %u: wrong bytes", sent);
		}
	}
}

static void serves_many_links(struct rig *rig)
{
	if (!begin(rig, (struct rig_params){.links = 40}))
		return;
	for (uint32_t i = 0; i < 400; i++)
		REQUIRE(echoes(rig, i * 7 % 40, i % SLOTS, 100 + i, i), "request %u", i);
}

static void answers_full_rings_of_all_links(struct rig *rig)
{
	struct rig_reply r;

	if (!begin(rig, (struct rig_params){.links = 3, .max_batch = 64}))
		return;
	for (uint32_t lap = 0; lap < 5; lap++) {
		for (uint32_t i = 0; i < 3 * SLOTS; i++)
			ask(rig, i % 3, i / 3, 200 + i, lap * 100 + i, NULL);
		for (uint32_t i = 0; i < 3 * SLOTS; i++) {
			uint32_t was;

			REQUIRE(await(rig, i % 3, &r), "lap %u: %u replies are missing", lap,
				3 * SLOTS - i);
			was = r.slot * 3 + i % 3;
			REQUIRE(r.status == RING_OK && r.header->length == 200 + was &&
					filled(r.bytes, 200 + was, lap * 100 + was),
				"lap %u: the reply to slot %u is wrong", lap, r.slot);
		}
	}
}

/* While a batch runs, more come than the next one has room for: another number of each link, all
 * with a deadline, and one of each link that is cancelled already. Under load the loop reads many
 * descriptors at once, takes them without asking for each first, and posts the batch before
 * meanwhile. */
static void takes_uneven_bursts(struct rig *rig)
{
	enum { LINKS = 3, ROOM = 64 };
	static const uint32_t bursts[][LINKS] = {
		{60, 0, 0}, {33, 3, 17}, {1, 63, 9}, {20, 20, 20}, {8, 0, 40}, {0, 31, 32},
	};
	static const struct ring_descriptor fields = {.deadline_us = 100000000};
	const uint64_t batch_ns = 400000;
	uint64_t cancelled = 0;
	struct rig_reply r;

	if (!begin(rig, (struct rig_params){
				.arguments = "max_request=1024,kernel=1,batch_us=400",
				.links = LINKS,
				.slots = ROOM,
				.max_batch = 32,
			}))
		return;
	for (uint32_t round = 0; round < 60; round++) {
		const uint32_t *burst = bursts[round % (sizeof(bursts) / sizeof(bursts[0]))];
		uint64_t seen[LINKS] = {0}, begin_ns = clock_now_ns();
		bool waited;

		ask(rig, round % LINKS, ROOM - 1, 100, round, &fields);
		pause_us(100);
		for (uint32_t l = 0; l < LINKS; l++) {
			if (burst[l] > 5)
				rig_cancel(rig, l, 5, rig->link[l].position + 6);
			for (uint32_t i = 0; i < burst[l]; i++)
				ask(rig, l, i, 300 + i + l, round + i, &fields);
		}
		/* Behind the running batch; else this thread was halted, and a GPU does not read
		 * the cancel words of requests that it takes at once. */
		waited = clock_now_ns() - begin_ns < batch_ns;
		REQUIRE(await(rig, round % LINKS, &r) && r.slot == ROOM - 1, "round %u: slot %u",
			round, r.slot);
		for (uint32_t l = 0; l < LINKS; l++) {
			for (uint32_t n = 0; n < burst[l]; n++) {
				bool to_drop, dropped;

				REQUIRE(await(rig, l, &r), "round %u: %u of link %u", round, n, l);
				REQUIRE(r.slot < burst[l] && (seen[l] & 1ull << r.slot) == 0,
					"round %u: slot %u answers twice", round, r.slot);
				seen[l] |= 1ull << r.slot;
				to_drop = burst[l] > 5 && r.slot == 5;
				dropped = r.status == RING_CANCELLED;
				REQUIRE((dropped && to_drop) ||
						(r.status == RING_OK && !(to_drop && waited)),
					"round %u: slot %u has status %u", round, r.slot, r.status);
				cancelled += dropped;
				REQUIRE(dropped ||
						(r.header->length == 300 + r.slot + l &&
						 filled(r.bytes, r.header->length, round + r.slot)),
					"round %u: slot %u has other bytes", round, r.slot);
			}
		}
	}
	REQUIRE(cancelled > 0, "this thread was halted each time");
	COUNTED(cancelled, cancelled);
}

static void waits_for_a_batch_to_fill(struct rig *rig)
{
	struct rig_reply r;

	if (!begin(rig, (struct rig_params){.max_batch = 4, .batch_timeout_us = 2000000}))
		return;
	for (uint32_t i = 0; i < 3; i++)
		ask(rig, 0, i, 10, i, NULL);
	REQUIRE(silent(rig, 0, 100), "a batch of 3 of 4 did not wait");
	ask(rig, 0, 3, 10, 3, NULL);
	for (uint32_t i = 0; i < 4; i++)
		REQUIRE(await(rig, 0, &r), "reply %u is missing", i);
	COUNTED(batches, 1);
	ask(rig, 0, 4, 10, 4, NULL);
	REQUIRE(await(rig, 0, &r), "a batch of 1 waits for ever");
}

/* A batch has all that came until the loop's turn. */
static void takes_a_batch_when_its_turn_comes(struct rig *rig)
{
	struct turns other;
	struct rig_reply r;
	char path[64], error[256] = "";

	if (gpu >= 0) {
		skipped = "turns are for CPUs";
		return;
	}
	snprintf(path, sizeof(path), "/tmp/loop-turns-%d", getpid());
	REQUIRE(turns_open(&other, path, error, sizeof(error)) == 0, "%s", error);
	REQUIRE(turns_take(&other, 0) == 0, "no turn");
	if (!begin(rig, (struct rig_params){.max_batch = 4, .heartbeat_ms = 1, .turns = path}))
		return;
	ask(rig, 0, 0, 10, 0, NULL);
	while (!turns_are_wanted(&other))
		sched_yield();
	for (uint32_t i = 1; i < 3; i++)
		ask(rig, 0, i, 10, i, NULL);
	REQUIRE(silent(rig, 0, 50), "it does not wait for its turn");
	REQUIRE(await_backlog(rig, 0, 3), "it says that it has %u", rig->link[0].backlog);
	turns_give(&other);
	for (uint32_t i = 0; i < 3; i++)
		REQUIRE(await(rig, 0, &r), "reply %u is missing", i);
	COUNTED(batches, 1);
	REQUIRE(turns_take(&other, 0) == 0, "it does not give the turn back");
	turns_give(&other);
	REQUIRE(echoes(rig, 0, 3, 10, 3), "the loop goes on");
	turns_close(&other);
	unlink(path);
}

/* Opens the file <path> (of 64 bytes) and begins a loop that takes turns by it, whose batches take
 * <us>. False: it has said why. */
static bool begin_in_turn(struct rig *rig, struct turns *other, char *path, const char *us)
{
	static char arguments[64];
	char error[256] = "";

	if (gpu >= 0) {
		skipped = "turns are for CPUs";
		return false;
	}
	snprintf(path, 64, "/tmp/loop-turns-%d", getpid());
	snprintf(arguments, sizeof(arguments), "max_request=4096,batch_us=%s", us);
	if (turns_open(other, path, error, sizeof(error)) != 0) {
		printf("    %s\n", error);
		failures++;
		return false;
	}
	return begin(rig,
		     (struct rig_params){.arguments = arguments, .max_batch = 4, .turns = path});
}

/* A request that would be late is given up while it waits for its turn, and takes no time of the
 * device. */
static void gives_up_in_time_what_would_be_late(struct rig *rig)
{
	const struct ring_descriptor hurry = {.deadline_us = 60000};
	struct turns other;
	struct rig_reply r;
	uint64_t asked, took = UINT64_MAX;
	uint32_t tries = 0;
	char path[64];

	if (!begin_in_turn(rig, &other, path, "40000"))
		return;
	REQUIRE(echoes(rig, 0, 0, 10, 0), "does not begin");
	REQUIRE(turns_take(&other, 0) == 0, "no turn");
	while (took >= 60000000 && tries++ < TRIES) {
		asked = clock_now_ns();
		ask(rig, 0, 1, 10, 1, &hurry);
		REQUIRE(await(rig, 0, &r) && r.status == RING_EXPIRED, "slot %u status %u", r.slot,
			r.status);
		took = clock_now_ns() - asked;
	}
	turns_give(&other);
	REQUIRE(took < 60000000, "the notice is late, too");
	REQUIRE(echoes(rig, 0, 2, 10, 2), "the loop goes on");
	COUNTED(batches, 2 + tries);
	turns_close(&other);
	unlink(path);
}

/* A request's time runs while the loop is in its model. */
static void counts_deadlines_from_when_requests_came(struct rig *rig)
{
	const struct ring_descriptor hurry = {.deadline_us = 300000};
	struct turns other;
	struct rig_reply r;
	uint8_t status = RING_OK;
	char path[64];

	if (!begin_in_turn(rig, &other, path, "200000"))
		return;
	REQUIRE(echoes(rig, 0, 0, 10, 0), "does not begin");
	for (uint32_t i = 0; i < TRIES && status == RING_OK; i++) {
		ask(rig, 0, 1, 10, 1, NULL);
		pause_us(20000);
		/* 120 ms of it are left when the first has run */
		ask(rig, 0, 2, 10, 2, &hurry);
		/* A loop that was halted until then takes the one with the deadline first. */
		for (uint32_t k = 0; k < 2; k++) {
			REQUIRE(await(rig, 0, &r), "%u replies", k);
			REQUIRE(r.slot == 2 || r.status == RING_OK, "status %u", r.status);
			status = r.slot == 2 ? r.status : status;
		}
	}
	REQUIRE(status == RING_EXPIRED, "status %u", status);
	turns_close(&other);
	unlink(path);
}

/* Five requests wait for a turn together, of which the last one has a deadline soon. Returns
 * whether it ran first, and the last of the others behind them; <late>: it waited for too long to
 * run. */
static bool runs_soonest_first(struct rig *rig, struct turns *other, bool *late)
{
	const struct ring_descriptor patient = {.deadline_us = 900000000},
				     hurry = {.deadline_us = 800000};
	bool in_order = true;
	struct rig_reply r;

	*late = false;
	rig_hold(rig, 0);
	for (uint32_t i = 0; i < 4; i++)
		ask(rig, 0, i, 10, i, &patient);
	ask(rig, 0, 4, 10, 4, &hurry);
	rig_release(rig, 0);
	while (!turns_are_wanted(other))
		sched_yield();
	turns_give(other);
	for (uint32_t i = 0; i < 5; i++) {
		in_order &=
			await(rig, 0, &r) && (r.slot == 4) == (i == 0) && (r.slot == 3) == (i == 4);
		*late |= r.status != RING_OK;
	}
	return in_order;
}

/* The earliest deadline goes first, whatever came first. */
static void runs_by_deadline(struct rig *rig)
{
	struct turns other;
	bool late = true;
	char path[64];

	if (!begin_in_turn(rig, &other, path, "1000"))
		return;
	for (uint32_t i = 0; i < TRIES && late; i++) {
		REQUIRE(turns_take(&other, 0) == 0, "no turn");
		REQUIRE(runs_soonest_first(rig, &other, &late), "another order");
	}
	REQUIRE(!late, "it waits for longer than 800 ms");
	turns_close(&other);
	unlink(path);
}

/* Lets a loop that has waited for its turn run six requests, four at a time. Returns whether its
 * heartbeat was there before the end of the first run. */
static bool beats_before_replies(struct rig *rig, struct turns *other)
{
	uint64_t beats, end = clock_now_ns() + PATIENCE;
	struct rig_reply r;
	bool replied = false;

	rig_hold(rig, 0);
	for (uint32_t i = 0; i < 6; i++)
		ask(rig, 0, i, 10, i, NULL);
	rig_release(rig, 0);
	while (!turns_are_wanted(other))
		sched_yield();
	while (rig_reply(rig, 0, &r))
		;
	beats = rig->link[0].heartbeats;
	turns_give(other);
	while (!replied && rig->link[0].heartbeats == beats && clock_now_ns() < end)
		replied = rig_reply(rig, 0, &r);
	return !replied;
}

/* When a run begins, load balancers are told what waits for the next one. */
static void beats_when_a_run_begins(struct rig *rig)
{
	struct turns other;
	struct rig_reply r;
	bool before = false;
	char path[64];

	if (!begin_in_turn(rig, &other, path, "50000"))
		return;
	REQUIRE(echoes(rig, 0, 0, 10, 0), "does not begin");
	for (uint32_t i = 0; i < TRIES && !before; i++) {
		REQUIRE(turns_take(&other, 0) == 0, "no turn");
		before = beats_before_replies(rig, &other);
		REQUIRE(rig->link[0].backlog == 2, "backlog %u", rig->link[0].backlog);
		for (uint32_t k = before ? 0 : 1; k < 6; k++)
			REQUIRE(await(rig, 0, &r), "reply %u", k);
	}
	REQUIRE(before, "a heartbeat only with the replies");
	turns_close(&other);
	unlink(path);
}

static void drops_what_is_too_late(struct rig *rig)
{
	const struct ring_descriptor hurry = {.deadline_us = 1000},
				     patient = {.deadline_us = 100000000};
	struct rig_reply r;

	if (!begin(rig, (struct rig_params){.max_batch = 4, .batch_timeout_us = 50000}))
		return;
	ask(rig, 0, 0, 10, 0, &hurry);
	REQUIRE(await(rig, 0, &r), "no reply");
	REQUIRE(r.slot == 0 && r.status == RING_EXPIRED && r.header->length == 0,
		"slot %u status %u", r.slot, r.status);
	ask(rig, 0, 1, 10, 1, &hurry);
	ask(rig, 0, 2, 20, 2, &patient);
	for (int i = 0; i < 2; i++) {
		REQUIRE(await(rig, 0, &r), "no reply");
		REQUIRE(r.status == (r.slot == 1 ? RING_EXPIRED : RING_OK), "slot %u status %u",
			r.slot, r.status);
		REQUIRE(r.slot == 1 || filled(r.bytes, 20, 2), "the late one left its bytes");
	}
	REQUIRE(echoes(rig, 0, 3, 10, 3), "the loop goes on");
	COUNTED(expired, 2);
}

static void drops_what_was_cancelled(struct rig *rig)
{
	struct rig_reply r;
	uint8_t status = RING_OK;

	if (!begin(rig, (struct rig_params){.max_batch = 4, .batch_timeout_us = 500000}))
		return;
	for (uint32_t i = 0; i < TRIES && status == RING_OK; i++) {
		ask(rig, 0, 5, 10, 0, NULL);
		pause_us(1000); /* it waits for others by then */
		rig_cancel(rig, 0, 5, rig->link[0].position);
		REQUIRE(await(rig, 0, &r) && r.slot == 5, "slot %u", r.slot);
		status = r.status;
	}
	REQUIRE(status == RING_CANCELLED, "status %u", status);
	/* The cancel word of an earlier request in the slot must not cancel this one. */
	REQUIRE(echoes(rig, 0, 5, 10, 1), "an old cancel word holds");
	COUNTED(cancelled, 1);
}

/* One at a time, of which each waits for the one before it: it is fetched at once, and its cancel
 * word read beside it. */
static void drops_what_was_cancelled_while_it_waited(struct rig *rig)
{
	struct rig_reply r;
	uint8_t status = RING_OK;

	if (!begin(rig, (struct rig_params){.arguments = "max_request=4096,kernel=1,batch_us=20000",
					    .max_batch = 1}))
		return;
	for (uint32_t i = 0; i < TRIES && status == RING_OK; i++) {
		ask(rig, 0, 1, 1000, 1, NULL);
		pause_us(5000);
		ask(rig, 0, 2, 1000, 2, NULL);
		rig_cancel(rig, 0, 2, rig->link[0].position);
		REQUIRE(await(rig, 0, &r) && r.slot == 1 && r.status == RING_OK, "the first");
		REQUIRE(await(rig, 0, &r) && r.slot == 2, "slot %u", r.slot);
		status = r.status;
	}
	REQUIRE(status == RING_CANCELLED, "status %u", status);
	REQUIRE(echoes(rig, 0, 2, 1000, 3), "an old cancel word holds");
	COUNTED(cancelled, 1);
}

static void refuses_bad_descriptors(struct rig *rig)
{
	struct rig_reply r;

	if (!begin(rig, (struct rig_params){0}))
		return;
	rig_submit(rig, 0, 3, 4097, NULL);
	REQUIRE(await(rig, 0, &r), "no reply");
	REQUIRE(r.slot == 3 && r.status == RING_BAD, "slot %u status %u", r.slot, r.status);
	rig_submit(rig, 0, SLOTS, 10, NULL);
	rig_submit(rig, 0, UINT32_MAX, 10, NULL);
	REQUIRE(echoes(rig, 0, 2, 10, 1), "the loop stops at a slot that is none");
	COUNTED(bad, 3);
}

static void checks_sums(struct rig *rig)
{
	static const uint32_t lengths[] = {1, 63, 64, 1000, 4096};
	struct rig_reply r;

	if (!begin(rig, (struct rig_params){0}))
		return;
	for (uint32_t i = 0; i < 10; i++) {
		uint32_t length = lengths[i / 2];
		struct ring_descriptor sum = {.flags = RING_HAS_CRC};

		fill(rig_slot(rig, 0, i), length, i);
		sum.crc32 = crc32_gzip_refl(0, rig_slot(rig, 0, i), length) ^ i % 2;
		rig_submit(rig, 0, i, length, &sum);
		REQUIRE(await(rig, 0, &r), "no reply to %u bytes", length);
		REQUIRE(r.status == (i % 2 ? RING_BAD : RING_OK), "%u bytes: status %u", length,
			r.status);
	}
}

static void posts_heartbeats_when_idle(struct rig *rig)
{
	uint64_t end = clock_now_ns() + PATIENCE;
	struct rig_reply r;

	if (!begin(rig, (struct rig_params){.links = 2, .heartbeat_ms = 10}))
		return;
	while (rig->link[0].heartbeats < 20 || rig->link[1].heartbeats < 20) {
		REQUIRE(!rig_reply(rig, 0, &r) && !rig_reply(rig, 1, &r), "a reply to nothing");
		REQUIRE(clock_now_ns() < end, "%lu heartbeats",
			(unsigned long)rig->link[0].heartbeats);
	}
}

/* A loop that always has work must still send heartbeats. */
static void posts_heartbeats_under_load(struct rig *rig)
{
	uint64_t end = clock_now_ns() + PATIENCE;
	struct rig_reply r;

	if (!begin(rig, (struct rig_params){.heartbeat_ms = 10, .max_batch = 2}))
		return;
	for (uint32_t i = 0; i < SLOTS; i++)
		ask(rig, 0, i, 10, i, NULL);
	while (rig->link[0].heartbeats < 20) {
		REQUIRE(await(rig, 0, &r), "no reply");
		ask(rig, 0, r.slot, 10, r.slot, NULL);
		REQUIRE(clock_now_ns() < end, "%lu heartbeats",
			(unsigned long)rig->link[0].heartbeats);
	}
}

/* While a request waits for others to join its batch, heartbeats take WQEs: its reply takes one
 * behind theirs, whenever it was built. */
static void answers_behind_the_heartbeats_of_its_wait(struct rig *rig)
{
	static const char *const arguments[] = {"max_request=1024", "max_request=1024,kernel=1"};

	for (size_t k = 0; k < sizeof(arguments) / sizeof(arguments[0]); k++) {
		if (!begin(rig, (struct rig_params){.arguments = arguments[k],
						    .heartbeat_ms = 2,
						    .batch_timeout_us = 30000}))
			return;
		for (uint32_t i = 0; i < 20; i++)
			REQUIRE(echoes(rig, 0, i % SLOTS, 1 + i * 50, i), "%s: request %u",
				arguments[k], i);
		REQUIRE(rig->link[0].heartbeats >= 20, "%s: %lu heartbeats within 600 ms",
			arguments[k], (unsigned long)rig->link[0].heartbeats);
		rig_stop(rig);
	}
}

static void goes_on_when_a_link_fails(struct rig *rig)
{
	struct rig_reply r;
	uint64_t end;

	if (!begin(rig, (struct rig_params){.links = 2, .heartbeat_ms = 10}))
		return;
	REQUIRE(echoes(rig, 0, 0, 10, 0) && echoes(rig, 1, 0, 10, 1), "does not begin");
	rig_break(rig, 0, MLX5_SYNDROME_RETRY_EXCEEDED);
	ask(rig, 0, 1, 10, 2, NULL);
	end = clock_now_ns() + PATIENCE;
	for (uint32_t i = 1; stats_of(rig).dead_links == 0 || i < 100; i++) {
		REQUIRE(echoes(rig, 1, i % SLOTS, 10, i), "the other link stops, too");
		REQUIRE(clock_now_ns() < end, "the dead link is not seen");
	}
	/* Discard replies posted before the loop saw the error: a NIC would flush them. */
	while (rig_reply(rig, 0, &r))
		;
	ask(rig, 0, 2, 10, 3, NULL);
	REQUIRE(silent(rig, 0, 50), "a dead link is posted to");
	COUNTED(dead_links, 1);
}

static void waits_for_a_full_send_queue(struct rig *rig)
{
	struct rig_reply r;
	uint32_t replies = 0;

	if (!begin(rig, (struct rig_params){.max_batch = 2, .wqes = 4}))
		return;
	/* The first heartbeat is out of the way. */
	REQUIRE(echoes(rig, 0, 9, 10, 9), "does not begin");
	if (!rig_mute(rig, 0, true)) {
		skipped = "this device holds no acknowledgements back";
		return;
	}
	for (uint32_t i = 0; i < 8; i++)
		ask(rig, 0, i, 10, i, NULL);
	/* A pair waits for room for both: where the first request went alone, one WQE stays free.
	 */
	for (; replies < 3; replies++)
		REQUIRE(await(rig, 0, &r), "only %u replies", replies);
	for (; !silent(rig, 0, 50); replies++)
		REQUIRE(replies < 4, "more is posted than the queue holds");
	rig_mute(rig, 0, false);
	for (; replies < 8; replies++) {
		REQUIRE(await(rig, 0, &r), "only %u replies", replies);
		REQUIRE(filled(r.bytes, 10, r.slot), "slot %u has other bytes", r.slot);
	}
}

/* A load balancer that acknowledges nothing holds up its own requests, and nobody else's: neither
 * by its replies nor by its heartbeats, which fill what is left of its queue. */
static void goes_on_beside_a_full_send_queue(struct rig *rig)
{
	struct rig_reply r;
	uint32_t replies = 0;
	uint64_t beats;

	if (gpu >= 0) {
		skipped = "a loop on a GPU waits until the queue pair has failed";
		return;
	}
	if (!begin(rig, (struct rig_params){.links = 2, .wqes = 4, .heartbeat_ms = 5}))
		return;
	REQUIRE(echoes(rig, 0, 9, 10, 9) && echoes(rig, 1, 9, 10, 9), "does not begin");
	if (!rig_mute(rig, 0, true)) {
		skipped = "this device holds no acknowledgements back";
		return;
	}
	beats = rig->link[1].heartbeats;
	for (uint32_t i = 0; i < 8; i++)
		ask(rig, 0, i, 10, i, NULL);
	for (uint32_t i = 0; i < 1000 || rig->link[1].heartbeats < beats + 20; i++)
		REQUIRE(echoes(rig, 1, i % SLOTS, 10, i), "the other link waits, too");
	for (; rig_reply(rig, 0, &r); replies++)
		REQUIRE(replies < 4, "more is posted than the queue holds");
	rig_mute(rig, 0, false);
	for (; replies < 8; replies++) {
		REQUIRE(await(rig, 0, &r), "only %u replies", replies);
		REQUIRE(filled(r.bytes, 10, r.slot), "slot %u has other bytes", r.slot);
	}
}

/* As many slots as a load balancer asks for where requests are many and small. */
static void serves_8192_slots(struct rig *rig)
{
	const uint32_t slots = 8192;
	struct rig_reply r;

	if (!begin(rig, (struct rig_params){
				.arguments = "max_request=64", .max_batch = 32, .slots = slots}))
		return;
	for (uint32_t lap = 0; lap < 2; lap++) {
		for (uint32_t i = 0; i < slots; i++)
			ask(rig, 0, i, 1 + i % 64, i + lap, NULL);
		for (uint32_t i = 0; i < slots; i++) {
			REQUIRE(await(rig, 0, &r), "lap %u: %u replies", lap, i);
			REQUIRE(filled(r.bytes, 1 + r.slot % 64, r.slot + lap),
				"lap %u: slot %u has other bytes", lap, r.slot);
		}
	}
}

static void reports_replies_that_nobody_can_get(struct rig *rig)
{
	struct rig_reply r;

	if (!begin(rig, (struct rig_params){.max_reply = 100}))
		return;
	ask(rig, 0, 0, 101, 0, NULL);
	REQUIRE(await(rig, 0, &r), "no reply");
	REQUIRE(r.status == RING_ERROR && r.header->length == 0, "status %u", r.status);
	REQUIRE(echoes(rig, 0, 1, 100, 1), "100 bytes are too many");
	COUNTED(errors, 1);
}

static void tells_when_it_saw_ran_and_ended(struct rig *rig)
{
	struct rig_reply r;
	uint64_t end;

	if (!begin(rig, (struct rig_params){.arguments = "max_request=64,delay_us=2000"}))
		return;
	ask(rig, 0, 0, 10, 0, NULL);
	REQUIRE(await(rig, 0, &r), "no reply");
	REQUIRE(r.header->seen_ns <= r.header->start_ns &&
			r.header->done_ns - r.header->start_ns >= 2000000 &&
			r.header->done_ns - r.header->start_ns < PATIENCE,
		"seen %lu start %lu done %lu", (unsigned long)r.header->seen_ns,
		(unsigned long)r.header->start_ns, (unsigned long)r.header->done_ns);
	end = clock_now_ns() + PATIENCE;
	while (stats_of(rig).longest_run_ns < 2000000)
		REQUIRE(clock_now_ns() < end, "the longest run was %lu ns",
			(unsigned long)stats_of(rig).longest_run_ns);
}

/* The first is taken before the others come, and then come batches of two, and the last; or, by a
 * loop that was kept from its CPU until then, five batches of two. */
static void tells_how_many_requests_wait(struct rig *rig)
{
	static const uint32_t alone[] = {9, 7, 7, 5, 5, 3, 3, 1, 1, 0};
	static const uint32_t paired[] = {8, 8, 6, 6, 4, 4, 2, 2, 0, 0};
	const uint32_t *waiting = alone;
	struct rig_reply r;

	if (!begin(rig, (struct rig_params){.arguments = "max_request=64,delay_us=20000",
					    .max_batch = 2,
					    .slots = 16}))
		return;
	ask(rig, 0, 0, 10, 0, NULL);
	pause_us(5000);
	rig_hold(rig, 0);
	for (uint32_t i = 1; i < 10; i++)
		ask(rig, 0, i, 10, i, NULL);
	rig_release(rig, 0);
	for (uint32_t i = 0; i < 10; i++) {
		REQUIRE(await(rig, 0, &r), "only %u replies", i);
		if (i == 1 && r.header->backlog > alone[i])
			waiting = paired;
		REQUIRE(r.header->backlog == waiting[i] ||
				(i == 0 && r.header->backlog < waiting[i]),
			"reply %u: %u wait, not %u", i, r.header->backlog, waiting[i]);
	}
}

static void tells_in_heartbeats_how_many_requests_it_has(struct rig *rig)
{
	uint64_t end = clock_now_ns() + PATIENCE;
	struct rig_reply r;
	bool told = false;

	if (!begin(rig, (struct rig_params){.arguments = "max_request=64",
					    .max_batch = 4,
					    .heartbeat_ms = 1,
					    .batch_timeout_us = 100000}))
		return;
	for (uint32_t try = 0; try < TRIES && !told; try++) {
		uint32_t replies = 0;

		rig_hold(rig, 0);
		for (uint32_t i = 0; i < 3; i++)
			ask(rig, 0, i, 10, i, NULL);
		rig_release(rig, 0);
		/* Where this thread was kept from its CPU, a reply comes right behind that
		 * heartbeat. */
		while (rig->link[0].backlog != 3 && replies == 0) {
			REQUIRE(clock_now_ns() < end, "the last said %u", rig->link[0].backlog);
			replies += rig_reply(rig, 0, &r);
		}
		told = rig->link[0].backlog == 3;
		for (; replies < 3; replies++)
			REQUIRE(await(rig, 0, &r), "only %u replies", replies);
	}
	REQUIRE(told, "no heartbeat told of all three");
	end = clock_now_ns() + PATIENCE;
	while (rig->link[0].backlog != 0)
		REQUIRE(!rig_reply(rig, 0, &r) && clock_now_ns() < end, "the last said %u",
			rig->link[0].backlog);
}

static void refuses_payloads_of_other_places(struct rig *rig)
{
	static const uint32_t lengths[] = {100, 20000};
	struct ring_descriptor with = {0};
	struct rig_reply r;

	for (uint32_t large = 0; large < 2; large++) {
		const struct link_memory *m = &rig->link[0].memory;

		if (!begin(rig,
			   (struct rig_params){.arguments = large ? "max_request=20000,kernel=1"
								  : "max_request=100,kernel=1",
					       .slots = 4}))
			return;
		/* of another slot, before the room, behind its end, and the end of all offsets */
		for (uint32_t i = 0; i < 4; i++) {
			uint64_t at[] = {2ull * m->stride, m->room_at - RING_ALIGNMENT,
					 m->room_at + m->room - RING_ALIGNMENT,
					 (uint64_t)UINT32_MAX * RING_ALIGNMENT};

			with.payload = (uint32_t)(at[i] / RING_ALIGNMENT);
			rig_submit(rig, 0, 1, lengths[large], &with);
			REQUIRE(await(rig, 0, &r), "%u bytes, place %u: no reply", lengths[large],
				i);
			REQUIRE(r.status == RING_BAD && r.slot == 1,
				"%u bytes, place %u: status %u of slot %u", lengths[large], i,
				r.status, r.slot);
		}
		REQUIRE(echoes(rig, 0, 2, lengths[large], 1), "%u bytes", lengths[large]);
		if (!large)
			rig_stop(rig);
	}
}

static void moves_large_payloads(struct rig *rig)
{
	static const uint32_t lengths[] = {1u << 20, (1u << 20) - 1, 602112, 262145, 1};

	if (!begin(rig, (struct rig_params){
				.arguments = "max_request=1048576", .max_batch = 2, .slots = 4}))
		return;
	for (uint32_t i = 0; i < 5; i++)
		REQUIRE(echoes(rig, 0, i % 4, lengths[i], i), "%u bytes", lengths[i]);
}

/* True if nothing writes to the first byte of a reply that has just come, also when the loop has
 * launched its graph again. */
static bool is_left_alone(uint8_t *reply)
{
	const uint8_t first = *reply, other = first ^ 0xff;
	bool same;

	*(volatile uint8_t *)reply = other;
	pause_us(20);
	same = *(volatile uint8_t *)reply == other;
	*reply = first;
	return same;
}

/* More of them than a graph has turns, around the bytes that all blocks copy in one step, among
 * small and bad ones. A reply's place belongs to the NIC from its doorbell until the slot's next
 * request: what is written there meanwhile must stay. */
static void answers_large_ones_alone(struct rig *rig)
{
	static const uint32_t lengths[] = {262144, 17921,  262143, 5000,   262145,
					   65536,  300000, 1,      266240, 299999};
	const uint32_t slots = 4, most = 300000;
	uint8_t *place[4] = {NULL};
	uint32_t left[4] = {0};

	if (!begin(rig, (struct rig_params){.arguments = "max_request=300000,kernel=1",
					    .max_batch = 1,
					    .slots = slots}))
		return;
	for (uint32_t i = 0; i < 300; i++) {
		uint32_t length = lengths[i % (sizeof(lengths) / sizeof(lengths[0]))];
		uint32_t slot = i % slots;
		uint8_t *request = rig_slot(rig, 0, slot);
		struct ring_descriptor sum = {.flags = i % 3 == 0 ? RING_HAS_CRC : 0};
		uint8_t status = i % 9 == 0 ? RING_BAD : RING_OK;
		struct rig_reply r;

		fill(request, length, i);
		sum.crc32 = crc32_gzip_refl(0, request, length) ^ (status == RING_BAD);
		rig_submit(rig, 0, slot, length, &sum);
		REQUIRE(await(rig, 0, &r) && r.slot == slot && r.status == status,
			"request %u of %u bytes", i, length);
		REQUIRE(with_rnic() || is_left_alone((uint8_t *)(uintptr_t)r.bytes),
			"request %u of %u bytes: the reply is written again", i, length);
		REQUIRE(status != RING_OK ||
				(r.header->length == length && filled(r.bytes, length, i)),
			"request %u of %u bytes: other bytes", i, length);
		if (with_rnic()) /* the place is elsewhere */
			continue;
		place[slot] = (uint8_t *)(uintptr_t)r.bytes;
		left[slot] = i + 1000;
		fill(place[slot], most, left[slot]);
		for (uint32_t s = 0; s < slots; s++)
			REQUIRE(place[s] == NULL || filled(place[s], most, left[s]),
				"request %u: the reply of slot %u is written again", i, s);
	}
}

/* Requests that come while a batch runs wait for its end, in their slot or beside the model's
 * input. */
static void serves_what_came_while_a_batch_ran(struct rig *rig)
{
	const uint32_t large = 300000, slots = 8; /* a batch is large enough for a stage */
	struct rig_reply r;

	if (!begin(rig,
		   (struct rig_params){.arguments = "max_request=300000,kernel=1,batch_us=2000",
				       .max_batch = 3,
				       .slots = slots}))
		return;
	for (uint32_t round = 0; round < 40; round++) {
		uint32_t seen = 0;

		/* Mostly the first runs alone, and the fourth of the others behind three of them.
		 */
		for (uint32_t i = 0; i < slots; i++)
			fill(rig_slot(rig, 0, i), large - round - i, round + i);
		rig_submit(rig, 0, 0, large - round, NULL);
		pause_us(500);
		rig_cancel(rig, 0, 5, rig->link[0].position + 5);
		for (uint32_t i = 1; i < slots; i++)
			rig_submit(rig, 0, i, large - round - i, NULL);
		for (uint32_t n = 0; n < slots; n++) {
			REQUIRE(await(rig, 0, &r), "round %u: only %u replies", round, n);
			REQUIRE((seen & 1u << r.slot) == 0, "slot %u answers twice", r.slot);
			seen |= 1u << r.slot;
			REQUIRE(r.status == (r.slot == 5 ? RING_CANCELLED : RING_OK),
				"round %u: slot %u has status %u", round, r.slot, r.status);
			REQUIRE(r.status != RING_OK ||
					(r.header->length == large - round - r.slot &&
					 filled(r.bytes, r.header->length, round + r.slot)),
				"round %u: slot %u has other bytes", round, r.slot);
		}
	}
}

/* On a GPU a large request is copied when it is seen, before it is known whether it will run. */
static void drops_large_ones_that_came_first(struct rig *rig)
{
	static const struct {
		uint8_t status;
		uint32_t more; /* bytes more than the model takes */
		struct ring_descriptor with;
	} becomes[] = {
		{RING_OK, 0, {0}},
		{RING_EXPIRED, 0, {.deadline_us = 1000}},
		{RING_CANCELLED, 0, {0}},
		{RING_BAD, 1, {0}},
		{RING_BAD, 0, {.flags = RING_HAS_CRC, .crc32 = 1}},
	};
	const uint32_t large = 60000;
	struct rig_reply r;

	if (!begin(rig, (struct rig_params){.arguments = "max_request=60000,kernel=1",
					    .max_batch = 4,
					    .batch_timeout_us = 5000}))
		return;
	for (uint32_t round = 0; round < 40; round++) {
		uint8_t first = becomes[round % 5].status, n = round / 5 % 2 == 0 ? 3 : 1;

		for (uint32_t i = 0; i < n; i++)
			fill(rig_slot(rig, 0, i), large - 5 * i, round + i);
		if (first == RING_CANCELLED)
			rig_cancel(rig, 0, 0, rig->link[0].position + 1);
		rig_submit(rig, 0, 0, large + becomes[round % 5].more, &becomes[round % 5].with);
		for (uint32_t i = 1; i < n; i++)
			rig_submit(rig, 0, i, large - 5 * i, NULL);
		for (uint32_t i = 0; i < n; i++) {
			REQUIRE(await(rig, 0, &r), "round %u: only %u replies", round, i);
			REQUIRE(r.status == (r.slot == 0 ? first : RING_OK),
				"round %u: slot %u has status %u", round, r.slot, r.status);
			REQUIRE(r.status != RING_OK ||
					(r.header->length == large - 5 * r.slot &&
					 filled(r.bytes, r.header->length, round + r.slot)),
				"round %u: slot %u has other bytes", round, r.slot);
		}
		/* If no request was run, the same turn goes on. */
		REQUIRE(echoes(rig, 0, 3, 100 + round, round), "round %u: a small one", round);
	}
	/* The loop is stopped while it waits for more requests of this batch. */
	rig_submit(rig, 0, 0, large, NULL);
	pause_us(1000);
}

static void refuses_sizes_that_the_model_does_not_take(struct rig *rig)
{
	char arguments[512];
	struct rig_reply r;

	snprintf(arguments, sizeof(arguments), "weights=%s", weights);
	if (!begin(rig, (struct rig_params){.model = "mlp", .arguments = arguments}))
		return;
	ask(rig, 0, 0, 71, 0, NULL);
	REQUIRE(await(rig, 0, &r), "no reply");
	REQUIRE(r.status == RING_BAD, "status %u", r.status);
	ask(rig, 0, 1, 72, 1, NULL);
	REQUIRE(await(rig, 0, &r), "no reply");
	REQUIRE(r.status == RING_OK && r.header->length == 8 + 4 + 40, "status %u length %u",
		r.status, r.header->length);
	REQUIRE(memcmp(r.bytes, rig_slot(rig, 0, 1), 8) == 0, "the id is lost");
}

/* The CPU's answer is the reference. */
static void computes_what_the_model_computes(struct rig *rig)
{
	struct agent_model_item item[SLOTS];
	uint8_t want[SLOTS][64];
	char arguments[512];
	struct rig_reply r;
	float got, expected;

	snprintf(arguments, sizeof(arguments), "weights=%s", weights);
	if (!begin(rig, (struct rig_params){.model = "mlp", .arguments = arguments}))
		return;
	for (uint32_t i = 0; i < SLOTS; i++) {
		fill(rig_slot(rig, 0, i), 72, i);
		for (uint32_t k = 8; k < 72; k++)
			rig_slot(rig, 0, i)[k] %= 17;
		item[i] = (struct agent_model_item){
			.request = rig_slot(rig, 0, i), .request_length = 72, .reply = want[i]};
	}
	rig->model.model->run(rig->model.state, item, SLOTS);
	for (uint32_t i = 0; i < SLOTS; i++)
		rig_submit(rig, 0, i, 72, NULL);
	for (uint32_t i = 0; i < SLOTS; i++) {
		REQUIRE(await(rig, 0, &r), "no reply");
		REQUIRE(r.status == RING_OK && memcmp(r.bytes, want[r.slot], 12) == 0,
			"slot %u: another class", r.slot);
		for (uint32_t k = 0; k < 10; k++) {
			memcpy(&got, r.bytes + 12 + 4 * k, 4);
			memcpy(&expected, want[r.slot] + 12 + 4 * k, 4);
			REQUIRE(got - expected < 1e-3f && expected - got < 1e-3f,
				"slot %u score %u: %f, not %f", r.slot, k, got, expected);
		}
	}
}

/* Returns the number of replies that were posted and not taken. */
static uint32_t replies_of(struct rig *rig)
{
	struct rig_reply r;
	uint32_t n = 0;

	while (rig_reply(rig, 0, &r))
		n++;
	return n;
}

/* The loop neither waits for its next heartbeat nor runs the requests that it has. */
static void stops_at_once(struct rig *rig)
{
	uint64_t start;
	uint32_t before, after;

	for (int busy = 0; busy < 2; busy++) {
		after = UINT32_MAX;
		/* At most the batch that ends before the loop is told, and the one that runs. */
		for (uint32_t try = 0; try < TRIES && after > 4; try++) {
			if (busy + try > 0)
				rig_stop(rig);
			if (!begin(rig,
				   (struct rig_params){.arguments = "max_request=64,delay_us=50000",
						       .max_batch = 2}))
				return;
			for (uint32_t i = 0; busy && i < SLOTS; i++)
				ask(rig, 0, i, 10, i, NULL);
			before = replies_of(rig);
			start = clock_now_ns();
			rig->ops->stop(rig->loop);
			rig->loop = NULL;
			REQUIRE(clock_now_ns() - start < PATIENCE, "took %lu us, busy %d",
				(unsigned long)(clock_now_ns() - start) / 1000, busy);
			after = replies_of(rig);
		}
		REQUIRE(after <= 4, "%u requests after %u were run", after, before);
	}
}

/* A worker registers again while another GPU's loop never ends. */
static void starts_again_beside_another_gpu(struct rig *rig)
{
	static struct rig other;
	char why[256];
	uint64_t start;

	if (gpu < 0 || agent_gpus(why, sizeof(why)) < 2) {
		skipped = "needs two GPUs";
		return;
	}
	if (with_rnic()) {
		skipped = "one rig at a time has the RNIC";
		return;
	}
	gpu = 1;
	if (begin(&other, (struct rig_params){0})) {
		gpu = 0;
		for (uint32_t i = 0; i < 3; i++) {
			start = clock_now_ns();
			if (!begin(rig, (struct rig_params){0}) || !echoes(rig, 0, i, 100, i) ||
			    !echoes(&other, 0, i, 100, i) || clock_now_ns() - start > PATIENCE) {
				printf("    time %u\n", i);
				failures++;
			}
			rig_stop(rig);
		}
	}
	gpu = 0;
	rig_stop(&other);
}

/* --- the list ----------------------------------------------------------------------------------
 */

static const struct loop_test tests[] = {
	LOOP_TEST(answers_every_length_lap_after_lap),
	LOOP_TEST(answers_by_a_kernel),
	LOOP_TEST(answers_large_ones_by_a_kernel),
	LOOP_TEST(answers_where_requests_lie),
	LOOP_TEST(answers_batches_where_requests_lie),
	LOOP_TEST(serves_many_links),
	LOOP_TEST(answers_full_rings_of_all_links),
	LOOP_TEST(takes_uneven_bursts),
	LOOP_TEST(waits_for_a_batch_to_fill),
	LOOP_TEST(takes_a_batch_when_its_turn_comes),
	LOOP_TEST(gives_up_in_time_what_would_be_late),
	LOOP_TEST(counts_deadlines_from_when_requests_came),
	LOOP_TEST(runs_by_deadline),
	LOOP_TEST(beats_when_a_run_begins),
	LOOP_TEST(drops_what_is_too_late),
	LOOP_TEST(drops_what_was_cancelled),
	LOOP_TEST(drops_what_was_cancelled_while_it_waited),
	LOOP_TEST(refuses_bad_descriptors),
	LOOP_TEST(checks_sums),
	LOOP_TEST(posts_heartbeats_when_idle),
	LOOP_TEST(posts_heartbeats_under_load),
	LOOP_TEST(answers_behind_the_heartbeats_of_its_wait),
	LOOP_TEST(goes_on_when_a_link_fails),
	LOOP_TEST(waits_for_a_full_send_queue),
	LOOP_TEST(goes_on_beside_a_full_send_queue),
	LOOP_TEST(serves_8192_slots),
	LOOP_TEST(reports_replies_that_nobody_can_get),
	LOOP_TEST(tells_when_it_saw_ran_and_ended),
	LOOP_TEST(tells_how_many_requests_wait),
	LOOP_TEST(tells_in_heartbeats_how_many_requests_it_has),
	LOOP_TEST(moves_large_payloads),
	LOOP_TEST(answers_large_ones_alone),
	LOOP_TEST(refuses_payloads_of_other_places),
	LOOP_TEST(serves_what_came_while_a_batch_ran),
	LOOP_TEST(drops_large_ones_that_came_first),
	LOOP_TEST(refuses_sizes_that_the_model_does_not_take),
	LOOP_TEST(computes_what_the_model_computes),
	LOOP_TEST(stops_at_once),
	LOOP_TEST(starts_again_beside_another_gpu),
};

int main(int argc, char **argv)
{
	if (argc < 4) {
		fprintf(stderr, "usage: loop_test cpu|cuda[-verbs|-proxy|-memory] MODELS_FOLDER "
				"WEIGHTS [TEST]\n");
		return 2;
	}
	weights = argv[3];
	return loop_tests_run(argv[1], argv[2], argv[4], tests, sizeof(tests) / sizeof(tests[0]));
}
