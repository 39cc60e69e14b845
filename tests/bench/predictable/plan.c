/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each batch that could be next is tried: the rest of what waits is then run in a simulation by two
 * simple rules, and the batch after which most requests are in time is the one. One of the rules is
 * Clockwork's (OSDI 2020): the batch that must begin first; the other takes most requests per
 * second of a device.
 */
#include "predictable/plan.h"

#include "predictable/device.h"

/* Batches in a row that a simulation runs at most. */
#define PLAN_STEPS 256
/* First requests of a queue that a batch may be tried without. */
#define PLAN_DROPS 16

enum plan_rule { PLAN_URGENT, PLAN_DENSE, PLAN_RULES };

/* A simulation: how many requests of each model are over, and when devices are free. */
struct plan_run {
	uint32_t at[PLAN_MODELS_MAX];
	uint64_t free[PLAN_DEVICES_MAX];
	uint32_t in_time;
	uint64_t used_ns;
	uint32_t last; /* the model of which plan_admits() asks */
	bool last_in_time;
};

static uint64_t plan_takes(const struct plan_model *m, uint32_t n)
{
	return device_batch_ns(m->base_us, m->each_us, n);
}

/* Requests from <at> on that are in time together if they begin at <begin>; 0: not even the first.
 */
static uint32_t plan_fit(const struct plan_model *m, uint32_t at, uint64_t begin)
{
	uint32_t n = m->n - at < m->max_batch ? m->n - at : m->max_batch;
	uint64_t left, base = plan_takes(m, 0), fit;

	if (n == 0 || m->deadline[at] < begin + plan_takes(m, 1))
		return 0;
	left = m->deadline[at] - begin - base;
	fit = m->each_us == 0 ? n : left / (m->each_us * UINT64_C(1000));
	return fit < n ? (uint32_t)fit : n;
}

static uint32_t plan_first_free(const struct plan *p, const struct plan_run *r)
{
	uint32_t first = 0;

	for (uint32_t d = 1; d < p->devices; d++)
		if (r->free[d] < r->free[first])
			first = d;
	return first;
}

static void plan_take(const struct plan *p, struct plan_run *r, uint32_t device, uint32_t model,
		      uint32_t n)
{
	uint64_t takes = plan_takes(&p->model[model], n);

	r->at[model] += n;
	r->in_time += n;
	r->used_ns += takes;
	r->free[device] += takes;
	if (model == r->last && r->at[model] == p->model[model].n)
		r->last_in_time = true;
}

/* One batch by a rule. False: nothing is left. */
static bool plan_step(const struct plan *p, struct plan_run *r, enum plan_rule rule)
{
	uint32_t device = plan_first_free(p, r), best = UINT32_MAX, best_n = 0;
	double best_key = 0;

	for (uint32_t i = 0; i < p->models; i++) {
		const struct plan_model *m = &p->model[i];
		uint64_t takes;
		uint32_t n = 0;
		double key;

		while (r->at[i] < m->n && (n = plan_fit(m, r->at[i], r->free[device])) == 0)
			r->at[i]++;
		if (n == 0)
			continue;
		takes = plan_takes(m, n);
		key = rule == PLAN_URGENT ? -(double)(m->deadline[r->at[i]] - takes)
					  : n / (double)takes;
		if (best == UINT32_MAX || key > best_key) {
			best = i;
			best_n = n;
			best_key = key;
		}
	}
	if (best != UINT32_MAX)
		plan_take(p, r, device, best, best_n);
	return best != UINT32_MAX;
}

static void plan_finish(const struct plan *p, struct plan_run *r, enum plan_rule rule)
{
	for (int i = 0; i < PLAN_STEPS && plan_step(p, r, rule); i++)
		;
}

static struct plan_run plan_begin(const struct plan *p)
{
	struct plan_run r = {.last = UINT32_MAX};

	for (uint32_t d = 0; d < p->devices; d++)
		r.free[d] = p->free[d];
	return r;
}

/* Requests in time, less the price, if <batch> is next. */
static double plan_worth(const struct plan *p, uint32_t device, const struct plan_batch *batch)
{
	double best = 0;

	for (int rule = 0; rule < PLAN_RULES; rule++) {
		struct plan_run r = plan_begin(p);
		double worth;

		r.at[batch->model] = batch->drop;
		plan_take(p, &r, device, batch->model, batch->n);
		plan_finish(p, &r, rule);
		worth = r.in_time - p->price * (double)r.used_ns / 1e9;
		if (rule == 0 || worth > best)
			best = worth;
	}
	return best;
}

bool plan_next(const struct plan *p, uint32_t device, struct plan_batch *out)
{
	double best = 0, begins = 0;
	bool found = false;

	for (uint32_t i = 0; i < p->models; i++) {
		const struct plan_model *m = &p->model[i];
		uint32_t most = 0, dropped = 0;

		for (uint32_t drop = 0; drop < m->n && dropped < PLAN_DROPS; drop++) {
			struct plan_batch batch = {i, drop, plan_fit(m, drop, p->free[device])};
			double worth, must;

			/* Without the first ones a batch must be larger. */
			if (batch.n <= most)
				continue;
			most = batch.n;
			dropped++;
			worth = plan_worth(p, device, &batch);
			must = (double)(m->deadline[drop] - plan_takes(m, batch.n));
			if (!found || worth > best + 1e-6 ||
			    (worth > best - 1e-6 && must < begins)) {
				found = true;
				best = worth;
				begins = must;
				*out = batch;
			}
		}
	}
	return found;
}

bool plan_admits(const struct plan *p, uint32_t model)
{
	for (int rule = 0; rule < PLAN_RULES; rule++) {
		struct plan_run r = plan_begin(p);

		r.last = model;
		plan_finish(p, &r, rule);
		if (r.last_in_time)
			return true;
	}
	return false;
}
