/* SPDX-License-Identifier: BSD-3-Clause */
#include "tcp/wheel.h"

#include <stddef.h>

/* Seconds ahead at most; what is later goes there and comes up early. */
#define WHEEL_AHEAD (TCP_WHEEL_SECONDS - 2)

void tcp_wheel_init(struct tcp_wheel *wheel, uint32_t now_ms)
{
	*wheel = (struct tcp_wheel){.now_ms = now_ms};
}

static void wheel_push(struct tcp_wheel_entry **list, struct tcp_wheel_entry *entry)
{
	entry->next = *list;
	entry->at = list;
	if (entry->next != NULL)
		entry->next->at = &entry->next;
	*list = entry;
}

static void wheel_unlink(struct tcp_wheel_entry *entry)
{
	*entry->at = entry->next;
	if (entry->next != NULL)
		entry->next->at = entry->at;
	entry->at = NULL;
}

static void wheel_place(struct tcp_wheel *wheel, struct tcp_wheel_entry *entry)
{
	int32_t left = (int32_t)(entry->due_ms - wheel->now_ms);
	uint32_t second = entry->due_ms / TCP_WHEEL_SECOND;

	if (left <= 0)
		return wheel_push(&wheel->due, entry);
	if (left < TCP_WHEEL_MS)
		return wheel_push(&wheel->ms[entry->due_ms % TCP_WHEEL_MS], entry);
	if (left / TCP_WHEEL_SECOND > WHEEL_AHEAD)
		second = wheel->now_ms / TCP_WHEEL_SECOND + WHEEL_AHEAD;
	wheel_push(&wheel->second[second % TCP_WHEEL_SECONDS], entry);
}

void tcp_wheel_set(struct tcp_wheel *wheel, struct tcp_wheel_entry *entry, uint32_t due_ms)
{
	if (entry->at != NULL) {
		if ((int32_t)(due_ms - entry->due_ms) >= 0)
			return;
		wheel_unlink(entry);
		wheel->n--;
	}
	entry->due_ms = due_ms;
	wheel_place(wheel, entry);
	wheel->n++;
}

void tcp_wheel_remove(struct tcp_wheel *wheel, struct tcp_wheel_entry *entry)
{
	if (entry->at == NULL)
		return;
	wheel_unlink(entry);
	wheel->n--;
}

/* A list's entries go where they belong now. */
static void wheel_move(struct tcp_wheel *wheel, struct tcp_wheel_entry **list)
{
	struct tcp_wheel_entry *entry = *list, *next;

	*list = NULL;
	for (; entry != NULL; entry = next) {
		next = entry->next;
		wheel_place(wheel, entry);
	}
}

/* After a pause of a lap and more every slot is visited once. */
static void wheel_advance_all(struct tcp_wheel *wheel, uint32_t now_ms)
{
	wheel->now_ms = now_ms;
	for (uint32_t i = 0; i < TCP_WHEEL_MS; i++)
		wheel_move(wheel, &wheel->ms[i]);
	for (uint32_t i = 0; i < TCP_WHEEL_SECONDS; i++)
		wheel_move(wheel, &wheel->second[i]);
}

void tcp_wheel_advance(struct tcp_wheel *wheel, uint32_t now_ms)
{
	if (now_ms - wheel->now_ms >= TCP_WHEEL_MS)
		return wheel_advance_all(wheel, now_ms);
	while (wheel->now_ms != now_ms) {
		wheel->now_ms++;
		/* A second's entries move when it is still far enough away for all of them. */
		if (wheel->now_ms % TCP_WHEEL_SECOND == 0)
			wheel_move(wheel, &wheel->second[(wheel->now_ms / TCP_WHEEL_SECOND + 1) %
							 TCP_WHEEL_SECONDS]);
		wheel_move(wheel, &wheel->ms[wheel->now_ms % TCP_WHEEL_MS]);
	}
}

uint32_t tcp_wheel_left(const struct tcp_wheel *wheel, uint32_t most)
{
	uint32_t ms = 0;

	if (wheel->due != NULL)
		return 0;
	if (most > TCP_WHEEL_SECOND)
		most = TCP_WHEEL_SECOND;
	if (wheel->n == 0)
		return most;
	/* Entries that are due within a second have left the slots of seconds. */
	while (ms < most && wheel->ms[(wheel->now_ms + ms) % TCP_WHEEL_MS] == NULL)
		ms++;
	return ms;
}

struct tcp_wheel_entry *tcp_wheel_take(struct tcp_wheel *wheel)
{
	struct tcp_wheel_entry *entry = wheel->due;

	if (entry == NULL)
		return NULL;
	wheel_unlink(entry);
	wheel->n--;
	return entry;
}
