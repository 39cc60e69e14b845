/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that are larger than a packet. Once the header is known the walk finds a place for it in
 * a worker's memory; from then on every range of its bytes is WRITTEN there from where the NIC put
 * it, in the order of arrival. When none is missing, the request is announced.
 */
#include <errno.h>

#include "edge/edge_private.h"
#include "observe/flow_trace.h"
#include "packet/notice.h"

/* ms after a request has its place in which it may come at any rate: while others have waited for a
 * place for some ms, and while none do. A client whose segment and two repeats of it were lost is
 * silent for 1.4 s. */
#define LARGE_GRACE_MS       1000
#define LARGE_GRACE_ALONE_MS 5000
#define LARGE_WAITED_MS      10
/*
 * ms after a refused segment by which its client's timer runs as it did before. A timer doubles:
 * segments that were refused for some time come again after as long, or twice that if the next one
 * is lost, and then are behind.
 */
#define LARGE_BACKOFF_MS 8000
#define LARGE_BACKOFFS   4
/* ms for which a request is excused at most: else a client that fills its own share could keep a
 * place for good. */
#define LARGE_EXCUSED_MS 60000
/* Requests with a place looked at per ms. */
#define LARGE_CHECKS 128

/* --- memory -------------------------------------------------------------------------------------
 */

static void large_free_part(struct edge *e, struct edge_large *l, struct edge_part *part)
{
	rte_pktmbuf_free(part->m);
	edge_let_go(l->busy, 1);
	STAILQ_NEXT(part, next) = e->free_part;
	e->free_part = part;
	e->n_parts--;
}

static void large_free_parts(struct edge *e, struct edge_large *l, struct edge_parts *parts)
{
	struct edge_part *part;

	while ((part = STAILQ_FIRST(parts)) != NULL) {
		STAILQ_REMOVE_HEAD(parts, next);
		large_free_part(e, l, part);
	}
}

static uint64_t large_bytes(const struct edge_parts *parts)
{
	const struct edge_part *part;
	uint64_t bytes = 0;

	STAILQ_FOREACH (part, parts, next)
		bytes += part->length;
	return bytes;
}

/* The bytes that are to be written are looked at before the turn ends. */
void edge_large_touch(struct edge *e, struct edge_large *l)
{
	if (l->link == NULL || l->to_write || l->ready_at != 0)
		return;
	l->to_write = true;
	TAILQ_INSERT_TAIL(&e->writing, l, write);
	e->n_writing++;
}

static void large_touch_no_more(struct edge *e, struct edge_large *l)
{
	TAILQ_REMOVE(&e->writing, l, write);
	e->n_writing--;
	l->to_write = false;
}

static void large_want(struct edge *e, struct edge_large *l)
{
	l->since = e->lc->now;
	TAILQ_INSERT_TAIL(&e->wanting, l, entry);
}

static void large_want_no_more(struct edge *e, struct edge_large *l)
{
	if (e->paused == l)
		e->paused = TAILQ_NEXT(l, entry);
	if (e->next_wanting == l)
		e->next_wanting = TAILQ_NEXT(l, entry);
	TAILQ_REMOVE(&e->wanting, l, entry);
}

static void large_fill_no_more(struct edge *e, struct edge_large *l)
{
	if (e->checked == l)
		e->checked = TAILQ_NEXT(l, entry);
	TAILQ_REMOVE(&e->filling, l, entry);
}

/* The request is no longer one of those that hold a slot before they are complete. */
static void large_is_finished(struct edge_large *l)
{
	l->busy->client->unfinished -= l->unfinished;
	l->unfinished = false;
}

/* All its bytes were written, but the worker has as many requests as it should, or others have
 * waited for longer: it waits, too. */
static void large_is_ready(struct edge *e, struct edge_large *l)
{
	struct link *link = l->link;

	if (link->n_ready++ == 0) {
		TAILQ_INSERT_TAIL(&e->ready, link, ready_entry);
		link->ready_bytes = l->request->size;
		link->owed = 0;
	}
	TAILQ_INSERT_TAIL(&link->ready, l, write);
	link->ready_pages += link_slot_pages(link, l->place.slot);
	l->ready_at = e->lc->now;
	large_is_finished(l);
	l->busy->client->ready++;
}

static void large_is_not_ready(struct edge *e, struct edge_large *l)
{
	struct link *link = l->link;

	TAILQ_REMOVE(&link->ready, l, write);
	link->ready_pages -= link_slot_pages(link, l->place.slot);
	l->busy->client->ready--;
	if (--link->n_ready == 0)
		TAILQ_REMOVE(&e->ready, link, ready_entry);
	else
		link->ready_bytes = TAILQ_FIRST(&link->ready)->request->size;
	l->ready_at = 0;
}

/* Takes it off the lists and gives its place back, if it has one that was not announced. */
static void large_leave(struct edge *e, struct edge_large *l)
{
	struct lcore *lc = e->lc;

	if (l->to_write)
		large_touch_no_more(e, l);
	if (l->announced)
		return;
	if (l->link == NULL)
		return large_want_no_more(e, l);
	if (l->ready_at != 0)
		large_is_not_ready(e, l);
	large_fill_no_more(e, l);
	large_is_finished(l);
	/* Detached links have left the worker's account. */
	if (lc->link[l->link->worker] == l->link)
		workers_load_unplaced(&lc->load, l->link->worker);
	link_give_back(l->link, &l->place);
	l->link = NULL;
}

void edge_large_end(struct edge *e, struct edge_request *r)
{
	struct edge_large *l = r->large;

	if (l == NULL)
		return;
	r->large = NULL;
	large_leave(e, l);
	if (l->announced)
		e->lc->replay_streams--;
	l->busy->unwritten -= large_bytes(&l->parts);
	large_free_parts(e, l, &l->parts);
	large_free_parts(e, l, &l->kept);
	l->next_free = e->free_large;
	e->free_large = l;
	e->n_larges--;
}

bool edge_large_begin(struct edge_busy *b, struct edge_request *r)
{
	struct edge *e = b->edge;
	struct edge_large *l = e->free_large;

	if (l == NULL)
		return false;
	e->free_large = l->next_free;
	e->n_larges++;
	*l = (struct edge_large){.request = r, .busy = b};
	l->has_crc = lcore_service_config(e->lc, r->service)->payload_crc;
	STAILQ_INIT(&l->parts);
	STAILQ_INIT(&l->kept);
	r->large = l;
	large_want(e, l);
	return true;
}

/* --- bytes --------------------------------------------------------------------------------------
 */

/* Does the request of which bytes may be missing have its place, in a worker's memory or in the
 * packet in which it is gathered? */
static bool large_open_has_place(const struct edge_busy *b)
{
	struct edge_request *r = edge_request_find(b, b->placement.open.request);
	uint64_t before = 0;

	if (r == NULL)
		return false;
	/* Of a batch, the row whose bytes are next. */
	if (b->in_order > b->placement.open.position)
		before = b->in_order - b->placement.open.position;
	r = edge_rows_at(r, b->placement.open.offset + before);
	return r->large != NULL ? r->large->link != NULL : r->bytes != NULL;
}

bool edge_large_has_place(const struct edge_busy *b, uint64_t position)
{
	const struct placement *p = &b->placement;

	return position >= p->open.position && position < p->open.position + p->open.length &&
	       large_open_has_place(b);
}

uint64_t edge_large_missing(const struct edge_busy *b)
{
	uint64_t end = b->placement.open.position + b->placement.open.length;

	return end > b->in_order && large_open_has_place(b) ? end - b->in_order : 0;
}

/* --- WRITEs -------------------------------------------------------------------------------------
 */

static bool large_keeps(const struct edge *e, const struct edge_large *l)
{
	return lcore_service_config(e->lc, l->request->service)->replay > 0;
}

/* Do the bytes end their packet, and does nothing else need it? Then headers may go around them. */
static bool large_is_alone(const struct edge_part *part)
{
	const struct rte_mbuf *m = part->m;

	return rte_mbuf_refcnt_read(m) == 1 &&
	       part->bytes + part->length ==
		       rte_pktmbuf_mtod_offset(m, const uint8_t *, m->data_len);
}

static int large_write_alone(struct edge *e, struct edge_large *l, struct edge_part *part,
			     unsigned int flags)
{
	struct rte_mbuf *m = part->m;
	int rc;

	rte_pktmbuf_adj(m, part->bytes - rte_pktmbuf_mtod(m, const uint8_t *));
	rc = link_write(l->link, &l->place, part->offset, m, flags, e->lc->link_max);
	if (rc == 0)
		part->m = NULL;
	return rc;
}

static int large_write_shared(struct edge *e, struct edge_large *l, const struct edge_part *part,
			      unsigned int flags)
{
	struct rte_mbuf *m = edge_refer(e, part->m, part->bytes, part->length);
	int rc;

	if (m == NULL)
		return -ENOMEM;
	rc = link_write(l->link, &l->place, part->offset, m, flags | LINK_WRITE_SHARED,
			e->lc->link_max);
	if (rc < 0)
		rte_pktmbuf_free(m);
	return rc;
}

/* Writes the first part. 0, -EAGAIN, -ENOMEM or -EPIPE. */
static int large_write_first(struct edge *e, struct edge_large *l, bool keep, bool followed)
{
	struct edge_part *part = STAILQ_FIRST(&l->parts);
	unsigned int flags = 0;
	int rc;

	/* Another that follows at once asks for an acknowledgement, too. */
	if (STAILQ_NEXT(part, next) == NULL && !followed)
		flags = LINK_WRITE_ENDS;
	if (!keep && large_is_alone(part))
		rc = large_write_alone(e, l, part, flags);
	else
		rc = large_write_shared(e, l, part, flags);
	if (rc < 0)
		return rc;
	STAILQ_REMOVE_HEAD(&l->parts, next);
	if (l->copied == part)
		l->copied = NULL;
	l->busy->unwritten -= part->length;
	if (keep)
		STAILQ_INSERT_TAIL(&l->kept, part, next);
	else
		large_free_part(e, l, part);
	l->gone |= !keep;
	return 0;
}

static int large_write_parts(struct edge *e, struct edge_large *l, bool followed)
{
	bool keep = large_keeps(e, l);
	int rc = 0;

	while (rc == 0 && !STAILQ_EMPTY(&l->parts))
		rc = large_write_first(e, l, keep, followed);
	return rc;
}

/* All bytes were written: the worker is told. 0, -EAGAIN, -ENOMEM or -EPIPE. */
static int large_announce(struct edge *e, struct edge_large *l, struct flow *flow)
{
	struct edge_connection *c = l->busy->connection;
	struct edge_request *r = l->request;
	const struct lb_service_config *config = lcore_service_config(e->lc, r->service);
	struct lcore *lc = e->lc;
	const struct ring_descriptor request = {
		.length = r->size,
		.service = r->service,
		.flow = c->handle,
		.deadline_us = lcore_deadline_us(lc, config, r->deadline),
		.sent_us = lcore_sent_us(lc),
		.flags = l->has_crc ? RING_HAS_CRC : 0,
		.crc32 = l->crc,
	};
	int rc = link_announce(l->link, &l->place, &request, edge_tag(r), r->arrived, lc->now,
			       lc->link_max, lc->packets);

	if (rc < 0)
		return rc;
	if (l->ready_at != 0) {
		l->link->owed -= RTE_MIN(l->link->owed, r->size);
		large_is_not_ready(e, l);
	}
	workers_load_announced(&lc->load, l->link->worker, lc->now);
	if (unlikely(lc->trace != NULL))
		trace_announced(lc, flow, r->number, l->link, l->place.slot, r->size, r->arrived);
	l->link->client_path[l->place.slot] = c->path;
	l->link->slot[l->place.slot].deadline = r->deadline;
	large_fill_no_more(e, l);
	large_is_finished(l);
	l->announced = true;
	l->link = NULL;
	r->sent = true;
	conntrack_count_request(flow);
	lc->replay_streams++;
	if (l->replays == 0)
		lc->service[r->service].stats.bytes_in += r->size;
	lc->service[r->service].stats.requests++;
	lc->stats.requests++;
	if (STAILQ_EMPTY(&l->kept))
		edge_large_end(e, r);
	return 0;
}

/* The place is lost, with its worker. What was not kept is lost, too. */
static void large_lose_place(struct edge *e, struct edge_large *l)
{
	struct edge_busy *b = l->busy;

	if (l->link != NULL)
		l->lost = l->link->worker + 1;
	large_leave(e, l);
	b->unwritten += large_bytes(&l->kept);
	STAILQ_CONCAT(&l->parts, &l->kept);
	large_want(e, l);
	if (l->gone)
		edge_request_fail(b, l->request, LB_NOTICE_WORKER_LOST, LB_DROP_WORKER_LOST);
}

static bool large_may_go(const struct edge *e, const struct link *link)
{
	return !link_is_deep(link) && link_takes_paged(link, e->lc->lb->tsc_per_ms);
}

/* Writes what came. <followed>: bytes of another request go to the same link behind it. False: the
 * rest has to wait for room. */
static bool large_write(struct edge *e, struct edge_large *l, bool followed)
{
	struct edge_connection *c = l->busy->connection;
	struct link *link = l->link;
	uint64_t copies = link->requester.stats.copies;
	struct flow *flow = edge_flow(e, c);
	bool announce;
	int rc;

	/* The window may open. */
	edge_touch(e, c);
	if (flow == NULL) {
		edge_expired(e, c);
		return true;
	}
	lcore_limit_links(e->lc);
	lcore_mark_dirty(e->lc, link);
	announce =
		edge_request_is_complete(l->request) && link->n_ready == 0 && large_may_go(e, link);
	rc = large_write_parts(e, l, followed || announce);
	e->lc->stats.payload_copies += link->requester.stats.copies - copies;
	if (rc == 0 && announce)
		rc = large_announce(e, l, flow);
	else if (rc == 0 && edge_request_is_complete(l->request))
		large_is_ready(e, l);
	if (rc == -EPIPE)
		large_lose_place(e, l);
	return rc != -EAGAIN && rc != -ENOMEM;
}

/* Announces one that waits. False: it goes on waiting. */
static bool large_announce_late(struct edge *e, struct edge_large *l)
{
	struct flow *flow = edge_flow(e, l->busy->connection);
	int rc;

	if (flow == NULL) { /* it holds up no others */
		edge_expired(e, l->busy->connection);
		return false;
	}
	lcore_limit_links(e->lc);
	lcore_mark_dirty(e->lc, l->link);
	rc = large_announce(e, l, flow);
	if (rc == -EPIPE)
		large_lose_place(e, l);
	return rc == 0 || rc == -EPIPE;
}

/* Those that wait, where their workers have answered meanwhile. Returns how many. */
static unsigned int large_announce_ready(struct edge *e)
{
	struct link *link = TAILQ_FIRST(&e->ready), *next;
	unsigned int n = 0;

	for (; link != NULL; link = next) {
		next = TAILQ_NEXT(link, ready_entry);
		while (link->n_ready > 0 && large_may_go(e, link) &&
		       large_announce_late(e, TAILQ_FIRST(&link->ready)))
			n++;
	}
	return n;
}

/* Is <next>, which may be NULL, written to the same link, so that one acknowledgement is for both?
 */
static bool large_is_followed(const struct edge_large *l, const struct edge_large *next)
{
	return next != NULL && next->link == l->link && !STAILQ_EMPTY(&next->parts);
}

unsigned int edge_write(struct lcore *lc)
{
	struct edge *e = lc->edge;
	unsigned int handled = large_announce_ready(e);

	/* Those that have to wait for room join the end again. One that fails may end others of its
	 * connection. */
	for (uint32_t n = e->n_writing; n > 0 && !TAILQ_EMPTY(&e->writing); n--, handled++) {
		struct edge_large *l = TAILQ_FIRST(&e->writing);

		large_touch_no_more(e, l);
		if (!large_write(e, l, n > 1 && large_is_followed(l, TAILQ_FIRST(&e->writing))))
			edge_large_touch(e, l);
	}
	return handled;
}

/* --- the walk's side ----------------------------------------------------------------------------
 */

bool edge_next_wanting(struct lcore *lc, struct edge_wanting *at)
{
	struct edge *e = lc->edge;
	struct edge_large *l = at->large == NULL ? TAILQ_FIRST(&e->wanting) : e->next_wanting;
	uint32_t most = lc->services->tcp.unfinished;
	const struct edge_client *client;

	if (l == NULL)
		return false;
	client = l->busy->client;
	/* One that is refused may end others of its connection. */
	e->next_wanting = TAILQ_NEXT(l, entry);
	*at = (struct edge_wanting){
		.large = l,
		.flow = edge_flow(e, l->busy->connection),
		.hash = l->request->hash,
		.service = l->request->service,
		.bytes = l->request->size,
		.since = l->since,
		.deadline = l->request->deadline,
		.lost = l->lost,
		.again = l->replays > 0,
		.may = client->unfinished < most,
		.may_wait = client->unfinished + client->ready < most,
	};
	return true;
}

bool edge_resume_wanting(struct lcore *lc)
{
	struct edge *e = lc->edge;

	if (e->next_wanting == NULL)
		return false;
	if (e->paused != NULL)
		e->next_wanting = e->paused;
	return true;
}

void edge_pause_wanting(struct lcore *lc)
{
	lc->edge->paused = lc->edge->next_wanting;
}

void edge_place(struct lcore *lc, const struct edge_wanting *at, struct link *link,
		const struct link_place *place)
{
	struct edge *e = lc->edge;
	struct edge_large *l = at->large;

	large_want_no_more(e, l);
	TAILQ_INSERT_TAIL(&e->filling, l, entry);
	l->link = link;
	l->place = *place;
	l->placed_at = l->checked = lc->now;
	l->placed_before = l->request->placed;
	/* The window was closed meanwhile, and the segment that opens it may be lost: its client
	 * tries again after at most as long. So does one that is silent because its segments were
	 * refused. */
	l->excused = lc->now - l->since +
		     2 * (uint64_t)(e->stack.now_ms - l->busy->connection->tcp.heard_ms) *
			     lc->lb->tsc_per_ms;
	l->excused = RTE_MIN(l->excused, LARGE_EXCUSED_MS * lc->lb->tsc_per_ms);
	l->unfinished = !edge_request_is_complete(l->request);
	l->busy->client->unfinished += l->unfinished;
	l->gone = false;
	if (unlikely(lc->trace != NULL))
		trace_placed(lc, at->flow, l->request->number, link);
	edge_large_touch(e, l);
}

void edge_refuse_wanting(struct lcore *lc, const struct edge_wanting *at, uint8_t notice,
			 enum lb_drop reason)
{
	edge_request_fail(at->large->busy, at->large->request, notice, reason);
}

/* The next of those that fill a place. One that ends may end others of its connection. */
static struct edge_large *large_next_checked(struct edge *e)
{
	struct edge_large *l = e->checked;

	if (l != NULL)
		e->checked = TAILQ_NEXT(l, entry);
	return l;
}

void edge_lose_link(struct lcore *lc, const struct link *link)
{
	struct edge *e = lc->edge;
	struct edge_large *l;

	if (e == NULL)
		return;
	e->checked = TAILQ_FIRST(&e->filling);
	while ((l = large_next_checked(e)) != NULL)
		if (l->link == link)
			large_lose_place(e, l);
}

bool edge_replay(struct lcore *lc, const struct flow *flow, uint64_t tag, uint8_t most,
		 uint16_t lost)
{
	struct edge_connection *c;
	struct edge_request *r = edge_request_of(lc, flow, tag, &c);
	struct edge_large *l = r == NULL || r->answered ? NULL : r->large;

	if (l == NULL || !l->announced || l->gone || l->replays >= most)
		return false;
	l->replays++;
	l->lost = lost + 1;
	l->announced = false;
	r->sent = false;
	lc->replay_streams--;
	c->busy->unwritten += large_bytes(&l->kept);
	STAILQ_CONCAT(&l->parts, &l->kept);
	large_want(lc->edge, l);
	return true;
}

/* Was a segment refused, so that the client tries again after a time that doubles? */
static bool large_is_refused(const struct edge *e, const struct edge_busy *b)
{
	uint32_t backoff = LARGE_BACKOFFS * (b->refused_ms - b->refused_first_ms);

	return b->refused_ms != 0 &&
	       e->stack.now_ms - b->refused_ms < RTE_MAX(backoff, (uint32_t)LARGE_BACKOFF_MS);
}

void edge_note_refused(struct edge_busy *b)
{
	/* Not later than now, or the next one of this ms would begin another row. */
	uint32_t now = b->edge->stack.now_ms - (b->edge->stack.now_ms == 0);

	if (!large_is_refused(b->edge, b))
		b->refused_first_ms = now;
	b->refused_ms = now;
}

/* The client may not be blamed for time in which it could not send; while its window is closed its
 * TCP asks less and less often, so nor for as long again. */
static void large_excuse(const struct lcore *lc, struct edge_large *l)
{
	uint64_t time = lc->now - l->checked;

	l->checked = lc->now;
	if (edge_window_is_closed(l->busy->connection))
		time *= 2;
	else if (!large_is_refused(lc->edge, l->busy))
		return;
	l->excused = RTE_MIN(l->excused + time, LARGE_EXCUSED_MS * lc->lb->tsc_per_ms);
}

/* Has a request waited for a place for long? */
static bool large_any_waits(const struct edge *e)
{
	const struct edge_large *oldest = TAILQ_FIRST(&e->wanting);

	return oldest != NULL &&
	       e->lc->now - oldest->since > LARGE_WAITED_MS * e->lc->lb->tsc_per_ms;
}

/* Did the request come slower than it must? Not while its bytes wait for the worker, and not at
 * first. */
static bool large_drips(const struct lcore *lc, const struct edge_large *l)
{
	uint64_t grace = large_any_waits(lc->edge) ? LARGE_GRACE_MS : LARGE_GRACE_ALONE_MS;
	uint64_t time = lc->now - l->placed_at, ms;
	uint64_t came = l->request->placed - l->placed_before;

	if (!STAILQ_EMPTY(&l->parts) || l->ready_at != 0 || time <= l->excused)
		return false;
	ms = (time - l->excused) / lc->lb->tsc_per_ms;
	return ms > grace && came < (ms - grace) * lc->services->tcp.min_rate / 1000;
}

/* It goes behind all that the worker has, rather than to end. */
static bool large_has_waited_long(const struct lcore *lc, const struct edge_large *l)
{
	uint16_t service = l->request->service;

	return l->ready_at != 0 &&
	       lc->now - l->ready_at >
		       lcore_service_config(lc, service)->queue_timeout_ms * lc->lb->tsc_per_ms;
}

static void large_check(struct lcore *lc, struct edge_large *l)
{
	large_excuse(lc, l);
	if (lc->stop == STOP_NOTIFYING)
		edge_request_fail(l->busy, l->request, LB_NOTICE_BUSY, LB_DROP_STOPPING);
	else if (l->request->deadline != 0 && lc->now > l->request->deadline)
		edge_request_fail(l->busy, l->request, LB_NOTICE_DEADLINE, LB_DROP_DEADLINE);
	else if (large_has_waited_long(lc, l))
		large_announce_late(lc->edge, l);
	else if (large_drips(lc, l))
		edge_request_fail(l->busy, l->request, LB_NOTICE_TIMEOUT, LB_DROP_TCP_SLOW);
}

/* Some of them, in turn. */
static void large_check_some(struct lcore *lc)
{
	struct edge *e = lc->edge;
	struct edge_large *l;

	if (e->checked == NULL)
		e->checked = TAILQ_FIRST(&e->filling);
	for (unsigned int left = LARGE_CHECKS; left > 0; left--) {
		l = large_next_checked(e);
		if (l == NULL)
			return;
		large_check(lc, l);
	}
}

void edge_housekeeping(struct lcore *lc)
{
	struct edge *e = lc->edge;

	large_check_some(lc);
	edge_press_all(e);
	edge_press_waiting(e);
	edge_rewrite_check_readers(e);
	edge_streams_check(e);
	if (unlikely(e->tls != NULL))
		edge_tls_housekeeping(e);
}
