/* SPDX-License-Identifier: BSD-3-Clause */
#include "turns/line.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* First requests that a batch may leave out, so that those behind them are more. */
#define LINE_LEAVES 32

int line_init(struct line *line, uint32_t room)
{
	*line = (struct line){.at = calloc(room, sizeof(*line->at)), .room = room};
	return line->at == NULL ? -ENOMEM : 0;
}

void line_fini(struct line *line)
{
	free(line->at);
}

uint64_t line_due(uint64_t began_ns, uint32_t deadline_us)
{
	return deadline_us == 0 ? LINE_NEVER : began_ns + deadline_us * UINT64_C(990);
}

void line_add(struct line *line, uint64_t seen_ns, uint64_t due_ns, uint32_t place)
{
	uint64_t turn = seen_ns + LINE_PATIENCE_NS;
	uint32_t at = line->n++;

	turn = due_ns < turn ? due_ns : turn;
	while (at > 0 && line->at[at - 1].turn_ns > turn)
		at--;
	memmove(&line->at[at + 1], &line->at[at], (line->n - 1 - at) * sizeof(*line->at));
	line->at[at] = (struct line_request){due_ns, turn, place};
}

void line_remove(struct line *line, uint32_t first, uint32_t n)
{
	memmove(&line->at[first], &line->at[first + n], (line->n - first - n) * sizeof(*line->at));
	line->n -= n;
}

uint32_t line_late(const struct line *line, const struct takes *takes, uint64_t begin,
		   uint32_t from)
{
	uint64_t soonest = begin + takes_expect(takes, 1);

	while (from < line->n && line->at[from].due_ns >= soonest)
		from++;
	return from;
}

/* How many from <first> on are in time together. */
static uint32_t line_fits(const struct line *line, const struct takes *takes, uint32_t first,
			  uint32_t max, uint64_t begin)
{
	uint64_t due = UINT64_MAX;
	uint32_t n = 0;

	while (n < max && first + n < line->n) {
		if (line->at[first + n].due_ns < due)
			due = line->at[first + n].due_ns;
		if (due < begin + takes_expect(takes, n + 1))
			break;
		n++;
	}
	return n;
}

static double line_worth(const struct line *line, const struct line_batch *b, uint64_t end,
			 uint64_t wait)
{
	double worth = 0;

	for (uint32_t i = b->first; i < b->first + b->n; i++) {
		uint64_t turn = line->at[i].turn_ns;
		double left = turn > end ? (double)(turn - end) : 0;

		worth += (double)wait / ((double)wait + left);
	}
	return worth;
}

bool line_choose(const struct line *line, const struct takes *takes, uint32_t max, uint64_t begin,
		 uint64_t wait, struct line_batch *out)
{
	uint32_t most = 0;

	out->worth = -1;
	for (uint32_t first = 0; first < line->n && first < LINE_LEAVES && most < max; first++) {
		struct line_batch b = {first, line_fits(line, takes, first, max, begin), 0};

		/* Without the first ones it must be larger. */
		if (b.n <= most)
			continue;
		most = b.n;
		b.worth =
			line_worth(line, &b, begin + takes_expect(takes, b.n), wait > 0 ? wait : 1);
		if (b.worth > out->worth)
			*out = b;
	}
	return most > 0;
}

uint64_t line_work(const struct line *line, const struct takes *takes, uint32_t max)
{
	uint32_t rest = line->n % max;

	return line->n / max * takes_expect(takes, max) +
	       (rest > 0 ? takes_expect(takes, rest) : 0);
}
