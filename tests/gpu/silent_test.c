/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests a worker's loop with several links, one of which holds the others up if it can: its peer
 * acknowledges nothing, or it always has requests. The same requirements for the C loop and for the
 * CUDA loop.
 *
 *   silent_test cpu|cuda MODELS_FOLDER [TEST]
 *
 * Exits with 77 where there is no GPU.
 */
#include <string.h>
#include <unistd.h>

#include "loop_tests.h"

/* How a batch of these goes through the loop on a GPU. */
static const struct way {
	const char *name, *arguments;
	uint32_t max_batch, slots, wqes, length;
} ways[] = {
	{"answered in the poll", "max_request=4096", 8, 8, 16, 1000},
	{"one at a time", "max_request=4096,kernel=1", 1, 8, 16, 1000},
	{"quick", "max_request=4096,kernel=1", 8, 8, 16, 1000},
	{"few WQEs", "max_request=4096,kernel=1", 8, 8, 4, 1000},
	{"in place", "max_request=4096,kernel=1,in_place=1", 8, 8, 16, 1000},
	{"full batches", "max_request=1024,kernel=1", 64, 64, 128, 200},
	{"full batches, nothing to run", "max_request=1024", 64, 64, 128, 200},
	{"helpers", "max_request=65536,kernel=1", 8, 8, 16, 40000},
	{"staged", "max_request=300000,kernel=1", 4, 8, 16, 300000},
	{"sizes of batches", "max_request=4096,buckets=1,delay_us=20", 8, 8, 16, 1000},
};
#define WAYS (sizeof(ways) / sizeof(ways[0]))

static void fill(uint8_t *at, uint32_t n, uint32_t seed)
{
	for (uint32_t i = 0; i < n; i++)
		at[i] = (uint8_t)(seed * 31 + i * 7 + (i >> 8));
}

static bool filled(const uint8_t *at, uint32_t n, uint32_t seed)
{
	for (uint32_t i = 0; i < n; i++)
		if (at[i] != (uint8_t)(seed * 31 + i * 7 + (i >> 8)))
			return false;
	return true;
}

static void ask(struct rig *rig, uint32_t link, uint32_t slot, uint32_t length, uint32_t seed)
{
	fill(rig_slot(rig, link, slot), length, seed);
	rig_submit(rig, link, slot, length, NULL);
}

/* Is this an answer to ask(), whose seed was the slot? */
static bool is_echo(const struct rig_reply *r, uint32_t length)
{
	return r->status == RING_OK && r->header->length == length &&
	       filled(r->bytes, length, r->slot);
}

static bool begin_way(struct rig *rig, const struct way *w, uint32_t links, uint32_t heartbeat_ms)
{
	return begin(rig, (struct rig_params){.arguments = w->arguments,
					      .max_batch = w->max_batch,
					      .slots = w->slots,
					      .wqes = w->wqes,
					      .links = links,
					      .heartbeat_ms = heartbeat_ms});
}

/* All slots of the link, and their replies. */
static bool serves_all(struct rig *rig, const struct way *w, uint32_t link)
{
	struct rig_reply r;

	for (uint32_t i = 0; i < w->slots; i++)
		ask(rig, link, i, w->length, i);
	for (uint32_t i = 0; i < w->slots; i++)
		if (!await(rig, link, &r) || !is_echo(&r, w->length))
			return false;
	return true;
}

/* --- a peer that acknowledges nothing ----------------------------------------------------------
 */

/* Link <mute> completes nothing, and its queue fills with replies to as many requests as it may
 * have: it is their load balancer's business to ask for more than that. Returns how many came. */
static uint32_t fill_queue(struct rig *rig, const struct way *w, uint32_t mute)
{
	uint64_t beats = rig->link[mute].heartbeats, begin = clock_now_ns();
	uint32_t replies = 0;
	struct rig_reply r;

	rig_mute(rig, mute, true);
	for (uint32_t lap = 0; lap * w->slots <= w->wqes; lap++) {
		uint64_t end = clock_now_ns() + 20000000;
		uint32_t n = 0;

		for (uint32_t i = 0; i < w->slots; i++)
			ask(rig, mute, i, w->length, i);
		/* Half of the queue was free, so as many come, however busy the machine is. */
		while (n < w->slots &&
		       (clock_now_ns() < end ||
			(replies + n + rig->link[mute].heartbeats - beats < w->wqes / 2 &&
			 clock_now_ns() < begin + PATIENCE)))
			n += rig_reply(rig, mute, &r);
		replies += n;
		if (n < w->slots) /* they lie in the ring, which is full */
			break;
	}
	return replies;
}

/* The other links are served meanwhile, and have their heartbeats; then the mute one is, too. */
static void goes_on_beside_a_silent_peer(struct rig *rig)
{
	for (size_t k = 0; k < 3 * WAYS; k++) {
		const struct way *w = &ways[k % WAYS];
		uint32_t mute = (uint32_t)(k / WAYS), replies, asked;
		uint64_t beats, end;
		struct rig_reply r;

		if (!begin_way(rig, w, 3, 5))
			return;
		for (uint32_t l = 0; l < 3; l++)
			REQUIRE(serves_all(rig, w, l), "%s: link %u does not begin", w->name, l);
		replies = fill_queue(rig, w, mute);
		REQUIRE(replies <= w->wqes, "%s: more is posted than the queue holds", w->name);
		asked = (uint32_t)(rig->link[mute].position - w->slots);
		beats = rig->link[(mute + 1) % 3].heartbeats;
		end = clock_now_ns() + PATIENCE;
		for (uint32_t lap = 0;
		     lap < 20 || rig->link[(mute + 1) % 3].heartbeats < beats + 10; lap++) {
			for (uint32_t l = 1; l < 3; l++)
				REQUIRE(serves_all(rig, w, (mute + l) % 3),
					"%s: link %u waits for link %u, lap %u", w->name,
					(mute + l) % 3, mute, lap);
			REQUIRE(clock_now_ns() < end, "%s: no heartbeats", w->name);
		}
		for (; rig_reply(rig, mute, &r); replies++)
			REQUIRE(is_echo(&r, w->length), "%s: other bytes", w->name);
		REQUIRE(replies <= w->wqes && replies < asked,
			"%s: %u replies to %u requests; %u WQEs", w->name, replies, asked, w->wqes);
		rig_mute(rig, mute, false);
		for (; replies < asked; replies++)
			REQUIRE(await(rig, mute, &r) && is_echo(&r, w->length),
				"%s: %u of %u replies after the silence", w->name, replies, asked);
		for (uint32_t l = 0; l < 3; l++)
			REQUIRE(serves_all(rig, w, l), "%s: link %u does not go on", w->name, l);
		rig_stop(rig);
	}
}

/* Links 1 and 2 ask again for what they were answered. Returns how many replies came; UINT32_MAX:
 * one with other bytes. */
static uint32_t keep_busy(struct rig *rig, const struct way *w)
{
	struct rig_reply r;
	uint32_t n = 0;

	for (uint32_t l = 1; l < 3; l++)
		for (uint32_t i = 0; i < w->slots && rig_reply(rig, l, &r); i++, n++) {
			if (!is_echo(&r, w->length))
				return UINT32_MAX;
			ask(rig, l, r.slot, w->length, r.slot);
		}
	return n;
}

/* Two links always have requests, so that no look finds all rings empty, and there are no
 * heartbeats. They share batches, and go on beside the silence, and its end is noticed all the
 * same. */
static void notices_the_end_of_a_silence(struct rig *rig)
{
	for (size_t k = 0; k < WAYS; k++) {
		const struct way *w = &ways[k];
		uint32_t replies, asked, served = 0, n;
		struct rig_reply r;
		uint64_t end;

		if (!begin_way(rig, w, 3, 0))
			return;
		REQUIRE(serves_all(rig, w, 0), "%s: does not begin", w->name);
		replies = fill_queue(rig, w, 0);
		asked = (uint32_t)(rig->link[0].position - w->slots);
		for (uint32_t i = 0; i < 2 * w->slots; i++)
			ask(rig, 1 + i % 2, i / 2, w->length, i / 2);
		end = clock_now_ns() + PATIENCE;
		for (; served < 20 * w->slots; served += n) {
			n = keep_busy(rig, w);
			REQUIRE(n != UINT32_MAX, "%s: other bytes", w->name);
			REQUIRE(clock_now_ns() < end, "%s: the others wait", w->name);
		}
		for (; rig_reply(rig, 0, &r); replies++)
			;
		REQUIRE(replies < asked, "%s: it was not silent", w->name);
		rig_mute(rig, 0, false);
		for (served = 0; !rig_reply(rig, 0, &r); served += n) {
			n = keep_busy(rig, w);
			REQUIRE(n != UINT32_MAX, "%s: other bytes", w->name);
			REQUIRE(clock_now_ns() < end && served < 50 * w->slots,
				"%s: %u replies of others since the silence", w->name, served);
		}
		for (replies++; replies < asked; replies += rig_reply(rig, 0, &r)) {
			REQUIRE(keep_busy(rig, w) != UINT32_MAX, "%s: other bytes", w->name);
			REQUIRE(clock_now_ns() < end, "%s: %u of %u replies", w->name, replies,
				asked);
		}
		rig_stop(rig);
	}
}

/* The silence ends with the queue pair: what lies in its ring is dropped, the others do not notice.
 */
static void gives_up_a_silent_peer_with_its_queue_pair(struct rig *rig)
{
	for (size_t k = 0; k < WAYS; k++) {
		const struct way *w = &ways[k];
		struct rig_reply r;

		if (!begin_way(rig, w, 2, 5))
			return;
		REQUIRE(serves_all(rig, w, 0) && serves_all(rig, w, 1), "%s: no begin", w->name);
		fill_queue(rig, w, 0);
		REQUIRE(serves_all(rig, w, 1), "%s: the other link waits", w->name);
		rig_break(rig, 0, MLX5_SYNDROME_RETRY_EXCEEDED);
		COUNTED(dead_links, 1);
		for (uint32_t lap = 0; lap < 20; lap++)
			REQUIRE(serves_all(rig, w, 1), "%s: the other link, lap %u", w->name, lap);
		while (rig_reply(rig, 0, &r)) /* posted before the loop saw the error */
			;
		REQUIRE(silent(rig, 0, 20), "%s: a dead link is posted to", w->name);
		rig_stop(rig);
	}
}

/* Acknowledgements that come late, but do come, cost no reply, and no reply's place. */
static void serves_a_slow_peer(struct rig *rig)
{
	for (size_t k = 0; k < WAYS; k++) {
		const struct way *w = &ways[k];
		uint32_t replies = 0;
		struct rig_reply r;

		if (!begin_way(rig, w, 2, 0))
			return;
		REQUIRE(serves_all(rig, w, 0), "%s: does not begin", w->name);
		rig_mute(rig, 0, true);
		for (uint32_t i = 0; i < w->slots; i++)
			ask(rig, 0, i, w->length, i);
		for (uint32_t lap = 0; replies < 20 * w->slots; lap++) {
			uint64_t end = clock_now_ns() + 1000000;

			while (clock_now_ns() < end)
				if (rig_reply(rig, 0, &r)) {
					REQUIRE(is_echo(&r, w->length), "%s: other bytes", w->name);
					replies++;
					ask(rig, 0, r.slot, w->length, r.slot);
				}
			REQUIRE(lap < 100000, "%s: it stands still", w->name);
			REQUIRE(serves_all(rig, w, 1), "%s: the other link waits", w->name);
			rig_mute(rig, 0, false);
			rig_mute(rig, 0, true);
		}
		rig_stop(rig);
	}
}

/* --- a link that always has requests -----------------------------------------------------------
 */

#define FLOOD_LINKS 8
/* Time for this thread to submit what is to be taken behind a running batch. */
#define BLOCK_US 3000

/* Both models take this format: a length, and so many bytes of text. Two words of the model `words`
 * take a row for BLOCK_US, one word none of it; `echo` takes as long for each. */
static void say(struct rig *rig, uint32_t link, uint32_t slot, const char *text)
{
	uint32_t length = (uint32_t)strlen(text);
	uint8_t *to = rig_slot(rig, link, slot);

	memcpy(to, &length, sizeof(length));
	memcpy(to + sizeof(length), text, length);
	rig_submit(rig, link, slot, sizeof(length) + length, NULL);
}

/* How many replies of the link with a full ring were made before the lone one of the link behind
 * it? UINT32_MAX: some reply is missing, of these or the <other>. Pieces are acknowledged as they
 * come. */
static uint32_t made_before(struct rig *rig, uint32_t flood, uint32_t lone, uint32_t other)
{
	uint64_t end = clock_now_ns() + PATIENCE, done = 0, made[SLOTS];
	uint32_t replies = 0, n = 0;
	bool others = false;
	struct rig_reply r;

	while (done == 0 || replies < SLOTS || !others) {
		if (rig_reply(rig, other, &r) && !r.more)
			others = true;
		if (rig_reply(rig, lone, &r) && !r.more)
			done = r.header->done_ns;
		if (rig_reply(rig, flood, &r) && !r.more)
			made[replies++] = r.header->done_ns;
		if (clock_now_ns() > end)
			return UINT32_MAX;
	}
	for (uint32_t i = 0; i < SLOTS; i++)
		n += made[i] < done;
	return n;
}

/* A batch runs meanwhile, so that both rings are full when the loop looks again. False: this thread
 * was halted for longer. */
static bool ask_behind_a_batch(struct rig *rig, uint32_t flood, uint32_t lone, uint32_t other,
			       const char *text)
{
	uint64_t begin = clock_now_ns();

	say(rig, other, 0, "two words");
	pause_us(100); /* it is taken */
	for (uint32_t i = 0; i < SLOTS; i++)
		say(rig, flood, i, text);
	say(rig, lone, 0, "lone");
	return clock_now_ns() - begin < BLOCK_US * 1000ull;
}

/* With batches of one a lone request waits for one of the flood's, whichever link is looked at
 * first, however many there are, and however often the loop looks while it has no room. */
static void a_flood_waits_its_turn(struct rig *rig)
{
	static const struct {
		const char *model, *arguments, *flood;
	} models[] = {{"echo", "max_request=64,batch_us=3000", "flood"},
		      {"words", "max_request=64,delay_us=3000", "flood"},
		      {"words", "max_request=64,delay_us=3000", "a flood"}};

	for (size_t k = 0; k < sizeof(models) / sizeof(models[0]); k++) {
		uint32_t good = 0, worst = 0;

		if (!begin(rig, (struct rig_params){.model = models[k].model,
						    .arguments = models[k].arguments,
						    .max_batch = 1,
						    .links = FLOOD_LINKS}))
			return;
		for (uint32_t i = 0; i < 10 * FLOOD_LINKS && good < 3 * FLOOD_LINKS; i++) {
			uint32_t flood = i % FLOOD_LINKS, lone = (flood + 1) % FLOOD_LINKS, n;
			/* Looks begin behind the last link that was served. */
			uint32_t other = (flood + 2 + i / FLOOD_LINKS) % FLOOD_LINKS;
			bool in_time;

			other = other == lone || other == flood ? (lone + 1) % FLOOD_LINKS : other;
			in_time = ask_behind_a_batch(rig, flood, lone, other, models[k].flood);
			n = made_before(rig, flood, lone, other);
			REQUIRE(n != UINT32_MAX, "no reply");
			if (!in_time)
				continue;
			good++;
			worst = n > worst ? n : worst;
		}
		REQUIRE(good > 0, "this thread was halted each time");
		/* One that was chosen before it came, and one whose turn it was. */
		REQUIRE(worst <= 2, "%s: a lone request waited for %u of another link's",
			models[k].model, worst);
		rig_stop(rig);
	}
}

static const struct loop_test tests[] = {
	LOOP_TEST(goes_on_beside_a_silent_peer),
	LOOP_TEST(notices_the_end_of_a_silence),
	LOOP_TEST(gives_up_a_silent_peer_with_its_queue_pair),
	LOOP_TEST(serves_a_slow_peer),
	LOOP_TEST(a_flood_waits_its_turn),
};

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: silent_test cpu|cuda MODELS_FOLDER [TEST]\n");
		return 2;
	}
	return loop_tests_run(argv[1], argv[2], argv[3], tests, sizeof(tests) / sizeof(tests[0]));
}
