/* SPDX-License-Identifier: BSD-3-Clause */
/* Before a connection and after it: secrets, SYN cookies, TIME-WAIT. */
#include <criterion/criterion.h>

#include "pools.h"
#include "tcp/congestion.h"
#include "tcp/cookie.h"
#include "tcp/time_wait.h"

static struct tcp_settings settings;
static struct tcp_stack stack;
static void *pools;
static const struct tcp_secret secret = {{1, 2}}, other_secret = {{1, 3}};
static const struct tcp_ends ends = {.client_port = 1, .server_port = 2, .zone = 3};

static void ends_init(void)
{
	settings = tcp_settings_default;
	settings.ecn = true;
	pools = pools_init(&stack, &settings, 1, 1, 1);
	stack.now_ms = 123456789;
	stack.now_us = 5;
}

static void ends_fini(void)
{
	free(pools);
}

TestSuite(tcp_ends, .init = ends_init, .fini = ends_fini);

Test(tcp_ends, siphash_is_the_papers)
{
	const uint64_t key[2] = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
	const uint64_t first = 0x0706050403020100;

	cr_expect_eq(tcp_siphash(key, &first, 1, 0x0f0e0d0c0b0a0908), 0xa129ca6149be45e5);
}

Test(tcp_ends, numbers_of_ends_and_purposes_differ)
{
	struct tcp_ends next = ends;
	uint64_t hash = tcp_secret_hash(&secret, &ends, 0);

	next.client_port++;
	cr_expect_neq(tcp_secret_hash(&secret, &next, 0), hash);
	cr_expect_neq(tcp_secret_hash(&secret, &ends, 1), hash);
	cr_expect_neq(tcp_secret_hash(&other_secret, &ends, 0), hash);
	cr_expect_eq(tcp_secret_sequence(&secret, &ends, 4000) -
			     tcp_secret_sequence(&secret, &ends, 0),
		     1000);
}

static struct tcp_header ends_syn(uint16_t mss, uint8_t scale, bool sack, bool timestamps, bool ecn)
{
	return (struct tcp_header){
		.seq = 0xfffffff0,
		.flags = TCP_BIT_SYN | (ecn ? TCP_BIT_ECE | TCP_BIT_CWR : 0),
		.window = 5000,
		.mss = mss,
		.scale = scale,
		.sack_permitted = sack,
		.has_timestamp = timestamps,
		.ts_value = 77,
	};
}

/* The client's answer to our SYN-ACK. */
static struct tcp_header ends_ack(const struct tcp_header *syn, const struct tcp_header *answer)
{
	return (struct tcp_header){
		.seq = syn->seq + 1,
		.ack = answer->seq + 1,
		.flags = TCP_BIT_ACK,
		.window = 100,
		.scale = TCP_SCALE_NONE,
		.has_timestamp = syn->has_timestamp,
		.ts_value = 78,
		.ts_echo = answer->ts_value,
	};
}

Test(tcp_ends, a_cookie_brings_everything_back)
{
	static const uint16_t sizes[][2] = {
		{0, 536}, {536, 536}, {1459, 1440}, {1460, 1460}, {9000, 8960}};

	for (unsigned int i = 0; i < 5 * 15 * 4; i++) {
		bool sack = i & 1, ecn = i & 2;
		uint8_t scale = i / 4 % 15;
		struct tcp_header syn = ends_syn(sizes[i / 60][0], scale, sack, true, ecn);
		struct tcp_header answer, ack;
		struct tcp_connection c;
		struct tcp_received r;

		stack.now_ms += 7919;
		tcp_cookie_answer(&stack, &secret, &ends, &syn, 30000, &answer);
		cr_assert_eq(answer.ack, syn.seq + 1);
		cr_assert_eq(answer.scale, settings.scale);
		cr_assert_not(sequence_after(answer.ts_value - tcp_secret_timestamp(&secret, &ends),
					     stack.now_ms));
		ack = ends_ack(&syn, &answer);
		cr_assert(tcp_cookie_open(&stack, &secret, &ends, &ack, 9000, 30000, &c));
		cr_assert_eq(c.mss, sizes[i / 60][1] - TCP_TIMESTAMP);
		cr_assert_eq(c.snd_scale, scale);
		cr_assert_eq(c.sack, sack);
		cr_assert_eq(c.ecn, ecn);
		tcp_receive(&stack, &c, &ack, false, &r);
		cr_assert(r.established);
		cr_assert_eq(c.snd_wnd, 100u << scale);
		tcp_release(&stack, &c);
	}
}

Test(tcp_ends, without_a_timestamp_a_cookie_has_the_mss_only)
{
	struct tcp_header syn = ends_syn(1400, 7, true, false, true), answer, ack;
	struct tcp_connection c;

	tcp_cookie_answer(&stack, &secret, &ends, &syn, 30000, &answer);
	cr_expect_eq(answer.scale, TCP_SCALE_NONE);
	cr_expect_not(answer.sack_permitted);
	cr_expect_eq(answer.flags, TCP_BIT_SYN | TCP_BIT_ACK);
	ack = ends_ack(&syn, &answer);
	cr_assert(tcp_cookie_open(&stack, &secret, &ends, &ack, 9000, 30000, &c));
	cr_expect_eq(c.mss, 1400);
	cr_expect_not(c.sack);
	cr_expect_not(c.scales);
}

Test(tcp_ends, other_numbers_are_no_cookies)
{
	struct tcp_header syn = ends_syn(1460, 7, true, true, false), answer, ack, bad;
	struct tcp_ends elsewhere = ends;
	struct tcp_connection c;
	unsigned int good = 0;

	elsewhere.zone++;
	tcp_cookie_answer(&stack, &secret, &ends, &syn, 30000, &answer);
	ack = ends_ack(&syn, &answer);
	cr_expect_not(tcp_cookie_open(&stack, &secret, &elsewhere, &ack, 9000, 1, &c));
	cr_expect_not(tcp_cookie_open(&stack, &other_secret, &ends, &ack, 9000, 1, &c));
	bad = ack;
	bad.flags |= TCP_BIT_RST;
	cr_expect_not(tcp_cookie_open(&stack, &secret, &ends, &bad, 9000, 1, &c));
	bad = ack;
	bad.seq++;
	cr_expect_not(tcp_cookie_open(&stack, &secret, &ends, &bad, 9000, 1, &c));
	/* 2 minutes of 256, 16 sizes of 2^24: a guess in 2^27 is right. */
	for (uint32_t i = 0; i < 1000000; i++) {
		bad = ack;
		bad.ack += i * 2654435761u;
		good += i > 0 && tcp_cookie_open(&stack, &secret, &ends, &bad, 9000, 1, &c);
	}
	cr_expect_leq(good, 1);
	stack.now_ms += TCP_COOKIE_MINUTES * 60000;
	cr_expect_not(tcp_cookie_open(&stack, &secret, &ends, &ack, 9000, 1, &c));
}

Test(tcp_ends, a_later_segment_of_a_client_with_a_cookie_is_waited_for)
{
	struct tcp_header answer, early, old;
	unsigned int good[2] = {0};

	for (unsigned int timestamps = 0; timestamps < 2; timestamps++) {
		struct tcp_header syn = ends_syn(1460, 7, true, timestamps, false);

		stack.counters.cookies_out = 0;
		stack.now_ms += 60000 * TCP_COOKIE_MINUTES;
		tcp_cookie_answer(&stack, &secret, &ends, &syn, 30000, &answer);
		early = ends_ack(&syn, &answer);
		early.seq += 1448;
		early.flags |= TCP_BIT_FIN;
		cr_expect(tcp_cookie_may_come(&stack, &secret, &ends, &early));
		cr_expect_not(tcp_cookie_may_come(&stack, &other_secret, &ends, &early) &&
			      timestamps);
		old = early;
		old.flags |= TCP_BIT_RST;
		cr_expect_not(tcp_cookie_may_come(&stack, &secret, &ends, &old));
		for (uint32_t i = 1; i < 100000; i++) {
			old = early;
			old.ack += i * 2654435761u;
			old.ts_echo += i * 2654435761u;
			good[timestamps] += tcp_cookie_may_come(&stack, &secret, &ends, &old);
		}
		/* No cookie was ever given, or none that could still come back. */
		stack.counters.cookies_out--;
		cr_expect_not(tcp_cookie_may_come(&stack, &secret, &ends, &early));
		stack.counters.cookies_out++;
		stack.now_ms += 60000 * TCP_COOKIE_MINUTES;
		cr_expect_not(tcp_cookie_may_come(&stack, &secret, &ends, &early));
	}
	cr_expect(good[0] > 600 && good[0] < 1000, "%u of 100000", good[0]);
	cr_expect_leq(good[1], 3);
}

/* --- TIME-WAIT ----------------------------------------------------------------------------------
 */

static struct tcp_time_wait ends_wait(bool timestamps)
{
	return (struct tcp_time_wait){.snd_nxt = 1000,
				      .rcv_nxt = 2000,
				      .ts_recent = 50,
				      .challenge_ms = stack.now_ms - 60000,
				      .timestamps = timestamps};
}

static enum tcp_time_wait_verdict ends_late(struct tcp_time_wait *w, uint8_t flags, uint32_t seq,
					    uint32_t length, uint32_t ts, struct tcp_header *out)
{
	struct tcp_header h = {.seq = seq,
			       .ack = 1000,
			       .flags = flags,
			       .length = length,
			       .has_timestamp = w->timestamps,
			       .ts_value = ts,
			       .scale = TCP_SCALE_NONE};

	return tcp_time_wait_receive(w, stack.now_ms, &h, out);
}

Test(tcp_ends, time_wait_answers_the_last_fin_again)
{
	struct tcp_time_wait w = ends_wait(true);
	struct tcp_header out;

	cr_expect_eq(ends_late(&w, TCP_BIT_FIN | TCP_BIT_ACK, 1999, 0, 51, &out),
		     TCP_TIME_WAIT_RESTART);
	cr_expect_eq(out.ack, 2000);
	cr_expect_eq(out.seq, 1000);
	cr_expect_eq(ends_late(&w, TCP_BIT_ACK, 2000, 0, 51, &out), TCP_TIME_WAIT_IGNORE);
	cr_expect_eq(ends_late(&w, TCP_BIT_ACK, 1900, 50, 51, &out), TCP_TIME_WAIT_ANSWER);
	cr_expect_eq(ends_late(&w, TCP_BIT_ACK, 1900, 50, 51, &out), TCP_TIME_WAIT_IGNORE);
}

Test(tcp_ends, time_wait_is_not_assassinated)
{
	struct tcp_time_wait w = ends_wait(true);
	struct tcp_header out;

	cr_expect_eq(ends_late(&w, TCP_BIT_RST, 2000, 0, 51, &out), TCP_TIME_WAIT_IGNORE);
}

Test(tcp_ends, time_wait_gives_way_to_a_new_connection)
{
	struct tcp_time_wait stamped = ends_wait(true), plain = ends_wait(false);
	struct tcp_header out;

	/* RFC 6191: the timestamp decides, for any sequence number */
	cr_expect_eq(ends_late(&stamped, TCP_BIT_SYN, 5, 0, 51, &out), TCP_TIME_WAIT_REOPEN);
	cr_expect(sequence_after(out.seq, 1000 + UINT16_MAX));
	cr_expect_eq(ends_late(&stamped, TCP_BIT_SYN, 3000, 0, 49, &out), TCP_TIME_WAIT_ANSWER);
	cr_expect_eq(ends_late(&stamped, TCP_BIT_SYN, 3000, 0, 50, &out), TCP_TIME_WAIT_REOPEN);
	cr_expect_eq(ends_late(&plain, TCP_BIT_SYN, 2001, 0, 0, &out), TCP_TIME_WAIT_REOPEN);
	cr_expect_eq(ends_late(&plain, TCP_BIT_SYN, 1500, 0, 0, &out), TCP_TIME_WAIT_ANSWER);
	cr_expect_eq(out.ack, 2000);
}
