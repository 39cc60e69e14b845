/* SPDX-License-Identifier: BSD-3-Clause */
#include "reload/retire.h"

#include <stdio.h>
#include <stdlib.h>

#include "lcore/lcore.h"
#include "observe/stats.h"
#include "reload/apply.h"

/* Searching the requests in flight takes time on the lcores: not at every tick. */
#define LOOK_EVERY_MS 250u
#define ROWS          256

struct leave {
	uint32_t looked_ms;
	/* A walk over all flows, to end those of the services in <done>. */
	bool walking;
	bool done[LB_SERVICES_MAX]; /* had nothing in flight when the walk began */
	unsigned int lcore;
	uint32_t cursor;
	struct lb_config next; /* large for a stack */
};

/* The services that have requests queued or in flight. */
struct look {
	bool busy[LB_SERVICES_MAX];
};

/* Flows that their lcore is to end. */
struct farewell {
	unsigned int n;
	uint64_t flow[ROWS];
};

struct leave *leave_create(void)
{
	return calloc(1, sizeof(struct leave));
}

void leave_destroy(struct leave *leave)
{
	free(leave);
}

static void look_at_link(const struct link *link, struct look *look)
{
	for (uint32_t i = link->busy.oldest; i != SLOT_NONE; i = link->slot[i].newer)
		look->busy[link->slot[i].service] = true;
}

static void look(void *lcore, void *argument)
{
	const struct lcore *lc = lcore;
	struct look *l = argument;

	for (unsigned int i = 0; i < LB_SERVICES_MAX; i++)
		l->busy[i] |= lc->service[i].queue.count > 0;
	for (unsigned int i = 0; i < lc->n_links; i++)
		look_at_link(lc->links[i], l);
	for (const struct link *link = lc->dying; link != NULL; link = link->next_dying)
		look_at_link(link, l);
}

static bool is_leaving(const struct lb *lb, unsigned int service)
{
	return lb_service_used(&lb->config.service[service]) && lb->config.service[service].leaving;
}

/* Find the leaving services without any request. True if there is one. */
static bool find_done(struct lb *lb, struct leave *leave)
{
	struct look all = {0};
	bool any = false;

	for (unsigned int k = 0; k < lb->n_lcores; k++)
		mailbox_send(&lb->lcore[k]->mailbox, look, lb->lcore[k], &all);
	for (unsigned int i = 0; i < LB_SERVICES_MAX; i++) {
		leave->done[i] = i < lb->config.n_services && is_leaving(lb, i) && !all.busy[i];
		any |= leave->done[i];
	}
	return any;
}

static void end_flows(void *lcore, void *argument)
{
	const struct farewell *f = argument;
	struct lcore *lc = lcore;

	for (unsigned int i = 0; i < f->n; i++) {
		struct flow *flow = conntrack_flow_get(lc->ct, f->flow[i]);

		if (flow != NULL)
			conntrack_flow_remove(lc->ct, flow);
	}
}

static void walk_some(struct lb *lb, struct leave *leave)
{
	struct lcore *lc = lb->lcore[leave->lcore];
	struct flow_info rows[ROWS];
	struct farewell farewell = {0};
	unsigned int n = conntrack_dump(lc->ct, &leave->cursor, rows, ROWS);

	for (unsigned int i = 0; i < n; i++)
		/* The service may be in the configuration again. */
		if (rows[i].service < LB_SERVICES_MAX && leave->done[rows[i].service] &&
		    is_leaving(lb, rows[i].service))
			farewell.flow[farewell.n++] = rows[i].handle;
	if (farewell.n > 0)
		mailbox_send(&lc->mailbox, end_flows, lc, &farewell);
	if (leave->cursor != CONNTRACK_DUMP_END)
		return;
	leave->cursor = 0;
	leave->walking = ++leave->lcore < lb->n_lcores;
}

/*
 * Free the numbers of retired services: no flow names them any more, and none could begin since
 * they were removed. Abandoned slots may still name them, and affect counters only.
 */
static void free_numbers(struct lb *lb, struct leave *leave)
{
	char error[128];
	bool any = false;

	leave->next = lb->config;
	for (unsigned int i = 0; i < LB_SERVICES_MAX; i++) {
		if (!leave->done[i] || !is_leaving(lb, i))
			continue;
		LB_LOG(NOTICE, "service=%s number=%u retired", lb->config.service[i].name, i);
		memset(&leave->next.service[i], 0, sizeof(leave->next.service[i]));
		any = true;
	}
	while (leave->next.n_services > 1 &&
	       !lb_service_used(&leave->next.service[leave->next.n_services - 1]))
		leave->next.n_services--;
	/* Without memory the next tick tries again. */
	if (any && adopt_config(lb, &leave->next, error, sizeof(error)) < 0)
		LB_LOG(WARNING, "reason=\"%s\"", error);
}

void leave_tick(struct lb *lb)
{
	uint64_t end = lb_tsc(lb) + lb->tsc_per_ms;
	struct leave *leave = lb->leave;

	if (!leave->walking) {
		bool any = false;

		if (lb_now_ms(lb) - leave->looked_ms < LOOK_EVERY_MS)
			return;
		leave->looked_ms = lb_now_ms(lb);
		for (unsigned int i = 0; i < lb->config.n_services; i++)
			any |= is_leaving(lb, i);
		if (!any || !find_done(lb, leave))
			return;
		leave->walking = true;
		leave->lcore = leave->cursor = 0;
	}
	do
		walk_some(lb, leave);
	while (leave->walking && lb_tsc(lb) < end);
	if (!leave->walking)
		free_numbers(lb, leave);
}
