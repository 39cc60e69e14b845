/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds the member with a credit whose base + outstanding x slope is the smallest; equal ones take
 * turns. least-outstanding and earliest-finish use it. Private to workers/schedule.
 *
 * The state holds the smallest key of every block of 32 workers with the workers that have it, and
 * the smallest of all blocks with the blocks that have it. A worker that got a request since the
 * last pick leaves its block's set. Only when that set is empty, or another change happened in the
 * block, does a pick search the block, and then the blocks' keys: each is one step of vector code.
 * So a pick takes about the same time with 2 workers as with WORKERS_MAX.
 */
#ifndef WORKERS_SMALLEST_H
#define WORKERS_SMALLEST_H

#include "schedule/lanes.h"
#include "schedule/schedule.h"

/*
 * Apply one change of a worker's load; returns the bit of its block if the block must be searched
 * now. When the load only rose, the worker just leaves its block's set, and the search waits until
 * the set is empty. That pays where equal loads are common (<equals>).
 */
static inline uint32_t smallest_follow(struct pick_state *state, uint16_t change, bool equals)
{
	uint32_t block = change % WORKERS_MAX / WORKER_BLOCK, bit = 1u << change % WORKER_BLOCK;
	uint32_t now = 1u << block;

	if (equals && change & LOAD_ROSE) {
		state->lanes[block] &= ~bit;
		state->stale |= (uint32_t)(state->lanes[block] == 0) << block;
		now = 0;
	}
	return now;
}

/* Apply all changes since the last pick. True if blocks must be searched now. */
static inline bool smallest_changed(const struct pick_table *table, const struct pick_load *load,
				    struct pick_state *state, bool equals)
{
	uint64_t n = load->changes - state->seen;
	uint32_t now = 0;

	if (__builtin_expect(state->serial != table->serial, 0)) {
		state->serial = table->serial;
		now = UINT32_MAX;
	} else if (__builtin_expect(n <= LOAD_RECENT, 1)) {
		for (uint64_t c = state->seen; c != load->changes;)
			now |= smallest_follow(state, load->recent[++c % LOAD_RECENT], equals);
	} else {
		/* After 2^31 changes the low halves are ambiguous: search all blocks. */
		for (uint32_t b = 0; b < WORKER_BLOCKS; b++)
			now |= (uint32_t)(n > INT32_MAX ||
					  (int32_t)(load->changed[b] - (uint32_t)state->seen) > 0)
			       << b;
	}
	state->seen = load->changes;
	state->stale |= now;
	return (now & table->blocks) != 0 || (state->blocks & ~state->stale) == 0;
}

/* Search the blocks that changed. */
static inline void smallest_search(const struct pick_table *table, const struct pick_load *load,
				   struct lanes_keys keys, struct pick_state *state)
{
	uint32_t changed = table->blocks & state->stale, same = table->blocks & ~state->stale;
	struct lanes_least least = {UINT32_MAX, 0};

	/* The two searches do not depend on each other. */
	if (same != 0)
		least = lanes_least(state->key, same);
	for (; changed != 0; changed &= changed - 1) {
		uint32_t b = (uint32_t)__builtin_ctz(changed);
		struct lanes_least of =
			lanes_least_loaded(load->outstanding, keys, b * WORKER_BLOCK,
					   table->member[b] & load->open[b]);

		state->key[b] = of.key;
		state->lanes[b] = of.lanes;
		least.lanes = of.key < least.key ? 0 : least.lanes;
		least.key = of.key < least.key ? of.key : least.key;
		least.lanes |= (uint32_t)(of.key == least.key) << b;
	}
	state->stale = 0;
	state->least = least.key;
	state->blocks = least.lanes;
}

/* The first worker with the smallest key from number <start> on, wrapping around. */
static inline uint16_t smallest_in_turn(const struct pick_state *state, uint32_t start)
{
	uint32_t block = start / WORKER_BLOCK % WORKER_BLOCKS, lanes = 0;
	uint32_t blocks = state->blocks & ~state->stale;
	uint32_t later = blocks & (uint32_t)(~UINT64_C(0) << (block + 1));

	if (blocks >> block & 1)
		lanes = state->lanes[block] & ~0u << start % WORKER_BLOCK;
	if (lanes == 0) {
		block = (uint32_t)__builtin_ctz(later != 0 ? later : blocks);
		lanes = state->lanes[block];
	}
	return block * WORKER_BLOCK + (uint32_t)__builtin_ctz(lanes);
}

static inline uint16_t smallest_pick(const struct pick_table *table, const struct pick_load *load,
				     struct lanes_keys keys, struct pick_state *state, bool equals)
{
	uint16_t worker;

	if (smallest_changed(table, load, state, equals))
		smallest_search(table, load, keys, state);
	if (state->least == UINT32_MAX)
		return WORKER_NONE;
	worker = smallest_in_turn(state, state->turn);
	state->turn = worker + 1;
	return worker;
}

#endif
