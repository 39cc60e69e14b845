/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Liveness: two endpoints whose threads poll, sleep and are kept from running as real ones are, on
 * a link that fails in every way. Once the link works again, every message
 * arrives exactly once, and no queue pair fails from an outage that its retries cover. Time is made
 * up; a failure repeats with its seed.
 */
#include "rdma_fixture.h"

#include "faults.h"
#include "rdma/responder.h"

#define US    1000ul
#define MS    1000000ul
#define MTU   256
#define BURST 32
/* 4.096 us x 2^14, eight times, is 537 ms: what the retries cover. */
#define RETRIES     7
#define OUTAGE_MAX  (300 * MS)
#define TROUBLES    12
#define MESSAGE_MAX 6000
#define POOL        2047
#define HOARD       4095

enum trouble { CUT, SENDER_PAUSED, RECEIVER_PAUSED, PORT_STUCK, NO_BUFFERS, NO_ACKS, KINDS };

struct world {
	struct roce_path path, back;
	struct txq tx;
	uint32_t held;
	struct requester_list waiting;
	struct rte_mempool *packets, *small;
	struct requester rq;
	struct responder responder;
	struct faults *there, *home;
	uint64_t ns, clock, start;
	uint64_t random;
	/* the sender's thread, the receiver's */
	uint64_t send_turn, receive_turn, next_check;
	unsigned int idle;
	/* what is wrong now, and since when nothing is */
	enum trouble trouble;
	bool in_trouble;
	uint64_t trouble_ends;
	unsigned int troubles;
	struct rte_mbuf *hoard[HOARD];
	unsigned int hoarded;
	/* messages */
	uint32_t messages, written, received, bytes;
};

static uint32_t dice(struct world *w, uint32_t n)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return (uint32_t)(w->random >> 32) % n;
}

static uint64_t cycles(uint64_t ns)
{
	return (uint64_t)((double)ns * (double)rte_get_tsc_hz() / 1e9);
}

static uint64_t ns_of(const struct world *w, uint64_t clock)
{
	return (uint64_t)((double)(clock - w->start) * 1e9 / (double)rte_get_tsc_hz()) + 1;
}

static uint32_t length_of(uint32_t n)
{
	return (n * 2654435761u >> 8) % MESSAGE_MAX;
}

static bool is_wrong(const struct world *w, enum trouble what)
{
	return w->in_trouble && w->trouble == what;
}

static struct world *world(uint64_t seed, bool dcqcn, const struct faults_params *weather)
{
	struct rdma_region region = {.va = FIXTURE_VA, .length = MESSAGE_MAX, .rkey = FIXTURE_RKEY};
	struct roce_path_spec spec = vector_spec(4, false, MTU), back = vector_spec(4, true, MTU);
	struct faults_params there = *weather, home = *weather;
	struct world *w = calloc(1, sizeof(*w));
	struct requester_params params = {
		.path = &w->path,
		.tx = &w->tx,
		.held = &w->held,
		.waiting = &w->waiting,
		.clock = &w->clock,
		.multi_segment = true,
		.psn = 0xfff000 + seed,
		.ack_timeout = 14,
		.retry_limit = RETRIES,
		.rnr_retry = ROCE_RNR_FOREVER,
		.line_rate = dcqcn ? 1250000000 : 0,
	};

	fixture_eal();
	w->packets = fixture_pool("packets", POOL, MESSAGE_MAX + ROCE_TRAILER_MAX);
	w->small = params.pool = fixture_pool("small", HOARD, 256);
	spec.tos = back.tos = ROCE_TOS_ECT;
	roce_path_init(&w->path, &spec);
	roce_path_init(&w->back, &back);
	requester_init(&w->rq, &params);
	responder_init(&w->responder, &region, MTU, params.psn);
	responder_notify_every(&w->responder, cycles(DCQCN_CNP_NS));
	there.seed = seed;
	home.seed = seed + 1000;
	w->there = faults_create(&there);
	w->home = faults_create(&home);
	w->start = rte_rdtsc();
	w->random = seed * 0x9e3779b97f4a7c15ull + 1;
	w->trouble_ends = 100 * MS;
	w->messages = UINT32_MAX;
	return w;
}

static void give_back(struct world *w)
{
	while (w->hoarded > 0)
		rte_pktmbuf_free(w->hoard[--w->hoarded]);
}

static void world_destroy(struct world *w)
{
	give_back(w);
	rte_pktmbuf_free_bulk(w->tx.packet, w->tx.n);
	requester_fini(&w->rq);
	cr_expect(LIST_EMPTY(&w->waiting));
	cr_expect_eq(w->held, 0);
	cr_expect_eq(rte_mempool_in_use_count(w->packets) + rte_mempool_in_use_count(w->small), 0);
	faults_destroy(w->there);
	faults_destroy(w->home);
	rte_mempool_free(w->packets);
	rte_mempool_free(w->small);
	free(w);
}

/* --- the sender's thread -----------------------------------------------------------------------
 */

static bool write_one(struct world *w, uint32_t flags)
{
	uint32_t length = length_of(w->written);
	struct rte_mbuf *m;

	if (w->written == w->messages || !requester_room(&w->rq, requester_packets(&w->rq, length)))
		return false;
	m = rte_pktmbuf_alloc(w->packets);
	if (m == NULL)
		return false;
	memset(rte_pktmbuf_append(m, length), w->written, length);
	if (requester_write(&w->rq, m, FIXTURE_VA, FIXTURE_RKEY, w->written,
			    REQUESTER_IMM | flags) < 0) {
		rte_pktmbuf_free(m);
		return false;
	}
	w->written++;
	return true;
}

static unsigned int sender_receive(struct world *w)
{
	uint8_t frame[FIXTURE_FRAME_MAX];
	struct roce_packet p;
	struct roce_frame f;
	unsigned int n;
	uint32_t length;

	for (n = 0; n < BURST; n++) {
		length = faults_take(w->home, w->ns, frame, sizeof(frame));
		if (length == 0)
			break;
		if (frame_locate(frame, length, &f) != FRAME_ROCE ||
		    roce_parse(frame + f.bth_offset, f.bth_length, &p) != ROCE_PARSED ||
		    roce_path_admit(&w->path, frame + f.ip_offset, f.ip_length,
				    f.bth_offset + f.bth_length - f.ip_offset) != ROCE_ADMITTED)
			continue;
		if (p.opcode == ROCE_CNP)
			requester_notify(&w->rq, w->clock);
		else
			requester_ack(&w->rq, p.psn, p.syndrome, w->clock);
	}
	return n;
}

static unsigned int sender_transmit(struct world *w)
{
	uint8_t frame[FIXTURE_FRAME_MAX];
	unsigned int n = is_wrong(w, PORT_STUCK) ? 0 : RTE_MIN(w->tx.n, 1 + dice(w, 256));

	for (unsigned int i = 0; i < n; i++) {
		faults_put(w->there, frame, fixture_flatten(w->tx.packet[i], frame), w->ns);
		rte_pktmbuf_free(w->tx.packet[i]);
	}
	w->tx.n -= n;
	memmove(w->tx.packet, w->tx.packet + n, w->tx.n * sizeof(w->tx.packet[0]));
	return n;
}

/* Polls as the loops of the load balancer and of the software RNIC do. */
static void sender_turn(struct world *w)
{
	unsigned int work = sender_receive(w), burst = dice(w, 40);
	uint64_t deadline;

	for (unsigned int i = 0; i < burst; i++, work++)
		if (!write_one(w, i + 1 == burst ? REQUESTER_ACK_REQUEST : 0))
			break;
	requester_poll_waiting(&w->waiting, w->clock);
	if (w->ns >= w->next_check) {
		requester_poll(&w->rq, w->clock);
		w->next_check = w->ns + MS;
	}
	work += sender_transmit(w);
	cr_assert_eq(LIST_EMPTY(&w->waiting), !w->rq.paced);
	w->idle = work > 0 ? 0 : w->idle + 1;
	w->send_turn = w->ns + 2 * US;
	if (w->idle < 10 || w->tx.n > 0)
		return;
	/* Sleeps until a packet comes or 5 ms are over. */
	deadline = requester_deadline(&w->rq);
	w->send_turn = w->ns + 5 * MS;
	if (deadline != UINT64_MAX)
		w->send_turn = RTE_MIN(w->send_turn,
				       deadline <= w->clock ? w->ns + US : ns_of(w, deadline));
	w->send_turn = RTE_MIN(w->send_turn, faults_deadline(w->home));
	w->send_turn = RTE_MAX(w->send_turn, w->ns + US);
	w->next_check = 0;
}

/* --- the receiver's thread ---------------------------------------------------------------------
 */

static void take(struct world *w, const uint8_t *frame, uint32_t length)
{
	struct responder_placement at;
	const uint8_t *payload;
	struct roce_packet p;
	struct roce_frame f;

	if (frame_locate(frame, length, &f) != FRAME_ROCE ||
	    roce_parse(frame + f.bth_offset, f.bth_length, &p) != ROCE_PARSED ||
	    roce_path_admit(&w->back, frame + f.ip_offset, f.ip_length,
			    f.bth_offset + f.bth_length - f.ip_offset) != ROCE_ADMITTED)
		return;
	if (roce_is_marked(frame + f.ip_offset))
		responder_marked(&w->responder, w->clock);
	if (responder_receive(&w->responder, &p, &at) != RESPONDER_ACCEPT)
		return;
	payload = frame + f.bth_offset + p.payload_offset;
	if (p.payload_length > 0) {
		cr_assert_eq(payload[0], (uint8_t)w->received);
		cr_assert_eq(memcmp(payload, payload + 1, p.payload_length - 1), 0);
	}
	w->bytes += p.payload_length;
	if (!at.last)
		return;
	cr_assert_eq(at.imm, w->received, "message %u came as number %u", at.imm, w->received);
	cr_assert_eq(w->bytes, length_of(w->received));
	w->received++;
	w->bytes = 0;
}

static void receiver_turn(struct world *w)
{
	uint8_t frame[FIXTURE_FRAME_MAX];
	uint32_t length, psn, msn;
	unsigned int n;
	uint8_t syndrome;

	for (n = 0; n < BURST; n++) {
		length = faults_take(w->there, w->ns, frame, sizeof(frame));
		if (length == 0)
			break;
		take(w, frame, length);
	}
	w->receive_turn = w->ns + 2 * US;
	if (n == 0)
		w->receive_turn =
			RTE_MAX(w->receive_turn, RTE_MIN(faults_deadline(w->there), w->ns + MS));
	/* Without buffers the acknowledgement stays due. */
	if (is_wrong(w, NO_ACKS))
		return;
	if (responder_notification_due(&w->responder))
		faults_put(w->home, frame, roce_cnp_build(frame, &w->back), w->ns);
	if (responder_ack_due(&w->responder, &psn, &syndrome, &msn))
		faults_put(w->home, frame, roce_ack_build(frame, &w->back, psn, syndrome, msn),
			   w->ns);
}

/* --- what goes wrong ---------------------------------------------------------------------------
 */

static void trouble_begins(struct world *w)
{
	struct rte_mempool *from;
	uint64_t ends = w->ns + 1 + dice(w, OUTAGE_MAX);

	w->in_trouble = true;
	w->trouble = dice(w, KINDS);
	w->trouble_ends = ends;
	w->troubles++;
	switch (w->trouble) {
	case CUT:
		faults_cut(w->there, true);
		faults_cut(w->home, true);
		break;
	case SENDER_PAUSED:
		w->send_turn = RTE_MAX(w->send_turn, ends);
		break;
	case RECEIVER_PAUSED:
		w->receive_turn = RTE_MAX(w->receive_turn, ends);
		break;
	case NO_BUFFERS:
		from = dice(w, 2) == 0 ? w->packets : w->small;
		while (w->hoarded < HOARD &&
		       (w->hoard[w->hoarded] = rte_pktmbuf_alloc(from)) != NULL)
			w->hoarded++;
		break;
	default:
		break;
	}
}

static void trouble_ends(struct world *w)
{
	faults_cut(w->there, false);
	faults_cut(w->home, false);
	give_back(w);
	w->in_trouble = false;
	w->trouble_ends = w->ns + 300 * MS + dice(w, 300 * MS);
}

static void step(struct world *w)
{
	uint64_t next = RTE_MIN(RTE_MIN(w->send_turn, w->receive_turn), w->trouble_ends);

	w->ns = RTE_MAX(w->ns, next);
	w->clock = w->start + cycles(w->ns);
	if (w->ns >= w->trouble_ends) {
		if (w->in_trouble)
			trouble_ends(w);
		else
			trouble_begins(w);
	} else if (w->ns >= w->send_turn) {
		sender_turn(w);
	} else {
		receiver_turn(w);
	}
}

static void run(uint64_t seed, bool dcqcn, const struct faults_params *weather)
{
	struct world *w = world(seed, dcqcn, weather);
	uint64_t end, most = 0, since;
	uint32_t una = w->rq.una_psn;

	since = 0;
	while (w->troubles < TROUBLES || w->in_trouble) {
		step(w);
		cr_assert_eq(w->rq.error, REQUESTER_OK, "seed %lu: failed in trouble %u at %lu ms",
			     seed, w->trouble, w->ns / MS);
		cr_assert_not(w->responder.error);
		if (w->rq.una_psn != una || requester_unacked(&w->rq) == 0) {
			una = w->rq.una_psn;
			since = w->ns;
		}
		most = RTE_MAX(most, w->ns - since);
	}
	cr_expect_lt(most, OUTAGE_MAX + 300 * MS, "seed %lu: nothing came through for %lu ms", seed,
		     most / MS);
	/* Enough now: what was written must arrive, soon. */
	w->messages = w->written;
	end = w->ns + 2000 * MS;
	w->trouble_ends = UINT64_MAX;
	while (w->received < w->messages || requester_unacked(&w->rq) > 0) {
		step(w);
		cr_assert_eq(w->rq.error, REQUESTER_OK, "seed %lu", seed);
		cr_assert_lt(w->ns, end, "seed %lu: stuck at %u of %u", seed, w->received,
			     w->messages);
	}
	cr_expect_gt(w->received, 100, "seed %lu", seed);
	if (getenv("LIVENESS_VERBOSE") != NULL)
		printf("seed %lu: %u messages, %lu packets, %lu resent, %lu timeouts, %lu ms at "
		       "most\n",
		       seed, w->received, w->rq.stats.packets, w->rq.stats.resent,
		       w->rq.stats.timeouts, most / MS);
	world_destroy(w);
}

static const struct faults_params slow = {
	.delay_ns = 20 * US, .bytes_per_s = 2000000, .queue_bytes = 400000, .mark_bytes = 20000};
static const struct faults_params bad = {.delay_ns = 20 * US,
					 .drop = 0.02,
					 .duplicate = 0.02,
					 .reorder = 0.02,
					 .corrupt = 0.005,
					 .bytes_per_s = 4000000,
					 .mark_bytes = 50000,
					 .queue_bytes = 600000};

static void run_all(bool dcqcn, const struct faults_params *weather)
{
	unsigned long seeds = getenv("SEEDS") != NULL ? strtoul(getenv("SEEDS"), NULL, 10) : 6;

	for (uint64_t seed = 1; seed <= seeds; seed++)
		run(seed, dcqcn, weather);
}

Test(rdma_liveness, survives_outages_on_a_slow_link, .timeout = 600)
{
	run_all(false, &slow);
}

Test(rdma_liveness, survives_outages_on_a_slow_link_with_rate_control, .timeout = 600)
{
	run_all(true, &slow);
}

Test(rdma_liveness, survives_outages_on_a_bad_link, .timeout = 600)
{
	run_all(false, &bad);
}

Test(rdma_liveness, survives_outages_on_a_bad_link_with_rate_control, .timeout = 600)
{
	run_all(true, &bad);
}
