/* SPDX-License-Identifier: BSD-3-Clause */
/* The window: sending, acknowledgement and retransmission of packets once they are built. */
#include "rdma/requester_private.h"

void requester_init(struct requester *rq, const struct requester_params *p)
{
	memset(rq, 0, sizeof(*rq));
	rq->path = p->path;
	rq->tx = p->tx;
	rq->pool = p->pool;
	rq->held = p->held;
	rq->clock = p->clock;
	rq->drained = p->drained;
	rq->multi_segment = p->multi_segment;
	rq->next_psn = rq->una_psn = rq->send_psn = rq->sent_psn = p->psn & ROCE_PSN_MASK;
	rq->retry_limit = p->retry_limit;
	rq->rnr_retry = p->rnr_retry;
	rq->limit = REQUESTER_WINDOW;
	rq->waiting = p->waiting;
	dcqcn_init(&rq->rate, p->line_rate, rte_get_tsc_hz());
	/* 4.096 us x 2^n (IBTA volume 1, 9.9.2.1.1) */
	if (p->ack_timeout > 0)
		rq->timeout = rte_get_tsc_hz() / 1000000 * 4096 / 1000 * (1ull << p->ack_timeout);
}

/* Prefetch the second cache line of an mbuf, which freeing reads. The entry may be NULL. */
static void requester_prefetch_entry(const struct requester *rq, uint32_t psn)
{
	uintptr_t m = (uintptr_t)rq->window[psn & REQUESTER_WINDOW_MASK];

	rte_prefetch0((const void *)(m + RTE_CACHE_LINE_MIN_SIZE));
}

/* A bulk free of packets pays from RETIRE_MANY on; RETIRE_BURST is the most per call. */
#define RETIRE_MANY  8
#define RETIRE_BURST 32

static void requester_retire_one(struct requester *rq)
{
	struct rte_mbuf **entry = &rq->window[rq->una_psn & REQUESTER_WINDOW_MASK];

	requester_prefetch_entry(rq, rq->una_psn + 4);
	rte_pktmbuf_free(*entry);
	*entry = NULL;
	rq->una_psn = roce_psn_add(rq->una_psn, 1);
}

/* Retire up to <n> packets; returns their number. */
static uint32_t requester_retire_many(struct requester *rq, uint32_t n)
{
	uint32_t first = rq->una_psn & REQUESTER_WINDOW_MASK;

	n = RTE_MIN(RTE_MIN(n, RETIRE_BURST), REQUESTER_WINDOW - first);
	for (uint32_t i = 0; i < n; i++)
		requester_prefetch_entry(rq, first + i);
	rte_pktmbuf_free_bulk(rq->window + first, n);
	memset(rq->window + first, 0, n * sizeof(rq->window[0]));
	rq->una_psn = roce_psn_add(rq->una_psn, n);
	return n;
}

static void requester_retire(struct requester *rq, uint32_t end_psn)
{
	uint32_t n = roce_psn_diff(end_psn, rq->una_psn);

	*rq->held -= n;
	while (n >= RETIRE_MANY)
		n -= requester_retire_many(rq, n);
	while (n-- > 0)
		requester_retire_one(rq);
	if (roce_psn_diff(rq->send_psn, rq->una_psn) < 0)
		rq->send_psn = rq->una_psn;
}

/* Put the requester on the list of those that wait for their rate, or take it off. */
static void requester_update_waiting(struct requester *rq)
{
	bool paced = rq->rate.limited && rq->send_psn != rq->next_psn && rq->hold_until == 0 &&
		     rq->error == REQUESTER_OK;

	if (paced == rq->paced)
		return;
	rq->paced = paced;
	if (rq->waiting == NULL)
		return;
	if (paced)
		LIST_INSERT_HEAD(rq->waiting, rq, also_waiting);
	else
		LIST_REMOVE(rq, also_waiting);
}

void requester_fini(struct requester *rq)
{
	rq->rate.limited = false;
	requester_update_waiting(rq);
	if (rq->una_psn != rq->next_psn)
		requester_retire(rq, rq->next_psn);
}

void requester_pump_paced(struct requester *rq, unsigned int burst)
{
	uint64_t now = requester_clock(rq);

	dcqcn_advance(&rq->rate, now);
	while (burst-- > 0 && rq->send_psn != rq->next_psn && txq_room(rq->tx) > 0 &&
	       requester_under_way(rq) < rq->limit && dcqcn_may_send(&rq->rate, now)) {
		dcqcn_sent(&rq->rate, rq->window[rq->send_psn & REQUESTER_WINDOW_MASK]->pkt_len,
			   now);
		requester_push(rq);
		/* The time that a packet waited for the rate does not count as missing an ACK. */
		rq->timer = now;
	}
	requester_update_waiting(rq);
}

static enum requester_verdict requester_fail(struct requester *rq, enum requester_error error)
{
	/* Another thread may read the reason. */
	__atomic_store_n(&rq->error, error, __ATOMIC_RELEASE);
	return REQUESTER_FAILED;
}

/* Send everything from una_psn on again. */
static void requester_go_back(struct requester *rq)
{
	rq->timing = false;
	rq->send_psn = rq->una_psn;
}

/* The receiver was not ready for una_psn: send it again after the time in its RNR NAK. */
static enum requester_verdict requester_rnr_nak(struct requester *rq, uint8_t syndrome,
						uint64_t now)
{
	rq->stats.rnr_naks++;
	/* Already on hold: nothing was sent since the last RNR NAK. */
	if (rq->hold_until != 0)
		return REQUESTER_OLD;
	if (rq->rnr_retry != ROCE_RNR_FOREVER && rq->rnr_retries++ >= rq->rnr_retry)
		return requester_fail(rq, REQUESTER_RNR_EXCEEDED);
	requester_go_back(rq);
	rq->hold_until = now + roce_rnr_us(syndrome) * (rte_get_tsc_hz() / 1000000);
	return REQUESTER_PROGRESS;
}

/*
 * Lower the limit after a loss. Go-back-N resends everything behind a lost packet, and packets
 * beyond what fills the path only wait in queues, so fewer of them make a loss cheaper. The path
 * holds the packets that are acknowledged within the shortest round trip.
 */
static void requester_limit_window(struct requester *rq)
{
	uint32_t now = requester_under_way(rq), half = now / 2, path = 0;

	if (rq->sample > 0)
		path = (double)rq->sample_packets * (double)rq->rtt_min / (double)rq->sample;
	rq->limit =
		RTE_MIN(RTE_MAX(RTE_MAX(half, 2 * path), (uint32_t)REQUESTER_LIMIT_MIN), rq->limit);
	rq->grown = 0;
}

/* The packet at una_psn is missing. A responder asks for it once; after that the timer resends,
 * which counts tries. */
static enum requester_verdict requester_sequence_nak(struct requester *rq)
{
	if (rq->went_back)
		return REQUESTER_OLD;
	rq->went_back = true;
	requester_limit_window(rq);
	requester_go_back(rq);
	/* It may follow an RNR NAK for the same packet, whose hold still applies. */
	if (rq->hold_until == 0)
		requester_pump(rq, REQUESTER_RESEND_BURST);
	return REQUESTER_PROGRESS;
}

static enum requester_verdict requester_nak(struct requester *rq, uint8_t syndrome, uint64_t now)
{
	if (ROCE_AETH_KIND(syndrome) == ROCE_AETH_RNR)
		return requester_rnr_nak(rq, syndrome, now);
	rq->stats.naks++;
	if (syndrome == ROCE_NAK_SEQUENCE)
		return requester_sequence_nak(rq);
	rq->nak = syndrome;
	return requester_fail(rq, REQUESTER_NAK);
}

static void requester_take_sample(struct requester *rq, uint32_t end, uint64_t now)
{
	uint64_t time = RTE_MAX((int64_t)(now - rq->timed_at), 1);

	rq->timing = false;
	rq->sample = time;
	rq->sample_packets = roce_psn_diff(end, rq->timed_una);
	if (rq->rtt_min == 0 || time < rq->rtt_min)
		rq->rtt_min = time;
	/* A peak decays by an eighth per sample. */
	rq->rtt = RTE_MAX(time, rq->rtt - rq->rtt / 8);
}

static void requester_grow_limit(struct requester *rq, uint32_t packets)
{
	rq->grown += packets;
	rq->limit = RTE_MIN(rq->limit + rq->grown / REQUESTER_GROWTH, REQUESTER_WINDOW);
	rq->grown %= REQUESTER_GROWTH;
}

static void requester_acknowledged(struct requester *rq, uint32_t end, uint64_t now)
{
	if (rq->timing && roce_psn_diff(end, rq->timed_psn) > 0)
		requester_take_sample(rq, end, now);
	if (unlikely(rq->limit < REQUESTER_WINDOW))
		requester_grow_limit(rq, roce_psn_diff(end, rq->una_psn));
	requester_retire(rq, end);
	rq->timer = now;
	rq->early = 0;
	rq->retries = 0;
	rq->rnr_retries = 0;
	rq->went_back = false;
	rq->hold_until = 0; /* the receiver accepted the packet that it was not ready for */
}

enum requester_verdict requester_ack(struct requester *rq, uint32_t psn, uint8_t syndrome,
				     uint64_t now)
{
	bool positive = ROCE_AETH_KIND(syndrome) == ROCE_AETH_ACK;
	uint32_t end = positive ? roce_psn_add(psn, 1) : psn;
	bool progress = end != rq->una_psn;

	if (unlikely(rq->error != REQUESTER_OK))
		return REQUESTER_FAILED;
	if (roce_psn_diff(psn, rq->sent_psn) >= 0)
		return REQUESTER_BEYOND;
	if (positive ? roce_psn_diff(end, rq->una_psn) <= 0 : roce_psn_diff(psn, rq->una_psn) < 0)
		return REQUESTER_OLD;
	if (progress)
		requester_acknowledged(rq, end, now);
	if (positive) {
		rq->stats.acks++;
		/* Continue a retransmission that the burst limit cut short. */
		if (unlikely(rq->send_psn != rq->next_psn) && rq->hold_until == 0)
			requester_pump(rq, REQUESTER_RESEND_BURST);
		return REQUESTER_PROGRESS;
	}
	return requester_nak(rq, syndrome, now);
}

void requester_notify(struct requester *rq, uint64_t now)
{
	rq->stats.notifications++;
	dcqcn_notify(&rq->rate, now);
	requester_update_waiting(rq);
}

/*
 * TSC time of the next early retry. A responder asks once for a lost packet; when its NAK or the
 * resent packet is lost too, both sides wait. So packets that are under way for much longer than an
 * acknowledgement takes are resent before the timeout, as NICs with adaptive retransmission do:
 * after some round trips, then after twice as many, and so on.
 */
static uint64_t requester_early_at(const struct requester *rq)
{
	uint64_t first = RTE_MAX(4 * rq->rtt, rq->timeout / REQUESTER_EARLY);

	if (rq->rtt == 0 || first << rq->early >= rq->timeout || rq->send_psn == rq->una_psn)
		return UINT64_MAX;
	return rq->timer + first * ((2ull << rq->early) - 1);
}

uint64_t requester_deadline(const struct requester *rq)
{
	uint64_t at = UINT64_MAX;

	if (rq->error != REQUESTER_OK || rq->una_psn == rq->next_psn)
		return UINT64_MAX;
	if (rq->hold_until != 0)
		return rq->hold_until;
	if (rq->timeout != 0)
		at = RTE_MIN(rq->timer + rq->timeout, requester_early_at(rq));
	if (rq->paced)
		return RTE_MIN(at, rq->rate.next);
	if (rq->send_psn != rq->next_psn && requester_under_way(rq) < rq->limit)
		at = RTE_MIN(at, rq->timer + rte_get_tsc_hz() / 1000000 * REQUESTER_RESEND_US);
	return at;
}

/* The acknowledgement timer ran out: resend everything. False when it was the last try. */
static bool requester_time_out(struct requester *rq, uint64_t now)
{
	/* Nothing is under way because the rate does not allow it yet. */
	if (rq->rate.limited && rq->send_psn == rq->una_psn) {
		rq->timer = now;
		return true;
	}
	/* Atomic: the control thread reads it, to check the neighbour's MAC address. */
	__atomic_store_n(&rq->stats.timeouts, rq->stats.timeouts + 1, __ATOMIC_RELAXED);
	if (rq->retries >= rq->retry_limit) {
		requester_fail(rq, REQUESTER_RETRY_EXCEEDED);
		return false;
	}
	rq->retries++;
	rq->went_back = false;
	rq->early = 0;
	rq->timer = now;
	requester_go_back(rq);
	return true;
}

/* Continue where a burst or the port's room ended. The timer restarts for what leaves only now. */
static void requester_resume(struct requester *rq, uint64_t now)
{
	uint32_t from = rq->send_psn;

	requester_pump(rq, REQUESTER_RESEND_BURST);
	if (rq->send_psn != from)
		rq->timer = now;
}

static void requester_poll_timers(struct requester *rq, uint64_t now)
{
	/* This time may be before the start of the timer. */
	uint64_t heard = rq->drained != NULL ? *rq->drained : now;

	if (rq->hold_until != 0) {
		if (now < rq->hold_until)
			return;
		rq->hold_until = 0;
		rq->went_back = false;
		rq->timer = now;
	} else if (rq->timeout != 0 && (int64_t)(heard - rq->timer) >= (int64_t)rq->timeout) {
		/* Signed: the timer may have been started after <now> was read. */
		if (!requester_time_out(rq, now))
			return;
	} else if (rq->timeout != 0 && heard >= requester_early_at(rq)) {
		rq->early++;
		rq->stats.early++;
		requester_limit_window(rq);
		requester_go_back(rq);
		/* The timer is not restarted: early retries come between its tries. */
		requester_pump(rq, REQUESTER_RESEND_BURST);
		return;
	}
	if (rq->send_psn != rq->next_psn)
		requester_resume(rq, now);
}

void requester_poll(struct requester *rq, uint64_t now)
{
	if (unlikely(rq->rate.limited))
		dcqcn_advance(&rq->rate, now);
	if (unlikely(rq->una_psn != rq->next_psn) && rq->error == REQUESTER_OK)
		requester_poll_timers(rq, now);
	if (unlikely(rq->paced))
		requester_update_waiting(rq);
}

void requester_poll_waiting(struct requester_list *waiting, uint64_t now)
{
	struct requester *rq, *next;

	for (rq = LIST_FIRST(waiting); rq != NULL; rq = next) {
		/* The call may remove this requester from the list, but no other. */
		next = LIST_NEXT(rq, also_waiting);
		requester_poll(rq, now);
	}
}
