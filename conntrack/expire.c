/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Expiry. A packet only stores last_seen; the flow stays where it waits, and when that comes due a
 * flow that has spoken since moves to its real deadline. So a busy flow costs one visit per
 * timeout, not one list operation per packet.
 *
 * A new flow of a client that is yet to be heard of again waits in a queue of its service's young
 * flows: all have the same timeout, so the queue is in the order of deadlines, and its head is who
 * goes first when the table is full. Who lives on moves to the timer wheel, for good.
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

/* What one new flow may look at to find another that makes room for it: queues, flows of each. */
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
	memset(ct->list, 0xff, sizeof(ct->list)); /* LIST_END */
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

/* The queue lost its last flow; <before> was in front of it, or nothing. */
static void young_queue_shorten(struct conntrack *ct, uint32_t queue, uint32_t before)
{
	if (!(before & LIST_MARK)) {
		ct->queue_last[queue] = before;
		return;
	}
	ct->queue_last[queue] = LIST_END;
	ct->queue_used[queue / 64] &= ~(UINT64_C(1) << queue % 64);
}

/* <slot>: counted from the one that comes due next. */
static uint32_t wheel_list(const struct conntrack *ct, uint32_t slot, uint32_t way)
{
	return (ct->wheel_time / WHEEL_TICK_MS + slot) % WHEEL_SLOTS * LIST_WAYS + way;
}

/* <first>: the nearest slot allowed. */
static void wheel_link(struct conntrack *ct, const struct flow *flow, uint32_t first)
{
	int32_t wait = time_until(flow_deadline(ct, flow), ct->wheel_time);
	/* rounded up: nothing in a slot that comes due is too young, unless it was touched */
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

/* --- what is due ----------------------------------------------------------------------------- */

/* What ending a flow touches. */
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

/* The flow's list is due. True if its time was over; if not, it waits in slot <first> or later. */
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

/* When the queue's first flow would end if it never spoke again; the queue is not empty. */
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

/* Is any queue of the service in use? Four bits of a word. */
static bool service_has_young(const struct conntrack *ct, uint32_t queue)
{
	_Static_assert(64 % LIST_WAYS == 0, "a service's queues are in one word");
	return ct->queue_used[queue / 64] >> queue % 64 & ((1u << LIST_WAYS) - 1);
}

/*
 * These return the number expired, take what they looked at from <budget>, and say in <all> if that
 * was enough.
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
			/* never back into the slot being emptied */
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

	/* After a long pause one lap sees every slot; more would only turn the wheel. */
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
	/* A flood of young flows must not keep the wheel from turning, nor the other way round. */
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
 * The queue's first flow that may be ended for another. Who is established goes to the wheel, who
 * has just spoken is passed over; behind one that was never heard of again all are younger still.
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

/* The next queue in use from <queue> on, around the end; QUEUES if there is none. */
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

/* Never answered goes before answered, then older before younger. */
static bool reclaim_before(const struct flow *a, const struct flow *b)
{
	if (a->state != b->state)
		return a->state == FLOW_UDP_ONE_WAY;
	return time_until(a->last_seen, b->last_seen) < 0;
}

/* Of the heads of some queues in use, in turn; of all, if few services have young flows. */
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
	/* Where one was found there are more; else others get their turn. */
	ct->reclaim_queue = first != NULL ? begin : queue % QUEUES;
	if (first == NULL)
		return false;
	flow_release(ct, first);
	stat_add(&ct->stats.reclaimed, 1);
	return true;
}
