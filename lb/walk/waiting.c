/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests without a credit wait here (lcore/queue.h), in one bounded queue per service and lcore.
 * A request leaves it for a worker, or with a notice when it has waited too long.
 */
#include "walk/waiting.h"

#include "lcore/lcore.h"
#include "walk/choose.h"
#include "observe/drop_packet.h"
#include "walk/egress.h"
#include "walk/forward.h"
#include "walk/replay.h"

/* Requests checked for timeouts per service and ms: this many of the oldest, and this many of all
 * in turn. */
#define BUDGET 64

/* The client queue of a flow, by zone and address. A /64 counts as one client: the addresses in it
 * get no more turns than a single one. */
static uint8_t waiting_client_queue(const struct lcore *lc, const struct flow *flow)
{
	uint64_t word = lcore_client_address(flow);

	word = (word ^ lc->client_queue_seed) * 0x9e3779b97f4a7c15ull;
	word = (word ^ word >> 32 ^ flow->zone) * 0xbf58476d1ce4e5b9ull;
	return (word ^ word >> 32) * 0xd6e8feb86659fd93ull >> 58;
}

static uint32_t waiting_size(const struct lcore *lc, const struct lb_service_config *config)
{
	return (config->queue + lc->sharers - 1) / lc->sharers;
}

int waiting_init(const struct lcore *lc, const struct lb_service_config *config,
		 struct queue *queue)
{
	return queue_init(queue, waiting_size(lc, config),
			  config->replay > 0 ? lc->replay_copies_max : 0);
}

/* Sizes are rounded up: the queues of lcores that share one limit may exceed it by a few packets.
 */
void waiting_share(struct lcore *lc)
{
	uint32_t sum = 0;

	for (unsigned int i = 0; i < lc->services->n; i++)
		if (lb_service_serves(&lc->services->config[i]))
			sum += waiting_size(lc, &lc->services->config[i]);
	lc->waiting_max = RTE_MAX(lc->waiting_least, sum);
}

/* The first service from <from> on with requests that wait, or LB_SERVICES_MAX. */
static unsigned int waiting_next_service(const struct lcore *lc, unsigned int from)
{
	for (; from < LB_SERVICES_MAX; from = (from | 63) + 1) {
		uint64_t word = lc->waiting[from / 64] >> from % 64;

		if (word != 0)
			return from + __builtin_ctzll(word);
	}
	return LB_SERVICES_MAX;
}

static void waiting_mark(struct lcore *lc, uint16_t service)
{
	uint64_t bit = UINT64_C(1) << service % 64;

	if (lc->service[service].queue.count > 0)
		lc->waiting[service / 64] |= bit;
	else
		lc->waiting[service / 64] &= ~bit;
}

/* Count that a request has left its queue. */
static void waiting_left(struct lcore *lc, uint16_t service, const struct waiting *w)
{
	lc->n_waiting--;
	if (unlikely(w->level == QUEUE_LEVEL_REPLAY)) {
		lc->n_again--;
		replay_left(lc, service);
	}
	waiting_mark(lc, service);
}

/* Can the client get a notice now? If its port has no room, the request is ended later. */
static bool waiting_can_notify(const struct lcore *lc, const struct waiting *w)
{
	const struct flow *flow = conntrack_flow_get(lc->ct, w->flow);

	return flow == NULL || txq_room(&lc->tx[w->path.port]) > 0;
}

/* Notify the client. False: there is no room or memory now. */
static bool waiting_notify(struct lcore *lc, const struct waiting *w, enum lb_drop reason)
{
	const struct flow *flow = conntrack_flow_get(lc->ct, w->flow);

	/* The configuration lets no flow end before its requests do, but a full table may. */
	return flow == NULL || egress_notice(lc, flow, &w->path, forward_notice_of(reason), w->tag);
}

static void waiting_drop(struct lcore *lc, uint16_t service, const struct waiting *w,
			 enum lb_drop reason)
{
	lc->service[service].stats.drops++;
	waiting_notify(lc, w, reason);
	lcore_drop(lc, w->packet, reason);
}

/* Do requests that wait hold as many packets as they may? All queues together are no larger, except
 * for those of services being retired. */
static bool waiting_is_at_limit(const struct lcore *lc)
{
	return lc->n_waiting - lc->n_again >= lc->waiting_max;
}

bool waiting_push(struct lcore *lc, uint16_t service, const struct waiting *w)
{
	bool grow = !waiting_is_at_limit(lc);
	struct waiting displaced;

	switch (queue_push(&lc->service[service].queue, w, grow, &displaced)) {
	case QUEUE_TAKEN:
		lc->n_waiting++;
		lc->n_again += w->level == QUEUE_LEVEL_REPLAY;
		waiting_mark(lc, service);
		return true;
	case QUEUE_DISPLACED:
		waiting_drop(lc, service, &displaced, LB_DROP_QUEUE_FULL);
		return true;
	default:
		return false;
	}
}

/*
 * The queue's speed is measured in windows of this many ms, longer if no request has left. Every
 * iteration measures a queue that is not empty, so a longer gap means that it was empty.
 */
#define WINDOW_MS 10

static void waiting_measure(struct lcore *lc, struct lcore_service *s, unsigned int sent)
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
static uint64_t waiting_expected(const struct lcore *lc, uint16_t service, const struct waiting *w)
{
	const struct lcore_service *s = &lc->service[service];
	uint64_t interval = s->interval;

	/* No request has left in this window. */
	if (s->queue.count > 0 && s->window_sent == 0)
		interval = RTE_MAX(interval, s->measured - s->window_start);
	return queue_ahead(&s->queue, w->level, w->client_queue) * interval;
}

/* The reason why the request should wait no longer, or LB_DROP_NONE. */
static enum lb_drop waiting_expired_reason(const struct lcore *lc,
					   const struct lb_service_config *config,
					   const struct waiting *w)
{
	if (w->deadline != 0 && lc->now > w->deadline)
		return LB_DROP_DEADLINE;
	if (lc->now - w->since > config->queue_timeout_ms * lc->lb->tsc_per_ms)
		return w->replays > 0 ? LB_DROP_WORKER_LOST : LB_DROP_QUEUE_TIMEOUT;
	return LB_DROP_NONE;
}

static void waiting_to_burst(struct burst *b, unsigned int i, const struct waiting *w,
			     struct flow *flow, uint16_t service, struct link *link)
{
	b->packet[i] = w->packet;
	b->flow[i] = flow;
	b->handle[i] = w->flow;
	b->service[i] = service;
	b->hash[i] = w->hash;
	b->path[i] = w->path;
	b->tag[i] = w->tag;
	b->arrived[i] = w->arrived;
	b->deadline[i] = w->deadline;
	b->priority[i] = (struct priority){.level = w->level, .replays = w->replays};
	b->link[i] = link;
}

bool waiting_is_older(const struct lcore *lc, uint16_t service, uint64_t since)
{
	const struct queue *queue = &lc->service[service].queue;

	return queue->count > 0 && queue_at(queue, queue_oldest(queue))->since < since;
}

/*
 * Serve the first request: put it into the burst, end it, or pass it over. False: the others cannot
 * be sent either. <deep>: also to workers whose rings hold as much as they should.
 */
static bool waiting_try_first(struct lcore *lc, uint16_t service, unsigned int level,
			      struct burst *b, bool deep)
{
	const struct lb_service_config *config = lcore_service_config(lc, service);
	struct queue *queue = &lc->service[service].queue;
	uint32_t place = queue_first(queue, level);
	struct waiting w = *queue_at(queue, place);
	struct flow *flow = conntrack_flow_get(lc->ct, w.flow);
	enum lb_drop reason = waiting_expired_reason(lc, config, &w), too_long = LB_DROP_NONE;
	struct link *link;
	bool late = false;

	/* Before it ends for that reason, try to put it into a ring, behind what is there. */
	if (reason == LB_DROP_QUEUE_TIMEOUT || reason == LB_DROP_WORKER_LOST) {
		too_long = reason;
		reason = LB_DROP_NONE;
	}
	if (flow == NULL)
		reason = LB_DROP_QUEUE_TIMEOUT;
	else if (!lcore_may_serve(lc, service))
		reason = LB_DROP_NO_WORKER;
	else if (w.packet->data_len > config->max_request)
		reason = LB_DROP_REQUEST_TOO_LARGE; /* a reload lowered the limit */
	if (reason == LB_DROP_NONE) {
		lc->lost = w.lost;
		if ((deep || too_long != LB_DROP_NONE) && choose_waits_here(lc, service))
			link = choose_deep(lc, flow, service, w.hash, w.packet, w.deadline);
		else
			link = choose_worker(lc, flow, service, w.hash, w.packet->data_len,
					     w.deadline, &late);
		lc->lost = 0;
		if (late) {
			reason = LB_DROP_DEADLINE;
		} else if (link == NULL && too_long != LB_DROP_NONE) {
			reason = too_long;
		} else if (link == NULL) {
			/*
			 * Not pinned: no worker has a credit. Pinned: other requests' workers may
			 * have one.
			 */
			if (!choose_is_pinned(config))
				return false;
			queue_pass(queue, place);
			return true;
		} else {
			waiting_to_burst(b, b->n++, &w, flow, service, link);
		}
	}
	/* Other requests may have clients on ports with room. */
	if (reason != LB_DROP_NONE && !waiting_can_notify(lc, &w)) {
		queue_pass(queue, place);
		return true;
	}
	queue_take(queue, place);
	waiting_left(lc, service, &w);
	if (reason != LB_DROP_NONE)
		waiting_drop(lc, service, &w, reason);
	return true;
}

/* Could a newcomer get in only in place of another request? */
static bool waiting_is_full(const struct queue *queue)
{
	return queue->count - queue->level[QUEUE_LEVEL_REPLAY].count >= queue->size;
}

/*
 * The queue is full, but rings may not be: the request that waits first takes the newcomer's place
 * in the burst, and the newcomer waits instead. Replays are left out: taking one would make no room
 * for a newcomer. False: nothing has changed.
 */
static bool waiting_send_deep(struct lcore *lc, struct burst *b, unsigned int i,
			      const struct waiting *w)
{
	uint16_t service = b->service[i];
	struct queue *queue = &lc->service[service].queue;
	uint32_t place = queue_first(queue, QUEUE_LEVEL_REPLAY + 1);
	const struct waiting first = place == QUEUE_NONE ? *w : *queue_at(queue, place);
	struct flow *flow = conntrack_flow_get(lc->ct, first.flow);
	struct link *link = flow == NULL ? NULL
					 : choose_deep(lc, flow, service, first.hash, first.packet,
						       first.deadline);

	if (link == NULL)
		return false;
	waiting_to_burst(b, i, &first, flow, service, link);
	if (place == QUEUE_NONE)
		return true;
	queue_take(queue, place);
	waiting_left(lc, service, &first);
	lc->service[service].window_sent++;
	/* The queue of a service being retired may have more places than there are packets. */
	if (!waiting_push(lc, service, w))
		waiting_drop(lc, service, w, LB_DROP_QUEUE_FULL);
	return true;
}

void waiting_add(struct lcore *lc, struct burst *b, unsigned int i)
{
	uint16_t service = b->service[i];
	struct waiting w = {
		.packet = b->packet[i],
		.flow = b->handle[i],
		.tag = b->tag[i],
		.path = b->path[i],
		.arrived = b->arrived[i],
		.since = lc->now,
		.deadline = b->deadline[i],
		.hash = b->hash[i],
		.level = b->priority[i].level,
		.client_queue = waiting_client_queue(lc, b->flow[i]),
	};

	if (w.deadline != 0 && lc->now + waiting_expected(lc, service, &w) > w.deadline)
		return forward_refuse(lc, b, i, LB_DROP_DEADLINE);
	if ((waiting_is_full(&lc->service[service].queue) || waiting_is_at_limit(lc)) &&
	    choose_waits_here(lc, service) && waiting_send_deep(lc, b, i, &w))
		return;
	if (!waiting_push(lc, service, &w))
		forward_refuse(lc, b, i, LB_DROP_QUEUE_FULL);
}

/* Send requests of one service. Each level gets as many tries as it has requests, so that requests
 * tied to a busy worker do not hold up the levels after them. */
static void waiting_send_some(struct lcore *lc, uint16_t service, struct burst *b)
{
	const struct queue *queue = &lc->service[service].queue;
	/* Without workers, replays wait for one; the clients of all others get a notice. */
	unsigned int level = lcore_may_serve(lc, service) ? 0 : QUEUE_LEVEL_REPLAY + 1;
	unsigned int tries = RTE_MIN(queue->count, (uint32_t)LB_BURST);
	uint32_t left = queue->level[level].count;
	/* Requests in rings do not count against the limit. */
	bool deep = waiting_is_at_limit(lc);

	for (; tries > 0 && b->n < LB_BURST && queue->count > 0; tries--, left--) {
		while (left == 0 && level < QUEUE_LEVELS - 1)
			left = queue->level[++level].count;
		if (left == 0 || !waiting_try_first(lc, service, level, b, deep))
			return;
	}
}

/* Send requests of the services from <from> up to <to>. Returns the first that sent something, or
 * <first> if it is a service. */
static unsigned int waiting_send_range(struct lcore *lc, unsigned int from, unsigned int to,
				       unsigned int first)
{
	struct burst *b = &lc->burst;

	for (from = waiting_next_service(lc, from); from < to;
	     from = waiting_next_service(lc, from + 1)) {
		unsigned int sent = b->n;

		waiting_send_some(lc, from, b);
		waiting_measure(lc, &lc->service[from], b->n - sent);
		if (first == LB_SERVICES_MAX && b->n > sent)
			first = from;
	}
	return first;
}

/*
 * An iteration sends at most a burst, and there may be fewer credits: the service that was the
 * first to send something is the last to be served in the next iteration.
 */
unsigned int waiting_send(struct lcore *lc)
{
	unsigned int before = lc->n_waiting, first;

	lc->burst.n = 0;
	lcore_limit_links(lc);
	first = waiting_send_range(lc, lc->first_waiting, LB_SERVICES_MAX, LB_SERVICES_MAX);
	first = waiting_send_range(lc, 0, lc->first_waiting, first);
	if (first < LB_SERVICES_MAX)
		lc->first_waiting = (first + 1) % LB_SERVICES_MAX;
	forward_send(lc, &lc->burst);
	return before - lc->n_waiting;
}

/* A request has waited too long: put it into a ring that has room, behind what is there. False: no
 * ring has room. */
static bool waiting_send_late(struct lcore *lc, uint16_t service, uint32_t place)
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
	lc->lost = w.lost;
	link = choose_deep(lc, flow, service, w.hash, w.packet, w.deadline);
	lc->lost = 0;
	if (link == NULL)
		return false;
	queue_remove(queue, place);
	waiting_left(lc, service, &w);
	waiting_to_burst(b, b->n++, &w, flow, service, link);
	return true;
}

/* End a request whose time is over, if its client can be notified now. */
static void waiting_expire_one(struct lcore *lc, uint16_t service, uint32_t place)
{
	struct queue *queue = &lc->service[service].queue;
	const struct waiting *w = queue_at(queue, place);
	enum lb_drop reason = waiting_expired_reason(lc, lcore_service_config(lc, service), w);
	struct waiting ended;

	if ((reason == LB_DROP_QUEUE_TIMEOUT || reason == LB_DROP_WORKER_LOST) &&
	    waiting_send_late(lc, service, place))
		return;
	if (reason == LB_DROP_NONE || !waiting_can_notify(lc, w))
		return;
	ended = queue_remove(queue, place);
	waiting_left(lc, service, &ended);
	waiting_drop(lc, service, &ended, reason);
}

/* End a request when the load balancer stops, if its client can be notified now. A replay may have
 * run, so its client gets a timeout. */
static void waiting_end_one(struct lcore *lc, uint16_t service, uint32_t place)
{
	struct queue *queue = &lc->service[service].queue;
	struct waiting w = *queue_at(queue, place);
	enum lb_drop reason = w.replays > 0 ? LB_DROP_STOP_TIMEOUT : LB_DROP_STOPPING;

	if (!waiting_can_notify(lc, &w) || !waiting_notify(lc, &w, reason))
		return;
	lc->service[service].stats.drops++;
	queue_remove(queue, place);
	waiting_left(lc, service, &w);
	lcore_drop(lc, w.packet, reason);
}

void waiting_end(struct lcore *lc, unsigned int budget)
{
	for (unsigned int i = waiting_next_service(lc, 0); i < LB_SERVICES_MAX;
	     i = waiting_next_service(lc, i + 1)) {
		struct queue *queue = &lc->service[i].queue;

		for (unsigned int k = RTE_MIN(budget, queue->count); k > 0; k--)
			waiting_end_one(lc, i, queue_scan(queue));
	}
}

/* Check the oldest requests, and all requests in turn, because a younger one may have an earlier
 * deadline. */
static void waiting_expire_service(struct lcore *lc, uint16_t service)
{
	struct queue *queue = &lc->service[service].queue;
	uint32_t place = queue_oldest(queue), newer;

	for (unsigned int i = 0; i < BUDGET && place != QUEUE_NONE; i++, place = newer) {
		newer = queue_newer(queue, place);
		waiting_expire_one(lc, service, place);
	}
	for (unsigned int i = 0; i < BUDGET && queue->count > BUDGET; i++)
		waiting_expire_one(lc, service, queue_scan(queue));
}

void waiting_expire(struct lcore *lc)
{
	lc->burst.n = 0;
	lcore_limit_links(lc);
	for (unsigned int i = waiting_next_service(lc, 0); i < LB_SERVICES_MAX;
	     i = waiting_next_service(lc, i + 1))
		waiting_expire_service(lc, i);
	forward_send(lc, &lc->burst);
}

bool waiting_cancel(struct lcore *lc, const struct flow *flow, uint16_t service, uint64_t handle,
		    uint64_t tag, bool told, uint32_t *budget)
{
	struct queue *queue = &lc->service[service].queue;
	uint32_t place = queue_find(queue, waiting_client_queue(lc, flow), handle, tag, budget);
	struct waiting ended;

	if (place == QUEUE_NONE)
		return false;
	ended = queue_remove(queue, place);
	waiting_left(lc, service, &ended);
	if (told)
		rte_pktmbuf_free(ended.packet);
	else
		waiting_drop(lc, service, &ended, LB_DROP_CANCELLED);
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
		waiting_left(lc, service, verdict == QUEUE_REFUSED ? &w : &displaced);
		waiting_drop(lc, service, verdict == QUEUE_REFUSED ? &w : &displaced,
			     LB_DROP_QUEUE_FULL);
	}
	empty = *old;
	*old = *queue;
	*queue = empty;
	waiting_mark(lc, service);
}
