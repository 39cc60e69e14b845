/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker for tests of policies: registered, active, of the model "echo". */
#ifndef WORKERS_FIXTURE_H
#define WORKERS_FIXTURE_H

#include <criterion/criterion.h>
#include <stdio.h>

#include "pool.h"
#include "schedule/pick.h"

static inline struct worker *fixture_register(struct worker_pool *pool, const char *name,
					      uint32_t slots, uint32_t batch, uint32_t weight)
{
	struct worker_spec spec = {
		.model = "echo",
		.instance = 1,
		.slots = slots,
		.max_request = 1472,
		.max_reply = 1472,
		.max_batch = batch,
		.weight = weight,
		.heartbeat_ms = 100,
	};
	char error[160] = "";
	struct worker *worker;

	snprintf(spec.name, sizeof(spec.name), "%s", name);
	worker = workers_register(pool, &spec, error, sizeof(error));
	cr_assert_not_null(worker, "%s", error);
	worker->state = WORKER_ACTIVE;
	return worker;
}

static inline struct worker *fixture_worker(struct worker_pool *pool, unsigned int i,
					    uint32_t slots, uint32_t weight)
{
	char name[16];

	snprintf(name, sizeof(name), "gpu-%u", i);
	return fixture_register(pool, name, slots, 1, weight);
}

#endif
