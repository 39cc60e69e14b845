/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The decisions of a central controller that knows what every batch takes: which batch a device
 * runs next, and which requests are refused. Pure; times are ns of any one clock.
 */
#ifndef PREDICTABLE_PLAN_H
#define PREDICTABLE_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#define PLAN_MODELS_MAX  8
#define PLAN_DEVICES_MAX 8

struct plan_model {
	uint32_t base_us, each_us, max_batch;
	/* The deadlines of its requests that wait, the earliest first. */
	const uint64_t *deadline;
	uint32_t n;
};

struct plan {
	uint32_t models, devices;
	struct plan_model model[PLAN_MODELS_MAX];
	uint64_t free[PLAN_DEVICES_MAX]; /* when each device can begin another batch */
	/* Requests that a second of a device is worth, beyond those that wait: what it takes from
	 * requests that are still to come. */
	double price;
};

/* The next batch: of <model>'s requests the first <drop> are passed over, and the <n> behind them
 * run. */
struct plan_batch {
	uint32_t model, drop, n;
};

/* The best batch for <device>. False: nothing waits that could be in time there. */
bool plan_next(const struct plan *plan, uint32_t device, struct plan_batch *out);

/* Would the last request of <model> be in time, if none came after it? */
bool plan_admits(const struct plan *plan, uint32_t model);

#endif
