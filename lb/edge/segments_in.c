/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Segments from clients: to their connection, or to what opens one, or they get a reset. New bytes
 * stay in the packet and go on as pieces.
 */
#include <errno.h>

#include "edge/edge_private.h"
#include "observe/drop_packet.h"
#include "tcp/cookie.h"

struct arrival {
	struct rte_mbuf *m;
	const struct parsed *parsed;
	const struct flow_key *key;
	uint32_t hash;
	struct flow *flow;
	struct tcp_header header;
};

static struct client_path segments_path(const struct arrival *a)
{
	struct client_path path = {0};

	parsed_path(a->parsed, rte_pktmbuf_mtod(a->m, const uint8_t *), &path);
	return path;
}

static void segments_ends(const struct flow_key *key, struct tcp_ends *ends)
{
	*ends = (struct tcp_ends){
		.client = key->src,
		.server = key->dst,
		.client_port = key->src_port,
		.server_port = key->dst_port,
		.zone = key->zone,
	};
}

/* Bytes of payload that a segment may carry; edge_select() was called. */
static uint16_t segments_mss(const struct edge *e, const struct arrival *a)
{
	uint16_t mss = e->lc->lb->config.port[a->parsed->port].mtu -
		       (a->key->family == FLOW_IPV4 ? 40 : 60);

	return RTE_MIN(mss, e->stack.settings->mss);
}

/* Has a router marked it, on a connection to which that matters? */
static bool segments_marked(const struct edge_connection *c, const struct arrival *a)
{
	const uint8_t *ip;

	if (likely(!c->tcp.ecn))
		return false;
	ip = rte_pktmbuf_mtod_offset(a->m, const uint8_t *, a->parsed->ip_offset);
	return (a->key->family == FLOW_IPV4 ? ip[1] & 3 : ip[1] >> 4 & 3) == 3;
}

static void segments_drop(struct edge *e, struct arrival *a, enum lb_drop reason)
{
	lcore_drop(e->lc, a->m, reason);
	a->m = NULL;
}

/* Answers a segment that no connection takes. */
static void segments_answer(struct edge *e, const struct arrival *a, const struct tcp_header *out)
{
	struct client_path path = segments_path(a);

	edge_emit_bare(e, a->key, &path, out);
}

static void segments_reset(struct edge *e, struct arrival *a, enum lb_drop reason)
{
	struct tcp_header out;

	if (tcp_reset_for(&a->header, &out))
		segments_answer(e, a, &out);
	segments_drop(e, a, reason);
}

/* --- segments of a connection ---------------------------------------------------------------
 */

static inline struct placement_piece segments_piece(const struct edge_busy *b,
						    const struct arrival *a,
						    const struct tcp_new *new, uint32_t expected)
{
	return (struct placement_piece){
		.position = edge_came(b) + (new->seq - expected),
		.bytes = rte_pktmbuf_mtod_offset(a->m, const uint8_t *,
						 a->parsed->payload_offset + new->offset),
		.length = new->length,
	};
}

/* The bytes of one range: a piece, which holds the packet. */
static void segments_add_piece(struct edge *e, struct edge_busy *b, const struct arrival *a,
			       const struct tcp_new *new, uint32_t expected)
{
	struct edge_piece *p = e->free_piece;

	e->free_piece = (struct edge_piece *)p->piece.next;
	e->n_pieces--;
	p->m = a->m;
	edge_hold(b, 1);
	p->piece = segments_piece(b, a, new, expected);
	if (unlikely(b->tls != NULL))
		edge_tls_take(b, p);
	else
		placement_take(&b->placement, &p->piece);
}

/* Pieces of fewer bytes are copied behind the piece before them. */
#define SEGMENTS_SMALL 256

/* May bytes be added at the end of the packet, and be those that follow the piece? */
static bool segments_has_room(const struct edge_piece *p, uint32_t length)
{
	struct rte_mbuf *m = p->m;

	return m != NULL && RTE_MBUF_DIRECT(m) && rte_mbuf_refcnt_read(m) == 1 && m->nb_segs == 1 &&
	       rte_pktmbuf_tailroom(m) >= length &&
	       p->piece.bytes + p->piece.length ==
		       rte_pktmbuf_mtod_offset(m, const uint8_t *, m->data_len);
}

/*
 * A client may send byte by byte, and what cannot be read yet would hold a packet for each.
 */
bool edge_join(struct edge_busy *b, uint64_t position, const uint8_t *bytes, uint32_t length)
{
	struct edge_piece *before = (struct edge_piece *)placement_before(&b->placement, position);

	if (before == NULL || !segments_has_room(before, length))
		return false;
	memcpy(rte_pktmbuf_append(before->m, length), bytes, length);
	placement_extend(&b->placement, &before->piece, length);
	return true;
}

/* False: the range is a piece of its own. */
static bool segments_join(struct edge_busy *b, const struct arrival *a, const struct tcp_new *new,
			  uint32_t expected)
{
	if (likely(b->placement.held == NULL) || new->length >= SEGMENTS_SMALL || b->tls != NULL)
		return false;
	return edge_join(b, b->in_order + (new->seq - expected),
			 rte_pktmbuf_mtod_offset(a->m, const uint8_t *,
						 a->parsed->payload_offset + new->offset),
			 new->length);
}

/* Is the segment a whole request, and nothing else? Then it needs no piece. */
static inline bool segments_take_whole(struct edge *e, struct edge_connection *c, struct arrival *a,
				       const struct tcp_received *r)
{
	uint32_t length = a->parsed->payload_length;
	const struct edge_busy *b = c->busy;

	if (b->placement.stream.position != b->in_order || r->n_new != 1 ||
	    r->new[0].length != length || r->advanced != length || unlikely(b->tls != NULL) ||
	    !edge_take_whole(
		    e, c, a->m,
		    rte_pktmbuf_mtod_offset(a->m, const uint8_t *, a->parsed->payload_offset)))
		return false;
	a->m = NULL;
	return true;
}

/* Do the bytes belong to the request that is open, and is nothing held? They need none either. */
static inline bool segments_fill(struct edge_connection *c, struct arrival *a,
				 const struct tcp_received *r, uint32_t expected)
{
	const struct tcp_new *new = &r->new[0];
	struct edge_busy *b = c->busy;
	struct edge_piece p;

	if (r->n_new != 1 || b->placement.held != NULL || unlikely(b->tls != NULL) ||
	    b->placement.stream.position < b->in_order + (new->seq - expected) + new->length)
		return false;
	p = (struct edge_piece){.piece = segments_piece(b, a, new, expected), .m = a->m};
	a->m = NULL;
	edge_hold(b, 1);
	placement_fill(&b->placement, &p.piece);
	if (p.m != NULL) {
		rte_pktmbuf_free(p.m);
		edge_let_go(b, 1);
	}
	b->in_order += r->advanced;
	/* In the middle of it there is no reply to carry the acknowledgement. */
	if (b->placement.stream.position > b->in_order)
		tcp_acknowledge(&c->tcp);
	return true;
}

/* True: there is nothing to read now. */
static bool segments_take_bytes(struct edge *e, struct edge_connection *c, struct arrival *a,
				const struct tcp_received *r, uint32_t expected)
{
	struct edge_busy *b = c->busy;

	if (r->n_new == 1 && segments_join(b, a, &r->new[0], expected)) {
		b->in_order += r->advanced;
		return false;
	}
	/* Frames may be padded: the packet ends with the segment. */
	a->m->data_len = a->m->pkt_len = a->parsed->payload_offset + a->parsed->payload_length;
	if (segments_fill(c, a, r, expected) || segments_take_whole(e, c, a, r))
		return true;
	if (r->n_new > 1)
		rte_mbuf_refcnt_update(a->m, r->n_new - 1);
	for (unsigned int i = 0; i < r->n_new; i++)
		segments_add_piece(e, b, a, &r->new[i], expected);
	if (r->n_new > 0)
		a->m = NULL;
	if (unlikely(b->tls != NULL))
		edge_tls_came(b, r->advanced);
	else
		b->in_order += r->advanced;
	return false;
}

static void segments_established(struct edge *e, struct edge_connection *c, const struct arrival *a)
{
	a->flow->state = FLOW_TCP_OPEN;
	if (unlikely(e->lc->trace != NULL))
		trace_opened(e->lc, a->key, a->flow, c->tcp.mss);
	edge_set_opening(e, c, false);
}

/* Answers go back by the way that the last good segment came: routers change. */
static void segments_follow_path(const struct edge *e, struct edge_connection *c,
				 const struct arrival *a)
{
	bool moved = c->path.port != a->parsed->port;

	parsed_path(a->parsed, rte_pktmbuf_mtod(a->m, const uint8_t *), &c->path);
	if (unlikely(moved))
		tcp_set_mss(&c->tcp, segments_mss(e, a));
}

/*
 * Have the bytes their place, in a worker's memory or with those that are gathered? They are not
 * held beyond this turn, and without them those that wait for a place would wait for ever. A
 * segment may begin with bytes that came before.
 */
static bool segments_have_place(const struct edge_connection *c, uint32_t ahead)
{
	/* Records are read in order only. */
	if (unlikely(c->secured) && ahead > 0)
		return false;
	return c->busy->unwritten == 0 && edge_large_has_place(c->busy, c->busy->in_order + ahead);
}

/*
 * Will the bytes not be held for long? A client that has used up its share may fill gaps, so that
 * what is behind them can go on, up to a quarter more.
 */
static bool segments_fill_gap(const struct edge *e, const struct edge_connection *c, uint32_t ahead)
{
	return ahead == 0 && (c->busy == NULL || (c->busy->unwritten == 0 &&
						  edge_requests_of(c->busy->client) < e->share));
}

/* May one more packet be held for the client? */
static enum lb_drop segments_check_share(const struct edge *e, const struct edge_connection *c,
					 const struct arrival *a)
{
	const struct edge_client *client;
	bool room = edge_has_room(e);
	uint32_t ahead;

	client = c != NULL && c->busy != NULL ? c->busy->client
		 : a->flow != NULL            ? edge_client_of(e, a->flow)
					      : NULL;
	if (likely(room && (client == NULL || edge_client_has_room(e, client))))
		return LB_DROP_NONE;
	if ((client == NULL || edge_client_is_small(e, client)) && e->held < e->budget)
		return LB_DROP_NONE;
	if (c != NULL && !c->stalled) {
		ahead = sequence_max(a->header.seq, c->tcp.rcv_nxt) - c->tcp.rcv_nxt;
		if ((c->busy != NULL && segments_have_place(c, ahead)) ||
		    (room && segments_fill_gap(e, c, ahead)))
			return LB_DROP_NONE;
	}
	return room ? LB_DROP_TCP_CLIENT : LB_DROP_TCP_MEMORY;
}

/* May the client have another busy connection? One byte of a header keeps it so. */
static enum lb_drop segments_check_busy(const struct edge *e, const struct arrival *a)
{
	const struct edge_client *client = a->flow == NULL ? NULL : edge_client_of(e, a->flow);

	if (e->free_busy == NULL)
		return LB_DROP_TCP_MEMORY;
	return client == NULL || client->users < e->busy_share ? LB_DROP_NONE : LB_DROP_TCP_CLIENT;
}

/* A segment that is taken is acknowledged, so there must be memory to keep it. <c>: NULL: it has
 * none of its own. LB_DROP_NONE, or the reason. */
static enum lb_drop segments_check_memory(const struct edge *e, const struct edge_connection *c,
					  const struct arrival *a)
{
	enum lb_drop reason;

	if (a->header.length == 0)
		return LB_DROP_NONE;
	if (e->n_pieces < EDGE_PIECES)
		return LB_DROP_TCP_MEMORY;
	if (unlikely(edge_is_short_of_busy(e)) && (c == NULL || c->busy == NULL)) {
		reason = segments_check_busy(e, a);
		if (reason != LB_DROP_NONE)
			return reason;
	}
	return likely(edge_has_plenty(e)) ? LB_DROP_NONE : segments_check_share(e, c, a);
}

static void segments_acknowledged(struct edge *e, struct edge_connection *c, uint32_t bytes)
{
	edge_acknowledged(e, c);
	if (unlikely(e->lc->trace != NULL))
		trace_connection(e->lc, c->handle, TRACE_RECEIVED, bytes, c->tcp.pipe);
}

/* Did all its bytes come before? They need no memory. */
static bool segments_is_old(const struct edge_connection *c, const struct arrival *a)
{
	return !sequence_after(a->header.seq + a->header.length, c->tcp.rcv_nxt);
}

/*
 * A segment of the connection finds no memory for its bytes, and is taken without them: what it
 * acknowledges counts. Some of its bytes may have come before.
 */
static void segments_strip(const struct edge_connection *c, struct arrival *a)
{
	a->header.seq = sequence_max(a->header.seq, c->tcp.rcv_nxt);
	a->header.length = 0;
	a->header.flags &= ~TCP_BIT_FIN;
}

/* It proved to be the client's, who tries again later and later, and is told how far it has come.
 */
static void segments_refuse(struct edge *e, struct edge_connection *c, const struct arrival *a,
			    enum lb_drop reason)
{
	edge_note_short(e);
	if (c->busy != NULL)
		edge_note_refused(c->busy);
	e->lc->stats.drop[reason]++;
	if (unlikely(e->lc->trace != NULL))
		trace_dropped(e->lc, a->m, reason);
	c->tcp.ack_now = true;
}

/* Would a half-open connection become one too many for its client? It comes again, until that has
 * room or the handshake is given up. */
static bool segments_is_beyond_share(const struct edge *e, const struct edge_connection *c,
				     const struct arrival *a)
{
	return c->opening && (a->header.flags & TCP_BIT_RST) == 0 && edge_opener_is_full(e, c);
}

/* Its bytes are acknowledged, and dropped, as long as they may be those of a body that the client
 * sends to its end. */
static __rte_noinline void segments_linger(struct edge *e, struct edge_connection *c,
					   const struct arrival *a)
{
	uint32_t most = EDGE_LINGER_BYTES + e->lc->services->max_request[c->service];

	c->lingered += RTE_MAX(a->header.length, SEGMENTS_SMALL);
	if (c->lingered <= most || (c->busy != NULL && c->busy->first != NULL) || c->tcp.rst_now ||
	    edge_is_over(c))
		return;
	edge_count_drop(e, c, LB_DROP_TCP_LINGERED);
	tcp_abort(&c->tcp);
}

static void segments_take(struct edge *e, struct edge_connection *c, struct arrival *a)
{
	uint32_t expected = c->tcp.rcv_nxt;
	enum lb_drop reason = segments_check_memory(e, c, a);
	struct tcp_received r;
	bool read = false;

	if (unlikely(segments_is_beyond_share(e, c, a)))
		return segments_drop(e, a, LB_DROP_TCP_CLIENT_FULL);
	if (unlikely(reason != LB_DROP_NONE)) {
		if (segments_is_old(c, a))
			reason = LB_DROP_NONE;
		else
			segments_strip(c, a);
	}
	if (a->header.length > 0 && c->busy == NULL)
		edge_begin(e, c);
	edge_select(e, c->service);
	tcp_receive(&e->stack, &c->tcp, &a->header, segments_marked(c, a), &r);
	edge_touch(e, c);
	if (unlikely(e->lc->trace != NULL && r.reset))
		trace_connection(e->lc, c->handle, TRACE_RESET, 1, 0);
	/* Also when its bytes are refused for want of memory. */
	if (r.established)
		segments_established(e, c, a);
	if (r.refusal == TCP_REFUSAL_HANDSHAKE)
		return segments_reset(e, a, LB_DROP_TCP_REFUSED);
	if (unlikely(r.refusal == TCP_REFUSAL_ROOM))
		edge_note_short(e);
	if (r.refusal != TCP_REFUSAL_NONE)
		return segments_drop(e, a, LB_DROP_TCP_REFUSED);
	if (unlikely(reason != LB_DROP_NONE) && !r.closed)
		segments_refuse(e, c, a, reason);
	segments_follow_path(e, c, a);
	conntrack_touch(a->flow, e->lc->now_ms);
	conntrack_count_in(a->flow, a->header.length);
	if (r.acked > 0)
		segments_acknowledged(e, c, r.acked);
	if (unlikely(c->closing) && a->header.length > 0)
		segments_linger(e, c, a);
	else if (r.n_new > 0)
		read = segments_take_bytes(e, c, a, &r, expected);
	c->ended |= r.finished;
	if (read && !c->ended)
		return;
	if (c->busy != NULL)
		edge_progress(e, c);
	else if (c->ended && !c->closing)
		edge_close(e, c);
}

/* --- segments without a connection
 * ------------------------------------------------------------------------------
 */

/* A flow and a connection for the client. NULL: counted and dropped. */
static struct edge_connection *segments_open(struct edge *e, struct arrival *a, uint16_t service)
{
	struct client_path path = segments_path(a);
	struct lcore *lc = e->lc;
	struct edge_connection *c;

	a->flow = conntrack_flow_insert(lc->ct, a->key, a->hash, FLOW_TCP_OPENING, service,
					lc->now_ms);
	if (a->flow == NULL) {
		segments_drop(e, a,
			      errno == EDQUOT ? LB_DROP_SOURCE_LIMIT : LB_DROP_FLOW_TABLE_FULL);
		return NULL;
	}
	a->flow->sums_left = lcore_sum_was_left(a->m);
	c = edge_open(e, a->flow, a->hash, &path);
	if (c == NULL) {
		conntrack_flow_remove(lc->ct, a->flow);
		segments_drop(e, a, LB_DROP_TCP_FULL);
	}
	return c;
}

static void segments_answer_by_cookie(struct edge *e, const struct arrival *a,
				      const struct tcp_ends *ends)
{
	struct tcp_header out;

	tcp_cookie_answer(&e->stack, &e->secret, ends, &a->header, e->first_window, &out);
	out.mss = segments_mss(e, a);
	segments_answer(e, a, &out);
}

/* <least>: the lowest initial number, or 0. */
static void segments_syn(struct edge *e, struct arrival *a, uint16_t service, uint32_t least)
{
	enum edge_may_open may = edge_may_open(e, a->key);
	struct edge_connection *c;
	struct tcp_ends ends;
	uint32_t first;

	if (may == EDGE_MAY_NOT_OPEN)
		return segments_drop(e, a, LB_DROP_TCP_CLIENT_FULL);
	segments_ends(a->key, &ends);
	edge_select(e, service);
	if (e->backlog[service] >= e->backlog_max || may == EDGE_MAY_OPEN_BY_COOKIE)
		return segments_answer_by_cookie(e, a, &ends);
	c = segments_open(e, a, service);
	if (c == NULL)
		return;
	edge_set_opening(e, c, true);
	first = tcp_secret_sequence(&e->secret, &ends, e->stack.now_us);
	if (least != 0 && sequence_before(first, least))
		first = least;
	tcp_open(&e->stack, &c->tcp, &a->header, segments_mss(e, a), e->first_window, first,
		 tcp_secret_timestamp(&e->secret, &ends));
	edge_touch(e, c);
}

/* May an acknowledgement be the answer to a cookie? */
static bool segments_cookie(struct edge *e, struct arrival *a, uint16_t service)
{
	struct tcp_connection opened;
	struct edge_connection *c;
	struct tcp_ends ends;
	enum lb_drop reason;

	segments_ends(a->key, &ends);
	edge_select(e, service);
	if (!tcp_cookie_open(&e->stack, &e->secret, &ends, &a->header, segments_mss(e, a),
			     e->first_window, &opened)) {
		if (!tcp_cookie_may_come(&e->stack, &e->secret, &ends, &a->header))
			return false;
		segments_drop(e, a, LB_DROP_TCP_EARLY);
		return true;
	}
	/* The connection would have no timer; the segment will come again. */
	reason = edge_may_open(e, a->key) == EDGE_MAY_NOT_OPEN ? LB_DROP_TCP_CLIENT_FULL
							       : segments_check_memory(e, NULL, a);
	if (reason != LB_DROP_NONE) {
		edge_note_short(e);
		segments_drop(e, a, reason);
		return true;
	}
	c = segments_open(e, a, service);
	if (c == NULL)
		return true;
	c->tcp = opened;
	e->stack.counters.cookies_in++;
	segments_take(e, c, a);
	return true;
}

static void segments_strange(struct edge *e, struct arrival *a, uint32_t least)
{
	const uint8_t flags = a->header.flags & (TCP_BIT_SYN | TCP_BIT_ACK | TCP_BIT_RST);
	uint16_t service = service_lookup(&e->lc->services->table, a->key);

	e->changed[e->n_changed++] = a->hash;
	if (lb_owns_address(e->lc->lb, &a->key->src))
		return segments_drop(e, a, LB_DROP_BAD_SOURCE);
	if (service == SERVICE_NOT_OURS)
		return segments_drop(e, a, LB_DROP_NOT_OUR_ADDRESS);
	if (service == SERVICE_NONE)
		return segments_reset(e, a, LB_DROP_TCP_UNKNOWN);
	if (e->lc->stop != STOP_NOT)
		return segments_reset(e, a, LB_DROP_STOPPING);
	if (flags == TCP_BIT_SYN)
		return segments_syn(e, a, service, least);
	if (flags == TCP_BIT_ACK && segments_cookie(e, a, service))
		return;
	segments_reset(e, a, LB_DROP_TCP_UNKNOWN);
}

static void segments_wait(struct edge *e, struct arrival *a)
{
	struct edge_wait *w = edge_wait_of(e, a->flow);
	struct tcp_header out;

	if (w == NULL) {
		conntrack_flow_remove(e->lc->ct, a->flow);
		return segments_strange(e, a, 0);
	}
	switch (tcp_time_wait_receive(&w->wait, e->stack.now_ms, &a->header, &out)) {
	case TCP_TIME_WAIT_RESTART:
		edge_wait_restart(e, w, a->flow);
		/* fall through */
	case TCP_TIME_WAIT_ANSWER:
		segments_answer(e, a, &out);
		return;
	case TCP_TIME_WAIT_REOPEN:
		conntrack_flow_remove(e->lc->ct, a->flow);
		return segments_strange(e, a, out.seq);
	case TCP_TIME_WAIT_IGNORE:
		return;
	}
}

static void segments_receive_one(struct edge *e, struct arrival *a)
{
	if (tcp_header_read(rte_pktmbuf_mtod_offset(a->m, const uint8_t *, a->parsed->l4_offset),
			    a->parsed->l4_length, &a->header) != 0)
		return segments_drop(e, a, LB_DROP_TCP_HEADER);
	if (unlikely(e->lc->trace != NULL))
		trace_segment(e->lc, a->m, a->key, a->flow, &a->header);
	if (a->flow == NULL)
		segments_strange(e, a, 0);
	else if (a->flow->state == FLOW_TCP_WAIT)
		segments_wait(e, a);
	else
		segments_take(e, edge_connection_of(e, a->flow), a);
	if (a->m != NULL)
		rte_pktmbuf_free(a->m);
}

/* Has an earlier segment of the burst begun or ended the flow? */
static bool segments_changed(const struct edge *e, uint32_t hash)
{
	for (unsigned int i = 0; i < e->n_changed; i++)
		if (e->changed[i] == hash)
			return true;
	return false;
}

/* Smaller ones only serve attackers: as Linux has it (min_pmtu), and RFC 8200, 5. */
#define SEGMENTS_MTU4_MIN 552
#define SEGMENTS_MTU6_MIN 1280

bool edge_too_big(struct lcore *lc, const struct flow *flow, uint32_t seq, uint32_t mtu)
{
	bool v4 = conntrack_local(lc->ct, flow)->family == FLOW_IPV4;
	struct edge *e = lc->edge;
	struct edge_connection *c;

	if (e == NULL || flow->state == FLOW_TCP_WAIT)
		return false;
	c = edge_connection_of(e, flow);
	if (sequence_before(seq, c->tcp.snd_una) || !sequence_before(seq, c->tcp.snd_nxt))
		return false;
	edge_begin_turn(e);
	edge_select(e, c->service);
	mtu = RTE_MAX(mtu, v4 ? SEGMENTS_MTU4_MIN : SEGMENTS_MTU6_MIN);
	tcp_set_mss(&c->tcp, RTE_MIN(mtu, UINT16_MAX) - (v4 ? 40 : 60));
	edge_touch(e, c);
	return true;
}

unsigned int edge_receive(struct lcore *lc, unsigned int from)
{
	struct segment_burst *s = &lc->segments;
	struct edge *e = lc->edge;
	struct arrival a;
	uint32_t hash[LB_BURST];
	struct flow *flow[LB_BURST];

	edge_begin_turn(e);
	conntrack_hash_burst(lc->ct, s->key + from, s->n - from, hash);
	conntrack_lookup_burst(lc->ct, s->key + from, hash, s->n - from, flow);
	edge_prefetch(lc, flow, s->n - from);
	e->n_changed = 0;
	for (unsigned int i = 0; from + i < s->n; i++) {
		if (lc->burst.n >= LB_BURST - 1) {
			e->bursts++;
			return from + i;
		}
		if (segments_changed(e, hash[i]))
			conntrack_lookup_burst(lc->ct, s->key + from + i, hash + i, 1, flow + i);
		/* The rest is read from the packet. */
		a.m = s->packet[from + i];
		a.parsed = &s->parsed[from + i];
		a.key = &s->key[from + i];
		a.hash = hash[i];
		a.flow = flow[i];
		segments_receive_one(e, &a);
	}
	return s->n;
}
