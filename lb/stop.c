/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A graceful stop: the load balancer refuses new requests, finishes those that it has, sends
 * notices to the clients of the rest, and ends. The stage is one word per lcore, changed between
 * two polls; the control thread watches how far the lcores are.
 */
#include "stop.h"

#include <errno.h>

#include <rte_ethdev.h>

#include "edge/edge.h"
#include "lcore/lcore.h"
#include "observe/stats.h"
#include "walk/handover.h"

/* Time to send notices; clients' ports that do not take them in this time are given up. */
#define NOTIFY_MS 1000u
/* Time for clients to close their TCP connections, once they have all their replies. */
#define CLOSE_MS 1000u
/* Time for NICs to send the last packets. */
#define SETTLE_MS 50

struct remaining {
	bool count; /* count all requests, which takes a while; else stop at the first one */
	unsigned int waiting, in_flight;
	unsigned int connections, busy; /* by TCP; <busy>: not answered, or not acknowledged */
	bool sending;                   /* there are packets that no port has taken yet */
};

static void count_link(const struct link *link, struct remaining *left)
{
	for (uint32_t i = link->busy.oldest; i != SLOT_NONE; i = link->slot[i].newer) {
		left->in_flight++;
		if (!left->count)
			return;
	}
}

static void count_lcore(void *lcore, void *argument)
{
	const struct lcore *lc = lcore;
	const struct edge_left tcp = edge_left(lc, EDGE_ALL_SERVICES);
	struct remaining *left = argument;

	left->waiting += lc->n_waiting;
	left->connections += tcp.connections;
	left->busy += tcp.busy;
	for (unsigned int i = 0; i < lc->n_links; i++)
		count_link(lc->links[i], left);
	for (const struct link *link = lc->detached; link != NULL; link = link->next_detached)
		count_link(link, left);
	left->sending |= !rte_ring_empty(lc->handover) || handover_waits(lc);
	for (unsigned int i = 0; i < lc->lb->config.n_ports; i++)
		left->sending |= lc->lb->config.port[i].clients && lc->tx[i].n > 0;
}

static struct remaining count_remaining(struct lb *lb, bool count)
{
	struct remaining left = {.count = count};

	/* One that stands still may have anything. */
	for (unsigned int i = 0; i < lb->n_lcores; i++)
		if (!lcores_ask(lb, i, count_lcore, &left, sizeof(left)))
			left.sending = true;
	return left;
}

static void set_stage(void *lcore, void *stage)
{
	struct lcore *lc = lcore;

	lc->stop = *(enum stop_stage *)stage;
	lc->next_housekeeping = 0;
	if (lc->stop == STOP_REFUSING)
		edge_close_all(lc);
	else if (lc->stop == STOP_RESETTING)
		edge_reset(lc, EDGE_ALL_SERVICES);
}

static void stop_enter(struct lb *lb, enum stop_stage stage)
{
	lb->stop_stage = stage;
	lb->stop_stage_ms = lb_now_ms(lb);
	for (unsigned int i = 0; i < lb->n_lcores; i++)
		lcores_tell(lb, i, set_stage, &stage, sizeof(stage));
}

static uint64_t stop_dropped(const struct lb *lb, enum lb_drop reason)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < lb->n_lcores; i++)
		sum += __atomic_load_n(&lb->lcore[i]->stats.drop[reason], __ATOMIC_RELAXED);
	return sum;
}

void lb_stop_begin(struct lb *lb)
{
	struct remaining left;

	if (lb_is_stopping(lb))
		return;
	lb->stop_begin_ms = lb_now_ms(lb);
	stop_enter(lb, STOP_REFUSING);
	left = count_remaining(lb, true);
	LB_LOG(NOTICE,
	       "stopping: no new requests waiting=%u in_flight=%u connections=%u "
	       "stop_timeout_ms=%u",
	       left.waiting, left.in_flight, left.connections, lb->config.stop_timeout_ms);
}

bool lb_is_stopping(const struct lb *lb)
{
	return lb_is_winding_down(lb);
}

bool lb_stop_over(const struct lb *lb)
{
	return lb->stop_stage == STOP_OVER;
}

static void stop_out_of_time(struct lb *lb)
{
	struct remaining left = count_remaining(lb, true);

	LB_LOG(WARNING, "stopping: out of time, sending notices waiting=%u in_flight=%u",
	       left.waiting, left.in_flight);
	stop_enter(lb, STOP_NOTIFYING);
}

static void stop_reset_connections(struct lb *lb, unsigned int connections)
{
	LB_LOG(NOTICE,
	       "stopping: resetting connections that clients have not closed connections=%u",
	       connections);
	stop_enter(lb, STOP_RESETTING);
}

static void stop_give_up(struct lb *lb)
{
	struct remaining left = count_remaining(lb, true);

	LB_LOG(WARNING,
	       "stopping: the clients' ports take no more packets, notices given up unsent=%u "
	       "sending=%d",
	       left.waiting + left.in_flight, left.sending);
	lb->stop_stage = STOP_OVER;
}

static void stop_done(struct lb *lb)
{
	LB_LOG(NOTICE, "stopped: all answered or notified refused=%lu out_of_time=%lu ms=%u",
	       stop_dropped(lb, LB_DROP_STOPPING), stop_dropped(lb, LB_DROP_STOP_TIMEOUT),
	       lb_now_ms(lb) - lb->stop_begin_ms);
	lb->stop_stage = STOP_OVER;
}

/* ms since all requests were answered and the answers acknowledged; 0: something is left. */
static uint32_t stop_served_for(struct lb *lb, const struct remaining *left)
{
	bool served = left->waiting + left->in_flight + left->busy == 0 && !left->sending;

	if (!served || !lb->stop_served)
		lb->stop_served_ms = lb_now_ms(lb);
	lb->stop_served = served;
	return lb_now_ms(lb) - lb->stop_served_ms;
}

void stop_tick(struct lb *lb)
{
	uint32_t ms = lb_now_ms(lb) - lb->stop_stage_ms;
	struct remaining left;

	if (!lb_is_stopping(lb) || lb_stop_over(lb))
		return;
	left = count_remaining(lb, false);
	if (left.waiting + left.in_flight + left.connections == 0 && !left.sending)
		stop_done(lb);
	else if (lb->stop_stage == STOP_REFUSING && ms >= lb->config.stop_timeout_ms)
		stop_out_of_time(lb);
	else if (lb->stop_stage == STOP_REFUSING && stop_served_for(lb, &left) >= CLOSE_MS)
		stop_reset_connections(lb, left.connections);
	else if (lb->stop_stage == STOP_NOTIFYING && left.connections > 0 &&
		 (ms >= NOTIFY_MS || left.waiting + left.in_flight + left.busy == 0))
		stop_reset_connections(lb, left.connections);
	else if (lb->stop_stage != STOP_REFUSING && ms >= NOTIFY_MS)
		stop_give_up(lb);
}

/* True when a queue of the port may hold an unsent packet; also if the driver cannot tell. */
static bool port_is_sending(const struct lb *lb, unsigned int index)
{
	const struct port *port = &lb->port[index];
	uint16_t descriptors = lb->config.port[index].tx_descriptors;

	for (uint16_t queue = 0; queue < port->queues; queue++) {
		struct port_queue q = port_queue(port, queue);

		for (uint16_t i = 0; i < descriptors; i++) {
			int status = rte_eth_tx_descriptor_status(q.id, q.queue, i);

			if (status == RTE_ETH_TX_DESC_FULL || status == -ENOTSUP)
				return true;
		}
	}
	return false;
}

void stop_settle(const struct lb *lb)
{
	uint64_t end = rte_rdtsc() + SETTLE_MS * lb->tsc_per_ms;

	for (unsigned int i = 0; i < lb->config.n_ports; i++)
		while (lb->config.port[i].clients && lb->port[i].queues > 0 &&
		       port_is_sending(lb, i) && rte_rdtsc() < end)
			rte_delay_us_sleep(1000);
}
