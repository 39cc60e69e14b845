/* SPDX-License-Identifier: BSD-3-Clause */
/* No segment of the two ends is refused; no segment of a blind attacker changes the connection. */
#include <criterion/criterion.h>

#include "conntrack_tcp_sim.h"

#define CONNECTIONS 1500
#define WIDE        (1u << 30)
#define NARROW      (1u << 16)

static void check_segments(const struct sim *sim, uint64_t seed)
{
	cr_assert(!sim->failed, "seed %lu, tick %u, %s: %s; flags %02x seq %u ack %u length %u",
		  seed, sim->now, sim->bad_from == TCP_FROM_CLIENT ? "client" : "server",
		  conntrack_tcp_reason_name(sim->outcome.reason), sim->bad.flags, sim->bad.seq,
		  sim->bad.ack, sim->bad.length);
}

/* Checks that the tracker knows how the connection ended. */
static void check_end(const struct sim *sim, uint64_t seed)
{
	bool reset = sim->end[0].state == SIM_GONE && sim->end[1].state == SIM_GONE;
	enum tcp_state state = sim->track.state;

	cr_assert_lt(sim->now, SIM_TICKS, "seed %lu: stuck in %s", seed,
		     conntrack_tcp_state_name(state));
	cr_assert(state == TCP_STATE_TIME_WAIT || (reset && state == TCP_STATE_CLOSE),
		  "seed %lu ended in %s", seed, conntrack_tcp_state_name(state));
}

static void add(struct sim_counts *sum, const struct sim_counts *c)
{
	const uint64_t *from = (const uint64_t *)c;
	uint64_t *to = (uint64_t *)sum;

	for (unsigned int i = 0; i < sizeof(*c) / sizeof(*to); i++)
		to[i] += from[i];
}

Test(conntrack_tcp_endpoints, no_segment_of_two_well_behaved_ends_is_invalid)
{
	struct sim *sim = malloc(sizeof(*sim));
	struct sim_counts sum = {0};

	for (uint64_t seed = 0; seed < CONNECTIONS; seed++) {
		sim_init(sim, seed, WIDE);
		while (sim_tick(sim))
			;
		check_segments(sim, seed);
		check_end(sim, seed);
		add(&sum, &sim->counts);
	}
	free(sim);
	/* too few of one kind: the walk's numbers are badly chosen */
	cr_assert_gt(sum.segments, 500000);
	cr_assert_gt(sum.retransmissions, 50000);
	cr_assert_gt(sum.probes, 1000);
	cr_assert_gt(sum.keepalives, 1000);
	cr_assert_gt(sum.resets, 1000);
	cr_assert_gt(sum.duplicates, 1000);
	cr_assert_gt(sum.aborts, 100);
	cr_assert_gt(sum.simultaneous, 100);
	cr_assert_gt(sum.scaled, 500);
}

/* An attacker who cannot see the connection, but knows its addresses and ports. */

static uint32_t random32(struct sim *sim)
{
	return sim_random(sim, 1u << 16) << 16 | sim_random(sim, 1u << 16);
}

static struct tcp_segment forge(struct sim *sim)
{
	static const uint8_t flags[] = {
		TCP_BIT_SYN,
		TCP_BIT_SYN | TCP_BIT_ACK,
		TCP_BIT_RST,
		TCP_BIT_RST | TCP_BIT_ACK,
		TCP_BIT_ACK,
		TCP_BIT_PSH | TCP_BIT_ACK,
		TCP_BIT_FIN | TCP_BIT_ACK,
	};

	return (struct tcp_segment){
		.seq = random32(sim),
		.ack = random32(sim),
		.length = sim_chance(sim, 500) ? 0 : sim_random(sim, 1461),
		.window = (uint16_t)sim_random(sim, 1u << 16),
		.flags = flags[sim_random(sim, sizeof(flags))],
		.scale = sim_chance(sim, 500) ? TCP_SCALE_NONE : (uint8_t)sim_random(sim, 15),
	};
}

/* The tracker remembers a challenged SYN; that does not change the connection. */
static bool same_connection(struct tcp_track a, const struct tcp_track *b)
{
	a.syn_saved = b->syn_saved;
	a.syn_seq = b->syn_seq;
	a.syn_length = b->syn_length;
	a.syn_window = b->syn_window;
	a.syn_scale = b->syn_scale;
	return memcmp(&a, b, sizeof(a)) == 0;
}

static bool worth_an_attack(const struct sim *sim)
{
	return sim->track.state >= TCP_STATE_SYN_RECV && sim->track.state <= TCP_STATE_LAST_ACK;
}

/* Sends forged segments. One that the tracker lets pass reaches the end, and the end answers. */
static void attack(struct sim *sim, uint64_t seed)
{
	enum tcp_direction from = sim_random(sim, 2);
	struct tcp_segment s = forge(sim);
	struct tcp_track before = sim->track;
	struct tcp_outcome outcome = conntrack_tcp_track(&sim->track, &s, from, false);

	sim->counts.forged++;
	cr_assert(same_connection(before, &sim->track),
		  "seed %lu, tick %u: flags %02x seq %u ack %u changed %s", seed, sim->now, s.flags,
		  s.seq, s.ack, conntrack_tcp_state_name(before.state));
	cr_assert(outcome.verdict > TCP_VERDICT_REOPEN);
	if (outcome.verdict != TCP_VERDICT_INVALID) {
		sim->counts.forged_passed++;
		sim_queue(sim, &s, from, true);
	}
}

Test(conntrack_tcp_endpoints, a_blind_attacker_neither_ends_nor_disturbs_a_connection)
{
	struct sim *sim = malloc(sizeof(*sim));
	struct sim_counts sum = {0};

	for (uint64_t seed = 1000000; seed < 1000000 + CONNECTIONS / 5; seed++) {
		sim_init(sim, seed, NARROW);
		while (sim_tick(sim))
			for (unsigned int i = 0; i < 2 && worth_an_attack(sim); i++)
				attack(sim, seed);
		check_segments(sim, seed);
		check_end(sim, seed);
		add(&sum, &sim->counts);
	}
	free(sim);
	cr_assert_gt(sum.forged, 500000);
	cr_assert_gt(sum.forged_passed, 50000); /* SYNs, mostly */
}

/* An established connection, with data on its way in both directions. */
static struct tcp_track established(uint16_t window, uint8_t scale)
{
	static const struct {
		enum tcp_direction from;
		uint8_t flags;
		uint32_t seq, ack, length;
	} rows[] = {
		{TCP_FROM_CLIENT, TCP_BIT_SYN, 0, 0, 0},
		{TCP_TO_CLIENT, TCP_BIT_SYN | TCP_BIT_ACK, 0, 1, 0},
		{TCP_FROM_CLIENT, TCP_BIT_ACK, 1, 1, 10000},
		{TCP_TO_CLIENT, TCP_BIT_ACK, 1, 10001, 20000},
		{TCP_FROM_CLIENT, TCP_BIT_ACK, 10001, 20001, 1000},
		{TCP_TO_CLIENT, TCP_BIT_ACK, 20001, 10001, 2000},
	};
	struct tcp_track track = {0};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tcp_segment s = {rows[i].seq, rows[i].ack,   rows[i].length,
					window,      rows[i].flags, scale};

		conntrack_tcp_track(&track, &s, rows[i].from, false);
	}
	cr_assert_eq(track.state, TCP_STATE_ESTABLISHED);
	return track;
}

Test(conntrack_tcp_endpoints, of_all_numbers_around_only_the_next_ones_reset)
{
	const struct tcp_track track = established(UINT16_MAX, TCP_SCALE_NONE);
	unsigned int seen[TCP_VERDICTS] = {0};

	for (uint32_t seq = 10001 - 200000; seq != 10001 + 200000; seq++) {
		struct tcp_segment s = {.seq = seq, .flags = TCP_BIT_RST, .scale = TCP_SCALE_NONE};
		struct tcp_track copy = track;
		enum tcp_verdict got =
			conntrack_tcp_track(&copy, &s, TCP_FROM_CLIENT, false).verdict;

		seen[got]++;
		/* what the server acknowledged, and all that the client has sent */
		cr_assert_eq(got == TCP_VERDICT_ACCEPT, seq == 10001 || seq == 11001, "%u", seq);
		cr_assert_eq(copy.state == TCP_STATE_CLOSE, got == TCP_VERDICT_ACCEPT, "%u", seq);
	}
	cr_assert_eq(seen[TCP_VERDICT_CHALLENGE], UINT16_MAX); /* the window and one, without two */
	cr_assert_eq(seen[TCP_VERDICT_DUPLICATE], 0);
}

/* Share of random segments of one kind that are accepted, in units of 2^-32. */
static double accepted(struct sim *sim, const struct tcp_track *track, uint8_t flags,
		       unsigned int tries)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < tries; i++) {
		struct tcp_segment s = {.seq = random32(sim),
					.ack = random32(sim),
					.flags = flags,
					.scale = TCP_SCALE_NONE};
		struct tcp_track copy = *track;

		n += conntrack_tcp_track(&copy, &s, TCP_FROM_CLIENT, false).verdict <=
		     TCP_VERDICT_REOPEN;
	}
	return n * 4294967296.0 / tries;
}

/* The windows are so wide that a guess can succeed: it does as often as they say, and no more. */
Test(conntrack_tcp_endpoints, a_guessed_ack_needs_both_numbers)
{
	const uint32_t window = (uint32_t)UINT16_MAX << 14, tries = 4000000;
	struct tcp_track track = established(UINT16_MAX, 14);
	struct sim sim = {.random = 20261121};
	/* from a window before what was sent to one past the edge of what may be */
	double seqs = 2.0 * window - 1000 + 3, acks = window + 2000 + 1.0;
	double expected = seqs * acks / 4294967296.0;
	double got = accepted(&sim, &track, TCP_BIT_ACK, tries);

	cr_assert(got > expected * 0.98 && got < expected * 1.02, "%f of %f", got, expected);
	cr_assert_eq(accepted(&sim, &track, TCP_BIT_RST, tries), 0);
	cr_assert_eq(accepted(&sim, &track, TCP_BIT_SYN, tries), 0);
	track = established(UINT16_MAX, TCP_SCALE_NONE);
	cr_assert_eq(accepted(&sim, &track, TCP_BIT_ACK, tries), 0); /* one in 2^31 expected */
}
