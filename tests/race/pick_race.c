/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control thread publishes pick tables while lcores pick from them and report quiescent states
 * now and then. ThreadSanitizer reports a table that is freed or changed too early; the lcores
 * report one that is incomplete.
 */
#include <pthread.h>
#include <stdio.h>

#include <rte_log.h>
#include <rte_malloc.h>

#include "../unit/conntrack_fixture.h"
#include "membership/registry.h"
#include "lb.h"
#include "lcore/lb_private.h"
#include "../unit/pick_table.h"

#define LCORES   2
#define WORKERS  6
#define CHANGES  60
#define PER_TURN 32 /* picks between two quiescent states */
#define MODEL    "llama"

struct picker {
	struct lb *lb;
	unsigned int index;
	bool *stop;
	uint64_t picks, turns, wrong;
	struct pick_load load;
};

static struct picker picker[LCORES];

static void pick(struct picker *p, unsigned int service, struct pick_state *state)
{
	const struct pick_table *table = __atomic_load_n(&p->lb->pick[service], __ATOMIC_ACQUIRE);
	uint16_t worker = workers_pick(table, &p->load, (uint32_t)p->picks * 2654435761u, state);

	p->wrong += table->n > WORKERS || (table->n > 0) != (worker != WORKER_NONE) ||
		    (worker != WORKER_NONE && !workers_pick_table_has(table, worker));
	p->picks++;
}

static void *picker_run(void *context)
{
	struct pick_state state[PICK_POLICIES] = {0};
	struct picker *p = context;

	rte_rcu_qsbr_thread_register(p->lb->qsbr, p->index);
	rte_rcu_qsbr_thread_online(p->lb->qsbr, p->index);
	while (!__atomic_load_n(p->stop, __ATOMIC_ACQUIRE)) {
		for (unsigned int i = 0; i < PER_TURN; i++)
			pick(p, i % PICK_POLICIES, &state[i % PICK_POLICIES]);
		rte_rcu_qsbr_quiescent(p->lb->qsbr, p->index);
		p->turns++;
	}
	rte_rcu_qsbr_thread_offline(p->lb->qsbr, p->index);
	rte_rcu_qsbr_thread_unregister(p->lb->qsbr, p->index);
	return NULL;
}

/* Makes the parts of a load balancer that publishing touches: one service for each policy. */
static struct lb *small_lb(struct worker *worker[])
{
	struct lb *lb = calloc(1, sizeof(*lb));
	char error[256];

	lb->pool = workers_pool_create();
	lb->settings = workers_settings_create();
	lb->tsc_per_ms = 1000000;
	lb->qsbr = rte_zmalloc(NULL, rte_rcu_qsbr_get_memsize(LCORES), RTE_CACHE_LINE_SIZE);
	if (!lb->pool || !lb->settings || !lb->qsbr || rte_rcu_qsbr_init(lb->qsbr, LCORES) != 0)
		abort();
	lb->config.n_services = PICK_POLICIES;
	for (unsigned int i = 0; i < PICK_POLICIES; i++) {
		snprintf(lb->config.service[i].model, LB_NAME_MAX, MODEL);
		lb->config.service[i].policy = i;
		lb->config.service[i].vip.family = 4;
		lb->pick[i] = pick_table_of_model(lb->pool, MODEL, i);
	}
	for (unsigned int i = 0; i < WORKERS; i++) {
		struct worker_spec spec = {.model = MODEL,
					   .slots = 64,
					   .max_request = 1472,
					   .max_reply = 1472,
					   .max_batch = 8,
					   .weight = 1,
					   .heartbeat_ms = 50};

		snprintf(spec.name, sizeof(spec.name), "gpu%u", i);
		worker[i] = workers_register(lb->pool, &spec, error, sizeof(error));
		if (!worker[i])
			abort();
	}
	return lb;
}

int main(void)
{
	struct worker *worker[WORKERS];
	pthread_t thread[LCORES];
	uint64_t wrong = 0, idle = 0;
	bool stop = false;
	struct lb *lb;

	fixture_eal();
	rte_log_set_global_level(RTE_LOG_ERR);
	lb = small_lb(worker);
	for (unsigned int i = 0; i < LCORES; i++) {
		picker[i] = (struct picker){.lb = lb, .index = i, .stop = &stop};
		for (unsigned int k = 0; k < WORKERS; k++)
			workers_load_open(&picker[i].load, k, 1);
		pthread_create(&thread[i], NULL, picker_run, &picker[i]);
	}
	for (uint32_t n = 0; n < CHANGES; n++) {
		struct worker *w = worker[n * 7 % WORKERS];

		registry_set_state(lb, w,
				   w->state == WORKER_ACTIVE ? WORKER_DRAINING : WORKER_ACTIVE, "");
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	for (unsigned int i = 0; i < LCORES; i++) {
		pthread_join(thread[i], NULL);
		wrong += picker[i].wrong;
		idle += picker[i].turns == 0;
	}
	printf("%d changes against %lu and %lu picks, %lu wrong\n", CHANGES,
	       (unsigned long)picker[0].picks, (unsigned long)picker[1].picks,
	       (unsigned long)wrong);
	lcores_end(lb);
	for (unsigned int i = 0; i < PICK_POLICIES; i++)
		workers_pick_table_destroy(lb->pick[i]);
	workers_pool_destroy(lb->pool);
	workers_settings_destroy(lb->settings);
	rte_free(lb->qsbr);
	free(lb);
	return wrong == 0 && idle == 0 ? 0 : 1;
}
