/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests without a credit wait here (queue.h): one bounded queue per service and lcore. A request
 * leaves it for a worker, or with a notice when it has waited too long.
 */
#include "lcore.h"

/* Requests looked at per service and ms whose time may be over: so many of the oldest, and so many
 * of all. */
#define BUDGET 64

/* Clients by address, all of a /64 as one: whoever has that many of them may not have more turns.
 */
static uint8_t lane_of(const struct lcore *lc, const struct flow *flow)
{
	bool mapped = IN6_IS_ADDR_V4MAPPED(&flow->client);
	uint64_t word;

	memcpy(&word, flow->client.s6_addr + (mapped ? 8 : 0), sizeof(word));
	word = (word ^ lc->lane_seed) * 0x9e3779b97f4a7c15ull;
	return (word ^ word >> 32) * 0xd6e8feb86659fd93ull >> 58;
}

static void end(struct lcore *lc, uint16_t service, const struct waiting *w, enum lb_drop reason)
{
	const struct flow *flow = conntrack_flow_get(lc->ct, w->flow);

	lc->service[service].stats.drops++;
	/* The configuration lets no flow end before its requests do, but a full table may. */
	if (flow != NULL)
		egress_notice(lc, flow, forward_notice_of(reason), w->tag);
	lcore_drop(lc, w->packet, reason);
}

bool waiting_push(struct lcore *lc, uint16_t service, const struct waiting *w, bool grow)
{
	struct waiting displaced;

	switch (queue_push(&lc->service[service].queue, w, grow, &displaced)) {
	case QUEUE_TAKEN:
		lc->n_waiting++;
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

void waiting_add(struct lcore *lc, struct burst *b, unsigned int i)
{
	struct flow *flow = b->flow[i];
	struct waiting w = {
		.packet = b->packet[i],
		.flow = b->handle[i],
		.tag = b->tag[i],
		.arrived = b->arrived[i],
		.since = lc->now,
		.deadline = b->deadline[i],
		.hash = b->hash[i],
		.level = b->standing[i].level,
		.lane = lane_of(lc, flow),
	};

	if (w.deadline != 0 && lc->now + expected_wait(lc, flow->service, &w) > w.deadline)
		forward_refuse(lc, b->packet[i], flow, b->tag[i], LB_DROP_DEADLINE);
	/* The packets that wait must not be those that the NIC needs to receive with. */
	else if (!waiting_push(lc, flow->service, &w, !lcore_holds_enough(lc)))
		forward_refuse(lc, b->packet[i], flow, b->tag[i], LB_DROP_QUEUE_FULL);
}

/* Why it should wait no longer, or LB_DROPS. */
static enum lb_drop over(const struct lcore *lc, const struct lb_service_config *config,
			 const struct waiting *w)
{
	if (w->deadline != 0 && lc->now > w->deadline)
		return LB_DROP_DEADLINE;
	if (lc->now - w->since > config->queue_timeout_ms * lc->lb->tsc_per_ms)
		return LB_DROP_QUEUE_TIMEOUT;
	return LB_DROPS;
}

static void add_to_burst(struct burst *b, const struct waiting *w, struct flow *flow,
			 struct link *link)
{
	unsigned int i = b->n++;

	b->packet[i] = w->packet;
	b->flow[i] = flow;
	b->handle[i] = w->flow;
	b->hash[i] = w->hash;
	b->tag[i] = w->tag;
	b->arrived[i] = w->arrived;
	b->deadline[i] = w->deadline;
	b->standing[i] = (struct standing){.level = w->level, .replays = w->replays};
	b->link[i] = link;
}

/* Look at the request whose turn it is: send it, end it, or pass it over. False: no use going on.
 */
static bool try_first(struct lcore *lc, uint16_t service, unsigned int level, struct burst *b)
{
	const struct lb_service_config *config = lcore_service_config(lc, service);
	struct queue *queue = &lc->service[service].queue;
	uint32_t place = queue_first(queue, level);
	struct waiting w = *queue_at(queue, place);
	struct flow *flow = conntrack_flow_get(lc->ct, w.flow);
	enum lb_drop reason = over(lc, config, &w);
	/* Sticky flows are not: where no home has room, anybody would do. */
	bool pinned = config->affinity == LB_AFFINITY_FLOW ||
		      (config->affinity == LB_AFFINITY_REQUEST && config->policy == PICK_MAGLEV);
	struct link *link;
	bool late;

	if (flow == NULL)
		reason = LB_DROP_QUEUE_TIMEOUT;
	else if (!choose_may_wait(lc, service))
		reason = LB_DROP_NO_WORKER;
	else if (w.packet->data_len > config->max_request)
		reason = LB_DROP_REQUEST_TOO_LARGE; /* since a reload */
	if (reason == LB_DROPS) {
		link = choose_worker(lc, flow, w.hash, w.packet, w.deadline, &late);
		if (late) {
			reason = LB_DROP_DEADLINE;
		} else if (link == NULL) {
			/* Without affinity nobody can take any; with it, others may have better
			 * luck. */
			if (!pinned)
				return false;
			queue_pass(queue, place);
			return true;
		} else {
			add_to_burst(b, &w, flow, link);
		}
	}
	queue_take(queue, place);
	lc->n_waiting--;
	if (reason != LB_DROPS)
		end(lc, service, &w, reason);
	return true;
}

/* Each level has as many tries as requests, so that those who are tied to a busy worker hold up
 * nobody below them. */
static void send_some(struct lcore *lc, uint16_t service, struct burst *b)
{
	const struct queue *queue = &lc->service[service].queue;
	unsigned int level = 0, tries = RTE_MIN(queue->count, (uint32_t)LB_BURST);
	uint32_t left = queue->level[0].count;

	for (; tries > 0 && b->n < LB_BURST && queue->count > 0; tries--, left--) {
		while (left == 0 && level < QUEUE_LEVELS - 1)
			left = queue->level[++level].count;
		if (left == 0 || !try_first(lc, service, level, b))
			return;
	}
}

unsigned int waiting_send(struct lcore *lc)
{
	unsigned int before = lc->n_waiting, n = lc->services->n;
	struct burst *b = &lc->burst;

	b->n = 0;
	/* Services take turns at being first, as a turn sends no more than a burst. */
	for (unsigned int i = 0; i < n && lc->n_waiting > 0; i++) {
		uint16_t service = (lc->first_waiting + i) % n;
		unsigned int sent = b->n;

		if (lc->service[service].queue.count == 0)
			continue;
		send_some(lc, service, b);
		measure(lc, &lc->service[service], b->n - sent);
	}
	lc->first_waiting = (lc->first_waiting + 1) % n;
	forward_send(lc, b);
	return before - lc->n_waiting;
}

static void expire_one(struct lcore *lc, uint16_t service, uint32_t place)
{
	struct queue *queue = &lc->service[service].queue;
	enum lb_drop reason = over(lc, lcore_service_config(lc, service), queue_at(queue, place));
	struct waiting ended;

	if (reason == LB_DROPS)
		return;
	ended = queue_remove(queue, place);
	lc->n_waiting--;
	end(lc, service, &ended, reason);
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
	for (unsigned int i = 0; i < lc->services->n; i++)
		if (lc->service[i].queue.count > 0)
			expire(lc, i);
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
	lc->n_waiting--;
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
		lc->n_waiting--;
		end(lc, service, verdict == QUEUE_REFUSED ? &w : &displaced, LB_DROP_QUEUE_FULL);
	}
	empty = *old;
	*old = *queue;
	*queue = empty;
}
