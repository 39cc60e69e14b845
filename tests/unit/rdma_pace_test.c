/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rate control from end to end, in made-up time: the requester's pacer, and two requesters that
 * share a switch which marks. The queue must stay bounded, the link busy, and the shares even.
 */
#include "rdma_fixture.h"

#include "faults.h"
#include "rdma/responder.h"

#define MTU     1024
#define MESSAGE 1024
#define US      1000ull
#define GBIT    125000000ull
#define SENDERS 2
#define POOL    8191
#define TURN_NS 1000

/* One requester and its responder behind the switch. */
struct sender {
	struct roce_path path, back;
	struct txq tx;
	uint32_t held;
	struct requester_list waiting;
	struct requester rq;
	struct responder responder;
	uint64_t bytes; /* arrived */
};

struct network {
	struct rte_mempool *packets, *small;
	uint64_t ns, clock;
	struct faults *there, *home;
	struct sender sender[SENDERS];
};

static uint64_t cycles(uint64_t ns)
{
	return (uint64_t)((double)ns * (double)rte_get_tsc_hz() / 1e9);
}

static void set_time(struct network *n, uint64_t ns)
{
	n->ns = ns;
	n->clock = cycles(1000000000) + cycles(ns);
}

static void add_sender(struct network *n, unsigned int i, uint64_t line_rate)
{
	struct rdma_region region = {.va = FIXTURE_VA, .length = MESSAGE, .rkey = FIXTURE_RKEY};
	struct sender *s = &n->sender[i];
	struct roce_path_spec spec = vector_spec(4, false, MTU), back = vector_spec(4, true, MTU);
	struct requester_params params = {
		.path = &s->path,
		.tx = &s->tx,
		.pool = n->small,
		.held = &s->held,
		.waiting = &s->waiting,
		.clock = &n->clock,
		.multi_segment = true,
		.ack_timeout = 14,
		.retry_limit = 7,
		.rnr_retry = ROCE_RNR_FOREVER,
		.line_rate = line_rate,
	};

	/* Senders are told apart by queue pair number. */
	spec.tos = back.tos = ROCE_TOS_ECT;
	spec.qpn = back.qpn = 0x100 + i;
	roce_path_init(&s->path, &spec);
	roce_path_init(&s->back, &back);
	requester_init(&s->rq, &params);
	responder_init(&s->responder, &region, MTU, 0);
	responder_notify_every(&s->responder, cycles(DCQCN_CNP_NS));
}

static struct network *network(const struct faults_params *there, uint64_t line_rate)
{
	struct faults_params home = {.delay_ns = 2 * US, .seed = 1};
	struct network *n = calloc(1, sizeof(*n));

	fixture_eal();
	n->packets = fixture_pool("packets", POOL, MESSAGE + ROCE_TRAILER_MAX);
	n->small = fixture_pool("small", 1023, 256);
	n->there = faults_create(there);
	n->home = faults_create(&home);
	set_time(n, 0);
	for (unsigned int i = 0; i < SENDERS; i++)
		add_sender(n, i, line_rate);
	return n;
}

static void network_destroy(struct network *n)
{
	for (unsigned int i = 0; i < SENDERS; i++) {
		struct sender *s = &n->sender[i];

		rte_pktmbuf_free_bulk(s->tx.packet, s->tx.n);
		requester_fini(&s->rq);
		cr_expect(LIST_EMPTY(&s->waiting), "nobody waits any more");
		cr_expect_eq(s->held, 0);
	}
	cr_expect_eq(rte_mempool_in_use_count(n->packets), 0);
	faults_destroy(n->there);
	faults_destroy(n->home);
	rte_mempool_free(n->packets);
	rte_mempool_free(n->small);
	free(n);
}

static void write_one(struct network *n, struct sender *s)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(n->packets);

	cr_assert(m);
	cr_assert(rte_pktmbuf_append(m, MESSAGE));
	cr_assert_eq(requester_write(&s->rq, m, FIXTURE_VA, FIXTURE_RKEY, 0,
				     (s->rq.next_psn & 7) == 7 ? REQUESTER_ACK_REQUEST : 0),
		     0);
}

/* A sender's port is as fast as its line: what waits there is the port's, not the switch's. */
static void transmit(struct network *n, struct sender *s)
{
	uint8_t frame[FIXTURE_FRAME_MAX];

	for (unsigned int i = 0; i < s->tx.n; i++)
		faults_put(n->there, frame, fixture_flatten(s->tx.packet[i], frame), n->ns);
	rte_pktmbuf_free_bulk(s->tx.packet, s->tx.n);
	s->tx.n = 0;
}

static void answer(struct network *n, struct sender *s)
{
	uint8_t frame[ROCE_CNP_FRAME_MAX];
	uint32_t psn, msn;
	uint8_t syndrome;

	if (responder_notification_due(&s->responder))
		faults_put(n->home, frame, roce_cnp_build(frame, &s->back), n->ns);
	if (responder_ack_due(&s->responder, &psn, &syndrome, &msn))
		faults_put(n->home, frame, roce_ack_build(frame, &s->back, psn, syndrome, msn),
			   n->ns);
}

static struct roce_packet parse(const uint8_t *frame, uint32_t length)
{
	struct roce_packet p;
	struct roce_frame f;

	cr_assert_eq(frame_locate(frame, length, &f), FRAME_ROCE);
	cr_assert_eq(roce_parse(frame + f.bth_offset, f.bth_length, &p), ROCE_PARSED);
	cr_assert_lt(p.qpn - 0x100, SENDERS);
	return p;
}

static void deliver(struct network *n)
{
	uint8_t frame[FIXTURE_FRAME_MAX];
	struct responder_placement at;
	uint32_t length;

	while ((length = faults_take(n->there, n->ns, frame, sizeof(frame))) > 0) {
		struct roce_packet p = parse(frame, length);
		struct sender *s = &n->sender[p.qpn - 0x100];

		if (roce_is_marked(frame + ROCE_ETHER_LENGTH))
			responder_marked(&s->responder, n->clock);
		if (responder_receive(&s->responder, &p, &at) == RESPONDER_ACCEPT)
			s->bytes += length;
		answer(n, s);
	}
	while ((length = faults_take(n->home, n->ns, frame, sizeof(frame))) > 0) {
		struct roce_packet p = parse(frame, length);
		struct requester *rq = &n->sender[p.qpn - 0x100].rq;

		if (p.opcode == ROCE_CNP)
			requester_notify(rq, n->clock);
		else
			requester_ack(rq, p.psn, p.syndrome, n->clock);
	}
}

/* Every sender always has more to send; <line_rate> is what a port takes in a turn. */
static void turn(struct network *n, uint64_t line_rate, unsigned int active)
{
	for (unsigned int i = 0; i < active; i++) {
		struct sender *s = &n->sender[i];
		uint64_t ready = line_rate * (n->ns + TURN_NS) / 1000000000 / MESSAGE;

		while (requester_unacked(&s->rq) < 512 && s->rq.stats.packets < ready &&
		       !s->rq.paced)
			write_one(n, s);
		requester_poll_waiting(&s->waiting, n->clock);
		transmit(n, s);
	}
	deliver(n);
	if (n->ns % (1000 * US) == 0)
		for (unsigned int i = 0; i < SENDERS; i++)
			requester_poll(&n->sender[i].rq, n->clock);
	set_time(n, n->ns + TURN_NS);
}

static const struct faults_params bottleneck = {.bytes_per_s = 5 * GBIT,
						.mark_bytes = 50000,
						.queue_bytes = 4000000,
						.delay_ns = 2 * US,
						.seed = 3};

#define LINE (10 * GBIT)

static double share(uint64_t now, uint64_t before, uint64_t ns)
{
	return (double)(now - before) / ((double)bottleneck.bytes_per_s * (double)ns / 1e9);
}

Test(rdma_pace, shares_a_bottleneck_evenly_without_filling_its_queue, .timeout = 100)
{
	struct network *n = network(&bottleneck, LINE);
	uint64_t was[SENDERS], half = 100000 * US, queue;
	double a, b;

	/* The second joins late, when the first has the link. */
	while (n->ns < 10000 * US)
		turn(n, LINE, 1);
	while (n->ns < half)
		turn(n, LINE, 2);
	for (unsigned int i = 0; i < SENDERS; i++)
		was[i] = n->sender[i].bytes;
	while (n->ns < 2 * half)
		turn(n, LINE, 2);
	a = share(n->sender[0].bytes, was[0], half);
	b = share(n->sender[1].bytes, was[1], half);
	queue = faults_stats(n->there)->queue_max;
	printf("shares %.3f and %.3f, longest queue %lu bytes, %lu marked, %lu notifications\n", a,
	       b, (unsigned long)queue, (unsigned long)faults_stats(n->there)->marked,
	       (unsigned long)(n->sender[0].rq.stats.notifications +
			       n->sender[1].rq.stats.notifications));
	cr_expect_gt(a + b, 0.85, "utilisation %.3f", a + b);
	cr_expect_gt(a / b, 0.8, "shares %.3f and %.3f", a, b);
	cr_expect_lt(a / b, 1.25, "shares %.3f and %.3f", a, b);
	cr_expect_lt(queue, 1000000, "%lu bytes", (unsigned long)queue);
	cr_expect_eq(faults_stats(n->there)->overflowed, 0);
	for (unsigned int i = 0; i < SENDERS; i++) {
		cr_expect_eq(n->sender[i].rq.error, REQUESTER_OK);
		cr_expect_eq(n->sender[i].rq.stats.resent, 0);
		cr_expect_leq(n->sender[i].responder.stats.notifications,
			      2 * half / DCQCN_CNP_NS + 1);
	}
	network_destroy(n);
}

/* The same without rate control, to show that the test can fail: the queue overflows. */
Test(rdma_pace, would_fill_the_queue_without_rate_control, .timeout = 100)
{
	struct faults_params small = bottleneck;
	struct network *n;

	small.queue_bytes = 900000;
	n = network(&small, 0);
	while (n->ns < 20000 * US)
		turn(n, LINE, 2);
	cr_expect_gt(faults_stats(n->there)->queue_max, 800000);
	cr_expect_eq(n->sender[0].rq.rate.limited, false);
	network_destroy(n);
}

/* A rate-limited sender: how much it sends, and the time at which it asks to be called again. */
Test(rdma_pace, holds_packets_back_in_the_window_and_wakes_in_time)
{
	struct faults_params wide = {.seed = 1};
	struct network *n = network(&wide, LINE);
	struct sender *s = &n->sender[0];
	uint32_t sent;

	write_one(n, s);
	cr_expect_eq(s->tx.n, 1);
	/* Down to the least there is: 10 Mbit/s, a packet in 0.87 ms. */
	for (unsigned int i = 0; i < 100; i++) {
		requester_notify(&s->rq, n->clock);
		set_time(n, n->ns + 5 * US);
	}
	for (unsigned int i = 0; i < 10; i++)
		write_one(n, s);
	sent = s->tx.n;
	cr_expect_lt(sent, 5);
	cr_expect_eq(requester_unacked(&s->rq), 11);
	cr_expect_eq(LIST_FIRST(&s->waiting), &s->rq);
	cr_expect_eq(requester_deadline(&s->rq), s->rq.rate.next);
	n->clock = requester_deadline(&s->rq) - 1;
	s->rq.rate.timer_due = UINT64_MAX / 4;
	requester_poll(&s->rq, n->clock);
	cr_expect_eq(s->tx.n, sent, "too early");
	n->clock++;
	requester_poll(&s->rq, n->clock);
	cr_expect_eq(s->tx.n, sent + 1);
	/* After some time no packet waits, and none was taken for lost. */
	while (!LIST_EMPTY(&s->waiting)) {
		n->clock = requester_deadline(&s->rq);
		requester_poll(&s->rq, n->clock);
	}
	cr_expect_eq(s->tx.n, 11);
	cr_expect_eq(s->rq.stats.timeouts, 0);
	cr_expect_eq(s->rq.stats.resent, 0);
	network_destroy(n);
}

Test(rdma_pace, is_not_held_up_once_the_limit_is_gone)
{
	struct faults_params wide = {.seed = 1};
	struct network *n = network(&wide, LINE);
	struct sender *s = &n->sender[0];

	requester_notify(&s->rq, n->clock);
	for (unsigned int i = 0; i < 500; i++)
		write_one(n, s);
	cr_expect_eq(LIST_FIRST(&s->waiting), &s->rq);
	set_time(n, 100000 * US);
	while (s->tx.n < 500) {
		cr_assert_eq(LIST_EMPTY(&s->waiting),
			     s->rq.send_psn == s->rq.next_psn || !s->rq.rate.limited);
		requester_poll(&s->rq, n->clock);
	}
	cr_expect_not(s->rq.rate.limited);
	cr_expect(LIST_EMPTY(&s->waiting));
	network_destroy(n);
}

Test(rdma_pace, waits_for_nothing_after_an_error)
{
	struct faults_params wide = {.seed = 1};
	struct network *n = network(&wide, LINE);
	struct sender *s = &n->sender[0];

	write_one(n, s);
	for (unsigned int i = 0; i < 100; i++) {
		requester_notify(&s->rq, n->clock);
		set_time(n, n->ns + 5 * US);
	}
	for (unsigned int i = 0; i < 10; i++)
		write_one(n, s);
	cr_expect_eq(LIST_FIRST(&s->waiting), &s->rq);
	requester_ack(&s->rq, 0, ROCE_NAK_REMOTE_ACCESS, n->clock);
	requester_poll(&s->rq, n->clock);
	cr_expect(LIST_EMPTY(&s->waiting));
	cr_expect_eq(requester_deadline(&s->rq), UINT64_MAX);
	network_destroy(n);
}
