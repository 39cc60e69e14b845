/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operators' settings for workers: drained, weight, assignments. Control thread only.
 */
#ifndef LB_OPERATOR_SETTINGS_H
#define LB_OPERATOR_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pool.h"
#include "settings.h"

struct lb;

/*
 * Kept by worker name (settings.h), in control.state_file if there is one: a setting outlives a new
 * registration of the worker and a restart of the load balancer. A change returns 0, or -errno with
 * a sentence in <error>, and then nothing has changed, in the file either.
 */

/* Read the file, before workers can register. */
int lb_settings_open(struct lb *lb, char *error, size_t error_size);
const struct worker_settings *lb_settings(const struct lb *lb);
/*
 * <drain>: the worker of this name gets no new requests, also if it registers later. False: it gets
 * them again.
 */
int lb_settings_drain(struct lb *lb, const char *name, bool drain, char *error, size_t error_size);
/*
 * Drain <old>, whose requests <successor> takes from now on. If that one stops serving (it is gone,
 * drained, or leaves) before <old> is drained, <old> serves again. Where <old> was drained already
 * it stays drained. The caller has checked that <successor> serves; without a return to the event
 * loop in between, both are one step. 0, or -errno with a sentence in <error>.
 *
 * A replacement that was under way when the load balancer ended is in the state file: <old> serves
 * when it registers again, until <successor> does, and is drained then; or, if that one does not
 * come within SUCCESSOR_MS of <old>, or does not serve all services that <old> serves, for good.
 * <partly>: it need not serve all of them.
 */
#define SUCCESSOR_MS 10000u
int lb_settings_replace(struct lb *lb, struct worker *old, const struct worker *successor,
			bool partly, char *error, size_t error_size);
/* Set the worker's weight, 1 to WORKER_WEIGHT_MAX; 0: the weight that its agent registered. */
int lb_settings_weight(struct lb *lb, const char *name, uint32_t weight, char *error,
		       size_t error_size);
/* Remove all settings of this name, assignments included. -ENOENT: there were none. */
int lb_settings_forget(struct lb *lb, const char *name, char *error, size_t error_size);
/* Requests that the worker had in flight when its links went down. */
uint64_t lb_worker_lost(const struct lb *lb, const struct worker *worker);

/*
 * Assign a worker to <n> services, given by number, or release it from them. An error changes none
 * of them. The setting is kept under the worker's name and outlives a new registration. 0, or
 * -errno with a sentence in <error>.
 */
int lb_worker_assign(struct lb *lb, const struct worker *worker, const unsigned int *service,
		     unsigned int n, char *error, size_t error_size);
int lb_worker_release(struct lb *lb, const struct worker *worker, const unsigned int *service,
		      unsigned int n, char *error, size_t error_size);
/* --- private to lb/ ----------------------------------------------------------------------------
 */

/* Apply operators' settings to a worker: its weight, and whether it is drained. */
void settings_apply(struct lb *lb, struct worker *w);
/*
 * For a worker that is being replaced: let it serve again if its successor does not serve any more,
 * and begin its drain when one that was waited for does. True when its state has changed.
 */
bool settings_check_successor(struct lb *lb, struct worker *w);
/* It is drained: if it was being replaced, that is over. */
void settings_end_replacement(struct lb *lb, struct worker *w);
/* The worker is ready to serve but was drained before it registered: keep it drained. */
void settings_hold(struct lb *lb, struct worker *w);

#endif
