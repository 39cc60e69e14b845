/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "server/window.h"

/* A service's values at the last sample. */
struct service_sample {
	bool taken;
	struct lb_service_stats stats;
	struct latency latency;
};

struct lcore_sample {
	bool taken;
	uint64_t inserted; /* flows */
	struct lb_lcore_stats stats;
};

struct worker_sample {
	uint16_t generation;
	struct lb_link_stats stats;
};

struct window {
	uint64_t at_ms, ms; /* time of the last sample; ms between it and the one before */
	unsigned int samples;
	struct latency latency;                              /* scratch histogram */
	struct service_sample *service_was[LB_SERVICES_MAX]; /* allocated on first use */
	struct lcore_sample lcore_was[LB_LCORES_MAX];
	struct worker_sample worker_was[WORKERS_MAX];
	bool service_known[LB_SERVICES_MAX];
	struct window_service service[LB_SERVICES_MAX];
	struct window_lcore lcore[LB_LCORES_MAX];
	struct window_worker worker[WORKERS_MAX];
};

struct window *window_create(void)
{
	return calloc(1, sizeof(struct window));
}

void window_destroy(struct window *w)
{
	if (w == NULL)
		return;
	for (unsigned int i = 0; i < LB_SERVICES_MAX; i++)
		free(w->service_was[i]);
	free(w);
}

/* Rounds to the nearest. Divides by the time that passed, as the timer may be late. */
static uint64_t per_second(const struct window *w, uint64_t now, uint64_t before)
{
	return now > before ? ((now - before) * 1000 + w->ms / 2) / w->ms : 0;
}

static void window_sum_up(struct window_latency *out, const struct latency *l,
			  enum latency_part part)
{
	*out = (struct window_latency){.count = latency_count(l->bucket[part])};
	if (out->count == 0)
		return;
	out->mean = (double)l->sum_ns[part] / 1000 / (double)out->count;
	out->p50 = latency_quantile_us(l->bucket[part], 0.5);
	out->p90 = latency_quantile_us(l->bucket[part], 0.9);
	out->p99 = latency_quantile_us(l->bucket[part], 0.99);
}

static void sample_service(struct window *w, const struct lb *lb, unsigned int i)
{
	struct service_sample *was = w->service_was[i];
	struct window_service *out = &w->service[i];
	struct lb_service_stats now;

	if (was == NULL)
		was = w->service_was[i] = calloc(1, sizeof(*was));
	if (was == NULL)
		return;
	lb_service_stats_read(lb, i, &now);
	lb_service_latency_read(lb, i, &w->latency);
	/* Counters that fall mean that another service has the number now. */
	if (now.requests < was->stats.requests || now.drops < was->stats.drops)
		was->taken = false;
	if (was->taken) {
		struct latency all = w->latency;

		out->requests = per_second(w, now.requests, was->stats.requests);
		out->replies = per_second(w, now.replies, was->stats.replies);
		out->notices = per_second(w, now.notices, was->stats.notices);
		out->drops = per_second(w, now.drops, was->stats.drops);
		out->bytes_in = per_second(w, now.bytes_in, was->stats.bytes_in);
		out->bytes_out = per_second(w, now.bytes_out, was->stats.bytes_out);
		latency_since(&w->latency, &was->latency);
		for (unsigned int p = 0; p < LATENCY_PARTS; p++)
			window_sum_up(&out->part[p], &w->latency, p);
		was->latency = all;
	} else {
		was->latency = w->latency;
	}
	w->service_known[i] = was->taken;
	was->taken = true;
	was->stats = now;
}

/* Forget the sample: the number may be another service's by the next one. */
static void forget_service(struct window *w, unsigned int i)
{
	w->service_known[i] = false;
	if (w->service_was[i] != NULL)
		w->service_was[i]->taken = false;
}

static uint64_t window_sum(const uint64_t *values, unsigned int n)
{
	uint64_t all = 0;

	for (unsigned int i = 0; i < n; i++)
		all += values[i];
	return all;
}

/* The share of busy time. An lcore that finds nothing charges no stage (lb/walk/loop.c). */
static double busy_share(const struct window *w, const struct lb_lcore_stats *now,
			 const struct lb_lcore_stats *was)
{
	uint64_t cycles =
		window_sum(now->stage_cycles, LB_STAGES) - window_sum(was->stage_cycles, LB_STAGES);
	double all = (double)rte_get_tsc_hz() * (double)w->ms / 1000;

	return all <= 0 ? 0 : (double)cycles > all ? 1 : (double)cycles / all;
}

static void sample_lcore(struct window *w, const struct lb *lb, unsigned int i)
{
	struct lcore_sample *was = &w->lcore_was[i];
	struct window_lcore *out = &w->lcore[i];
	struct conntrack_stats flows;
	struct lb_lcore_stats now;

	lb_lcore_stats_read(lb, i, &now);
	conntrack_stats_read(lb_conntrack(lb, i), &flows);
	if (was->taken) {
		out->packets_in = per_second(w, now.packets_in, was->stats.packets_in);
		out->packets_out = per_second(w, now.packets_out, was->stats.packets_out);
		out->requests = per_second(w, now.requests, was->stats.requests);
		out->replies = per_second(w, now.replies, was->stats.replies);
		out->drops = per_second(w, window_sum(now.drop, LB_DROPS),
					window_sum(was->stats.drop, LB_DROPS));
		out->new_flows = per_second(w, flows.inserted, was->inserted);
		out->polls = now.polls - was->stats.polls;
		out->busy = busy_share(w, &now, &was->stats);
	}
	was->taken = true;
	was->inserted = flows.inserted;
	was->stats = now;
}

static double mean_us(uint64_t now, uint64_t before, uint64_t replies)
{
	return replies && now > before ? (double)(now - before) / 1000 / (double)replies : 0;
}

static void sample_worker(struct window *w, const struct lb *lb, const struct worker *worker)
{
	struct worker_sample *was = &w->worker_was[worker->number];
	struct window_worker *out = &w->worker[worker->number];
	const struct lb_link_stats *b = &was->stats;
	struct lb_link_stats now;
	uint64_t replies;

	lb_worker_stats_read(lb, worker, &now);
	memset(out, 0, sizeof(*out));
	/* another worker may have taken the place in between */
	if (was->generation == worker->generation && now.replies >= b->replies) {
		replies = out->count = now.replies - b->replies;
		out->generation = worker->generation;
		out->requests = per_second(w, now.requests, b->requests);
		out->replies = per_second(w, now.replies, b->replies);
		out->errors = per_second(w, now.errors, b->errors);
		out->wait = mean_us(now.wait_ns, b->wait_ns, replies);
		out->run = mean_us(now.run_ns, b->run_ns, replies);
		out->total = mean_us(now.total_ns, b->total_ns, replies);
		out->wire = out->total - out->wait - out->run;
		out->wire = out->wire > 0 ? out->wire : 0;
		out->gpu = mean_us(now.run_ns, b->run_ns, 1) / ((double)w->ms * 1000);
	}
	was->generation = worker->generation;
	was->stats = now;
}

void window_sample(struct window *w, struct lb *lb, uint64_t now_ms)
{
	if (w->samples > 0 && now_ms == w->at_ms)
		return;
	w->ms = w->samples > 0 ? now_ms - w->at_ms : 1;
	for (unsigned int i = 0; i < lb_config_get(lb)->n_services; i++)
		if (lb_service_used(&lb_config_get(lb)->service[i]))
			sample_service(w, lb, i);
		else
			forget_service(w, i);
	for (unsigned int i = 0; i < lb_lcores(lb); i++)
		sample_lcore(w, lb, i);
	for (const struct worker *worker = workers_next(lb_pool(lb), NULL); worker != NULL;
	     worker = workers_next(lb_pool(lb), worker))
		sample_worker(w, lb, worker);
	w->at_ms = now_ms;
	w->samples += w->samples < 2;
}

uint64_t window_ms(const struct window *w)
{
	return w != NULL && w->samples == 2 ? w->ms : 0;
}

const struct window_service *window_service(const struct window *w, unsigned int service)
{
	return window_ms(w) && w->service_known[service] ? &w->service[service] : NULL;
}

const struct window_lcore *window_lcore(const struct window *w, unsigned int lcore)
{
	return window_ms(w) ? &w->lcore[lcore] : NULL;
}

const struct window_worker *window_worker(const struct window *w, const struct worker *worker)
{
	const struct window_worker *out = window_ms(w) ? &w->worker[worker->number] : NULL;

	return out != NULL && out->generation == worker->generation ? out : NULL;
}
