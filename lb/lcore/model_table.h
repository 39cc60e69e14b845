/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The described models that services can ask now, by name. Never changed: whenever workers come or
 * go the control thread makes another and replaces the pointer under QSBR, as it does with pick
 * tables. Pure.
 */
#ifndef LB_MODEL_TABLE_H
#define LB_MODEL_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "description.h"
#include "worker_limits.h"

struct model_entry {
	char name[WORKER_NAME_MAX];
	/* That of a worker: all workers of a model have the same tensors. */
	struct model_description description;
	/* Rows of a client's batch: the least that one of its workers takes at once. 1 if the model
	 * has no batch. */
	uint32_t max_rows;
};

struct model_table {
	unsigned int n;
	struct model_entry entry[]; /* sorted by name */
};

/* Create a table with room for <n_max> models, empty; NULL when out of memory. */
struct model_table *model_table_create(unsigned int n_max);
/* NULL is fine. */
void model_table_destroy(struct model_table *table);
/*
 * Enter a worker's model, which has room, or lower the rows of the one that is there. Only before
 * the table is published.
 */
void model_table_add(struct model_table *table, const char *name,
		     const struct model_description *description, uint32_t max_batch);

/* The model of this name, of <length> bytes without a NUL; NULL: none that is described. */
const struct model_entry *model_table_find(const struct model_table *table, const char *name,
					   size_t length);

#endif
