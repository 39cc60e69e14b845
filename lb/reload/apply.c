/* SPDX-License-Identifier: BSD-3-Clause */
#include "reload/apply.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "config/config_diff.h"
#include "lcore/lcore.h"
#include "membership/registry.h"
#include "membership/resolve.h"
#include "membership/service_workers.h"
#include "observe/access_log.h"
#include "ports/kept.h"
#include "runtime/log_sink.h"
#include "runtime/xdp.h"
#include "walk/replay.h"
#include "walk/waiting.h"

/* Changes that wait for an lcore at most: each has queues for all. */
#define CHANGES_MAX 4u

/* One lcore's new queues; after the change, its old ones. */
struct lcore_queues {
	struct queue *queue; /* by service number */
};

/*
 * A change in progress, until the last lcore has taken it over. Arrays are indexed by service
 * number.
 */
struct change {
	struct lb *lb;
	const struct lb_config *next; /* not used by lcores */
	unsigned int n; /* all service numbers, old and new, are below this */
	struct service_snapshot *view; /* the new services, and those that it frees */
	struct service_snapshot *old;
	struct lcore_queues *queues; /* by lcore */
	struct pick_table *pick[LB_SERVICES_MAX];
	struct model_table *models;
	bool changed[LB_SERVICES_MAX]; /* its configuration changed, or it was removed */
	bool fresh[LB_SERVICES_MAX];   /* the number was free before */
	bool repick[LB_SERVICES_MAX];  /* it gets a new pick table */
	bool requeue[LB_SERVICES_MAX]; /* it gets a new queue */
};

struct service_snapshot *apply_snapshot(const struct lb *lb, const struct lb_config *config)
{
	struct service_snapshot *view = malloc(sizeof(*view));

	if (view != NULL)
		service_snapshot_init(view, config, lb->service_seed);
	return view;
}

void apply_timeouts(const struct lb_service_config *service, uint32_t timeout_ms[FLOW_STATES])
{
	timeout_ms[FLOW_UDP_ONE_WAY] = service->one_way_timeout_ms;
	timeout_ms[FLOW_UDP_ANSWERED] = service->one_way_timeout_ms;
	timeout_ms[FLOW_UDP_ESTABLISHED] = service->flow_timeout_ms;
}

uint64_t apply_shortest_timeout(const struct lb *lb, const struct lb_config *config)
{
	uint64_t ms = UINT32_MAX;

	for (unsigned int i = 0; i < config->n_services; i++)
		if (lb_service_used(&config->service[i]))
			ms = RTE_MIN(ms, (uint64_t)config->service[i].request_timeout_ms);
	return ms * lb->tsc_per_ms;
}

/* --- making ---------------------------------------------------------------------------------- */

static void note_change(void *changed, const struct lb_config_change *change)
{
	*(bool *)changed = true;
}

static void apply_compare(struct change *a, const struct lb_config *now)
{
	a->n = RTE_MAX(now->n_services, a->next->n_services);
	for (unsigned int i = 0; i < a->n; i++) {
		const struct lb_service_config *from = &now->service[i], *to = &a->next->service[i];

		a->fresh[i] = !lb_service_used(from) && lb_service_used(to);
		a->changed[i] = lb_service_used(from) != lb_service_used(to) ||
				from->leaving != to->leaving;
		if (lb_service_used(to))
			lb_config_diff_service(from, to, note_change, &a->changed[i]);
		a->requeue[i] = lb_service_used(from) != lb_service_used(to) ||
				from->queue != to->queue || (from->replay > 0) != (to->replay > 0);
	}
}

static int apply_make_queues(const struct lb *lb, struct change *a)
{
	a->queues = calloc(lb->n_lcores, sizeof(*a->queues));
	if (a->queues == NULL)
		return -ENOMEM;
	for (unsigned int k = 0; k < lb->n_lcores; k++) {
		a->queues[k].queue = calloc(a->n, sizeof(struct queue));
		if (a->queues[k].queue == NULL)
			return -ENOMEM;
		for (unsigned int i = 0; i < a->n; i++) {
			/* Free numbers have a queue without places. */
			if (a->requeue[i] && waiting_init(lb->lcore[k], &a->next->service[i],
							  &a->queues[k].queue[i]) < 0)
				return -ENOMEM;
		}
	}
	return 0;
}

/* True when service <i> may get other workers: services of a model compete for spares. */
static bool shares_workers(const struct change *a, const struct lb_config *now, unsigned int i)
{
	const char *model = a->next->service[i].model;

	for (unsigned int k = 0; k < a->n; k++)
		if (a->changed[k] && (strcmp(a->next->service[k].model, model) == 0 ||
				      strcmp(now->service[k].model, model) == 0))
			return true;
	return false;
}

/* Make the new pick tables. Free numbers need none. */
static int apply_make_picks(struct lb *lb, struct change *a)
{
	service_workers_update(lb, a->next);
	for (unsigned int i = 0; i < a->n; i++) {
		const struct lb_service_config *s = &a->next->service[i];

		a->repick[i] = a->changed[i] || shares_workers(a, &lb->config, i);
		if (!a->repick[i] || !lb_service_used(s))
			continue;
		a->pick[i] = service_workers_table(lb, s, i);
		if (a->pick[i] == NULL)
			return -ENOMEM;
	}
	a->models = service_workers_models(lb, a->next);
	return a->models == NULL ? -ENOMEM : 0;
}

/* Give new VIPs to the XDP programs, which leave packets for other addresses to the kernel. */
static int apply_steer(const struct lb *lb, const struct lb_config *next, char *error, size_t size)
{
	struct in6_addr address[KEPT_MAX];
	int ret = 0;

	for (unsigned int i = 0; ret == 0 && i < next->n_ports; i++)
		if (!next->port[i].verbs && lb->port[i].steered)
			ret = xdp_keep(next->port[i].device, address,
				       kept_addresses(next, i, address), error, size);
	return ret;
}

static int apply_prepare(struct lb *lb, struct change *a, char *error, size_t size)
{
	snprintf(error, size, "no memory for the changed services; the old ones stay in use");
	a->view = apply_snapshot(lb, a->next);
	if (a->view == NULL || apply_make_queues(lb, a) < 0 || apply_make_picks(lb, a) < 0)
		return -ENOMEM;
	return apply_steer(lb, a->next, error, size);
}

/* --- changing over --------------------------------------------------------------------------- */

struct call {
	struct change *a;
	struct lcore_queues *queues;
};

/* Clear the counters and the queue of a service number that another service had before. */
static void apply_reset_service(struct lcore *lc, unsigned int service)
{
	struct lcore_service *s = &lc->service[service];
	struct queue queue = s->queue;
	uint32_t kept = s->replay_copies;

	memset(s, 0, sizeof(*s));
	s->queue = queue;
	s->replay_copies = kept;
	memset(&lc->latency[service], 0, sizeof(lc->latency[service]));
}

/* On the lcore, between two polls: take over the new services. */
static void apply_on_lcore(void *lcore, void *argument)
{
	const struct call *call = argument;
	const struct change *a = call->a;
	struct lcore *lc = lcore;
	uint32_t timeout_ms[FLOW_STATES] = {0};

	for (unsigned int i = 0; i < a->n; i++) {
		const struct lb_service_config *s = &a->view->config[i];

		if (a->requeue[i])
			waiting_move(lc, i, &call->queues->queue[i]);
		if (a->fresh[i])
			apply_reset_service(lc, i);
		if (a->changed[i] && lb_service_used(s)) {
			apply_timeouts(s, timeout_ms);
			conntrack_timeouts_set(lc->ct, i, timeout_ms);
		}
	}
	lc->services = a->view;
	replay_share(lc);
	waiting_share(lc);
}

/*
 * Publish the pick tables of services that serve, or of those that leave. <a> keeps the old tables.
 */
static void apply_publish(struct lb *lb, struct change *a, bool serving)
{
	for (unsigned int i = 0; i < a->n; i++) {
		struct pick_table *old = lb->pick[i];

		if (!a->repick[i] || lb_service_serves(&a->next->service[i]) != serving)
			continue;
		__atomic_store_n(&lb->pick[i], a->pick[i], __ATOMIC_RELEASE);
		a->pick[i] = old;
	}
}

/*
 * Publish the table of models; <a> keeps the old one. Before the lcores have the new services:
 * those need it, and services that leave take no requests that would.
 */
static void apply_publish_models(struct lb *lb, struct change *a)
{
	struct model_table *old = lb->models;

	__atomic_store_n(&lb->models, a->models, __ATOMIC_RELEASE);
	a->models = old;
}

/* Returns the services that lcores had before. */
static struct service_snapshot *change_over(struct lb *lb, struct change *a)
{
	uint64_t shortest = apply_shortest_timeout(lb, a->next);
	struct service_snapshot *old = (struct service_snapshot *)lb->services;

	/* A value that is too short costs a useless check, one that is too long misses a timeout:
	 * keep the shorter one until all lcores have changed. */
	__atomic_store_n(&lb->shortest_timeout, RTE_MIN(shortest, lb->shortest_timeout),
			 __ATOMIC_RELAXED);
	apply_publish(lb, a, true);
	apply_publish_models(lb, a);
	__atomic_store_n(&lb->services, a->view, __ATOMIC_RELEASE);
	for (unsigned int k = 0; k < lb->n_lcores; k++) {
		struct call call = {.a = a, .queues = &a->queues[k]};

		/* There is room: apply_config(). */
		lcores_tell(lb, k, apply_on_lcore, &call, sizeof(call));
	}
	__atomic_store_n(&lb->shortest_timeout, shortest, __ATOMIC_RELAXED);
	apply_publish(lb, a, false);
	return old;
}

/* --- the control thread's own ---------------------------------------------------------------- */

static bool has_vip(const struct lb_config *config, const struct lb_address *vip)
{
	for (unsigned int i = 0; i < config->n_services; i++)
		if (lb_service_used(&config->service[i]) &&
		    lb_address_equal(&config->service[i].vip, vip))
			return true;
	return false;
}

static void announce_new(struct lb *lb, const struct lb_config *before)
{
	for (unsigned int i = 0; i < lb->config.n_services; i++) {
		const struct lb_address *vip = &lb->config.service[i].vip;

		if (lb_service_used(&lb->config.service[i]) && !has_vip(before, vip))
			resolve_announce_vip(lb, vip);
	}
}

static void apply_remember(struct lb *lb, const struct lb_config *next)
{
	if (strcmp(lb->config.log_level, next->log_level) != 0)
		rte_log_set_level_pattern("doorbell.*", log_level_number(next->log_level));
	log_sink_format(next->log_format);
	if (lb->access != NULL)
		access_log_set_one_in(lb->access, next->access_log_one_in);
	lb_config_copy_live(next, &lb->config);
	lb->config.n_services = next->n_services;
	memcpy(lb->config.service, next->service, sizeof(next->service));
}

static void apply_discard(void *change)
{
	struct change *a = change;

	for (unsigned int i = 0; i < a->n; i++) {
		workers_pick_table_destroy(a->pick[i]);
		for (unsigned int k = 0; a->queues != NULL && k < a->lb->n_lcores; k++)
			if (a->queues[k].queue != NULL && a->requeue[i])
				queue_fini(&a->queues[k].queue[i]);
	}
	for (unsigned int k = 0; a->queues != NULL && k < a->lb->n_lcores; k++)
		free(a->queues[k].queue);
	free(a->queues);
	model_table_destroy(a->models);
	free(a->old);
	a->lb->n_changes--;
	free(a);
}

static int apply_change(struct lb *lb, struct change *a, struct lb_config *before, char *error,
			size_t size)
{
	int ret;

	*before = lb->config;
	apply_compare(a, before);
	ret = apply_prepare(lb, a, error, size);
	if (ret < 0) {
		service_workers_update(lb, &lb->config);
		a->old = a->view;
		return ret;
	}
	a->old = change_over(lb, a);
	apply_remember(lb, a->next);
	announce_new(lb, before);
	return 0;
}

int apply_config(struct lb *lb, const struct lb_config *next, char *error, size_t size)
{
	struct change *a;
	struct lb_config *before;
	int ret = -ENOMEM;

	if (lcores_check(lb, error, size) < 0)
		return -EBUSY;
	if (lb->n_changes >= CHANGES_MAX)
		return lcores_refuse(lb, error, size);
	a = calloc(1, sizeof(*a));
	before = malloc(sizeof(*before));
	if (a == NULL || before == NULL) {
		snprintf(error, size, "no memory");
		free(a);
		free(before);
		return -ENOMEM;
	}
	a->lb = lb;
	a->next = next;
	lb->n_changes++;
	ret = apply_change(lb, a, before, error, size);
	free(before);
	if (ret < 0) {
		apply_discard(a);
		return ret;
	}
	lcores_free_later(lb, apply_discard, a);
	lcores_settle(lb);
	return 0;
}
