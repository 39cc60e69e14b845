/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TLS of connections: memory, handshakes as the lcore sees them, and the end. A handshake has a
 * job, of which each client may have a quarter; those that find none wait. One whose client has
 * been silent for a second makes room for another, as a stranger could else take all jobs for as
 * long as a handshake may take.
 */
#include <errno.h>

#include <rte_malloc.h>

#include "config/memory.h"
#include "edge/tls.h"

/* Work of a turn that is kept for reading, and for writing; and what reading leaves to writing,
 * where that had too little in the turn before. */
#define TLS_READS      256
#define TLS_WRITES     EDGE_WORK_LEAST
#define TLS_WRITES_DUE (2 * EDGE_WORK_LEAST)
/* Connections that go on in a turn, those that are looked at for what they have to write, and jobs
 * that are taken back: with certificates to be sent, and some KiB to be read. */
#define TLS_VISITS    64
#define TLS_WRITERS   64
#define TLS_JOBS_TURN 8
/* Work of a job that comes back. */
#define TLS_JOB_WORK 128
/* Jobs of one client. */
#define TLS_CLIENT_JOBS (TLS_JOBS / 4)
/* ms after which a client that says nothing makes room. */
#define TLS_SILENT_MS 1000

_Static_assert(sizeof(struct edge_tls) <= LB_TLS_BUSY_BYTES, "memory.c counts it");

/* --- memory ------------------------------------------------------------------------------------
 */

/* <due>: there was too little time to write. */
static void tls_begin_turn(struct edge *e, bool due)
{
	struct edge_tls_room *room = e->tls;

	room->kept = room->away > 0 || !TAILQ_EMPTY(&room->turns[EDGE_TLS_READS]) ? TLS_READS : 0;
	room->left = TLS_READS - room->kept;
	room->left_out = due ? TLS_WRITES_DUE : TLS_WRITES;
	room->leaves = EDGE_WORK_LEAST + room->kept + (due ? room->left_out - TLS_READS : 0);
}

/* All segments of the turn were looked at. */
static void tls_give_kept(struct edge_tls_room *room)
{
	if (room->kept == 0)
		return;
	room->left = room->kept;
	room->leaves -= room->kept;
	room->kept = 0;
}

int edge_tls_init(struct edge *e)
{
	struct lcore *lc = e->lc;
	struct edge_tls_room *room;

	if (lc->lb->tls == NULL)
		return 0;
	room = rte_zmalloc("tls", sizeof(*room), RTE_CACHE_LINE_SIZE);
	e->tls = room;
	if (room == NULL)
		return -ENOMEM;
	for (enum edge_tls_way way = 0; way < EDGE_TLS_WAYS; way++)
		TAILQ_INIT(&room->turns[way]);
	TAILQ_INIT(&room->opening);
	TAILQ_INIT(&room->working);
	room->memory = rte_zmalloc("tls_busy", e->busies * sizeof(*room->memory), 0);
	room->session =
		rte_zmalloc("tls_sessions", (e->connections + 1) * sizeof(*room->session), 0);
	room->line = tls_line_create(lc->lb->tls, lc->index, &lc->sleeper);
	if (room->memory == NULL || room->session == NULL || room->line == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < e->busies; i++) {
		room->memory[i].next = room->free;
		room->free = &room->memory[i];
	}
	tls_begin_turn(e, false);
	return 0;
}

void edge_tls_fini(struct edge *e)
{
	if (e->tls == NULL)
		return;
	tls_line_destroy(e->tls->line);
	rte_free(e->tls->memory);
	rte_free(e->tls->session);
	rte_free(e->tls);
	e->tls = NULL;
}

void edge_tls_begin(struct edge *e, struct edge_busy *b)
{
	struct edge_tls *t = e->tls->free; /* there are as many as busy parts */

	e->tls->free = t->next;
	memset(t, 0, sizeof(*t));
	t->busy = b;
	b->tls = t;
	edge_tls_init_read(t);
}

void edge_tls_enlist(struct edge *e, struct edge_tls *t, enum edge_tls_way way)
{
	struct edge_client *client = t->busy->client;

	if (t->waits[way])
		return;
	t->waits[way] = true;
	if (TAILQ_EMPTY(&client->tls[way]))
		TAILQ_INSERT_TAIL(&e->tls->turns[way], client, tls_turn[way]);
	TAILQ_INSERT_TAIL(&client->tls[way], t, wait[way]);
}

static void tls_unlist(struct edge *e, struct edge_tls *t, enum edge_tls_way way)
{
	struct edge_client *client = t->busy->client;

	if (!t->waits[way])
		return;
	t->waits[way] = false;
	TAILQ_REMOVE(&client->tls[way], t, wait[way]);
	if (TAILQ_EMPTY(&client->tls[way]))
		TAILQ_REMOVE(&e->tls->turns[way], client, tls_turn[way]);
}

/*
 * The next that has its turn: clients have turns, and the connections of each. So one with many
 * delays itself. It joins the list again if there is too little time for all that it has, or no
 * memory: behind the others, as its client is. NULL: all were visited in this turn, or more than
 * <left> would be.
 */
static struct edge_tls *tls_next(struct edge *e, enum edge_tls_way way, unsigned int *left)
{
	struct edge_turns *turns = &e->tls->turns[way];
	uint32_t now = (uint32_t)e->lc->stats.polls;
	struct edge_client *client;

	for (const struct edge_client *first = NULL; *left > 0; --*left) {
		struct edge_tls *t;

		client = TAILQ_FIRST(turns);
		if (client == NULL || client == first)
			return NULL;
		TAILQ_REMOVE(turns, client, tls_turn[way]);
		TAILQ_INSERT_TAIL(turns, client, tls_turn[way]);
		t = TAILQ_FIRST(&client->tls[way]);
		if (t->visited[way] != now) {
			--*left;
			t->visited[way] = now;
			tls_unlist(e, t, way);
			return t;
		}
		first = first == NULL ? client : first;
	}
	return NULL;
}

static void tls_send_job(struct edge *e, struct tls_job *job)
{
	e->tls->away++;
	tls_submit(job);
}

/* The job is back, and of no use any more: OpenSSL's memory is the helper's to free. */
static void tls_give_up_job(struct edge *e, struct tls_job *job)
{
	job->owner = 0;
	if (job->order == TLS_REKEY)
		return tls_job_put(job);
	job->order = TLS_ABANDON;
	tls_send_job(e, job);
}

/* Its handshake has a job, or no longer. */
static void tls_count_job(struct edge *e, struct edge_tls *t, bool counted)
{
	if (t->counted == counted)
		return;
	t->counted = counted;
	t->busy->client->handshakes += counted ? 1 : -1;
	if (counted)
		TAILQ_INSERT_TAIL(&e->tls->working, t, working);
	else
		TAILQ_REMOVE(&e->tls->working, t, working);
}

/* The connection needs its job no longer. */
static void tls_leave_job(struct edge *e, struct edge_tls *t)
{
	struct tls_job *job = t->job;

	t->job = NULL;
	tls_count_job(e, t, false);
	if (job == NULL)
		return;
	if (!t->away)
		return tls_give_up_job(e, job);
	/* The keys that it works on go when it is back. */
	job->owner = 0;
	if (job->order == TLS_REKEY)
		*edge_session_at(e, t->busy->connection) = NULL;
	t->away = false;
}

static void tls_end_opening(struct edge *e, struct edge_tls *t)
{
	if (t->is_opening)
		TAILQ_REMOVE(&e->tls->opening, t, opening);
	e->tls->n_opening -= t->is_opening;
	t->is_opening = false;
}

/* Drops all that waits to be encrypted. */
static void tls_drop_plain(struct edge *e, struct edge_tls *t)
{
	if (t->plain == NULL)
		return;
	edge_bury(e, t->plain);
	edge_let_answer_go(e, t->busy, t->plain_packets);
	t->plain = NULL;
	t->plain_packets = t->plain_bytes = 0;
}

void edge_tls_end(struct edge *e, struct edge_busy *b)
{
	struct edge_tls *t = b->tls;

	tls_leave_job(e, t);
	tls_end_opening(e, t);
	for (enum edge_tls_way way = 0; way < EDGE_TLS_WAYS; way++)
		tls_unlist(e, t, way);
	edge_tls_drop_record(t);
	placement_fini(&t->raw);
	tls_drop_plain(e, t);
	b->tls = NULL;
	t->next = e->tls->free;
	e->tls->free = t;
}

void edge_tls_forget(struct edge *e, struct edge_connection *c)
{
	struct tls_session **session = edge_session_at(e, c);

	if (*session != NULL)
		tls_bury(e->tls->line, *session);
	*session = NULL;
}

bool edge_tls_has_keys(const struct edge *e, const struct edge_connection *c)
{
	return edge_session_of(e, c) != NULL;
}

/* --- what came ---------------------------------------------------------------------------------
 */

uint64_t edge_tls_in_order(const struct edge_busy *b)
{
	return b->tls->in_order;
}

void edge_tls_came(struct edge_busy *b, uint32_t bytes)
{
	b->tls->in_order += bytes;
}

uint64_t edge_tls_unsent(const struct edge_busy *b)
{
	return b->tls->plain_bytes;
}

uint64_t edge_tls_held(const struct edge_busy *b)
{
	const struct edge_tls *t = b->tls;
	uint64_t bytes = t->raw.held_bytes;

	for (const struct edge_piece *p = t->record; p != NULL;
	     p = (const struct edge_piece *)p->piece.next)
		bytes += p->piece.length;
	return bytes;
}

bool edge_tls_is_read(const struct edge_busy *b)
{
	return b->tls->raw.stream.position >= b->tls->in_order && !b->tls->away;
}

bool edge_tls_is_busy(const struct edge_busy *b)
{
	const struct edge_tls *t = b->tls;

	/* The keys come back, and say goodbye. */
	if (t->plain != NULL || (t->away && edge_session(t) != NULL))
		return true;
	return !b->connection->closing &&
	       (edge_tls_is_inside(b) || t->raw.held != NULL || t->job != NULL || t->rekey_in ||
		t->rekey_out || !edge_tls_is_read(b));
}

bool edge_tls_is_inside(const struct edge_busy *b)
{
	const struct tls_session *s = edge_session(b->tls);

	return s == NULL ? b->tls->is_opening : tls_is_inside(s);
}

bool edge_tls_is_late(struct edge *e, const struct edge_connection *c)
{
	if (!c->secured || edge_session_of(e, c) != NULL || c->busy != NULL ||
	    e->stack.now_ms - c->idle_ms < e->known->tcp.handshake_ms)
		return false;
	e->tls->counters.late++;
	e->lc->stats.drop[LB_DROP_TCP_TLS]++;
	return true;
}

/* --- the end -----------------------------------------------------------------------------------
 */

/* An alert of a connection without keys (RFC 8446, 5.1). */
static bool tls_send_plain_alert(struct edge *e, struct edge_connection *c, uint8_t alert)
{
	const uint8_t record[] = {TLS_ALERT, 3, 3, 0, 2, 2, alert};

	return edge_tls_send_raw(e, c, record, sizeof(record));
}

void edge_tls_fail(struct edge *e, struct edge_connection *c, int alert, enum lb_drop reason)
{
	const uint8_t fatal[] = {2, alert};
	struct edge_tls *t = c->busy->tls;

	if (c->tls_ended)
		return;
	edge_count_drop(e, c, reason);
	/* While its keys are away, or the client waits for new ones, nothing can be said. */
	if (alert >= 0 && edge_session_of(e, c) == NULL)
		tls_send_plain_alert(e, c, alert);
	else if (alert >= 0 && !t->away && !t->rekey_out)
		edge_tls_send_small(e, c, TLS_ALERT, fatal, sizeof(fatal));
	c->tls_ended = true;
	tls_end_opening(e, t);
	tls_leave_job(e, t);
	tls_drop_plain(e, t);
	t->raw.stream.position = STREAM_CLOSED;
	edge_close_now(e, c);
}

bool edge_tls_close(struct edge *e, struct edge_connection *c)
{
	static const uint8_t goodbye[] = {1, TLS_CLOSE_NOTIFY};

	if (c->tls_ended)
		return true;
	if (edge_session_of(e, c) == NULL) {
		/* The helper's answer would come behind the FIN. */
		if (c->busy != NULL) {
			tls_end_opening(e, c->busy->tls);
			tls_leave_job(e, c->busy->tls);
		}
		return true;
	}
	if (c->busy == NULL && edge_begin(e, c) == NULL)
		return true; /* there is no memory to say so */
	if (c->busy->tls->plain != NULL || c->busy->tls->away)
		return false;
	edge_tls_send_small(e, c, TLS_ALERT, goodbye, sizeof(goodbye));
	c->tls_ended = true;
	return true;
}

/* --- handshakes --------------------------------------------------------------------------------
 */

/* The connection's handshake begins to count. */
static void tls_begin_opening(struct edge *e, struct edge_tls *t)
{
	if (t->is_opening)
		return;
	t->is_opening = true;
	e->tls->n_opening++;
	t->begun_ms = e->stack.now_ms;
	TAILQ_INSERT_TAIL(&e->tls->opening, t, opening);
}

/* All jobs are used, or those of <client>: its oldest handshake ends that has got no answer for
 * long, or anyone's if that is NULL. Once per ms, as thousands may wait. */
static void tls_make_room(struct edge *e, const struct edge_client *client)
{
	uint32_t *cleared_ms = client == NULL ? &e->tls->cleared_ms : &e->tls->cleared_own_ms;
	unsigned int left = TLS_VISITS;
	struct edge_tls *t;

	if (*cleared_ms == e->stack.now_ms)
		return;
	*cleared_ms = e->stack.now_ms;
	TAILQ_FOREACH (t, &e->tls->working, working) {
		if (left-- == 0)
			return;
		if (t->away || t->job->n > 0 || e->stack.now_ms - t->begun_ms < TLS_SILENT_MS ||
		    (client != NULL && t->busy->client != client))
			continue;
		e->tls->counters.crowded_out++;
		return edge_tls_fail(e, t->busy->connection, TLS_USER_CANCELED, LB_DROP_TCP_TLS);
	}
}

/* A job for the connection. False: it has to wait for one. */
static bool tls_get_job(struct edge *e, struct edge_tls *t)
{
	bool opens = edge_session(t) == NULL;

	if (t->job != NULL)
		return true;
	if (opens)
		tls_begin_opening(e, t);
	if (opens && t->busy->client->handshakes >= TLS_CLIENT_JOBS) {
		tls_make_room(e, t->busy->client);
		return false;
	}
	t->job = tls_job_get(e->tls->line);
	if (t->job == NULL) {
		tls_make_room(e, NULL);
		return false;
	}
	tls_count_job(e, t, opens);
	return true;
}

void edge_tls_ask(struct edge *e, struct edge_tls *t)
{
	struct edge_connection *c = t->busy->connection;
	struct tls_job *job;

	if (!tls_get_job(e, t))
		return edge_tls_enlist(e, t, EDGE_TLS_READS);
	job = t->job;
	job->owner = edge_number(e, c);
	job->service = c->service;
	job->order = TLS_STEP;
	if (edge_session_of(e, c) != NULL) {
		job->order = TLS_REKEY;
		job->session = edge_session_of(e, c);
		job->rekey_in = t->rekey_in;
		job->rekey_out = t->rekey_out;
	} else if (job->n == 0) {
		return; /* nothing came for it yet */
	}
	t->away = true;
	tls_send_job(e, job);
}

/* The connection has its keys. */
static void tls_opened(struct edge *e, struct edge_tls *t, struct tls_job *job)
{
	struct edge_connection *c = t->busy->connection;
	struct tls_counters *n = &e->tls->counters;
	bool unread;

	*edge_session_at(e, c) = job->session;
	n->opened_13 += tls_is_13(job->session);
	n->opened_12 += !tls_is_13(job->session);
	n->resumed += job->session->resumed;
	tls_end_opening(e, t);
	t->job = NULL;
	tls_count_job(e, t, false);
	unread = edge_tls_unread(t, job->bytes + job->n - job->left, job->left);
	tls_give_up_job(e, job);
	if (!unread)
		edge_tls_fail(e, c, TLS_INTERNAL_ERROR, LB_DROP_NO_MBUF);
}

static void tls_rekeyed(struct edge *e, struct edge_tls *t, struct tls_job *job)
{
	bool made = job->progress == TLS_DONE;

	e->tls->counters.rekeys += job->rekey_in + job->rekey_out;
	/* One may have become due meanwhile. */
	t->rekey_in &= !job->rekey_in;
	t->rekey_out &= !job->rekey_out;
	t->job = NULL;
	tls_job_put(job);
	if (!made)
		edge_tls_fail(e, t->busy->connection, -1, LB_DROP_NO_MBUF);
}

static void tls_stepped(struct edge *e, struct edge_tls *t, struct tls_job *job)
{
	struct edge_connection *c = t->busy->connection;
	bool sent = edge_tls_send_raw(e, c, job->output, job->n_output);

	if (job->progress == TLS_FAILED || !sent) {
		e->tls->counters.failed++;
		/* OpenSSL's alert is in the output. */
		return edge_tls_fail(e, c, -1, sent ? LB_DROP_TCP_TLS : LB_DROP_NO_MBUF);
	}
	if (job->progress == TLS_DONE)
		tls_opened(e, t, job);
	else
		job->n = 0;
}

static void tls_came_back(struct edge *e, struct tls_job *job)
{
	struct edge_connection *c = &e->connection[job->owner];
	struct edge_tls *t;

	if (job->owner == 0) {
		/* Its connection has ended. What it made, or worked on, goes. */
		if (job->session != NULL && job->order != TLS_ABANDON)
			tls_bury(e->tls->line, job->session);
		job->session = NULL;
		if (job->order == TLS_ABANDON)
			return tls_job_put(job);
		return tls_give_up_job(e, job);
	}
	t = c->busy->tls;
	t->away = false;
	if (job->order == TLS_REKEY)
		tls_rekeyed(e, t, job);
	else
		tls_stepped(e, t, job);
	edge_progress(e, c);
	edge_touch(e, c);
}

/* --- turns -------------------------------------------------------------------------------------
 */

unsigned int edge_tls_resume(struct edge *e)
{
	struct edge_tls_room *room = e->tls;
	unsigned int n = 0, left;
	struct edge_tls *t;
	struct tls_job *job;

	tls_give_kept(room);
	for (left = TLS_JOBS_TURN; left > 0 && room->away > 0 && edge_tls_may_read(e); left--) {
		job = e->lc->burst.n < LB_BURST - 1 ? tls_take(room->line) : NULL;
		if (job == NULL)
			break;
		room->away--;
		edge_work(e, &room->left, TLS_JOB_WORK);
		tls_came_back(e, job);
		n++;
	}
	for (left = TLS_VISITS; edge_tls_may_read(e) && e->lc->burst.n < LB_BURST - 1; n++) {
		t = tls_next(e, EDGE_TLS_READS, &left);
		if (t == NULL)
			return n;
		edge_progress(e, t->busy->connection);
	}
	return n;
}

void edge_tls_write_on(struct edge *e)
{
	unsigned int left = TLS_WRITERS;
	struct edge_tls *t;

	while (edge_tls_may_write(e) && (t = tls_next(e, EDGE_TLS_WRITES, &left)) != NULL) {
		struct edge_connection *c = t->busy->connection;

		edge_select(e, c->service);
		edge_tls_write(e, c);
		edge_touch(e, c);
	}
}

void edge_tls_end_turn(struct edge *e)
{
	bool due = !edge_tls_may_write(e);

	e->tls->short_of_time = due || !edge_tls_may_read(e);
	tls_begin_turn(e, due);
}

static bool tls_any_waits(const struct edge_tls_room *room)
{
	return !TAILQ_EMPTY(&room->turns[EDGE_TLS_READS]) ||
	       !TAILQ_EMPTY(&room->turns[EDGE_TLS_WRITES]);
}

bool edge_tls_must_go_on(const struct edge *e)
{
	const struct edge_tls_room *room = e->tls;

	return tls_line_back(room->line) > 0 || (room->short_of_time && tls_any_waits(room));
}

bool edge_tls_waits(const struct edge *e)
{
	return tls_any_waits(e->tls) || !TAILQ_EMPTY(&e->tls->opening);
}

void edge_tls_housekeeping(struct edge *e)
{
	struct edge_tls *t;

	tls_line_housekeeping(e->tls->line);
	for (unsigned int left = TLS_VISITS; left > 0; left--) {
		t = TAILQ_FIRST(&e->tls->opening);
		if (t == NULL || e->stack.now_ms - t->begun_ms < e->known->tcp.handshake_ms)
			return;
		e->tls->counters.late++;
		edge_tls_fail(e, t->busy->connection, TLS_USER_CANCELED, LB_DROP_TCP_TLS);
	}
}
