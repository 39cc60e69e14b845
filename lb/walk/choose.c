/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which worker takes a request: the policy's choice, or the flow's own, among those that have a
 * credit and would be done in time.
 */
#include "walk/choose.h"

#include "lcore/lcore.h"

bool choose_has_workers(const struct lcore *lc, uint16_t service)
{
	const struct pick_table *table = lcore_pick_table(lc, service);

	return table != NULL && table->n > 0;
}

/* Is it the same worker still that the flow's requests went to? */
static bool knows_worker(const struct lcore *lc, const struct flow *flow)
{
	const struct link *link = flow->worker == WORKER_NONE ? NULL : lc->link[flow->worker];

	return link != NULL && link->worker_generation == flow->worker_generation;
}

static bool keeps_worker(const struct lcore *lc, const struct pick_table *table,
			 const struct flow *flow)
{
	return workers_pick_table_has(table, flow->worker) && knows_worker(lc, flow);
}

static void keep_worker(struct flow *flow, const struct link *link)
{
	flow->worker = link->worker;
	flow->worker_generation = link->worker_generation;
}

struct choice {
	uint16_t service;
	uint64_t deadline; /* TSC; 0: none */
	bool late;         /* out: there are credits, and nobody would be done in time */
};

/* Take a credit of <worker> for a request of <packets>. NULL when it cannot have another now. */
static struct link *claim(struct lcore *lc, uint16_t worker, uint32_t length)
{
	struct link *link = lc->link[worker];

	/* Longer than its slots: a reload may have brought it to another model. */
	if (lc->load.credits[worker] == 0 || length > link->stride ||
	    !link_reserve(link, requester_packets(&link->requester, length), link->kept_back,
			  lc->link_max))
		return NULL;
	workers_load_sent(&lc->load, worker, lc->now);
	return link;
}

/* So many are asked at most when the policy's choice will not do: requests must not cost more, the
 * more workers there are. */
#define TRIES 32

/* The policy's choice cannot take it: whoever can. */
static struct link *claim_any(struct lcore *lc, const struct pick_table *table, uint32_t hash,
			      uint32_t length)
{
	uint16_t tries = RTE_MIN(table->n, TRIES);
	struct link *link = NULL;

	for (uint16_t i = 0; i < tries && link == NULL; i++)
		link = claim(lc, table->worker[(hash + i) % table->n], length);
	return link;
}

/*
 * Is <worker> expected to be done with one more by then, with a quarter to spare? What is admitted
 * up to the last moment is late whenever something takes longer than usual.
 */
static bool in_time(const struct lcore *lc, uint16_t worker, uint64_t deadline)
{
	uint64_t ns = workers_expected_finish_ns(&lc->load, worker);

	return lc->now + ns * lc->lb->tsc_per_ms / 800000 <= deadline;
}

/* The policy's choice would be late: one who would not be. */
static uint16_t pick_in_time(const struct lcore *lc, const struct pick_table *table, uint32_t hash,
			     uint64_t deadline)
{
	uint16_t tries = RTE_MIN(table->n, TRIES);

	/* It has asked that of all. */
	if (table->policy == PICK_EARLIEST_FINISH)
		return WORKER_NONE;
	for (uint16_t i = 0; i < tries; i++) {
		uint16_t worker = table->worker[(hash + i) % table->n];

		if (lc->load.credits[worker] != 0 && in_time(lc, worker, deadline))
			return worker;
	}
	return WORKER_NONE;
}

/* The policy's choice is <worker>, and a request of <length> goes there or elsewhere. */
static struct link *choose(struct lcore *lc, const struct pick_table *table, uint16_t worker,
			   uint32_t hash, uint32_t length, struct choice *choice)
{
	struct link *link;

	if (unlikely(choice->deadline != 0) && worker != WORKER_NONE &&
	    !in_time(lc, worker, choice->deadline)) {
		worker = pick_in_time(lc, table, hash, choice->deadline);
		choice->late = worker == WORKER_NONE;
		return choice->late ? NULL : claim(lc, worker, length);
	}
	link = worker == WORKER_NONE ? NULL : claim(lc, worker, length);
	if (likely(link != NULL))
		return link;
	/* Others than maglev have looked at all, and nobody has a credit. With a deadline, better
	 * wait than go to just anybody. */
	if ((worker == WORKER_NONE && table->policy != PICK_MAGLEV) || choice->deadline != 0)
		return NULL;
	return claim_any(lc, table, hash, length);
}

/* --- sticky flows ---------------------------------------------------------------------------- */

static bool could_take(const struct lcore *lc, const struct pick_table *table, uint16_t worker,
		       uint64_t deadline)
{
	return workers_pick_table_has(table, worker) && lc->load.credits[worker] != 0 &&
	       (likely(deadline == 0) || in_time(lc, worker, deadline));
}

static bool has_room(struct lcore *lc, const struct pick_table *table, uint16_t service,
		     uint16_t home)
{
	return workers_home_has_room(table, &lc->load, home, lc->link[home]->batch_share,
				     lcore_service_config(lc, service)->sticky_load_percent,
				     lc->now, &lc->service[service].all);
}

/*
 * Count where the request went, and remember the flow's home. One that is only saturated or silent
 * stays home: what it keeps of the flow is worth coming back to.
 */
static void settle(struct lcore *lc, struct flow *flow, uint16_t home, const struct link *link)
{
	struct lb_service_stats *stats = &lc->service[flow->service].stats;

	lc->service[flow->service].all.outstanding++;
	if (likely(link->worker == home))
		stats->went_home++;
	else if (home != WORKER_NONE)
		stats->spilled++;
	if (home != WORKER_NONE)
		link = lc->link[home];
	if (likely(link == NULL || (link->worker == flow->worker &&
				    link->worker_generation == flow->worker_generation)))
		return;
	stats->moved += flow->worker != WORKER_NONE;
	keep_worker(flow, link);
}

/* Home as long as there is room; else who is there, or home if it could take it all the same. */
static struct link *choose_sticky(struct lcore *lc, const struct pick_table *table,
				  struct flow *flow, uint32_t hash, uint32_t length,
				  struct choice *choice)
{
	uint16_t last = knows_worker(lc, flow) ? flow->worker : WORKER_NONE;
	uint16_t home = workers_home(table, hash, last);
	bool could = could_take(lc, table, home, choice->deadline);
	struct pick_state *state = &lc->service[choice->service].pick;
	struct link *link = NULL;
	uint16_t other = home;

	if (likely(could && has_room(lc, table, flow->service, home))) {
		link = claim(lc, home, length);
		/* It has a slot, but its link takes nothing now: nobody is to be compared with it.
		 */
		if (unlikely(link == NULL))
			other = WORKER_NONE;
	}
	if (unlikely(link == NULL)) {
		other = workers_pick_elsewhere(table, &lc->load, hash, other, state);
		link = choose(lc, table, other, hash, length, choice);
	}
	if (unlikely(link == NULL && could)) {
		link = claim(lc, home, length);
		choice->late = false;
	}
	if (likely(link != NULL))
		settle(lc, flow, home, link);
	return link;
}

struct link *choose_worker(struct lcore *lc, struct flow *flow, uint32_t hash,
			   const struct rte_mbuf *m, uint64_t deadline, bool *late)
{
	struct choice choice = {.service = flow->service, .deadline = deadline};
	const struct pick_table *table = lcore_pick_table(lc, flow->service);
	enum lb_affinity affinity = lcore_service_config(lc, flow->service)->affinity;
	struct link *link;
	uint16_t worker;

	/* All load balancers of the cluster choose alike. */
	if (unlikely(lc->lb->has_cluster_secret) &&
	    (affinity == LB_AFFINITY_STICKY || table->policy == PICK_MAGLEV))
		hash = conntrack_flow_hash(lc->ct, flow, &lc->lb->cluster_secret);
	if (affinity == LB_AFFINITY_STICKY) {
		link = choose_sticky(lc, table, flow, hash, m->data_len, &choice);
		*late = choice.late;
		return link;
	}
	*late = false;
	if (affinity == LB_AFFINITY_FLOW && keeps_worker(lc, table, flow)) {
		*late = deadline != 0 && !in_time(lc, flow->worker, deadline);
		return *late ? NULL : claim(lc, flow->worker, m->data_len);
	}
	worker = workers_pick(table, &lc->load, hash, &lc->service[flow->service].pick);
	link = choose(lc, table, worker, hash, m->data_len, &choice);
	*late = choice.late;
	if (link != NULL)
		keep_worker(flow, link);
	return link;
}

/* --- how much workers have before them ------------------------------------------------------- */

/* A worker should have this much work before it: it never waits for the next request, though this
 * lcore may be halted for a moment. */
#define AHEAD_NS 20e6f

/* How many requests it should have of this lcore at a time, by how fast it answers. */
static uint32_t depth_of(const struct lcore *lc, const struct link *link)
{
	float run = lc->load.run_ns[link->worker], gap = lc->load.gap_ns[link->worker];
	float depth = RTE_MAX(AHEAD_NS, 2 * run) / RTE_MAX(gap, 1.0f);

	if (!lc->load.meter[link->worker].measured || depth >= (float)link->slots)
		return link->slots;
	return RTE_MIN(RTE_MAX((uint32_t)depth + 1, 2 * link->batch_share), link->slots);
}

bool choose_waits_here(const struct lcore *lc, uint16_t service)
{
	const struct lb_service_config *config = lcore_service_config(lc, service);

	return config->affinity == LB_AFFINITY_REQUEST &&
	       (config->policy == PICK_LEAST_OUTSTANDING || config->policy == PICK_POWER_OF_TWO);
}

/* Do all services that it serves have their requests wait here? */
static bool all_wait_here(const struct lcore *lc, const struct link *link)
{
	for (unsigned int i = 0; i < lc->services->n; i++) {
		const struct pick_table *table = lcore_pick_table(lc, i);

		if (table != NULL && workers_pick_table_has(table, link->worker) &&
		    !choose_waits_here(lc, i))
			return false;
	}
	return true;
}

void choose_look(const struct lcore *lc, struct link *link)
{
	link->kept_back = all_wait_here(lc, link) ? link->slots - depth_of(lc, link) : 0;
}

/* Take one of the slots that are kept back, too. */
static struct link *claim_deep(struct lcore *lc, uint16_t worker, uint32_t length,
			       uint64_t deadline)
{
	struct link *link = lc->link[worker];

	if (lc->load.credits[worker] == 0 || length > link->stride ||
	    (deadline != 0 && !in_time(lc, worker, deadline)) ||
	    !link_reserve(link, requester_packets(&link->requester, length), 0, lc->link_max))
		return NULL;
	workers_load_sent(&lc->load, worker, lc->now);
	return link;
}

struct link *choose_deep(struct lcore *lc, struct flow *flow, uint32_t hash,
			 const struct rte_mbuf *m, uint64_t deadline)
{
	const struct pick_table *table = lcore_pick_table(lc, flow->service);
	uint16_t worker, tries = RTE_MIN(table->n, TRIES);
	struct link *link;

	worker = workers_pick(table, &lc->load, hash, &lc->service[flow->service].pick);
	if (worker == WORKER_NONE)
		return NULL;
	link = claim_deep(lc, worker, m->data_len, deadline);
	for (uint16_t i = 0; i < tries && link == NULL; i++)
		link = claim_deep(lc, table->worker[(hash + i) % table->n], m->data_len, deadline);
	if (link != NULL)
		keep_worker(flow, link);
	return link;
}
