/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Expiry. A packet only stores last_seen; its flow stays in its list. When the list comes due, a
 * flow that was active since moves to its real deadline. So a busy flow costs one visit per
 * timeout, not one list operation per packet.
 *
 * A new flow waits in a queue of its service's young flows. All flows of a queue have the same
 * timeout, so the queue is in the order of deadlines, and its head is reclaimed first when the
 * table is full. A flow that outlives its first deadline moves to the timer wheel and stays there.
 *
 * All times are 32-bit milliseconds that wrap; they are compared by signed difference only.
 */
#include <rte_bitops.h>
#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_prefetch.h>

#include "internal.h"

_Static_assert(RTE_IS_POWER_OF_2(WHEEL_TICK_MS) && RTE_IS_POWER_OF_2(WHEEL_SLOTS),
	       "see internal.h");

/* A new flow that needs room visits at most this many queues, and this many flows of each. */
#define RECLAIM_QUEUES 16u
#define RECLAIM_TRIES  16u

static int32_t time_until(uint32_t then, uint32_t now)
{
	return (int32_t)(then - now);
}

static uint32_t wheel_tick_start(uint32_t ms)
{
	return ms & ~(WHEEL_TICK_MS - 1);
}

static uint32_t flow_deadline(const struct conntrack *ct, const struct flow *flow)
{
	return flow->last_seen + ct->timeout_ms[flow->service][flow->state];
}

void timers_init(struct conntrack *ct)
{
	memset(ct->list, 0xff, sizeof(ct->list)); /* 0xffffffff is LIST_END */
	memset(ct->queue_last, 0xff, sizeof(ct->queue_last));
}

void timers_restart(struct conntrack *ct, uint32_t now_ms)
{
	ct->wheel_time = wheel_tick_start(now_ms) + WHEEL_TICK_MS;
	ct->expired_ms = now_ms;
	ct->behind = false;
}

/* --- lists ----------------------------------------------------------------------------------- */

static void list_link(struct conntrack *ct, uint32_t list, uint32_t index)
{
	uint32_t next = ct->list[list];
	struct flow_cold *cold = &ct->cold[index];

	cold->next = next;
	cold->prev = LIST_MARK | list;
	cold->young = false;
	if (next != LIST_END)
		ct->cold[next].prev = index;
	ct->list[list] = index;
}

static uint32_t young_queue_of(uint16_t service, uint32_t index)
{
	return service * LIST_WAYS + index % LIST_WAYS;
}

static void young_link(struct conntrack *ct, uint32_t queue, uint32_t index)
{
	uint32_t last = ct->queue_last[queue];
	struct flow_cold *cold = &ct->cold[index];

	cold->next = LIST_END;
	cold->prev = last == LIST_END ? LIST_MARK | (LISTS_YOUNG + queue) : last;
	cold->young = true;
	if (last == LIST_END)
		ct->list[LISTS_YOUNG + queue] = index;
	else
		ct->cold[last].next = index;
	ct->queue_last[queue] = index;
	ct->queue_used[queue / 64] |= UINT64_C(1) << queue % 64;
}

/* Remove a queue's last flow. <before> is the index in front of it, or a list mark. */
static void young_queue_shorten(struct conntrack *ct, uint32_t queue, uint32_t before)
{
	if (!(before & LIST_MARK)) {
		ct->queue_last[queue] = before;
		return;
	}
	ct->queue_last[queue] = LIST_END;
	ct->queue_used[queue / 64] &= ~(UINT64_C(1) << queue % 64);
}

/* The list of wheel slot <slot>, counted from the slot that comes due next. */
static uint32_t wheel_list(const struct conntrack *ct, uint32_t slot, uint32_t way)
{
	return (ct->wheel_time / WHEEL_TICK_MS + slot) % WHEEL_SLOTS * LIST_WAYS + way;
}

/* Put a flow into the wheel; <first> is the nearest slot allowed. */
static void wheel_link(struct conntrack *ct, const struct flow *flow, uint32_t first)
{
	int32_t wait = time_until(flow_deadline(ct, flow), ct->wheel_time);
	/* Rounded up, so that a slot that comes due holds only due flows and touched ones. */
	uint32_t ticks = wait > 0 ? ((uint32_t)wait + WHEEL_TICK_MS - 1) / WHEEL_TICK_MS : 0;
	uint32_t index = flow_index(ct, flow);

	ticks = RTE_MIN(RTE_MAX(ticks, first), WHEEL_SLOTS - 1);
	list_link(ct, wheel_list(ct, ticks, index % LIST_WAYS), index);
}

void timers_arm(struct conntrack *ct, struct flow *flow)
{
	uint32_t index = flow_index(ct, flow);

	if (flow->state != FLOW_UDP_ONE_WAY)
		return wheel_link(ct, flow, 0);
	ct->queues = RTE_MAX(ct->queues, (flow->service + 1) * LIST_WAYS);
	young_link(ct, young_queue_of(flow->service, index), index);
}

void timers_disarm(struct conntrack *ct, struct flow *flow)
{
	uint32_t index = flow_index(ct, flow);
	const struct flow_cold *cold = &ct->cold[index];

	if (cold->next != LIST_END)
		ct->cold[cold->next].prev = cold->prev;
	else if (cold->young)
		young_queue_shorten(ct, young_queue_of(flow->service, index), cold->prev);
	if (cold->prev & LIST_MARK)
		ct->list[cold->prev & ~LIST_MARK] = cold->next;
	else
		ct->cold[cold->prev].next = cold->next;
}

/* --- due flows ------------------------------------------------------------------------------- */

/* Prefetch what ending a flow reads and writes. */
static void expire_prefetch(const struct conntrack *ct, uint32_t index)
{
	if (index == LIST_END)
		return;
	rte_prefetch0(flow_at(ct, index));
	rte_prefetch0(&ct->cold[index]);
	ct->ops->prefetch_remove(ct, index);
}

static void expire_flow(struct conntrack *ct, struct flow *flow)
{
	flow_release(ct, flow);
	stat_add(&ct->stats.expired, 1);
}

/* Visit a flow of a list that is due. True if the flow ended; else it moves to slot <first> or
 * later. */
static bool expire_visit(struct conntrack *ct, uint32_t index, uint32_t first, uint32_t now_ms)
{
	struct flow *flow = flow_at(ct, index);

	expire_prefetch(ct, ct->cold[index].next);
	if (time_until(flow_deadline(ct, flow), now_ms) <= 0) {
		expire_flow(ct, flow);
		return true;
	}
	timers_disarm(ct, flow);
	wheel_link(ct, flow, first);
	return false;
}

/* ms when the first flow of a queue ends unless it was active again; the queue is not empty. */
static uint32_t young_deadline(const struct conntrack *ct, uint32_t queue)
{
	return ct->cold[ct->list[LISTS_YOUNG + queue]].created +
	       ct->timeout_ms[queue / LIST_WAYS][FLOW_UDP_ONE_WAY];
}

static bool young_is_due(const struct conntrack *ct, uint32_t queue, uint32_t now_ms)
{
	return ct->list[LISTS_YOUNG + queue] != LIST_END &&
	       time_until(young_deadline(ct, queue), now_ms) <= 0;
}

/* True when any queue of the service has a flow. A service's queues are four bits of one word. */
static bool service_has_young(const struct conntrack *ct, uint32_t queue)
{
	_Static_assert(64 % LIST_WAYS == 0, "a service's queues are in one word");
	return ct->queue_used[queue / 64] >> queue % 64 & ((1u << LIST_WAYS) - 1);
}

/*
 * The expire_* functions below return the number of flows ended, subtract each visit from <budget>,
 * and clear <all> when the budget ran out first.
 */
static unsigned int expire_service(struct conntrack *ct, uint32_t first, uint32_t now_ms,
				   unsigned int *budget, bool *all)
{
	unsigned int expired = 0;
	bool any;

	do {
		any = false;
		for (uint32_t queue = first; queue < first + LIST_WAYS; queue++) {
			if (!young_is_due(ct, queue, now_ms))
				continue;
			if (*budget == 0) {
				*all = false;
				return expired;
			}
			--*budget;
			any = true;
			expired += expire_visit(ct, ct->list[LISTS_YOUNG + queue], 0, now_ms);
		}
	} while (any);
	return expired;
}

static unsigned int expire_young(struct conntrack *ct, uint32_t now_ms, unsigned int *budget,
				 bool *all)
{
	unsigned int expired = 0;

	*all = true;
	for (uint32_t queue = 0; queue < ct->queues && *all; queue += LIST_WAYS)
		if (service_has_young(ct, queue))
			expired += expire_service(ct, queue, now_ms, budget, all);
	return expired;
}

static unsigned int expire_slot(struct conntrack *ct, uint32_t now_ms, unsigned int *budget,
				bool *all)
{
	uint32_t first = wheel_list(ct, 0, 0), left;
	unsigned int expired = 0;

	do {
		left = 0;
		for (uint32_t way = 0; way < LIST_WAYS; way++) {
			uint32_t index = ct->list[first + way];

			if (index == LIST_END)
				continue;
			if (*budget == 0) {
				*all = false;
				return expired;
			}
			--*budget;
			left++;
			/* 1: never back into the slot that is being emptied */
			expired += expire_visit(ct, index, 1, now_ms);
		}
	} while (left > 0);
	return expired;
}

static unsigned int expire_wheel(struct conntrack *ct, uint32_t now_ms, unsigned int *budget,
				 bool *all)
{
	uint32_t late = now_ms - ct->wheel_time;
	unsigned int expired = 0;

	/* After a long pause one lap visits every slot; more laps would find nothing. */
	if ((int32_t)late >= (int32_t)(2 * WHEEL_LAP_MS))
		ct->wheel_time += RTE_ALIGN_FLOOR(late, WHEEL_LAP_MS) - WHEEL_LAP_MS;
	*all = true;
	while (time_until(ct->wheel_time, now_ms) <= 0) {
		expired += expire_slot(ct, now_ms, budget, all);
		if (!*all)
			break;
		ct->wheel_time += WHEEL_TICK_MS;
		for (uint32_t way = 0; way < LIST_WAYS; way++)
			expire_prefetch(ct, ct->list[wheel_list(ct, 0, way)]);
	}
	return expired;
}

static uint32_t expire_lag(const struct conntrack *ct, uint32_t now_ms, bool wheel_done)
{
	uint32_t worst = wheel_done ? 0 : now_ms - ct->wheel_time;

	for (uint32_t queue = 0; queue < ct->queues; queue++)
		if (young_is_due(ct, queue, now_ms))
			worst = RTE_MAX(worst, now_ms - young_deadline(ct, queue));
	return worst;
}

unsigned int conntrack_expire(struct conntrack *ct, uint32_t now_ms, unsigned int budget)
{
	unsigned int half = budget / 2, expired;
	bool young_done, wheel_done;

	if (likely(now_ms == ct->expired_ms && !ct->behind))
		return 0;
	ct->expired_ms = now_ms;
	if (ct->stats.live == 0) {
		timers_restart(ct, now_ms);
		__atomic_store_n(&ct->stats.lag_ms, 0, __ATOMIC_RELAXED);
		return 0;
	}
	/* Young flows and the wheel get half the budget each, so that a flood of young flows cannot
	 * starve the wheel, or the other way round. */
	budget -= half;
	expired = expire_young(ct, now_ms, &budget, &young_done);
	budget += half;
	expired += expire_wheel(ct, now_ms, &budget, &wheel_done);
	if (!young_done)
		expired += expire_young(ct, now_ms, &budget, &young_done);
	ct->behind = !young_done || !wheel_done;
	__atomic_store_n(&ct->stats.lag_ms, ct->behind ? expire_lag(ct, now_ms, wheel_done) : 0,
			 __ATOMIC_RELAXED);
	return expired;
}

/* --- room for new flows ---------------------------------------------------------------------- */

/*
 * The first flow of a queue that may be ended for a new one, or NULL. Established flows move to the
 * wheel, and flows that were active within reclaim_after_ms are skipped. Behind a flow that sent
 * nothing since it began, all flows are younger, so the search ends there.
 */
static struct flow *reclaim_candidate(struct conntrack *ct, uint32_t queue, uint32_t now_ms)
{
	uint32_t index = ct->list[LISTS_YOUNG + queue];

	for (unsigned int i = 0; i < RECLAIM_TRIES && index != LIST_END; i++) {
		struct flow *flow = flow_at(ct, index);
		const struct flow_cold *cold = &ct->cold[index];

		index = cold->next;
		if (flow->state == FLOW_UDP_ESTABLISHED) {
			timers_disarm(ct, flow);
			wheel_link(ct, flow, 0);
		} else if (time_until(flow->last_seen + ct->reclaim_after_ms, now_ms) <= 0) {
			return flow;
		} else if (flow->last_seen == cold->created) {
			return NULL;
		}
	}
	return NULL;
}

/* The next queue with a flow from <queue> on, wrapping around; QUEUES if there is none. */
static uint32_t reclaim_next_queue(const struct conntrack *ct, uint32_t queue)
{
	uint64_t word = ct->queue_used[queue / 64] >> queue % 64 << queue % 64;

	for (uint32_t i = queue / 64, n = 0; n <= QUEUES / 64; n++) {
		if (word != 0)
			return i * 64 + (uint32_t)__builtin_ctzll(word);
		i = (i + 1) % (QUEUES / 64);
		word = ct->queue_used[i];
	}
	return QUEUES;
}

/* True when <a> is reclaimed before <b>: unanswered before answered, then older before younger. */
static bool reclaim_before(const struct flow *a, const struct flow *b)
{
	if (a->state != b->state)
		return a->state == FLOW_UDP_ONE_WAY;
	return time_until(a->last_seen, b->last_seen) < 0;
}

/* Compares the heads of up to RECLAIM_QUEUES queues; the next call starts behind them. */
bool timers_reclaim(struct conntrack *ct, uint32_t now_ms)
{
	struct flow *first = NULL;
	uint32_t queue = ct->reclaim_queue, begin = QUEUES;

	if (ct->reclaim_after_ms == 0)
		return false;
	for (uint32_t i = 0; i < RECLAIM_QUEUES; i++) {
		struct flow *flow;

		queue = reclaim_next_queue(ct, queue);
		if (queue == QUEUES || queue == begin)
			break;
		if (begin == QUEUES)
			begin = queue;
		flow = reclaim_candidate(ct, queue, now_ms);
		if (flow != NULL && (first == NULL || reclaim_before(flow, first)))
			first = flow;
		queue = (queue + 1) % QUEUES;
	}
	/*
	 * A queue with one candidate likely has more: start there again. Else start behind these.
	 */
	ct->reclaim_queue = first != NULL ? begin : queue % QUEUES;
	if (first == NULL)
		return false;
	flow_release(ct, first);
	stat_add(&ct->stats.reclaimed, 1);
	return true;
}
