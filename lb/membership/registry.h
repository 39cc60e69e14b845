/* SPDX-License-Identifier: BSD-3-Clause */
/* What health.c needs of registry.c (private to lb/). Control thread. */
#ifndef LB_REGISTRY_H
#define LB_REGISTRY_H

#include "lcore/lcore.h"

/* Change a worker's state: log it, publish new pick tables if that matters, tell the owner. */
void registry_set_state(struct lb *lb, struct worker *w, enum worker_state state,
			const char *reason);

/* Publish new pick tables for every service that <model> serves. */
void registry_publish(struct lb *lb, const char *model);

/*
 * Could the workers that are there serve what <config> says? 0, or -EINVAL with a sentence in
 * <error> that names worker, key and fix.
 */
int registry_check_config(const struct lb *lb, const struct lb_config *config, char *error,
			  size_t size);

/*
 * A worker is doubted once more: note it, and say for how long it is to wait: <first_ms>, and each
 * time longer when it was doubted shortly before.
 */
uint32_t health_hold_ms(struct worker_doubt *doubt, uint32_t now_ms, uint32_t first_ms);

/* eject.c: workers that answer worse than the others. */
void eject_tick(struct lb *lb);

/* allot.c: which workers serve which service. */
void allot_update(struct lb *lb, const struct lb_config *config);
/* As workers_pick_table_create_of(). */
struct pick_table *allot_table(struct lb *lb, const struct lb_service_config *s,
			       unsigned int service);

/* settings.c: let a worker be as operators set it: its weight, and whether it takes requests. */
void settings_apply(struct lb *lb, struct worker *w);
/* It is ready to serve, and has been drained already. */
void settings_hold(struct lb *lb, struct worker *w);

/* Why a worker in this state is as it is, where nothing else is to be said: for people. */
const char *registry_reason(const struct worker *w);
/* health.c: its agent's connection closed. Suspect it until its next heartbeat, if that may be. */
void health_hint(struct lb *lb, struct worker *w);

/* A link that no lcore knows. NULL is fine. */
void registry_destroy_link(struct lb *lb, struct link *link);

/* Free the links of gone workers whose lcores are done with them. */
void registry_free_links(struct lb *lb);

#endif
