/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Expiry: a timer wheel of intrusive lists. A packet only stores last_seen; the flow stays where it
 * waits, and when that slot comes due a flow that has spoken since moves to its real deadline. So a
 * busy flow costs one visit per timeout, not one list operation per packet.
 *
 * All times are 32-bit milliseconds that wrap; they are compared by signed difference only.
 */
#include <rte_bitops.h>
#include <rte_common.h>
#include <rte_prefetch.h>

#include "internal.h"

_Static_assert(RTE_IS_POWER_OF_2(WHEEL_TICK_MS) && RTE_IS_POWER_OF_2(WHEEL_SLOTS),
	       "see internal.h");

static int32_t time_until(uint32_t then, uint32_t now)
{
	return (int32_t)(then - now);
}

static uint32_t tick_start(uint32_t ms)
{
	return ms & ~(WHEEL_TICK_MS - 1);
}

static uint32_t *slot_at(struct conntrack *ct, uint32_t ms)
{
	return &ct->slot[ms / WHEEL_TICK_MS % WHEEL_SLOTS];
}

static uint32_t deadline(const struct conntrack *ct, const struct flow *flow)
{
	return flow->last_seen + ct->timeout_ms[flow->service][flow->state];
}

void wheel_restart(struct conntrack *ct, uint32_t now_ms)
{
	ct->wheel_time = tick_start(now_ms) + WHEEL_TICK_MS;
}

/* <first>: the nearest slot allowed, counted from the one that comes due next. */
static void wheel_link(struct conntrack *ct, struct flow *flow, uint32_t first)
{
	int32_t wait = time_until(deadline(ct, flow), ct->wheel_time);
	/* rounded up: nothing in a slot that comes due is too young, unless it was touched */
	uint32_t ticks = wait > 0 ? ((uint32_t)wait + WHEEL_TICK_MS - 1) / WHEEL_TICK_MS : 0;
	uint32_t *slot, index = flow_index(ct, flow);
	struct flow_cold *cold = &ct->cold[index];

	ticks = RTE_MIN(RTE_MAX(ticks, first), WHEEL_SLOTS - 1);
	slot = slot_at(ct, ct->wheel_time + ticks * WHEEL_TICK_MS);
	cold->wheel_next = *slot;
	cold->wheel_prev = WHEEL_SLOT | (uint32_t)(slot - ct->slot);
	if (*slot != WHEEL_END)
		ct->cold[*slot].wheel_prev = index;
	*slot = index;
}

void wheel_arm(struct conntrack *ct, struct flow *flow)
{
	wheel_link(ct, flow, 0);
}

void wheel_disarm(struct conntrack *ct, struct flow *flow)
{
	const struct flow_cold *cold = &ct->cold[flow_index(ct, flow)];

	if (cold->wheel_next != WHEEL_END)
		ct->cold[cold->wheel_next].wheel_prev = cold->wheel_prev;
	if (cold->wheel_prev & WHEEL_SLOT)
		ct->slot[cold->wheel_prev & ~WHEEL_SLOT] = cold->wheel_next;
	else
		ct->cold[cold->wheel_prev].wheel_next = cold->wheel_next;
}

/* The flow's slot is due. True if its time was over. */
static bool wheel_visit(struct conntrack *ct, uint32_t index, uint32_t now_ms)
{
	struct flow *flow = &ct->flows[index];
	uint32_t next = ct->cold[index].wheel_next;

	if (next != WHEEL_END) {
		rte_prefetch0(&ct->flows[next]);
		rte_prefetch0(&ct->cold[next]);
	}
	if (time_until(deadline(ct, flow), now_ms) <= 0) {
		flow_release(ct, flow);
		stat_add(&ct->stats.expired, 1);
		return true;
	}
	wheel_disarm(ct, flow);
	wheel_link(ct, flow, 1); /* never back into the slot being emptied */
	return false;
}

unsigned int conntrack_expire(struct conntrack *ct, uint32_t now_ms, unsigned int budget)
{
	uint32_t late = now_ms - ct->wheel_time;
	unsigned int expired = 0;

	if (ct->stats.live == 0) {
		wheel_restart(ct, now_ms);
		return 0;
	}
	/* After a long pause one lap sees every slot; more would only turn the wheel. */
	if ((int32_t)late >= (int32_t)(2 * WHEEL_LAP_MS))
		ct->wheel_time += RTE_ALIGN_FLOOR(late, WHEEL_LAP_MS) - WHEEL_LAP_MS;

	for (; time_until(ct->wheel_time, now_ms) <= 0; ct->wheel_time += WHEEL_TICK_MS) {
		uint32_t *slot = slot_at(ct, ct->wheel_time);

		while (*slot != WHEEL_END) {
			if (budget-- == 0)
				return expired;
			expired += wheel_visit(ct, *slot, now_ms);
		}
	}
	return expired;
}
