/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests a worker's loop with a model whose replies come in pieces: the same requirements for the C
 * loop and for the CUDA loop. Every piece must be, byte for byte, what the model's step() makes on
 * the CPU. The model `words` fails a row that it was not told of rightly.
 *
 *   steps_test cpu|cuda MODELS_FOLDER [TEST]
 *
 * Exits with 77 where there is no GPU.
 */
#include <isa-l/crc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loop_tests.h"
#include "turns/turns.h"

#define LINKS      2
#define TALKS_MAX  128
#define REPLY_MAX  16384
#define TEXT_MAX   4096
#define WORDS_MAX  300
#define ALL_PIECES UINT32_MAX

/* A request of text, and what has come of its reply. */
struct talk {
	bool open;
	uint32_t link, slot, chunks;
	uint64_t sequence;
	uint8_t status;               /* of the last piece */
	struct agent_model_turn turn; /* the CPU's answer */
	_Alignas(64) uint8_t request[TEXT_MAX], reply[REPLY_MAX];
};

static struct talk talks[LINKS][TALKS_MAX];

/* --- helpers -----------------------------------------------------------------------------------
 */

static bool begin_words(struct rig *rig, struct rig_params p)
{
	memset(talks, 0, sizeof(talks));
	p.model = "words";
	p.arguments = p.arguments == NULL ? "max_request=4096" : p.arguments;
	return begin(rig, p);
}

/* A text of <words> words of 1 to 9 letters, with 1 to 3 spaces between them. */
static uint32_t make_text(uint8_t *at, uint32_t words, uint32_t seed)
{
	uint32_t length = 0, n;

	for (uint32_t w = 0; w < words; w++) {
		n = w == 0 ? 0 : 1 + (seed + w) % 3;
		for (; n > 0; n--)
			at[length++] = ' ';
		n = 1 + (seed * 7 + w * 5) % 9;
		for (; n > 0; n--)
			at[length++] = (uint8_t)('a' + (seed + w + n) % 26);
	}
	return length;
}

static struct talk *ask_with(struct rig *rig, uint32_t link, uint32_t slot, uint32_t words,
			     const struct ring_descriptor *with)
{
	struct talk *t = &talks[link][slot];
	uint32_t length;

	*t = (struct talk){.open = true, .link = link, .slot = slot};
	length = make_text(t->request + 4, words, link * 1000 + slot + words);
	memcpy(t->request, &length, 4);
	t->turn = (struct agent_model_turn){
		.request = t->request, .request_length = length + 4, .reply = t->reply};
	memcpy(rig_slot(rig, link, slot), t->request, length + 4);
	rig_submit(rig, link, slot, length + 4, with);
	t->sequence = rig->link[link].position;
	return t;
}

static struct talk *ask(struct rig *rig, uint32_t link, uint32_t slot, uint32_t words)
{
	return ask_with(rig, link, slot, words, NULL);
}

/* The CPU's next piece of the reply. */
static void step(struct rig *rig, struct talk *t, bool gone)
{
	t->turn.gone = gone;
	t->turn.reply_length = 0;
	t->turn.status = 0;
	t->turn.more = 0;
	rig->model.model->step(rig->model.state, &t->turn, 1);
}

/* The last piece of a reply that ends early. */
static bool ends_early(struct rig *rig, struct talk *t, const struct rig_reply *r)
{
	if (t->turn.own != NULL)
		step(rig, t, true);
	t->open = false;
	t->status = r->status;
	return !r->more && r->header->length == 0;
}

static bool is_piece(struct rig *rig, struct talk *t, const struct rig_reply *r)
{
	step(rig, t, false);
	t->open = r->more;
	return t->turn.status == 0 && t->turn.reply_length == r->header->length &&
	       memcmp(t->reply, r->bytes, r->header->length) == 0 && t->turn.more == r->more;
}

/* Checks the piece against the CPU's. NULL: it is another one, or belongs to nothing. */
static struct talk *hear(struct rig *rig, uint32_t link, const struct rig_reply *r)
{
	struct talk *t = &talks[link][r->slot];
	const struct ring_reply *h = r->header;
	bool good = t->open && h->chunk == t->chunks && h->sequence == t->sequence &&
		    h->seen_ns <= h->start_ns && h->start_ns <= h->done_ns &&
		    (r->status == RING_OK ? is_piece(rig, t, r) : ends_early(rig, t, r));

	if (good) {
		t->chunks++;
		return t;
	}
	printf("    link %u slot %u: chunk %u of %u bytes, status %u, more %d; %u were heard, "
	       "open %d; the CPU says %u bytes, status %d, more %d\n",
	       link, r->slot, h->chunk, h->length, r->status, r->more, t->chunks, t->open,
	       t->turn.reply_length, t->turn.status, t->turn.more);
	return NULL;
}

static uint32_t open_talks(void)
{
	uint32_t n = 0;

	for (uint32_t l = 0; l < LINKS; l++)
		for (uint32_t i = 0; i < TALKS_MAX; i++)
			n += talks[l][i].open;
	return n;
}

/* Hears all links until <t> has <chunks> pieces or ends; NULL: until nothing is open. */
static bool hear_until(struct rig *rig, const struct talk *t, uint32_t chunks)
{
	uint64_t end = clock_now_ns() + PATIENCE;
	struct rig_reply r;

	while (t == NULL ? open_talks() > 0 : t->open && t->chunks < chunks) {
		for (uint32_t l = 0; l < rig->n_links; l++) {
			if (!rig_reply(rig, l, &r))
				continue;
			if (hear(rig, l, &r) == NULL)
				return false;
			break; /* look whether that was all */
		}
		if (clock_now_ns() > end) {
			printf("    %u replies are not complete\n", open_talks());
			return false;
		}
	}
	return true;
}

static bool hear_all(struct rig *rig)
{
	return hear_until(rig, NULL, 0);
}

/* Fills all rows at once, and hears them: none is lost or held by what was before. */
static bool rows_are_free(struct rig *rig, uint32_t link, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		ask(rig, link, i, 1 + i % 4);
	if (!hear_all(rig))
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (talks[link][i].status != RING_OK)
			return false;
	return true;
}

/* --- tests -------------------------------------------------------------------------------------
 */

static void says_pieces_in_order(struct rig *rig)
{
	static const uint32_t together[] = {1, 7, 128};

	if (!begin_words(rig, (struct rig_params){.slots = 128, .max_batch = 128}))
		return;
	for (uint32_t lap = 0; lap < 3; lap++)
		for (uint32_t k = 0; k < 3; k++) {
			for (uint32_t i = 0; i < together[k]; i++)
				ask(rig, 0, i, (lap * 31 + i * 3) % 40);
			REQUIRE(hear_all(rig), "%u at once, lap %u", together[k], lap);
			for (uint32_t i = 0; i < together[k]; i++)
				REQUIRE(talks[0][i].status == RING_OK, "slot %u: status %u", i,
					talks[0][i].status);
		}
	COUNTED(requests, 3 * (1 + 7 + 128));
}

static void lets_requests_join_and_leave(struct rig *rig)
{
	struct talk *first, *late;

	if (!begin_words(rig, (struct rig_params){.arguments = "max_request=4096,delay_us=1000",
						  .links = 2,
						  .max_batch = 4}))
		return;
	first = ask(rig, 0, 0, WORDS_MAX);
	REQUIRE(hear_until(rig, first, 3), "it does not begin");
	/* Rows are left and taken again and again beside the one that goes on. */
	for (uint32_t i = 0; i < 40; i++) {
		late = ask(rig, i % 2, 1 + i % 15, 1 + i % 3);
		REQUIRE(hear_until(rig, late, ALL_PIECES), "request %u", i);
		REQUIRE(first->open, "request %u waited for the end of another one", i);
	}
	REQUIRE(hear_all(rig), "the first one");
}

/* More requests than rows: the others wait in the rings. */
static void serves_more_requests_than_rows(struct rig *rig)
{
	if (!begin_words(rig, (struct rig_params){.links = 2, .max_batch = 3}))
		return;
	for (uint32_t lap = 0; lap < 20; lap++) {
		for (uint32_t i = 0; i < SLOTS; i++) {
			ask(rig, 0, i, 1 + (lap + i) % 9);
			ask(rig, 1, i, 1 + (lap + i) % 5);
		}
		REQUIRE(hear_all(rig), "lap %u", lap);
	}
}

static void ends_what_is_cancelled(struct rig *rig)
{
	struct talk *a, *b;

	if (!begin_words(rig, (struct rig_params){.arguments = "max_request=4096,delay_us=2000",
						  .max_batch = 2}))
		return;
	for (uint32_t lap = 0; lap < 5; lap++) {
		a = ask(rig, 0, 1, WORDS_MAX);
		b = ask(rig, 0, 2, 20);
		REQUIRE(hear_until(rig, a, 3), "it does not begin");
		rig_cancel(rig, 0, 1, a->sequence);
		REQUIRE(hear_all(rig), "lap %u", lap);
		REQUIRE(a->status == RING_CANCELLED && a->chunks < 100, "status %u, %u pieces",
			a->status, a->chunks);
		REQUIRE(b->status == RING_OK, "another one has status %u", b->status);
	}
	COUNTED(cancelled, 5);
	REQUIRE(rows_are_free(rig, 0, 2), "a row is held");
}

/* A deadline is for the first piece. */
static void drops_what_is_late_at_first(struct rig *rig)
{
	struct ring_descriptor at_once = {.deadline_us = 1, .flags = RING_HAS_CRC},
			       soon = {.deadline_us = 100000};
	const uint32_t large = 200000;
	struct talk *t;
	uint32_t tries;

	if (!begin_words(rig, (struct rig_params){.arguments = "max_request=200000,delay_us=4000",
						  .max_batch = 2,
						  .slots = 4}))
		return;
	/* Its checksum takes longer than a microsecond. */
	t = ask(rig, 0, 0, 1);
	REQUIRE(hear_all(rig), "does not begin");
	memset(rig_slot(rig, 0, 0), ' ', large);
	at_once.crc32 = crc32_gzip_refl(0, rig_slot(rig, 0, 0), large);
	t->open = true;
	t->chunks = 0;
	rig_submit(rig, 0, 0, large, &at_once);
	t->sequence = rig->link[0].position;
	REQUIRE(hear_all(rig), "no reply");
	REQUIRE(t->status == RING_EXPIRED && t->chunks == 1, "status %u, %u pieces", t->status,
		t->chunks);
	/* A busy machine may halt the loop for so long. */
	for (tries = 1; tries < 20; tries++) {
		t = ask_with(rig, 0, 1, 40, &soon);
		REQUIRE(hear_all(rig), "no reply");
		if (t->status != RING_EXPIRED || t->chunks != 1)
			break;
	}
	REQUIRE(t->status == RING_OK && t->chunks == 40, "status %u, %u pieces", t->status,
		t->chunks);
	COUNTED(expired, tries);
}

static void goes_on_when_a_load_balancer_is_killed(struct rig *rig)
{
	struct talk *other;
	struct rig_reply r;
	uint32_t before = 0;

	if (!begin_words(rig, (struct rig_params){.arguments = "max_request=4096,delay_us=500",
						  .links = 2,
						  .max_batch = 8}))
		return;
	for (uint32_t i = 0; i < 4; i++)
		ask(rig, 0, i, WORDS_MAX);
	other = ask(rig, 1, 0, 250);
	REQUIRE(hear_until(rig, &talks[0][3], 5), "it does not begin");
	/* Nothing is acknowledged any more: each row sends the piece that it has, and waits. The
	 * rows of the other load balancer do not wait for them. */
	rig_mute(rig, 0, true);
	for (uint32_t i = 0; i < 4; i++)
		before += talks[0][i].chunks;
	REQUIRE(hear_until(rig, other, other->chunks + 50), "the other one waits");
	for (uint32_t i = 0; i < 4; i++)
		before -= talks[0][i].chunks;
	REQUIRE(-before <= 8, "%u pieces without an acknowledgement", -before);
	rig_break(rig, 0, MLX5_SYNDROME_RETRY_EXCEEDED);
	for (uint32_t i = 0; i < 4; i++) {
		step(rig, &talks[0][i], true);
		talks[0][i].open = false;
	}
	COUNTED(dead_links, 1);
	COUNTED(cancelled, 4);
	while (rig_reply(rig, 0, &r))
		;
	REQUIRE(hear_all(rig), "the other one ends");
	REQUIRE(other->status == RING_OK, "status %u", other->status);
	REQUIRE(rows_are_free(rig, 1, 8), "a row is held");
	REQUIRE(silent(rig, 0, 20), "a dead link is posted to");
}

static void waits_for_an_acknowledgement(struct rig *rig)
{
	struct rig_reply r;

	if (!begin_words(rig, (struct rig_params){.links = 2}))
		return;
	rig_mute(rig, 0, true);
	ask(rig, 0, 0, 5);
	for (uint32_t i = 0; i < 5; i++) {
		REQUIRE(await(rig, 0, &r), "piece %u", i);
		REQUIRE(hear(rig, 0, &r) != NULL, "piece %u", i);
		REQUIRE(silent(rig, 0, 20), "piece %u was not acknowledged", i);
		REQUIRE(hear_until(rig, ask(rig, 1, 0, 3), ALL_PIECES), "another row waits");
		rig_mute(rig, 0, false);
		rig_mute(rig, 0, true);
	}
	REQUIRE(!talks[0][0].open, "the reply does not end");
}

static void waits_for_room_in_the_send_queue(struct rig *rig)
{
	if (!begin_words(rig, (struct rig_params){.wqes = 4, .max_batch = SLOTS}))
		return;
	for (uint32_t lap = 0; lap < 10; lap++)
		REQUIRE(rows_are_free(rig, 0, SLOTS), "lap %u", lap);
}

static void ends_replies_of_a_model_that_fails(struct rig *rig)
{
	static const struct {
		const char *arguments;
		uint32_t max_reply, chunks;
	} rows[] = {
		{"max_request=4096,fail_after=2", 0, 3},
		{"max_request=4096,fail_after=0", 0, 1},
		{"max_request=4096,max_pieces=3", 0, 3},
		{"max_request=4096,max_pieces=1", 0, 1},
		{"max_request=4096", 7, 0}, /* longer pieces than a client could get */
	};

	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		if (!begin_words(rig, (struct rig_params){.arguments = rows[k].arguments,
							  .max_reply = rows[k].max_reply,
							  .max_batch = 3}))
			return;
		for (uint32_t i = 0; i < 9; i++) {
			struct talk *t = ask(rig, 0, i, 10);

			REQUIRE(hear_all(rig), "row %zu", k);
			REQUIRE(t->status == RING_ERROR, "row %zu: status %u", k, t->status);
			REQUIRE(rows[k].chunks == 0 || t->chunks == rows[k].chunks,
				"row %zu: %u pieces", k, t->chunks);
		}
		COUNTED(errors, 9);
		rig_stop(rig);
	}
}

static void refuses_bad_requests(struct rig *rig)
{
	const struct ring_descriptor checked = {.flags = RING_HAS_CRC, .crc32 = 1};
	struct talk *t;

	if (!begin_words(rig, (struct rig_params){.max_batch = 3}))
		return;
	t = ask(rig, 0, 0, 20);
	REQUIRE(hear_all(rig), "does not begin");
	/* Longer and shorter than the model takes, and a text of another length than it says. */
	for (uint32_t k = 0; k < 3; k++) {
		static const uint32_t lengths[] = {4097, 3, 4096};

		t->open = true;
		t->chunks = 0;
		rig_submit(rig, 0, 0, lengths[k], NULL);
		t->sequence = rig->link[0].position;
		REQUIRE(hear_all(rig), "%u bytes", lengths[k]);
		REQUIRE(t->status == (k < 2 ? RING_BAD : RING_ERROR) && t->chunks == 1,
			"%u bytes: status %u", lengths[k], t->status);
	}
	t = ask_with(rig, 0, 1, 5, &checked);
	REQUIRE(hear_all(rig), "a wrong sum");
	REQUIRE(t->status == RING_BAD, "a wrong sum: status %u", t->status);
	rig_submit(rig, 0, SLOTS, 10, NULL);
	rig_submit(rig, 0, UINT32_MAX, 10, NULL);
	REQUIRE(rows_are_free(rig, 0, 3), "the loop stops at a slot that is none");
	COUNTED(bad, 5);
}

static void posts_heartbeats_beside_pieces(struct rig *rig)
{
	uint64_t beats;

	if (!begin_words(rig, (struct rig_params){.arguments = "max_request=4096,delay_us=1000",
						  .max_batch = 4,
						  .heartbeat_ms = 2}))
		return;
	for (uint32_t i = 0; i < 6; i++)
		ask(rig, 0, i, 100);
	REQUIRE(hear_until(rig, &talks[0][0], 10), "it does not begin");
	beats = rig->link[0].heartbeats;
	REQUIRE(hear_until(rig, &talks[0][0], 60), "it does not go on");
	REQUIRE(rig->link[0].heartbeats - beats >= 10, "%lu heartbeats in 50 ms",
		(unsigned long)(rig->link[0].heartbeats - beats));
	REQUIRE(rig->link[0].backlog == 6, "%u requests are open or wait", rig->link[0].backlog);
	REQUIRE(hear_all(rig), "it does not end");
}

/* A loop that stops tells its model of all that is open: another one begins with free rows. */
static void stops_and_starts_again_in_the_middle(struct rig *rig)
{
	char error[512] = "";

	if (!begin_words(rig, (struct rig_params){.arguments = "max_request=4096,delay_us=300",
						  .links = 2,
						  .max_batch = 6}))
		return;
	for (uint32_t lap = 0; lap < 5; lap++) {
		for (uint32_t i = 0; i < 8; i++)
			ask(rig, i % 2, i, WORDS_MAX);
		REQUIRE(hear_until(rig, &talks[0][0], 4 + lap), "lap %u: it does not begin", lap);
		REQUIRE(rig_restart(rig, error, sizeof(error)) == 0, "lap %u: %s", lap, error);
		for (uint32_t i = 0; i < 8; i++) {
			if (talks[i % 2][i].turn.own != NULL)
				step(rig, &talks[i % 2][i], true);
			talks[i % 2][i].open = false;
		}
		REQUIRE(rows_are_free(rig, lap % 2, 6), "lap %u: a row is held", lap);
	}
}

/* --- the list ----------------------------------------------------------------------------------
 */

/* Another one may have the device for longer than a load balancer waits for heartbeats. */
static void posts_heartbeats_while_it_waits_for_its_turn(struct rig *rig)
{
	struct turns other;
	struct talk *t;
	char path[64], error[256];
	uint64_t end, beats;

	if (gpu >= 0) {
		skipped = "turns are for CPUs";
		return;
	}
	snprintf(path, sizeof(path), "/tmp/steps-turns-%d", getpid());
	REQUIRE(turns_open(&other, path, error, sizeof(error)) == 0, "%s", error);
	REQUIRE(turns_take(&other, 0) == 0, "no turn");
	if (!begin_words(rig, (struct rig_params){.heartbeat_ms = 10, .turns = path}))
		return;
	t = ask(rig, 0, 0, 3);
	while (!turns_are_wanted(&other))
		;
	beats = stats_of(rig).heartbeats;
	end = clock_now_ns() + 5000000000ull;
	while (stats_of(rig).heartbeats < beats + 3 && clock_now_ns() < end)
		pause_us(1000);
	REQUIRE(stats_of(rig).heartbeats >= beats + 3, "it is silent while it waits");
	REQUIRE(t->chunks == 0, "it runs");
	turns_give(&other);
	REQUIRE(hear_all(rig), "no reply");
	turns_close(&other);
	unlink(path);
}

static const struct loop_test tests[] = {
	LOOP_TEST(says_pieces_in_order),
	LOOP_TEST(lets_requests_join_and_leave),
	LOOP_TEST(serves_more_requests_than_rows),
	LOOP_TEST(ends_what_is_cancelled),
	LOOP_TEST(drops_what_is_late_at_first),
	LOOP_TEST(goes_on_when_a_load_balancer_is_killed),
	LOOP_TEST(waits_for_an_acknowledgement),
	LOOP_TEST(waits_for_room_in_the_send_queue),
	LOOP_TEST(ends_replies_of_a_model_that_fails),
	LOOP_TEST(refuses_bad_requests),
	LOOP_TEST(posts_heartbeats_beside_pieces),
	LOOP_TEST(stops_and_starts_again_in_the_middle),
	LOOP_TEST(posts_heartbeats_while_it_waits_for_its_turn),
};

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: steps_test cpu|cuda MODELS_FOLDER [TEST]\n");
		return 2;
	}
	return loop_tests_run(argv[1], argv[2], argv[3], tests, sizeof(tests) / sizeof(tests[0]));
}
