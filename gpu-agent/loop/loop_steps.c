/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loop on a CPU thread for models whose replies come in pieces. Up to max_batch requests are
 * open; each turn goes on with those that are due, and others join them. A piece leaves as one
 * chunk of the reply. The next one is made in the same buffer, so not before the chunk was
 * acknowledged.
 */
#include <errno.h>
#include <stdlib.h>

#include "loop/loop_steps.h"
#include "runtime/clock.h"

/* A request whose reply is not complete. */
struct open_reply {
	struct intake request;
	struct agent_link *link;
	uint64_t due_ns;
	uint32_t chunks; /* that were sent */
	uint16_t wqe;    /* of the last one */
	bool pending;    /* it is not acknowledged */
	bool stepped;    /* the model knows of it, and has to be told when it ends early */
	bool over;
	uint8_t ending; /* enum ring_status that it ends with early; RING_OK: it goes on */
	struct agent_model_turn turn;
};

struct loop_steps {
	uint32_t n;
	struct open_reply *open; /* oldest first */
	/* one call of the model */
	uint32_t n_turns;
	struct agent_model_turn *turn;
	struct open_reply **of; /* whose turns they are */
	struct intake *taken;   /* requests of one ring */
};

/* --- requests ----------------------------------------------------------------------------------
 */

static void steps_join(struct agent_loop *loop, struct agent_link *link,
		       const struct intake *request)
{
	struct open_reply *o = &loop->steps->open[loop->steps->n++];

	*o = (struct open_reply){.request = *request, .link = link};
	o->turn = (struct agent_model_turn){
		.request = link->payloads + (uint64_t)request->payload * RING_ALIGNMENT,
		.request_length = request->length,
		.reply = cpu_link_reply(link, request->slot) + sizeof(struct ring_reply),
	};
}

static bool steps_take(struct agent_loop *loop)
{
	unsigned int last = loop->first_link;
	struct loop_steps *s = loop->steps;
	uint32_t before = s->n;
	uint64_t now = clock_now_ns();

	for (unsigned int i = 0; i < loop->params.n_links; i++) {
		unsigned int at = (loop->first_link + i) % loop->params.n_links;
		struct agent_link *link = &loop->params.links[at];
		uint32_t n = cpu_link_take(&loop->params, link, now, s->taken,
					   loop->params.max_batch - s->n, &loop->stats);

		last = n > 0 ? at : last;
		for (uint32_t k = 0; k < n; k++)
			steps_join(loop, link, &s->taken[k]);
	}
	/* As loop_cpu_take(). */
	if (before < loop->params.max_batch)
		loop->first_link = (last + 1) % loop->params.n_links;
	return s->n > before;
}

/* Was its last piece acknowledged? The queue's counters have 16 bits. */
static bool steps_is_sent(struct agent_loop *loop, struct open_reply *o)
{
	if (!o->pending)
		return true;
	cpu_link_reap(o->link, &loop->stats);
	o->pending = !o->link->dead && (int16_t)(o->link->queue.consumer - o->wqe) <= 0;
	return !o->pending;
}

/* --- pieces ------------------------------------------------------------------------------------
 */

static void steps_send(struct agent_loop *loop, struct open_reply *o, uint32_t length, bool more,
		       const struct ring_reply *times)
{
	struct ring_reply header = *times;
	struct mlx5_write write;

	header.sequence = o->request.sequence;
	header.seen_ns = o->request.seen_ns;
	header.length = length;
	header.chunk = (uint16_t)o->chunks;
	memcpy(cpu_link_reply(o->link, o->request.slot), &header, sizeof(header));
	write = cpu_link_answer(o->link, &o->request, sizeof(header) + length, o->chunks, more,
				&loop->stats);
	o->pending = loop_cpu_post(loop, o->link, &write);
	o->wqe = (uint16_t)(o->link->queue.producer + o->link->built - 1);
	o->chunks++;
}

/* Nothing more is sent of the request. */
static void steps_end(struct agent_loop *loop, struct open_reply *o, uint8_t status,
		      const struct ring_reply *times)
{
	o->request.status = status;
	steps_send(loop, o, 0, false, times);
	o->over = true;
}

/* The model has said in its last call what becomes of the request. */
static void steps_settle(struct agent_loop *loop, struct open_reply *o,
			 const struct ring_reply *times)
{
	const struct agent_model_turn *t = &o->turn;

	o->stepped = o->ending == RING_OK && t->more && t->status == 0;
	if (o->ending != RING_OK)
		return steps_end(loop, o, o->ending, times);
	if (t->status != 0)
		return steps_end(loop, o, RING_ERROR, times);
	/* No place for this piece, or for the end behind it: the next turn ends it. */
	if (t->reply_length > loop->params.max_reply ||
	    (t->more && o->chunks + 1 >= loop->params.max_pieces)) {
		o->ending = RING_ERROR;
		return;
	}
	if (t->reply_length > 0 || !t->more)
		steps_send(loop, o, t->reply_length, t->more, times);
	o->over = !t->more;
	o->due_ns = times->done_ns + t->wait_us * UINT64_C(1000);
}

/* --- turns -------------------------------------------------------------------------------------
 */

/* Has it to end early? */
static bool steps_ends(struct open_reply *o, uint64_t now)
{
	struct intake request = o->request;

	if (o->stepped) /* its client waits for the rest, and cancels it if it does not */
		request.deadline_us = 0;
	if (o->ending == RING_OK)
		o->ending = o->link->dead ? RING_CANCELLED
					  : intake_recheck(&request, o->link->cancels, now);
	return o->ending != RING_OK;
}

static void steps_choose(struct loop_steps *s, struct open_reply *o, bool gone)
{
	o->turn.gone = gone;
	o->turn.reply_length = 0;
	o->turn.status = 0;
	o->turn.wait_us = 0;
	o->turn.more = false;
	s->turn[s->n_turns] = o->turn;
	s->of[s->n_turns++] = o;
}

/* Chooses the requests of the next call. Returns when there may be another one, in ns from now. */
static uint64_t steps_gather(struct agent_loop *loop, uint64_t now)
{
	uint64_t left = loop->next_heartbeat > now ? loop->next_heartbeat - now : 0;
	struct ring_reply times = {.start_ns = now, .done_ns = now};
	struct loop_steps *s = loop->steps;

	s->n_turns = 0;
	for (uint32_t i = 0; i < s->n; i++) {
		struct open_reply *o = &s->open[i];
		/* Also of one that is not due: later the queue's counters may have gone round. */
		bool ends = steps_ends(o, now), sent = steps_is_sent(loop, o);

		if (!ends && o->due_ns > now)
			left = left < o->due_ns - now ? left : o->due_ns - now;
		else if (!sent)
			left = left < LOOP_PENDING_NS ? left : LOOP_PENDING_NS;
		else if (ends && !o->stepped)
			steps_end(loop, o, o->ending, &times);
		else
			steps_choose(s, o, ends);
	}
	return left;
}

/* Requests that are over leave. */
static void steps_leave(struct loop_steps *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->n; i++) {
		if (s->open[i].over)
			continue;
		if (n != i)
			s->open[n] = s->open[i];
		n++;
	}
	s->n = n;
}

static void steps_run(struct agent_loop *loop)
{
	struct loop_steps *s = loop->steps;
	struct ring_reply times = {0};

	loop_cpu_take_turn(loop, loop->stats.longest_run_ns, s->n);
	times.start_ns = clock_now_ns();
	loop->params.model->step(loop->params.model_state, s->turn, s->n_turns);
	times.done_ns = clock_now_ns();
	loop_cpu_give_turn(loop);
	times.backlog = ring_reply_backlog(s->n - s->n_turns + loop_cpu_unread(loop));
	if (times.done_ns - times.start_ns > loop->stats.longest_run_ns)
		loop->stats.longest_run_ns = times.done_ns - times.start_ns;
	for (uint32_t i = 0; i < s->n_turns; i++) {
		s->of[i]->turn = s->turn[i];
		steps_settle(loop, s->of[i], &times);
	}
	loop->stats.batches++;
}

/* The loop stops: the model frees what it has of the requests. */
static void steps_abandon(struct agent_loop *loop)
{
	struct loop_steps *s = loop->steps;

	s->n_turns = 0;
	for (uint32_t i = 0; i < s->n; i++)
		if (s->open[i].stepped)
			steps_choose(s, &s->open[i], true);
	if (s->n_turns > 0)
		loop->params.model->step(loop->params.model_state, s->turn, s->n_turns);
}

void *loop_steps_thread(void *argument)
{
	struct agent_loop *loop = argument;
	struct loop_steps *s = loop->steps;

	while (!loop_cpu_stops(loop)) {
		uint64_t now, left;

		steps_take(loop);
		now = clock_now_ns();
		loop_cpu_heartbeat(loop, now, s->n);
		left = steps_gather(loop, now);
		if (s->n_turns > 0)
			steps_run(loop);
		for (unsigned int i = 0; i < loop->params.n_links; i++)
			cpu_link_ring(&loop->params, &loop->params.links[i]);
		if (s->n_turns > 0)
			loop->idle = 0;
		else
			loop_cpu_back_off(loop, left, steps_take);
		steps_leave(s);
	}
	steps_abandon(loop);
	return NULL;
}

int loop_steps_create(struct agent_loop *loop)
{
	uint32_t n = loop->params.max_batch;
	struct loop_steps *s = calloc(1, sizeof(*s));

	loop->steps = s;
	if (s == NULL)
		return -ENOMEM;
	s->open = calloc(n, sizeof(*s->open));
	s->turn = calloc(n, sizeof(*s->turn));
	s->of = calloc(n, sizeof(struct open_reply *));
	s->taken = calloc(n, sizeof(*s->taken));
	return s->open == NULL || s->turn == NULL || s->of == NULL || s->taken == NULL ? -ENOMEM
										       : 0;
}

void loop_steps_destroy(struct agent_loop *loop)
{
	struct loop_steps *s = loop->steps;

	if (s == NULL)
		return;
	free(s->open);
	free(s->turn);
	free(s->of);
	free(s->taken);
	free(s);
}
