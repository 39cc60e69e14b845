/* SPDX-License-Identifier: BSD-3-Clause */
/* workers.refused: the agents whose registration was refused. */
#include <stdlib.h>
#include <string.h>

#include "server/refusals.h"
#include "server/rpc.h"

static int by_last(const void *a, const void *b)
{
	const struct refusal *const *x = a, *const *y = b;

	return (*x)->last_ms < (*y)->last_ms ? 1 : (*x)->last_ms > (*y)->last_ms ? -1 : 0;
}

static json_t *text_or_null(const char *text)
{
	return text[0] != '\0' ? control_text(text) : json_null();
}

static json_t *row_json(const struct refusal *row, uint64_t now_ms)
{
	return json_pack("{s:I, s:I, s:I, s:o, s:o, s:o, s:o}", "last_s",
			 (json_int_t)((now_ms - row->last_ms) / 1000), "first_s",
			 (json_int_t)((now_ms - row->first_ms) / 1000), "times",
			 (json_int_t)row->times, "peer", control_text(row->peer), "worker",
			 text_or_null(row->worker), "model", text_or_null(row->model), "reason",
			 control_text(row->reason));
}

json_t *control_workers_refused(struct control_call *call)
{
	const struct refusals *refusals = call->c->refusals;
	const struct refusal *sorted[REFUSALS_MAX];
	unsigned int n = refusals != NULL ? refusals->n : 0;
	uint64_t now_ms = clock_now_ms();
	json_t *rows;

	if (!control_params_read(call, "params", call->params, NULL, 0, NULL))
		return NULL;
	rows = json_array();
	for (unsigned int i = 0; i < n; i++)
		sorted[i] = &refusals->row[i];
	qsort(sorted, n, sizeof(sorted[0]), by_last);
	for (unsigned int i = 0; i < n; i++)
		json_array_append_new(rows, row_json(sorted[i], now_ms));
	return json_pack("{s:I, s:o}", "total",
			 (json_int_t)(refusals != NULL ? refusals->total : 0), "refused", rows);
}
