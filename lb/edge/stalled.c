/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections read, and those that have to wait for room to be read have their turns.
 *
 * A turn of the lcore has time for so much text. Where clients want more of it than there is,
 * each gets as much as the others (deficit round robin): first clients have their turns, then the
 * connections of each. So one with many connections, or many bytes that wait, delays itself.
 */
#include "edge/edge_private.h"

/* Connections looked at per turn: most may have no room, as readers may make thousands wait. */
#define STALLED_VISITS 64
/* Bursts of requests that are read of connections that waited, in a turn: a client's replies may
 * give room for thousands at once. */
#define STALLED_BURSTS 2
/* Bursts of requests in a turn beyond which those of segments that have just come wait, too. */
#define STALLED_BURSTS_NEW 4
/* Text of a client's turn: a call of HTTP/1.1 with few fields takes half of it. */
#define STALLED_QUANTUM EDGE_WORK_LEAST
/* Text that a client's call may have taken beyond its turn: a large document. */
#define STALLED_DEBT 32768

static bool stalled_reads_text(const struct edge_busy *b)
{
	return b->placement.framing->rewrite != NULL;
}

/* --- lists -------------------------------------------------------------------------------------
 */

static void stalled_join(struct edge *e, struct edge_busy *b)
{
	struct edge_client *client = b->client;

	client->stalled++;
	if (!stalled_reads_text(b)) {
		if (TAILQ_EMPTY(&client->others))
			TAILQ_INSERT_TAIL(&e->others, client, other_turn);
		TAILQ_INSERT_TAIL(&client->others, b, wants);
		e->n_others++;
		return;
	}
	if (TAILQ_EMPTY(&client->waiting))
		TAILQ_INSERT_TAIL(&e->turns, client, turn);
	TAILQ_INSERT_TAIL(&client->waiting, b, wants);
	e->n_turns++;
}

void edge_leave_stalled(struct edge *e, struct edge_busy *b)
{
	struct edge_client *client = b->client;

	client->stalled--;
	if (!stalled_reads_text(b)) {
		TAILQ_REMOVE(&client->others, b, wants);
		if (TAILQ_EMPTY(&client->others))
			TAILQ_REMOVE(&e->others, client, other_turn);
		e->n_others--;
		return;
	}
	TAILQ_REMOVE(&client->waiting, b, wants);
	if (TAILQ_EMPTY(&client->waiting))
		TAILQ_REMOVE(&e->turns, client, turn);
	e->n_turns--;
}

void edge_stall(struct edge *e, struct edge_connection *c, bool stalled)
{
	if (stalled == c->stalled)
		return;
	c->stalled = stalled;
	if (stalled)
		stalled_join(e, c->busy);
	else
		edge_leave_stalled(e, c->busy);
}

/* --- reading -----------------------------------------------------------------------------------
 */

/* A connection begins to wait. Others than these wait for the next turn. */
static void stalled_count(struct edge *e, const struct edge_busy *b)
{
	if (b->n_requests >= e->pipeline)
		e->stack.counters.pipeline_full++;
	else if (!edge_has_reply_room(e, b))
		e->stack.counters.replies_full++;
}

/* Of what it took while nobody else waited, only the last call is owed. */
static void stalled_charge(struct edge_client *client, int32_t text, bool alone)
{
	client->credit = RTE_MAX((alone ? 0 : client->credit) - text, -STALLED_DEBT);
}

/* Reads with the client's credit of text, if others wait; its calls may take more than that. */
static bool stalled_read_text(struct edge *e, struct edge_connection *c)
{
	struct edge_client *client = c->busy->client;
	int32_t *left = &e->kserve->text_left, *kept = &e->kserve->text_kept, before = *left;
	bool alone = TAILQ_EMPTY(&e->turns), stalled;

	*kept = alone ? 0 : RTE_MAX(before - client->credit, 0);
	*left -= *kept;
	stalled = edge_read(e, c);
	*left += *kept;
	stalled_charge(client, before - *left, alone);
	return stalled;
}

static void stalled_give_credit(struct edge_client *client)
{
	client->credit = RTE_MIN(client->credit + STALLED_QUANTUM, STALLED_QUANTUM);
}

/* Has the client a turn of its own to come, or had it all of this one while others wait? */
static bool stalled_must_wait(const struct edge *e, struct edge_client *client)
{
	uint32_t now = (uint32_t)e->lc->stats.polls;

	if (!TAILQ_EMPTY(&client->waiting))
		return true;
	if (client->credit_turn != now)
		stalled_give_credit(client);
	client->credit_turn = now;
	return !TAILQ_EMPTY(&e->turns) && client->credit <= 0;
}

/* Does what has just come wait for a later turn? In the middle of a request of a framing without
 * text there is nothing to be begun. */
static inline bool stalled_waits_at_once(const struct edge *e, const struct edge_busy *b)
{
	if (unlikely(stalled_reads_text(b)))
		return stalled_must_wait(e, b->client);
	return unlikely(e->bursts >= STALLED_BURSTS_NEW) &&
	       b->placement.stream.position <= b->in_order;
}

/* It wants more of a turn than is left: it has the next one. */
static void stalled_go_first(struct edge *e, struct edge_busy *b)
{
	struct edge_client *client = b->client;

	e->kserve->text_waits = false;
	TAILQ_REMOVE(&client->waiting, b, wants);
	TAILQ_INSERT_HEAD(&client->waiting, b, wants);
	TAILQ_REMOVE(&e->turns, client, turn);
	TAILQ_INSERT_HEAD(&e->turns, client, turn);
	e->text_whole = true;
}

/* <again>: it has waited before this call. */
static void stalled_read(struct edge *e, struct edge_connection *c, bool again)
{
	bool stalled;

	if (!again && stalled_waits_at_once(e, c->busy))
		return edge_stall(e, c, true);
	if (likely(!stalled_reads_text(c->busy)))
		stalled = edge_read(e, c);
	else
		stalled = stalled_read_text(e, c);
	if (likely(!stalled))
		return edge_stall(e, c, false);
	if (!c->stalled && !again)
		stalled_count(e, c->busy);
	edge_stall(e, c, true);
	if (e->kserve->text_waits)
		stalled_go_first(e, c->busy);
}

static void stalled_progress(struct edge *e, struct edge_connection *c, bool again)
{
	struct edge_busy *b = c->busy;

	if (b == NULL)
		return;
	if (unlikely(b->tls != NULL) && again)
		edge_tls_read_on(e, c);
	else if (unlikely(b->tls != NULL))
		edge_tls_read(e, c);
	stalled_read(e, c, again);
	if (unlikely(b->placement.framing->emit != NULL)) {
		edge_count_session(b);
		edge_emit_answers(e, c);
	}
	/* In the middle of a request there is no reply to carry the acknowledgement. */
	if (b->placement.stream.got > 0 || b->placement.stream.position > b->in_order ||
	    b->placement.held != NULL || (b->tls != NULL && edge_tls_is_inside(b)))
		tcp_acknowledge(&c->tcp);
	edge_touch(e, c);
	if (c->ended && !c->stalled && !c->closing && (b->tls == NULL || edge_tls_is_read(b)))
		edge_close(e, c);
}

void edge_progress(struct edge *e, struct edge_connection *c)
{
	stalled_progress(e, c, false);
}

/* --- turns -------------------------------------------------------------------------------------
 */

/* Is it in the middle of a request for which all was set aside? */
static bool stalled_is_inside(const struct edge_busy *b)
{
	return b->placement.framing->emit != NULL || (b->placement.framing->rewrite != NULL &&
						      kserve_room_is_inside(&b->placement.stream));
}

static bool stalled_has_room(const struct edge *e)
{
	return e->lc->burst.n < LB_BURST - 1 && e->free_request != NULL;
}

/* The first connection of a client's <list> reads. One without room goes behind the others: false.
 */
static bool stalled_read_first(struct edge *e, struct edge_busy_list *list)
{
	struct edge_busy *b = TAILQ_FIRST(list);

	if (!edge_has_reply_room(e, b) && !stalled_is_inside(b)) {
		TAILQ_REMOVE(list, b, wants);
		TAILQ_INSERT_TAIL(list, b, wants);
		return false;
	}
	edge_stall(e, b->connection, false);
	stalled_progress(e, b->connection, true);
	return true;
}

/* The client's turn: the next of its connections reads. False: it has read nothing. */
static bool stalled_visit(struct edge *e, struct edge_client *client)
{
	int32_t left = e->kserve->text_left;

	TAILQ_REMOVE(&e->turns, client, turn);
	TAILQ_INSERT_TAIL(&e->turns, client, turn);
	stalled_give_credit(client);
	if (client->credit <= 0)
		return true;
	return stalled_read_first(e, &client->waiting) && e->kserve->text_left < left;
}

/* Where the text of the turn ends, the next one goes on. */
static void stalled_resume_text(struct edge *e)
{
	unsigned int vain = 0;

	/* Segments that come in every turn could take all. */
	edge_rewrite_leave_text(e);
	for (unsigned int left = STALLED_VISITS; left > 0 && vain < e->n_turns; left--) {
		if (e->kserve->text_left <= 0 || e->text_whole || !stalled_has_room(e))
			return;
		vain = stalled_visit(e, TAILQ_FIRST(&e->turns)) ? 0 : vain + 1;
	}
}

/* The same of the others: the next connection reads until there is no room. */
static bool stalled_visit_other(struct edge *e, struct edge_client *client)
{
	const struct edge_busy *b = TAILQ_FIRST(&client->others);
	uint64_t position = b->placement.stream.position;

	TAILQ_REMOVE(&e->others, client, other_turn);
	TAILQ_INSERT_TAIL(&e->others, client, other_turn);
	return stalled_read_first(e, &client->others) && b->placement.stream.position != position;
}

/* Where the room of a burst, or the time of the turn, ends, the next one goes on. */
static void stalled_resume_others(struct edge *e)
{
	unsigned int vain = 0;

	if (e->resumed == STALLED_BURSTS) {
		e->resumes_on = true;
		return;
	}
	for (unsigned int left = STALLED_VISITS; left > 0 && vain < e->n_others; left--) {
		if (!stalled_has_room(e))
			return;
		vain = stalled_visit_other(e, TAILQ_FIRST(&e->others)) ? 0 : vain + 1;
	}
}

void edge_resume_stalled(struct edge *e)
{
	if (!TAILQ_EMPTY(&e->others)) {
		stalled_resume_others(e);
		e->resumed += e->lc->burst.n > 0 && e->resumed < STALLED_BURSTS;
	}
	if (unlikely(!TAILQ_EMPTY(&e->turns)))
		stalled_resume_text(e);
}
