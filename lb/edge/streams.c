/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replies in pieces, while they are not complete: a client that waits for the next piece hears that
 * it goes on, and a request whose time is over ends, whether or not a piece of its reply was sent.
 * And answers without an end, which go on when something has changed.
 */
#include "edge/edge_private.h"
#include "packet/notice.h"

/* Requests that are looked at per ms: one of a thousand is late by some 30 ms. */
#define STREAMS_BUDGET 32u

void edge_stream_begin(struct edge_busy *b, struct edge_request *r)
{
	r->streams = true;
	r->busy = b;
	r->heard_ms = b->edge->stack.now_ms;
	TAILQ_INSERT_TAIL(&b->edge->streaming, r, streaming);
	b->edge->n_streaming++;
}

void edge_stream_end(struct edge *e, struct edge_request *r)
{
	r->streams = false;
	TAILQ_REMOVE(&e->streaming, r, streaming);
	e->n_streaming--;
}

void edge_stream_drop_text(struct edge *e, struct edge_busy *b, struct edge_request *r)
{
	/* It may be part of a chunk that is written. */
	edge_release_answer(e, b, r->text_packets);
	r->text_packets = 0;
	edge_bury(e, r->text);
	r->text = NULL;
}

void edge_stream_cancel(struct edge_busy *b, const struct edge_request *r)
{
	struct edge *e = b->edge;

	/* Without a place for it the worker sends the rest, which is dropped. */
	if (r->sent && e->n_cancels < EDGE_CANCELS)
		e->cancel[e->n_cancels++] = (struct edge_cancel){.handle = b->connection->handle,
								 .tag = r->number,
								 .service = r->service,
								 .told = true};
}

/* Nothing is added to what the client has not taken yet; and a client that is still sending its
 * request does not wait for the answer, which may be a refusal. */
static void streams_beat(struct edge *e, struct edge_request *r)
{
	struct edge_busy *b = r->busy;
	const struct stream_framing *framing = b->placement.framing;
	uint8_t text[STREAM_HEAD_MAX];
	uint32_t n;

	r->heard_ms = e->stack.now_ms;
	if (framing->beat == NULL || b->out != NULL || !edge_has_turn(b, r) ||
	    !edge_request_is_complete(r))
		return;
	n = framing->beat(&b->placement.stream, r->tag, text);
	if (n > 0)
		edge_answer_text(e, b->connection, r, text, n, false);
}

static void streams_look(struct edge *e, struct edge_request *r)
{
	uint32_t beat_ms = e->known->tcp.stream_heartbeat_ms;

	if (r->sent && r->deadline != 0 && e->lc->now > r->deadline) {
		edge_stream_cancel(r->busy, r);
		edge_request_fail(r->busy, r, LB_NOTICE_DEADLINE, LB_DROP_DEADLINE);
	} else if (beat_ms > 0 && e->stack.now_ms - r->heard_ms >= beat_ms) {
		streams_beat(e, r);
	}
}

/* --- requests that watch ------------------------------------------------------------------------
 */

/* A sum of what they watch; never 0. */
static uint32_t streams_health(const struct edge *e)
{
	const struct service_snapshot *services = e->lc->services;
	uint64_t sum = (uintptr_t)services;

	for (uint16_t i = 0; i < services->n; i++)
		sum = (sum + 1 + (lcore_may_serve(e->lc, i))) * UINT64_C(0x9e3779b97f4a7c15);
	return (uint32_t)(sum >> 32) | 1;
}

/* A client is told of a change when it has taken what it was told before. */
static void streams_watch(struct edge *e, struct edge_request *r, bool ends)
{
	struct edge_busy *b = r->busy;
	struct stream_settings settings = {0};
	uint8_t text[STREAM_HEAD_MAX];
	uint32_t n;

	if (!ends && (r->health == e->health || r->answer_bytes > 0))
		return;
	r->health = e->health;
	edge_kserve_settings(e, b->connection, &settings);
	n = b->placement.framing->watch(&b->placement.stream, &settings, r->tag, ends, text);
	if (n > 0)
		edge_answer_text(e, b->connection, r, text, n, true);
}

void edge_streams_end_watches(struct edge *e, struct edge_busy *b)
{
	/* Nothing is sent, and no request is over, before all were told. */
	b->emits = true;
	for (struct edge_request *r = b->first; r != NULL; r = r->next)
		if (r->watches && !r->over)
			streams_watch(e, r, true);
	b->emits = false;
}

void edge_streams_check(struct edge *e)
{
	unsigned int n = RTE_MIN(e->n_streaming, STREAMS_BUDGET);
	struct edge_request *r;

	if (n > 0)
		e->health = streams_health(e);

	/* One that ends may take others with it. */
	for (; n > 0 && (r = TAILQ_FIRST(&e->streaming)) != NULL; n--) {
		TAILQ_REMOVE(&e->streaming, r, streaming);
		TAILQ_INSERT_TAIL(&e->streaming, r, streaming);
		if (unlikely(r->watches) && !r->over)
			streams_watch(e, r, false);
		else if (!r->answered)
			streams_look(e, r);
	}
}
