/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Computes which workers serve which services: those that operators assigned, and spares that step
 * in by themselves. Pure: computed from the pool's workers and the previous result. Control thread.
 */
#ifndef WORKERS_ASSIGN_H
#define WORKERS_ASSIGN_H

#include "settings.h"
#include "worker_set.h"

struct worker_pool;

/* Placement reads this label. A worker without it counts as a host of its own. */
#define ASSIGN_HOST_LABEL "host"

enum assign_placement { ASSIGN_SPREAD, ASSIGN_PACK };

/* A service's demand. Only workers of its model serve it. */
struct assign_want {
	const char *service, *model;
	bool assigned_only;   /* true: workers assigned to it; false: all that were not released */
	uint32_t min_workers; /* assigned_only: with fewer active ones, spares step in */
	uint32_t spares;      /* most spares at a time */
	enum assign_placement placement; /* spares on many hosts or on few */
};

/* A service's workers. */
struct assign_result {
	struct worker_set in; /* active workers that serve it */
	struct worker_set
		away; /* suspect because their loops are silent: flows may wait for them */
	struct worker_set spares; /* the spares among <in> */
	uint16_t soon;            /* number of suspect and probing workers that would serve it */
};

/*
 * Fill <result> of the <n> services; it holds the previous result, or zeros. A spare is an active
 * worker that is assigned to no service and is no other service's spare. An existing spare stays as
 * long as it is needed; else the placement decides, then the name. Services choose in their order.
 */
void workers_assign(struct worker_pool *pool, const struct worker_settings *settings,
		    const struct assign_want *want, unsigned int n, struct assign_result *result);

#endif
