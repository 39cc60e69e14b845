/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cases of one connection, a row per segment, numbers relative to each end's SYN (as tcpdump
 * prints them). Each runs from several initial numbers, so that each crosses 2^32 and 2^31.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "conntrack.h"
#include "tcp_state.h"

#define C TCP_FROM_CLIENT
#define S TCP_TO_CLIENT

struct row {
	enum tcp_direction from;
	const char *flags; /* of "SAFRPU" */
	uint32_t seq, ack;
	uint16_t window;
	uint32_t length;
	struct {
		enum tcp_verdict verdict;
		enum tcp_reason reason;
		enum tcp_state state; /* afterwards */
	} expected;
	uint8_t scale; /* option, plus one; zero for none */
};

#define OK(state)                                                                                  \
	{                                                                                          \
		TCP_VERDICT_ACCEPT, TCP_REASON_NONE, TCP_STATE_##state                             \
	}
#define NEW(state)                                                                                 \
	{                                                                                          \
		TCP_VERDICT_REOPEN, TCP_REASON_NONE, TCP_STATE_##state                             \
	}
#define DUP(state)                                                                                 \
	{                                                                                          \
		TCP_VERDICT_DUPLICATE, TCP_REASON_OLD, TCP_STATE_##state                           \
	}
#define CHALLENGE(reason, state)                                                                   \
	{                                                                                          \
		TCP_VERDICT_CHALLENGE, TCP_REASON_##reason, TCP_STATE_##state                      \
	}
#define BAD(reason, state)                                                                         \
	{                                                                                          \
		TCP_VERDICT_INVALID, TCP_REASON_##reason, TCP_STATE_##state                        \
	}

#define W 65535

/* clang-format off */
#define OPENED                                                                                     \
	{C, "S",  0, 0, W, 0, OK(SYN_SENT)},                                                       \
	{S, "SA", 0, 1, W, 0, OK(SYN_RECV)},                                                       \
	{C, "A",  1, 1, W, 0, OK(ESTABLISHED)}
#define CLIENT_CLOSED                                                                              \
	OPENED,                                                                                    \
	{C, "FA", 1, 1, W, 0, OK(FIN_WAIT)},                                                       \
	{S, "A",  1, 2, W, 0, OK(CLOSE_WAIT)},                                                     \
	{S, "FA", 1, 2, W, 0, OK(LAST_ACK)},                                                       \
	{C, "A",  2, 2, W, 0, OK(TIME_WAIT)}
/* clang-format on */

static uint8_t flags_of(const char *letters)
{
	static const uint8_t bit[128] = {
		['F'] = TCP_BIT_FIN, ['S'] = TCP_BIT_SYN, ['R'] = TCP_BIT_RST,
		['P'] = TCP_BIT_PSH, ['A'] = TCP_BIT_ACK, ['U'] = TCP_BIT_URG,
	};
	uint8_t flags = 0;

	for (; *letters != '\0'; letters++)
		flags |= bit[(unsigned char)*letters & 127];
	return flags;
}

/* Compares all fields but those a challenge ACK may change: the server's answer, and its SYN. */
static bool same_but_kept(const struct tcp_track *a, const struct tcp_track *b)
{
	struct tcp_track x = *a;

	x.syn_seq = b->syn_seq;
	x.syn_length = b->syn_length;
	x.syn_window = b->syn_window;
	x.syn_saved = b->syn_saved;
	x.syn_scale = b->syn_scale;
	if (b->state == TCP_STATE_SYN_SENT)
		x.side[S].ack = b->side[S].ack;
	return memcmp(&x, b, sizeof(x)) == 0;
}

static bool change_allowed(enum tcp_verdict verdict, const struct tcp_track *before,
			   const struct tcp_track *after)
{
	switch (verdict) {
	case TCP_VERDICT_INVALID:
	case TCP_VERDICT_DUPLICATE:
		return memcmp(before, after, sizeof(*before)) == 0;
	case TCP_VERDICT_CHALLENGE:
		return same_but_kept(before, after);
	default:
		return true;
	}
}

static void tell_from(const struct row *rows, unsigned int n, bool pickup, const uint32_t isn[2])
{
	struct tcp_track track = {0};

	for (unsigned int i = 0; i < n; i++) {
		const struct row *r = &rows[i];
		struct tcp_segment s = {
			.seq = r->seq + isn[r->from],
			.ack = r->ack + isn[!r->from],
			.length = r->length,
			.window = r->window,
			.flags = flags_of(r->flags),
			.scale = r->scale ? r->scale - 1 : TCP_SCALE_NONE,
		};
		struct tcp_track before = track;
		struct tcp_outcome got = conntrack_tcp_track(&track, &s, r->from, pickup);

		cr_assert(got.verdict == r->expected.verdict && got.reason == r->expected.reason &&
				  track.state == r->expected.state,
			  "row %u, SYNs at %u and %u: %s, %s, %s", i, isn[0], isn[1],
			  conntrack_tcp_verdict_name(got.verdict),
			  conntrack_tcp_reason_name(got.reason),
			  conntrack_tcp_state_name(track.state));
		cr_assert(change_allowed(got.verdict, &before, &track), "row %u has changed more",
			  i);
	}
}

static void tell(const struct row *rows, unsigned int n, bool pickup)
{
	static const uint32_t isns[][2] = {
		{0, 0},
		{1000000, 3000000000},
		{UINT32_MAX, UINT32_MAX - 500},
		{INT32_MAX, 1u << 31},
		{UINT32_MAX - 30000, INT32_MAX - 2000u},
	};

	for (unsigned int i = 0; i < sizeof(isns) / sizeof(isns[0]); i++)
		tell_from(rows, n, pickup, isns[i]);
}

#define STORY(name, pickup, ...)                                                                   \
	Test(conntrack_tcp, name)                                                                  \
	{                                                                                          \
		static const struct row rows[] = {__VA_ARGS__};                                    \
		tell(rows, sizeof(rows) / sizeof(rows[0]), pickup);                                \
	}

/* clang-format off */

/* Opening */

STORY(a_connection_opens_talks_and_closes, false,
	CLIENT_CLOSED)

STORY(only_a_client_s_syn_opens, false,
	{S, "S",  0, 0, W, 0, BAD(SIDE, NONE)},
	{C, "SA", 0, 1, W, 0, BAD(NOT_OPEN, NONE)},
	{S, "SA", 0, 1, W, 0, BAD(NOT_OPEN, NONE)},
	{C, "A",  1, 1, W, 0, BAD(NOT_OPEN, NONE)},
	{C, "PA", 1, 1, W, 9, BAD(NOT_OPEN, NONE)},
	{C, "FA", 1, 1, W, 0, BAD(NOT_OPEN, NONE)},
	{C, "R",  1, 0, 0, 0, BAD(NOT_OPEN, NONE)},
	{S, "RA", 0, 1, 0, 0, BAD(NOT_OPEN, NONE)})

STORY(a_retransmitted_syn_and_syn_ack_change_nothing, false,
	{C, "S",  0, 0, W, 0, OK(SYN_SENT)},
	{C, "S",  0, 0, W, 0, OK(SYN_SENT)},
	{S, "SA", 0, 1, W, 0, OK(SYN_RECV)},
	{C, "S",  0, 0, W, 0, OK(SYN_RECV)},
	{S, "SA", 0, 1, W, 0, OK(SYN_RECV)},
	{C, "A",  1, 1, W, 0, OK(ESTABLISHED)},
	{S, "SA", 0, 1, W, 0, DUP(ESTABLISHED)},
	{S, "SA", 0, 2, W, 0, CHALLENGE(SYN_AGAIN, ESTABLISHED)},
	{C, "S",  0, 0, W, 0, DUP(ESTABLISHED)},
	{S, "SA", 0, 1, W, 0, DUP(ESTABLISHED)},
	{C, "A",  1, 1, W, 0, OK(ESTABLISHED)})

STORY(the_client_cannot_go_on_before_the_server_answers, false,
	{C, "S",  0, 0, W, 0, OK(SYN_SENT)},
	{C, "A",  1, 1, W, 0, BAD(HANDSHAKE, SYN_SENT)},
	{C, "PA", 1, 1, W, 9, BAD(HANDSHAKE, SYN_SENT)},
	{C, "SA", 0, 1, W, 0, BAD(HANDSHAKE, SYN_SENT)},
	{C, "R",  1, 0, 0, 0, BAD(RST_SEQ, SYN_SENT)})

STORY(only_an_ack_of_the_server_s_syn_establishes, false,
	{C, "S",  0, 0, W, 0, OK(SYN_SENT)},
	{S, "SA", 0, 1, W, 0, OK(SYN_RECV)},
	{C, "A",  1, 0, W, 0, BAD(ACK_BEFORE, SYN_RECV)},
	{C, "A",  1, 2, W, 0, BAD(ACK_AFTER, SYN_RECV)},
	{C, "A",  W + 3, 1, W, 0, BAD(SEQ_AFTER, SYN_RECV)},
	{C, "PA", 1, 1, W, 9, OK(ESTABLISHED)})

STORY(a_syn_with_data_may_be_taken_whole, false,
	{C, "S",  0, 0,   W, 500, OK(SYN_SENT)},
	{S, "SA", 0, 501, W, 0,   OK(SYN_RECV)},
	{S, "PA", 1, 501, W, 900, OK(SYN_RECV)},
	{C, "A",  501, 901, W, 0, OK(ESTABLISHED)})

STORY(a_syn_ack_with_data_may_be_acknowledged_without_them, false,
	{C, "S",  0, 0, W, 0,  OK(SYN_SENT)},
	{S, "SA", 0, 1, W, 10, OK(SYN_RECV)},
	{S, "R",  2, 0, 0, 0,  CHALLENGE(RST_INEXACT, SYN_RECV)},
	{C, "A",  1, 1, W, 0,  OK(ESTABLISHED)},
	{S, "R",  1, 0, 0, 0,  OK(CLOSE)})

STORY(a_syn_with_data_may_be_taken_without_them, false,
	{C, "S",  0, 0,   W, 500, OK(SYN_SENT)},
	{S, "SA", 0, 502, W, 0,   CHALLENGE(OTHER_SYN, SYN_SENT)},
	{C, "S",  0, 0,   W, 0,   OK(SYN_SENT)},
	{S, "SA", 0, 1,   W, 0,   OK(SYN_RECV)},
	{C, "PA", 1, 1,   W, 500, OK(ESTABLISHED)},
	{S, "A",  1, 501, W, 0,   OK(ESTABLISHED)})

STORY(a_server_of_a_small_window_may_leave_the_data_of_a_syn, false,
	{C, "S",  0, 0, W,   500, OK(SYN_SENT)},
	{S, "SA", 0, 1, 100, 0,   OK(SYN_RECV)},
	{C, "PA", 1, 1, W,   100, OK(ESTABLISHED)},
	{C, "PA", 101, 1, W, 100, BAD(SEQ_AFTER, ESTABLISHED)})

STORY(simultaneous_open, false,
	{C, "S",  0, 0, W, 0, OK(SYN_SENT)},
	{S, "S",  0, 0, W, 0, OK(SYN_SENT2)},
	{S, "S",  0, 0, W, 0, OK(SYN_SENT2)},
	{C, "S",  0, 0, W, 0, OK(SYN_SENT2)},
	{C, "SA", 0, 1, W, 0, OK(SYN_RECV)},
	{S, "SA", 9, 1, W, 0, CHALLENGE(SYN_AGAIN, SYN_RECV)},
	{S, "SA", 0, 1, W, 0, OK(ESTABLISHED)},
	{C, "PA", 1, 1, W, 9, OK(ESTABLISHED)},
	{S, "A",  1, 10, W, 0, OK(ESTABLISHED)})

STORY(simultaneous_open_whose_syn_acks_are_lost, false,
	{C, "S",  0, 0, W, 0, OK(SYN_SENT)},
	{S, "S",  0, 0, W, 0, OK(SYN_SENT2)},
	{S, "SA", 0, 1, W, 0, OK(SYN_RECV)},
	{S, "SA", 0, 1, W, 0, OK(SYN_RECV)},
	{C, "A",  1, 1, W, 0, OK(ESTABLISHED)})

STORY(a_syn_in_the_server_s_name_keeps_nobody_out, false,
	{C, "S",  0, 0, W, 0, OK(SYN_SENT)},
	{S, "S",  777777, 0, W, 0, OK(SYN_SENT2)},
	{S, "S",  888888, 0, W, 0, BAD(HANDSHAKE, SYN_SENT2)},
	{S, "SA", 0, 1, W, 0, OK(SYN_RECV)},
	{S, "S",  888888, 0, W, 0, BAD(HANDSHAKE, SYN_RECV)},
	{C, "A",  1, 1, W, 0, OK(ESTABLISHED)})

STORY(a_second_cookie_takes_the_place_of_the_first, false,
	{C, "S",  0, 0, W, 0, OK(SYN_SENT)},
	{S, "SA", 123456789, 1, W, 0, OK(SYN_RECV)},
	{C, "S",  0, 0, W, 0, OK(SYN_RECV)},
	{S, "SA", 0, 1, W, 0, OK(SYN_RECV)},
	{C, "A",  1, 1, W, 0, OK(ESTABLISHED)},
	{S, "SA", 123456789, 1, W, 0, CHALLENGE(SYN_AGAIN, ESTABLISHED)})

STORY(a_refused_connection_is_closed, false,
	{C, "S",  0, 0, W, 0, OK(SYN_SENT)},
	{S, "R",  1, 0, 0, 0, BAD(RST_ACK, SYN_SENT)},
	{S, "RA", 0, 0, 0, 0, BAD(RST_ACK, SYN_SENT)},
	{S, "RA", 0, 2, 0, 0, BAD(RST_ACK, SYN_SENT)},
	{S, "RA", 0, 1, 0, 0, OK(CLOSE)},
	{C, "S",  0, 0, W, 0, NEW(SYN_SENT)})

STORY(a_server_that_died_in_the_handshake_refuses_the_next_syn, false,
	{C, "S",  0, 0, W, 0, OK(SYN_SENT)},
	{S, "SA", 5, 1, W, 0, OK(SYN_RECV)},
	{C, "S",  0, 0, W, 0, OK(SYN_RECV)},
	{S, "RA", 4294900000, 1, 0, 0, OK(CLOSE)})

STORY(a_client_that_did_not_mean_it_resets_the_syn_ack, false,
	{C, "S",  0, 0, W, 0, OK(SYN_SENT)},
	{S, "SA", 0, 1, W, 0, OK(SYN_RECV)},
	{C, "R",  2, 0, 0, 0, CHALLENGE(RST_INEXACT, SYN_RECV)},
	{C, "R",  1, 0, 0, 0, OK(CLOSE)})

STORY(another_syn_waits_for_the_server_to_choose, false,
	{C, "S",  0, 0, W, 0, OK(SYN_SENT)},
	{C, "S",  90000, 0, W, 0, CHALLENGE(SYN_AGAIN, SYN_SENT)},
	{S, "SA", 0, 90001, W, 0, NEW(SYN_RECV)},
	{C, "A",  90001, 1, W, 0, OK(ESTABLISHED)})

STORY(another_syn_does_not_replace_the_first, false,
	{C, "S",  0, 0, W, 0, OK(SYN_SENT)},
	{C, "S",  90000, 0, W, 0, CHALLENGE(SYN_AGAIN, SYN_SENT)},
	{S, "SA", 0, 1, W, 0, OK(SYN_RECV)},
	{C, "S",  90000, 0, W, 0, CHALLENGE(SYN_AGAIN, SYN_RECV)},
	{C, "A",  1, 1, W, 0, OK(ESTABLISHED)})

STORY(another_syn_may_be_refused, false,
	{C, "S",  0, 0, W, 0, OK(SYN_SENT)},
	{C, "S",  90000, 0, W, 0, CHALLENGE(SYN_AGAIN, SYN_SENT)},
	{S, "RA", 0, 90001, 0, 0, OK(CLOSE)})

/* netfilter's cases */

STORY(ack_loss_stall, false,
	OPENED,
	{C, "PA", 1,     1,     257, 16790, OK(ESTABLISHED)},
	{S, "A",  1,     16791, W,   0,     OK(ESTABLISHED)},
	{C, "PA", 16791, 1,     257, 16790, OK(ESTABLISHED)},
	{S, "A",  1,     33581, W,   0,     OK(ESTABLISHED)},
	{C, "PA", 33581, 1,     257, 16790, OK(ESTABLISHED)},
	{S, "A",  1,     50371, W,   0,     OK(ESTABLISHED)},
	{C, "PA", 50371, 1,     257, 16790, OK(ESTABLISHED)},
	{S, "A",  1,     67161, W,   0,     OK(ESTABLISHED)},
	{C, "PA", 1,     1,     257, 1460,  DUP(ESTABLISHED)},
	{S, "A",  1,     67161, W,   0,     OK(ESTABLISHED)})

STORY(inexact_rst, false,
	OPENED,
	{S, "A",  1,    1,    W, 3000, OK(ESTABLISHED)},
	{C, "A",  1,    3001, W, 0,    OK(ESTABLISHED)},
	{C, "PA", 1,    3001, W, 1000, OK(ESTABLISHED)},
	{S, "FA", 3001, 1001, W, 0,    OK(FIN_WAIT)},
	{C, "A",  1001, 3002, W, 0,    OK(CLOSE_WAIT)},
	{C, "RA", 1100, 3002, W, 0,    CHALLENGE(RST_INEXACT, CLOSE_WAIT)},
	{C, "RA", 1001, 3002, W, 0,    OK(CLOSE)},
	{S, "R",  2001, 0,    0, 0,    DUP(CLOSE)})

STORY(rst_invalid, false,
	OPENED,
	{S, "A",  1,       1,    W, 3000, OK(ESTABLISHED)},
	{C, "A",  1,       3001, W, 0,    OK(ESTABLISHED)},
	{S, "R",  0,       0,    0, 0,    BAD(RST_SEQ, ESTABLISHED)},
	{S, "R",  1000000, 0,    0, 0,    BAD(RST_SEQ, ESTABLISHED)},
	{S, "R",  42,      0,    0, 0,    BAD(RST_SEQ, ESTABLISHED)},
	{C, "PA", 1,       3001, W, 1000, OK(ESTABLISHED)},
	{S, "A",  3001,    1001, W, 0,    OK(ESTABLISHED)},
	{S, "RA", 3000,    1001, 0, 0,    BAD(RST_SEQ, ESTABLISHED)},
	{S, "RA", 3001 + W + 2, 1001, 0, 0, BAD(RST_SEQ, ESTABLISHED)},
	{S, "RA", 3002,    1001, 0, 0,    CHALLENGE(RST_INEXACT, ESTABLISHED)},
	{S, "RA", 3001 + W, 1001, 0, 0,   CHALLENGE(RST_INEXACT, ESTABLISHED)},
	{S, "RA", 3001,    1001, 0, 0,    OK(CLOSE)})

STORY(syn_challenge_ack, false,
	{C, "S",  0,         0,         W, 0, OK(SYN_SENT)},
	{S, "A",  145824453, 643160523, 240, 0, CHALLENGE(OTHER_SYN, SYN_SENT)},
	{C, "R",  643160524, 0,         0, 0, BAD(RST_SEQ, SYN_SENT)},
	{C, "R",  643160523, 0,         0, 0, CHALLENGE(OTHER_SYN, SYN_SENT)},
	{C, "S",  0,         0,         W, 0, OK(SYN_SENT)},
	{S, "SA", 0,         1,         250, 0, OK(SYN_RECV)},
	{C, "A",  1,         1,         256, 0, OK(ESTABLISHED)})

STORY(synack_old, false,
	{C, "S",  0,         0,         W, 0, OK(SYN_SENT)},
	{S, "SA", 145824453, 643160523, 240, 0, CHALLENGE(OTHER_SYN, SYN_SENT)},
	{C, "R",  643160523, 0,         0, 0, CHALLENGE(OTHER_SYN, SYN_SENT)},
	{C, "S",  0,         0,         W, 0, OK(SYN_SENT)},
	{S, "SA", 145758918, 1,         250, 0, OK(SYN_RECV)},
	{C, "PA", 1,         145758919, 256, 1, OK(ESTABLISHED)})

STORY(synack_reuse, false,
	OPENED,
	{C, "PA", 1,    1,    257, 100, OK(ESTABLISHED)},
	{S, "A",  1,    101,  256, 0,   OK(ESTABLISHED)},
	{C, "S",  2000, 0,    W,   0,   CHALLENGE(SYN_AGAIN, ESTABLISHED)},
	{S, "A",  1,    101,  256, 0,   OK(ESTABLISHED)},
	{C, "RA", 101,  1,    257, 0,   OK(CLOSE)},
	{C, "S",  2000, 0,    W,   0,   NEW(SYN_SENT)},
	{S, "SA", 7000, 2001, W,   0,   OK(SYN_RECV)},
	{C, "A",  2001, 7001, W,   0,   OK(ESTABLISHED)})

/* One end forgot */

STORY(a_client_that_restarted_opens_anew, false,
	OPENED,
	{C, "PA", 1,          1,   W, 9, OK(ESTABLISHED)},
	{C, "S",  3000000000, 0,   W, 0, CHALLENGE(SYN_AGAIN, ESTABLISHED)},
	{S, "A",  1,          10,  W, 0, OK(ESTABLISHED)},
	{C, "R",  10,         0,   0, 0, OK(CLOSE)},
	{C, "S",  3000000000, 0,   W, 0, NEW(SYN_SENT)},
	{S, "SA", 500, 3000000001, W, 0, OK(SYN_RECV)},
	{C, "A",  3000000001, 501, W, 0, OK(ESTABLISHED)})

STORY(a_server_that_restarted_resets, false,
	OPENED,
	{S, "PA", 1,  1, W, 70, OK(ESTABLISHED)},
	{C, "PA", 1, 71, W, 9,  OK(ESTABLISHED)},
	{S, "R",  71, 0, 0, 0,  OK(CLOSE)})

STORY(when_both_have_forgotten_the_server_s_syn_ack_reopens, false,
	OPENED,
	{C, "S",  9000, 0,    W, 0, CHALLENGE(SYN_AGAIN, ESTABLISHED)},
	{S, "SA", 5000, 9002, W, 0, CHALLENGE(SYN_AGAIN, ESTABLISHED)},
	{C, "SA", 5000, 9001, W, 0, CHALLENGE(SYN_AGAIN, ESTABLISHED)},
	{S, "SA", 5000, 9001, W, 0, NEW(SYN_RECV)},
	{C, "A",  9001, 5001, W, 0, OK(ESTABLISHED)})

STORY(when_both_have_forgotten_the_server_may_refuse, false,
	OPENED,
	{C, "S",  9000, 0,          W, 0, CHALLENGE(SYN_AGAIN, ESTABLISHED)},
	{S, "RA", 4294900000, 9001, 0, 0, OK(CLOSE)})

STORY(a_server_s_syn_in_a_live_connection_is_challenged, false,
	OPENED,
	{S, "S",  9000, 0, W, 0, CHALLENGE(SYN_AGAIN, ESTABLISHED)},
	{C, "A",  1,    1, W, 0, OK(ESTABLISHED)},
	{C, "SA", 77,   9001, W, 0, CHALLENGE(SYN_AGAIN, ESTABLISHED)})

/* Windows */

STORY(a_window_bounds_what_may_be_sent, false,
	{C, "S",  0,    0,    1000, 0,    OK(SYN_SENT)},
	{S, "SA", 0,    1,    2000, 0,    OK(SYN_RECV)},
	{C, "A",  1,    1,    1000, 0,    OK(ESTABLISHED)},
	{S, "PA", 1,    1,    2000, 1002, BAD(SEQ_AFTER, ESTABLISHED)},
	{S, "PA", 1,    1,    2000, 1000, OK(ESTABLISHED)},
	{C, "PA", 2002, 1001, 1000, 1,    BAD(SEQ_AFTER, ESTABLISHED)},
	{C, "PA", 1901, 1001, 1000, 100,  OK(ESTABLISHED)},
	{C, "PA", 1,    1001, 1000, 1900, OK(ESTABLISHED)},
	{S, "A",  1001, 2001, 2500, 0,    OK(ESTABLISHED)},
	{C, "PA", 2001, 1001, 1000, 2502, BAD(SEQ_AFTER, ESTABLISHED)},
	{C, "PA", 2001, 1001, 1000, 2500, OK(ESTABLISHED)})

/* RFC 9293, 3.10.7.4: the repeated segment moves SND.UNA, but its window is not taken */
STORY(a_sender_may_count_an_old_window_from_a_new_ack, false,
	{C, "S",  0,   0,   1000, 0,    OK(SYN_SENT)},
	{S, "SA", 0,   1,   1000, 0,    OK(SYN_RECV)},
	{C, "PA", 1,   1,   1000, 500,  OK(ESTABLISHED)},
	{S, "PA", 1,   1,   1000, 100,  OK(ESTABLISHED)},
	{S, "PA", 101, 1,   1000, 100,  OK(ESTABLISHED)},
	{S, "PA", 1,   501, 500,  100,  OK(ESTABLISHED)},
	{C, "PA", 501, 201, 1000, 1000, OK(ESTABLISHED)})

STORY(numbers_of_long_ago_are_nobody_s, false,
	OPENED,
	{C, "PA", 1,      1,      W, 60000, OK(ESTABLISHED)},
	{S, "A",  1,      60001,  W, 0,     OK(ESTABLISHED)},
	{C, "PA", 60001,  1,      W, 60000, OK(ESTABLISHED)},
	{S, "A",  1,      120001, W, 0,     OK(ESTABLISHED)},
	{C, "PA", 120001, 1,      W, 60000, OK(ESTABLISHED)},
	{S, "A",  1,      180001, W, 0,     OK(ESTABLISHED)},
	{C, "PA", 180001 - 2 * W - 1, 1, W, 9, BAD(SEQ_BEFORE, ESTABLISHED)},
	{C, "PA", 180001 - 2 * W, 1, W, 9,  DUP(ESTABLISHED)},
	{C, "PA", 180001 - W - 2, 1, W, 9,  DUP(ESTABLISHED)},
	{C, "PA", 180001 - W - 1, 1, W, 9,  OK(ESTABLISHED)},
	{C, "PA", 180001 + W + 2, 1, W, 0,  BAD(SEQ_AFTER, ESTABLISHED)},
	{C, "PA", 180001 + (1u << 31), 1, W, 0, BAD(SEQ_BEFORE, ESTABLISHED)})

STORY(acks_must_be_of_what_was_sent_within_a_window, false,
	OPENED,
	{S, "PA", 1,     1,      W, 60000, OK(ESTABLISHED)},
	{C, "A",  1,     60002,  W, 0,     BAD(ACK_AFTER, ESTABLISHED)},
	{C, "A",  1,     60001,  W, 0,     OK(ESTABLISHED)},
	{S, "PA", 60001, 1,      W, 60000, OK(ESTABLISHED)},
	{C, "A",  1,     120001, W, 0,     OK(ESTABLISHED)},
	{C, "A",  1,     120001 - W - 1, W, 0, BAD(ACK_BEFORE, ESTABLISHED)},
	{C, "A",  1,     120001 - W, W, 0, OK(ESTABLISHED)},
	{C, "PA", 1, 120001 + (1u << 31), W, 9, BAD(ACK_BEFORE, ESTABLISHED)},
	{C, "PA", 1, 2000000000, W, 9,     BAD(ACK_AFTER, ESTABLISHED)})

STORY(a_late_ack_passes_however_small_the_window, false,
	{C, "S",  0,  0,  9, 0, OK(SYN_SENT)},
	{S, "SA", 0,  1,  9, 0, OK(SYN_RECV)},
	{C, "A",  1,  1,  9, 0, OK(ESTABLISHED)},
	{S, "PA", 1,  1,  9, 9, OK(ESTABLISHED)},
	{C, "A",  1,  10, 9, 0, OK(ESTABLISHED)},
	{S, "PA", 10, 1,  9, 9, OK(ESTABLISHED)},
	{C, "A",  1,  19, 9, 0, OK(ESTABLISHED)},
	{C, "A",  1,  1,  9, 0, OK(ESTABLISHED)})

STORY(an_old_segment_with_an_impossible_ack_is_no_duplicate, false,
	OPENED,
	{C, "PA", 1,     1,     W, 60000, OK(ESTABLISHED)},
	{S, "A",  1,     60001, W, 0,     OK(ESTABLISHED)},
	{C, "PA", 60001, 1,     W, 60000, OK(ESTABLISHED)},
	{S, "A",  1,    120001, W, 0,     OK(ESTABLISHED)},
	{C, "PA", 1,     2,     W, 100,   BAD(ACK_AFTER, ESTABLISHED)},
	{C, "PA", 1,     1,     W, 100,   DUP(ESTABLISHED)})

STORY(retransmissions_pass, false,
	OPENED,
	{C, "PA", 1,    1,    W, 1460, OK(ESTABLISHED)},
	{C, "PA", 1461, 1,    W, 1460, OK(ESTABLISHED)},
	{C, "PA", 1,    1,    W, 1460, OK(ESTABLISHED)},
	{S, "A",  1,    2921, W, 0,    OK(ESTABLISHED)},
	{C, "PA", 1,    1,    W, 2920, OK(ESTABLISHED)},
	{S, "A",  1,    1461, W, 0,    OK(ESTABLISHED)})

STORY(scaling_counts_from_the_first_segment_after_the_syns, false,
	{C, "S",  0, 0, 1000, 0, OK(SYN_SENT), .scale = 1 + 2},
	{S, "SA", 0, 1, 500,  0, OK(SYN_RECV), .scale = 1 + 3},
	{C, "PA", 1, 1, 1000, 502, BAD(SEQ_AFTER, SYN_RECV)},
	{C, "A",  1, 1, 1000, 0, OK(ESTABLISHED)},
	{S, "PA", 1, 1, 500,  4002, BAD(SEQ_AFTER, ESTABLISHED)},
	{S, "PA", 1, 1, 500,  4000, OK(ESTABLISHED)},
	{C, "PA", 1, 4001, 1000, 4002, BAD(SEQ_AFTER, ESTABLISHED)},
	{C, "PA", 1, 4001, 1000, 4000, OK(ESTABLISHED)})

STORY(scaling_takes_two, false,
	{C, "S",  0, 0, 1000, 0, OK(SYN_SENT), .scale = 1 + 14},
	{S, "SA", 0, 1, 1000, 0, OK(SYN_RECV)},
	{C, "A",  1, 1, 1000, 0, OK(ESTABLISHED)},
	{S, "PA", 1, 1, 1000, 1002, BAD(SEQ_AFTER, ESTABLISHED)},
	{S, "PA", 1, 1, 1000, 1000, OK(ESTABLISHED)})

STORY(a_scale_of_zero_is_a_scale, false,
	{C, "S",  0, 0, 1000, 0, OK(SYN_SENT), .scale = 1 + 14},
	{S, "SA", 0, 1, 1000, 0, OK(SYN_RECV), .scale = 1 + 0},
	{C, "A",  1, 1, 1,    0, OK(ESTABLISHED)},
	{S, "PA", 1, 1, 1000, 16386, BAD(SEQ_AFTER, ESTABLISHED)},
	{S, "PA", 1, 1, 1000, 16384, OK(ESTABLISHED)})

STORY(the_widest_windows_leave_room, false,
	{C, "S",  0, 0, W, 0, OK(SYN_SENT), .scale = 1 + 14},
	{S, "SA", 0, 1, W, 0, OK(SYN_RECV), .scale = 1 + 14},
	{C, "A",  1, 1, W, 0, OK(ESTABLISHED)},
	{S, "A",  1, 1, W, 0, OK(ESTABLISHED)},
	{C, "PA", 1073725440 - 8, 1, W, 9, OK(ESTABLISHED)},
	{C, "PA", 1, 1, W, 1460, OK(ESTABLISHED)},
	{C, "PA", 1073725443, 1, W, 0, BAD(SEQ_AFTER, ESTABLISHED)},
	{S, "A",  1, 1073725441, W, 0, OK(ESTABLISHED)},
	{C, "PA", 2147450881 - 9, 1, W, 9, OK(ESTABLISHED)},
	{C, "PA", 1073725441, 1, W, 9, OK(ESTABLISHED)},
	{C, "PA", 2147450883, 1, W, 0, BAD(SEQ_AFTER, ESTABLISHED)},
	{C, "PA", 2147450884, 1, W, 9, BAD(SEQ_AFTER, ESTABLISHED)})

STORY(zero_window_probes_pass, false,
	{C, "S",  0,    0,    W,    0,    OK(SYN_SENT)},
	{S, "SA", 0,    1,    1000, 0,    OK(SYN_RECV)},
	{C, "PA", 1,    1,    W,    1000, OK(ESTABLISHED)},
	{S, "A",  1,    1001, 0,    0,    OK(ESTABLISHED)},
	{C, "PA", 1001, 1,    W,    1,    OK(ESTABLISHED)},
	{S, "A",  1,    1001, 0,    0,    OK(ESTABLISHED)},
	{C, "PA", 1001, 1,    W,    1,    OK(ESTABLISHED)},
	{S, "A",  1,    1002, 0,    0,    OK(ESTABLISHED)},
	{C, "A",  1002, 1,    W,    0,    OK(ESTABLISHED)},
	{C, "PA", 1002, 1,    W,    1,    OK(ESTABLISHED)},
	{S, "A",  1,    1002, 500,  0,    OK(ESTABLISHED)},
	{C, "PA", 1002, 1,    W,    500,  OK(ESTABLISHED)})

STORY(a_window_that_was_never_open_is_probed, false,
	{C, "S",  0, 0, 0, 0, OK(SYN_SENT)},
	{S, "SA", 0, 1, 0, 0, OK(SYN_RECV)},
	{C, "A",  1, 1, 0, 0, OK(ESTABLISHED)},
	{C, "PA", 1, 1, 0, 2, BAD(SEQ_AFTER, ESTABLISHED)},
	{C, "PA", 1, 1, 0, 1, OK(ESTABLISHED)},
	{C, "A",  2, 1, 0, 0, OK(ESTABLISHED)},
	{C, "PA", 2, 1, 0, 1, BAD(SEQ_AFTER, ESTABLISHED)},
	{S, "A",  1, 2, 0, 0, OK(ESTABLISHED)},
	{C, "PA", 2, 1, 0, 1, OK(ESTABLISHED)})

STORY(keepalives_pass, false,
	OPENED,
	{C, "PA", 1, 1, W, 9, OK(ESTABLISHED)},
	{S, "A",  1, 10, 0, 0, OK(ESTABLISHED)},
	{C, "A",  9, 1, W, 0, OK(ESTABLISHED)},
	{S, "A",  1, 10, W, 0, OK(ESTABLISHED)},
	{C, "A",  9, 1, W, 1, OK(ESTABLISHED)},
	{S, "A",  0, 10, W, 0, OK(ESTABLISHED)},
	{C, "A",  10, 1, W, 0, OK(ESTABLISHED)})

STORY(a_keepalive_to_an_end_that_never_opened_its_window_passes, false,
	{C, "S",  0, 0, 0, 0, OK(SYN_SENT)},
	{S, "SA", 0, 1, 0, 0, OK(SYN_RECV)},
	{C, "A",  1, 1, 0, 0, OK(ESTABLISHED)},
	{S, "A",  0, 1, 0, 0, OK(ESTABLISHED)},
	{C, "A",  0, 1, 0, 1, OK(ESTABLISHED)})

/* Closing */

STORY(the_server_may_close_first, false,
	OPENED,
	{S, "FA", 1, 1, W, 0, OK(FIN_WAIT)},
	{C, "A",  1, 2, W, 0, OK(CLOSE_WAIT)},
	{C, "FA", 1, 2, W, 0, OK(LAST_ACK)},
	{S, "A",  2, 2, W, 0, OK(TIME_WAIT)})

STORY(a_fin_may_acknowledge_the_other, false,
	OPENED,
	{C, "FA", 1, 1, W, 9, OK(FIN_WAIT)},
	{S, "FA", 1, 11, W, 0, OK(LAST_ACK)},
	{C, "A",  11, 2, W, 0, OK(TIME_WAIT)})

STORY(a_fin_may_finish_the_handshake, false,
	{C, "S",  0, 0, W, 0, OK(SYN_SENT)},
	{S, "SA", 0, 1, W, 0, OK(SYN_RECV)},
	{C, "FA", 1, 1, W, 9, OK(FIN_WAIT)},
	{S, "A",  1, 11, W, 0, OK(CLOSE_WAIT)})

STORY(a_server_may_close_before_the_handshake_is_over, false,
	{C, "S",  0, 0, W, 0, OK(SYN_SENT)},
	{S, "SA", 0, 1, W, 0, OK(SYN_RECV)},
	{S, "FA", 1, 1, W, 0, OK(FIN_WAIT)},
	{C, "A",  1, 1, W, 0, OK(FIN_WAIT)},
	{C, "A",  1, 2, W, 0, OK(CLOSE_WAIT)},
	{C, "FA", 1, 2, W, 0, OK(LAST_ACK)},
	{S, "A",  2, 2, W, 0, OK(TIME_WAIT)})

STORY(one_ack_may_be_for_syn_and_fin, false,
	{C, "S",  0, 0, W, 0, OK(SYN_SENT)},
	{S, "SA", 0, 1, W, 0, OK(SYN_RECV)},
	{S, "FA", 1, 1, W, 0, OK(FIN_WAIT)},
	{C, "A",  1, 2, W, 0, OK(CLOSE_WAIT)})

STORY(simultaneous_close, false,
	OPENED,
	{C, "FA", 1, 1, W, 0, OK(FIN_WAIT)},
	{S, "FA", 1, 1, W, 0, OK(CLOSING)},
	{C, "A",  2, 2, W, 0, OK(LAST_ACK)},
	{S, "A",  2, 2, W, 0, OK(TIME_WAIT)})

STORY(simultaneous_close_acknowledged_the_other_way_round, false,
	OPENED,
	{S, "FA", 1, 1, W, 0, OK(FIN_WAIT)},
	{C, "FA", 1, 1, W, 0, OK(CLOSING)},
	{C, "FA", 1, 1, W, 0, OK(CLOSING)},
	{C, "A",  2, 2, W, 0, OK(LAST_ACK)},
	{C, "A",  2, 2, W, 0, OK(LAST_ACK)},
	{S, "A",  2, 2, W, 0, OK(TIME_WAIT)})

STORY(half_a_connection_goes_on, false,
	OPENED,
	{C, "FA", 1,    1,    W, 9,    OK(FIN_WAIT)},
	{S, "PA", 1,    10,   W, 1460, OK(FIN_WAIT)},
	{C, "A",  11,   1461, W, 0,    OK(FIN_WAIT)},
	{S, "PA", 1461, 11,   W, 1460, OK(CLOSE_WAIT)},
	{C, "A",  11,   2921, W, 0,    OK(CLOSE_WAIT)},
	{S, "FA", 2921, 11,   W, 9,    OK(LAST_ACK)},
	{C, "A",  11,   2930, W, 0,    OK(LAST_ACK)},
	{C, "A",  11,   2931, W, 0,    OK(TIME_WAIT)})

STORY(fins_are_retransmitted, false,
	OPENED,
	{C, "FA", 1, 1, W, 9, OK(FIN_WAIT)},
	{C, "FA", 1, 1, W, 9, OK(FIN_WAIT)},
	{C, "FA", 10, 1, W, 0, OK(FIN_WAIT)},
	{S, "A",  1, 11, W, 0, OK(CLOSE_WAIT)},
	{C, "FA", 10, 1, W, 0, OK(CLOSE_WAIT)},
	{S, "FA", 1, 11, W, 0, OK(LAST_ACK)},
	{S, "FA", 1, 11, W, 0, OK(LAST_ACK)},
	{C, "A",  11, 2, W, 0, OK(TIME_WAIT)},
	{S, "FA", 1, 11, W, 0, OK(TIME_WAIT)},
	{C, "A",  11, 2, W, 0, OK(TIME_WAIT)})

STORY(a_fin_may_overtake_data_but_nothing_follows_it, false,
	OPENED,
	{C, "FA", 101, 1, W, 0, OK(FIN_WAIT)},
	{C, "PA", 1, 1, W, 100, OK(FIN_WAIT)},
	{C, "PA", 101, 1, W, 2, BAD(FIN, FIN_WAIT)},
	{C, "A",  103, 1, W, 0, BAD(FIN, FIN_WAIT)},
	{C, "FA", 100, 1, W, 0, BAD(FIN, FIN_WAIT)},
	{C, "FA", 102, 1, W, 0, BAD(FIN, FIN_WAIT)},
	{S, "PA", 1, 1, W, 100, OK(FIN_WAIT)},
	{S, "FA", 50, 1, W, 0, BAD(FIN, FIN_WAIT)},
	{S, "A",  101, 102, W, 0, OK(CLOSE_WAIT)})

STORY(time_wait_is_reopened_by_a_higher_syn, false,
	CLIENT_CLOSED,
	{C, "S",  0,   0,   W, 0, DUP(TIME_WAIT)},
	{C, "S",  1,   0,   W, 0, CHALLENGE(SYN_AGAIN, TIME_WAIT)},
	{S, "A",  2,   2,   W, 0, OK(TIME_WAIT)},
	{C, "S",  2,   0,   W, 0, NEW(SYN_SENT)},
	{S, "SA", 900, 3,   W, 0, OK(SYN_RECV)},
	{C, "A",  3,   901, W, 0, OK(ESTABLISHED)})

STORY(time_wait_is_reopened_by_a_lower_syn_if_the_server_takes_it, false,
	CLIENT_CLOSED,
	{C, "S",  4000000000, 0, 1000, 9, CHALLENGE(SYN_AGAIN, TIME_WAIT), .scale = 1 + 4},
	{S, "SA", 77, 4000000011, W, 0, CHALLENGE(SYN_AGAIN, TIME_WAIT)},
	{S, "SA", 77, 4000000010, W, 0, NEW(SYN_RECV), .scale = 1 + 1},
	{S, "PA", 78, 4000000010, W, 1002, BAD(SEQ_AFTER, SYN_RECV)},
	{S, "PA", 78, 4000000010, W, 1000, OK(SYN_RECV)},
	{C, "A",  4000000010, 78, 1000, 0, OK(ESTABLISHED)},
	{S, "PA", 78, 4000000010, W, 16000, OK(ESTABLISHED)})

STORY(a_server_s_syn_opens_nothing_anew, false,
	CLIENT_CLOSED,
	{S, "S",  90000, 0, W, 0, BAD(SIDE, TIME_WAIT)},
	{S, "SA", 90000, 2, W, 0, CHALLENGE(SYN_AGAIN, TIME_WAIT)})

STORY(time_wait_outlives_a_reset, false,
	CLIENT_CLOSED,
	{S, "R",  2, 0, 0, 0, OK(TIME_WAIT)},
	{S, "R",  1, 0, 0, 0, DUP(TIME_WAIT)},
	{S, "R",  90000, 0, 0, 0, BAD(RST_SEQ, TIME_WAIT)})

/* Segments in flight when a connection is reset may arrive, and be reset again. */
STORY(a_reset_connection_drains, false,
	OPENED,
	{S, "PA", 1,   1,   W, 100, OK(ESTABLISHED)},
	{C, "PA", 1,   1,   W, 500, OK(ESTABLISHED)},
	{C, "RA", 501, 101, W, 0,   OK(CLOSE)},
	{S, "A",  101, 501, W, 0,   OK(CLOSE)},
	{S, "PA", 101, 501, W, 100, OK(CLOSE)},
	{C, "R",  501, 0,   0, 0,   OK(CLOSE)},
	{C, "R",  1,   0,   0, 0,   DUP(CLOSE)},
	{C, "PA", 90000, 1, W, 9,   BAD(SEQ_AFTER, CLOSE)},
	{S, "S",  1,   0,   W, 0,   BAD(SIDE, CLOSE)},
	{C, "S",  0,   0,   W, 0,   DUP(CLOSE)},
	{C, "S",  1,   0,   W, 0,   NEW(SYN_SENT)})

STORY(a_refused_syn_may_be_tried_again, false,
	{C, "S",  0, 0, W, 0, OK(SYN_SENT)},
	{S, "RA", 0, 1, 0, 0, OK(CLOSE)},
	{C, "S",  0, 0, W, 0, NEW(SYN_SENT)},
	{S, "SA", 0, 1, W, 0, OK(SYN_RECV)},
	{S, "RA", 1, 1, 0, 0, OK(CLOSE)},
	{C, "S",  0, 0, W, 0, NEW(SYN_SENT)})

STORY(a_reset_of_what_is_on_its_way_is_exact, false,
	OPENED,
	{C, "PA", 1,   1, W, 500, OK(ESTABLISHED)},
	{C, "RA", 250, 1, W, 0,   CHALLENGE(RST_INEXACT, ESTABLISHED)},
	{C, "RA", 501, 1, W, 0,   OK(CLOSE)})

STORY(a_reset_ends_a_simultaneous_open, false,
	{C, "S",  0, 0, W, 0, OK(SYN_SENT)},
	{S, "S",  0, 0, W, 0, OK(SYN_SENT2)},
	{S, "R",  2, 0, 0, 0, CHALLENGE(RST_INEXACT, SYN_SENT2)},
	{S, "R",  1, 0, 0, 0, OK(CLOSE)})

STORY(a_reset_ends_a_close_at_its_first_step, false,
	OPENED,
	{C, "FA", 1, 1, W, 0, OK(FIN_WAIT)},
	{C, "R",  2, 0, 0, 0, OK(CLOSE)})

STORY(a_reset_ends_a_simultaneous_close, false,
	OPENED,
	{C, "FA", 1, 1, W, 0, OK(FIN_WAIT)},
	{S, "FA", 1, 1, W, 0, OK(CLOSING)},
	{S, "R",  2, 0, 0, 0, OK(CLOSE)})

STORY(a_reset_ends_a_close_at_its_last_step, false,
	OPENED,
	{C, "FA", 1, 1, W, 0, OK(FIN_WAIT)},
	{S, "FA", 1, 2, W, 0, OK(LAST_ACK)},
	{C, "R",  2, 0, 0, 0, OK(CLOSE)})

/* We came late */

STORY(a_pickup_believes_what_it_sees, true,
	{C, "PA", 5000,    9000,   100, 300,    OK(ESTABLISHED)},
	{S, "PA", 9000,    5300,   100, 100000, OK(ESTABLISHED)},
	{C, "A",  5300,    109000, 100, 0,      OK(ESTABLISHED)},
	{S, "A",  109000,  5300,   100, 0,      OK(ESTABLISHED)},
	{C, "FA", 5300,    109000, 100, 0,      OK(FIN_WAIT)},
	{S, "FA", 109000,  5301,   100, 0,      OK(LAST_ACK)},
	{C, "A",  5301,    109001, 100, 0,      OK(TIME_WAIT)})

STORY(a_pickup_may_begin_with_the_server, true,
	{S, "PA", 9000, 5000, 100, 300, OK(ESTABLISHED)},
	{C, "A",  5000, 9300, 100, 0,   OK(ESTABLISHED)},
	{C, "R",  5000, 0,    0,   0,   OK(CLOSE)})

STORY(a_pickup_may_have_missed_what_is_acknowledged, true,
	{C, "A",  5000, 9000, 100, 0,   OK(ESTABLISHED)},
	{C, "A",  5000, 9700, 100, 0,   OK(ESTABLISHED)},
	{S, "FA", 9600, 5000, 100, 0,   BAD(FIN, ESTABLISHED)},
	{S, "PA", 9700, 5000, 100, 100, OK(ESTABLISHED)},
	{S, "PA", 9000, 5000, 100, 100, OK(ESTABLISHED)},
	{C, "A",  5000, 2000000000, 100, 0, BAD(ACK_AFTER, ESTABLISHED)})

STORY(a_pickup_of_a_last_word, true,
	{C, "FA", 5000, 9000, 100, 0, OK(FIN_WAIT)},
	{S, "FA", 9000, 5001, 100, 0, OK(LAST_ACK)},
	{C, "A",  5001, 9001, 100, 0, OK(TIME_WAIT)})

STORY(a_pickup_needs_an_ack_of_an_open_connection, true,
	{C, "R",  5000, 0,    0,   0, BAD(NOT_OPEN, NONE)},
	{S, "SA", 5000, 1,    100, 0, BAD(NOT_OPEN, NONE)},
	{S, "S",  5000, 0,    100, 0, BAD(SIDE, NONE)},
	{C, "F",  5000, 0,    100, 0, BAD(FLAGS, NONE)},
	{C, "S",  5000, 0,    W,   0, OK(SYN_SENT)},
	{C, "A",  5001, 1,    W,   0, BAD(HANDSHAKE, SYN_SENT)})

/* clang-format on */

/* Flags */

static bool sensible(uint8_t flags)
{
	bool syn = flags & TCP_BIT_SYN, fin = flags & TCP_BIT_FIN, rst = flags & TCP_BIT_RST,
	     ack = flags & TCP_BIT_ACK;

	return syn + fin + rst <= 1 && (ack || syn || rst);
}

Test(conntrack_tcp, senseless_flags_are_told_in_every_state)
{
	unsigned int senseless = 0;

	for (unsigned int state = 0; state < TCP_STATES; state++)
		for (unsigned int flags = 0; flags < 256; flags++) {
			struct tcp_track track = {.state = (uint8_t)state}, before = track;
			struct tcp_segment s = {.flags = (uint8_t)flags, .scale = TCP_SCALE_NONE};
			struct tcp_outcome got = conntrack_tcp_track(&track, &s, C, true);

			cr_assert_eq(got.reason == TCP_REASON_FLAGS, !sensible((uint8_t)flags),
				     "flags %02x in %s", flags, conntrack_tcp_state_name(state));
			if (sensible((uint8_t)flags))
				continue;
			senseless++;
			cr_assert_eq(got.verdict, TCP_VERDICT_INVALID);
			cr_assert_eq(memcmp(&before, &track, sizeof(track)), 0);
		}
	cr_assert_eq(senseless, TCP_STATES * 10 * 16); /* of 16 combinations six make sense */
}

STORY(named_scans_are_told_from_talk, false, OPENED, {C, "", 1, 1, W, 0, BAD(FLAGS, ESTABLISHED)},
      {C, "FPU", 1, 1, W, 0, BAD(FLAGS, ESTABLISHED)},
      {C, "SF", 1, 1, W, 0, BAD(FLAGS, ESTABLISHED)},
      {C, "SR", 1, 1, W, 0, BAD(FLAGS, ESTABLISHED)},
      {C, "FRA", 1, 1, W, 0, BAD(FLAGS, ESTABLISHED)},
      {C, "P", 1, 1, W, 9, BAD(FLAGS, ESTABLISHED)},
      {C, "SFRPAU", 1, 1, W, 0, BAD(FLAGS, ESTABLISHED)}, {C, "PAU", 1, 1, W, 9, OK(ESTABLISHED)},
      {C, "FAU", 10, 1, W, 0, OK(FIN_WAIT)})

/* The table */

static bool is_last(enum tcp_state state)
{
	return state == TCP_STATE_TIME_WAIT || state == TCP_STATE_CLOSE;
}

Test(conntrack_tcp, every_state_can_be_reached_and_leads_to_an_end)
{
	bool reached[TCP_STATES] = {[TCP_STATE_NONE] = true}, ends[TCP_STATES] = {0};

	for (unsigned int s = 0; s < TCP_STATES; s++)
		ends[s] = is_last(s);
	for (unsigned int round = 0; round < TCP_STATES; round++)
		for (unsigned int s = 0; s < TCP_STATES; s++)
			for (unsigned int e = 0; e < TCP_EVENTS; e++)
				for (unsigned int from = 0; from < 2; from++) {
					enum tcp_state next = tcp_transition[s][e][from];

					reached[next] |= reached[s];
					ends[s] |= next != TCP_STATE_NONE && ends[next];
				}
	for (unsigned int s = 0; s < TCP_STATES; s++)
		cr_assert(reached[s] && ends[s], "%s", conntrack_tcp_state_name(s));
}

Test(conntrack_tcp, only_a_new_syn_leaves_the_last_states)
{
	for (unsigned int s = 0; s < TCP_STATES; s++)
		for (unsigned int e = 0; e < TCP_EVENTS; e++)
			for (unsigned int from = 0; from < 2; from++)
				if (is_last(s) && tcp_transition[s][e][from] != TCP_STATE_NONE)
					cr_assert(e == TCP_EVENT_SYN && from == C);
}

Test(conntrack_tcp, a_state_knows_how_long_to_wait)
{
	for (unsigned int s = TCP_STATE_NONE + 1; s < TCP_STATES; s++)
		cr_assert(conntrack_tcp_timeout_ms[s] >= 10000 &&
				  conntrack_tcp_timeout_ms[s] <= CONNTRACK_TIMEOUT_MAX_MS,
			  "%s", conntrack_tcp_state_name(s));
	/* RFC 5382, REQ-5 */
	cr_assert_geq(conntrack_tcp_timeout_ms[TCP_STATE_ESTABLISHED], 7440000);
}

Test(conntrack_tcp, names_differ_and_nonsense_is_unknown)
{
	for (unsigned int a = 0; a < TCP_STATES; a++)
		for (unsigned int b = 0; b < a; b++)
			cr_assert_str_neq(conntrack_tcp_state_name(a), conntrack_tcp_state_name(b));
	for (unsigned int a = 0; a < TCP_VERDICTS; a++)
		for (unsigned int b = 0; b < a; b++)
			cr_assert_str_neq(conntrack_tcp_verdict_name(a),
					  conntrack_tcp_verdict_name(b));
	for (unsigned int a = 0; a < TCP_REASONS; a++)
		for (unsigned int b = 0; b < a; b++)
			cr_assert_str_neq(conntrack_tcp_reason_name(a),
					  conntrack_tcp_reason_name(b));
	cr_assert_str_eq(conntrack_tcp_state_name(TCP_STATES), "unknown");
	cr_assert_str_eq(conntrack_tcp_verdict_name(TCP_VERDICTS), "unknown");
	cr_assert_str_eq(conntrack_tcp_reason_name((enum tcp_reason) - 1), "unknown");
	cr_assert_str_eq(conntrack_tcp_reason_text(TCP_REASONS), "unknown");
	cr_assert_str_eq(conntrack_tcp_reason_text(TCP_REASON_SEQ_AFTER),
			 "beyond the receiver's window");
}
