/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A graceful stop: the load balancer refuses new requests, finishes those that it has, sends
 * notices to the clients of the rest, and ends. The stage is one word per lcore, changed between
 * two polls; the control thread watches how far the lcores are.
 */
#include "stop.h"

#include <errno.h>

#include <rte_ethdev.h>

#include "lcore/lcore.h"
#include "observe/stats.h"
#include "walk/handover.h"

/* Time to send notices; clients' ports that do not take them in this time are given up. */
#define TELL_MS 1000u
/* Time for NICs to send the last packets. */
#define SETTLE_MS 50

struct look {
	bool count; /* count all requests, which takes a while; else only find out if there are any
		     */
	unsigned int waiting, in_flight;
	bool sending; /* there are packets that no port has taken yet */
};

static void look_at_link(const struct link *link, struct look *look)
{
	for (uint32_t i = link->busy.oldest; i != SLOT_NONE; i = link->slot[i].newer) {
		look->in_flight++;
		if (!look->count)
			return;
	}
}

static void look_at(void *lcore, void *argument)
{
	const struct lcore *lc = lcore;
	struct look *look = argument;

	look->waiting += lc->n_waiting;
	for (unsigned int i = 0; i < lc->n_links; i++)
		look_at_link(lc->links[i], look);
	for (const struct link *link = lc->dying; link != NULL; link = link->next_dying)
		look_at_link(link, look);
	look->sending |= !rte_ring_empty(lc->handover) || handover_waits(lc);
	for (unsigned int i = 0; i < lc->lb->config.n_ports; i++)
		look->sending |= lc->lb->config.port[i].clients && lc->tx[i].n > 0;
}

static struct look look_at_all(const struct lb *lb, bool count)
{
	struct look look = {.count = count};

	for (unsigned int i = 0; i < lb->n_lcores; i++)
		mailbox_send(&lb->lcore[i]->mailbox, look_at, lb->lcore[i], &look);
	return look;
}

static void set_stage(void *lcore, void *stage)
{
	struct lcore *lc = lcore;

	lc->stop = *(enum stop_stage *)stage;
	lc->next_housekeeping = 0;
}

static void enter(struct lb *lb, enum stop_stage stage)
{
	lb->stop_stage = stage;
	lb->stop_stage_ms = lb_now_ms(lb);
	for (unsigned int i = 0; i < lb->n_lcores; i++)
		mailbox_send(&lb->lcore[i]->mailbox, set_stage, lb->lcore[i], &stage);
}

static uint64_t dropped(const struct lb *lb, enum lb_drop reason)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < lb->n_lcores; i++)
		sum += __atomic_load_n(&lb->lcore[i]->stats.drop[reason], __ATOMIC_RELAXED);
	return sum;
}

void lb_stop_begin(struct lb *lb)
{
	struct look look;

	if (lb_is_stopping(lb))
		return;
	lb->stop_begin_ms = lb_now_ms(lb);
	enter(lb, STOP_REFUSING);
	look = look_at_all(lb, true);
	LB_LOG(NOTICE, "stopping: no new requests waiting=%u in_flight=%u stop_timeout_ms=%u",
	       look.waiting, look.in_flight, lb->config.stop_timeout_ms);
}

bool lb_is_stopping(const struct lb *lb)
{
	return lb_is_winding_down(lb);
}

bool lb_stop_over(const struct lb *lb)
{
	return lb->stop_stage == STOP_OVER;
}

static void tell(struct lb *lb)
{
	struct look look = look_at_all(lb, true);

	LB_LOG(WARNING, "stopping: out of time, sending notices waiting=%u in_flight=%u",
	       look.waiting, look.in_flight);
	enter(lb, STOP_TELLING);
}

static void give_up(struct lb *lb)
{
	struct look look = look_at_all(lb, true);

	LB_LOG(WARNING,
	       "stopping: the clients' ports take no more packets, notices given up unsent=%u "
	       "sending=%d",
	       look.waiting + look.in_flight, look.sending);
	lb->stop_stage = STOP_OVER;
}

void stop_tick(struct lb *lb)
{
	uint32_t ms = lb_now_ms(lb) - lb->stop_stage_ms;
	struct look look;

	if (!lb_is_stopping(lb) || lb_stop_over(lb))
		return;
	look = look_at_all(lb, false);
	if (look.waiting + look.in_flight == 0 && !look.sending) {
		LB_LOG(NOTICE,
		       "stopped: all answered or notified refused=%lu out_of_time=%lu ms=%u",
		       dropped(lb, LB_DROP_STOPPING), dropped(lb, LB_DROP_STOP_TIMEOUT),
		       lb_now_ms(lb) - lb->stop_begin_ms);
		lb->stop_stage = STOP_OVER;
	} else if (lb->stop_stage == STOP_REFUSING && ms >= lb->config.stop_timeout_ms) {
		tell(lb);
	} else if (lb->stop_stage == STOP_TELLING && ms >= TELL_MS) {
		give_up(lb);
	}
}

/* True when a queue of the port may hold an unsent packet; also if the driver cannot tell. */
static bool is_sending(const struct lb *lb, unsigned int index)
{
	const struct port *port = &lb->port[index];
	uint16_t descriptors = lb->config.port[index].tx_descriptors;

	for (uint16_t queue = 0; queue < port->queues; queue++)
		for (uint16_t i = 0; i < descriptors; i++) {
			int status = rte_eth_tx_descriptor_status(port->id, queue, i);

			if (status == RTE_ETH_TX_DESC_FULL || status == -ENOTSUP)
				return true;
		}
	return false;
}

void stop_settle(const struct lb *lb)
{
	uint64_t end = rte_rdtsc() + SETTLE_MS * lb->tsc_per_ms;

	for (unsigned int i = 0; i < lb->config.n_ports; i++)
		while (lb->config.port[i].clients && lb->port[i].queues > 0 && is_sending(lb, i) &&
		       rte_rdtsc() < end)
			rte_delay_us_sleep(1000);
}
