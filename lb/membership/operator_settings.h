/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What operators set for workers: drained, weight, assignments. Control thread only.
 */
#ifndef LB_OPERATOR_SETTINGS_H
#define LB_OPERATOR_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "settings.h"
#include "workers.h"

struct lb;

/*
 * Kept by worker name (settings.h), in control.state_file if there is one: a setting holds when the
 * worker registers again, and when the load balancer starts again. A change returns 0, or -errno with a
 * sentence in <error>; then nothing has changed, in the file either.
 */

/* Read the file, before workers can register. */
int lb_settings_open(struct lb *lb, char *error, size_t error_size);
const struct worker_settings *lb_settings(const struct lb *lb);
/* No new requests for the worker of this name, also when it registers later; or again. */
int lb_settings_drain(struct lb *lb, const char *name, bool drain, char *error, size_t error_size);
/* Its share instead of what its agent says, 1 to WORKER_WEIGHT_MAX; 0: what its agent says. */
int lb_settings_weight(struct lb *lb, const char *name, uint32_t weight, char *error,
		       size_t error_size);
/* Nothing is set for this name any more, assignments included. -ENOENT: nothing was. */
int lb_settings_forget(struct lb *lb, const char *name, char *error, size_t error_size);
/* Requests that the last worker of this place had in flight when it went. */
uint64_t lb_worker_lost(const struct lb *lb, const struct worker *worker);

/*
 * Let a worker serve <n> services, by their numbers, or no longer: all of them or, after an error,
 * none. Kept under its name: it is the same when it registers again. 0, or -errno with a sentence in
 * <error>.
 */
int lb_worker_assign(struct lb *lb, const struct worker *worker, const unsigned int *service,
		     unsigned int n, char *error, size_t error_size);
int lb_worker_release(struct lb *lb, const struct worker *worker, const unsigned int *service,
		      unsigned int n, char *error, size_t error_size);
/* --- private to lb/ ---------------------------------------------------------------------------- */

/* Let a worker be as operators set it: its weight, and whether it takes requests. */
void settings_apply(struct lb *lb, struct worker *w);
/* The worker is ready to serve but was drained before it registered: keep it drained. */
void settings_hold(struct lb *lb, struct worker *w);

#endif
