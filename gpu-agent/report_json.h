/* SPDX-License-Identifier: BSD-3-Clause */
/* The report of a worker that goes with agent.renew. Main thread. */
#ifndef AGENT_REPORT_JSON_H
#define AGENT_REPORT_JSON_H

#include <jansson.h>

#include "gpu/health.h"
#include "loop/loop.h"

/* A new reference: the report of control.h. <gpu> may be NULL. */
json_t *report_json(const struct agent_loop_stats *stats, const struct agent_buckets *buckets,
		    const struct worker_gpu *gpu);

#endif
