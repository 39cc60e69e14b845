/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests who sends the reply of a model that works in place: the model itself, if it does so
 * (models/model_post.h) and the request came alone; otherwise the loop. The model's kernel does not
 * end before the test says so (ringing.h), and the loop's next kernel begins behind it.
 *
 *   ringing_test cuda|cuda-verbs|cuda-proxy MODELS_FOLDER [TEST]
 *
 * Exits with 77 where there is no GPU.
 */
#include <isa-l/crc.h>
#include <string.h>

#include "loop_tests.h"
#include "ringing.h"

#define QUIET_MS 200

static bool start(struct rig *rig, const char *arguments, uint32_t max_batch)
{
	return begin(rig, (struct rig_params){.own = &ringing_model,
					      .arguments = arguments,
					      .max_batch = max_batch});
}

static void ask(struct rig *rig, uint32_t slot, uint32_t length, const struct ring_descriptor *with)
{
	memset(rig_slot(rig, 0, slot), (int)(slot + length) | 1, length);
	rig_submit(rig, 0, slot, length, with);
}

static bool answers(const struct rig_reply *r, uint32_t slot, uint32_t length)
{
	if (r->slot != slot || r->status != RING_OK || r->header->length != length)
		return false;
	for (uint32_t i = 0; i < length; i++)
		if (r->bytes[i] != (uint8_t)((slot + length) | 1))
			return false;
	return true;
}

/* Wait until <n> runs have ended. */
static bool ended(uint64_t n)
{
	uint64_t end = clock_now_ns() + PATIENCE;

	while (ringing_ended() < n)
		if (clock_now_ns() > end)
			return false;
	return ringing_ended() == n;
}

/* Replies to requests alone come while the kernel runs, all bytes in them. */
static void sends_while_the_model_runs(struct rig *rig, const char *arguments)
{
	static const uint32_t lengths[] = {1, 16, 1000, 4096, 17408, 17409, 20000};
	struct rig_reply r;

	if (!start(rig, arguments, 1))
		return;
	for (uint32_t i = 0; i < 28; i++) {
		uint32_t length = lengths[i % 7], slot = i * 5 % SLOTS;

		ringing_hold();
		ask(rig, slot, length, NULL);
		REQUIRE(await(rig, 0, &r), "request %u: no reply", i);
		REQUIRE(ringing_ended() == i, "request %u: the loop has sent the reply", i);
		REQUIRE(answers(&r, slot, length), "request %u: wrong reply", i);
		ringing_release();
		REQUIRE(ended(i + 1), "request %u: the model has not ended", i);
	}
	COUNTED(requests, 28);
	REQUIRE(silent(rig, 0, QUIET_MS), "a reply more");
}

static void the_model_sends(struct rig *rig)
{
	sends_while_the_model_runs(rig, "1,1");
}

static void the_last_of_many_blocks_sends(struct rig *rig)
{
	sends_while_the_model_runs(rig, "1,7");
}

/* The loop does not write again, after the model has sent it. */
static void nothing_is_sent_twice(struct rig *rig)
{
	struct ring_reply was;
	struct rig_reply r;

	if (!start(rig, "1,3", 1))
		return;
	ringing_hold();
	ask(rig, 3, 900, NULL);
	REQUIRE(await(rig, 0, &r), "no reply");
	was = *r.header;
	const struct ring_reply *first = r.header;
	ringing_release();
	ask(rig, 4, 800, NULL);
	REQUIRE(await(rig, 0, &r) && answers(&r, 4, 800), "no second reply");
	REQUIRE(with_rnic() || memcmp(&was, first, sizeof(was)) == 0,
		"the loop has written the header again");
	REQUIRE(silent(rig, 0, QUIET_MS), "a reply more");
	COUNTED(requests, 2);
}

/* Nothing comes while the model runs; then the loop sends. */
static void expect_the_loop(struct rig *rig, uint32_t n)
{
	uint64_t runs = ringing_ended();
	struct rig_reply r;

	REQUIRE(silent(rig, 0, QUIET_MS) && ringing_ended() == runs,
		"a reply while the model runs");
	ringing_release();
	for (uint32_t i = 0; i < n; i++)
		REQUIRE(await(rig, 0, &r) && r.status == RING_OK, "reply %u", i);
	REQUIRE(ringing_ended() == runs + 1, "%lu runs", (unsigned long)(ringing_ended() - runs));
}

static void the_loop_sends_for_a_model_that_does_not(struct rig *rig)
{
	if (!start(rig, "0,1", 1))
		return;
	ringing_hold();
	ask(rig, 1, 1000, NULL);
	expect_the_loop(rig, 1);
}

static void the_loop_sends_batches(struct rig *rig)
{
	if (!start(rig, "1,2", 8))
		return;
	for (uint32_t lap = 0; lap < 3 && failures == 0; lap++) {
		ringing_hold();
		rig_hold(rig, 0);
		for (uint32_t i = 0; i < 3; i++)
			ask(rig, lap * 3 + i, 500 + i, NULL);
		rig_release(rig, 0);
		expect_the_loop(rig, 3);
	}
}

/* A request with a checksum is compared first, and so is no request that is quick. */
static void the_loop_sends_what_was_compared(struct rig *rig)
{
	struct ring_descriptor sum = {.flags = RING_HAS_CRC};

	if (!start(rig, "1,1", 1))
		return;
	ringing_hold();
	memset(rig_slot(rig, 0, 2), (2 + 100) | 1, 100);
	sum.crc32 = crc32_gzip_refl(0, rig_slot(rig, 0, 2), 100);
	ask(rig, 2, 100, &sum);
	expect_the_loop(rig, 1);
}

/* The plug-in echo sends behind all of its kernels, of which one takes its time. */
static void echo_sends_at_its_end(struct rig *rig)
{
	struct rig_reply r;
	uint64_t begin_ns;

	if (!begin(rig, (struct rig_params){.arguments = "max_request=4096,kernel=1,in_place=1,"
							 "batch_us=30000",
					    .max_batch = 1}))
		return;
	for (uint32_t i = 0; i < 4; i++) {
		begin_ns = clock_now_ns();
		ask(rig, i, 700, NULL);
		REQUIRE(await(rig, 0, &r) && answers(&r, i, 700), "request %u", i);
		REQUIRE(clock_now_ns() - begin_ns >= 30000000, "request %u: after %lu us", i,
			(unsigned long)(clock_now_ns() - begin_ns) / 1000);
	}
}

int main(int argc, char **argv)
{
	static const struct loop_test tests[] = {
		LOOP_TEST(the_model_sends),
		LOOP_TEST(the_last_of_many_blocks_sends),
		LOOP_TEST(nothing_is_sent_twice),
		LOOP_TEST(the_loop_sends_for_a_model_that_does_not),
		LOOP_TEST(the_loop_sends_batches),
		LOOP_TEST(the_loop_sends_what_was_compared),
		LOOP_TEST(echo_sends_at_its_end),
	};

	if (argc < 3 || strncmp(argv[1], "cuda", 4) != 0) {
		fprintf(stderr, "usage: ringing_test cuda|cuda-verbs|cuda-proxy MODELS_FOLDER "
				"[TEST]\n");
		return 2;
	}
	return loop_tests_run(argv[1], argv[2], argc > 3 ? argv[3] : NULL, tests,
			      sizeof(tests) / sizeof(tests[0]));
}
