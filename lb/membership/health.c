/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Health of workers: a worker is as healthy as its slowest link's last heartbeat. Without
 * heartbeats it is suspect first (it gets no new requests, and those that it has are replayed
 * elsewhere where services allow it), and dead later, or at once when a link has failed. Control
 * thread.
 */
#include "membership/health.h"

#include <stdio.h>

#include "lcore/lcore.h"
#include "membership/operator_settings.h"
#include "membership/probe.h"
#include "membership/registry.h"
#include "membership/resolve.h"
#include "observe/stats.h"

/* A worker that is not active after this long is removed, as it would hold its name for ever. */
#define JOIN_MS 10000u
/* Periods without a heartbeat until a worker is suspect: one heartbeat may be late. */
#define MISSED_BEATS 2
/* A worker that is suspect again within this time waits longer each time, up to FLAP_MAX_MS. */
#define FLAP_MS     10000u
#define FLAP_MAX_MS 10000u
/* No heartbeat comes while a batch runs; the longest batch is measured over this time. */
#define RUN_WINDOW_MS 10000u
/* ns; cap on the run time that a worker may report (10 min) */
#define RUN_MAX_NS UINT64_C(600000000000)

/* Time of the slowest link's last heartbeat, ms; 0 while a link has had none. */
static uint32_t last_heartbeat(const struct lb *lb, const struct worker *w)
{
	uint32_t now = lb_now_ms(lb), slowest = now;

	for (unsigned int i = 0; i < lb->n_lcores; i++) {
		const struct link *link = lb->link[i][w->number];
		uint32_t at =
			link == NULL ? 0 : __atomic_load_n(&link->heartbeat_ms, __ATOMIC_RELAXED);

		if (at == 0)
			return 0;
		if ((int32_t)(slowest - at) > 0)
			slowest = at;
	}
	return slowest | 1; /* 0 means never */
}

/*
 * Time without a heartbeat, ms, up to when the lcore had last received all there was: a heartbeat
 * that waits in the queue of a busy or halted lcore is not missing.
 */
static uint32_t health_silence_ms(const struct lb *lb, const struct worker *w)
{
	int32_t longest = 0;

	for (unsigned int i = 0; i < lb->n_lcores; i++) {
		const struct lcore *lc = lb->lcore[i];
		const struct link *link = lb->link[i][w->number];
		uint32_t until = __atomic_load_n(&lc->caught_up_ms, __ATOMIC_RELAXED), at;
		int32_t age;

		if (link == NULL)
			continue;
		at = __atomic_load_n(&link->heartbeat_ms, __ATOMIC_RELAXED);
		age = until - at;
		if (at != 0 && age > longest)
			longest = age;
	}
	return longest;
}

static const char *links_error(const struct lb *lb, const struct worker *w)
{
	for (unsigned int i = 0; i < lb->n_lcores; i++) {
		const struct link *link = lb->link[i][w->number];
		const char *error = link == NULL ? NULL : link_error(link);

		if (error != NULL)
			return error;
	}
	return NULL;
}

/* Count signs that the worker's address may have moved to another MAC address. */
static uint64_t link_doubts(const struct lb *lb, const struct worker *w)
{
	uint64_t doubts = 0;

	for (unsigned int i = 0; i < lb->n_lcores; i++) {
		const struct link *link = lb->link[i][w->number];

		if (link != NULL)
			doubts +=
				__atomic_load_n(&link->requester.stats.timeouts, __ATOMIC_RELAXED) +
				__atomic_load_n(&link->strangers, __ATOMIC_RELAXED);
	}
	return doubts;
}

/* --- doubt ---------------------------------------------------------------------------------- */

/* On the lcore. An lcore that stood still sees the last of what was said of the worker meanwhile.
 */
static void mark_link(void *lcore, void *argument)
{
	struct lcore *lc = lcore;
	struct link *link = argument;
	bool suspect;

	__atomic_store_n(&link->doubt_sent, 0, __ATOMIC_SEQ_CST);
	suspect = __atomic_load_n(&link->doubted, __ATOMIC_SEQ_CST);
	if (suspect == link->suspect)
		return;
	lc->n_suspect += suspect ? 1 : -1;
	link->suspect = suspect;
	if (suspect)
		lc->next_housekeeping = 0;
}

/* Tell the lcores of a worker that may have gone, or is trusted again. */
static void tell_lcores(struct lb *lb, const struct worker *w, bool suspect)
{
	for (unsigned int i = 0; i < lb->n_lcores; i++) {
		struct link *link = lb->link[i][w->number];

		if (link == NULL)
			continue;
		__atomic_store_n(&link->doubted, suspect, __ATOMIC_SEQ_CST);
		if (!__atomic_exchange_n(&link->doubt_sent, 1, __ATOMIC_SEQ_CST) &&
		    !lcores_post(lb, i, mark_link, link, 0))
			__atomic_store_n(&link->doubt_sent, 0, __ATOMIC_SEQ_CST);
	}
}

uint32_t health_hold_ms(struct worker_doubt *doubt, uint32_t now_ms, uint32_t first_ms)
{
	uint32_t hold = first_ms;

	doubt->times =
		doubt->since_ms != 0 && now_ms - doubt->since_ms < FLAP_MS ? doubt->times + 1 : 0;
	doubt->since_ms = now_ms;
	if (doubt->times > 0)
		hold = RTE_MIN(RTE_MAX(first_ms, 50u) * (UINT64_C(1) << RTE_MIN(doubt->times, 16u)),
			       (uint64_t)RTE_MAX(FLAP_MAX_MS, first_ms));
	doubt->until_ms = now_ms + hold;
	return hold;
}

/*
 * The worker's longest recent batch, ms, as its replies report it: --max-run-ms is not always set.
 */
static uint32_t longest_run_ms(const struct lb *lb, struct worker *w)
{
	uint32_t *longest = w->doubt.longest_run_ms;
	uint32_t now = lb_now_ms(lb);
	uint64_t ns;

	if (now - w->doubt.window_ms > RUN_WINDOW_MS) {
		w->doubt.window_ms = now;
		longest[1] = longest[0];
		longest[0] = 0;
	}
	for (unsigned int i = 0; i < lb->n_lcores; i++) {
		struct link *link = lb->link[i][w->number];

		if (link == NULL)
			continue;
		ns = __atomic_exchange_n(&link->longest_run_ns, 0, __ATOMIC_RELAXED);
		longest[0] = RTE_MAX(longest[0], (uint32_t)(RTE_MIN(ns, RUN_MAX_NS) / 1000000));
	}
	return RTE_MAX(longest[0], longest[1]);
}

static uint32_t suspect_after_ms(const struct lb *lb, struct worker *w)
{
	return RTE_MAX(lb->config.suspect_ms, MISSED_BEATS * w->spec.heartbeat_ms) +
	       RTE_MAX(w->spec.max_run_ms, 2 * longest_run_ms(lb, w));
}

/* True when a heartbeat has come on every link since then; where an lcore stands still, none can.
 */
static bool heard_since(const struct lb *lb, const struct worker *w, uint32_t since_ms)
{
	for (unsigned int i = 0; i < lb->n_lcores; i++) {
		const struct link *link = lb->link[i][w->number];

		if (link != NULL && lb_lcore_stands_ms(lb, i) == 0 &&
		    (int32_t)(__atomic_load_n(&link->heartbeat_ms, __ATOMIC_RELAXED) - since_ms) <=
			    0)
			return false;
	}
	return true;
}

/*
 * True when a closed connection may make the worker suspect. Many connections that close at once
 * point at the control network, so only a share of a model's workers may be suspect for that alone.
 */
static bool may_hint(const struct lb *lb, const struct worker *w)
{
	unsigned int all = 0, hinted = 1;

	for (const struct worker *other = workers_next(lb->pool, NULL); other != NULL;
	     other = workers_next(lb->pool, other)) {
		if (strcmp(other->spec.model, w->spec.model) != 0)
			continue;
		all++;
		hinted += other != w && other->doubt.hinted;
	}
	return lb->config.suspect_ms != 0 && !w->doubt.silent &&
	       hinted * 100 <= lb->config.control_loss_max_percent * all;
}

static void check_silence(struct lb *lb, struct worker *w)
{
	uint32_t limit = suspect_after_ms(lb, w), ms = health_silence_ms(lb, w);
	char reason[WORKER_REASON_MAX];
	bool silent;

	w->doubt.hinted = w->doubt.hinted && !heard_since(lb, w, w->doubt.hinted_ms);
	silent = w->doubt.hinted || (lb->config.suspect_ms != 0 && ms > limit);
	if (silent == w->doubt.silent)
		return;
	w->doubt.silent = silent;
	/* A closed connection alone makes the worker suspect only until its next heartbeat. */
	if (w->doubt.hinted && w->state == WORKER_ACTIVE) {
		w->doubt.until_ms = lb_now_ms(lb);
		registry_set_state(lb, w, WORKER_SUSPECT,
				   "its agent's connection closed; no heartbeat since");
		return tell_lcores(lb, w, true);
	}
	/* The worker leaves the pick tables first; then its requests are assigned again. */
	if (w->doubt.silent && w->state == WORKER_ACTIVE) {
		health_hold_ms(&w->doubt, lb_now_ms(lb), 0);
		snprintf(reason, sizeof(reason), "no heartbeat from its loop for %u ms", ms);
		registry_set_state(lb, w, WORKER_SUSPECT, reason);
	}
	tell_lcores(lb, w, w->doubt.silent);
}

void health_hint(struct lb *lb, struct worker *w)
{
	if (!may_hint(lb, w))
		return;
	w->doubt.hinted = true;
	w->doubt.hinted_ms = lb_now_ms(lb) | 1; /* never 0, like the time of a heartbeat */
	check_silence(lb, w);
}

static bool is_only_one(const struct lb *lb, const struct worker *w)
{
	for (const struct worker *other = workers_next(lb->pool, NULL); other != NULL;
	     other = workers_next(lb->pool, other))
		if (other->state == WORKER_ACTIVE && strcmp(other->spec.model, w->spec.model) == 0)
			return false;
	return true;
}

/* Hold back a flapping worker, unless it is the only one that can serve. */
static void check_suspect(struct lb *lb, struct worker *w)
{
	bool waited = (int32_t)(lb_now_ms(lb) - w->doubt.until_ms) >= 0;

	if (w->doubt.silent || (!waited && !is_only_one(lb, w)))
		return;
	w->doubt.ejected = false;
	registry_set_state(lb, w, WORKER_ACTIVE, registry_reason(w));
}

/* --- life ----------------------------------------------------------------------------------- */

/* True when it can get requests. Heartbeats may come before its address is resolved. */
static bool health_can_serve(const struct lb *lb, const struct worker *w)
{
	return w->ready && w->heartbeat_ms != 0 && !w->doubt.silent &&
	       lb->neighbour[w->number].resolved;
}

static const char *health_missing(const struct lb *lb, const struct worker *w)
{
	if (w->state == WORKER_PROBING)
		return "it did not answer the probe request";
	if (!w->ready)
		return "no agent.ready came";
	if (!lb->neighbour[w->number].resolved)
		return "its address does not answer ARP or neighbour discovery";
	return "no heartbeat of its loop came";
}

static void start_serving(struct lb *lb, struct worker *w)
{
	w->active_ms = lb_now_ms(lb);
	w->share = lb->config.slow_start_ms == 0 ? WORKER_SHARE_FULL : WORKER_SHARE_FULL / 10;
	settings_check_successor(lb, w);
	/* an operator drained it while it answered the probe */
	if (w->drain)
		return settings_hold(lb, w);
	registry_set_state(lb, w, WORKER_ACTIVE, registry_reason(w));
}

static void check_joining(struct lb *lb, struct worker *w)
{
	char reason[WORKER_REASON_MAX];

	if (lb_now_ms(lb) - (uint32_t)w->registered_ms > JOIN_MS) {
		snprintf(reason, sizeof(reason), "was not ready within %u s: %s", JOIN_MS / 1000,
			 health_missing(lb, w));
		return lb_worker_remove(lb, w, reason);
	}
	if (w->state == WORKER_JOINING && health_can_serve(lb, w))
		settings_check_successor(lb, w);
	if (w->state == WORKER_JOINING && health_can_serve(lb, w) && w->drain)
		return settings_hold(lb, w);
	if (w->state == WORKER_JOINING && health_can_serve(lb, w)) {
		if (!probe_start(lb, w))
			return start_serving(lb, w);
		return registry_set_state(lb, w, WORKER_PROBING,
					  "waiting for its answer to a probe");
	}
	if (w->state != WORKER_PROBING)
		return;
	switch (probe_result(lb, w)) {
	case PROBE_GOOD:
		return start_serving(lb, w);
	case PROBE_BAD:
		return lb_worker_remove(lb, w,
					"its model refused the probe request; see probe_bytes of "
					"its services");
	default:
		return;
	}
}

/* Slow start: raise the weight of a new worker in tenths. */
static void check_slow_start(struct lb *lb, struct worker *w)
{
	uint16_t share =
		workers_slow_start_share(lb_now_ms(lb) - w->active_ms, lb->config.slow_start_ms);

	share -= share % (WORKER_SHARE_FULL / 10);
	if (share == w->share)
		return;
	w->share = share;
	registry_publish(lb, w->spec.model);
}

/*
 * ms since the last heartbeat that an lcore which goes on should have received, on the slowest
 * link. One that stood still could receive none, which is no fault of the worker's. The clock wraps
 * after 49 days; differences of times stay right.
 */
static uint32_t heartbeat_age_ms(const struct lb *lb, const struct worker *w)
{
	int32_t oldest = 0, age;

	for (unsigned int i = 0; i < lb->n_lcores; i++) {
		const struct link *link = lb->link[i][w->number];
		uint32_t at, stood = lb->seen[i].until_ms;

		if (link == NULL)
			continue;
		at = __atomic_load_n(&link->heartbeat_ms, __ATOMIC_RELAXED);
		if (stood != 0 && (int32_t)(stood - at) > 0)
			at = stood;
		age = lb_now_ms(lb) - at;
		oldest = RTE_MAX(oldest, age);
	}
	return oldest;
}

/*
 * True after <limit> ms of silence, or after ten times <limit> even if the lcore still has packets
 * to receive.
 */
static bool is_dead(const struct lb *lb, const struct worker *w, uint32_t limit)
{
	return health_silence_ms(lb, w) > limit || heartbeat_age_ms(lb, w) / 10 > limit;
}

static void check_draining(struct lb *lb, struct worker *w)
{
	if (w->drained || settings_check_successor(lb, w) || !lb_worker_drained(lb, w))
		return;
	settings_end_replacement(lb, w);
	registry_set_state(lb, w, WORKER_DRAINING,
			   w->leaving ? "drained" : "drained by an operator");
	w->drained = true;
}

static void check_health(struct lb *lb, struct worker *w)
{
	uint32_t limit = lb->config.worker_timeout_ms + w->spec.max_run_ms;
	const char *error = links_error(lb, w);
	char reason[WORKER_REASON_MAX];

	w->heartbeat_ms = last_heartbeat(lb, w);
	if (error != NULL)
		return lb_worker_remove(lb, w, error);
	if (w->heartbeat_ms != 0 && is_dead(lb, w, limit)) {
		snprintf(reason, sizeof(reason),
			 "no heartbeat from its loop for %u ms (is a batch longer? --max-run-ms)",
			 limit);
		return lb_worker_remove(lb, w, reason);
	}
	/* The connection is closed and the loop has stopped: the agent's process has ended. */
	if (w->doubt.hinted && health_silence_ms(lb, w) > suspect_after_ms(lb, w))
		return lb_worker_remove(lb, w,
					"its agent's connection closed, and its loop is silent");
	resolve_doubt(lb, w->number, link_doubts(lb, w));
	check_silence(lb, w);
	switch (w->state) {
	case WORKER_JOINING:
	case WORKER_PROBING:
		return check_joining(lb, w);
	case WORKER_ACTIVE:
		if (settings_check_successor(lb, w))
			return;
		if (w->share != WORKER_SHARE_FULL)
			check_slow_start(lb, w);
		return;
	case WORKER_SUSPECT:
		if (!settings_check_successor(lb, w))
			check_suspect(lb, w);
		return;
	case WORKER_DRAINING:
		return check_draining(lb, w);
	default:
		return;
	}
}

void health_tick(struct lb *lb)
{
	for (struct worker *w = workers_next(lb->pool, NULL); w != NULL;
	     w = workers_next(lb->pool, w))
		check_health(lb, w);
}
