/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/refusals.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static void refusal_copy(char *to, size_t size, const char *text)
{
	snprintf(to, size, "%s", text != NULL ? text : "");
}

static bool refusal_is_same(const struct refusal *a, const struct refusal *b)
{
	return strcmp(a->peer, b->peer) == 0 && strcmp(a->worker, b->worker) == 0 &&
	       strcmp(a->model, b->model) == 0 && strcmp(a->reason, b->reason) == 0;
}

/* The row of <what>, or the row that it may overwrite. */
static struct refusal *refusal_place(struct refusals *refusals, const struct refusal *what)
{
	struct refusal *quiet = &refusals->row[0];

	for (unsigned int i = 0; i < refusals->n; i++) {
		struct refusal *row = &refusals->row[i];

		if (refusal_is_same(row, what))
			return row;
		if (row->last_ms < quiet->last_ms)
			quiet = row;
	}
	if (refusals->n < REFUSALS_MAX)
		quiet = &refusals->row[refusals->n++];
	*quiet = *what;
	return quiet;
}

void refusals_note(struct refusals *refusals, const char *peer, const char *worker,
		   const char *model, const char *reason, uint64_t now_ms)
{
	struct refusal what = {.first_ms = now_ms}, *row;
	char *colon;

	if (refusals == NULL)
		return;
	refusal_copy(what.peer, sizeof(what.peer), peer);
	colon = strrchr(what.peer, ':');
	if (colon != NULL)
		*colon = '\0';
	refusal_copy(what.worker, sizeof(what.worker), worker);
	refusal_copy(what.model, sizeof(what.model), model);
	refusal_copy(what.reason, sizeof(what.reason), reason);
	row = refusal_place(refusals, &what);
	row->times++;
	row->last_ms = now_ms;
	refusals->total++;
}

const struct refusal *refusals_latest(const struct refusals *refusals, const char *model)
{
	const struct refusal *latest = NULL;

	for (unsigned int i = 0; refusals != NULL && i < refusals->n; i++) {
		const struct refusal *row = &refusals->row[i];

		if (model != NULL && strcmp(row->model, model) != 0)
			continue;
		if (latest == NULL || row->last_ms >= latest->last_ms)
			latest = row;
	}
	return latest;
}
