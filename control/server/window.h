/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rates and percentiles of the last second: the present counters and histograms less those of a
 * second ago. The control thread samples once a second, so a single request shows them. Private to
 * this folder and its tests.
 */
#ifndef CONTROL_WINDOW_H
#define CONTROL_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "lb.h"

/* One part of the latency, us. */
struct window_latency {
	uint64_t count;
	double mean, p50, p90, p99;
};

struct window_service {
	uint64_t requests, replies, notices, drops, bytes_in, bytes_out; /* per second */
	struct window_latency part[LATENCY_PARTS];
};

struct window_lcore {
	uint64_t packets_in, packets_out, requests, replies, drops; /* per second */
	uint64_t new_flows;                                         /* per second */
	uint64_t polls;                                             /* of its loop, in the window */
	double busy; /* share of the time that it spent working, 0 to 1 */
};

struct window_worker {
	uint16_t generation; /* of the worker that was sampled; 0: no two samples yet */
	uint64_t requests, replies, errors; /* per second */
	uint64_t count;                     /* replies in the window */
	double wait, run, wire, total;      /* means over the replies, us */
	double gpu; /* seconds of requests in the model per second; may exceed 1 */
};

struct window;

/* NULL when memory is short. */
struct window *window_create(void);
void window_destroy(struct window *w);

#define WINDOW_PERIOD_MS 1000 /* between samples */

/* Take a sample; does nothing when no time has passed since the last one. */
void window_sample(struct window *w, struct lb *lb, uint64_t now_ms);

/* Length of the window, ms; 0 before there are two samples. */
uint64_t window_ms(const struct window *w);

/* The rates of one item, or NULL before there are two samples of it. */
const struct window_service *window_service(const struct window *w, unsigned int service);
const struct window_lcore *window_lcore(const struct window *w, unsigned int lcore);
const struct window_worker *window_worker(const struct window *w, const struct worker *worker);

#endif
