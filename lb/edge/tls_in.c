/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Records that came, to bytes: decrypted as they come into packets of our own, which become pieces
 * of the stream when the whole record has proved genuine. What the placement calls a framing is the
 * record layer here: it reads all bytes in their order, and names no requests.
 */
#include "edge/tls.h"

/* Bytes of a record that are copied behind the piece before them. */
#define IN_SMALL         256
#define KEY_UPDATE       24 /* RFC 8446, 4.6.3 */
#define KEY_UPDATE_BYTES 5

/* --- packets of the record that is being read ---------------------------------------------------
 */

/*
 * May another packet be held for the client? Small records take more packets than the segments in
 * which they came, so these having been admitted is not enough. Bytes of a request that has its
 * place are not held beyond this turn.
 */
static bool in_has_room(struct edge *e, const struct edge_busy *b)
{
	if (likely(edge_requests_of(b->client) < e->share && e->held < e->budget))
		return true;
	edge_note_short(e);
	return b->unwritten == 0 && edge_large_has_place(b, b->in_order);
}

/* A piece with an empty packet. NULL: no memory. */
static struct edge_piece *in_new_piece(struct edge *e, struct edge_tls *t)
{
	struct edge_piece *p = e->free_piece;
	struct rte_mbuf *m;

	/* Segments that come need pieces, too. */
	if (e->n_pieces <= EDGE_PIECES)
		return NULL;
	m = rte_pktmbuf_alloc(e->lc->packets);
	if (m == NULL)
		return NULL;
	e->free_piece = (struct edge_piece *)p->piece.next;
	e->n_pieces--;
	*p = (struct edge_piece){.m = m};
	p->piece.bytes = rte_pktmbuf_mtod(m, const uint8_t *);
	edge_hold(t->busy, 1);
	return p;
}

/* A packet for more of the record. False: no memory. */
static bool in_add_packet(struct edge *e, struct edge_tls *t)
{
	struct edge_piece *p = in_has_room(e, t->busy) ? in_new_piece(e, t) : NULL;

	if (p == NULL)
		return false;
	*t->record_tail = p;
	t->record_tail = (struct edge_piece **)&p->piece.next;
	return true;
}

static struct edge_piece *in_last(const struct edge_tls *t)
{
	struct edge_piece *p = t->record;

	while (p != NULL && p->piece.next != NULL)
		p = (struct edge_piece *)p->piece.next;
	return p;
}

/* Room behind the bytes of the record's last packet. */
static uint32_t in_room(const struct edge *e, const struct edge_piece *p)
{
	return p == NULL ? 0 : e->gather_max - p->piece.length;
}

static void in_reset_record(struct edge_tls *t)
{
	t->record = NULL;
	t->record_tail = &t->record;
}

void edge_tls_drop_record(struct edge_tls *t)
{
	struct edge_piece *p, *next;

	for (p = t->record; p != NULL; p = next) {
		next = (struct edge_piece *)p->piece.next;
		edge_placement_ops.release(t->busy, &p->piece);
	}
	in_reset_record(t);
}

/* --- records -----------------------------------------------------------------------------------
 */

/* The bytes of a genuine record are the next of the stream. */
static void in_deliver(struct edge_tls *t, uint32_t content)
{
	struct edge_busy *b = t->busy;
	struct edge_piece *p = t->record, *next;

	in_reset_record(t);
	for (; p != NULL; p = next) {
		uint32_t n = RTE_MIN(content, p->piece.length);

		next = (struct edge_piece *)p->piece.next;
		content -= n;
		if (n == 0 || b->connection->closing ||
		    (n < IN_SMALL && edge_join(b, b->in_order, p->piece.bytes, n))) {
			edge_placement_ops.release(b, &p->piece);
			b->in_order += n;
			continue;
		}
		p->m->data_len = p->m->pkt_len = n;
		p->piece.length = n;
		p->piece.position = b->in_order;
		b->in_order += n;
		placement_take(&b->placement, &p->piece);
	}
}

/* Its record is not valid, or one too many. */
static void in_refuse(struct edge *e, struct edge_tls *t, enum tls_alert alert)
{
	e->tls->counters.bad_records++;
	edge_tls_fail(e, t->busy->connection, alert, LB_DROP_TCP_TLS);
}

/* The client has ended its half. */
static void in_end(struct edge_tls *t)
{
	t->raw.stream.position = STREAM_CLOSED;
	t->busy->connection->ended = true;
}

static void in_alert(struct edge *e, struct edge_tls *t, const uint8_t *bytes, uint32_t n)
{
	struct edge_connection *c = t->busy->connection;

	if (n != 2)
		return in_refuse(e, t, TLS_DECODE_ERROR);
	if (bytes[1] == TLS_CLOSE_NOTIFY)
		return in_end(t);
	if (bytes[1] == TLS_USER_CANCELED)
		return;
	e->tls->counters.alerts_in++;
	edge_tls_fail(e, c, -1, LB_DROP_TCP_TLS);
}

/* New keys, which the helper derives: until then nothing more is read. Ours, if the client wants
 * that, are replaced before the next bytes for it: an answer for each would fill the memory for a
 * client that does not read them. */
static void in_key_update(struct edge *e, struct edge_tls *t, const uint8_t *bytes)
{
	t->rekey_in = true;
	edge_session(t)->update_due |= bytes[4] == 1;
	edge_tls_ask(e, t);
}

static void in_handshake(struct edge *e, struct edge_tls *t, const uint8_t *bytes, uint32_t n)
{
	static const uint8_t update[] = {KEY_UPDATE, 0, 0, 1};
	struct edge_connection *c = t->busy->connection;

	if (!tls_is_13(edge_session_of(e, c))) {
		e->tls->counters.renegotiations++;
		return edge_tls_fail(e, c, TLS_NO_RENEGOTIATION, LB_DROP_TCP_TLS);
	}
	if (n == KEY_UPDATE_BYTES && memcmp(bytes, update, sizeof(update)) == 0 && bytes[4] <= 1)
		return in_key_update(e, t, bytes);
	in_refuse(e, t, TLS_UNEXPECTED_MESSAGE);
}

/* A record is complete and genuine. */
static void in_record(struct edge *e, struct edge_tls *t)
{
	struct edge_connection *c = t->busy->connection;
	struct tls_session *s = edge_session_of(e, c);
	const uint8_t *bytes = t->record == NULL ? NULL : t->record->piece.bytes;
	uint32_t n = s->content;

	e->tls->counters.records_in++;
	if (n > TLS_PLAIN_MAX)
		return in_refuse(e, t, TLS_RECORD_OVERFLOW);
	s->useless = s->type == TLS_DATA && n > 0 ? 0 : s->useless + 1;
	if (s->useless > TLS_USELESS_MAX)
		return in_refuse(e, t, TLS_UNEXPECTED_MESSAGE);
	if (s->type == TLS_DATA)
		return in_deliver(t, n);
	if (s->type == TLS_ALERT)
		in_alert(e, t, bytes, n);
	else if (s->type == TLS_HANDSHAKE)
		in_handshake(e, t, bytes, n);
	else
		in_refuse(e, t, TLS_UNEXPECTED_MESSAGE);
	edge_tls_drop_record(t);
}

/* May the record layer go on with this connection now? */
static bool in_may_go_on(const struct edge_tls *t)
{
	return !t->starved && !t->away && !t->rekey_in && t->raw.stream.position != STREAM_CLOSED &&
	       edge_tls_may_read(t->busy->edge);
}

/* Decrypts of the <n> bytes what may be. Returns how many were read. */
static uint32_t in_decrypt(struct edge *e, struct edge_tls *t, const uint8_t *bytes, uint32_t n)
{
	struct edge_connection *c = t->busy->connection;
	struct tls_session *s = edge_session_of(e, c);
	uint32_t taken = 0;

	while (taken < n && in_may_go_on(t)) {
		struct edge_piece *p = in_last(t);
		struct tls_step step;

		if (tls_wants_room(s) && in_room(e, p) == 0) {
			t->starved = !in_add_packet(e, t);
			continue;
		}
		step = tls_read(s, bytes + taken, n - taken,
				p == NULL ? NULL : (uint8_t *)p->piece.bytes + p->piece.length,
				in_room(e, p));
		taken += step.taken;
		if (step.written > 0)
			p->piece.length += step.written;
		edge_work(e, &e->tls->left, tls_work(s, step.taken));
		if (step.result == TLS_READ_RECORD) {
			edge_work(e, &e->tls->left, tls_record_work(s));
			in_record(e, t);
		} else if (step.result == TLS_READ_FAULT) {
			in_refuse(e, t, step.alert);
		}
	}
	return taken;
}

/* --- the raw stream ----------------------------------------------------------------------------
 */

/* Bytes of the handshake, for the helper. */
static uint32_t in_collect(struct edge_tls *t, const uint8_t *bytes, uint32_t n)
{
	uint32_t take = RTE_MIN(n, TLS_JOB_BYTES - t->job->n);

	memcpy(t->job->bytes + t->job->n, bytes, take);
	t->job->n += take;
	return take;
}

static unsigned int in_read(struct stream *s, const struct stream_settings *settings,
			    const uint8_t *bytes, uint32_t length, struct stream_action *actions,
			    unsigned int max)
{
	struct edge_tls *t = s->own;
	uint32_t taken;

	if (edge_session(t) == NULL)
		taken = in_collect(t, bytes, length);
	else
		taken = in_decrypt(t->busy->edge, t, bytes, length);
	/* It has ended, if this is not so. */
	if (s->position != STREAM_CLOSED)
		s->position += taken;
	return 0;
}

static const struct stream_framing in_framing = {.name = "tls", .read = in_read};

static bool in_ready(void *context)
{
	struct edge_busy *b = context;
	struct edge_tls *t = b->tls;

	return in_may_go_on(t) &&
	       (edge_session(t) != NULL || (t->job != NULL && t->job->n < TLS_JOB_BYTES));
}

static void in_release(void *context, struct placement_piece *piece)
{
	edge_placement_ops.release(context, piece);
}

static const struct placement_ops in_ops = {.ready = in_ready, .release = in_release};

void edge_tls_init_read(struct edge_tls *t)
{
	in_reset_record(t);
	placement_init(&t->raw, &in_framing, &in_ops, t->busy);
	t->raw.stream.own = t;
}

bool edge_tls_unread(struct edge_tls *t, const uint8_t *bytes, uint32_t n)
{
	uint64_t end = t->raw.stream.position;
	struct edge *e = t->busy->edge;
	struct edge_piece *p;

	t->raw.stream.position -= n;
	/* A piece of which some is not read yet still has them, or the last of them. */
	if (t->raw.held != NULL && t->raw.held->position < end)
		end = t->raw.held->position;
	for (uint64_t at = t->raw.stream.position; at < end; at += p->piece.length) {
		p = in_new_piece(e, t);
		if (p == NULL)
			return false;
		p->piece.position = at;
		p->piece.length = RTE_MIN(end - at, e->gather_max);
		memcpy(rte_pktmbuf_mtod(p->m, uint8_t *), bytes, p->piece.length);
		bytes += p->piece.length;
		placement_take(&t->raw, &p->piece);
	}
	return true;
}

void edge_tls_take(struct edge_busy *b, struct edge_piece *p)
{
	placement_take(&b->tls->raw, &p->piece);
}

/* A client that speaks something else need not trouble the helper: its first byte tells. */
static bool in_is_tls(const struct edge_tls *t)
{
	const struct placement_piece *first = t->raw.held;

	return t->is_opening || first == NULL || first->position > 0 ||
	       first->bytes[0] == TLS_HANDSHAKE;
}

void edge_tls_read(struct edge *e, struct edge_connection *c)
{
	struct edge_tls *t = c->busy->tls;
	bool stopped;

	if (c->closing)
		return;
	if (edge_tls_must_wait(e, t))
		return edge_tls_enlist(e, t, EDGE_TLS_READS);
	t->starved = false;
	if (edge_session_of(e, c) == NULL) {
		if (!in_is_tls(t)) {
			e->tls->counters.not_tls++;
			return edge_tls_fail(e, c, TLS_UNEXPECTED_MESSAGE, LB_DROP_TCP_TLS);
		}
		if (edge_tls_is_read(c->busy))
			return;
		if (!t->away && t->job == NULL)
			edge_tls_ask(e, t);
	}
	if (t->rekey_in && t->job == NULL)
		edge_tls_ask(e, t);
	stopped = placement_run(&t->raw, NULL, t->in_order);
	if (c->busy == NULL || c->closing)
		return;
	if (edge_session_of(e, c) == NULL && t->job != NULL && !t->away && t->job->n > 0)
		edge_tls_ask(e, t);
	/* A job that comes back calls again. */
	if (stopped && !t->away)
		edge_tls_enlist(e, t, EDGE_TLS_READS);
}

void edge_tls_read_on(struct edge *e, struct edge_connection *c)
{
	struct edge_busy *b = c->busy;

	if (b->placement.stream.position >= b->in_order)
		edge_tls_read(e, c);
	else if (!edge_tls_is_read(b))
		edge_tls_enlist(e, b->tls, EDGE_TLS_READS);
}
