/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests without a credit wait here (queue.h): one bounded queue per service and lcore. A request
 * leaves it for a worker, or with a notice when it has waited too long.
 */
#include "walk/waiting.h"

#include "lcore/lcore.h"
#include "walk/choose.h"
#include "walk/drop_packet.h"
#include "walk/egress.h"
#include "walk/forward.h"
#include "walk/replay.h"

/* Requests looked at per service and ms whose time may be over: so many of the oldest, and so many
 * of all. */
#define BUDGET 64

/* Clients by zone and address, all of a /64 as one: whoever has that many of them may not have more turns.
 */
static uint8_t lane_of(const struct lcore *lc, const struct flow *flow)
{
	bool mapped = IN6_IS_ADDR_V4MAPPED(&flow->client);
	uint64_t word;

	memcpy(&word, flow->client.s6_addr + (mapped ? 8 : 0), sizeof(word));
	word = (word ^ lc->lane_seed) * 0x9e3779b97f4a7c15ull;
	word = (word ^ word >> 32 ^ flow->zone) * 0xbf58476d1ce4e5b9ull;
	return (word ^ word >> 32) * 0xd6e8feb86659fd93ull >> 58;
}

static uint32_t size_of(const struct lcore *lc, const struct lb_service_config *config)
{
	return (config->queue + lc->sharers - 1) / lc->sharers;
}

int waiting_init(const struct lcore *lc, const struct lb_service_config *config,
		 struct queue *queue)
{
	return queue_init(queue, size_of(lc, config), config->replay > 0 ? lc->kept_max : 0);
}

/* Sizes are rounded up: where lcores share a queue, together by some packets more than there are. */
void waiting_share(struct lcore *lc)
{
	uint32_t sum = 0;

	for (unsigned int i = 0; i < lc->services->n; i++)
		if (lb_service_serves(&lc->services->config[i]))
			sum += size_of(lc, &lc->services->config[i]);
	lc->waiting_max = RTE_MAX(lc->waiting_least, sum);
}

/* The first service from <from> on with requests that wait, or LB_SERVICES_MAX. */
static unsigned int next_service(const struct lcore *lc, unsigned int from)
{
	for (; from < LB_SERVICES_MAX; from = (from | 63) + 1) {
		uint64_t word = lc->waiting[from / 64] >> from % 64;

		if (word != 0)
			return from + __builtin_ctzll(word);
	}
	return LB_SERVICES_MAX;
}

static void mark(struct lcore *lc, uint16_t service)
{
	uint64_t bit = UINT64_C(1) << service % 64;

	if (lc->service[service].queue.count > 0)
		lc->waiting[service / 64] |= bit;
	else
		lc->waiting[service / 64] &= ~bit;
}

/* It waits no more. */
static void left(struct lcore *lc, uint16_t service, const struct waiting *w)
{
	lc->n_waiting--;
	if (unlikely(w->level == QUEUE_LEVEL_REPLAY)) {
		lc->n_again--;
		replay_left(lc, service);
	}
	mark(lc, service);
}

/* Its client is to be told, and its port takes no more: better later than not at all. */
static bool can_tell(const struct lcore *lc, const struct waiting *w)
{
	const struct flow *flow = conntrack_flow_get(lc->ct, w->flow);

	return flow == NULL || txq_room(&lc->tx[w->path.port]) > 0;
}

/* False: its client cannot be told now. */
static bool tell(struct lcore *lc, const struct waiting *w, enum lb_drop reason)
{
	const struct flow *flow = conntrack_flow_get(lc->ct, w->flow);

	/* The configuration lets no flow end before its requests do, but a full table may. */
	return flow == NULL ||
	       egress_notice(lc, flow, &w->path, forward_notice_of(reason), w->tag);
}

static void end(struct lcore *lc, uint16_t service, const struct waiting *w, enum lb_drop reason)
{
	lc->service[service].stats.drops++;
	tell(lc, w, reason);
	lcore_drop(lc, w->packet, reason);
}

/* There are no more packets for those that wait. Queues together are no larger, but for those of
 * services that leave. */
static bool waits_enough(const struct lcore *lc)
{
	return lc->n_waiting - lc->n_again >= lc->waiting_max;
}

bool waiting_push(struct lcore *lc, uint16_t service, const struct waiting *w)
{
	bool grow = !waits_enough(lc);
	struct waiting displaced;

	switch (queue_push(&lc->service[service].queue, w, grow, &displaced)) {
	case QUEUE_TAKEN:
		lc->n_waiting++;
		lc->n_again += w->level == QUEUE_LEVEL_REPLAY;
		mark(lc, service);
		return true;
	case QUEUE_DISPLACED:
		end(lc, service, &displaced, LB_DROP_QUEUE_FULL);
		return true;
	default:
		return false;
	}
}

/*
 * How fast the queue moves is measured in windows of this many ms, or until one request has gone,
 * while there is a queue: every turn looks at one, so after a longer gap there was none.
 */
#define WINDOW_MS 10

static void measure(struct lcore *lc, struct lcore_service *s, unsigned int sent)
{
	uint64_t window = WINDOW_MS * lc->lb->tsc_per_ms;

	if (lc->now - s->measured > window) {
		s->window_start = lc->now;
		s->window_sent = 0;
	}
	s->measured = lc->now;
	s->window_sent += sent;
	if (lc->now - s->window_start < window || s->window_sent == 0)
		return;
	s->interval = (s->interval + (lc->now - s->window_start) / s->window_sent) / 2;
	s->window_start = lc->now;
	s->window_sent = 0;
}

/* TSC until a request that joins the queue now would leave it for a worker. */
static uint64_t expected_wait(const struct lcore *lc, uint16_t service, const struct waiting *w)
{
	const struct lcore_service *s = &lc->service[service];
	uint64_t interval = s->interval;

	/* It stands still. */
	if (s->queue.count > 0 && s->window_sent == 0)
		interval = RTE_MAX(interval, s->measured - s->window_start);
	return queue_ahead(&s->queue, w->level, w->lane) * interval;
}

/* Why it should wait no longer, or LB_DROPS. */
static enum lb_drop over(const struct lcore *lc, const struct lb_service_config *config,
			 const struct waiting *w)
{
	if (w->deadline != 0 && lc->now > w->deadline)
		return LB_DROP_DEADLINE;
	if (lc->now - w->since > config->queue_timeout_ms * lc->lb->tsc_per_ms)
		return w->replays > 0 ? LB_DROP_WORKER_LOST : LB_DROP_QUEUE_TIMEOUT;
	return LB_DROPS;
}

static void put_into_burst(struct burst *b, unsigned int i, const struct waiting *w,
			   struct flow *flow, struct link *link)
{
	b->packet[i] = w->packet;
	b->flow[i] = flow;
	b->handle[i] = w->flow;
	b->hash[i] = w->hash;
	b->path[i] = w->path;
	b->tag[i] = w->tag;
	b->arrived[i] = w->arrived;
	b->deadline[i] = w->deadline;
	b->standing[i] = (struct standing){.level = w->level, .replays = w->replays};
	b->link[i] = link;
}

/*
 * Look at the request whose turn it is: put it into the burst, end it, or pass it over. False: no
 * use going on. <deep>: to workers that have enough before them, too.
 */
static bool try_first(struct lcore *lc, uint16_t service, unsigned int level, struct burst *b,
		      bool deep)
{
	const struct lb_service_config *config = lcore_service_config(lc, service);
	struct queue *queue = &lc->service[service].queue;
	uint32_t place = queue_first(queue, level);
	struct waiting w = *queue_at(queue, place);
	struct flow *flow = conntrack_flow_get(lc->ct, w.flow);
	enum lb_drop reason = over(lc, config, &w), too_long = LB_DROPS;
	/* Sticky flows are not: where no home has room, anybody would do. */
	bool pinned = config->affinity == LB_AFFINITY_FLOW ||
		      (config->affinity == LB_AFFINITY_REQUEST && config->policy == PICK_MAGLEV);
	struct link *link;
	bool late = false;

	/* Before it is refused for that: into a ring, if one has room, behind whatever is there. */
	if (reason == LB_DROP_QUEUE_TIMEOUT || reason == LB_DROP_WORKER_LOST) {
		too_long = reason;
		reason = LB_DROPS;
	}
	if (flow == NULL)
		reason = LB_DROP_QUEUE_TIMEOUT;
	else if (!choose_may_wait(lc, service))
		reason = LB_DROP_NO_WORKER;
	else if (w.packet->data_len > config->max_request)
		reason = LB_DROP_REQUEST_TOO_LARGE; /* since a reload */
	if (reason == LB_DROPS) {
		if ((deep || too_long != LB_DROPS) && choose_waits_here(lc, service))
			link = choose_deep(lc, flow, w.hash, w.packet, w.deadline);
		else
			link = choose_worker(lc, flow, w.hash, w.packet, w.deadline, &late);
		if (late) {
			reason = LB_DROP_DEADLINE;
		} else if (link == NULL && too_long != LB_DROPS) {
			reason = too_long;
		} else if (link == NULL) {
			/* Without affinity nobody can take any; with it, others may have better
			 * luck. */
			if (!pinned)
				return false;
			queue_pass(queue, place);
			return true;
		} else {
			put_into_burst(b, b->n++, &w, flow, link);
		}
	}
	/* Clients of other ports may be told. */
	if (reason != LB_DROPS && !can_tell(lc, &w)) {
		queue_pass(queue, place);
		return true;
	}
	queue_take(queue, place);
	left(lc, service, &w);
	if (reason != LB_DROPS)
		end(lc, service, &w, reason);
	return true;
}

/* No newcomer would be in without another that goes. */
static bool is_full(const struct queue *queue)
{
	return queue->count - queue->level[QUEUE_LEVEL_REPLAY].count >= queue->size;
}

/*
 * The queue is full, but rings may not be: who waits first goes into one, in the newcomer's place
 * in the burst, and the newcomer waits instead. Not who was sent before: that would leave no place.
 * False: nothing has changed.
 */
static bool send_deep(struct lcore *lc, struct burst *b, unsigned int i, const struct waiting *w)
{
	uint16_t service = b->flow[i]->service;
	struct queue *queue = &lc->service[service].queue;
	uint32_t place = queue_first(queue, QUEUE_LEVEL_REPLAY + 1);
	const struct waiting first = place == QUEUE_NONE ? *w : *queue_at(queue, place);
	struct flow *flow = conntrack_flow_get(lc->ct, first.flow);
	struct link *link =
		flow == NULL ? NULL
			     : choose_deep(lc, flow, first.hash, first.packet, first.deadline);

	if (link == NULL)
		return false;
	put_into_burst(b, i, &first, flow, link);
	if (place == QUEUE_NONE)
		return true;
	queue_take(queue, place);
	left(lc, service, &first);
	lc->service[service].window_sent++;
	/* A service that leaves may have more places than there are packets for. */
	if (!waiting_push(lc, service, w))
		end(lc, service, w, LB_DROP_QUEUE_FULL);
	return true;
}

void waiting_add(struct lcore *lc, struct burst *b, unsigned int i)
{
	struct flow *flow = b->flow[i];
	struct waiting w = {
		.packet = b->packet[i],
		.flow = b->handle[i],
		.tag = b->tag[i],
		.path = b->path[i],
		.arrived = b->arrived[i],
		.since = lc->now,
		.deadline = b->deadline[i],
		.hash = b->hash[i],
		.level = b->standing[i].level,
		.lane = lane_of(lc, flow),
	};

	if (w.deadline != 0 && lc->now + expected_wait(lc, flow->service, &w) > w.deadline)
		return forward_refuse(lc, b, i, LB_DROP_DEADLINE);
	if ((is_full(&lc->service[flow->service].queue) || waits_enough(lc)) &&
	    choose_waits_here(lc, flow->service) && send_deep(lc, b, i, &w))
		return;
	if (!waiting_push(lc, flow->service, &w))
		forward_refuse(lc, b, i, LB_DROP_QUEUE_FULL);
}

/* Each level has as many tries as requests, so that those who are tied to a busy worker hold up
 * nobody below them. */
static void send_some(struct lcore *lc, uint16_t service, struct burst *b)
{
	const struct queue *queue = &lc->service[service].queue;
	/* Without workers who was sent before waits for one; all others are to be told. */
	unsigned int level = choose_may_wait(lc, service) ? 0 : QUEUE_LEVEL_REPLAY + 1;
	unsigned int tries = RTE_MIN(queue->count, (uint32_t)LB_BURST);
	uint32_t left = queue->level[level].count;
	/* Rings are somewhere else. */
	bool deep = waits_enough(lc);

	for (; tries > 0 && b->n < LB_BURST && queue->count > 0; tries--, left--) {
		while (left == 0 && level < QUEUE_LEVELS - 1)
			left = queue->level[++level].count;
		if (left == 0 || !try_first(lc, service, level, b, deep))
			return;
	}
}

/* Services from <from> up to <to>. The first that sent something, or <first> if there was one. */
static unsigned int send_of(struct lcore *lc, unsigned int from, unsigned int to,
			    unsigned int first)
{
	struct burst *b = &lc->burst;

	for (from = next_service(lc, from); from < to; from = next_service(lc, from + 1)) {
		unsigned int sent = b->n;

		send_some(lc, from, b);
		measure(lc, &lc->service[from], b->n - sent);
		if (first == LB_SERVICES_MAX && b->n > sent)
			first = from;
	}
	return first;
}

/*
 * A turn sends no more than a burst, and credits may be fewer: the service that was first to get
 * something is the last to be looked at in the next turn.
 */
unsigned int waiting_send(struct lcore *lc)
{
	unsigned int before = lc->n_waiting, first;

	lc->burst.n = 0;
	lcore_limit_links(lc);
	first = send_of(lc, lc->first_waiting, LB_SERVICES_MAX, LB_SERVICES_MAX);
	first = send_of(lc, 0, lc->first_waiting, first);
	if (first < LB_SERVICES_MAX)
		lc->first_waiting = (first + 1) % LB_SERVICES_MAX;
	forward_send(lc, &lc->burst);
	return before - lc->n_waiting;
}

/* Before it is refused for having waited too long: into a ring, if one has room, behind whatever is
 * there. */
static bool send_late(struct lcore *lc, uint16_t service, uint32_t place)
{
	struct queue *queue = &lc->service[service].queue;
	const struct waiting w = *queue_at(queue, place);
	struct flow *flow = conntrack_flow_get(lc->ct, w.flow);
	struct burst *b = &lc->burst;
	struct link *link;

	if (b->n == LB_BURST || flow == NULL || !choose_has_workers(lc, service) ||
	    !choose_waits_here(lc, service) ||
	    w.packet->data_len > lcore_service_config(lc, service)->max_request)
		return false;
	link = choose_deep(lc, flow, w.hash, w.packet, w.deadline);
	if (link == NULL)
		return false;
	queue_remove(queue, place);
	left(lc, service, &w);
	put_into_burst(b, b->n++, &w, flow, link);
	return true;
}

/* Nothing happens if its time is not over, or its client cannot be told now. */
static void expire_one(struct lcore *lc, uint16_t service, uint32_t place)
{
	struct queue *queue = &lc->service[service].queue;
	const struct waiting *w = queue_at(queue, place);
	enum lb_drop reason = over(lc, lcore_service_config(lc, service), w);
	struct waiting ended;

	if ((reason == LB_DROP_QUEUE_TIMEOUT || reason == LB_DROP_WORKER_LOST) &&
	    send_late(lc, service, place))
		return;
	if (reason == LB_DROPS || !can_tell(lc, w))
		return;
	ended = queue_remove(queue, place);
	left(lc, service, &ended);
	end(lc, service, &ended, reason);
}

/* Nothing happens while its client cannot be told. Who was sent before may have run. */
static void end_last(struct lcore *lc, uint16_t service, uint32_t place)
{
	struct queue *queue = &lc->service[service].queue;
	struct waiting w = *queue_at(queue, place);
	enum lb_drop reason = w.replays > 0 ? LB_DROP_STOP_TIMEOUT : LB_DROP_STOPPING;

	if (!can_tell(lc, &w) || !tell(lc, &w, reason))
		return;
	lc->service[service].stats.drops++;
	queue_remove(queue, place);
	left(lc, service, &w);
	lcore_drop(lc, w.packet, reason);
}

void waiting_end(struct lcore *lc, unsigned int budget)
{
	for (unsigned int i = next_service(lc, 0); i < LB_SERVICES_MAX;
	     i = next_service(lc, i + 1)) {
		struct queue *queue = &lc->service[i].queue;

		for (unsigned int k = RTE_MIN(budget, queue->count); k > 0; k--)
			end_last(lc, i, queue_look(queue));
	}
}

/* The oldest, whose lanes have not had a turn for too long; and all in turn, as a younger one may
 * have less time. */
static void expire(struct lcore *lc, uint16_t service)
{
	struct queue *queue = &lc->service[service].queue;
	uint32_t place = queue_oldest(queue), newer;

	for (unsigned int i = 0; i < BUDGET && place != QUEUE_NONE; i++, place = newer) {
		newer = queue_newer(queue, place);
		expire_one(lc, service, place);
	}
	for (unsigned int i = 0; i < BUDGET && queue->count > BUDGET; i++)
		expire_one(lc, service, queue_look(queue));
}

void waiting_expire(struct lcore *lc)
{
	lc->burst.n = 0;
	lcore_limit_links(lc);
	for (unsigned int i = next_service(lc, 0); i < LB_SERVICES_MAX; i = next_service(lc, i + 1))
		expire(lc, i);
	forward_send(lc, &lc->burst);
}

bool waiting_cancel(struct lcore *lc, const struct flow *flow, uint64_t handle, uint64_t tag,
		    uint32_t *budget)
{
	struct queue *queue = &lc->service[flow->service].queue;
	uint32_t place = queue_find(queue, lane_of(lc, flow), handle, tag, budget);
	struct waiting ended;

	if (place == QUEUE_NONE)
		return false;
	ended = queue_remove(queue, place);
	left(lc, flow->service, &ended);
	end(lc, flow->service, &ended, LB_DROP_CANCELLED);
	return true;
}

void waiting_move(struct lcore *lc, uint16_t service, struct queue *queue)
{
	struct queue *old = &lc->service[service].queue, empty;
	struct waiting displaced;

	while (old->count > 0) {
		struct waiting w = queue_remove(old, queue_oldest(old));
		enum queue_verdict verdict = queue_push(queue, &w, true, &displaced);

		if (verdict == QUEUE_TAKEN)
			continue;
		left(lc, service, verdict == QUEUE_REFUSED ? &w : &displaced);
		end(lc, service, verdict == QUEUE_REFUSED ? &w : &displaced, LB_DROP_QUEUE_FULL);
	}
	empty = *old;
	*old = *queue;
	*queue = empty;
	mark(lc, service);
}
