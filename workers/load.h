/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How busy each worker is and how fast it answers, as one lcore sees it. Only that lcore reads and
 * writes it. Included by workers.h.
 *
 * Policies keep what they worked out, by blocks of 32 workers; so whoever changes a worker's load
 * notes it. All changes go through the calls below.
 */
#ifndef WORKERS_LOAD_H
#define WORKERS_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#define LOAD_BLOCK  32
#define LOAD_BLOCKS (WORKERS_MAX / LOAD_BLOCK)
/* Changes of which the worker is known one by one. A power of two. */
#define LOAD_RECENT 64

/* How fast a worker answers: time during which it owed answers, and answers in it. */
struct load_meter {
	uint64_t mark; /* ticks; its last answer, or when it got work after having none */
	float busy_ns; /* since the last sample of its gap */
	uint16_t answers;
	bool measured; /* run_ns and gap_ns are no guesses */
};

struct pick_load {
	uint16_t credits[WORKERS_MAX];     /* free slots; 0 also when there is no link */
	uint16_t outstanding[WORKERS_MAX]; /* requests sent and not answered */
	uint32_t open[LOAD_BLOCKS];        /* one bit per worker: has credits */
	uint64_t changes;
	uint32_t changed[LOAD_BLOCKS]; /* <changes> after the block's last one, low half */
	uint16_t recent[LOAD_RECENT];  /* the worker of change c, at c mod LOAD_RECENT; LOAD_ROSE */
	float ns_per_tick;             /* of the clock that callers read */
	/*
	 * A request that finds the worker idle has run after run_ns, and each one that is before it
	 * adds gap_ns: the time between answers while it is busy. Both are about the same for a
	 * worker that takes requests one by one; one that takes batches has a smaller gap.
	 */
	float run_ns[WORKERS_MAX], gap_ns[WORKERS_MAX];
	struct load_meter meter[WORKERS_MAX];
};

/* Of <recent>: the worker has one more outstanding, and nothing else has changed. */
#define LOAD_ROSE 0x8000u

static inline void load_note(struct pick_load *load, uint16_t worker, uint16_t rose)
{
	uint32_t block = worker / LOAD_BLOCK;

	load->changes++;
	load->changed[block] = (uint32_t)load->changes;
	load->recent[load->changes % LOAD_RECENT] = worker | rose;
}

/* Zeros, and the clock: <ticks> of it are a second. */
void workers_load_init(struct pick_load *load, uint64_t ticks);
/* A link with <credits> free slots is there; nothing is known of the worker. Or it is gone. */
void workers_load_open(struct pick_load *load, uint16_t worker, uint16_t credits);
void workers_load_close(struct pick_load *load, uint16_t worker);

/* A credit is taken for a request; there must be one. */
static inline void workers_load_sent(struct pick_load *load, uint16_t worker, uint64_t now)
{
	if (load->outstanding[worker]++ == 0)
		load->meter[worker].mark = now;
	if (--load->credits[worker] == 0)
		load->open[worker / LOAD_BLOCK] &= ~(1u << worker % LOAD_BLOCK);
	load_note(load, worker, LOAD_ROSE);
}

/* The credit is back: the request was not sent after all. */
static inline void workers_load_unsent(struct pick_load *load, uint16_t worker)
{
	load->outstanding[worker]--;
	load->credits[worker]++;
	load->open[worker / LOAD_BLOCK] |= 1u << worker % LOAD_BLOCK;
	load_note(load, worker, 0);
}

void load_measure(struct pick_load *load, uint16_t worker, uint64_t now, uint64_t run_ns);

/*
 * The last of the reply is in, and the credit is back. <run_ns>: how long the model ran, as the
 * worker says; 0 if it did not.
 */
static inline void workers_load_answered(struct pick_load *load, uint16_t worker, uint64_t now,
					 uint64_t run_ns)
{
	load_measure(load, worker, now, run_ns);
	workers_load_unsent(load, worker);
}

/*
 * How long until <worker> would be done with one more request, the way there and back not counted;
 * 0 as long as it has answered none. Of the worker that workers_pick() gives for earliest-finish,
 * it is the shortest of all.
 */
static inline uint64_t workers_expected_finish_ns(const struct pick_load *load, uint16_t worker)
{
	if (!load->meter[worker].measured)
		return 0;
	return (uint64_t)(load->run_ns[worker] +
			  load->gap_ns[worker] * (float)load->outstanding[worker]);
}

/*
 * Once every LOAD_RELAX_MS: who has nothing to do seems a little faster than it was, so that a
 * worker which was slow for a while gets a request again that says whether it still is. After ten
 * seconds one that was five times slower than others.
 */
#define LOAD_RELAX_MS 100
void workers_load_relax(struct pick_load *load);

#endif
