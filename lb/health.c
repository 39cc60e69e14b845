/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which workers are alive: a worker is as healthy as its slowest link's last heartbeat, and dead
 * when a link has failed. Control thread.
 */
#include <stdio.h>

#include "leave.h"
#include "registry.h"
#include "resolve.h"
#include "verbs_port.h"

/* A worker that is not active after this long never will be, and holds its name. */
#define JOIN_MS 10000u

/* When the slowest link's last heartbeat came; 0 while one never had any. */
static uint32_t last_heartbeat(const struct lb *lb, const struct worker *w)
{
	uint32_t now = lb_now_ms(lb), slowest = now;

	for (unsigned int i = 0; i < lb->n_lcores; i++) {
		const struct link *link = lb->lcore[i]->link[w->number];
		uint32_t at =
			link == NULL ? 0 : __atomic_load_n(&link->heartbeat_ms, __ATOMIC_RELAXED);

		if (at == 0)
			return 0;
		if ((int32_t)(slowest - at) > 0)
			slowest = at;
	}
	return slowest | 1; /* 0 means never */
}

static const char *links_error(const struct lb *lb, const struct worker *w)
{
	for (unsigned int i = 0; i < lb->n_lcores; i++) {
		const struct link *link = lb->lcore[i]->link[w->number];
		const char *error = link == NULL ? NULL : link_error(link);

		if (error != NULL)
			return error;
	}
	return NULL;
}

static uint64_t link_timeouts(const struct lb *lb, const struct worker *w)
{
	struct lb_link_stats stats;

	lb_worker_stats_read(lb, w, &stats);
	return stats.timeouts;
}

static void check_health(struct lb *lb, struct worker *w)
{
	uint32_t limit = lb->config.worker_timeout_ms + w->spec.max_run_ms;
	const char *error = links_error(lb, w);
	char reason[WORKER_REASON_MAX];

	w->heartbeat_ms = last_heartbeat(lb, w);
	if (error != NULL)
		return lb_worker_remove(lb, w, error);
	/* The clock wraps after 49 days; ages do not. */
	if (w->heartbeat_ms != 0 && (int32_t)(lb_now_ms(lb) - w->heartbeat_ms) > (int32_t)limit) {
		snprintf(reason, sizeof(reason),
			 "no heartbeat from its loop for %u ms (is a batch longer? --max-run-ms)",
			 limit);
		return lb_worker_remove(lb, w, reason);
	}
	resolve_doubt(lb, w->number, link_timeouts(lb, w));
	if (w->state == WORKER_JOINING && lb_now_ms(lb) - (uint32_t)w->registered_ms > JOIN_MS) {
		snprintf(reason, sizeof(reason), "did not get ready within %u s: %s",
			 JOIN_MS / 1000,
			 !w->ready ? "no agent.ready came"
			 : !lb->neighbour[w->number].resolved
				 ? "its address does not answer ARP or neighbour discovery"
				 : "no heartbeat of its loop came");
		return lb_worker_remove(lb, w, reason);
	}
	/* Its heartbeats may come before its address is resolved: nothing could be sent to it. */
	if (w->state == WORKER_JOINING && w->ready && w->heartbeat_ms != 0 &&
	    lb->neighbour[w->number].resolved)
		registry_set_state(lb, w, WORKER_ACTIVE, "");
	if (w->state == WORKER_DRAINING && strcmp(w->reason, "drained") != 0 &&
	    lb_worker_drained(lb, w))
		registry_set_state(lb, w, WORKER_DRAINING, "drained");
}

void lb_tick(struct lb *lb)
{
	registry_free_links(lb);
	verbs_ports_tick(lb);
	leave_tick(lb);
	resolve_tick(lb, lb_now_ms(lb));
	for (unsigned int i = 0; i < WORKERS_MAX; i++) {
		struct worker *w = workers_get(lb->pool, i);

		if (w != NULL && w->state != WORKER_GONE)
			check_health(lb, w);
	}
}
