/* SPDX-License-Identifier: BSD-3-Clause */
#include <endian.h>
#include <errno.h>

#include <rte_cycles.h>

#include "requester.h"

#define WINDOW_MASK (REQUESTER_WINDOW - 1)

/* A message on its way to being packets. */
struct cutter {
	struct rte_mbuf *message;
	uint32_t length;
	uint32_t offset; /* of the packet being built */
	uint32_t imm;
	uint32_t flags;
	uint64_t va;
	uint32_t rkey;
};

void requester_init(struct requester *rq, const struct requester_params *p)
{
	memset(rq, 0, sizeof(*rq));
	rq->path = p->path;
	rq->tx = p->tx;
	rq->pool = p->pool;
	rq->held = p->held;
	rq->clock = p->clock;
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

/* To free an mbuf, its second cache line is read. The entry may be empty: a hint does not mind. */
static void prefetch_entry(const struct requester *rq, uint32_t psn)
{
	uintptr_t m = (uintptr_t)rq->window[psn & WINDOW_MASK];

	rte_prefetch0((const void *)(m + RTE_CACHE_LINE_MIN_SIZE));
}

/* The pool takes many packets in one go; to collect them for it pays from so many on. */
#define RETIRE_MANY  8
#define RETIRE_BURST 32

static void retire_one(struct requester *rq)
{
	struct rte_mbuf **entry = &rq->window[rq->una_psn & WINDOW_MASK];

	prefetch_entry(rq, rq->una_psn + 4);
	rte_pktmbuf_free(*entry);
	*entry = NULL;
	rq->una_psn = roce_psn_add(rq->una_psn, 1);
}

/* Up to <n>; returns how many. */
static uint32_t retire_many(struct requester *rq, uint32_t n)
{
	uint32_t first = rq->una_psn & WINDOW_MASK;

	n = RTE_MIN(RTE_MIN(n, RETIRE_BURST), REQUESTER_WINDOW - first);
	for (uint32_t i = 0; i < n; i++)
		prefetch_entry(rq, first + i);
	rte_pktmbuf_free_bulk(rq->window + first, n);
	memset(rq->window + first, 0, n * sizeof(rq->window[0]));
	rq->una_psn = roce_psn_add(rq->una_psn, n);
	return n;
}

static void retire(struct requester *rq, uint32_t end_psn)
{
	uint32_t n = roce_psn_diff(end_psn, rq->una_psn);

	*rq->held -= n;
	while (n >= RETIRE_MANY)
		n -= retire_many(rq, n);
	while (n-- > 0)
		retire_one(rq);
	if (roce_psn_diff(rq->send_psn, rq->una_psn) < 0)
		rq->send_psn = rq->una_psn;
}

/* Do packets wait for the rate, now? */
static void update_waiting(struct requester *rq)
{
	bool paced = rq->rate.limited && rq->send_psn != rq->next_psn && rq->hold_until == 0 &&
		     rq->error == REQUESTER_OK;

	if (paced == rq->paced)
		return;
	rq->paced = paced;
	if (rq->waiting != NULL)
		*rq->waiting += paced ? 1 : -1;
}

void requester_fini(struct requester *rq)
{
	rq->rate.limited = false;
	update_waiting(rq);
	retire(rq, rq->next_psn);
}

/* A packet's place in its message decides what headers it has. */
struct shape {
	bool first, last, imm;
	uint8_t opcode;
	uint8_t pad;
	uint32_t extensions; /* bytes of RETH and ImmDt */
	uint32_t payload;
};

static inline struct shape shape_of(const struct cutter *c, uint32_t payload)
{
	static const uint8_t opcode[2][2][2] = {
		{{ROCE_WRITE_MIDDLE, ROCE_WRITE_MIDDLE}, {ROCE_WRITE_LAST, ROCE_WRITE_LAST_IMM}},
		{{ROCE_WRITE_FIRST, ROCE_WRITE_FIRST}, {ROCE_WRITE_ONLY, ROCE_WRITE_ONLY_IMM}},
	};
	struct shape s = {
		.first = c->offset == 0,
		.last = c->offset + payload == c->length,
		.pad = -payload & 3,
		.payload = payload,
	};

	s.imm = s.last && c->flags & REQUESTER_IMM;
	s.opcode = opcode[s.first][s.last][s.imm];
	s.extensions = (s.first ? ROCE_RETH_LENGTH : 0) + (s.imm ? ROCE_IMM_LENGTH : 0);
	return s;
}

/* Does this packet ask for an acknowledgement? */
static inline bool asks(struct requester *rq, const struct cutter *c, const struct shape *s)
{
	bool ask = (c->flags & REQUESTER_ACK_REQUEST && s->last) ||
		   ++rq->unasked == REQUESTER_ACK_EVERY;

	if (ask)
		rq->unasked = 0;
	return ask;
}

/* Write all headers, masked, to <at>. */
static inline void headers_write(struct requester *rq, uint8_t *at, const struct cutter *c,
				 const struct shape *s)
{
	struct roce_header h = {
		.opcode = s->opcode,
		.pad = s->pad,
		.ack_request = asks(rq, c, s),
		.psn = rq->next_psn,
		.body = s->extensions + s->payload + s->pad,
	};

	roce_header_write(at, rq->path, &h);
	at += rq->path->length;
	if (s->first) {
		struct roce_reth reth = {.va = htobe64(c->va),
					 .rkey = htobe32(c->rkey),
					 .length = htobe32(c->length)};

		memcpy(at, &reth, sizeof(reth));
		at += sizeof(reth);
	}
	if (s->imm) {
		uint32_t imm = htobe32(c->imm);

		memcpy(at, &imm, sizeof(imm));
	}
}

/* Pad and ICRC behind the packet's last byte. */
static void trailer_write(uint8_t *at, uint8_t pad, uint32_t crc)
{
	memset(at, 0, pad);
	crc = htole32(roce_icrc(crc, at, pad));
	memcpy(at + pad, &crc, sizeof(crc));
}

static uint32_t icrc_of_segments(const struct rte_mbuf *m)
{
	uint32_t crc = ROCE_ICRC_SEED, skip = ROCE_ETHER_LENGTH;

	for (; m != NULL; m = m->next) {
		crc = roce_icrc(crc, rte_pktmbuf_mtod_offset(m, uint8_t *, skip),
				m->data_len - skip);
		skip = 0;
	}
	return crc;
}

/* Append pad and ICRC to the chain: in the last segment's tailroom if <in_place>, else in one more.
 */
static int trailer_append(struct requester *rq, struct rte_mbuf *head, uint8_t pad, bool in_place)
{
	struct rte_mbuf *last = rte_pktmbuf_lastseg(head), *more;
	uint32_t crc = icrc_of_segments(head);
	uint32_t length = pad + ROCE_ICRC_LENGTH;

	if (in_place && rte_pktmbuf_tailroom(last) >= length) {
		trailer_write(rte_pktmbuf_mtod_offset(last, uint8_t *, last->data_len), pad, crc);
		last->data_len += length;
		head->pkt_len += length;
		return 0;
	}
	more = rte_pktmbuf_alloc(rq->pool);
	if (more == NULL)
		return -ENOMEM;
	trailer_write(rte_pktmbuf_mtod(more, uint8_t *), pad, crc);
	more->data_len = length;
	more->pkt_len = length;
	last->next = more;
	head->nb_segs++;
	head->pkt_len += length;
	return 0;
}

static void window_push(struct requester *rq, struct rte_mbuf *m)
{
	rq->window[rq->next_psn & WINDOW_MASK] = m;
	rq->next_psn = roce_psn_add(rq->next_psn, 1);
}

/* A packet built around the payload in <m>: the usual case, and the fast one. */
static int build_in_place(struct requester *rq, const struct cutter *c, struct rte_mbuf *m)
{
	struct shape s = shape_of(c, m->data_len);
	uint32_t front = rq->path->length + s.extensions;
	uint32_t trailer = s.pad + ROCE_ICRC_LENGTH, crc;
	uint8_t *at, *tail;
	int ret;

	at = (uint8_t *)rte_pktmbuf_prepend(m, front);
	if (at == NULL)
		return -EINVAL;
	headers_write(rq, at, c, &s);
	if (likely(rte_pktmbuf_tailroom(m) >= trailer)) {
		tail = at + m->data_len;
		memset(tail, 0, s.pad);
		crc = htole32(roce_icrc(ROCE_ICRC_SEED, at + ROCE_ETHER_LENGTH,
					m->data_len + s.pad - ROCE_ETHER_LENGTH));
		memcpy(tail + s.pad, &crc, sizeof(crc));
		m->data_len += trailer;
		m->pkt_len += trailer;
	} else {
		ret = trailer_append(rq, m, s.pad, false);
		if (ret < 0) {
			rte_pktmbuf_adj(m, front);
			rq->unasked = REQUESTER_ACK_EVERY - 1; /* it may have asked */
			return ret;
		}
	}
	roce_header_unmask(at, rq->path);
	window_push(rq, m);
	return 0;
}

/* A packet of its own memory, for ports that cannot send chains. Counted: it copies the payload. */
static struct rte_mbuf *build_copy(struct requester *rq, const struct cutter *c,
				   const struct shape *s)
{
	uint32_t front = rq->path->length + s->extensions;
	/* The message's own pool has buffers that take a whole packet. */
	struct rte_mbuf *m = rte_pktmbuf_alloc(c->message->pool);
	uint8_t *at;

	if (m == NULL)
		return NULL;
	at = (uint8_t *)rte_pktmbuf_append(m, front + s->payload);
	if (at == NULL) {
		rte_pktmbuf_free(m);
		return NULL;
	}
	headers_write(rq, at, c, s);
	memcpy(at + front, rte_pktmbuf_mtod_offset(c->message, uint8_t *, c->offset), s->payload);
	if (trailer_append(rq, m, s->pad, true) < 0) {
		rte_pktmbuf_free(m);
		return NULL;
	}
	roce_header_unmask(at, rq->path);
	rq->stats.copies++;
	return m;
}

/* A header mbuf followed by an indirect mbuf that points at the message's bytes. */
static struct rte_mbuf *build_indirect(struct requester *rq, const struct cutter *c,
				       const struct shape *s)
{
	uint32_t front = rq->path->length + s->extensions;
	struct rte_mbuf *head = rte_pktmbuf_alloc(rq->pool), *piece;
	uint8_t *at;

	if (head == NULL)
		return NULL;
	piece = rte_pktmbuf_alloc(rq->pool);
	if (piece == NULL)
		goto free_head;
	at = (uint8_t *)rte_pktmbuf_append(head, front);
	headers_write(rq, at, c, s);
	rte_pktmbuf_attach(piece, c->message);
	piece->data_off = c->message->data_off + c->offset;
	piece->data_len = s->payload;
	piece->pkt_len = s->payload;
	head->next = piece;
	head->nb_segs = 2;
	head->pkt_len += s->payload;
	/* Only the last piece has free memory behind it; behind the others lies the next piece. */
	if (trailer_append(rq, head, s->pad, s->last) < 0)
		goto free_head;
	roce_header_unmask(at, rq->path);
	return head;
free_head:
	rte_pktmbuf_free(head);
	return NULL;
}

/* A message of several packets. All are built before the first is sent, so that it is all or none.
 */
static int build_many(struct requester *rq, struct cutter *c)
{
	uint32_t first_psn = rq->next_psn, at_psn;
	struct rte_mbuf *m;
	struct shape s;

	while (c->offset < c->length) {
		s = shape_of(c, RTE_MIN(c->length - c->offset, rq->path->mtu));
		m = rq->multi_segment ? build_indirect(rq, c, &s) : build_copy(rq, c, &s);
		if (m == NULL)
			goto undo;
		window_push(rq, m);
		c->offset += s.payload;
	}
	/* The pieces hold references; the message's own goes. */
	rte_pktmbuf_free(c->message);
	return 0;
undo:
	for (at_psn = first_psn; at_psn != rq->next_psn; at_psn = roce_psn_add(at_psn, 1)) {
		rte_pktmbuf_free(rq->window[at_psn & WINDOW_MASK]);
		rq->window[at_psn & WINDOW_MASK] = NULL;
	}
	rq->next_psn = first_psn;
	rq->unasked = REQUESTER_ACK_EVERY - 1; /* one that asked may be among them */
	return -ENOMEM;
}

/* One more reference to all of a packet. */
static void hold(struct rte_mbuf *m)
{
	/* Where a chain goes on is in the second cache line, which nothing else has touched yet. */
	if (likely(m->nb_segs == 1))
		rte_mbuf_refcnt_update(m, 1);
	else
		rte_pktmbuf_refcnt_update(m, 1);
}

/* Now, or when the owner's turn began. */
static uint64_t clock_now(const struct requester *rq)
{
	return rq->clock != NULL ? *rq->clock : rte_rdtsc();
}

static void time_packet(struct requester *rq, uint32_t psn)
{
	rq->timing = true;
	rq->timed_psn = psn;
	rq->timed_una = rq->una_psn;
	rq->timed_at = clock_now(rq);
}

/* The packet at send_psn. */
static inline void push(struct requester *rq)
{
	struct rte_mbuf *m = rq->window[rq->send_psn & WINDOW_MASK];

	/* The peer may have moved since the packet was built; the ICRC does not cover this. */
	memcpy(rte_pktmbuf_mtod(m, uint8_t *), rq->path->header, 6);
	/* The window keeps its reference; the port consumes this one. */
	hold(m);
	txq_push(rq->tx, m);
	rq->send_psn = roce_psn_add(rq->send_psn, 1);
	if (likely(roce_psn_diff(rq->send_psn, rq->sent_psn) > 0)) {
		if (!rq->timing)
			time_packet(rq, rq->sent_psn);
		rq->sent_psn = rq->send_psn;
	} else {
		rq->stats.resent++;
	}
	rq->stats.packets++;
}

static inline uint32_t under_way(const struct requester *rq)
{
	return roce_psn_diff(rq->send_psn, rq->una_psn);
}

/* As much as the rate allows. */
static void pump_paced(struct requester *rq, unsigned int burst)
{
	uint64_t now = clock_now(rq);

	dcqcn_advance(&rq->rate, now);
	while (burst-- > 0 && rq->send_psn != rq->next_psn && txq_room(rq->tx) > 0 &&
	       under_way(rq) < rq->limit && dcqcn_may_send(&rq->rate, now)) {
		dcqcn_sent(&rq->rate, rq->window[rq->send_psn & WINDOW_MASK]->pkt_len, now);
		push(rq);
		/* Waiting for the rate is not waiting for an acknowledgement. */
		rq->timer = now;
	}
	update_waiting(rq);
}

/* Send again, or for the first time, what lies between send_psn and next_psn. */
static void pump(struct requester *rq, unsigned int burst)
{
	if (unlikely(rq->rate.limited))
		return pump_paced(rq, burst);
	while (burst-- > 0 && rq->send_psn != rq->next_psn && txq_room(rq->tx) > 0 &&
	       under_way(rq) < rq->limit)
		push(rq);
}

static int write_message(struct requester *rq, struct cutter *c, struct rte_mbuf *m)
{
	bool idle = rq->una_psn == rq->next_psn;
	uint32_t first = rq->next_psn;
	/* While retransmitting, new packets wait for their turn: order is everything. */
	bool in_order = rq->send_psn == rq->next_psn && rq->hold_until == 0;
	int ret;

	if (unlikely(rq->error != REQUESTER_OK))
		return -EPIPE;
	ret = likely(m->data_len <= rq->path->mtu) ? build_in_place(rq, c, m) : build_many(rq, c);
	if (ret < 0)
		return ret;
	*rq->held += roce_psn_diff(rq->next_psn, first);
	if (idle)
		rq->timer = clock_now(rq);
	if (likely(in_order))
		pump(rq, REQUESTER_WINDOW);
	return 0;
}

int requester_write(struct requester *rq, struct rte_mbuf *m, uint64_t va, uint32_t rkey,
		    uint32_t imm, uint32_t flags)
{
	struct cutter c = {.message = m,
			   .length = m->data_len,
			   .imm = imm,
			   .flags = flags,
			   .va = va,
			   .rkey = rkey};

	if (unlikely(rq->engine != NULL))
		return rq->engine->write(rq, m, va, rkey, imm, flags);
	return write_message(rq, &c, m);
}

void requester_engine_sent(struct requester *rq, struct rte_mbuf *m)
{
	window_push(rq, m);
	++*rq->held;
	rq->send_psn = rq->sent_psn = rq->next_psn;
	rq->stats.packets++;
}

int requester_write_piece(struct requester *rq, struct rte_mbuf *m, uint32_t offset,
			  uint32_t length, uint64_t va, uint32_t rkey, uint32_t imm, uint32_t flags)
{
	struct cutter c = {.message = m,
			   .length = length,
			   .offset = offset,
			   .imm = imm,
			   .flags = flags,
			   .va = va,
			   .rkey = rkey};

	return write_message(rq, &c, m);
}

static enum requester_verdict give_up(struct requester *rq, enum requester_error error)
{
	rq->error = error;
	return REQUESTER_FAILED;
}

/* Everything from una_psn on is to be sent again. */
static void go_back(struct requester *rq)
{
	rq->timing = false;
	rq->send_psn = rq->una_psn;
}

/* The receiver was not ready for una_psn: send it again when it said. */
static enum requester_verdict rnr_nak(struct requester *rq, uint8_t syndrome, uint64_t now)
{
	rq->stats.rnr_naks++;
	/* Nothing was sent since the last one. */
	if (rq->hold_until != 0)
		return REQUESTER_OLD;
	if (rq->rnr_retry != REQUESTER_RNR_FOREVER && rq->rnr_retries++ >= rq->rnr_retry)
		return give_up(rq, REQUESTER_RNR_EXCEEDED);
	go_back(rq);
	rq->hold_until = now + roce_rnr_us(syndrome) * (rte_get_tsc_hz() / 1000000);
	return REQUESTER_PROGRESS;
}

/*
 * Go-back-N sends again what is under way behind a lost packet. What is more than fills the path
 * only waits in queues: the less of it, the cheaper a loss. The path takes what was acknowledged in
 * the time that an acknowledgement needs when nothing waits.
 */
static void limit_window(struct requester *rq)
{
	uint32_t now = under_way(rq), half = now / 2, path = 0;

	if (rq->sample > 0)
		path = (double)rq->sample_packets * (double)rq->rtt_min / (double)rq->sample;
	rq->limit =
		RTE_MIN(RTE_MAX(RTE_MAX(half, 2 * path), (uint32_t)REQUESTER_LIMIT_MIN), rq->limit);
	rq->grown = 0;
}

/* Something before una_psn is missing. A responder says so once; what follows is left to the timer,
 * which counts tries. */
static enum requester_verdict sequence_nak(struct requester *rq)
{
	if (rq->went_back)
		return REQUESTER_OLD;
	rq->went_back = true;
	limit_window(rq);
	go_back(rq);
	/* May follow an RNR NAK for the same packet: that one's time still counts. */
	if (rq->hold_until == 0)
		pump(rq, REQUESTER_RESEND_BURST);
	return REQUESTER_PROGRESS;
}

static enum requester_verdict nak(struct requester *rq, uint8_t syndrome, uint64_t now)
{
	if (ROCE_AETH_KIND(syndrome) == ROCE_AETH_RNR)
		return rnr_nak(rq, syndrome, now);
	rq->stats.naks++;
	if (syndrome == ROCE_NAK_SEQUENCE)
		return sequence_nak(rq);
	rq->nak = syndrome;
	return give_up(rq, REQUESTER_NAK);
}

static void take_sample(struct requester *rq, uint32_t end, uint64_t now)
{
	uint64_t time = RTE_MAX((int64_t)(now - rq->timed_at), 1);

	rq->timing = false;
	rq->sample = time;
	rq->sample_packets = roce_psn_diff(end, rq->timed_una);
	if (rq->rtt_min == 0 || time < rq->rtt_min)
		rq->rtt_min = time;
	/* Peaks fade away slowly. */
	rq->rtt = RTE_MAX(time, rq->rtt - rq->rtt / 8);
}

static void grow_limit(struct requester *rq, uint32_t packets)
{
	rq->grown += packets;
	rq->limit = RTE_MIN(rq->limit + rq->grown / REQUESTER_GROWTH, REQUESTER_WINDOW);
	rq->grown %= REQUESTER_GROWTH;
}

static void acknowledged(struct requester *rq, uint32_t end, uint64_t now)
{
	if (rq->timing && roce_psn_diff(end, rq->timed_psn) > 0)
		take_sample(rq, end, now);
	if (unlikely(rq->limit < REQUESTER_WINDOW))
		grow_limit(rq, roce_psn_diff(end, rq->una_psn));
	retire(rq, end);
	rq->timer = now;
	rq->early = 0;
	rq->retries = 0;
	rq->rnr_retries = 0;
	rq->went_back = false;
	rq->hold_until = 0; /* what the receiver was not ready for is in */
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
		acknowledged(rq, end, now);
	if (positive) {
		rq->stats.acks++;
		/* Go on with a retransmission that the burst limit had cut short. */
		if (unlikely(rq->send_psn != rq->next_psn) && rq->hold_until == 0)
			pump(rq, REQUESTER_RESEND_BURST);
		return REQUESTER_PROGRESS;
	}
	return nak(rq, syndrome, now);
}

void requester_notify(struct requester *rq, uint64_t now)
{
	rq->stats.notifications++;
	dcqcn_notify(&rq->rate, now);
	update_waiting(rq);
}

/*
 * A responder asks once for a lost packet; when that or what it asked for is lost too, both wait.
 * So what is under way for much longer than acknowledgements take is sent again before the timeout,
 * as NICs with adaptive retransmission do: after some round trips, then twice as many, and so on.
 */
static uint64_t early_at(const struct requester *rq)
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
		at = RTE_MIN(rq->timer + rq->timeout, early_at(rq));
	return rq->paced ? RTE_MIN(at, rq->rate.next) : at;
}

/* The acknowledgement timer ran out: everything again. False when it was the last try. */
static bool time_out(struct requester *rq, uint64_t now)
{
	/* Nothing is on the way: the rate does not allow it yet. */
	if (rq->rate.limited && rq->send_psn == rq->una_psn) {
		rq->timer = now;
		return true;
	}
	rq->stats.timeouts++;
	if (rq->retries >= rq->retry_limit) {
		give_up(rq, REQUESTER_RETRY_EXCEEDED);
		return false;
	}
	rq->retries++;
	rq->went_back = false;
	rq->early = 0;
	rq->timer = now;
	go_back(rq);
	return true;
}

static void poll_timers(struct requester *rq, uint64_t now)
{
	if (rq->hold_until != 0) {
		if (now < rq->hold_until)
			return;
		rq->hold_until = 0;
		rq->went_back = false;
		rq->timer = now;
	} else if (rq->timeout != 0 && (int64_t)(now - rq->timer) >= (int64_t)rq->timeout) {
		/* signed: the timer may have been started after <now> was read */
		if (!time_out(rq, now))
			return;
	} else if (rq->timeout != 0 && now >= early_at(rq)) {
		rq->early++;
		rq->stats.early++;
		limit_window(rq);
		go_back(rq);
	}
	if (rq->send_psn != rq->next_psn)
		pump(rq, REQUESTER_RESEND_BURST);
}

void requester_poll(struct requester *rq, uint64_t now)
{
	if (unlikely(rq->rate.limited))
		dcqcn_advance(&rq->rate, now);
	if (unlikely(rq->una_psn != rq->next_psn) && rq->error == REQUESTER_OK)
		poll_timers(rq, now);
	if (unlikely(rq->paced))
		update_waiting(rq);
}
