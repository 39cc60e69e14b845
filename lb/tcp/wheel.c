/* SPDX-License-Identifier: BSD-3-Clause */
#include "tcp/wheel.h"

/* Seconds ahead at most; what is later goes there and comes up early. */
#define WHEEL_AHEAD (TCP_WHEEL_SECONDS - 2)

/* The lists: a slot each, then the entries that are due, and those of a second that is near. */
#define WHEEL_SECONDS TCP_WHEEL_MS
#define WHEEL_DUE     (WHEEL_SECONDS + TCP_WHEEL_SECONDS)
#define WHEEL_NEAR    (WHEEL_DUE + 1)
#define WHEEL_LISTS   (WHEEL_NEAR + 1)

/* Entries of the near second that move per ms: all of them do in half a second. */
#define WHEEL_NEAR_BUDGET(wheel) (16 + (wheel)->n / (TCP_WHEEL_SECOND / 2))

size_t tcp_wheel_bytes(uint32_t n)
{
	return ((size_t)n + 1 + WHEEL_LISTS) * sizeof(struct tcp_wheel_entry);
}

static uint32_t wheel_ms(const struct tcp_wheel *wheel, uint32_t ms)
{
	return wheel->lists + ms % TCP_WHEEL_MS;
}

static uint32_t wheel_second(const struct tcp_wheel *wheel, uint32_t second)
{
	return wheel->lists + WHEEL_SECONDS + second % TCP_WHEEL_SECONDS;
}

static bool wheel_is_empty(const struct tcp_wheel *wheel, uint32_t list)
{
	return wheel->entry[list].next == list;
}

void tcp_wheel_init(struct tcp_wheel *wheel, uint32_t n, uint32_t now_ms, void *memory)
{
	*wheel = (struct tcp_wheel){.now_ms = now_ms, .entry = memory, .lists = n + 1};
	for (uint32_t i = 0; i <= n; i++)
		wheel->entry[i] = (struct tcp_wheel_entry){0};
	for (uint32_t i = wheel->lists; i < wheel->lists + WHEEL_LISTS; i++)
		wheel->entry[i] = (struct tcp_wheel_entry){.next = i, .previous = i};
}

static void wheel_push(struct tcp_wheel *wheel, uint32_t list, uint32_t number)
{
	struct tcp_wheel_entry *entry = &wheel->entry[number];

	entry->next = wheel->entry[list].next;
	entry->previous = list;
	wheel->entry[entry->next].previous = number;
	wheel->entry[list].next = number;
}

static void wheel_unlink(struct tcp_wheel *wheel, uint32_t number)
{
	struct tcp_wheel_entry *entry = &wheel->entry[number];

	wheel->entry[entry->previous].next = entry->next;
	wheel->entry[entry->next].previous = entry->previous;
	entry->next = entry->previous = 0;
}

static void wheel_place(struct tcp_wheel *wheel, uint32_t number)
{
	uint32_t due_ms = wheel->entry[number].due_ms, second = due_ms / TCP_WHEEL_SECOND;
	int32_t left = (int32_t)(due_ms - wheel->now_ms);

	if (left <= 0)
		return wheel_push(wheel, wheel->lists + WHEEL_DUE, number);
	if (left < TCP_WHEEL_MS)
		return wheel_push(wheel, wheel_ms(wheel, due_ms), number);
	if (left / TCP_WHEEL_SECOND > WHEEL_AHEAD)
		second = wheel->now_ms / TCP_WHEEL_SECOND + WHEEL_AHEAD;
	wheel_push(wheel, wheel_second(wheel, second), number);
}

void tcp_wheel_move(struct tcp_wheel *wheel, uint32_t number, uint32_t due_ms)
{
	struct tcp_wheel_entry *entry = &wheel->entry[number];

	if (entry->next != 0) {
		wheel_unlink(wheel, number);
		wheel->n--;
	}
	entry->due_ms = due_ms;
	wheel_place(wheel, number);
	wheel->n++;
}

void tcp_wheel_remove(struct tcp_wheel *wheel, uint32_t number)
{
	if (!tcp_wheel_waits(wheel, number))
		return;
	wheel_unlink(wheel, number);
	wheel->n--;
}

/* The first <most> entries of a list go where they belong now. */
static void wheel_move(struct tcp_wheel *wheel, uint32_t list, uint32_t most)
{
	for (; most > 0 && !wheel_is_empty(wheel, list); most--) {
		uint32_t number = wheel->entry[list].next;

		__builtin_prefetch(&wheel->entry[wheel->entry[number].next]);
		wheel_unlink(wheel, number);
		wheel_place(wheel, number);
	}
}

/* All entries of a list go to the front of another. */
static void wheel_append(struct tcp_wheel *wheel, uint32_t from, uint32_t to)
{
	struct tcp_wheel_entry *a = &wheel->entry[from], *b = &wheel->entry[to];

	if (wheel_is_empty(wheel, from))
		return;
	wheel->entry[a->previous].next = b->next;
	wheel->entry[b->next].previous = a->previous;
	wheel->entry[a->next].previous = to;
	b->next = a->next;
	a->next = a->previous = from;
}

/* A second's entries begin to move when it is still far enough away for all of them. */
static void wheel_begin_second(struct tcp_wheel *wheel)
{
	uint32_t near = wheel->lists + WHEEL_NEAR;

	wheel_move(wheel, near, UINT32_MAX);
	wheel_append(wheel, wheel_second(wheel, wheel->now_ms / TCP_WHEEL_SECOND + 1), near);
}

/* After a pause of a lap and more every slot is visited once. */
static void wheel_advance_all(struct tcp_wheel *wheel, uint32_t now_ms)
{
	uint32_t all = wheel->lists + WHEEL_NEAR;

	wheel->now_ms = now_ms;
	for (uint32_t i = wheel->lists; i < wheel->lists + WHEEL_DUE; i++)
		wheel_append(wheel, i, all);
	/* None of them goes back to the end that it came from. */
	wheel_move(wheel, all, wheel->n);
}

void tcp_wheel_advance(struct tcp_wheel *wheel, uint32_t now_ms)
{
	if (now_ms - wheel->now_ms >= TCP_WHEEL_MS)
		return wheel_advance_all(wheel, now_ms);
	while (wheel->now_ms != now_ms) {
		wheel->now_ms++;
		if (wheel->now_ms % TCP_WHEEL_SECOND == 0)
			wheel_begin_second(wheel);
		wheel_move(wheel, wheel->lists + WHEEL_NEAR, WHEEL_NEAR_BUDGET(wheel));
		wheel_append(wheel, wheel_ms(wheel, wheel->now_ms), wheel->lists + WHEEL_DUE);
	}
}

uint32_t tcp_wheel_left(const struct tcp_wheel *wheel, uint32_t most)
{
	uint32_t ms = 0;

	if (!wheel_is_empty(wheel, wheel->lists + WHEEL_DUE))
		return 0;
	/* Entries that are due within half a second have left the slots of seconds. */
	if (most > TCP_WHEEL_SECOND / 2)
		most = TCP_WHEEL_SECOND / 2;
	if (wheel->n == 0)
		return most;
	while (ms < most && wheel_is_empty(wheel, wheel_ms(wheel, wheel->now_ms + ms)))
		ms++;
	return ms;
}

uint32_t tcp_wheel_take(struct tcp_wheel *wheel)
{
	uint32_t number = wheel->entry[wheel->lists + WHEEL_DUE].next;

	if (number == wheel->lists + WHEEL_DUE)
		return 0;
	wheel_unlink(wheel, number);
	wheel->n--;
	return number;
}
