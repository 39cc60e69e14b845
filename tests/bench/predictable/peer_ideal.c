/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A run of the bench without a machine: its arrivals, and schedulers that know of each request
 * when it is due, lose no time, and let any device run any request: the controller's plan with
 * several prices, and what agents that take turns do. The best of them counts. Also a bound that no
 * scheduler passes: devices that are never idle and run full batches only, of the requests that
 * cost least. And what is left of that of the agents if each request is bound to a device when it
 * is due, as a load balancer does that writes it into the device's memory.
 */
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench/arrivals.h"
#include "cli/bench/bench.h"
#include "predictable/device.h"
#include "predictable/peer.h"
#include "turns/line.h"
#include "turns/turns.h"

/* Prices that are tried: requests that a second of a device is worth. */
static const double prices[] = {0, 100, 200, 300, 400};
/* In place of a price: as agents that take turns do. */
#define IDEAL_BY_TURNS (-1.0)

#define IDEAL_QUEUE 65536

struct ideal_request {
	uint64_t due_ns;
	uint32_t model;
};

struct ideal {
	const struct peer_ideal_options *o;
	struct ideal_request *request;
	uint32_t n;
	/* Deadlines of those that wait, the earliest first: of each device if <apart>, else of the
	 * first. */
	bool apart;
	uint64_t *deadline[PLAN_DEVICES_MAX][PLAN_MODELS_MAX];
	uint32_t waiting[PLAN_DEVICES_MAX][PLAN_MODELS_MAX];
	uint64_t free_ns[PLAN_DEVICES_MAX];
	uint64_t in_time;
	uint64_t *latency_ns; /* of each that is counted in <in_time> */
	struct takes takes[PLAN_MODELS_MAX];
	struct line_request *line; /* IDEAL_QUEUE of them */
};

/* As doorbell bench with one thread draws them: engine.c. */
static void ideal_arrivals(struct ideal *s)
{
	const struct peer_ideal_options *o = s->o;
	uint64_t end = (uint64_t)(o->seconds * 1e9) + o->warmup_ms * UINT64_C(1000000);
	struct arrivals arrivals;
	struct draw draw;

	arrivals_init(&arrivals, o->rate, false, o->seed, 0);
	draw_init(&draw, o->seed, BENCH_THREADS_MAX);
	while (arrivals_next_ns(&arrivals) < end) {
		double left = draw_fraction(&draw) * o->models;
		uint32_t model = 0;

		for (; model < o->models - 1 && left > 1; model++)
			left -= 1;
		s->request = realloc(s->request, (s->n + 1) * sizeof(*s->request));
		if (s->request == NULL)
			err(1, "memory");
		s->request[s->n++] = (struct ideal_request){arrivals_next_ns(&arrivals), model};
		arrivals_take(&arrivals);
	}
}

static void ideal_remove(struct ideal *s, uint32_t of, uint32_t model, uint32_t from, uint32_t n)
{
	uint64_t *deadline = s->deadline[of][model];

	memmove(&deadline[from], &deadline[from + n],
		(s->waiting[of][model] - from - n) * sizeof(uint64_t));
	s->waiting[of][model] -= n;
}

static bool ideal_counts(const struct ideal *s, uint64_t deadline, uint32_t model)
{
	return deadline - s->o->deadline_ns[model] >= s->o->warmup_ms * UINT64_C(1000000);
}

static bool ideal_plan(const struct ideal *s, uint32_t device, uint64_t now, double price,
		       struct plan_batch *b)
{
	struct plan plan = {.models = s->o->models, .devices = s->o->devices, .price = price};

	for (uint32_t i = 0; i < plan.models; i++) {
		plan.model[i] = s->o->model[i];
		plan.model[i].deadline = s->deadline[0][i];
		plan.model[i].n = s->waiting[0][i];
	}
	for (uint32_t d = 0; d < plan.devices; d++)
		plan.free[d] = s->free_ns[d] > now ? s->free_ns[d] : now;
	return plan_next(&plan, device, b);
}

/* An agent per model, all of whose requests are at hand. */
static bool ideal_turns(struct ideal *s, uint32_t of, uint64_t now, struct plan_batch *b)
{
	struct turns_offer offer[PLAN_MODELS_MAX] = {{0}};
	struct line_batch batch[PLAN_MODELS_MAX];
	uint64_t longest = 0;
	int first;

	for (uint32_t i = 0; i < s->o->models; i++)
		if (s->takes[i].longest_ns > (double)longest)
			longest = (uint64_t)s->takes[i].longest_ns;
	for (uint32_t i = 0; i < s->o->models; i++) {
		const uint32_t max = s->o->model[i].max_batch;
		struct line line = {.at = s->line, .n = s->waiting[of][i]};

		for (uint32_t k = 0; k < line.n; k++)
			s->line[k] = (struct line_request){s->deadline[of][i][k],
							   s->deadline[of][i][k], k};
		if (!line_choose(&line, &s->takes[i], max, now, longest, &batch[i]))
			continue;
		offer[i] = (struct turns_offer){.said_ns = now + 1,
						.asked_ns = now,
						.due_ns = line.at[batch[i].first].due_ns,
						.work_ns = line_work(&line, &s->takes[i], max) /
							   (s->apart ? 1 : s->o->devices),
						.worth = batch[i].worth};
	}
	first = turns_first(offer, s->o->models, now, now);
	if (first >= 0)
		*b = (struct plan_batch){(uint32_t)first, batch[first].first, batch[first].n};
	return first >= 0;
}

/* The device, which is free, gets a batch now, if there is one. */
static bool ideal_dispatch(struct ideal *s, uint32_t device, uint64_t now, double price)
{
	uint32_t of = s->apart ? device : 0;
	struct plan_batch b;

	if (price == IDEAL_BY_TURNS ? !ideal_turns(s, of, now, &b)
				    : !ideal_plan(s, device, now, price, &b))
		return false;
	s->free_ns[device] = now + device_batch_ns(s->o->model[b.model].base_us,
						   s->o->model[b.model].each_us, b.n);
	for (uint32_t i = 0; i < b.n; i++) {
		uint64_t deadline = s->deadline[of][b.model][b.drop + i];

		if (ideal_counts(s, deadline, b.model))
			s->latency_ns[s->in_time++] =
				s->free_ns[device] + s->o->deadline_ns[b.model] - deadline;
	}
	/* Those that were passed over wait, or will be too late. */
	ideal_remove(s, of, b.model, b.drop, b.n);
	return true;
}

/* Requests that cannot be in time even by themselves are not looked at again. */
static void ideal_expire(struct ideal *s, uint64_t now)
{
	for (uint32_t k = 0; k < s->o->devices * s->o->models; k++) {
		uint32_t of = k / s->o->models, model = k % s->o->models, n = 0;
		const struct plan_model *m = &s->o->model[model];

		while (n < s->waiting[of][model] &&
		       s->deadline[of][model][n] < now + device_batch_ns(m->base_us, m->each_us, 1))
			n++;
		ideal_remove(s, of, model, 0, n);
	}
}

static uint32_t ideal_waiting(const struct ideal *s, uint32_t of)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->o->models; i++)
		n += s->waiting[of][i];
	return n;
}

/* As workers_load_gathers_before(), with all known. */
static bool ideal_is_before(const struct ideal *s, uint32_t a, uint32_t b, uint32_t model,
			    uint64_t now)
{
	uint32_t batch = s->o->model[model].max_batch;
	uint32_t waits_a = s->waiting[a][model], waits_b = s->waiting[b][model];
	bool idle_a = s->free_ns[a] <= now && ideal_waiting(s, a) == 0;
	bool idle_b = s->free_ns[b] <= now && ideal_waiting(s, b) == 0;

	if (idle_a != idle_b)
		return idle_a;
	if ((waits_a % batch != 0) != (waits_b % batch != 0))
		return waits_a % batch != 0;
	return waits_a != waits_b ? waits_a < waits_b : s->free_ns[a] < s->free_ns[b];
}

static void ideal_arrive(struct ideal *s, const struct ideal_request *r)
{
	uint64_t deadline = r->due_ns + s->o->deadline_ns[r->model];
	uint32_t of = 0;

	for (uint32_t d = 1; s->apart && d < s->o->devices; d++)
		if (ideal_is_before(s, d, of, r->model, r->due_ns))
			of = d;
	/* Of one model all have the same time, so they are in order. */
	if (s->waiting[of][r->model] < IDEAL_QUEUE)
		s->deadline[of][r->model][s->waiting[of][r->model]++] = deadline;
}

/* When something happens next: a request is due, or a device is free for one that waits. */
static uint64_t ideal_next(const struct ideal *s, uint32_t i, uint64_t now)
{
	uint64_t next = i < s->n ? s->request[i].due_ns : UINT64_MAX;

	for (uint32_t d = 0; d < s->o->devices; d++)
		if (s->free_ns[d] > now && s->free_ns[d] < next &&
		    ideal_waiting(s, s->apart ? d : 0) > 0)
			next = s->free_ns[d];
	return next;
}

static uint64_t ideal_run(struct ideal *s, double price, bool apart)
{
	uint32_t i = 0;

	memset(s->waiting, 0, sizeof(s->waiting));
	memset(s->free_ns, 0, sizeof(s->free_ns));
	s->in_time = 0;
	s->apart = apart;
	for (uint64_t now = 0; now != UINT64_MAX; now = ideal_next(s, i, now)) {
		while (i < s->n && s->request[i].due_ns <= now)
			ideal_arrive(s, &s->request[i++]);
		ideal_expire(s, now);
		for (uint32_t d = 0; d < s->o->devices; d++)
			if (s->free_ns[d] <= now)
				ideal_dispatch(s, d, now, price);
	}
	return s->in_time;
}

static int ideal_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* ms; the 99.9th percentile of those that the last run had in time. */
static double ideal_p999_ms(const struct ideal *s)
{
	if (s->in_time == 0)
		return 0;
	qsort(s->latency_ns, s->in_time, sizeof(*s->latency_ns), ideal_compare);
	return (double)s->latency_ns[(s->in_time - 1) * 999 / 1000] / 1e6;
}

/* Counted requests, those of the cheapest model first, while the devices' time lasts. */
static double ideal_bound(const struct ideal *s, const uint64_t counted[PLAN_MODELS_MAX])
{
	const struct peer_ideal_options *o = s->o;
	double left = 0, in_time = 0, latest = 0;
	bool done[PLAN_MODELS_MAX] = {false};

	for (uint32_t i = 0; i < o->models; i++)
		latest = (double)o->deadline_ns[i] > latest ? (double)o->deadline_ns[i] : latest;
	left = o->devices * (o->seconds * 1e9 + latest);
	for (uint32_t k = 0; k < o->models; k++) {
		uint32_t best = UINT32_MAX;
		double cost = 0, n;

		for (uint32_t i = 0; i < o->models; i++) {
			const struct plan_model *m = &o->model[i];
			double each =
				(double)device_batch_ns(m->base_us, m->each_us, m->max_batch) /
				m->max_batch;

			if (!done[i] && (best == UINT32_MAX || each < cost)) {
				best = i;
				cost = each;
			}
		}
		done[best] = true;
		n = left / cost < (double)counted[best] ? left / cost : (double)counted[best];
		in_time += n;
		left -= n * cost;
	}
	return in_time;
}

int peer_ideal(const struct peer_ideal_options *o)
{
	struct ideal s = {.o = o};
	uint64_t counted[PLAN_MODELS_MAX] = {0}, all = 0, apart, best;
	double apart_p999_ms, turns_p999_ms, plan_p999_ms = 0;

	if (o->deadlines != o->models)
		errx(2, "as many deadlines as models");
	ideal_arrivals(&s);
	s.line = calloc(IDEAL_QUEUE, sizeof(*s.line));
	if (s.line == NULL)
		err(1, "memory");
	for (uint32_t i = 0; i < o->models; i++) {
		const struct plan_model *m = &o->model[i];

		for (uint32_t n = 1; n <= m->max_batch; n++)
			takes_measure(&s.takes[i], n, device_batch_ns(m->base_us, m->each_us, n),
				      1);
		s.takes[i].off_ns = 0;
		for (uint32_t d = 0; d < o->devices; d++) {
			s.deadline[d][i] = calloc(IDEAL_QUEUE, sizeof(uint64_t));
			if (s.deadline[d][i] == NULL)
				err(1, "memory");
		}
	}
	for (uint32_t i = 0; i < s.n; i++)
		if (s.request[i].due_ns >= o->warmup_ms * UINT64_C(1000000)) {
			counted[s.request[i].model]++;
			all++;
		}
	s.latency_ns = calloc(s.n + 1, sizeof(*s.latency_ns));
	if (s.latency_ns == NULL)
		err(1, "memory");
	apart = ideal_run(&s, IDEAL_BY_TURNS, true);
	apart_p999_ms = ideal_p999_ms(&s);
	best = ideal_run(&s, IDEAL_BY_TURNS, false);
	turns_p999_ms = ideal_p999_ms(&s);
	for (size_t i = 0; i < sizeof(prices) / sizeof(prices[0]); i++) {
		uint64_t in_time = ideal_run(&s, prices[i], false);

		if (prices[i] == 300)
			plan_p999_ms = ideal_p999_ms(&s);
		best = in_time > best ? in_time : best;
	}
	if (all == 0)
		errx(2, "no requests");
	printf("{\"requests\": %" PRIu64 ", \"in_time\": %.6f, \"apart\": %.6f, \"bound\": %.6f, "
	       "\"apart_p999_ms\": %.3f, \"turns_p999_ms\": %.3f, \"plan_p999_ms\": %.3f}\n",
	       all, (double)best / (double)all, (double)apart / (double)all,
	       ideal_bound(&s, counted) / (double)all, apart_p999_ms, turns_p999_ms, plan_p999_ms);
	for (uint32_t k = 0; k < o->devices * o->models; k++)
		free(s.deadline[k / o->models][k % o->models]);
	free(s.line);
	free(s.request);
	return 0;
}
