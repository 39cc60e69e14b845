/* SPDX-License-Identifier: BSD-3-Clause */
/* Joining, leaving and dying at random times, or one after the other. */
#include "pool/pool_workers.h"

#define ROLL_PAUSE_MS 50 /* between a worker's leaving and its return */

static void wait_for_next(struct pool *pool, double seconds)
{
	struct timeval t = {.tv_sec = (time_t)seconds,
			    .tv_usec = (suseconds_t)((seconds - (double)(time_t)seconds) * 1e6)};

	evtimer_add(pool->next_event, &t);
}

/* Returns any worker in this state, or NULL. */
static struct pool_worker *any(struct pool *pool, enum pool_state state)
{
	uint64_t n = pool->options.workers, first = draw_next(&pool->draw) % n;

	for (uint64_t i = 0; i < n; i++)
		if (pool->worker[(first + i) % n].state == state)
			return &pool->worker[(first + i) % n];
	return NULL;
}

static unsigned int serving(const struct pool *pool)
{
	unsigned int n = 0;

	for (uint64_t i = 0; i < pool->options.workers; i++)
		n += pool->worker[i].state == POOL_SERVING;
	return n;
}

static void join(struct pool *pool, struct pool_worker *worker)
{
	pool->joins++;
	pool_say(pool, "join", worker);
	pool_join(worker);
}

static void remove_one(struct pool *pool, struct pool_worker *worker)
{
	switch (draw_next(&pool->draw) % (pool->options.hang ? 3 : 2)) {
	case 0:
		pool->leaves++;
		pool_say(pool, "leave", worker);
		return pool_leave(worker);
	case 1:
		pool->kills++;
		pool_say(pool, "kill", worker);
		return pool_kill(worker);
	default:
		/* The load balancer notices it, and the session registers again. */
		pool->hangs++;
		pool_say(pool, "hang", worker);
		__atomic_store_n(&worker->model.hung, 1, __ATOMIC_RELAXED);
	}
}

/* One event: workers come back as often as they go, and at least half of the pool stays. */
static void happen(struct pool *pool)
{
	struct pool_worker *away = any(pool, POOL_AWAY), *there = any(pool, POOL_SERVING);
	bool few = serving(pool) <= (pool->options.workers + 1) / 2;

	pool->happened++;
	if (away != NULL && (few || there == NULL || draw_next(&pool->draw) % 2 == 0))
		join(pool, away);
	else if (there != NULL && !few)
		remove_one(pool, there);
	else
		pool->happened--; /* all workers are changing: try again the next time */
}

static void roll_on(struct pool *pool)
{
	if (pool->rolling == pool->options.workers)
		return pool_say(pool, "done", NULL);
	pool->leaves++;
	pool_say(pool, "leave", &pool->worker[pool->rolling]);
	pool_leave(&pool->worker[pool->rolling]);
}

static void on_time(evutil_socket_t fd, short what, void *context)
{
	struct pool *pool = context;
	const struct pool_options *o = &pool->options;

	if (o->roll) {
		join(pool, &pool->worker[pool->rolling++]);
		return roll_on(pool);
	}
	happen(pool);
	if (pool->happened == o->events)
		return pool_say(pool, "done", NULL);
	/* Events come at random: gaps of a Poisson process with this many events in this many
	 * seconds. */
	wait_for_next(pool, draw_exponential(&pool->draw, o->seconds / (double)o->events));
}

void pool_churn_left(struct pool_worker *worker)
{
	if (worker->pool->options.roll && worker->pool->next_event != NULL)
		wait_for_next(worker->pool, ROLL_PAUSE_MS / 1e3);
}

void pool_churn_start(struct pool *pool)
{
	pool->next_event = evtimer_new(pool->base, on_time, pool);
	draw_init(&pool->draw, pool->options.seed, 0);
	if (pool->options.roll)
		roll_on(pool);
	else if (pool->options.events != 0)
		wait_for_next(pool, 0);
}
