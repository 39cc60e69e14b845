/* SPDX-License-Identifier: BSD-3-Clause */
#include "loop/loop_turns.h"

#include <errno.h>
#include <stdlib.h>

#include "runtime/clock.h"
#include "turns/line.h"
#include "turns/watch.h"

/* Requests that are taken from the rings; more stay there, in their order. */
#define TURNS_LINE_MIN 1024
#define TURNS_BATCHES  8
/* Of a ring at a time. */
#define TURNS_TAKE 64
/* While it waits for its turn, the loop looks into its rings so often. */
#define TURNS_LOOK_NS WATCH_LOOK_NS
/* The load balancers are told when a run begins that takes at least as long. */
#define TURNS_BEAT_NS UINT64_C(1000000)

/* Where requests are that wait. */
struct turns_place {
	struct intake request;
	struct agent_link *link;
	uint32_t next_free;
};

struct loop_turns {
	struct watch watch;
	bool watches;
	struct takes takes;
	struct line line;
	struct turns_place *place;
	uint32_t free; /* the first free place, or the line's room */
	struct intake taken[TURNS_TAKE];
	struct agent_link *of[TURNS_TAKE];
};

int loop_turns_create(struct agent_loop *loop)
{
	uint32_t room = TURNS_BATCHES * loop->params.max_batch;
	struct loop_turns *t = calloc(1, sizeof(*t));

	loop->by_turns = t;
	if (t == NULL)
		return -ENOMEM;
	room = room > TURNS_LINE_MIN ? room : TURNS_LINE_MIN;
	t->place = calloc(room, sizeof(*t->place));
	if (line_init(&t->line, room) < 0 || t->place == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < room; i++)
		t->place[i].next_free = i + 1;
	t->watches = watch_start(&t->watch, loop->params.n_links) == 0;
	for (unsigned int i = 0; t->watches && i < loop->params.n_links; i++)
		if (watch_add(&t->watch, i, loop->params.links[i].descriptors,
			      loop->params.links[i].slot_count) < 0)
			return -ENOMEM;
	return t->watches ? 0 : -ENOMEM;
}

void loop_turns_destroy(struct agent_loop *loop)
{
	struct loop_turns *t = loop->by_turns;

	if (t == NULL)
		return;
	if (t->watches)
		watch_stop(&t->watch);
	line_fini(&t->line);
	free(t->place);
	free(t);
}

uint32_t loop_turns_wait(const struct agent_loop *loop)
{
	return loop->by_turns == NULL ? 0 : loop->by_turns->line.n;
}

/* It came to the ring <since_ns>. What it had waited when it was taken counts once: its time in the
 * ring is part of both. Returns when its deadline began. */
static uint64_t turns_note_arrival(struct intake *request, uint64_t since_ns)
{
	uint64_t in_ring_us = (request->seen_ns - since_ns) / 1000;

	request->waited_us -=
		in_ring_us < request->waited_us ? (uint32_t)in_ring_us : request->waited_us;
	request->seen_ns = since_ns;
	return since_ns - request->waited_us * UINT64_C(1000);
}

/* Take what has come into the line. */
static void turns_take_rings(struct agent_loop *loop, uint64_t now)
{
	struct loop_turns *t = loop->by_turns;
	uint32_t room, n;

	do {
		room = t->line.room - t->line.n < TURNS_TAKE ? t->line.room - t->line.n
							     : TURNS_TAKE;
		n = loop_cpu_take(loop, now, t->taken, t->of, room);
		for (uint32_t i = 0; i < n; i++) {
			uint32_t place = t->free;
			struct intake *request = &t->taken[i];
			uint64_t began = turns_note_arrival(
				request, watch_since(&t->watch,
						     (unsigned int)(t->of[i] - loop->params.links),
						     request->sequence - 1, now));

			t->free = t->place[place].next_free;
			t->place[place].request = *request;
			t->place[place].link = t->of[i];
			line_add(&t->line, request->seen_ns, line_due(began, request->deadline_us),
				 place);
		}
	} while (n > 0);
}

/* These requests of the line join the batch. */
static void turns_batch(struct agent_loop *loop, uint32_t first, uint32_t n)
{
	struct loop_turns *t = loop->by_turns;
	struct batch *b = &loop->batch;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t place = t->line.at[first + i].place;

		b->request[b->n] = t->place[place].request;
		b->link[b->n++] = t->place[place].link;
		t->place[place].next_free = t->free;
		t->free = place;
	}
	line_remove(&t->line, first, n);
}

/* Those that would be late are answered without a run: returns whether there are some. */
static bool turns_give_up(struct agent_loop *loop, uint64_t now)
{
	struct loop_turns *t = loop->by_turns;
	struct batch *b = &loop->batch;
	uint32_t at = line_late(&t->line, &t->takes, now, 0);

	if (at < t->line.n && takes_relax(&t->takes, now))
		at = line_late(&t->line, &t->takes, now, 0);
	for (; at < t->line.n && b->n < loop->params.max_batch;
	     at = line_late(&t->line, &t->takes, now, at)) {
		turns_batch(loop, at, 1);
		if (b->request[b->n - 1].status == RING_OK)
			b->request[b->n - 1].status = RING_EXPIRED;
	}
	return b->n > 0;
}

/* Is there a full batch, or has the one that came first waited for as long as it should? */
static bool turns_is_enough(const struct agent_loop *loop, uint64_t now)
{
	const struct loop_turns *t = loop->by_turns;
	uint64_t timeout = loop->params.batch_timeout_us * UINT64_C(1000);

	if (timeout == 0 || t->line.n >= loop->params.max_batch)
		return true;
	for (uint32_t i = 0; i < t->line.n; i++)
		if (now - t->place[t->line.at[i].place].request.seen_ns >= timeout)
			return true;
	return false;
}

static void turns_want_one(struct agent_loop *loop, const struct line_batch *batch, uint64_t now)
{
	struct loop_turns *t = loop->by_turns;
	uint64_t due = t->line.at[batch->first].turn_ns;
	const struct turns_offer offer = {
		.due_ns = t->line.at[batch->first].due_ns == LINE_NEVER ? 0 : due,
		.work_ns = line_work(&t->line, &t->takes, loop->params.max_batch),
		.worth = batch->worth,
		.run_ns = (uint64_t)t->takes.longest_ns,
	};

	turns_want(&loop->turns, &offer, now);
}

/* Try to get the turn, and take the batch. */
static bool turns_run_now(struct agent_loop *loop, uint64_t now)
{
	struct loop_turns *t = loop->by_turns;
	uint64_t begin = turns_ends(&loop->turns, now), wait = turns_longest(&loop->turns, now);
	struct line_batch batch;

	if (!line_choose(&t->line, &t->takes, loop->params.max_batch, begin, wait, &batch)) {
		turns_want_no_more(&loop->turns, now);
		return false;
	}
	turns_want_one(loop, &batch, now);
	if (!loop_cpu_try_turn(loop, now))
		return false;
	if (begin != now &&
	    !line_choose(&t->line, &t->takes, loop->params.max_batch, now, wait, &batch)) {
		loop_cpu_give_turn(loop);
		return false;
	}
	turns_batch(loop, batch.first, batch.n);
	return true;
}

static bool turns_look(struct agent_loop *loop)
{
	return loop_cpu_unread(loop) > 0;
}

bool loop_turns_gather(struct agent_loop *loop)
{
	struct loop_turns *t = loop->by_turns;

	loop->batch.n = 0;
	while (!loop_cpu_stops(loop)) {
		uint64_t now = clock_now_ns();

		loop_cpu_heartbeat(loop, now, t->line.n);
		turns_take_rings(loop, now);
		if (turns_give_up(loop, now))
			return true;
		if (t->line.n == 0) {
			turns_want_no_more(&loop->turns, now);
			loop_cpu_back_off(
				loop, loop->next_heartbeat > now ? loop->next_heartbeat - now : 0,
				turns_look);
			continue;
		}
		loop->idle = 0;
		if (!turns_is_enough(loop, now))
			turns_want_no_more(&loop->turns, now);
		else if (turns_run_now(loop, now))
			return true;
		turns_sleep(&loop->turns, TURNS_LOOK_NS);
	}
	return false;
}

void loop_turns_begin(struct agent_loop *loop)
{
	struct loop_turns *t = loop->by_turns;
	uint64_t takes = takes_expect(&t->takes, loop->batch.n_runs);
	uint64_t position[AGENT_LINKS_MAX];

	if (!loop->has_turn)
		return;
	for (unsigned int i = 0; i < loop->params.n_links; i++)
		position[i] = loop->params.links[i].position;
	watch_begin(&t->watch, position);
	turns_until(&loop->turns, loop->batch.start_ns + takes);
	if (takes < TURNS_BEAT_NS)
		return;
	loop->next_heartbeat = 0;
	loop_cpu_heartbeat(loop, loop->batch.start_ns, t->line.n);
}

void loop_turns_end(struct agent_loop *loop)
{
	const struct batch *b = &loop->batch;

	if (!loop->has_turn)
		return;
	loop_cpu_give_turn(loop);
	takes_measure(&loop->by_turns->takes, b->n_runs, b->done_ns - b->start_ns, b->done_ns);
	watch_end(&loop->by_turns->watch);
}
