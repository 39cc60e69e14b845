/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registrations that were refused lately, for operators: an agent tries again every 2 s for as long
 * as it takes, and its own log is on another machine. Tries of one agent for one reason are one
 * row. Control thread.
 */
#ifndef CONTROL_REFUSALS_H
#define CONTROL_REFUSALS_H

#include <stdint.h>

#include "server/log_limit.h"
#include "worker_limits.h"

#define REFUSALS_MAX 32 /* rows; the one that was quiet for longest makes room */

struct refusal {
	char peer[64]; /* its address, without the port, which is another with every try */
	char worker[WORKER_NAME_MAX], model[WORKER_NAME_MAX]; /* "" where it did not get to say */
	char reason[400];
	uint64_t times, first_ms, last_ms; /* on clock_now_ms() */
};

/* Begin with zeroes. */
struct refusals {
	uint64_t total;
	struct log_limit logged; /* lines about names that certificates do not allow */
	unsigned int n;
	struct refusal row[REFUSALS_MAX];
};

/* <refusals> may be NULL, then nothing happens. <peer> is an address with its port. */
void refusals_note(struct refusals *refusals, const char *peer, const char *worker,
		   const char *model, const char *reason, uint64_t now_ms);

/* The latest of those who serve <model>, NULL: of any; NULL when there is none. */
const struct refusal *refusals_latest(const struct refusals *refusals, const char *model);

#endif
