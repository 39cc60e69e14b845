/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One thread that runs the loops of all workers: each takes requests, is busy until the model would
 * be done, and answers, as gpu-agent/loop/loop_cpu.c does with a thread per worker.
 */
#include "pool/pool_workers.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "loop/cpu_link.h"

#define NAP_NS 200000ull /* ns; an idle loop may see a request this late */

struct agent_loop {
	struct agent_loop_params params;
	struct pool_model *model;
	struct agent_loop *next;
	struct intake *request;
	struct agent_link **link;
	uint32_t n;       /* in the batch */
	uint64_t done_ns; /* end of the batch that runs; 0: none does */
	uint64_t start_ns, next_heartbeat;
	struct agent_loop_stats stats;
};

static struct {
	pthread_t thread;
	pthread_mutex_t lock; /* over the list; held through a round */
	struct agent_loop *first;
	int stop; /* atomic */
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- posting ---------------------------------------------------------------------------------- */

/* There is room for twice the slots: a reply always finds a place, a heartbeat may not. */
static bool post(struct agent_loop *loop, struct agent_link *link, const struct mlx5_write *write)
{
	cpu_link_reap(link, &loop->stats);
	if (link->dead || mlx5_room(&link->queue) <= link->built)
		return false;
	mlx5_wqe_build(&link->queue, link->built++, write);
	return true;
}

/* Requests that wait unread in the rings. */
static uint32_t unread(const struct agent_loop *loop)
{
	uint32_t n = 0;

	for (unsigned int i = 0; i < loop->params.n_links; i++)
		n += cpu_link_unread(&loop->params.links[i]);
	return n;
}

static void heartbeat(struct agent_loop *loop, uint64_t now)
{
	uint32_t backlog;

	if (now < loop->next_heartbeat)
		return;
	backlog = loop->n + unread(loop);
	loop->next_heartbeat = now + loop->params.heartbeat_ms * 1000000ull;
	for (unsigned int i = 0; i < loop->params.n_links; i++) {
		struct agent_link *link = &loop->params.links[i];
		struct mlx5_write write = agent_heartbeat(link, backlog);

		post(loop, link, &write);
		cpu_link_ring(&loop->params, link);
	}
	loop->stats.heartbeats++;
}

/* --- one batch after the other -------------------------------------------------------------------
 */

static void take(struct agent_loop *loop, struct agent_link *link, uint64_t now)
{
	uint32_t taken = cpu_link_take(&loop->params, link, now, &loop->request[loop->n],
				       loop->params.max_batch - loop->n, &loop->stats);

	while (taken-- > 0)
		loop->link[loop->n++] = link;
}

static void begin(struct agent_loop *loop, uint64_t now)
{
	struct pool_model *model = loop->model;
	double takes_us;

	for (unsigned int i = 0; i < loop->params.n_links; i++)
		take(loop, &loop->params.links[i], now);
	if (loop->n == 0)
		return;
	for (uint32_t i = 0; i < loop->n; i++)
		loop->request[i].status =
			intake_recheck(&loop->request[i], loop->link[i]->cancels, now);
	takes_us = model->batch_us + loop->n * model->each_us;
	if (model->exponential)
		takes_us = draw_exponential(&model->draw, takes_us);
	loop->start_ns = now;
	loop->done_ns = now + (uint64_t)(takes_us * 1e3) + 1;
}

/* The reply is the request. */
static void answer(struct agent_loop *loop, uint32_t i, uint64_t now, uint32_t backlog)
{
	const struct intake *request = &loop->request[i];
	struct agent_link *link = loop->link[i];
	uint8_t *reply = cpu_link_reply(link, request->slot);
	struct ring_reply header = {
		.sequence = request->sequence,
		.seen_ns = request->seen_ns,
		.start_ns = loop->start_ns,
		.done_ns = now,
		.length = request->status == RING_OK ? request->length : 0,
		.backlog = ring_reply_backlog(backlog),
	};
	struct mlx5_write write = cpu_link_answer(link, request, sizeof(header) + header.length, 0,
						  false, &loop->stats);

	memcpy(reply, &header, sizeof(header));
	memcpy(reply + sizeof(header), link->payloads + (uint64_t)request->payload * RING_ALIGNMENT,
	       header.length);
	post(loop, link, &write);
}

static void finish(struct agent_loop *loop, uint64_t now)
{
	uint32_t backlog = unread(loop);

	for (uint32_t i = 0; i < loop->n; i++)
		answer(loop, i, now, backlog);
	for (unsigned int i = 0; i < loop->params.n_links; i++)
		cpu_link_ring(&loop->params, &loop->params.links[i]);
	loop->stats.batches++;
	if (now - loop->start_ns > loop->stats.longest_run_ns)
		loop->stats.longest_run_ns = now - loop->start_ns;
	loop->n = 0;
	loop->done_ns = 0;
}

/* Returns the time until which it only has to poll. */
static uint64_t turn(struct agent_loop *loop, uint64_t now)
{
	if (__atomic_load_n(&loop->model->hung, __ATOMIC_RELAXED))
		return UINT64_MAX;
	heartbeat(loop, now);
	if (loop->done_ns != 0 && now >= loop->done_ns)
		finish(loop, now);
	if (loop->done_ns == 0)
		begin(loop, now);
	return loop->done_ns != 0 ? loop->done_ns : UINT64_MAX;
}

/* --- the thread ----------------------------------------------------------------------------------
 */

static void *run(void *argument)
{
	while (!__atomic_load_n(&all.stop, __ATOMIC_ACQUIRE)) {
		uint64_t now = clock_now_ns(), until = now + NAP_NS;
		struct timespec nap = {0};

		pthread_mutex_lock(&all.lock);
		for (struct agent_loop *loop = all.first; loop != NULL; loop = loop->next) {
			uint64_t due = turn(loop, now);

			until = due < until ? due : until;
		}
		pthread_mutex_unlock(&all.lock);
		now = clock_now_ns();
		if (until <= now)
			continue;
		nap.tv_nsec = (long)(until - now);
		nanosleep(&nap, NULL);
	}
	return NULL;
}

int pool_loop_open(void)
{
	return -pthread_create(&all.thread, NULL, run, NULL);
}

void pool_loop_close(void)
{
	__atomic_store_n(&all.stop, 1, __ATOMIC_RELEASE);
	pthread_join(all.thread, NULL);
}

static void free_loop(struct agent_loop *loop)
{
	free(loop->request);
	free(loop->link);
	free(loop);
}

static struct agent_loop *start(const struct agent_loop_params *params, char *error, size_t size)
{
	struct agent_loop *loop = calloc(1, sizeof(*loop));

	if (loop == NULL)
		return NULL;
	loop->params = *params;
	loop->model = params->model_state;
	loop->request = calloc(params->max_batch, sizeof(*loop->request));
	loop->link = calloc(params->max_batch, sizeof(*loop->link));
	if (loop->request == NULL || loop->link == NULL) {
		snprintf(error, size, "no memory for batches of %u", params->max_batch);
		free_loop(loop);
		return NULL;
	}
	/* A worker that registers again does not hang any more. */
	__atomic_store_n(&loop->model->hung, 0, __ATOMIC_RELAXED);
	pthread_mutex_lock(&all.lock);
	loop->next = all.first;
	all.first = loop;
	pthread_mutex_unlock(&all.lock);
	return loop;
}

static void stop(struct agent_loop *loop)
{
	struct agent_loop **at;

	if (loop == NULL)
		return;
	pthread_mutex_lock(&all.lock);
	for (at = &all.first; *at != loop; at = &(*at)->next)
		;
	*at = loop->next;
	pthread_mutex_unlock(&all.lock);
	free_loop(loop);
}

static void read_stats(const struct agent_loop *loop, struct agent_loop_stats *out)
{
	*out = loop->stats;
}

static bool failed(const struct agent_loop *loop, char *why, size_t size)
{
	return false;
}

const struct agent_loop_ops pool_loop = {
	.name = "pool",
	.batch_max = UINT32_MAX,
	.start = start,
	.stop = stop,
	.stats = read_stats,
	.failed = failed,
};
