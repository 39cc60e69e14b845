/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests that a worker's loop runs the smallest batch of a model's sizes that has room: the same
 * requirements for the C loop and for the CUDA loop, with the plug-in echo.
 *
 *   buckets_test cpu|cuda MODELS_FOLDER [TEST]
 *
 * Exits with 77 where there is no GPU.
 */
#include <stdlib.h>
#include <string.h>

#include "loop_tests.h"

#define BATCH_MAX 33

static uint8_t byte_of(uint32_t seed, uint32_t i)
{
	return (uint8_t)((seed * 2654435761u >> 24) + i * 7 + (i >> 8));
}

static void ask(struct rig *rig, uint32_t slot, uint32_t length, uint32_t seed,
		const struct ring_descriptor *with)
{
	uint8_t *at = rig_slot(rig, 0, slot);

	for (uint32_t i = 0; i < length; i++)
		at[i] = byte_of(seed, i);
	rig_submit(rig, 0, slot, length, with);
}

static bool is_reply(const struct rig_reply *r, uint32_t length, uint32_t seed)
{
	if (r->status != RING_OK || r->header->length != length)
		return false;
	for (uint32_t i = 0; i < length; i++)
		if (r->bytes[i] != byte_of(seed, i))
			return false;
	return true;
}

/* 1, 2, 4 ... and max_batch: what echo offers. */
static uint32_t size_for(uint32_t n, uint32_t max_batch)
{
	uint32_t rows = 1;

	while (rows < n)
		rows *= 2;
	return rows < max_batch ? rows : max_batch;
}

/* The loop's counter for batches of <rows> rows. */
static uint64_t ran(struct rig *rig, uint32_t rows)
{
	const struct agent_buckets *b = &rig->model.buckets;

	for (uint32_t i = 0; i < b->n; i++)
		if (b->rows[i] == rows)
			return stats_of(rig).bucket_batches[i];
	return UINT64_MAX;
}

/* One batch of <n> requests: every row is right, and the size that fits has run. */
static void run_batch_of(struct rig *rig, uint32_t n, uint32_t max_batch)
{
	uint32_t rows = size_for(n, max_batch), seed = n * 1000;
	uint64_t before = ran(rig, rows), end = clock_now_ns() + PATIENCE;
	struct rig_reply r;

	REQUIRE(before != UINT64_MAX, "%u of %u: no batch of %u rows", n, max_batch, rows);
	rig_hold(rig, 0);
	for (uint32_t i = 0; i < n; i++)
		ask(rig, i, 1 + (i * 37 + n) % 300, seed + i, NULL);
	rig_release(rig, 0);
	for (uint32_t i = 0; i < n; i++) {
		REQUIRE(await(rig, 0, &r), "%u of %u: only %u replies", n, max_batch, i);
		REQUIRE(is_reply(&r, 1 + (r.slot * 37 + n) % 300, seed + r.slot),
			"%u of %u: row %u is wrong, status %u", n, max_batch, r.slot, r.status);
	}
	while (ran(rig, rows) == before && clock_now_ns() < end)
		;
	REQUIRE(ran(rig, rows) == before + 1, "%u of %u: batches of %u rows: %lu, not %lu", n,
		max_batch, rows, (unsigned long)ran(rig, rows), (unsigned long)before + 1);
}

/* Every row of every count, and no size but the smallest that fits. */
static void runs_the_smallest_that_fits(struct rig *rig)
{
	static const uint32_t sizes[] = {1, 2, 6, 8, 13, BATCH_MAX};

	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		uint32_t max = sizes[k], before = failures;
		uint64_t all = 0;

		if (!begin(rig, (struct rig_params){.arguments = "max_request=300,kernel=1,"
								 "buckets=1",
						    .max_batch = max,
						    .slots = 64,
						    .heartbeat_ms = 10,
						    .batch_timeout_us = 100000}))
			return;
		for (uint32_t n = 1; n <= max && failures == before; n++)
			run_batch_of(rig, n, max);
		for (uint32_t i = 0; i < AGENT_BUCKETS_MAX; i++)
			all += stats_of(rig).bucket_batches[i];
		REQUIRE(failures != before || all == max, "max %u: %lu batches were counted", max,
			(unsigned long)all);
		rig_stop(rig);
		if (failures != before)
			return;
	}
}

/* How long a batch of <n> requests takes, in ns; 0: it has said what is wrong. */
static uint64_t time_batch(struct rig *rig, uint32_t n)
{
	struct rig_reply r;

	rig_hold(rig, 0);
	for (uint32_t i = 0; i < n; i++)
		ask(rig, i, 100, i, NULL);
	rig_release(rig, 0);
	for (uint32_t i = 0; i < n; i++)
		if (!await(rig, 0, &r)) {
			printf("    %u: no reply\n", n);
			return 0;
		}
	return r.header->done_ns - r.header->start_ns;
}

/* Each row of a batch takes 30 ms here, used or not. */
static void takes_the_time_of_its_size(struct rig *rig)
{
	const uint64_t row_ns = 30000000;

	if (!begin(rig, (struct rig_params){.arguments = "max_request=300,kernel=1,buckets=1,"
							 "delay_us=30000",
					    .batch_timeout_us = 100000}))
		return;
	for (uint32_t n = 1; n <= 8; n++) {
		uint64_t took = UINT64_MAX;

		for (uint32_t i = 0; i < TRIES && (i == 0 || (n <= 4 && took >= 8 * row_ns)); i++) {
			took = time_batch(rig, n);
			REQUIRE(took >= size_for(n, 8) * row_ns, "%u: %lu us", n,
				(unsigned long)took / 1000);
		}
		/* Not as long as the other rows would take. */
		REQUIRE(n > 4 || took < 8 * row_ns, "%u: %lu us", n, (unsigned long)took / 1000);
	}
}

/* Without room for a size, nothing changes: one size of batch. */
static void has_one_size_without_others(struct rig *rig)
{
	if (!begin(rig, (struct rig_params){.arguments = "max_request=300,kernel=1",
					    .heartbeat_ms = 10,
					    .batch_timeout_us = 100000}))
		return;
	REQUIRE(rig->model.buckets.n == 1 && rig->model.buckets.rows[0] == 8, "%u sizes",
		rig->model.buckets.n);
	rig_hold(rig, 0);
	for (uint32_t i = 0; i < 3; i++)
		ask(rig, i, 100, i, NULL);
	rig_release(rig, 0);
	COUNTED(bucket_batches[0], 1);
}

/* The status of a request of the flood. */
static uint8_t fate(uint32_t i)
{
	return i % 11 == 5 ? RING_BAD : i % 13 == 7 ? RING_CANCELLED : RING_OK;
}

/* Batches of all counts, one after the other, with requests among them that get no row; large ones
 * cross the bus while the model runs. */
static void flood(struct rig *rig, const char *arguments, uint32_t large, uint32_t rounds)
{
	static struct {
		uint32_t seed, length;
		bool open;
	} at[64];
	uint32_t sent = 0, open = 0, errors = 0;
	uint64_t batches = 0;
	struct rig_reply r;

	if (!begin(rig, (struct rig_params){.arguments = arguments,
					    .slots = 64,
					    .heartbeat_ms = 10,
					    .max_batch = 8}))
		return;
	memset(at, 0, sizeof(at));
	srand(4711);
	while (sent < rounds || open > 0) {
		/* As many as make all counts likely. */
		for (uint32_t burst = (uint32_t)rand() % 12; burst > 0 && sent < rounds; burst--) {
			uint32_t slot = sent % 64;

			if (at[slot].open)
				break;
			at[slot].seed = sent;
			at[slot].length = 1 + (uint32_t)rand() % large;
			at[slot].open = true;
			if (fate(sent) == RING_CANCELLED)
				rig_cancel(rig, 0, slot, rig->link[0].position + 1);
			ask(rig, slot, at[slot].length, sent,
			    fate(sent) == RING_BAD
				    ? &(struct ring_descriptor){.flags = RING_HAS_CRC, .crc32 = 1}
				    : NULL);
			sent++;
			open++;
		}
		for (uint32_t take = 1 + (uint32_t)rand() % 12; take > 0 && open > 0; take--) {
			uint8_t want;

			REQUIRE(await(rig, 0, &r), "request %u: no reply", sent);
			REQUIRE(at[r.slot].open, "slot %u: a second reply", r.slot);
			want = fate(at[r.slot].seed);
			/* A cancel word is only read of requests that may have waited. */
			REQUIRE(r.status == want || (want == RING_CANCELLED && r.status == RING_OK),
				"request %u: status %u", at[r.slot].seed, r.status);
			REQUIRE(r.status != RING_OK ||
					is_reply(&r, at[r.slot].length, at[r.slot].seed),
				"request %u: wrong bytes", at[r.slot].seed);
			errors += r.status != RING_OK;
			at[r.slot].open = false;
			open--;
		}
	}
	COUNTED(requests, rounds);
	for (uint32_t i = 0; i < rig->model.buckets.n; i++)
		batches += stats_of(rig).bucket_batches[i];
	REQUIRE(batches > 0 && batches <= stats_of(rig).batches, "%lu of %lu batches counted",
		(unsigned long)batches, (unsigned long)stats_of(rig).batches);
	REQUIRE(errors >= rounds / 11, "only %u requests got no row", errors);
}

static void changes_sizes_under_load(struct rig *rig)
{
	flood(rig, "max_request=2000,kernel=1,buckets=1", 2000, 20000);
}

static void changes_sizes_of_large_batches(struct rig *rig)
{
	flood(rig, "max_request=100000,kernel=1,buckets=1,batch_us=20", 100000, 4000);
}

static void changes_sizes_where_requests_lie(struct rig *rig)
{
	flood(rig, "max_request=30000,kernel=1,in_place=1,buckets=1", 30000, 4000);
}

/* The replies of a batch do not wait for requests that may never come, when all of the next batch
 * are too late. */
static void answers_before_a_batch_that_is_too_late(struct rig *rig)
{
	static const char *const arguments[] = {
		"max_request=100000,kernel=1,batch_us=20000",
		"max_request=100000,kernel=1,batch_us=20000,buckets=1",
	};
	const struct ring_descriptor hurry = {.deadline_us = 1000};
	struct rig_reply r;

	for (uint32_t k = 0; k < 2; k++) {
		if (!begin(rig, (struct rig_params){.arguments = arguments[k], .slots = 64}))
			return;
		ask(rig, 0, 60000, 0, NULL);
		pause_us(5000); /* it runs, for 20 ms; then a full batch, and some beside it */
		for (uint32_t i = 1; i <= 12; i++)
			ask(rig, i, 60000, i, i <= 8 ? NULL : &hurry);
		for (uint32_t i = 0; i <= 12; i++) {
			REQUIRE(await(rig, 0, &r), "%s: only %u replies", arguments[k], i);
			REQUIRE(r.slot <= 8 ? is_reply(&r, 60000, r.slot)
					    : r.status == RING_EXPIRED || gpu < 0,
				"slot %u: status %u", r.slot, r.status);
		}
		rig_stop(rig);
	}
}

static void stops_in_any_size(struct rig *rig)
{
	char error[256] = "";

	if (!begin(rig, (struct rig_params){.arguments = "max_request=100000,kernel=1,buckets=1,"
							 "batch_us=300",
					    .slots = 64}))
		return;
	for (uint32_t round = 0; round < 24; round++) {
		for (uint32_t i = 0; i < round; i++)
			ask(rig, i, 60000, i, NULL);
		pause_us(round * 50);
		REQUIRE(rig_restart(rig, error, sizeof(error)) == 0, "round %u: %s", round, error);
	}
	ask(rig, 0, 100, 1, NULL);
	struct rig_reply r;

	REQUIRE(await(rig, 0, &r) && is_reply(&r, 100, 1), "the last loop does not answer");
}

int main(int argc, char **argv)
{
	static const struct loop_test tests[] = {
		LOOP_TEST(runs_the_smallest_that_fits),
		LOOP_TEST(takes_the_time_of_its_size),
		LOOP_TEST(has_one_size_without_others),
		LOOP_TEST(changes_sizes_under_load),
		LOOP_TEST(changes_sizes_of_large_batches),
		LOOP_TEST(changes_sizes_where_requests_lie),
		LOOP_TEST(answers_before_a_batch_that_is_too_late),
		LOOP_TEST(stops_in_any_size),
	};

	if (argc < 3) {
		fprintf(stderr, "usage: buckets_test cpu|cuda MODELS_FOLDER [TEST]\n");
		return 2;
	}
	return loop_tests_run(argv[1], argv[2], argc > 3 ? argv[3] : NULL, tests,
			      sizeof(tests) / sizeof(tests[0]));
}
