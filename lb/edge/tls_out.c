/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes for clients, to records. They wait as they are, and are encrypted shortly before they can
 * be sent: so a large reply is not held twice, and no turn encrypts much. Records fill whole
 * segments, each of which is a packet, so that headers go in front of them in place.
 */
#include "edge/tls.h"

/* Bytes that may be encrypted and not sent. */
#define OUT_AHEAD       65536u
#define OUT_SMALL_MAX   64 /* bytes of a small record, with what is around it */
#define OUT_KEY_UPDATE  24 /* RFC 8446, 4.6.3 */

/* --- bytes that go as they are -----------------------------------------------------------------
 */

bool edge_tls_send_raw(struct edge *e, struct edge_connection *c, const uint8_t *bytes, uint32_t n)
{
	struct rte_mbuf *m = NULL, *tail = NULL;

	if (!edge_append_text(e, &m, &tail, bytes, n)) {
		rte_pktmbuf_free(m);
		return false;
	}
	if (m == NULL)
		return true;
	edge_hold_answer(e, c->busy, m->nb_segs);
	edge_queue_chain(e, c, m, tail, n);
	edge_touch(e, c);
	return true;
}

bool edge_tls_send_small(struct edge *e, struct edge_connection *c, enum tls_type type,
			 const uint8_t *bytes, uint32_t n)
{
	uint8_t record[OUT_SMALL_MAX];

	if (edge_session_of(e, c) == NULL)
		return false;
	n = tls_write_small(edge_session_of(e, c), type, bytes, n, record);
	e->tls->counters.records_out++;
	return edge_tls_send_raw(e, c, record, n);
}

/* --- records -----------------------------------------------------------------------------------
 */

void edge_tls_queue(struct edge *e, struct edge_connection *c, struct rte_mbuf *head,
		    struct rte_mbuf *tail, uint32_t packets, uint32_t bytes)
{
	struct edge_tls *t = c->busy->tls;

	if (unlikely(c->tls_ended)) {
		/* It has failed: nothing more may be said. */
		edge_bury(e, head);
		return edge_let_answer_go(e, c->busy, packets);
	}
	if (t->plain == NULL)
		t->plain = head;
	else
		t->plain_tail->next = head;
	t->plain_tail = tail;
	t->plain_packets += packets;
	t->plain_bytes += bytes;
}

/* Where a record is written: a chain of packets. */
struct out_chain {
	struct rte_mbuf *head, *at;
	uint32_t each; /* bytes of a packet */
};

static uint32_t out_room(const struct out_chain *o)
{
	return o->each - o->at->data_len;
}

static uint8_t *out_next(const struct out_chain *o)
{
	return rte_pktmbuf_mtod_offset(o->at, uint8_t *, o->at->data_len);
}

static void out_written(struct out_chain *o, uint32_t n)
{
	o->at->data_len += n;
	if (o->at->data_len == o->each && o->at->next != NULL)
		o->at = o->at->next;
}

static void out_copy(struct out_chain *o, const uint8_t *bytes, uint32_t n)
{
	while (n > 0) {
		uint32_t part = RTE_MIN(n, out_room(o));

		memcpy(out_next(o), bytes, part);
		out_written(o, part);
		bytes += part;
		n -= part;
	}
}

/* Packets for <bytes>. False: no memory. */
static bool out_alloc(struct edge *e, struct out_chain *o, uint32_t bytes)
{
	struct rte_mbuf **at = &o->head;

	o->head = NULL;
	for (uint32_t n = 0; n < bytes; n += o->each) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(e->lc->packets);

		if (m == NULL) {
			while ((m = o->head) != NULL) {
				o->head = m->next;
				rte_pktmbuf_free_seg(m);
			}
			return false;
		}
		*at = m;
		at = &m->next;
	}
	o->at = o->head;
	return true;
}

/* Encrypts <n> bytes of the queue, whose packets go as they become empty. Returns how many went. */
static uint32_t out_encrypt(struct edge_tls *t, struct out_chain *o, uint32_t n)
{
	struct tls_session *s = edge_session(t);
	uint32_t packets = 0;

	t->plain_bytes -= n;
	while (n > 0 || (t->plain != NULL && t->plain->data_len == 0)) {
		struct rte_mbuf *m = t->plain;
		uint32_t part = n == 0 ? 0 : RTE_MIN(RTE_MIN(n, out_room(o)), m->data_len);

		if (part > 0) {
			tls_write_bytes(s, rte_pktmbuf_mtod(m, const uint8_t *), part, out_next(o));
			out_written(o, part);
		}
		m->data_off += part;
		m->data_len -= part;
		n -= part;
		if (m->data_len > 0)
			continue;
		t->plain = m->next;
		rte_pktmbuf_free_seg(m);
		packets++;
	}
	t->plain_packets -= packets;
	return packets;
}

/* Bytes that there is time for. */
static uint32_t out_most(const struct edge *e, const struct tls_session *s)
{
	int32_t rest = e->kserve->text_left - EDGE_WORK_LEAST;
	int32_t work = RTE_MAX(e->tls->left_out, rest) - (int32_t)tls_record_work(s);

	return tls_bytes_for(s, (uint32_t)RTE_MAX(work, 0));
}

/* Bytes of content of the next record: whole segments, if there are so many. */
static uint32_t out_content(const struct edge *e, const struct edge_tls *t, uint32_t each)
{
	const struct tls_session *s = edge_session(t);
	uint32_t around = tls_overhead(s);
	uint32_t most = RTE_MIN(s->record_max, RTE_MAX(out_most(e, s), each));
	uint32_t whole = (most + around) / each * each;

	if (whole > around)
		most = whole - around;
	return RTE_MIN(most, t->plain_bytes);
}

/* One record. False: no memory. */
static bool out_write_one(struct edge *e, struct edge_connection *c)
{
	struct edge_tls *t = c->busy->tls;
	struct tls_session *s = edge_session_of(e, c);
	struct out_chain o = {.each = RTE_MIN((uint32_t)c->tcp.mss, e->gather_max)};
	uint32_t n = out_content(e, t, o.each), size = n + tls_overhead(s), packets, part;
	uint8_t around[TLS_HEAD_MAX + TLS_TAIL_MAX];

	if (!out_alloc(e, &o, size))
		return false;
	edge_hold_answer(e, c->busy, (size + o.each - 1) / o.each);
	part = tls_write_begin(s, TLS_DATA, n, around);
	out_copy(&o, around, part);
	packets = out_encrypt(t, &o, n);
	part = tls_write_end(s, TLS_DATA, around);
	out_copy(&o, around, part);
	edge_queue_chain(e, c, o.head, o.at, size);
	edge_let_reply_go(c->busy, packets);
	edge_work(e, &e->tls->left_out, tls_work(s, size) + tls_record_work(s));
	e->tls->counters.records_out++;
	return true;
}

/*
 * Keys that have encrypted much are replaced, and those of which the client has asked it; the
 * client is told. TLS 1.2 has no way to replace them: the connection ends when what was asked is
 * answered, for which there is as much left again (RFC 9325, 4.4). True: new keys are due.
 */
static bool out_is_worn(struct edge *e, struct edge_connection *c)
{
	static const uint8_t update[] = {OUT_KEY_UPDATE, 0, 0, 1, 0};
	struct tls_session *s = edge_session_of(e, c);
	struct edge_tls *t = c->busy->tls;

	if (likely(s->out.number < TLS_KEY_RECORDS && !s->update_due))
		return false;
	if (!tls_is_13(s)) {
		if (s->out.number == TLS_KEY_RECORDS && !c->closing)
			edge_close(e, c);
		return false;
	}
	if (!edge_tls_send_small(e, c, TLS_HANDSHAKE, update, sizeof(update))) {
		edge_tls_enlist(e, t, EDGE_TLS_WRITES);
		return true;
	}
	s->update_due = false;
	t->rekey_out = true;
	edge_tls_ask(e, t);
	return true;
}

void edge_tls_write(struct edge *e, struct edge_connection *c)
{
	struct edge_tls *t = c->busy->tls;

	while (t->plain != NULL && c->tcp.snd_end - c->tcp.snd_nxt < OUT_AHEAD) {
		if (t->rekey_out && t->job == NULL)
			edge_tls_ask(e, t);
		if (t->rekey_out || t->away || out_is_worn(e, c))
			return;
		if (!edge_tls_may_write(e) || !out_write_one(e, c))
			return edge_tls_enlist(e, t, EDGE_TLS_WRITES);
	}
}
