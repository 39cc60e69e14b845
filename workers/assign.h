/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which workers serve which services: what operators said, and spares that step in by themselves.
 * Pure: it is worked out anew from the pool's workers and what was the case before. Control thread.
 */
#ifndef WORKERS_ASSIGN_H
#define WORKERS_ASSIGN_H

#include "settings.h"

/* The label that placement goes by; a worker without it is a host of its own. */
#define ASSIGN_HOST_LABEL "host"

enum assign_placement { ASSIGN_SPREAD, ASSIGN_PACK };

/* What a service wants. Workers of other models are never its. */
struct assign_want {
	const char *service, *model;
	bool assigned_only; /* workers that were assigned to it; else all that were not released */
	uint32_t min_workers;            /* assigned_only: with fewer active ones, spares step in */
	uint32_t spares;                 /* so many at most */
	enum assign_placement placement; /* of spares: on few hosts, or on many */
};

/* What becomes of it: active workers, and those that are suspect or probing and would be in. */
struct assign_result {
	struct worker_set in;
	struct worker_set away;   /* suspect, as their loops are silent: flows may wait for them */
	struct worker_set spares; /* of these, those that stepped in by themselves */
	uint16_t soon;
};

/*
 * Fill <result> of the <n> services; it holds what was the case before, or zeros. A spare is an
 * active worker that no service has assigned, and of no other service a spare. Who is one already
 * stays as long as it is needed; else the placement decides, then the name. Services that come
 * first choose first.
 */
void workers_assign(struct worker_pool *pool, const struct worker_settings *settings,
		    const struct assign_want *want, unsigned int n, struct assign_result *result);

#endif
