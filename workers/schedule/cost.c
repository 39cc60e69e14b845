/* SPDX-License-Identifier: BSD-3-Clause */
/* The cost of an outstanding request by its worker's weight, for policies that compare loads. */
#include <errno.h>
#include <stdlib.h>

#include "schedule/schedule.h"

int schedule_prepare_cost(struct pick_table *table, const struct worker *const *member)
{
	uint32_t heaviest = 0;

	table->cost = calloc(WORKERS_MAX, sizeof(*table->cost));
	if (table->cost == NULL)
		return -ENOMEM;
	for (unsigned int i = 0; i < table->n; i++)
		if (workers_weight(member[i]) > heaviest)
			heaviest = workers_weight(member[i]);
	table->capacity = 0;
	/* With equal weights all costs are 1, so that loads compare exactly. */
	for (unsigned int i = 0; i < table->n; i++) {
		table->cost[table->worker[i]] = (float)heaviest / (float)workers_weight(member[i]);
		table->capacity += (float)workers_weight(member[i]) / (float)heaviest;
	}
	return 0;
}
