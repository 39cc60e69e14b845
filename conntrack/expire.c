/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Expiry. A packet only stores last_seen; the flow stays where it waits, and when that comes due a
 * flow that has spoken since moves to its real deadline. So a busy flow costs one visit per
 * timeout, not one list operation per packet.
 *
 * A new flow of a client that is yet to be heard of again waits in its service's queue of young
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

/* Flows that one new flow may look at to find another that makes room for it. */
#define RECLAIM_TRIES 4

static int32_t time_until(uint32_t then, uint32_t now)
{
	return (int32_t)(then - now);
}

static uint32_t tick_start(uint32_t ms)
{
	return ms & ~(WHEEL_TICK_MS - 1);
}

static uint32_t deadline(const struct conntrack *ct, const struct flow *flow)
{
	return flow->last_seen + ct->timeout_ms[flow->service][flow->state];
}

void timers_init(struct conntrack *ct)
{
	memset(ct->list, 0xff, sizeof(ct->list)); /* LIST_END */
	memset(ct->young_last, 0xff, sizeof(ct->young_last));
}

void timers_restart(struct conntrack *ct, uint32_t now_ms)
{
	ct->wheel_time = tick_start(now_ms) + WHEEL_TICK_MS;
	ct->behind = false;
}

/* --- lists ----------------------------------------------------------------------------------- */

static void link_first(struct conntrack *ct, uint32_t list, uint32_t index)
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

static void link_young(struct conntrack *ct, uint16_t service, uint32_t index)
{
	uint32_t last = ct->young_last[service];
	struct flow_cold *cold = &ct->cold[index];

	cold->next = LIST_END;
	cold->prev = last == LIST_END ? LIST_MARK | (LISTS_YOUNG + service) : last;
	cold->young = true;
	if (last == LIST_END)
		ct->list[LISTS_YOUNG + service] = index;
	else
		ct->cold[last].next = index;
	ct->young_last[service] = index;
}

/* <slot>: counted from the one that comes due next. */
static uint32_t wheel_list(const struct conntrack *ct, uint32_t slot, uint32_t way)
{
	return (ct->wheel_time / WHEEL_TICK_MS + slot) % WHEEL_SLOTS * WHEEL_WAYS + way;
}

/* <first>: the nearest slot allowed. */
static void link_wheel(struct conntrack *ct, const struct flow *flow, uint32_t first)
{
	int32_t wait = time_until(deadline(ct, flow), ct->wheel_time);
	/* rounded up: nothing in a slot that comes due is too young, unless it was touched */
	uint32_t ticks = wait > 0 ? ((uint32_t)wait + WHEEL_TICK_MS - 1) / WHEEL_TICK_MS : 0;
	uint32_t index = flow_index(ct, flow);

	ticks = RTE_MIN(RTE_MAX(ticks, first), WHEEL_SLOTS - 1);
	link_first(ct, wheel_list(ct, ticks, index % WHEEL_WAYS), index);
}

void timers_arm(struct conntrack *ct, struct flow *flow)
{
	if (flow->service >= ct->services)
		ct->services = flow->service + 1;
	if (flow->state == FLOW_UDP_ONE_WAY)
		link_young(ct, flow->service, flow_index(ct, flow));
	else
		link_wheel(ct, flow, 0);
}

void timers_disarm(struct conntrack *ct, struct flow *flow)
{
	const struct flow_cold *cold = &ct->cold[flow_index(ct, flow)];

	if (cold->next != LIST_END)
		ct->cold[cold->next].prev = cold->prev;
	else if (cold->young)
		ct->young_last[flow->service] = cold->prev & LIST_MARK ? LIST_END : cold->prev;
	if (cold->prev & LIST_MARK)
		ct->list[cold->prev & ~LIST_MARK] = cold->next;
	else
		ct->cold[cold->prev].next = cold->next;
}

/* --- what is due ----------------------------------------------------------------------------- */

static void prefetch(const struct conntrack *ct, uint32_t index)
{
	if (index == LIST_END)
		return;
	rte_prefetch0(&ct->flows[index]);
	rte_prefetch0(&ct->cold[index]);
}

static void expire(struct conntrack *ct, struct flow *flow)
{
	flow_release(ct, flow);
	stat_add(&ct->stats.expired, 1);
}

/* The flow's list is due. True if its time was over. */
static bool visit(struct conntrack *ct, uint32_t index, uint32_t now_ms)
{
	struct flow *flow = &ct->flows[index];

	prefetch(ct, ct->cold[index].next);
	if (time_until(deadline(ct, flow), now_ms) <= 0) {
		expire(ct, flow);
		return true;
	}
	timers_disarm(ct, flow);
	link_wheel(ct, flow, 1); /* never back into the slot being emptied */
	return false;
}

/* A young flow that never spoke again would end now. */
static bool young_is_due(const struct conntrack *ct, uint16_t service, uint32_t now_ms)
{
	uint32_t index = ct->list[LISTS_YOUNG + service];

	return index != LIST_END &&
	       time_until(ct->cold[index].created + ct->timeout_ms[service][FLOW_UDP_ONE_WAY],
			  now_ms) <= 0;
}

/* Both return the number expired, take what they looked at from <budget>, and say if that ended. */
static unsigned int expire_young(struct conntrack *ct, uint32_t now_ms, unsigned int *budget,
				 bool *all)
{
	unsigned int expired = 0;

	*all = true;
	for (uint16_t service = 0; service < ct->services; service++)
		while (young_is_due(ct, service, now_ms)) {
			if (*budget == 0) {
				*all = false;
				return expired;
			}
			--*budget;
			expired += visit(ct, ct->list[LISTS_YOUNG + service], now_ms);
		}
	return expired;
}

static unsigned int expire_slot(struct conntrack *ct, uint32_t now_ms, unsigned int *budget,
				bool *all)
{
	uint32_t first = wheel_list(ct, 0, 0), left;
	unsigned int expired = 0;

	do {
		left = 0;
		for (uint32_t way = 0; way < WHEEL_WAYS; way++) {
			uint32_t index = ct->list[first + way];

			if (index == LIST_END)
				continue;
			if (*budget == 0) {
				*all = false;
				return expired;
			}
			--*budget;
			left++;
			expired += visit(ct, index, now_ms);
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
		for (uint32_t way = 0; way < WHEEL_WAYS; way++)
			prefetch(ct, ct->list[wheel_list(ct, 0, way)]);
	}
	return expired;
}

static uint32_t lag(const struct conntrack *ct, uint32_t now_ms, bool wheel_done)
{
	uint32_t worst = wheel_done ? 0 : now_ms - ct->wheel_time;

	for (uint16_t service = 0; service < ct->services; service++) {
		uint32_t index = ct->list[LISTS_YOUNG + service], due;

		if (!young_is_due(ct, service, now_ms))
			continue;
		due = ct->cold[index].created + ct->timeout_ms[service][FLOW_UDP_ONE_WAY];
		worst = RTE_MAX(worst, now_ms - due);
	}
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
	__atomic_store_n(&ct->stats.lag_ms, ct->behind ? lag(ct, now_ms, wheel_done) : 0,
			 __ATOMIC_RELAXED);
	return expired;
}

/* --- room for new flows ---------------------------------------------------------------------- */

/* The service whose first young flow has waited longest, or -1. */
static int oldest_young(const struct conntrack *ct, uint32_t now_ms)
{
	uint32_t age, most = 0;
	int service = -1;

	for (uint16_t i = 0; i < ct->services; i++) {
		uint32_t index = ct->list[LISTS_YOUNG + i];

		if (index == LIST_END)
			continue;
		age = now_ms - ct->cold[index].created;
		if (service < 0 || age > most) {
			service = i;
			most = age;
		}
	}
	return service;
}

/*
 * From the oldest on: the first that was never answered, else the first that was answered once. Who
 * is established goes to the wheel, out of reach.
 */
bool timers_reclaim(struct conntrack *ct, uint32_t now_ms)
{
	int service = ct->reclaim_after_ms == 0 ? -1 : oldest_young(ct, now_ms);
	struct flow *found = NULL;
	uint32_t index;

	if (service < 0)
		return false;
	index = ct->list[LISTS_YOUNG + service];
	for (unsigned int i = 0; i < RECLAIM_TRIES && index != LIST_END; i++) {
		struct flow *flow = &ct->flows[index];

		index = ct->cold[index].next;
		if (flow->state == FLOW_UDP_ESTABLISHED) {
			timers_disarm(ct, flow);
			link_wheel(ct, flow, 0);
		} else if (time_until(flow->last_seen + ct->reclaim_after_ms, now_ms) > 0) {
			continue;
		} else if (flow->state == FLOW_UDP_ONE_WAY) {
			found = flow;
			break;
		} else if (found == NULL) {
			found = flow;
		}
	}
	if (found == NULL)
		return false;
	flow_release(ct, found);
	stat_add(&ct->stats.reclaimed, 1);
	return true;
}
