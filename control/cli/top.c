/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The best of many rows, in memory for twice as many as are wanted.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

int cli_top_init(struct cli_top *top, size_t want, const char *field)
{
	*top = (struct cli_top){.want = want, .field = field};
	top->row = calloc(2 * want, sizeof(*top->row));
	if (top->row != NULL)
		return 0;
	cli_error("out of memory for %zu rows", want);
	return -ENOMEM;
}

static const json_t *value_of(const struct cli_top *top, const json_t *row)
{
	return json_is_array(row) ? json_array_get(row, top->place)
				  : json_object_get(row, top->field);
}

/* Numbers: largest first. Text: in order. */
static int compare_rows(const void *a, const void *b, void *top)
{
	const json_t *x = value_of(top, *(json_t *const *)a);
	const json_t *y = value_of(top, *(json_t *const *)b);

	if (json_is_string(x) && json_is_string(y))
		return strcmp(json_string_value(x), json_string_value(y));
	return (json_integer_value(x) < json_integer_value(y)) -
	       (json_integer_value(x) > json_integer_value(y));
}

void cli_top_sort(struct cli_top *top)
{
	qsort_r(top->row, top->n, sizeof(*top->row), compare_rows, top);
	while (top->n > top->want)
		json_decref(top->row[--top->n]);
}

void cli_top_add(struct cli_top *top, json_t *rows)
{
	for (size_t i = 0; i < json_array_size(rows); i++) {
		if (top->n == 2 * top->want)
			cli_top_sort(top);
		top->row[top->n++] = json_incref(json_array_get(rows, i));
	}
}

json_t *cli_top_end(struct cli_top *top)
{
	json_t *rows = json_array();

	cli_top_sort(top);
	for (size_t i = 0; i < top->n; i++)
		json_array_append_new(rows, top->row[i]);
	free(top->row);
	return rows;
}
