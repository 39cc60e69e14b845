/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The controller: one thread. It reads requests whole, keeps their payloads, and sends a batch to a
 * worker shortly before the worker's device has run what it has. It knows what each batch takes, so
 * it knows when that is; results correct what it believes.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "predictable/device.h"
#include "predictable/peer.h"
#include "predictable/peer_connection.h"
#include "predictable/wire.h"
#include "runtime/clock.h"

#define EVENTS      64
#define BACKLOG     1024
#define NAP_MAX_NS  1000000000
#define QUEUE_MAX   4096 /* requests of a model; more are refused */
#define ACTIONS_MAX 16   /* that a worker has at a time */

struct action {
	uint64_t number, takes_ns;
	uint32_t n;
	struct request *request[WIRE_BATCH_MAX];
};

struct peer_device {
	struct connection *connection;
	uint64_t free_ns; /* when it will have run its actions */
	struct action action[ACTIONS_MAX];
	uint32_t first, n;
};

struct waiting {
	struct request *request[QUEUE_MAX];
	uint64_t deadline[QUEUE_MAX]; /* less the margin; the earliest first */
	uint32_t n;
};

/* Since the last report. */
struct counts {
	uint64_t requests, refused, expired, answered, actions, held_peak;
};

struct controller {
	const struct peer_serve_options *o;
	struct connections connections;
	struct peer_device device[PLAN_DEVICES_MAX];
	struct waiting waiting[PLAN_MODELS_MAX];
	struct counts counts;
	uint64_t actions;
	int signals;
};

/* --- requests ----------------------------------------------------------------------------------
 */

static void serve_refuse(struct controller *c, struct request *r)
{
	connection_notice(&c->connections, r, TAGGED_DEADLINE);
	request_free(&c->connections, r);
}

static void serve_remove(struct waiting *w, uint32_t from, uint32_t n)
{
	memmove(&w->request[from], &w->request[from + n],
		(w->n - from - n) * sizeof(w->request[0]));
	memmove(&w->deadline[from], &w->deadline[from + n],
		(w->n - from - n) * sizeof(w->deadline[0]));
	w->n -= n;
}

/* Returns its place. */
static uint32_t serve_insert(struct waiting *w, struct request *r, uint64_t deadline)
{
	uint32_t at = w->n++;

	for (; at > 0 && w->deadline[at - 1] > deadline; at--) {
		w->request[at] = w->request[at - 1];
		w->deadline[at] = w->deadline[at - 1];
	}
	w->request[at] = r;
	w->deadline[at] = deadline;
	return at;
}

static void serve_plan(const struct controller *c, uint64_t now, struct plan *plan)
{
	*plan = (struct plan){
		.models = c->o->models, .devices = c->o->workers, .price = c->o->price};
	for (uint32_t i = 0; i < plan->models; i++) {
		plan->model[i] = c->o->model[i];
		plan->model[i].deadline = c->waiting[i].deadline;
		plan->model[i].n = c->waiting[i].n;
	}
	for (uint32_t d = 0; d < plan->devices; d++)
		plan->free[d] = c->device[d].free_ns > now ? c->device[d].free_ns : now;
}

/* All bytes of a request have come. */
static void serve_take(void *context, struct request *r)
{
	struct controller *c = context;
	uint64_t margin = c->o->margin_us * UINT64_C(1000), now = clock_now_ns();
	struct waiting *w = &c->waiting[r->model];
	struct plan plan;
	uint32_t at;

	c->counts.requests++;
	if (w->n == QUEUE_MAX || r->deadline_ns < now + margin) {
		c->counts.refused++;
		serve_refuse(c, r);
		return;
	}
	at = serve_insert(w, r, r->deadline_ns - margin);
	if (!c->o->admits || at + 1 < w->n)
		return;
	serve_plan(c, now, &plan);
	if (plan_admits(&plan, r->model))
		return;
	w->n--;
	c->counts.refused++;
	serve_refuse(c, r);
}

/* Refuses what no device could run in time any more. */
static void serve_expire(struct controller *c, const struct plan *plan)
{
	uint64_t soonest = plan->free[0];

	for (uint32_t d = 1; d < plan->devices; d++)
		soonest = plan->free[d] < soonest ? plan->free[d] : soonest;
	for (uint32_t i = 0; i < plan->models; i++) {
		struct waiting *w = &c->waiting[i];
		uint64_t least = soonest +
				 device_batch_ns(c->o->model[i].base_us, c->o->model[i].each_us, 1);
		uint32_t n = 0;

		while (n < w->n && w->deadline[n] < least) {
			c->counts.expired++;
			serve_refuse(c, w->request[n++]);
		}
		serve_remove(w, 0, n);
	}
}

/* --- actions -----------------------------------------------------------------------------------
 */

static void serve_send(struct controller *c, struct peer_device *device, uint64_t begin,
		       const struct plan_batch *batch)
{
	const struct plan_model *m = &c->o->model[batch->model];
	struct action *a = &device->action[(device->first + device->n++) % ACTIONS_MAX];
	struct waiting *w = &c->waiting[batch->model];
	struct wire_action *wire = calloc(1, sizeof(*wire));

	if (wire == NULL)
		err(1, "memory");
	*a = (struct action){.number = c->actions++,
			     .n = batch->n,
			     .takes_ns = device_batch_ns(m->base_us, m->each_us, batch->n)};
	*wire = (struct wire_action){.number = a->number,
				     .base_us = m->base_us,
				     .each_us = m->each_us,
				     .reply = c->o->reply,
				     .n = a->n};
	for (uint32_t i = 0; i < a->n; i++) {
		a->request[i] = w->request[batch->drop + i];
		wire->length[i] = a->request[i]->size;
	}
	connection_queue(device->connection, wire, wire, sizeof(*wire));
	for (uint32_t i = 0; i < a->n; i++) {
		struct request *r = a->request[i];

		connection_queue(device->connection, r->bytes, r->bytes, r->size);
		r->bytes = NULL;
	}
	connection_flush(&c->connections, device->connection);
	serve_remove(w, batch->drop, batch->n);
	device->free_ns = begin + a->takes_ns;
	c->counts.actions++;
}

/* Gives a device its next action, if it is time. Returns whether it got one. */
static bool serve_dispatch_one(struct controller *c, uint64_t now)
{
	uint64_t ahead = c->o->ahead_us * UINT64_C(1000);
	struct plan_batch batch;
	struct plan plan;
	uint32_t best = 0;

	serve_plan(c, now, &plan);
	serve_expire(c, &plan);
	for (uint32_t d = 1; d < plan.devices; d++)
		if (c->device[d].free_ns < c->device[best].free_ns)
			best = d;
	if (plan.free[best] > now + ahead || c->device[best].n == ACTIONS_MAX)
		return false;
	serve_plan(c, now, &plan);
	if (!plan_next(&plan, best, &batch))
		return false;
	serve_send(c, &c->device[best], plan.free[best], &batch);
	return true;
}

/* Returns ns until something is due. */
static uint64_t serve_dispatch(struct controller *c)
{
	uint64_t ahead = c->o->ahead_us * UINT64_C(1000), now, next = UINT64_MAX;
	bool waits = false;

	while (serve_dispatch_one(c, now = clock_now_ns()))
		;
	for (uint32_t i = 0; i < c->o->models; i++)
		waits |= c->waiting[i].n > 0;
	if (!waits)
		return NAP_MAX_NS;
	for (uint32_t d = 0; d < c->o->workers; d++)
		if (c->device[d].free_ns < next)
			next = c->device[d].free_ns;
	/* A device that is free now would have got something if anything could be in time. */
	return next > now + ahead ? next - now - ahead : ahead + 1;
}

/* A result's replies have come. */
static void serve_result(void *context, uint32_t worker, const struct wire_result *result,
			 struct reply **reply)
{
	struct controller *c = context;
	struct peer_device *device = &c->device[worker];
	struct action *a = &device->action[device->first];
	uint64_t free_ns = clock_now_ns();

	if (device->n == 0 || a->number != result->number || a->n != result->n)
		errx(1, "worker %u: a result of nothing", worker);
	for (uint32_t i = 0; i < a->n; i++) {
		connection_answer(&c->connections, a->request[i], reply[i]);
		request_free(&c->connections, a->request[i]);
	}
	c->counts.answered += a->n;
	device->first = (device->first + 1) % ACTIONS_MAX;
	device->n--;
	for (uint32_t i = 0; i < device->n; i++)
		free_ns += device->action[(device->first + i) % ACTIONS_MAX].takes_ns;
	device->free_ns = free_ns;
}

/* --- the whole ---------------------------------------------------------------------------------
 */

static void serve_report(struct controller *c)
{
	struct connections *k = &c->connections;

	printf("{\"requests\": %" PRIu64 ", \"refused\": %" PRIu64 ", \"expired\": %" PRIu64
	       ", \"answered\": %" PRIu64 ", \"actions\": %" PRIu64 ", \"bytes_in\": %" PRIu64
	       ", \"bytes_out\": %" PRIu64 ", \"held_peak\": %" PRIu64 "}\n",
	       c->counts.requests, c->counts.refused, c->counts.expired, c->counts.answered,
	       c->counts.actions, k->bytes_in, k->bytes_out, k->held_peak);
	fflush(stdout);
	c->counts = (struct counts){0};
	k->bytes_in = k->bytes_out = 0;
	k->held_peak = k->held;
}

static int serve_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

static void serve_open(struct controller *c)
{
	const struct peer_serve_options *o = c->o;
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};

	c->connections = (struct connections){.max_request = o->max_request,
					      .context = c,
					      .request = serve_take,
					      .result = serve_result};
	connections_open(&c->connections);
	c->signals = serve_signals();
	epoll_ctl(c->connections.poll, EPOLL_CTL_ADD, c->signals, &event);
	for (uint32_t d = 0; d < o->workers; d++)
		c->device[d].connection = connection_to(&c->connections, d, &o->worker[d]);
	for (uint32_t i = 0; i < o->models; i++)
		connection_listen(&c->connections, i, o->port[i], BACKLOG);
	puts("ready");
	fflush(stdout);
}

/* A signal with a request for a report, or for the end. False: the end. */
static bool serve_signalled(struct controller *c)
{
	struct signalfd_siginfo info;

	while (read(c->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGTERM)
			return false;
		serve_report(c);
	}
	return true;
}

int peer_serve(const struct peer_serve_options *o)
{
	struct controller *c = calloc(1, sizeof(*c));
	struct epoll_event events[EVENTS];
	bool goes_on = true;

	if (c == NULL)
		err(1, "memory");
	c->o = o;
	peer_keep_memory();
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	serve_open(c);
	while (goes_on) {
		uint64_t left = serve_dispatch(c);
		struct timespec wait = {(time_t)(left / 1000000000), (long)(left % 1000000000)};
		int n = epoll_pwait2(c->connections.poll, events, EVENTS, &wait, NULL);

		for (int i = 0; i < n; i++) {
			if (events[i].data.ptr == NULL)
				goes_on &= serve_signalled(c);
			else
				connection_ready(&c->connections, &events[i]);
		}
		connections_sweep(&c->connections);
	}
	serve_report(c);
	return 0;
}
