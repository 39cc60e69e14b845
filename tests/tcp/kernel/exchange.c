/* SPDX-License-Identifier: BSD-3-Clause */
#include "exchange.h"

#include <string.h>

static uint64_t word_of(uint64_t seed, uint64_t number)
{
	uint64_t x = seed + number * 0x9e3779b97f4a7c15;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	return x ^ x >> 27;
}

void exchange_fill(uint64_t seed, uint64_t from, uint8_t *at, uint32_t n)
{
	while (n > 0) {
		uint64_t word = word_of(seed, from / 8);
		uint32_t skip = from % 8, part = 8 - skip < n ? 8 - skip : n;

		memcpy(at, (uint8_t *)&word + skip, part);
		at += part;
		from += part;
		n -= part;
	}
}

uint32_t exchange_compare(uint64_t seed, uint64_t from, const uint8_t *at, uint32_t n)
{
	uint8_t expected[256];

	for (uint32_t done = 0; done < n;) {
		uint32_t part = n - done < sizeof(expected) ? n - done : sizeof(expected);

		exchange_fill(seed, from + done, expected, part);
		if (memcmp(expected, at + done, part) != 0) {
			while (expected[0] == at[done] && memcmp(expected, at + done, 1) == 0 &&
			       done < n) {
				done++;
				exchange_fill(seed, from + done, expected, 1);
			}
			return done;
		}
		done += part;
	}
	return n;
}

static void begin_reply(struct exchange *e)
{
	if (e->n == EXCHANGE_OPEN) {
		e->wrong = true; /* more requests than a client of these tests opens */
		return;
	}
	e->reply[(e->first + e->n++) % EXCHANGE_OPEN] =
		(struct exchange_reply){e->queued, e->queued + e->request.wanted, ~e->request.seed};
	e->queued += e->request.wanted;
	e->requests++;
	e->head_have = 0;
	e->got = 0;
}

uint64_t exchange_take(struct exchange *e, const uint8_t *at, uint32_t n)
{
	uint64_t before = e->queued;

	while (n > 0 && !e->wrong) {
		uint32_t part = EXCHANGE_HEAD - e->head_have;

		if (part > 0) {
			part = part < n ? part : n;
			memcpy(e->head + e->head_have, at, part);
			e->head_have += part;
			memcpy(&e->request, e->head, sizeof(e->request));
		} else {
			part = e->request.bytes - e->got < n ? e->request.bytes - e->got : n;
			e->wrong |= exchange_compare(e->request.seed, e->got, at, part) != part;
			e->got += part;
		}
		at += part;
		n -= part;
		if (e->head_have == EXCHANGE_HEAD && e->got == e->request.bytes)
			begin_reply(e);
	}
	return e->queued - before;
}

void exchange_give(const struct exchange *e, uint64_t from, uint8_t *at, uint32_t n)
{
	for (uint32_t i = 0; i < e->n && n > 0; i++) {
		const struct exchange_reply *r = &e->reply[(e->first + i) % EXCHANGE_OPEN];
		uint64_t part;

		if (from < r->from || from >= r->to)
			continue;
		part = r->to - from < n ? r->to - from : n;
		exchange_fill(r->seed, from - r->from, at, part);
		from += part;
		at += part;
		n -= part;
	}
}

void exchange_forget(struct exchange *e, uint64_t acked)
{
	while (e->n > 0 && e->reply[e->first].to <= acked) {
		e->first = (e->first + 1) % EXCHANGE_OPEN;
		e->n--;
	}
}
