/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes as a connection. The first says whether it may be picked up on its way; then, per segment:
 * a byte of options, the length of the bytes of TCP that follow, and these, on a heap block of
 * their exact size. A fuzzer guesses no sequence numbers, so options can make them relative to what
 * the tracker knows, and the payload larger than what is there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tcp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TO_CLIENT    0x01u
#define FROM_END     0x02u /* seq counts from what the sender has sent */
#define FROM_ACK     0x04u /* seq counts from what the other end expects */
#define ACKS_END     0x08u /* ack counts from what the other end has sent */
#define ACKS_FIRST   0x10u /* ack counts from the other end's SYN */
#define LONG_PAYLOAD 0x20u /* 1,000 bytes more */

static void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

static void make_relative(const struct tcp_track *track, unsigned int options,
			  enum tcp_direction from, struct tcp_segment *s)
{
	const struct tcp_side *mine = &track->side[from], *peer = &track->side[!from];

	if (options & FROM_END)
		s->seq += mine->end;
	else if (options & FROM_ACK)
		s->seq += peer->ack;
	if (options & ACKS_END)
		s->ack += peer->end;
	else if (options & ACKS_FIRST)
		s->ack += peer->first;
	if (options & LONG_PAYLOAD)
		s->length += 1000;
}

/* Compares all fields except those that a challenge ACK may change. */
static bool same_connection(struct tcp_track a, const struct tcp_track *b)
{
	a.syn_saved = b->syn_saved;
	a.syn_seq = b->syn_seq;
	a.syn_length = b->syn_length;
	a.syn_window = b->syn_window;
	a.syn_scale = b->syn_scale;
	if (b->state == TCP_STATE_SYN_SENT)
		a.side[TCP_TO_CLIENT].ack = b->side[TCP_TO_CLIENT].ack;
	return memcmp(&a, b, sizeof(a)) == 0;
}

static void check_bounds(const struct tcp_track *t)
{
	require(t->state < TCP_STATES, "no such state");
	for (unsigned int i = 0; i < 2; i++) {
		const struct tcp_side_bits *bits = &t->bits[i];

		require(t->side[i].window_max <= (uint32_t)UINT16_MAX << TCP_SCALE_MAX,
			"a window that nobody can offer");
		require(bits->scale <= TCP_SCALE_MAX, "a scale that nobody can offer");
		require(!bits->fin_acked || bits->fin, "a FIN was acknowledged before it was sent");
	}
	if (t->state >= TCP_STATE_FIN_WAIT && t->state <= TCP_STATE_TIME_WAIT)
		require(t->bits[0].fin || t->bits[1].fin, "closing without a FIN");
	if (t->state == TCP_STATE_TIME_WAIT)
		require(t->bits[0].fin_acked && t->bits[1].fin_acked, "closed by half");
}

static void check_outcome(const struct tcp_track *before, const struct tcp_track *after,
			  struct tcp_outcome outcome, enum tcp_direction from)
{
	bool same = memcmp(before, after, sizeof(*before)) == 0;

	require(outcome.verdict < TCP_VERDICTS && outcome.reason < TCP_REASONS, "no such outcome");
	require((outcome.reason == TCP_REASON_NONE) == (outcome.verdict <= TCP_VERDICT_REOPEN),
		"a reason for nothing, or none for something");
	if (outcome.verdict == TCP_VERDICT_INVALID || outcome.verdict == TCP_VERDICT_DUPLICATE)
		require(same, "changed by what it refused");
	if (outcome.verdict == TCP_VERDICT_CHALLENGE)
		require(same_connection(*before, after), "changed by a challenge");
	if (outcome.verdict == TCP_VERDICT_REOPEN)
		require(after->state == TCP_STATE_SYN_SENT || after->state == TCP_STATE_SYN_RECV,
			"a new connection that is not opening");
	else if (before->state != TCP_STATE_NONE)
		require(after->state >= before->state, "a connection that goes back");
	check_bounds(after);
}

static void track(struct tcp_track *t, const uint8_t *tcp, size_t size, unsigned int options,
		  bool pickup)
{
	enum tcp_direction from = options & TO_CLIENT ? TCP_TO_CLIENT : TCP_FROM_CLIENT;
	struct tcp_segment s;
	struct tcp_track before;
	struct tcp_outcome outcome;

	if (conntrack_tcp_parse(tcp, (uint32_t)size, &s) != TCP_REASON_NONE)
		return;
	require(s.header >= 20 && s.header + s.length == size, "payload outside the segment");
	require(s.scale <= TCP_SCALE_MAX || s.scale == TCP_SCALE_NONE, "no such scale");
	require(s.scale == TCP_SCALE_NONE || s.flags & TCP_BIT_SYN, "a scale without a SYN");
	make_relative(t, options, from, &s);
	before = *t;
	outcome = conntrack_tcp_track(t, &s, from, pickup);
	check_outcome(&before, t, outcome, from);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tcp_track t = {0};
	const uint8_t *end = data + size;
	bool pickup;

	if (size == 0)
		return 0;
	pickup = *data++ & 1;
	while (end - data >= 2) {
		unsigned int options = data[0];
		size_t length = data[1];
		uint8_t *exact;

		data += 2;
		if (length > (size_t)(end - data))
			length = (size_t)(end - data);
		exact = malloc(length);
		memcpy(exact, data, length);
		track(&t, exact, length, options, pickup);
		free(exact);
		data += length;
	}
	return 0;
}
