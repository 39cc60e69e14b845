/* SPDX-License-Identifier: BSD-3-Clause */
/* control/client over TCP: both framings, what a broken or hostile peer does, and lost connections.
 */
#include "client_peer.h"

static const struct doorbell_options tagged = {.protocol = DOORBELL_TCP};
static const struct doorbell_options in_order = {.protocol = DOORBELL_TCP,
						 .framing = DOORBELL_LENGTH};

/* Take a tagged request; its bytes go to <text>. Returns its id. */
static uint64_t take_request(struct peer *p, char *text)
{
	uint8_t head[HEAD];
	uint32_t n;

	peer_take(p, head, HEAD);
	cr_assert_arr_eq(head,
			 "\xdb"
			 "DBQ\1\1",
			 6);
	n = peer_word(head + 20);
	peer_take(p, text, n);
	text[n] = '\0';
	return peer_id(head);
}

static void send_reply(struct peer *p, uint64_t id, const char *text)
{
	uint8_t at[256];

	peer_send(p, at, peer_chunk(at, id, 0, false, text));
}

static void send_notice(struct peer *p, uint64_t id, uint8_t code)
{
	uint8_t at[HEAD];

	peer_send(p, at, peer_head(at, 4, code, id, 0, 0));
}

Test(client_tcp, a_tagged_request_is_these_bytes)
{
	struct peer p;
	struct ask a = {.r = {.deadline_ms = 5000, .priority = 3}};
	uint8_t got[HEAD + 5];

	peer_open(&p, tagged);
	ask_begin(&p, &a, "hello");
	peer_accept(&p);
	peer_take(&p, got, sizeof(got));
	cr_expect_arr_eq(got,
			 "\xdb"
			 "DBQ\1\1\3\0",
			 8);
	cr_expect_neq(peer_id(got), 0);
	cr_expect(peer_word(got + 16) > 0 && peer_word(got + 16) <= 5000000);
	cr_expect_eq(peer_word(got + 20), 5);
	cr_expect_arr_eq(got + HEAD, "hello", 5);
	send_reply(&p, peer_id(got), "world");
	ask_expect(&p, &a, "world");
	cr_expect_eq(doorbell_client_finished(p.client), &a.r);
	cr_expect_null(doorbell_client_finished(p.client));
	peer_close(&p);
}

Test(client_tcp, without_a_deadline_the_service_has_its_own)
{
	struct peer p;
	struct ask a = {0};
	uint8_t got[HEAD + 1];

	peer_open(&p, tagged);
	ask_begin(&p, &a, "x");
	peer_accept(&p);
	peer_take(&p, got, sizeof(got));
	cr_expect_eq(peer_word(got + 16), 0);
	peer_close(&p);
	cr_expect_eq(a.r.status, DOORBELL_CANCELLED, "close() ends it");
}

Test(client_tcp, tagged_answers_come_in_any_order_and_any_cut)
{
	struct peer p;
	struct ask a[3] = {0};
	uint64_t id[3];
	uint8_t at[512];
	char text[64];
	size_t n = 0;

	peer_open(&p, tagged);
	for (int i = 0; i < 3; i++)
		ask_begin(&p, &a[i], "x");
	peer_accept(&p);
	for (int i = 0; i < 3; i++)
		id[i] = take_request(&p, text);
	n += peer_chunk(at + n, id[2], 0, false, "third");
	n += peer_chunk(at + n, id[0], 0, true, "fi");
	n += peer_chunk(at + n, id[1], 0, false, "");
	n += peer_chunk(at + n, id[0], 1, true, "rs");
	n += peer_chunk(at + n, id[0], 2, false, "t");
	for (size_t i = 0; i < n; i++) {
		peer_send(&p, at + i, 1);
		peer_turn(&p, -1);
	}
	ask_expect(&p, &a[2], "third");
	ask_expect(&p, &a[1], "");
	ask_expect(&p, &a[0], "first");
	cr_expect_eq(a[0].r.chunks, 3);
	peer_close(&p);
}

Test(client_tcp, several_answers_in_one_segment)
{
	struct peer p;
	struct ask a[3] = {0};
	uint8_t at[512];
	char text[64];
	size_t n = 0;

	peer_open(&p, tagged);
	for (int i = 0; i < 3; i++)
		ask_begin(&p, &a[i], "x");
	peer_accept(&p);
	n += peer_chunk(at + n, take_request(&p, text), 0, false, "one");
	n += peer_head(at + n, 4, DOORBELL_MODEL_ERROR, take_request(&p, text), 0, 0);
	n += peer_chunk(at + n, take_request(&p, text), 0, false, "three");
	peer_send(&p, at, n);
	ask_expect(&p, &a[0], "one");
	ask_expect_status(&p, &a[1], DOORBELL_MODEL_ERROR);
	ask_expect(&p, &a[2], "three");
	peer_close(&p);
}

Test(client_tcp, chunks_are_seen_as_they_come)
{
	struct peer p;
	struct ask a = {.r.retries = 3, .r.idempotent = true};
	uint8_t at[64];
	char text[8];
	uint64_t id;

	peer_open(&p, tagged);
	ask_begin(&p, &a, "x");
	peer_accept(&p);
	id = take_request(&p, text);
	peer_send(&p, at, peer_chunk(at, id, 0, true, "half "));
	PEER_UNTIL(&p, a.r.chunks == 1);
	cr_expect_eq(a.r.status, DOORBELL_PENDING);
	cr_expect_eq(a.r.reply_length, 5);
	/* A notice may end it; what the caller has seen is not taken back by another try. */
	send_notice(&p, id, DOORBELL_WORKER_LOST);
	ask_expect_status(&p, &a, DOORBELL_WORKER_LOST);
	cr_expect_eq(a.r.tries, 1);
	cr_expect_eq(a.r.reply_length, 5);
	peer_close(&p);
}

Test(client_tcp, a_long_reply_goes_to_its_place)
{
	static uint8_t reply[3 << 20], chunk[3 << 20];
	struct peer p;
	struct doorbell_request r = {
		.data = "x", .length = 1, .reply = reply, .reply_size = sizeof(reply)};
	uint8_t head[HEAD];
	char text[8];
	size_t sent = 0;

	for (size_t i = 0; i < sizeof(chunk); i++)
		chunk[i] = (uint8_t)(i * 2654435761u >> 24);
	peer_open(&p, tagged);
	cr_assert_eq(doorbell_client_submit(p.client, &r), 0);
	peer_accept(&p);
	peer_head(head, 3, 0, take_request(&p, text), 0, sizeof(chunk));
	peer_send(&p, head, HEAD);
	while (r.status == DOORBELL_PENDING) {
		ssize_t n = send(p.fd, chunk + sent, sizeof(chunk) - sent, MSG_DONTWAIT);

		sent += n > 0 ? (size_t)n : 0;
		peer_turn(&p, -1);
	}
	cr_expect_eq(r.status, DOORBELL_OK);
	cr_expect_eq(r.reply_length, sizeof(chunk));
	cr_expect_eq(memcmp(reply, chunk, sizeof(chunk)), 0);
	peer_close(&p);
}

/* --- retries -------------------------------------------------------------------------------- */

struct retry_row {
	uint8_t code;
	int tries_plain, tries_idempotent; /* with 2 retries allowed */
};

Test(client_tcp, only_notices_that_promise_it_are_retried)
{
	static const struct retry_row rows[] = {
		{DOORBELL_BUSY, 3, 3},
		{DOORBELL_TIMEOUT, 1, 3},
		{DOORBELL_WORKER_LOST, 1, 3},
		{DOORBELL_MODEL_ERROR, 1, 1},
		{DOORBELL_EXPIRED, 1, 1},
		{DOORBELL_CANCELLED, 1, 1},
		{DOORBELL_DEADLINE, 1, 1},
		{DOORBELL_MALFORMED, 1, 1},
		{DOORBELL_STOPPING, 3, 3},
		{DOORBELL_TOO_LARGE, 1, 1},
		{77, 1, 3},
	};

	for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		const struct retry_row *row = &rows[i / 2];
		int tries = i % 2 ? row->tries_idempotent : row->tries_plain;
		struct ask a = {.r = {.retries = 2, .idempotent = i % 2}};
		struct peer p;
		uint64_t id, before = 0;
		char text[8];

		peer_open(&p, tagged);
		ask_begin(&p, &a, "x");
		peer_accept(&p);
		for (int t = 0; t < tries; t++) {
			id = take_request(&p, text);
			cr_expect_neq(id, before, "a try has an id of its own");
			before = id;
			send_notice(&p, id, row->code);
		}
		ask_expect_status(&p, &a, row->code);
		cr_expect_eq(a.r.tries, (uint32_t)tries, "code %d: %u tries", row->code, a.r.tries);
		peer_close(&p);
	}
}

Test(client_tcp, a_retry_gets_the_reply)
{
	struct peer p;
	struct ask a = {.r.retries = 1};
	char text[8];

	peer_open(&p, tagged);
	ask_begin(&p, &a, "again");
	peer_accept(&p);
	send_notice(&p, take_request(&p, text), DOORBELL_BUSY);
	send_reply(&p, take_request(&p, text), text);
	ask_expect(&p, &a, "again");
	cr_expect_eq(doorbell_client_counters(p.client).retries, 1);
	peer_close(&p);
}

Test(client_tcp, back_off_grows_and_is_partly_random)
{
	struct peer p;
	struct doorbell_options options = tagged;
	struct ask a = {.r.retries = 3};
	char text[8];

	options.backoff_ms = 40;
	peer_open(&p, options);
	ask_begin(&p, &a, "x");
	peer_accept(&p);
	for (int64_t wait = 40; wait <= 160; wait *= 2) {
		int64_t began = peer_now_ms();

		send_notice(&p, take_request(&p, text), DOORBELL_BUSY);
		peer_wait(&p, p.fd);
		cr_expect(peer_now_ms() - began >= wait / 2 - 1, "after %d ms",
			  (int)(peer_now_ms() - began));
	}
	peer_close(&p);
}

Test(client_tcp, a_back_off_beyond_the_deadline_is_not_waited_for)
{
	struct peer p;
	struct doorbell_options options = tagged;
	struct ask a = {.r = {.retries = 3, .deadline_ms = 10000}};
	char text[8];

	options.backoff_ms = 60000;
	options.backoff_max_ms = 60000;
	peer_open(&p, options);
	ask_begin(&p, &a, "x");
	peer_accept(&p);
	send_notice(&p, take_request(&p, text), DOORBELL_BUSY);
	ask_expect_status(&p, &a, DOORBELL_BUSY);
	cr_expect_eq(a.r.tries, 1);
	peer_close(&p);
}

/* --- deadlines and cancels ------------------------------------------------------------------ */

Test(client_tcp, after_the_deadline_a_cancel_goes_out_and_a_late_reply_is_dropped)
{
	struct peer p;
	struct ask a = {.r.deadline_ms = 150}, b = {0};
	uint8_t cancel[HEAD];
	char text[8];
	uint64_t id;

	peer_open(&p, tagged);
	ask_begin(&p, &a, "x");
	peer_accept(&p);
	id = take_request(&p, text);
	ask_expect_status(&p, &a, DOORBELL_NO_ANSWER);
	peer_take(&p, cancel, HEAD);
	cr_expect_eq(cancel[5], 2);
	cr_expect_eq(peer_id(cancel), id);
	ask_begin(&p, &b, "y");
	send_reply(&p, id, "late");
	send_reply(&p, take_request(&p, text), "right");
	ask_expect(&p, &b, "right");
	cr_expect_eq(doorbell_client_counters(p.client).ignored, 1);
	cr_expect_eq(a.r.reply_length, 0);
	peer_close(&p);
}

Test(client_tcp, a_cancelled_request_is_over_at_once)
{
	struct peer p;
	struct ask a = {0}, b = {0};
	uint8_t cancel[HEAD], half[64];
	char text[8];
	uint64_t id;

	peer_open(&p, tagged);
	ask_begin(&p, &a, "x");
	peer_accept(&p);
	id = take_request(&p, text);
	/* In the middle of its reply, even: the rest is read and dropped. */
	peer_chunk(half, id, 0, false, "0123456789");
	peer_send(&p, half, HEAD + 4);
	PEER_UNTIL(&p, a.r.reply_length == 4);
	doorbell_client_cancel(p.client, &a.r);
	cr_expect_eq(a.r.status, DOORBELL_CANCELLED);
	memset(a.reply, 'z', sizeof(a.reply));
	peer_take(&p, cancel, HEAD);
	cr_expect_eq(cancel[5], 2);
	cr_expect_eq(peer_id(cancel), id);
	peer_send(&p, half + HEAD + 4, 6);
	ask_begin(&p, &b, "y");
	id = take_request(&p, text);
	send_notice(&p, peer_id(cancel), DOORBELL_CANCELLED);
	send_reply(&p, id, "right");
	ask_expect(&p, &b, "right");
	cr_expect_eq(a.reply[4], 'z', "the caller's memory is the caller's again");
	doorbell_client_cancel(p.client, &a.r);
	peer_close(&p);
}

Test(client_tcp, a_trickle_of_bytes_holds_nobody_beyond_the_deadline)
{
	struct peer p;
	struct ask a = {.r.deadline_ms = 200};
	uint8_t reply[64];
	char text[8];
	size_t n, sent = 0;

	peer_open(&p, tagged);
	ask_begin(&p, &a, "x");
	peer_accept(&p);
	n = peer_chunk(reply, take_request(&p, text), 0, false, "0123456789");
	while (a.r.status == DOORBELL_PENDING && sent < n - 1) {
		peer_send(&p, reply + sent++, 1);
		peer_turn(&p, -1);
	}
	ask_expect_status(&p, &a, DOORBELL_NO_ANSWER);
	peer_close(&p);
}

Test(client_tcp, a_trickle_is_silence)
{
	struct peer p;
	struct doorbell_options options = tagged;
	struct ask a = {.r.deadline_ms = 150}, b = {0};
	uint8_t head[HEAD], got[HEAD];
	char text[8];
	ssize_t n = 1;

	options.silence_ms = 400;
	peer_open(&p, options);
	ask_begin(&p, &a, "x");
	peer_accept(&p);
	peer_head(head, 3, 0, take_request(&p, text), 0, 1 << 20);
	peer_send(&p, head, HEAD);
	/* A byte every 10 ms, for as long as the client takes them. */
	while (n != 0 && send(p.fd, "z", 1, MSG_NOSIGNAL) == 1) {
		poll(NULL, 0, 10);
		peer_turn(&p, p.fd);
		n = recv(p.fd, got, sizeof(got), MSG_DONTWAIT);
	}
	cr_expect_eq(a.r.status, DOORBELL_NO_ANSWER);
	ask_begin(&p, &b, "y");
	peer_accept(&p);
	send_reply(&p, take_request(&p, text), "next");
	ask_expect(&p, &b, "next");
	peer_close(&p);
}

static uint8_t large[16 << 20];

Test(client_tcp, giving_up_a_half_written_request_costs_the_connection)
{
	struct peer p;
	struct ask other = {0};
	struct doorbell_request r = {.data = large, .length = sizeof(large)};
	char text[8];

	peer_open(&p, tagged);
	ask_begin(&p, &other, "x");
	peer_accept(&p);
	take_request(&p, text);
	cr_assert_eq(doorbell_client_submit(p.client, &r), 0);
	cr_assert_eq(r.status, DOORBELL_PENDING);
	doorbell_client_cancel(p.client, &r);
	cr_expect_eq(r.status, DOORBELL_CANCELLED);
	ask_expect_status(&p, &other, DOORBELL_DISCONNECTED);
	peer_expect_end(&p);
	cr_expect_eq(doorbell_client_finished(p.client), &other.r);
	cr_expect_null(doorbell_client_finished(p.client));
	ask_begin(&p, &other, "y");
	peer_accept(&p);
	send_reply(&p, take_request(&p, text), text);
	ask_expect(&p, &other, "y");
	peer_close(&p);
}

Test(client_tcp, a_half_written_request_at_its_deadline_was_not_sent)
{
	struct peer p;
	struct doorbell_request r = {.data = large, .length = sizeof(large), .deadline_ms = 30};

	peer_open(&p, tagged);
	cr_assert_eq(doorbell_client_submit(p.client, &r), 0);
	PEER_UNTIL(&p, r.status != DOORBELL_PENDING);
	cr_expect_eq(r.status, DOORBELL_NOT_SENT);
	peer_close(&p);
}

Test(client_tcp, one_refused_while_it_is_written_keeps_its_bytes_until_then)
{
	struct peer p;
	struct ask other = {0};
	struct doorbell_request r = {.data = large, .length = sizeof(large)};
	uint8_t head[HEAD];
	static uint8_t rest[sizeof(large)];
	char text[8];

	peer_open(&p, tagged);
	cr_assert_eq(doorbell_client_submit(p.client, &r), 0);
	peer_accept(&p);
	peer_take(&p, head, HEAD);
	send_notice(&p, peer_id(head), DOORBELL_TOO_LARGE);
	PEER_UNTIL(&p, doorbell_client_counters(p.client).notices == 1);
	cr_expect_eq(r.status, DOORBELL_PENDING);
	peer_take(&p, rest, sizeof(large));
	PEER_UNTIL(&p, r.status != DOORBELL_PENDING);
	cr_expect_eq(r.status, DOORBELL_TOO_LARGE);
	ask_begin(&p, &other, "y");
	send_reply(&p, take_request(&p, text), text);
	ask_expect(&p, &other, "y");
	peer_close(&p);
}

/* --- a hostile peer ------------------------------------------------------------------------- */

Test(client_tcp, answers_that_nobody_asked_for_are_dropped)
{
	struct peer p;
	struct ask a = {0}, b = {0};
	uint64_t id;
	char text[8];

	peer_open(&p, tagged);
	ask_begin(&p, &a, "x");
	peer_accept(&p);
	id = take_request(&p, text);
	send_reply(&p, id + 1, "another's");
	send_reply(&p, id + 64, "another's of the same slot");
	send_notice(&p, 0, DOORBELL_MALFORMED);
	send_reply(&p, id, "right");
	send_reply(&p, id, "twice");
	ask_expect(&p, &a, "right");
	ask_begin(&p, &b, "y");
	send_reply(&p, take_request(&p, text), "next");
	ask_expect(&p, &b, "next");
	cr_expect_eq(doorbell_client_counters(p.client).ignored, 4);
	peer_close(&p);
}

Test(client_tcp, a_reply_larger_than_the_room_ends_in_an_error_and_nothing_more)
{
	struct peer p;
	struct ask a = {.r.reply_size = 4}, b = {0};
	char text[8];

	peer_open(&p, tagged);
	memset(a.reply, 'z', sizeof(a.reply));
	ask_begin(&p, &a, "x");
	peer_accept(&p);
	send_reply(&p, take_request(&p, text), "0123456789");
	ask_expect_status(&p, &a, DOORBELL_REPLY_LARGE);
	cr_expect_eq(a.r.reply_length, 10, "so much room it would have taken");
	cr_expect_arr_eq(a.reply, "0123zzzz", 8);
	ask_begin(&p, &b, "y");
	send_reply(&p, take_request(&p, text), "next");
	ask_expect(&p, &b, "next");
	peer_close(&p);
}

/* The connection ends; the request is told so; the next one gets another connection. */
static void expect_protocol_error(const struct doorbell_options *options, const uint8_t *bytes,
				  size_t n, const char *what)
{
	struct peer p;
	struct ask a = {.r = {.retries = 3, .idempotent = true}}, b = {0};
	char text[64];
	uint8_t at[64];
	bool with_id = options->framing == DOORBELL_TAGGED;

	peer_open(&p, *options);
	ask_begin(&p, &a, "x");
	peer_accept(&p);
	memcpy(at, bytes, n);
	if (with_id) {
		uint64_t id = htobe64(take_request(&p, text));

		if (n == HEAD)
			memcpy(at + 8, &id, 8);
	} else {
		peer_take(&p, text, 5);
	}
	peer_send(&p, at, n);
	PEER_UNTIL(&p, a.r.status != DOORBELL_PENDING);
	cr_expect_eq(a.r.status, DOORBELL_PROTOCOL, "%s: %s", what,
		     doorbell_client_text(a.r.status));
	cr_expect_neq(strlen(doorbell_client_error(p.client)), 0);
	peer_expect_end(&p);
	ask_begin(&p, &b, "y");
	peer_accept(&p);
	if (with_id) {
		send_reply(&p, take_request(&p, text), "next");
	} else {
		peer_take(&p, text, 5);
		peer_send(&p, at, peer_answer(at, 0, "next"));
	}
	ask_expect(&p, &b, "next");
	peer_close(&p);
}

Test(client_tcp, what_is_no_answer_ends_the_connection)
{
	uint8_t head[HEAD];
	static const struct {
		const char *what;
		int at;
		uint8_t value;
	} rows[] = {
		{"magic", 0, 0xdc}, {"magic", 3, 'N'},   {"version", 4, 2}, {"kind", 5, 1},
		{"kind", 5, 2},     {"kind", 5, 5},      {"more", 6, 2},    {"zero", 7, 1},
		{"chunk", 19, 1},   {"4 GiB", 20, 0xff},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		peer_head(head, 3, 0, 0, 0, 0);
		head[rows[i].at] = rows[i].value;
		expect_protocol_error(&tagged, head, HEAD, rows[i].what);
	}
	/* A notice with a length, and one without a code. */
	peer_head(head, 4, 1, 0, 0, 1);
	expect_protocol_error(&tagged, head, HEAD, "a notice with bytes");
	peer_head(head, 4, 0, 0, 0, 0);
	expect_protocol_error(&tagged, head, HEAD, "a notice of nothing");
	expect_protocol_error(&in_order, (const uint8_t *)"\0\0\0\0\1\1\0\0", 8, "status 257");
	expect_protocol_error(&in_order, (const uint8_t *)"\0\0\0\0\0\0\0\x80", 8, "status 2^31");
	expect_protocol_error(&in_order, (const uint8_t *)"\1\0\0\0\1\0\0\0", 8,
			      "a notice with bytes");
	expect_protocol_error(&in_order, (const uint8_t *)"\xff\xff\xff\xff\0\0\0\0", 8, "4 GiB");
}

Test(client_tcp, chunks_have_to_come_in_order)
{
	struct peer p;
	struct ask a = {0};
	uint8_t at[64];
	char text[8];
	uint64_t id;

	peer_open(&p, tagged);
	ask_begin(&p, &a, "x");
	peer_accept(&p);
	id = take_request(&p, text);
	peer_send(&p, at, peer_chunk(at, id, 0, true, "one"));
	peer_send(&p, at, peer_chunk(at, id, 2, false, "three"));
	ask_expect_status(&p, &a, DOORBELL_PROTOCOL);
	peer_close(&p);
}

/* --- lost connections ----------------------------------------------------------------------- */

Test(client_tcp, a_reset_ends_what_was_sent_and_keeps_what_was_not)
{
	struct peer p;
	struct doorbell_options options = tagged;
	struct ask sent = {0}, again = {.r = {.retries = 1, .idempotent = true}}, waits = {0};
	struct linger reset = {.l_onoff = 1};
	char text[8];

	options.in_flight = 2;
	peer_open(&p, options);
	ask_begin(&p, &sent, "1");
	ask_begin(&p, &again, "2");
	ask_begin(&p, &waits, "3");
	peer_accept(&p);
	take_request(&p, text);
	take_request(&p, text);
	setsockopt(p.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	peer_hang_up(&p);
	ask_expect_status(&p, &sent, DOORBELL_DISCONNECTED);
	peer_accept(&p);
	for (int i = 0; i < 2; i++)
		send_reply(&p, take_request(&p, text), text);
	ask_expect(&p, &again, "2");
	ask_expect(&p, &waits, "3");
	cr_expect_eq(waits.r.tries, 1);
	cr_expect_eq(again.r.tries, 2);
	cr_expect_eq(doorbell_client_counters(p.client).connections, 2);
	peer_close(&p);
}

Test(client_tcp, answers_before_the_end_of_a_connection_count)
{
	struct peer p;
	struct ask a[2] = {0};
	char text[8];

	peer_open(&p, tagged);
	ask_begin(&p, &a[0], "1");
	ask_begin(&p, &a[1], "2");
	peer_accept(&p);
	send_reply(&p, take_request(&p, text), text);
	take_request(&p, text);
	peer_hang_up(&p);
	ask_expect(&p, &a[0], "1");
	ask_expect_status(&p, &a[1], DOORBELL_DISCONNECTED);
	peer_close(&p);
}

Test(client_tcp, an_idle_connection_that_ended_costs_no_request)
{
	struct peer p;
	struct ask a = {0}, b = {0};
	char text[8];

	peer_open(&p, tagged);
	ask_begin(&p, &a, "1");
	peer_accept(&p);
	send_reply(&p, take_request(&p, text), text);
	ask_expect(&p, &a, "1");
	peer_hang_up(&p);
	ask_begin(&p, &b, "2");
	peer_accept(&p);
	send_reply(&p, take_request(&p, text), text);
	ask_expect(&p, &b, "2");
	peer_close(&p);
}

Test(client_tcp, a_refused_connection_is_a_try)
{
	struct peer p;
	struct ask a = {.r.retries = 2};

	peer_open(&p, tagged);
	close(p.listener);
	p.listener = -1;
	ask_begin(&p, &a, "x");
	ask_expect_status(&p, &a, DOORBELL_NOT_SENT);
	cr_expect_eq(a.r.tries, 3);
	cr_expect(strstr(doorbell_client_error(p.client), "Connection refused") != NULL, "%s",
		  doorbell_client_error(p.client));
	peer_close(&p);
}

Test(client_tcp, a_peer_that_opens_and_closes_is_not_asked_for_ever)
{
	struct peer p;
	struct ask a = {.r.retries = 3};
	int accepted = 0;

	peer_open(&p, tagged);
	ask_begin(&p, &a, "x");
	while (a.r.status == DOORBELL_PENDING) {
		if (!peer_turn(&p, p.listener))
			continue;
		close(accept(p.listener, NULL, NULL));
		accepted++;
	}
	cr_expect(a.r.status == DOORBELL_NOT_SENT || a.r.status == DOORBELL_DISCONNECTED);
	cr_expect(accepted <= 5, "%d connections", accepted);
	peer_close(&p);
}

Test(client_tcp, a_silent_connection_is_given_up)
{
	struct peer p;
	struct doorbell_options options = in_order;
	struct ask a = {.r.deadline_ms = 150}, b = {0};
	uint8_t at[64];

	options.silence_ms = 500;
	peer_open(&p, options);
	ask_begin(&p, &a, "x");
	peer_accept(&p);
	ask_expect_status(&p, &a, DOORBELL_NO_ANSWER);
	peer_expect_end(&p);
	ask_begin(&p, &b, "y");
	peer_accept(&p);
	peer_take(&p, at, 5);
	peer_send(&p, at, peer_answer(at, 0, "next"));
	ask_expect(&p, &b, "next");
	peer_close(&p);
}

/* --- length --------------------------------------------------------------------------------- */

Test(client_tcp, length_is_these_bytes_and_answers_come_in_order)
{
	struct peer p;
	struct ask a[3] = {0};
	uint8_t at[128], got[15];
	size_t n = 0;

	peer_open(&p, in_order);
	ask_begin(&p, &a[0], "a");
	ask_begin(&p, &a[1], "b");
	ask_begin(&p, &a[2], "c");
	peer_accept(&p);
	peer_take(&p, got, sizeof(got));
	cr_expect_arr_eq(got, "\1\0\0\0a\1\0\0\0b\1\0\0\0c", 15);
	n += peer_answer(at + n, 256, "fi");
	n += peer_answer(at + n, 0, "rst");
	n += peer_answer(at + n, DOORBELL_MODEL_ERROR, "");
	n += peer_answer(at + n, 0, "third");
	for (size_t i = 0; i < n; i++) {
		peer_send(&p, at + i, 1);
		peer_turn(&p, -1);
	}
	ask_expect(&p, &a[0], "first");
	cr_expect_eq(a[0].r.chunks, 2);
	ask_expect_status(&p, &a[1], DOORBELL_MODEL_ERROR);
	ask_expect(&p, &a[2], "third");
	peer_close(&p);
}

Test(client_tcp, length_keeps_the_place_of_a_request_that_was_given_up)
{
	struct peer p;
	struct ask a = {.r.deadline_ms = 150}, b = {0}, c = {0};
	uint8_t at[64];

	peer_open(&p, in_order);
	ask_begin(&p, &a, "a");
	ask_begin(&p, &b, "b");
	ask_begin(&p, &c, "c");
	peer_accept(&p);
	peer_take(&p, at, 15);
	ask_expect_status(&p, &a, DOORBELL_NO_ANSWER);
	doorbell_client_cancel(p.client, &b.r);
	peer_send(&p, at, peer_answer(at, 256, "la"));
	peer_send(&p, at, peer_answer(at, 0, "te"));
	peer_send(&p, at, peer_answer(at, DOORBELL_BUSY, ""));
	peer_send(&p, at, peer_answer(at, 0, "c's"));
	ask_expect(&p, &c, "c's");
	cr_expect_eq(a.r.reply_length, 0);
	cr_expect_eq(b.r.status, DOORBELL_CANCELLED);
	peer_close(&p);
}

Test(client_tcp, length_answers_without_a_request_end_the_connection)
{
	struct peer p;
	struct ask a = {0};
	uint8_t at[64];

	peer_open(&p, in_order);
	ask_begin(&p, &a, "a");
	peer_accept(&p);
	peer_take(&p, at, 5);
	peer_send(&p, at, peer_answer(at, 0, "once"));
	peer_send(&p, at, peer_answer(at, 0, "twice"));
	ask_expect(&p, &a, "once");
	peer_expect_end(&p);
	peer_close(&p);
}

Test(client_tcp, length_more_requests_than_fit_wait_their_turn)
{
	struct peer p;
	struct doorbell_options options = in_order;
	struct ask a[40];
	uint8_t at[64], got[5];

	memset(a, 0, sizeof(a));
	options.in_flight = 3;
	peer_open(&p, options);
	for (int i = 0; i < 40; i++)
		ask_begin(&p, &a[i], "x");
	peer_accept(&p);
	for (int i = 0; i < 40; i++) {
		peer_take(&p, got, 5);
		peer_send(&p, at, peer_answer(at, 0, "y"));
		ask_expect(&p, &a[i], "y");
	}
	cr_expect_eq(doorbell_client_counters(p.client).sent, 40);
	peer_close(&p);
}
