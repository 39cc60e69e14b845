/* SPDX-License-Identifier: BSD-3-Clause */
#include "lcore/model_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct model_table *model_table_create(unsigned int n_max)
{
	struct model_table *table = malloc(sizeof(*table) + n_max * sizeof(table->entry[0]));

	if (table != NULL)
		table->n = 0;
	return table;
}

void model_table_destroy(struct model_table *table)
{
	free(table);
}

/* As strcmp(); the name is a client's, does not end in a NUL, and may contain some. */
static int model_name_compare(const char *name, size_t length, const char *entry)
{
	size_t own = strlen(entry);
	int order = memcmp(name, entry, length < own ? length : own);

	return order != 0 ? order : (length > own) - (length < own);
}

/* The place of the first entry that is not less than the name. */
static unsigned int model_table_place(const struct model_table *t, const char *name, size_t length)
{
	unsigned int from = 0, to = t->n;

	while (from < to) {
		unsigned int middle = (from + to) / 2;

		if (model_name_compare(name, length, t->entry[middle].name) > 0)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

const struct model_entry *model_table_find(const struct model_table *table, const char *name,
					   size_t length)
{
	unsigned int at;

	if (table == NULL || length >= WORKER_NAME_MAX)
		return NULL;
	at = model_table_place(table, name, length);
	if (at == table->n || model_name_compare(name, length, table->entry[at].name) != 0)
		return NULL;
	return &table->entry[at];
}

void model_table_add(struct model_table *table, const char *name,
		     const struct model_description *description, uint32_t max_batch)
{
	uint32_t max_rows = description->batch ? max_batch : 1;
	unsigned int at = model_table_place(table, name, strlen(name));
	struct model_entry *e = &table->entry[at];

	if (at < table->n && strcmp(e->name, name) == 0) {
		if (max_rows < e->max_rows)
			e->max_rows = max_rows;
		return;
	}
	memmove(e + 1, e, (table->n++ - at) * sizeof(*e));
	snprintf(e->name, sizeof(e->name), "%s", name);
	e->description = *description;
	e->max_rows = max_rows;
}
