/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which worker takes a request: the policy's choice, or the flow's own, among those that have a
 * credit and would be done in time.
 */
#include "lcore.h"

bool choose_has_workers(const struct lcore *lc, uint16_t service)
{
	const struct pick_table *table = lcore_pick_table(lc, service);

	return table != NULL && table->n > 0;
}

static bool keeps_worker(const struct lcore *lc, const struct pick_table *table,
			 const struct flow *flow)
{
	const struct link *link;

	if (flow->worker == WORKER_NONE || !workers_pick_table_has(table, flow->worker))
		return false;
	link = lc->link[flow->worker];
	return link != NULL && link->worker_generation == flow->worker_generation;
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
	    !link_reserve(link, requester_packets(&link->requester, length)))
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

static struct link *choose(struct lcore *lc, const struct pick_table *table, uint32_t hash,
			   uint32_t length, struct choice *choice)
{
	uint16_t worker = workers_pick(table, &lc->load, hash, &lc->service[choice->service].pick);
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

struct link *choose_worker(struct lcore *lc, struct flow *flow, uint32_t hash,
			   const struct rte_mbuf *m, uint64_t deadline, bool *late)
{
	struct choice choice = {.service = flow->service, .deadline = deadline};
	const struct pick_table *table = lcore_pick_table(lc, flow->service);
	bool pinned = lcore_service_config(lc, flow->service)->affinity == LB_AFFINITY_FLOW;
	struct link *link;

	*late = false;
	if (pinned && keeps_worker(lc, table, flow)) {
		*late = deadline != 0 && !in_time(lc, flow->worker, deadline);
		return *late ? NULL : claim(lc, flow->worker, m->data_len);
	}
	link = choose(lc, table, hash, m->data_len, &choice);
	*late = choice.late;
	if (link != NULL) {
		flow->worker = link->worker;
		flow->worker_generation = link->worker_generation;
	}
	return link;
}
