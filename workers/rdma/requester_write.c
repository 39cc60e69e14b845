/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Builds packets of messages: headers in front, pad and ICRC behind, in the message's own mbuf, in
 * chains around pieces of it, or in copies. Packets go into the window and leave if they may.
 */
#include <endian.h>
#include <errno.h>

#include "rdma/requester_private.h"

/* A message that is being cut into packets. */
struct cutter {
	struct rte_mbuf *message;
	uint32_t length;
	uint32_t offset; /* of the packet being built */
	uint32_t imm;
	uint32_t flags;
	uint64_t va;
	uint32_t rkey;
	bool shared; /* the memory behind the message belongs to others */
};

/* A packet's form, which depends on its place in the message. */
struct shape {
	bool first, last, imm;
	uint8_t opcode;
	uint8_t pad;
	uint32_t extensions; /* bytes of RETH and ImmDt */
	uint32_t payload;
};

static inline struct shape write_shape_of(const struct cutter *c, uint32_t payload)
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

/* True when this packet asks for an acknowledgement. */
static inline bool write_asks_for_ack(struct requester *rq, const struct cutter *c,
				      const struct shape *s)
{
	bool ask = (c->flags & REQUESTER_ACK_REQUEST && s->last) ||
		   ++rq->unasked == REQUESTER_ACK_EVERY;

	if (ask)
		rq->unasked = 0;
	return ask;
}

/* Write all headers, masked, to <at>. */
static inline void write_headers(struct requester *rq, uint8_t *at, const struct cutter *c,
				 const struct shape *s)
{
	struct roce_header h = {
		.opcode = s->opcode,
		.pad = s->pad,
		.ack_request = write_asks_for_ack(rq, c, s),
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

/* Write pad and ICRC behind the packet's last byte. */
static void write_trailer(uint8_t *at, uint8_t pad, uint32_t crc)
{
	memset(at, 0, pad);
	crc = htole32(roce_icrc(crc, at, pad));
	memcpy(at + pad, &crc, sizeof(crc));
}

static uint32_t write_icrc_of_segments(const struct rte_mbuf *m)
{
	uint32_t crc = ROCE_ICRC_SEED, skip = ROCE_ETHER_LENGTH;

	for (; m != NULL; m = m->next) {
		crc = roce_icrc(crc, rte_pktmbuf_mtod_offset(m, uint8_t *, skip),
				m->data_len - skip);
		skip = 0;
	}
	return crc;
}

/*
 * Append pad and ICRC to a chain: in the last segment's tailroom if <in_place>, else in a new mbuf.
 */
static int write_append_trailer(struct requester *rq, struct rte_mbuf *head, uint8_t pad,
				bool in_place)
{
	struct rte_mbuf *last = rte_pktmbuf_lastseg(head), *more;
	uint32_t crc = write_icrc_of_segments(head);
	uint32_t length = pad + ROCE_ICRC_LENGTH;

	if (in_place && rte_pktmbuf_tailroom(last) >= length) {
		write_trailer(rte_pktmbuf_mtod_offset(last, uint8_t *, last->data_len), pad, crc);
		last->data_len += length;
		head->pkt_len += length;
		return 0;
	}
	more = rte_pktmbuf_alloc(rq->pool);
	if (more == NULL)
		return -ENOMEM;
	write_trailer(rte_pktmbuf_mtod(more, uint8_t *), pad, crc);
	more->data_len = length;
	more->pkt_len = length;
	last->next = more;
	head->nb_segs++;
	head->pkt_len += length;
	return 0;
}

static void write_window_push(struct requester *rq, struct rte_mbuf *m)
{
	rq->window[rq->next_psn & REQUESTER_WINDOW_MASK] = m;
	rq->next_psn = roce_psn_add(rq->next_psn, 1);
}

/* Build a packet around the payload in <m>: the usual and the fast case. <room>: behind it is some
 * for the trailer. */
static __rte_always_inline int write_in_place(struct requester *rq, const struct cutter *c,
					      struct rte_mbuf *m, bool room)
{
	struct shape s = write_shape_of(c, m->data_len);
	uint32_t front = rq->path->length + s.extensions;
	uint32_t trailer = s.pad + ROCE_ICRC_LENGTH, crc;
	uint8_t *at, *tail;
	int ret;

	at = (uint8_t *)rte_pktmbuf_prepend(m, front);
	if (at == NULL)
		return -EINVAL;
	write_headers(rq, at, c, &s);
	if (likely(room)) {
		tail = at + m->data_len;
		memset(tail, 0, s.pad);
		crc = htole32(roce_icrc(ROCE_ICRC_SEED, at + ROCE_ETHER_LENGTH,
					m->data_len + s.pad - ROCE_ETHER_LENGTH));
		memcpy(tail + s.pad, &crc, sizeof(crc));
		m->data_len += trailer;
		m->pkt_len += trailer;
	} else {
		ret = write_append_trailer(rq, m, s.pad, false);
		if (ret < 0) {
			rte_pktmbuf_adj(m, front);
			rq->unasked = REQUESTER_ACK_EVERY - 1; /* this packet may have asked */
			return ret;
		}
	}
	roce_header_unmask(at, rq->path);
	write_window_push(rq, m);
	return 0;
}

/* A pool whose buffers take a whole packet of the message: the one that its bytes came from. */
static struct rte_mempool *write_pool(struct rte_mbuf *message)
{
	return RTE_MBUF_CLONED(message) ? rte_mbuf_from_indirect(message)->pool : message->pool;
}

/* Copy a piece into a packet of its own, for ports that cannot send chains. Counts the copy. */
static struct rte_mbuf *write_copy(struct requester *rq, const struct cutter *c,
				   const struct shape *s)
{
	uint32_t front = rq->path->length + s->extensions;
	struct rte_mbuf *m = rte_pktmbuf_alloc(write_pool(c->message));
	uint8_t *at;

	if (m == NULL)
		return NULL;
	at = (uint8_t *)rte_pktmbuf_append(m, front + s->payload);
	if (at == NULL) {
		rte_pktmbuf_free(m);
		return NULL;
	}
	write_headers(rq, at, c, s);
	memcpy(at + front, rte_pktmbuf_mtod_offset(c->message, uint8_t *, c->offset), s->payload);
	if (write_append_trailer(rq, m, s->pad, true) < 0) {
		rte_pktmbuf_free(m);
		return NULL;
	}
	roce_header_unmask(at, rq->path);
	rq->stats.copies++;
	return m;
}

/* Build a header mbuf followed by an indirect mbuf that points at the message's bytes. */
static struct rte_mbuf *write_indirect(struct requester *rq, const struct cutter *c,
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
	write_headers(rq, at, c, s);
	rte_pktmbuf_attach(piece, c->message);
	piece->data_off = c->message->data_off + c->offset;
	piece->data_len = s->payload;
	piece->pkt_len = s->payload;
	head->next = piece;
	head->nb_segs = 2;
	head->pkt_len += s->payload;
	/* Only the last piece has free memory behind it; the others have the next piece there. */
	if (write_append_trailer(rq, head, s->pad, s->last && !c->shared) < 0)
		goto free_head;
	roce_header_unmask(at, rq->path);
	return head;
free_head:
	rte_pktmbuf_free(head);
	return NULL;
}

/* Build all packets of a message, or none; the caller sends them after that. */
static __attribute__((noinline)) int write_many(struct requester *rq, struct cutter cut)
{
	struct cutter *c = &cut;
	uint32_t first_psn = rq->next_psn, at_psn;
	struct rte_mbuf *m;
	struct shape s;

	while (c->offset < c->length) {
		s = write_shape_of(c, RTE_MIN(c->length - c->offset, rq->path->mtu));
		m = rq->multi_segment ? write_indirect(rq, c, &s) : write_copy(rq, c, &s);
		if (m == NULL)
			goto undo;
		write_window_push(rq, m);
		c->offset += s.payload;
	}
	/* The pieces hold references: drop the message's own. */
	rte_pktmbuf_free(c->message);
	return 0;
undo:
	for (at_psn = first_psn; at_psn != rq->next_psn; at_psn = roce_psn_add(at_psn, 1)) {
		rte_pktmbuf_free(rq->window[at_psn & REQUESTER_WINDOW_MASK]);
		rq->window[at_psn & REQUESTER_WINDOW_MASK] = NULL;
	}
	rq->next_psn = first_psn;
	rq->unasked = REQUESTER_ACK_EVERY - 1; /* one of the freed packets may have asked */
	return -ENOMEM;
}

/* Send the packets built since <first>. During a retransmission they wait, to keep the order. */
static inline void write_send_built(struct requester *rq, uint32_t first, struct rte_mbuf *only)
{
	*rq->held += roce_psn_diff(rq->next_psn, first);
	if (rq->una_psn == first)
		rq->timer = requester_clock(rq);
	if (unlikely(rq->send_psn != first || rq->hold_until != 0))
		return;
	if (likely(only != NULL && requester_may_push(rq)))
		requester_push_new(rq, only);
	else
		requester_pump(rq, REQUESTER_WINDOW);
}

/* Inlined, so that the compiler drops the cases that a caller's message cannot have. */
static __rte_always_inline int write_message(struct requester *rq, struct cutter c,
					     struct rte_mbuf *m)
{
	uint32_t first = rq->next_psn;
	bool room = rte_pktmbuf_tailroom(m) >= ROCE_TRAILER_MAX;
	/* A whole message without room gets no mbuf more: its owner, who may keep a reference to
	 * it, would free that once more. */
	bool one = m->data_len <= rq->path->mtu && (room || c.length != m->data_len);
	int ret;

	if (unlikely(rq->error != REQUESTER_OK))
		return -EPIPE;
	ret = likely(one) ? write_in_place(rq, &c, m, room) : write_many(rq, c);
	if (ret < 0)
		return ret;
	write_send_built(rq, first, one ? m : NULL);
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
	return write_message(rq, c, m);
}

int requester_write_shared(struct requester *rq, struct rte_mbuf *m, uint64_t va, uint32_t rkey,
			   uint32_t flags)
{
	struct cutter c = {.message = m,
			   .length = m->data_len,
			   .flags = flags,
			   .va = va,
			   .rkey = rkey,
			   .shared = true};
	uint32_t first = rq->next_psn;
	int ret;

	if (unlikely(rq->engine != NULL))
		return rq->engine->write(rq, m, va, rkey, 0, flags);
	if (unlikely(rq->error != REQUESTER_OK))
		return -EPIPE;
	ret = write_many(rq, c);
	if (ret == 0)
		write_send_built(rq, first, NULL);
	return ret;
}

void requester_engine_sent(struct requester *rq, struct rte_mbuf *m)
{
	write_window_push(rq, m);
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

	return write_message(rq, c, m);
}
