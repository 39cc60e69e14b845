/* SPDX-License-Identifier: BSD-3-Clause */
#include "reload/retire.h"

#include <stdio.h>
#include <stdlib.h>

#include "edge/edge.h"
#include "lcore/lcore.h"
#include "observe/stats.h"
#include "reload/apply.h"

/* Searching the requests in flight takes time on the lcores: not at every tick. */
#define LOOK_EVERY_MS 250u
#define ROWS          256

struct retire {
	uint32_t looked_ms;
	/* Services that were leaving when they were looked at last, and since when. */
	bool left[LB_SERVICES_MAX];
	uint32_t left_ms[LB_SERVICES_MAX];
	/* True during a walk over all flows that ends those of the services in <done>. */
	bool walking;
	bool done[LB_SERVICES_MAX]; /* had nothing in flight when the walk began */
	unsigned int lcore;
	uint32_t cursor;
	struct lb_config next; /* too large for a stack */
};

/* The services that have requests queued or in flight, or TCP connections. */
struct busy {
	bool busy[LB_SERVICES_MAX], connected[LB_SERVICES_MAX];
};

/* Flows that their lcore is to end. */
struct flows_to_end {
	unsigned int n;
	uint64_t flow[ROWS];
};

struct retire *retire_create(void)
{
	return calloc(1, sizeof(struct retire));
}

void retire_destroy(struct retire *retire)
{
	free(retire);
}

static void mark_busy_link(const struct link *link, struct busy *busy)
{
	for (uint32_t i = link->busy.oldest; i != SLOT_NONE; i = link->slot[i].newer)
		busy->busy[link->slot[i].service] = true;
}

static void mark_busy(void *lcore, void *argument)
{
	const struct lcore *lc = lcore;
	struct busy *busy = argument;

	for (unsigned int i = 0; i < LB_SERVICES_MAX; i++) {
		const struct edge_left left = edge_left(lc, i);

		busy->busy[i] |= lc->service[i].queue.count > 0 || left.requests > 0;
		busy->connected[i] |= left.connections > 0;
	}
	for (unsigned int i = 0; i < lc->n_links; i++)
		mark_busy_link(lc->links[i], busy);
	for (const struct link *link = lc->detached; link != NULL; link = link->next_detached)
		mark_busy_link(link, busy);
}

static bool is_leaving(const struct lb *lb, unsigned int service)
{
	return lb_service_used(&lb->config.service[service]) && lb->config.service[service].leaving;
}

static void retire_reset(void *lcore, void *service)
{
	edge_reset(lcore, *(uint16_t *)service);
}

/*
 * Connections of a leaving service close when they are answered. Those of clients that do not
 * close, or do not read, are reset after stop_timeout_ms.
 */
static void retire_reset_late(struct lb *lb, const struct retire *retire, uint16_t service)
{
	if (lb_now_ms(lb) - retire->left_ms[service] < lb->config.stop_timeout_ms)
		return;
	LB_LOG(NOTICE, "service=%s leaving: resetting connections that clients have not closed",
	       lb->config.service[service].name);
	for (unsigned int k = 0; k < lb->n_lcores; k++)
		lcores_tell(lb, k, retire_reset, &service, sizeof(service));
}

/* Find the leaving services without any request or connection. True if there is one. */
static bool find_idle(struct lb *lb, struct retire *retire)
{
	struct busy all = {0};
	bool any = false;

	/* One that stands still may have requests of each. */
	for (unsigned int k = 0; k < lb->n_lcores; k++)
		if (!lcores_ask(lb, k, mark_busy, &all, sizeof(all)))
			return false;
	for (unsigned int i = 0; i < LB_SERVICES_MAX; i++) {
		retire->done[i] = retire->left[i] && !all.busy[i] && !all.connected[i];
		any |= retire->done[i];
		if (retire->left[i] && all.connected[i])
			retire_reset_late(lb, retire, i);
	}
	return any;
}

static void end_flows(void *lcore, void *argument)
{
	const struct flows_to_end *f = argument;
	struct lcore *lc = lcore;

	for (unsigned int i = 0; i < f->n; i++) {
		struct flow *flow = conntrack_flow_get(lc->ct, f->flow[i]);

		if (flow != NULL)
			conntrack_flow_remove(lc->ct, flow);
	}
}

static void end_some_flows(struct lb *lb, struct retire *retire)
{
	const struct lcore *lc = lb->lcore[retire->lcore];
	struct flow_info rows[ROWS];
	struct flows_to_end ending = {0};
	uint32_t from = retire->cursor, posted = mailbox_last(&lc->mailbox);
	unsigned int n = conntrack_dump(lc->ct, &retire->cursor, rows, ROWS);

	for (unsigned int i = 0; i < n; i++)
		/* The service may be in the configuration again. */
		if (rows[i].service < LB_SERVICES_MAX && retire->done[rows[i].service] &&
		    is_leaving(lb, rows[i].service))
			ending.flow[ending.n++] = rows[i].handle;
	if (ending.n > 0 && !lcores_tell(lb, retire->lcore, end_flows, &ending, sizeof(ending)) &&
	    mailbox_last(&lc->mailbox) == posted) {
		retire->cursor = from; /* no memory */
		return;
	}
	if (retire->cursor != CONNTRACK_DUMP_END)
		return;
	retire->cursor = 0;
	retire->walking = ++retire->lcore < lb->n_lcores;
}

/*
 * Free the numbers of retired services: no flow names them any more, and none could begin since
 * they were removed. Abandoned slots may still name them; that affects only counters.
 */
static void free_numbers(struct lb *lb, struct retire *retire)
{
	char error[128];
	bool any = false;

	retire->next = lb->config;
	for (unsigned int i = 0; i < LB_SERVICES_MAX; i++) {
		if (!retire->done[i] || !is_leaving(lb, i))
			continue;
		LB_LOG(NOTICE, "service=%s number=%u retired", lb->config.service[i].name, i);
		memset(&retire->next.service[i], 0, sizeof(retire->next.service[i]));
		any = true;
	}
	while (retire->next.n_services > 1 &&
	       !lb_service_used(&retire->next.service[retire->next.n_services - 1]))
		retire->next.n_services--;
	/* Without memory the next tick tries again. */
	if (any && apply_config(lb, &retire->next, error, sizeof(error)) < 0)
		LB_LOG(WARNING, "reason=\"%s\"", error);
}

/* True if a service is leaving. */
static bool retire_find_leaving(struct lb *lb, struct retire *retire)
{
	bool any = false;

	for (unsigned int i = 0; i < LB_SERVICES_MAX; i++) {
		bool leaving = i < lb->config.n_services && is_leaving(lb, i);

		if (!leaving || !retire->left[i])
			retire->left_ms[i] = lb_now_ms(lb);
		retire->left[i] = leaving;
		any |= leaving;
	}
	return any;
}

void retire_tick(struct lb *lb)
{
	uint64_t end = lb_tsc(lb) + lb->tsc_per_ms;
	struct retire *retire = lb->retire;

	if (!retire->walking) {
		if (lb_now_ms(lb) - retire->looked_ms < LOOK_EVERY_MS)
			return;
		retire->looked_ms = lb_now_ms(lb);
		if (!retire_find_leaving(lb, retire) || !find_idle(lb, retire))
			return;
		retire->walking = true;
		retire->lcore = retire->cursor = 0;
	}
	do {
		/* It has calls to make: flows that it is not told to end would be passed over. */
		if (mailbox_waiting(&lb->lcore[retire->lcore]->mailbox) > 0)
			return;
		end_some_flows(lb, retire);
	} while (retire->walking && lb_tsc(lb) < end);
	if (!retire->walking)
		free_numbers(lb, retire);
}
