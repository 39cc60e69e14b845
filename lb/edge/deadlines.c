/* SPDX-License-Identifier: BSD-3-Clause */
/* When connections are looked at again: the wheel, and lists of deadlines that are seldom reached.
 */
#include "edge/deadlines.h"

/* Timers visited per turn: bounds its time. One that judges segments under way counts as one more
 * for so many of them. */
#define DEADLINES_BUDGET  256
#define DEADLINES_RECORDS 64
/* Timers whose connections are prefetched before the first of them is visited. */
#define DEADLINES_TOGETHER 32
/* A connection is visited this often: its flow lives as long as it does. */
#define DEADLINES_VISIT_MS (CONNTRACK_TCP_TIMEOUT_MS / 2)
/* An lcore sleeps no longer than this. */
#define DEADLINES_SLEEP_MS 50

/* --- deadlines that are seldom reached
 * ---------------------------------------------------------------
 *
 * A reply soon carries the acknowledgement that waits for it, and a client soon acknowledges the
 * reply. So their timers wait in lists, each in the order of time, before the wheel has them: it
 * seldom sees them.
 */

/* ms that a client has at least to acknowledge a segment: RECOVERY_ACK_DELAY. */
#define DEADLINES_ANSWER_MS 60
/* Such a deadline is no further away: the first timeout of a connection is a second. */
#define DEADLINES_SOON_MS 1500
/* ms by which a connection may be looked at too early, rather than to change its place. */
#define DEADLINES_EARLY_MS 32

void edge_leave_soon(struct edge_busy *b)
{
	if (b->soon_list == NULL)
		return;
	TAILQ_REMOVE(b->soon_list, b, soon);
	b->soon_list = NULL;
}

/* True: the connection is on a list, and looked at before <ms>. */
static bool deadlines_wait_soon(struct edge *e, struct edge_busy *b, uint32_t ms)
{
	const struct edge_busy *last = TAILQ_LAST(&e->owing, edge_busy_list);
	uint32_t left = ms - e->stack.now_ms;

	if (b->soon_list != NULL && ms - b->soon_ms <= DEADLINES_EARLY_MS)
		return true;
	edge_leave_soon(b);
	if (left >= DEADLINES_ANSWER_MS && left < DEADLINES_SOON_MS) {
		b->soon_list = &e->answered;
		b->soon_ms = e->stack.now_ms + DEADLINES_ANSWER_MS;
	} else if (left == e->known->tcp_settings[b->connection->service].ack_delay_ms &&
		   (last == NULL || !sequence_before(ms, last->soon_ms))) {
		b->soon_list = &e->owing;
		b->soon_ms = ms;
	} else {
		return false;
	}
	TAILQ_INSERT_TAIL(b->soon_list, b, soon);
	return true;
}

/* When the connection is visited at the latest. */
static uint32_t deadlines_latest(const struct edge *e, const struct edge_connection *c)
{
	uint32_t latest = e->stack.now_ms + DEADLINES_VISIT_MS;

	if (unlikely(c->secured) && !edge_tls_has_keys(e, c) && c->busy == NULL && !c->closing)
		latest = sequence_min(latest, c->idle_ms + e->known->tcp.handshake_ms);
	return e->idle_ms == 0 || (c->busy != NULL && !edge_frames_are_idle(c)) || c->closing
		       ? latest
		       : sequence_min(latest, c->idle_ms + e->idle_ms);
}

void edge_set_timer(struct edge *e, const struct edge_connection *c, uint32_t ms)
{
	if (c->busy != NULL && deadlines_wait_soon(e, c->busy, ms))
		return;
	tcp_wheel_set(&e->wheel, edge_number(e, c), sequence_min(ms, deadlines_latest(e, c)));
}

static bool deadlines_is_unused(struct edge *e, const struct edge_connection *c)
{
	if (unlikely(c->secured) && edge_tls_is_late(e, c))
		return true;
	return e->idle_ms != 0 && (c->busy == NULL || edge_frames_are_idle(c)) &&
	       e->stack.now_ms - c->idle_ms >= e->idle_ms;
}

/* Its timers are run. Returns what that counts as. */
static int deadlines_run(struct edge *e, struct edge_connection *c)
{
	const struct tcp_active *a = c->tcp.active;
	int cost = 1 + (a == NULL ? 0 : (int)a->n_sent / DEADLINES_RECORDS);
	struct flow *flow = edge_flow(e, c);

	edge_select(e, c->service);
	tcp_timer(&e->stack, &c->tcp);
	if (unlikely(flow == NULL)) {
		edge_expired(e, c);
		return cost;
	}
	conntrack_touch(flow, e->lc->now_ms);
	edge_touch(e, c);
	return cost;
}

/*
 * A timer's entry came up, often early: what has happened since has set the timer later. A segment
 * keeps the flow alive, so it is touched where none came for long. Returns what the visit counts
 * as.
 */
static int deadlines_visit(struct edge *e, struct edge_connection *c)
{
	bool quiet = e->stack.now_ms - c->tcp.heard_ms > DEADLINES_VISIT_MS / 2;
	uint32_t ms;

	if (!c->closing && deadlines_is_unused(e, c))
		edge_close(e, c);
	else if (!quiet && tcp_due(&c->tcp, &ms) && sequence_after(ms, e->stack.now_ms))
		edge_set_timer(e, c, ms);
	else
		return deadlines_run(e, c);
	return 1;
}

/* Looks at those of a list whose time has come, as long as <left> is more than 0. Returns the rest.
 */
static int deadlines_run_soon(struct edge *e, struct edge_busy_list *list, int left)
{
	struct edge_busy *b;

	while (left > 0 && (b = TAILQ_FIRST(list)) != NULL &&
	       !sequence_after(b->soon_ms, e->stack.now_ms)) {
		edge_leave_soon(b);
		left -= deadlines_visit(e, b->connection);
	}
	return left;
}

/* Takes some of those that are due. Returns how many. */
static unsigned int deadlines_take(struct edge *e, uint32_t number[DEADLINES_TOGETHER])
{
	unsigned int n;

	for (n = 0; n < DEADLINES_TOGETHER; n++) {
		number[n] = tcp_wheel_take(&e->wheel);
		if (number[n] == 0)
			break;
		tcp_wheel_prefetch(&e->wheel, number[n]);
		rte_prefetch0(&e->connection[number[n]]);
		rte_prefetch0(&e->connection[number[n]].tcp.timer_ms);
	}
	return n;
}

unsigned int edge_run_timers(struct edge *e)
{
	uint32_t number[DEADLINES_TOGETHER];
	unsigned int n = DEADLINES_TOGETHER;
	int left = DEADLINES_BUDGET;

	/* It is called again when a burst of requests was read. */
	if (e->timers_turn == (uint32_t)e->lc->stats.polls)
		return 0;
	e->timers_turn = (uint32_t)e->lc->stats.polls;
	left = deadlines_run_soon(e, &e->owing, left);
	left = deadlines_run_soon(e, &e->answered, left);
	tcp_wheel_advance(&e->wheel, e->stack.now_ms);
	while (left >= DEADLINES_TOGETHER && n == DEADLINES_TOGETHER) {
		n = deadlines_take(e, number);
		for (unsigned int i = 0; i < n; i++) {
			if (likely(left > 0))
				left -= deadlines_visit(e, &e->connection[number[i]]);
			else /* the next turn has them */
				tcp_wheel_set(&e->wheel, number[i], e->stack.now_ms);
		}
	}
	return DEADLINES_BUDGET - left;
}

/* ms until a connection of those lists is looked at, <most> at most. */
static uint32_t deadlines_soon_left(const struct edge *e, uint32_t most)
{
	const struct edge_busy *first[] = {TAILQ_FIRST(&e->owing), TAILQ_FIRST(&e->answered)};

	for (unsigned int i = 0; i < RTE_DIM(first); i++)
		if (first[i] != NULL && sequence_before(first[i]->soon_ms, e->stack.now_ms + most))
			most = RTE_MAX((int32_t)(first[i]->soon_ms - e->stack.now_ms), 0);
	return most;
}

uint64_t edge_deadline(const struct lcore *lc)
{
	const struct edge *e = lc->edge;
	uint32_t ms = DEADLINES_SLEEP_MS;

	bool waits;

	if (e == NULL)
		return UINT64_MAX;
	waits = !STAILQ_EMPTY(&e->due) || !TAILQ_EMPTY(&e->due_more) || !TAILQ_EMPTY(&e->others) ||
		!TAILQ_EMPTY(&e->turns) || !TAILQ_EMPTY(&e->wanting) || !TAILQ_EMPTY(&e->writing) ||
		!TAILQ_EMPTY(&e->narrow) || (unlikely(e->tls != NULL) && edge_tls_waits(e));
	/* Text that waits for its turn only goes on at once. */
	if (e->text_short || e->goes_on || e->n_graves > 0 || !TAILQ_EMPTY(&e->freeing) ||
	    edge_next_rewrite(e) != NULL || !TAILQ_EMPTY(&e->rows) ||
	    (unlikely(e->tls != NULL) && edge_tls_must_go_on(e)))
		return lc->now;
	if (waits)
		ms = 1;
	else if (e->wheel.n == 0 && TAILQ_EMPTY(&e->owing) && TAILQ_EMPTY(&e->answered))
		return UINT64_MAX;
	else
		ms = tcp_wheel_left(&e->wheel, deadlines_soon_left(e, ms));
	return lc->now + RTE_MAX(ms, 1u) * lc->lb->tsc_per_ms;
}
