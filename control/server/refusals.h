/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Recent registrations that were refused, for operators: a refused agent tries again every 2 s, and
 * its own log is on another machine. All tries of one agent for one reason share a row. Control
 * thread.
 */
#ifndef CONTROL_REFUSALS_H
#define CONTROL_REFUSALS_H

#include <stdint.h>

#include "server/log_limit.h"
#include "worker_limits.h"

#define REFUSALS_MAX 32 /* rows; the one that was quiet for longest is overwritten first */

struct refusal {
	char peer[64]; /* its address without the port, which changes with every try */
	char worker[WORKER_NAME_MAX], model[WORKER_NAME_MAX]; /* "" when the agent did not say */
	char reason[400];
	uint64_t times, first_ms, last_ms; /* on clock_now_ms() */
};

/* Starts as zeroes. */
struct refusals {
	uint64_t total;
	struct log_limit logged; /* lines about names that certificates do not allow */
	unsigned int n;
	struct refusal row[REFUSALS_MAX];
};

/* Count a refusal; <peer> is an address with its port. Does nothing when <refusals> is NULL. */
void refusals_note(struct refusals *refusals, const char *peer, const char *worker,
		   const char *model, const char *reason, uint64_t now_ms);

/*
 * The latest refusal of an agent that serves <model> (NULL: any model), or NULL when there is none.
 */
const struct refusal *refusals_latest(const struct refusals *refusals, const char *model);

#endif
