/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The policies' own code in simulated time: four workers that take requests one by one, one of them
 * five times slower; requests come at random (Poisson) at 70 % of the four workers' capacity. A
 * request that finds no credit waits in one queue. Latency is from arrival to answer.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pool/pool_bench.h"

#define WORKERS  4
#define SLOTS    256
#define QUEUE    1024 /* a full queue refuses, as the load balancer's does */
#define FAST_NS  1000000.0
#define SLOWER   5
#define LOAD     0.7
#define REQUESTS 200000
#define WARM_UP  20000
#define NOT_YET  INFINITY

struct request {
	double came;
};

/* A worker: first in, first out, one request at a time. */
struct server {
	struct request slot[SLOTS];
	unsigned int head, n;
	double run_ns, started, ends;
};

struct sim {
	struct pick_table *table;
	struct pick_load load;
	struct pick_state state;
	struct server server[WORKERS];
	struct request queue[QUEUE];
	unsigned int head, waiting;
	uint64_t random, refused;
	double now, relax;
	double latency[REQUESTS];
	unsigned int answered;
};

static double chance(struct sim *s)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return ((double)(s->random >> 11) + 1) / 9007199254740993.0;
}

/* Runs differ by a tenth or two, as those of models do. */
static void start(struct sim *s, struct server *server)
{
	server->started = s->now;
	server->ends = s->now + server->run_ns * (0.8 + 0.4 * chance(s));
}

static bool give(struct sim *s, struct request request)
{
	uint32_t hash = (uint32_t)(chance(s) * UINT32_MAX);
	uint16_t worker = workers_pick(s->table, &s->load, hash, &s->state);
	struct server *server;

	if (worker == WORKER_NONE)
		return false;
	server = &s->server[worker];
	workers_load_sent(&s->load, worker, (uint64_t)s->now);
	server->slot[(server->head + server->n++) % SLOTS] = request;
	if (server->n == 1)
		start(s, server);
	return true;
}

static void come(struct sim *s)
{
	struct request request = {s->now};

	if (s->waiting == 0 && give(s, request))
		return;
	if (s->waiting == QUEUE)
		s->refused++;
	else
		s->queue[(s->head + s->waiting++) % QUEUE] = request;
}

static void answer(struct sim *s, struct server *server)
{
	uint16_t worker = (uint16_t)(server - s->server);

	if (s->answered < REQUESTS)
		s->latency[s->answered] = s->now - server->slot[server->head].came;
	s->answered++;
	server->head = (server->head + 1) % SLOTS;
	workers_load_answered(&s->load, worker, (uint64_t)s->now,
			      (uint64_t)(s->now - server->started));
	server->ends = NOT_YET;
	if (--server->n > 0)
		start(s, server);
	if (s->waiting > 0 && give(s, s->queue[s->head])) {
		s->head = (s->head + 1) % QUEUE;
		s->waiting--;
	}
}

static struct server *next_answer(struct sim *s)
{
	struct server *first = &s->server[0];

	for (unsigned int i = 1; i < WORKERS; i++)
		if (s->server[i].ends < first->ends)
			first = &s->server[i];
	return first;
}

static void run(struct sim *s, double every_ns)
{
	double coming = 0;

	while (s->answered < REQUESTS) {
		struct server *server = next_answer(s);

		if (s->now >= s->relax) {
			workers_load_relax(&s->load);
			s->relax += LOAD_RELAX_MS * 1e6;
		}
		if (coming <= server->ends) {
			s->now = coming;
			come(s);
			coming += -log(chance(s)) * every_ns;
		} else {
			s->now = server->ends;
			answer(s, server);
		}
	}
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double p99_ms(struct sim *s)
{
	qsort(s->latency + WARM_UP, REQUESTS - WARM_UP, sizeof(s->latency[0]), compare);
	return s->latency[WARM_UP + (REQUESTS - WARM_UP) * 99 / 100] / 1e6;
}

static double simulate(struct sim *s, enum pick_policy policy, unsigned int seed)
{
	struct worker_pool *pool = pool_create(WORKERS);
	double per_second = 0;

	memset(s, 0, sizeof(*s));
	workers_load_init(&s->load, 1000000000);
	s->random = 0x9e3779b97f4a7c15u * (seed + 1);
	s->table = pool_table(pool, policy);
	for (unsigned int i = 0; i < WORKERS; i++) {
		s->server[i].run_ns = i == WORKERS - 1 ? SLOWER * FAST_NS : FAST_NS;
		s->server[i].ends = NOT_YET;
		per_second += 1 / s->server[i].run_ns;
		workers_load_open(&s->load, i, SLOTS);
	}
	run(s, 1 / (LOAD * per_second));
	workers_pick_table_destroy(s->table);
	workers_pool_destroy(pool);
	return p99_ms(s);
}

void pool_sim(struct report *report, unsigned int seed)
{
	static struct sim sim;
	double p99[PICK_POLICIES];

	for (enum pick_policy policy = 0; policy < PICK_POLICIES; policy++) {
		p99[policy] = simulate(&sim, policy, seed);
		report_add(report, p99[policy], "p99_ms_%s", pick_policy_name(policy));
	}
	report_add(report, p99[PICK_ROUND_ROBIN] / p99[PICK_LEAST_OUTSTANDING],
		   "p99_rr_over_least_outstanding");
	report_add(report, p99[PICK_ROUND_ROBIN] / p99[PICK_EARLIEST_FINISH],
		   "p99_rr_over_earliest_finish");
	report_add(report, p99[PICK_POWER_OF_TWO] / p99[PICK_LEAST_OUTSTANDING],
		   "p99_p2c_over_least_outstanding");
}
