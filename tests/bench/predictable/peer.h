/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The peer of the bench `predictable`: a central controller that holds all payloads and decides
 * what each worker runs when, as Clockwork (OSDI 2020) does. Clients speak the framing `tagged` to
 * it.
 */
#ifndef PREDICTABLE_PEER_H
#define PREDICTABLE_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "predictable/plan.h"
#include "runtime/endpoint.h"

struct peer_work_options {
	uint32_t port;
	const char *device;
};

struct peer_serve_options {
	uint32_t models, workers;
	uint32_t port[PLAN_MODELS_MAX]; /* where clients of each model connect */
	struct plan_model model[PLAN_MODELS_MAX];
	struct endpoint_address worker[PLAN_DEVICES_MAX];
	uint32_t reply; /* bytes at most */
	uint32_t max_request;
	uint32_t ahead_us;  /* before a device is free its next action is sent */
	uint32_t margin_us; /* before its deadline a batch must end */
	double price;       /* plan.h */
	bool admits;        /* refuse at once what could not be in time */
};

/* A scheduler without delays or payloads, beside which both sides are measured. */
struct peer_ideal_options {
	uint32_t models, devices, deadlines;
	struct plan_model model[PLAN_MODELS_MAX];
	uint64_t deadline_ns[PLAN_MODELS_MAX];
	double rate, seconds;
	uint64_t seed;
	uint32_t warmup_ms;
};

/* Prints what part of the requests that are due after the warm-up can be in time. */
int peer_ideal(const struct peer_ideal_options *options);

/* Both end with the other side, or by SIGTERM. */
int peer_work(const struct peer_work_options *options);
int peer_serve(const struct peer_serve_options *options);

/* Memory that was freed stays with the process: large payloads cost no page faults. */
void peer_keep_memory(void);

#endif
