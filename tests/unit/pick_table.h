/* SPDX-License-Identifier: BSD-3-Clause */
/* Pick tables for tests and benches of policies, which have no services. */
#ifndef PICK_TABLE_H
#define PICK_TABLE_H

#include <string.h>

#include "pool.h"
#include "schedule/pick.h"

/* Create a table of all active workers whose model is <model>. NULL with errno ENOMEM. */
static inline struct pick_table *pick_table_of_model(struct worker_pool *pool, const char *model,
						     enum pick_policy policy)
{
	struct worker_set in = {0};
	uint16_t soon = 0;

	for (const struct worker *w = workers_next(pool, NULL); w != NULL;
	     w = workers_next(pool, w)) {
		if (strcmp(w->spec.model, model) != 0)
			continue;
		worker_set_add(&in, w->number);
		soon += w->state == WORKER_SUSPECT || w->state == WORKER_PROBING;
	}
	return workers_pick_table_create(pool, &in, soon, policy);
}

#endif
