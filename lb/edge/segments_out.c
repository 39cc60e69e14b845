/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Segments to clients. The bytes are where the worker's packets put them, and stay until the client
 * has acknowledged them; the headers are in front of them, or in an mbuf of their own.
 */
#include "edge/edge_private.h"
#include "observe/flow_trace.h"
#include "packet/client_headers.h"
#include "runtime/txq.h"

/* Copied instead of referred to: another mbuf costs more than these bytes. */
#define EMIT_COPY_MAX 128
/* Bytes in which a number is looked for mbuf by mbuf: few lie behind what was sent last. */
#define EMIT_NEAR       16384
#define EMIT_MARK_EVERY 64

#define EMIT_ECT0 2 /* RFC 3168, 5 */

static struct rte_mbuf *emit_alloc(struct edge *e, const struct client_path *path,
				   enum flow_family family, uint32_t size, uint8_t **tcp)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(e->lc->control);
	uint16_t length = client_headers_length(path, family, size);

	if (m == NULL)
		return NULL;
	m->data_len = m->pkt_len = length;
	*tcp = rte_pktmbuf_mtod_offset(m, uint8_t *, length - size);
	return m;
}

/* The sum of a packet's bytes from <offset> on, which is in its first mbuf. */
static uint64_t emit_sum(struct rte_mbuf *m, uint16_t offset)
{
	uint64_t sum;

	m->data_off += offset;
	m->data_len -= offset;
	sum = client_sum_chain(m);
	m->data_off -= offset;
	m->data_len += offset;
	return sum;
}

/* Writes everything in front of TCP, and the checksum, and hands the packet to the port. */
static inline __attribute__((always_inline)) void emit_send(struct edge *e, struct rte_mbuf *m,
							    const struct client_ends *ends,
							    const struct client_path *path,
							    uint8_t *tcp, uint8_t hops, uint8_t ecn)
{
	uint8_t *at = rte_pktmbuf_mtod(m, uint8_t *), *ip;
	uint16_t length = m->pkt_len - (uint16_t)(tcp - at), sum;
	const struct port *port = &e->lc->lb->port[path->port];
	uint64_t checksums = port->tx_tcp_checksums[ends->family == FLOW_IPV6];

	ip = client_write_ether(at, port->mac, path, ends->family);
	client_write_ip(ip, ends, length, hops, ecn);
	if (checksums & RTE_MBUF_F_TX_TCP_CKSUM)
		sum = checksum_fold(
			client_sum_pseudo(ip, ends, length)); /* the port adds the rest */
	else
		sum = ~checksum_fold(client_sum_pseudo(ip, ends, length) + emit_sum(m, tcp - at));
	memcpy(tcp + 16, &sum, sizeof(sum));
	if (checksums != 0)
		client_offload(m, ip, ip - at, tcp - ip, checksums);
	txq_push(&e->lc->tx[path->port], m);
}

void edge_emit_bare(struct edge *e, const struct flow_key *key, const struct client_path *path,
		    const struct tcp_header *h)
{
	const struct client_ends ends = {
		.client = &key->src,
		.local = &key->dst,
		.family = key->family,
		.protocol = IPPROTO_TCP,
	};
	uint32_t size = tcp_header_size(h);
	struct rte_mbuf *m;
	uint8_t *tcp;

	if (txq_room(&e->lc->tx[path->port]) == 0)
		return;
	m = emit_alloc(e, path, key->family, size, &tcp);
	if (m == NULL)
		return;
	tcp_header_write(h, key->dst_port, key->src_port, tcp);
	emit_send(e, m, &ends, path, tcp, client_path_hops(path), 0);
}

static __attribute__((noinline)) void emit_mark(struct edge_busy *b, struct rte_mbuf *m,
						uint32_t seq)
{
	*edge_mark(m) = (struct edge_mark){.seq = seq};
	if (b->marked == NULL)
		b->marked = m;
	else
		edge_mark(b->last_marked)->next = m;
	b->last_marked = m;
	b->unmarked = 0;
}

/* <m>, at number <seq>, is the next mbuf that is sent for the first time. */
static inline void emit_move_front(struct edge_busy *b, struct rte_mbuf *m, uint32_t seq)
{
	b->front_seq = seq;
	if (unlikely(++b->unmarked == EMIT_MARK_EVERY))
		emit_mark(b, m, seq);
}

/* The last one that is marked and not behind <seq>, if it is behind <at>, which is at <from>. */
static struct rte_mbuf *emit_find_mark(const struct edge_busy *b, uint32_t seq, struct rte_mbuf *at,
				       uint32_t *from)
{
	struct rte_mbuf *m = b->marked;

	for (; m != NULL && !sequence_after(edge_mark(m)->seq, seq); m = edge_mark(m)->next) {
		if (sequence_before(edge_mark(m)->seq, *from))
			continue;
		at = m;
		*from = edge_mark(m)->seq;
	}
	return at;
}

/* See edge_find_out(). */
static inline __attribute__((always_inline)) struct rte_mbuf *
emit_search(struct edge_busy *b, uint32_t seq, uint32_t *from)
{
	struct rte_mbuf *at = b->at;

	*from = b->at_seq;
	if (at == NULL || sequence_before(seq, *from)) {
		at = b->out;
		*from = b->out_seq;
	}
	if (unlikely(seq - *from > EMIT_NEAR))
		at = emit_find_mark(b, seq, at, from);
	while (at != NULL && !sequence_before(seq, *from + at->data_len)) {
		*from += at->data_len;
		at = at->next;
		if (at != NULL && sequence_after(*from, b->front_seq))
			emit_move_front(b, at, *from);
	}
	return at;
}

struct rte_mbuf *edge_find_out(struct edge_busy *b, uint32_t seq, uint32_t *from)
{
	return emit_search(b, seq, from);
}

/* The mbuf of the send queue with the byte of number <seq>, and the bytes before it there. */
static inline struct rte_mbuf *emit_find(struct edge_busy *b, uint32_t seq, uint32_t *skip)
{
	uint32_t from = b->at_seq;

	/* A lone segment begins with the first mbuf. */
	if (b->at == NULL && seq == b->out_seq && b->out->data_len > 0) {
		b->at = b->out;
		from = seq;
	} else {
		b->at = emit_search(b, seq, &from);
	}
	b->at_seq = from;
	*skip = seq - from;
	return b->at;
}

/* Appends <length> bytes of the send queue from <seq> on to <m>. <copies>: few bytes may be copied
 * behind those that are there. False: no memory. */
static bool emit_payload(struct edge *e, struct edge_busy *b, uint32_t seq, uint32_t length,
			 struct rte_mbuf *m, bool copies)
{
	struct rte_mbuf *last = m;
	uint32_t skip;

	for (struct rte_mbuf *at = emit_find(b, seq, &skip); length > 0; at = at->next, skip = 0) {
		uint32_t part = RTE_MIN(length, at->data_len - skip);
		struct rte_mbuf *piece;

		m->pkt_len += part;
		length -= part;
		if (copies && part <= EMIT_COPY_MAX && last == m &&
		    rte_pktmbuf_tailroom(m) >= part) {
			memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, m->data_len),
			       rte_pktmbuf_mtod_offset(at, uint8_t *, skip), part);
			m->data_len += part;
			continue;
		}
		piece = edge_refer(e, at, rte_pktmbuf_mtod_offset(at, const uint8_t *, skip), part);
		if (piece == NULL)
			return false;
		last->next = piece;
		last = piece;
		m->nb_segs++;
	}
	return true;
}

/*
 * The bytes of a segment, the first of them and its headers in one mbuf, which refers to the
 * worker's packet or to a framing's text: the headers are written in front of the bytes there.
 * NULL: they do not lie like this, or the segment sent before is still on its way to the wire.
 */
static struct rte_mbuf *emit_in_place(struct edge *e, struct edge_busy *b,
				      const struct client_path *path, enum flow_family family,
				      const struct tcp_header *h, uint32_t size, uint8_t **tcp)
{
	uint16_t length = client_headers_length(path, family, size);
	struct rte_mbuf *at, *m;
	uint32_t skip, part;

	at = emit_find(b, h->seq, &skip);
	if (at == NULL || skip != 0 || !RTE_MBUF_DIRECT(at) || rte_mbuf_refcnt_read(at) > 1 ||
	    rte_pktmbuf_headroom(at) < length)
		return NULL;
	part = RTE_MIN(h->length, at->data_len);
	if (unlikely(part < h->length) && part <= EMIT_COPY_MAX)
		return NULL;
	m = rte_mbuf_raw_alloc(e->lc->indirect_pool); /* attaching sets all the rest */
	if (m == NULL)
		return NULL;
	rte_pktmbuf_attach(m, at);
	m->data_off -= length;
	m->data_len = m->pkt_len = length + part;
	*tcp = rte_pktmbuf_mtod_offset(m, uint8_t *, length - size);
	if (likely(part == h->length))
		return m;
	if (emit_payload(e, b, h->seq + part, h->length - part, m, false))
		return m;
	rte_pktmbuf_free(m);
	return NULL;
}

/* The same, with headers in an mbuf of their own. NULL: no memory. */
static struct rte_mbuf *emit_in_parts(struct edge *e, struct edge_busy *b,
				      const struct client_path *path, enum flow_family family,
				      const struct tcp_header *h, uint32_t size, uint8_t **tcp)
{
	struct rte_mbuf *m = emit_alloc(e, path, family, size, tcp);

	if (m == NULL)
		return NULL;
	if (h->length > 0 && !emit_payload(e, b, h->seq, h->length, m, true)) {
		rte_pktmbuf_free(m);
		return NULL;
	}
	return m;
}

/* As many mbufs as the port takes. NULL: no memory. */
static struct rte_mbuf *emit_join(struct edge *e, struct edge_connection *c, struct rte_mbuf *m,
				  uint32_t bytes, uint8_t **tcp)
{
	uint32_t offset;

	/* A packet that the port cuts has as many as the port takes. */
	if (likely(m->nb_segs <= e->lc->lb->port[c->path.port].segments_max) || bytes > c->tcp.mss)
		return m;
	offset = *tcp - rte_pktmbuf_mtod(m, uint8_t *);
	m = client_join(e->lc->packets, m);
	if (m != NULL)
		*tcp = rte_pktmbuf_mtod_offset(m, uint8_t *, offset);
	return m;
}

/* Builds and sends one segment of <c>. False: no memory; the segment counts as lost. */
static bool emit_one(struct edge *e, struct edge_connection *c, const struct flow *flow,
		     const struct tcp_header *h)
{
	const struct flow_local *local = conntrack_local(e->lc->ct, flow);
	const struct client_ends ends = {
		.client = &flow->client,
		.local = &local->address,
		.family = local->family,
		.protocol = IPPROTO_TCP,
	};
	uint32_t size = tcp_header_size(h);
	struct rte_mbuf *m = NULL;
	uint8_t *tcp;

	if (h->length > EMIT_COPY_MAX)
		m = emit_in_place(e, c->busy, &c->path, local->family, h, size, &tcp);
	if (m == NULL)
		m = emit_in_parts(e, c->busy, &c->path, local->family, h, size, &tcp);
	if (m != NULL && m->nb_segs > 1)
		m = emit_join(e, c, m, h->length, &tcp);
	if (m == NULL)
		return false;
	tcp_header_write(h, local->port, flow->client_port, tcp);
	emit_send(e, m, &ends, &c->path, tcp, CLIENT_PATH_HOPS,
		  c->tcp.ecn && h->length > 0 ? EMIT_ECT0 : 0);
	if (unlikely(h->length > c->tcp.mss))
		edge_let_cut(e, flow, m, tcp, h, c->tcp.mss);
	conntrack_count_out(e->lc->ct, flow, h->length);
	return true;
}

/* Segments of a connection in a turn, and in one that has sent EDGE_SEGMENTS: the others have
 * theirs, and the lcore its other work. */
#define EMIT_AT_ONCE 16u
#define EMIT_LEAST   2u

/* The next segment. Of a connection whose turn is to come only an acknowledgement. */
static inline bool emit_next(struct edge *e, struct edge_connection *c, struct tcp_header *h)
{
	return unlikely(c->goes_on) ? tcp_next_alone(&e->stack, &c->tcp, h)
				    : tcp_next(&e->stack, &c->tcp, h);
}

/* It has more, and goes on in one of the next turns. */
static __rte_noinline void emit_go_on(struct edge *e, struct edge_connection *c)
{
	struct edge_client *client;

	e->goes_on = true;
	if (c->busy == NULL || c->busy->out == NULL)
		return edge_touch(e, c);
	client = c->busy->client;
	c->is_due = c->goes_on = true;
	if (STAILQ_EMPTY(&client->more))
		TAILQ_INSERT_TAIL(&e->due_more, client, more_turn);
	STAILQ_INSERT_TAIL(&client->more, c, due);
}

bool edge_emit(struct edge *e, struct edge_connection *c, unsigned int *sent)
{
	const struct flow *flow = edge_flow(e, c);
	unsigned int left = *sent < EDGE_SEGMENTS ? EMIT_AT_ONCE : EMIT_LEAST;
	struct tcp_header h;

	if (unlikely(flow == NULL)) {
		c->tcp.state = TCP_CLOSED;
		return true;
	}
	do {
		if (txq_room(&e->lc->tx[c->path.port]) == 0)
			return false;
		if (!emit_next(e, c, &h))
			return true;
		if (unlikely(e->lc->tx[c->path.port].cuts))
			edge_extend(e, c, &h);
		if (!emit_one(e, c, flow, &h)) {
			e->lc->stats.drop[LB_DROP_NO_MBUF]++;
			/* No timer sends it again. */
			c->tcp.rst_now = h.flags & TCP_BIT_RST;
			return false;
		}
		if (unlikely(e->lc->trace != NULL && h.flags & TCP_BIT_RST))
			trace_connection(e->lc, c->handle, TRACE_RESET, 0, 0);
		(*sent)++;
	} while (!tcp_is_quiet(&c->tcp) && --left > 0);
	if (unlikely(left == 0) && !edge_is_over(c) && !c->goes_on)
		emit_go_on(e, c);
	return true;
}
