/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ejects workers that answer much worse than the others of their model (workers/outlier.h has the
 * rules): for a while they get no new requests, and finish those that they have. Control thread,
 * once a second.
 */
#include "membership/eject.h"

#include <stdio.h>

#include "lcore/lcore.h"
#include "membership/health.h"
#include "membership/registry.h"
#include "observe/stats.h"

#define WINDOW_MS   1000u
#define REPLIES_MIN 20

/* The worker's replies, errors and times since the last call. */
static struct outlier_window eject_window(const struct lb *lb, struct worker *w)
{
	struct outlier_window *last = &w->doubt.window, now, since;
	struct lb_link_stats stats;

	lb_worker_stats_read(lb, w, &stats);
	now = (struct outlier_window){
		.replies = stats.replies, .errors = stats.faults, .total_ns = stats.total_ns};
	since = (struct outlier_window){
		.replies = now.replies - last->replies,
		.errors = now.errors - last->errors,
		.total_ns = now.total_ns - last->total_ns,
	};
	*last = now;
	return since;
}

static void eject(struct lb *lb, struct worker *w, const struct outlier_window *window,
		  enum outlier_verdict verdict)
{
	uint32_t hold = health_hold_ms(&w->doubt, lb_now_ms(lb), lb->config.eject_ms);
	char reason[WORKER_REASON_MAX];

	if (verdict == OUTLIER_ERRORS)
		snprintf(reason, sizeof(reason),
			 "out for %u ms: %lu of %lu requests failed within a second", hold,
			 window->errors, window->replies);
	else
		snprintf(reason, sizeof(reason),
			 "out for %u ms: took %lu us per request, far more than the others", hold,
			 window->total_ns / window->replies / 1000);
	w->doubt.ejected = true;
	registry_set_state(lb, w, WORKER_SUSPECT, reason);
}

/*
 * True when each request may go to any worker. Where a flow keeps to one worker, all bad requests
 * of a client fail on that worker, which is not at fault: those errors must not eject it.
 */
static bool spreads_requests(const struct lb *lb, const char *model)
{
	for (unsigned int i = 0; i < lb->config.n_services; i++) {
		const struct lb_service_config *s = &lb->config.service[i];

		if (lb_service_serves(s) && strcmp(s->model, model) == 0 &&
		    (s->affinity != LB_AFFINITY_REQUEST || s->policy == PICK_MAGLEV))
			return false;
	}
	return true;
}

/*
 * The workers of the model that eject_judge() judges; static, because it is too large for a stack.
 * Control thread.
 */
static struct {
	struct worker *worker[WORKERS_MAX];
	struct outlier_window window[WORKERS_MAX];
	enum outlier_verdict verdict[WORKERS_MAX];
} judged;

/* Judge all workers of one model; <first> is the first of them in the pool. */
static void eject_judge(struct lb *lb, struct worker *first)
{
	const struct outlier_rules rules = {
		.error_percent = spreads_requests(lb, first->spec.model)
					 ? lb->config.eject_error_percent
					 : 0,
		.latency_factor = lb->config.eject_latency_factor,
		.replies_min = REPLIES_MIN,
	};
	unsigned int n = 0, out = 0;

	for (struct worker *w = first; w != NULL; w = workers_next(lb->pool, w)) {
		if (strcmp(w->spec.model, first->spec.model) != 0)
			continue;
		if (w->state == WORKER_ACTIVE) {
			judged.worker[n] = w;
			judged.window[n++] = eject_window(lb, w);
		} else {
			out += w->state == WORKER_SUSPECT;
			eject_window(lb, w);
		}
	}
	outlier_judge(&rules, judged.window, n, out, judged.verdict);
	for (unsigned int i = 0; i < n; i++)
		if (judged.verdict[i] != OUTLIER_NONE)
			eject(lb, judged.worker[i], &judged.window[i], judged.verdict[i]);
}

static bool is_first_of_model(struct lb *lb, const struct worker *worker)
{
	const struct worker *w = workers_next(lb->pool, NULL);

	while (strcmp(w->spec.model, worker->spec.model) != 0)
		w = workers_next(lb->pool, w);
	return w == worker;
}

void eject_tick(struct lb *lb)
{
	uint32_t now = lb_now_ms(lb);

	if (lb->config.eject_error_percent == 0 && lb->config.eject_latency_factor == 0)
		return;
	if (now - lb->judged_ms < WINDOW_MS)
		return;
	lb->judged_ms = now;
	for (struct worker *w = workers_next(lb->pool, NULL); w != NULL;
	     w = workers_next(lb->pool, w))
		if (is_first_of_model(lb, w))
			eject_judge(lb, w);
}
