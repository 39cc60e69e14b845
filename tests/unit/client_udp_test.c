/* SPDX-License-Identifier: BSD-3-Clause */
/* control/client over UDP: both framings, datagrams that are lost, double, late or a stranger's. */
#include "client_peer.h"
#include "packet/notice.h"

_Static_assert((int)DOORBELL_BUSY == LB_NOTICE_BUSY && (int)DOORBELL_TIMEOUT == LB_NOTICE_TIMEOUT &&
		       (int)DOORBELL_WORKER_LOST == LB_NOTICE_WORKER_LOST &&
		       (int)DOORBELL_MODEL_ERROR == LB_NOTICE_MODEL_ERROR &&
		       (int)DOORBELL_EXPIRED == LB_NOTICE_EXPIRED &&
		       (int)DOORBELL_CANCELLED == LB_NOTICE_CANCELLED &&
		       (int)DOORBELL_DEADLINE == LB_NOTICE_DEADLINE &&
		       (int)DOORBELL_MALFORMED == LB_NOTICE_MALFORMED &&
		       (int)DOORBELL_STOPPING == LB_NOTICE_STOPPING &&
		       (int)DOORBELL_TOO_LARGE == LB_NOTICE_TOO_LARGE,
	       "one set of codes");

static const struct doorbell_options tagged = {.protocol = DOORBELL_UDP};
static const struct doorbell_options plain = {.protocol = DOORBELL_UDP,
					      .framing = DOORBELL_DATAGRAM};

/* Take a tagged request or cancel; what is behind its header goes to <text>. Returns its id. */
static uint64_t take(struct peer *p, uint8_t kind, char *text)
{
	uint8_t at[2048];
	size_t n = peer_take_datagram(p, at, sizeof(at));

	cr_assert(n >= HEAD);
	cr_assert_arr_eq(at,
			 "\xdb"
			 "DBQ\1",
			 5);
	cr_expect_eq(at[5], kind);
	cr_expect_eq(peer_word(at + 20), 0);
	memcpy(text, at + HEAD, n - HEAD);
	text[n - HEAD] = '\0';
	return peer_id(at);
}

static void send_chunk(struct peer *p, uint64_t id, uint32_t chunk, bool more, const char *text)
{
	uint8_t at[256];
	size_t n = peer_chunk(at, id, chunk, more, text);

	memset(at + 20, 0, 4);
	peer_send_datagram(p, at, n);
}

static void send_notice(struct peer *p, uint64_t id, uint8_t code)
{
	uint8_t at[16];
	uint64_t be = htobe64(id);

	peer_send_datagram(p, at, peer_notice(at, code, &be));
}

Test(client_udp, tagged_replies_come_in_any_order_once_or_twice)
{
	struct peer p;
	struct ask a[2] = {0};
	uint64_t id[2];
	char text[64];

	peer_open(&p, tagged);
	ask_begin(&p, &a[0], "one");
	ask_begin(&p, &a[1], "two");
	for (int i = 0; i < 2; i++)
		id[i] = take(&p, 1, text);
	send_chunk(&p, id[1], 0, false, "2");
	send_chunk(&p, id[1], 0, false, "2");
	send_chunk(&p, id[0], 0, false, "1");
	ask_expect(&p, &a[0], "1");
	ask_expect(&p, &a[1], "2");
	cr_expect_eq(doorbell_client_counters(p.client).ignored, 1);
	peer_close(&p);
}

Test(client_udp, notices_end_requests_and_busy_is_retried)
{
	struct peer p;
	struct ask a = {.r.retries = 1}, b = {.r.retries = 5};
	char text[64];

	peer_open(&p, tagged);
	ask_begin(&p, &a, "one");
	send_notice(&p, take(&p, 1, text), DOORBELL_BUSY);
	send_notice(&p, take(&p, 1, text), DOORBELL_STOPPING);
	ask_expect_status(&p, &a, DOORBELL_STOPPING);
	ask_begin(&p, &b, "two");
	send_notice(&p, take(&p, 1, text), DOORBELL_MALFORMED);
	ask_expect_status(&p, &b, DOORBELL_MALFORMED);
	peer_close(&p);
}

Test(client_udp, a_lost_reply_is_waited_for_or_asked_for_again)
{
	struct peer p;
	struct ask a = {.r.deadline_ms = 30, .r.retries = 5};
	struct ask b = {
		.r = {.deadline_ms = 10000, .retries = 1, .try_ms = 20, .idempotent = true}};
	uint64_t first, second;
	char text[64];

	peer_open(&p, tagged);
	ask_begin(&p, &a, "once");
	first = take(&p, 1, text);
	ask_expect_status(&p, &a, DOORBELL_NO_ANSWER);
	cr_expect_eq(a.r.tries, 1, "it may have run");
	cr_expect_eq(take(&p, 2, text), first, "the load balancer is told");
	ask_begin(&p, &b, "again");
	first = take(&p, 1, text);
	cr_expect_eq(take(&p, 2, text), first);
	second = take(&p, 1, text);
	cr_expect_str_eq(text, "again");
	cr_expect_neq(first, second);
	send_chunk(&p, first, 0, false, "stale");
	send_notice(&p, first, DOORBELL_CANCELLED);
	send_chunk(&p, second, 0, false, "fresh");
	ask_expect(&p, &b, "fresh");
	cr_expect_eq(b.r.tries, 2);
	peer_close(&p);
}

Test(client_udp, tries_share_the_time)
{
	struct peer p;
	struct ask a = {0};

	peer_open(&p, tagged);
	/* Where a machine halts the client there is no time for the last try. */
	for (int i = 0; i < 10 && a.r.tries != 3; i++) {
		a = (struct ask){.r = {.deadline_ms = 1500, .retries = 2, .idempotent = true}};
		ask_begin(&p, &a, "x");
		ask_expect_status(&p, &a, DOORBELL_NO_ANSWER);
		cr_expect_leq(a.r.tries, 3);
	}
	cr_expect_eq(a.r.tries, 3);
	peer_close(&p);
}

Test(client_udp, ids_are_never_used_again)
{
	struct peer p;
	struct doorbell_options options = tagged;
	struct ask slow = {0}, a;
	uint64_t slow_id, id, before = 0;
	char text[64];

	options.in_flight = 2;
	peer_open(&p, options);
	ask_begin(&p, &slow, "slow");
	slow_id = before = take(&p, 1, text);
	for (int i = 0; i < 1000; i++) {
		memset(&a, 0, sizeof(a));
		ask_begin(&p, &a, "x");
		id = take(&p, 1, text);
		cr_assert(id - before - 1 < 2, "they count up, and pass over the one in use");
		before = id;
		send_chunk(&p, id, 0, false, "y");
		ask_expect(&p, &a, "y");
		cr_assert_eq(doorbell_client_finished(p.client), &a.r);
	}
	send_chunk(&p, slow_id, 0, false, "done");
	ask_expect(&p, &slow, "done");
	peer_close(&p);
}

Test(client_udp, chunks_in_order_make_a_reply_and_a_gap_ends_it)
{
	struct peer p;
	struct ask a = {0}, b = {0};
	uint64_t id;
	char text[64];

	peer_open(&p, tagged);
	ask_begin(&p, &a, "x");
	id = take(&p, 1, text);
	send_chunk(&p, id, 0, true, "ab");
	send_chunk(&p, id, 0, true, "ab");
	send_chunk(&p, id, 1, false, "cd");
	ask_expect(&p, &a, "abcd");
	ask_begin(&p, &b, "y");
	id = take(&p, 1, text);
	send_chunk(&p, id, 0, true, "ab");
	send_chunk(&p, id, 2, false, "ef");
	ask_expect_status(&p, &b, DOORBELL_REPLY_CUT);
	peer_close(&p);
}

Test(client_udp, a_datagram_that_is_no_answer_is_ignored)
{
	struct peer p;
	struct ask a = {0};
	uint8_t at[HEAD + 1];
	uint64_t id, be;
	char text[64];
	int stranger = socket(AF_INET, SOCK_DGRAM, 0), n = 0;

	peer_open(&p, tagged);
	ask_begin(&p, &a, "x");
	id = take(&p, 1, text);
	be = htobe64(id);
	peer_send_datagram(&p, "", 0), n++;
	peer_send_datagram(&p, "what?", 5), n++;
	for (int i = 0; i < 8; i++) {
		peer_head(at, 3, 0, id, 0, 0);
		at[i] ^= 0x80;
		peer_send_datagram(&p, at, HEAD), n++;
		peer_notice(at, 1, &be);
		at[i] ^= 0x80;
		if (i != 5 && i != 6 && i != 7)
			peer_send_datagram(&p, at, 16), n++;
	}
	peer_head(at, 3, 0, id, 0, 1);
	peer_send_datagram(&p, at, HEAD), n++;
	peer_head(at, 3, 0, id, 0, 0);
	peer_send_datagram(&p, at, HEAD - 1), n++;
	peer_notice(at, 1, &be);
	peer_send_datagram(&p, at, 15), n++;
	peer_send_datagram(&p, at, 17), n++;
	send_chunk(&p, id ^ 1, 0, false, "another's"), n++;
	/* Right in every byte, from another port. */
	peer_head(at, 3, 0, id, 0, 0);
	sendto(stranger, at, HEAD, 0, (struct sockaddr *)&p.from, sizeof(p.from));
	send_chunk(&p, id, 0, false, "right");
	ask_expect(&p, &a, "right");
	cr_expect_eq(doorbell_client_counters(p.client).ignored, (uint64_t)n);
	close(stranger);
	peer_close(&p);
}

Test(client_udp, a_datagram_that_cannot_be_sent_is_too_large)
{
	static uint8_t large[65536];
	struct peer p;
	struct doorbell_request r = {.data = large, .length = sizeof(large), .retries = 3};

	peer_open(&p, tagged);
	cr_expect_eq(doorbell_client_call(p.client, &r), DOORBELL_TOO_LARGE);
	cr_expect_null(doorbell_client_finished(p.client), "the caller has it");
	peer_close(&p);
}

Test(client_udp, an_icmp_error_ends_the_try)
{
	struct peer p;
	struct ask a = {.r.retries = 3}, b = {.r = {.retries = 3, .idempotent = true}};

	peer_open(&p, tagged);
	close(p.listener);
	p.listener = -1;
	ask_begin(&p, &a, "x");
	ask_expect_status(&p, &a, DOORBELL_DISCONNECTED);
	cr_expect_eq(a.r.tries, 1);
	ask_begin(&p, &b, "x");
	ask_expect_status(&p, &b, DOORBELL_DISCONNECTED);
	cr_expect_eq(b.r.tries, 4);
	peer_close(&p);
}

/* --- datagram ------------------------------------------------------------------------------- */

Test(client_udp, plain_requests_go_one_at_a_time_from_ports_of_their_own)
{
	struct peer p;
	struct ask a = {.r.deadline_ms = 300}, b = {0}, c = {0};
	struct sockaddr_in first, second;
	uint8_t at[64];
	struct pollfd none = {.events = POLLIN};

	peer_open(&p, plain);
	none.fd = p.listener;
	ask_begin(&p, &a, "one");
	cr_expect_eq(peer_take_datagram(&p, at, sizeof(at)), 3);
	cr_expect_arr_eq(at, "one", 3);
	first = p.from;
	ask_begin(&p, &b, "two");
	cr_expect_eq(b.r.tries, 0);
	cr_expect_eq(poll(&none, 1, 0), 0, "it waits for the first");
	ask_expect_status(&p, &a, DOORBELL_NO_ANSWER);
	cr_expect_eq(peer_take_datagram(&p, at, sizeof(at)), 3);
	second = p.from;
	cr_expect_neq(first.sin_port, second.sin_port);
	/* The late reply to the first finds no socket. */
	p.from = first;
	peer_send_datagram(&p, "late", 4);
	p.from = second;
	recv(p.listener, at, sizeof(at), MSG_DONTWAIT); /* an ICMP error of the other's */
	peer_send_datagram(&p, "TWO", 3);
	ask_expect(&p, &b, "TWO");
	/* Nor does a double one become the reply to the next. */
	peer_send_datagram(&p, "TWO", 3);
	ask_begin(&p, &c, "three");
	cr_expect_eq(peer_take_datagram(&p, at, sizeof(at)), 5);
	peer_send_datagram(&p, "THREE", 5);
	ask_expect(&p, &c, "THREE");
	peer_close(&p);
}

Test(client_udp, plain_notices_have_the_first_bytes_of_the_request)
{
	struct peer p;
	struct ask a = {.r.retries = 1}, b = {0};
	uint8_t at[64];

	peer_open(&p, plain);
	ask_begin(&p, &a, "short");
	peer_take_datagram(&p, at, sizeof(at));
	peer_send_datagram(&p, at, peer_notice(at, DOORBELL_BUSY, "another!"));
	peer_send_datagram(&p, at, peer_notice(at, DOORBELL_BUSY, "short\0\0\0"));
	peer_take_datagram(&p, at, sizeof(at));
	peer_send_datagram(&p, at, peer_notice(at, DOORBELL_MODEL_ERROR, "short\0\0\0"));
	ask_expect_status(&p, &a, DOORBELL_MODEL_ERROR);
	cr_expect_eq(a.r.tries, 2);
	ask_begin(&p, &b, "longer than eight");
	peer_take_datagram(&p, at, sizeof(at));
	peer_send_datagram(&p, at, peer_notice(at, DOORBELL_WORKER_LOST, "longer t"));
	ask_expect_status(&p, &b, DOORBELL_WORKER_LOST);
	peer_close(&p);
}

Test(client_udp, an_empty_reply_is_a_reply)
{
	struct peer p;
	struct ask a = {0};
	uint8_t at[64];

	peer_open(&p, plain);
	ask_begin(&p, &a, "x");
	peer_take_datagram(&p, at, sizeof(at));
	peer_send_datagram(&p, "", 0);
	ask_expect(&p, &a, "");
	peer_close(&p);
}

/* --- words ---------------------------------------------------------------------------------- */

Test(client_udp, addresses_and_options_are_checked)
{
	static const char *const bad[] = {"",
					  "10.0.0.1",
					  "10.0.0.1:",
					  ":80",
					  "10.0.0.1:0",
					  "10.0.0.1:65536",
					  "10.0.0.1:x",
					  "10.0.0.1:80x",
					  "fd00::1:80",
					  "[fd00::1]",
					  "[]:80",
					  "10.0.0.1:-1",
					  "10.0.0.1: 80"};
	char error[DOORBELL_ERROR_SIZE];
	struct doorbell_client *c;
	struct doorbell_options wrong = {.protocol = DOORBELL_UDP, .framing = DOORBELL_LENGTH};
	struct doorbell_request r = {0};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		error[0] = '\0';
		cr_expect_null(doorbell_client_open(bad[i], NULL, error), "%s", bad[i]);
		cr_expect_neq(error[0], '\0', "%s", bad[i]);
	}
	cr_expect_null(doorbell_client_open("127.0.0.1:1", &wrong, NULL));
	wrong = (struct doorbell_options){.in_flight = 1u << 31};
	cr_expect_null(doorbell_client_open("127.0.0.1:1", &wrong, error));
	c = doorbell_client_open("[::1]:1", NULL, error);
	cr_assert_not_null(c, "%s", error);
	cr_expect_eq(doorbell_client_submit(c, &r), -EINVAL, "nothing to send");
	r = (struct doorbell_request){.data = "x", .length = 1, .priority = 5};
	cr_expect_eq(doorbell_client_call(c, &r), -EINVAL);
	doorbell_client_close(c);
	doorbell_client_close(NULL);
}

Test(client_udp, every_status_has_words)
{
	for (int status = -1; status < 300; status++)
		cr_expect(strlen(doorbell_client_text(status)) > 1);
	cr_expect_str_eq(doorbell_client_text(DOORBELL_TOO_LARGE), "too large");
	cr_expect_str_eq(doorbell_client_text(DOORBELL_NO_ANSWER), "no answer");
	cr_expect_str_eq(doorbell_client_text(DOORBELL_REPLY_CUT), "reply incomplete");
	cr_expect_str_eq(doorbell_client_text(77), "unknown notice");
	cr_expect_eq(doorbell_client_ran(DOORBELL_BUSY), DOORBELL_NEVER_RAN);
	cr_expect_eq(doorbell_client_ran(77), DOORBELL_MAY_HAVE_RUN);
}
