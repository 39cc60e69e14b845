/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queues that a request goes through, event by event: the clients' link, the load balancer's
 * choice among workers with a credit (or its queue), the fabric, the worker's ring, a batch, and
 * back.
 *
 * A worker behaves as gpu-agent/loop/loop_cpu.c does: it takes the waiting requests, at most a full
 * batch. It waits for more until the batch timeout has passed since it saw the first, then runs.
 * All replies of the batch leave at its end.
 */
#include "cli/size/size.h"

#include "cli/bench/arrivals.h"
#include "cli/size/events.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Share of the requests that is not counted, until the queues are in their steady state. */
#define WARM_UP 0.1
/* Percentiles between which the tail lies. */
#define TAIL_FROM 0.985
#define TAIL_TO   0.995
/* A percentile is the end of a bucket of the histogram, which is this share of it wide at most. */
#define BUCKET    (1.0 / 1024)
#define NOBODY    UINT32_MAX

enum kind { AT_BALANCER, AT_WORKER, BATCH_TIMEOUT, BATCH_DONE, BACK_AT_BALANCER };

struct request {
	double due, at_balancer, chosen, at_worker, start, done, end;
	double links;          /* us in and before links */
	uint32_t worker, next; /* <next>: of the queue that it is in */
};

struct queue {
	uint32_t first, last;
	uint64_t n;
};

struct worker {
	struct queue waiting, batch;
	uint32_t outstanding;
	bool running, filling;
	uint32_t timer; /* number of the last timer that was set; earlier ones are ignored */
	double link_free;
};

struct simulation {
	const struct size_question *q;
	struct size_result *result;
	struct request *request;
	struct worker *worker;
	uint64_t n_workers;
	struct queue queue; /* requests without a credit, in the load balancer */
	struct events events;
	struct arrivals arrivals;
	struct draw draw;
	uint64_t made, counted_from;
	uint32_t turn;
	double client_in_free, client_out_free, fabric_out_free, fabric_in_free;
	double request_us, reply_us, fabric_request_us, fabric_reply_us, worker_reply_us;
	double busy_us, now;
	uint64_t batches, batched;
	int error;
};

static const char *const term_names[SIZE_TERMS] = {
	[SIZE_TERM_NETWORK] = "network", [SIZE_TERM_LINKS] = "links", [SIZE_TERM_SLOT] = "slot",
	[SIZE_TERM_WORKER] = "worker",   [SIZE_TERM_RUN] = "run",
};

const char *size_term_name(enum size_term term)
{
	return term_names[term];
}

/* --- small parts ------------------------------------------------------------------------------ */

static void simulate_add_event(struct simulation *s, double at, enum kind kind, uint32_t subject)
{
	if (events_add(&s->events, at, kind, subject) != 0)
		s->error = -ENOMEM;
}

static void push(struct simulation *s, struct queue *queue, uint32_t request)
{
	s->request[request].next = NOBODY;
	if (queue->n++ == 0)
		queue->first = request;
	else
		s->request[queue->last].next = request;
	queue->last = request;
}

static uint32_t pop(struct simulation *s, struct queue *queue)
{
	uint32_t request = queue->first;

	queue->first = s->request[request].next;
	queue->n--;
	return request;
}

/*
 * Send through a link that carries one message after the other. Returns when the last bit has
 * passed.
 */
static double pass(struct request *request, double *free_at, double now, double takes)
{
	double start = now > *free_at ? now : *free_at;

	*free_at = start + takes;
	request->links += *free_at - now;
	return *free_at;
}

/* --- the load balancer ------------------------------------------------------------------------ */

static bool has_credit(const struct simulation *s, uint64_t i)
{
	return s->worker[i].outstanding < s->q->slots * s->q->lcores;
}

/* As workers/schedule/least_outstanding.c: workers with equal load take turns. */
static uint32_t choose_least(struct simulation *s)
{
	uint32_t best = NOBODY;

	for (uint64_t n = 0; n < s->n_workers; n++) {
		uint32_t i = (uint32_t)((s->turn + n) % s->n_workers);

		if (has_credit(s, i) &&
		    (best == NOBODY || s->worker[i].outstanding < s->worker[best].outstanding))
			best = i;
	}
	return best;
}

static uint32_t choose_from(struct simulation *s, uint64_t first)
{
	for (uint64_t n = 0; n < s->n_workers; n++) {
		uint32_t i = (uint32_t)((first + n) % s->n_workers);

		if (has_credit(s, i))
			return i;
	}
	return NOBODY;
}

/* As workers/schedule/power_of_two.c: the less loaded of two different random workers. */
static uint32_t choose_of_two(struct simulation *s)
{
	uint64_t one = draw_next(&s->draw) % s->n_workers, other = one;
	uint32_t a, b;

	if (s->n_workers > 1)
		other = (one + 1 + draw_next(&s->draw) % (s->n_workers - 1)) % s->n_workers;
	a = choose_from(s, one);
	b = choose_from(s, other);
	if (a == NOBODY)
		return NOBODY;
	return s->worker[b].outstanding < s->worker[a].outstanding ? b : a;
}

static uint32_t simulate_choose_worker(struct simulation *s)
{
	uint32_t worker;

	switch (s->q->policy) {
	case SIZE_RANDOM:
		return choose_from(s, draw_next(&s->draw) % s->n_workers);
	case SIZE_POWER_OF_TWO:
		return choose_of_two(s);
	case SIZE_ROUND_ROBIN:
		worker = choose_from(s, s->turn);
		break;
	default:
		worker = choose_least(s);
	}
	if (worker != NOBODY)
		s->turn = worker + 1;
	return worker;
}

static void forward(struct simulation *s, uint32_t number, uint32_t worker)
{
	struct request *r = &s->request[number];
	struct worker *w = &s->worker[worker];

	r->chosen = s->now;
	r->worker = worker;
	if (++w->outstanding > s->result->most_outstanding)
		s->result->most_outstanding = w->outstanding;
	simulate_add_event(s, pass(r, &s->fabric_out_free, s->now, s->fabric_request_us) + s->q->rtt_us / 4,
	    AT_WORKER, number);
}

static void at_balancer(struct simulation *s, uint32_t number)
{
	uint32_t worker = s->queue.n == 0 ? simulate_choose_worker(s) : NOBODY;

	s->request[number].at_balancer = s->now;
	if (worker == NOBODY)
		push(s, &s->queue, number);
	else
		forward(s, number, worker);
}

static void arrive(struct simulation *s)
{
	uint32_t number = (uint32_t)s->made++;
	struct request *r = &s->request[number];

	r->due = s->arrivals.next_ns / 1e3;
	arrivals_take(&s->arrivals);
	simulate_add_event(s, pass(r, &s->client_in_free, r->due, s->request_us) + s->q->rtt_us / 4, AT_BALANCER,
	    number);
}

static void back_at_balancer(struct simulation *s, uint32_t number)
{
	struct request *r = &s->request[number];
	double at = pass(r, &s->fabric_in_free, s->now, s->fabric_reply_us);

	s->worker[r->worker].outstanding--;
	r->end = pass(r, &s->client_out_free, at, s->reply_us) + s->q->rtt_us / 4;
	if (s->queue.n != 0)
		forward(s, pop(s, &s->queue), simulate_choose_worker(s));
}

/* --- a worker --------------------------------------------------------------------------------- */

static void run_batch(struct simulation *s, uint32_t worker)
{
	struct worker *w = &s->worker[worker];
	double takes = size_run_us(s->q, (double)w->batch.n);

	if (s->q->exponential)
		takes = draw_exponential(&s->draw, takes);
	for (uint32_t i = w->batch.first, n = 0; n < w->batch.n; n++, i = s->request[i].next)
		s->request[i].start = s->now;
	w->running = true;
	w->filling = false;
	w->timer++;
	s->busy_us += takes;
	s->batches++;
	s->batched += w->batch.n;
	simulate_add_event(s, s->now + takes, BATCH_DONE, worker);
}

/* Take the waiting requests; run when the batch is full, or when there is no batch timeout. */
static void simulate_take_batch(struct simulation *s, uint32_t worker)
{
	struct worker *w = &s->worker[worker];

	while (w->waiting.n > 0 && w->batch.n < s->q->max_batch)
		push(s, &w->batch, pop(s, &w->waiting));
	if (w->batch.n == 0)
		return;
	if (w->batch.n == s->q->max_batch || s->q->batch_timeout_us == 0) {
		run_batch(s, worker);
	} else if (!w->filling) {
		w->filling = true;
		w->timer++;
		simulate_add_event(s, s->now + s->q->batch_timeout_us, BATCH_TIMEOUT,
		    worker | w->timer % 1024 << 16);
	}
}

static void at_worker(struct simulation *s, uint32_t number)
{
	struct request *r = &s->request[number];
	struct worker *w = &s->worker[r->worker];

	r->at_worker = s->now;
	push(s, &w->waiting, number);
	if (!w->running)
		simulate_take_batch(s, r->worker);
}

static void batch_timeout(struct simulation *s, uint32_t subject)
{
	uint32_t worker = subject & UINT16_MAX;
	struct worker *w = &s->worker[worker];

	if (w->filling && w->timer % 1024 == subject >> 16)
		run_batch(s, worker);
}

static void batch_done(struct simulation *s, uint32_t worker)
{
	struct worker *w = &s->worker[worker];

	w->running = false;
	while (w->batch.n > 0) {
		uint32_t number = pop(s, &w->batch);
		struct request *r = &s->request[number];

		r->done = s->now;
		simulate_add_event(s, pass(r, &w->link_free, s->now, s->worker_reply_us) + s->q->rtt_us / 4,
		    BACK_AT_BALANCER, number);
	}
	simulate_take_batch(s, worker);
}

/* --- what came of it -------------------------------------------------------------------------- */

static void terms_of(const struct simulation *s, const struct request *r, double *term)
{
	term[SIZE_TERM_NETWORK] = s->q->rtt_us;
	term[SIZE_TERM_LINKS] = r->links;
	term[SIZE_TERM_SLOT] = r->chosen - r->at_balancer;
	term[SIZE_TERM_WORKER] = r->start - r->at_worker;
	term[SIZE_TERM_RUN] = r->done - r->start;
}

static void mean_terms(const struct simulation *s, double from_us, double to_us, double *mean)
{
	double term[SIZE_TERMS], n = 0;

	memset(mean, 0, SIZE_TERMS * sizeof(*mean));
	for (uint64_t i = s->counted_from; i < s->made; i++) {
		const struct request *r = &s->request[i];

		if (r->end - r->due < from_us || r->end - r->due > to_us)
			continue;
		terms_of(s, r, term);
		for (int t = 0; t < SIZE_TERMS; t++)
			mean[t] += term[t];
		n++;
	}
	for (int t = 0; t < SIZE_TERMS && n > 0; t++)
		mean[t] /= n;
}

/* Mean latency of the requests from <from> to <to>. */
static double mean_of(const struct simulation *s, uint64_t from, uint64_t to)
{
	double sum = 0;

	for (uint64_t i = from; i < to; i++)
		sum += s->request[i].end - s->request[i].due;
	return sum / (double)(to - from);
}

static void conclude(struct simulation *s)
{
	struct size_result *result = s->result;
	uint64_t quarter = (s->made - s->counted_from) / 4;

	for (uint64_t i = s->counted_from; i < s->made; i++)
		histogram_record(&result->latency,
				 (uint64_t)((s->request[i].end - s->request[i].due) * 1e3));
	mean_terms(s, 0, 1e300, result->mean_us);
	/* The histogram has whole ns. */
	mean_terms(s, (double)histogram_value_ns(&result->latency, TAIL_FROM) / 1e3 * (1 - BUCKET),
		   (double)(histogram_value_ns(&result->latency, TAIL_TO) + 1) / 1e3,
		   result->tail_us);
	result->busy = s->busy_us / (s->now * (double)s->n_workers);
	result->mean_batch = s->batches != 0 ? (double)s->batched / (double)s->batches : 0;
	/* When the queue only grows, the last quarter waits much longer than the first. */
	result->unstable = size_load(s->q, s->n_workers) >= 1 ||
			   mean_of(s, s->made - quarter, s->made) >
				   4 * mean_of(s, s->counted_from, s->counted_from + quarter);
}

static void happen(struct simulation *s, const struct event *event)
{
	s->now = event->at_us;
	switch ((enum kind)event->kind) {
	case AT_BALANCER:
		if (s->made < s->q->simulated)
			arrive(s);
		at_balancer(s, event->subject);
		break;
	case AT_WORKER:
		at_worker(s, event->subject);
		break;
	case BATCH_TIMEOUT:
		batch_timeout(s, event->subject);
		break;
	case BATCH_DONE:
		batch_done(s, event->subject);
		break;
	case BACK_AT_BALANCER:
		back_at_balancer(s, event->subject);
		break;
	}
}

static double link_us(double bytes, double gbps)
{
	return bytes * 8 / gbps / 1e3;
}

static int init(struct simulation *s, const struct size_question *q, uint64_t workers,
		struct size_result *result)
{
	*s = (struct simulation){.q = q, .result = result, .n_workers = workers};
	memset(result, 0, sizeof(*result));
	s->request = calloc(q->simulated, sizeof(*s->request));
	s->worker = calloc(workers, sizeof(*s->worker));
	if (s->request == NULL || s->worker == NULL || histogram_init(&result->latency) != 0)
		return -ENOMEM;
	s->counted_from = (uint64_t)(WARM_UP * (double)q->simulated);
	s->request_us = link_us(size_client_bytes(q, q->request_bytes), q->client_gbps);
	s->reply_us = link_us(size_client_bytes(q, q->reply_bytes), q->client_gbps);
	s->fabric_request_us = link_us(size_fabric_request_bytes(q), q->fabric_gbps);
	s->fabric_reply_us = link_us(size_fabric_reply_bytes(q), q->fabric_gbps);
	s->worker_reply_us = link_us(size_fabric_reply_bytes(q), q->worker_gbps);
	arrivals_init(&s->arrivals, q->rate, false, q->seed, 0);
	draw_init(&s->draw, q->seed, 1);
	return 0;
}

int size_simulate(const struct size_question *q, uint64_t workers, struct size_result *result)
{
	struct simulation s;
	struct event event;
	int ret = init(&s, q, workers, result);

	if (ret == 0)
		arrive(&s);
	while (ret == 0 && s.error == 0 && events_next(&s.events, &event))
		happen(&s, &event);
	if (ret == 0)
		ret = s.error;
	if (ret == 0)
		conclude(&s);
	free(s.request);
	free(s.worker);
	events_fini(&s.events);
	return ret;
}

void size_result_fini(struct size_result *result)
{
	histogram_fini(&result->latency);
}
