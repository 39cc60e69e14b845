/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loop on a CPU thread: the default where there is no GPU, and what most tests run. It does
 * what the GPU's loop does, in the same order, with the same posting routine.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loop/loop_cpu.h"
#include "loop/loop_steps.h"
#include "loop/loop_turns.h"
#include "loop/model_load.h"
#include "runtime/clock.h"

/* --- posting -----------------------------------------------------------------------------------
 */

bool loop_cpu_post(struct agent_loop *loop, struct agent_link *link, const struct mlx5_write *write)
{
	/* There is room: cpu_link_spare() was asked before a request was taken or a heartbeat made.
	 */
	cpu_link_reap(link, &loop->stats);
	if (link->dead)
		return false;
	mlx5_wqe_build(&link->queue, link->built++, write);
	return true;
}

uint32_t loop_cpu_unread(const struct agent_loop *loop)
{
	uint32_t n = 0;

	for (unsigned int i = 0; i < loop->params.n_links; i++)
		n += cpu_link_unread(&loop->params.links[i]);
	return n;
}

void loop_cpu_heartbeat(struct agent_loop *loop, uint64_t now, uint32_t open)
{
	uint32_t backlog;

	if (now < loop->next_heartbeat)
		return;
	backlog = open + loop_cpu_unread(loop);
	loop->next_heartbeat = now + loop->params.heartbeat_ms * 1000000ull;
	for (unsigned int i = 0; i < loop->params.n_links; i++) {
		struct agent_link *link = &loop->params.links[i];
		struct mlx5_write write = agent_heartbeat(link, backlog);

		if (cpu_link_spare(link, &loop->stats) == 0)
			continue;
		if (loop->by_turns != NULL)
			write.imm |= RING_IMM_BY_DEADLINE;
		loop_cpu_post(loop, link, &write);
		cpu_link_ring(&loop->params, link);
	}
	loop->stats.backlog = backlog;
	loop->stats.heartbeats++;
}

/* Do requests wait until there is a WQE for their replies? */
static bool loop_waits_for_room(const struct agent_loop *loop)
{
	for (unsigned int i = 0; i < loop->params.n_links; i++) {
		struct agent_link *link = &loop->params.links[i];

		if (!link->dead && mlx5_room(&link->queue) <= link->built + link->staged &&
		    cpu_link_unread(link) > 0)
			return true;
	}
	return false;
}

void loop_cpu_back_off(struct agent_loop *loop, uint64_t ns, bool (*look)(struct agent_loop *loop))
{
	loop->idle++;
	switch (loop->params.idle_sleep ? sleeper_step(loop->params.sleeper, loop->idle)
					: SLEEPER_SPIN) {
	case SLEEPER_SPIN:
		break;
	case SLEEPER_YIELD:
		sleeper_yield(loop->params.sleeper);
		break;
	case SLEEPER_SLEEP:
		sleeper_prepare(loop->params.sleeper);
		if (look(loop) || loop_cpu_stops(loop))
			sleeper_cancel(loop->params.sleeper);
		else if (ns > LOOP_PENDING_NS && loop_waits_for_room(loop))
			sleeper_wait(loop->params.sleeper, LOOP_PENDING_NS);
		else
			sleeper_wait(loop->params.sleeper, ns);
		break;
	}
}

/* --- wait_inputs ---------------------------------------------------------------------------------
 */

uint32_t loop_cpu_take(struct agent_loop *loop, uint64_t now, struct intake *request,
		       struct agent_link **of, uint32_t max)
{
	unsigned int last = loop->first_link;
	uint32_t n = 0;

	for (unsigned int i = 0; i < loop->params.n_links; i++) {
		unsigned int at = (loop->first_link + i) % loop->params.n_links;
		uint32_t taken = cpu_link_take(&loop->params, &loop->params.links[at], now,
					       &request[n], max - n, &loop->stats);

		last = taken > 0 ? at : last;
		while (taken-- > 0)
			of[n++] = &loop->params.links[at];
	}
	/* The next one is first: a link that always fills the batch must not come before it again,
	 * wherever the looks begin. */
	if (max > 0)
		loop->first_link = (last + 1) % loop->params.n_links;
	return n;
}

/* --- turns, where others run on the same machine ------------------------------------------------
 */

static void loop_cannot_take_turns(const struct agent_loop *loop, int ret)
{
	fprintf(stderr, "loop: cannot take turns by %s: %s; the agent exits\n", loop->params.turns,
		strerror(-ret));
	_exit(EXIT_FAILURE);
}

void loop_cpu_take_turn(struct agent_loop *loop, uint64_t run_ns, uint32_t open)
{
	int ret = 0;

	if (loop->params.turns == NULL || loop->has_turn)
		return;
	while (ret == 0) {
		uint64_t now = clock_now_ns();

		loop_cpu_heartbeat(loop, now, open);
		ret = turns_ask(&loop->turns, run_ns, now);
		if (ret == 0)
			turns_sleep(&loop->turns, TURNS_SAY_NS);
	}
	if (ret < 0)
		loop_cannot_take_turns(loop, ret);
	loop->has_turn = true;
}

bool loop_cpu_try_turn(struct agent_loop *loop, uint64_t now)
{
	int ret = turns_try(&loop->turns, now);

	if (ret < 0)
		loop_cannot_take_turns(loop, ret);
	loop->has_turn = ret > 0;
	return loop->has_turn;
}

void loop_cpu_give_turn(struct agent_loop *loop)
{
	if (loop->has_turn)
		turns_give(&loop->turns);
	loop->has_turn = false;
}

static bool loop_finds(struct agent_loop *loop, uint64_t now)
{
	struct batch *b = &loop->batch;

	b->n += loop_cpu_take(loop, now, &b->request[b->n], &b->link[b->n],
			      loop->params.max_batch - b->n);
	return b->n > 0;
}

static bool loop_look(struct agent_loop *loop)
{
	return loop_finds(loop, clock_now_ns());
}

/* Wait until there is a batch: it is full, or its first request has waited for batch_timeout_us.
 * False: stop. */
static bool wait_inputs(struct agent_loop *loop)
{
	uint64_t timeout = loop->params.batch_timeout_us * 1000ull;
	struct batch *b = &loop->batch;
	uint64_t now;

	b->n = 0;
	while (!loop_cpu_stops(loop)) {
		now = clock_now_ns();
		loop_cpu_heartbeat(loop, now, b->n);
		loop_finds(loop, now);
		if (b->n == loop->params.max_batch ||
		    (b->n > 0 && now - b->request[0].seen_ns >= timeout)) {
			loop->idle = 0;
			return true;
		}
		if (b->n == 0)
			loop_cpu_back_off(
				loop, loop->next_heartbeat > now ? loop->next_heartbeat - now : 0,
				loop_look);
	}
	return false;
}

/* --- gather, model, scatter ---------------------------------------------------------------------
 */

/* A CPU copies nothing: the model reads the payloads and writes the reply buffers in place. */
static void gather_items(struct agent_loop *loop)
{
	struct batch *b = &loop->batch;

	b->start_ns = clock_now_ns();
	b->n_runs = 0;
	for (uint32_t i = 0; i < b->n; i++) {
		struct intake *request = &b->request[i];
		const struct agent_link *link = b->link[i];

		request->status = intake_recheck(request, link->cancels, b->start_ns);
		if (request->status != RING_OK)
			continue;
		b->item[b->n_runs] = (struct agent_model_item){
			.request = link->payloads + (uint64_t)request->payload * RING_ALIGNMENT,
			.request_length = request->length,
			.reply = cpu_link_reply(link, request->slot) + sizeof(struct ring_reply),
		};
		b->runs[b->n_runs++] = i;
	}
}

/* Run the smallest batch of the model's that has room for the requests. */
static void run_rows(struct agent_loop *loop, struct batch *b)
{
	const struct agent_loop_params *p = &loop->params;
	uint32_t bucket = agent_bucket(&p->buckets, b->n_runs);
	uint64_t start_ns = clock_now_ns();

	if (agent_model_has_buckets(p->model) && p->buckets.n > 1)
		p->model->run_bucket(p->model_state, b->item, b->n_runs, p->buckets.rows[bucket]);
	else
		p->model->run(p->model_state, b->item, b->n_runs);
	loop->stats.bucket_batches[bucket]++;
	loop->stats.bucket_run_ns[bucket] += clock_now_ns() - start_ns;
}

static void run_model(struct agent_loop *loop)
{
	struct batch *b = &loop->batch;

	if (b->n_runs > 0)
		run_rows(loop, b);
	b->done_ns = clock_now_ns();
	if (b->done_ns - b->start_ns > loop->stats.longest_run_ns)
		loop->stats.longest_run_ns = b->done_ns - b->start_ns;
}

static void scatter(struct agent_loop *loop)
{
	struct batch *b = &loop->batch;
	uint16_t backlog = ring_reply_backlog(loop_cpu_unread(loop) + loop_turns_wait(loop));

	for (uint32_t i = 0; i < b->n; i++) {
		struct ring_reply header = {
			.sequence = b->request[i].sequence,
			.seen_ns = b->request[i].seen_ns,
			.start_ns = b->start_ns,
			.done_ns = b->done_ns,
			.backlog = backlog,
		};

		memcpy(cpu_link_reply(b->link[i], b->request[i].slot), &header, sizeof(header));
	}
	for (uint32_t i = 0; i < b->n_runs; i++) {
		const struct agent_model_item *item = &b->item[i];
		struct intake *request = &b->request[b->runs[i]];
		uint32_t length = item->reply_length;

		if (item->status != 0 || length > loop->params.max_reply) {
			request->status = RING_ERROR;
			continue;
		}
		memcpy(cpu_link_reply(b->link[b->runs[i]], request->slot) +
			       offsetof(struct ring_reply, length),
		       &length, sizeof(length));
	}
}

/* --- send_outputs --------------------------------------------------------------------------------
 */

static void send_outputs(struct agent_loop *loop)
{
	struct batch *b = &loop->batch;
	struct mlx5_write write;
	uint32_t length;

	for (uint32_t i = 0; i < b->n; i++) {
		struct agent_link *link = b->link[i];
		const struct intake *request = &b->request[i];

		memcpy(&length,
		       cpu_link_reply(link, request->slot) + offsetof(struct ring_reply, length),
		       sizeof(length));
		write = cpu_link_answer(link, request, sizeof(struct ring_reply) + length, 0, false,
					&loop->stats);
		loop_cpu_post(loop, link, &write);
	}
	for (unsigned int i = 0; i < loop->params.n_links; i++)
		cpu_link_ring(&loop->params, &loop->params.links[i]);
	loop->stats.batches++;
}

/* --- start and stop ----------------------------------------------------------------------------
 */

static void *loop_thread(void *argument)
{
	struct agent_loop *loop = argument;

	while (loop->by_turns != NULL ? loop_turns_gather(loop) : wait_inputs(loop)) {
		gather_items(loop);
		if (loop->by_turns != NULL)
			loop_turns_begin(loop);
		run_model(loop);
		if (loop->by_turns != NULL)
			loop_turns_end(loop);
		scatter(loop);
		send_outputs(loop);
	}
	loop_cpu_give_turn(loop);
	return NULL;
}

static void free_loop(struct agent_loop *loop)
{
	free(loop->batch.request);
	free(loop->batch.link);
	free(loop->batch.item);
	free(loop->batch.runs);
	if (loop->params.turns != NULL)
		turns_close(&loop->turns);
	loop_turns_destroy(loop);
	loop_steps_destroy(loop);
	free(loop);
}

static int create_batch(struct agent_loop *loop)
{
	uint32_t n = loop->params.max_batch;
	struct batch *b = &loop->batch;

	b->request = calloc(n, sizeof(*b->request));
	b->link = calloc(n, sizeof(*b->link));
	b->item = calloc(n, sizeof(*b->item));
	b->runs = calloc(n, sizeof(*b->runs));
	return b->request != NULL && b->link != NULL && b->item != NULL && b->runs != NULL ? 0 : -1;
}

static struct agent_loop *loop_cpu_start(const struct agent_loop_params *params, char *error,
					 size_t size)
{
	struct agent_loop *loop = calloc(1, sizeof(*loop));
	bool steps = agent_model_steps(params->model);

	if (loop == NULL)
		goto no_memory;
	loop->params = *params;
	agent_buckets_cut(&loop->params.buckets, params->max_batch);
	if (params->turns != NULL && turns_open(&loop->turns, params->turns, error, size) < 0) {
		free(loop);
		return NULL;
	}
	if (loop->params.hang_ms == 0)
		loop->params.hang_ms = AGENT_HANG_MS;
	if ((steps ? loop_steps_create(loop) : create_batch(loop)) < 0 ||
	    (!steps && params->turns != NULL && loop_turns_create(loop) < 0))
		goto no_memory;
	if (pthread_create(&loop->thread, NULL, steps ? loop_steps_thread : loop_thread, loop) !=
	    0) {
		snprintf(error, size,
			 "cannot start a thread for the loop; is there a limit on processes "
			 "(ulimit -u)?");
		free_loop(loop);
		return NULL;
	}
	pthread_setname_np(loop->thread, "agent-loop");
	return loop;

no_memory:
	snprintf(error, size, "no memory for batches of %u", params->max_batch);
	if (loop != NULL)
		free_loop(loop);
	return NULL;
}

/* A thread inside a model cannot be stopped, nor its memory freed: then the process exits. */
static void loop_cpu_stop(struct agent_loop *loop)
{
	struct timespec until;

	if (loop == NULL)
		return;
	__atomic_store_n(&loop->stop, 1, __ATOMIC_RELEASE);
	sleeper_wake(loop->params.sleeper);
	until = clock_after_ms(CLOCK_MONOTONIC, loop->params.hang_ms);
	if (pthread_clockjoin_np(loop->thread, NULL, CLOCK_MONOTONIC, &until) != 0) {
		fprintf(stderr, "loop: the model does not end within %u ms; the agent exits\n",
			loop->params.hang_ms);
		_exit(EXIT_FAILURE);
	}
	free_loop(loop);
}

static void loop_cpu_stats(const struct agent_loop *loop, struct agent_loop_stats *out)
{
	*out = loop->stats;
}

static bool loop_cpu_failed(const struct agent_loop *loop, char *why, size_t size)
{
	return false;
}

const struct agent_loop_ops agent_loop_cpu = {
	.name = "cpu",
	.batch_max = UINT32_MAX,
	.start = loop_cpu_start,
	.stop = loop_cpu_stop,
	.stats = loop_cpu_stats,
	.failed = loop_cpu_failed,
};
