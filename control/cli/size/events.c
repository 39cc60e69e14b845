/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/size/events.h"

#include <errno.h>
#include <stdlib.h>

#define FIRST 1024

void events_fini(struct events *events)
{
	free(events->heap);
}

static bool is_before(const struct event *a, const struct event *b)
{
	return a->at_us < b->at_us || (a->at_us == b->at_us && a->order < b->order);
}

int events_add(struct events *events, double at_us, uint32_t kind, uint32_t subject)
{
	struct event event = {at_us, events->added++, kind, subject};
	size_t i = events->n;

	if (events->n == events->room) {
		size_t room = events->room != 0 ? events->room * 2 : FIRST;
		struct event *heap = reallocarray(events->heap, room, sizeof(*heap));

		if (heap == NULL)
			return -ENOMEM;
		events->heap = heap;
		events->room = room;
	}
	events->n++;
	for (; i > 0 && is_before(&event, &events->heap[(i - 1) / 2]); i = (i - 1) / 2)
		events->heap[i] = events->heap[(i - 1) / 2];
	events->heap[i] = event;
	return 0;
}

bool events_next(struct events *events, struct event *first)
{
	struct event last;
	size_t i = 0, child;

	if (events->n == 0)
		return false;
	*first = events->heap[0];
	last = events->heap[--events->n];
	for (; (child = 2 * i + 1) < events->n; i = child) {
		if (child + 1 < events->n &&
		    is_before(&events->heap[child + 1], &events->heap[child]))
			child++;
		if (!is_before(&events->heap[child], &last))
			break;
		events->heap[i] = events->heap[child];
	}
	events->heap[i] = last;
	return true;
}
