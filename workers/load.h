/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How busy each worker is and how fast it answers, as one lcore sees it. Only that lcore reads and
 * writes it.
 *
 * Policies cache their results by blocks of 32 workers, so every change of a load is noted. All
 * changes go through the calls below.
 */
#ifndef WORKERS_LOAD_H
#define WORKERS_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "worker_set.h"

/* Last changes whose worker is recorded. A power of two. */
#define LOAD_RECENT 64

/* Measures how fast a worker answers: the time in which it owed answers, and the answers in it. */
struct load_meter {
	uint64_t mark;    /* ticks: its last answer, or when it got work after being idle */
	float busy_ns;    /* since its gap was last computed */
	uint16_t answers; /* since its gap was last computed */
	uint16_t batches; /* that they came in */
	bool measured;    /* run_ns and gap_ns are measured, not guessed */
	bool alone;       /* of what it owes, nothing was sent beside the first request */
};

struct pick_load {
	uint16_t credits[WORKERS_MAX];     /* free slots; 0 also when there is no link */
	uint16_t outstanding[WORKERS_MAX]; /* requests sent and not answered, and placed ones */
	uint16_t placed[WORKERS_MAX];      /* of those: places whose request it has not yet */
	uint16_t later[WORKERS_MAX];       /* of the others: sent after its last answer */
	/* Of a worker that runs requests by their deadlines: what it said last waits for a run,
	 * less <later> then; modulo 2^32, as of other workers it only grows. */
	uint32_t told[WORKERS_MAX];
	bool by_deadline[WORKERS_MAX];
	float wait_ns[WORKERS_MAX];        /* that its requests waited for a run of late */
	uint32_t open[WORKER_BLOCKS];      /* one bit per worker: it has credits */
	uint64_t changes;                  /* number of changes so far */
	uint32_t changed[WORKER_BLOCKS];   /* low half of <changes> after the block's last change */
	uint16_t recent[LOAD_RECENT];      /* change c is at c mod LOAD_RECENT: worker, LOAD_ROSE */
	float ns_per_tick;                 /* of the caller's clock */
	/*
	 * Expected time of a request: run_ns on an idle worker, plus gap_ns, the time between
	 * answers of a busy worker, for each request before it. A worker that runs requests one by
	 * one has about the same for both; one that runs batches has a smaller gap.
	 */
	float run_ns[WORKERS_MAX], gap_ns[WORKERS_MAX];
	float turn_ns[WORKERS_MAX]; /* from the end of a batch to that of the next one */
	/* run time of a request alone, if it is known, else 0: where batches have several sizes, it
	 * is less than run_ns */
	float alone_ns[WORKERS_MAX];
	struct load_meter meter[WORKERS_MAX];
};

/* Flag in <recent>: the worker has one more outstanding request, and nothing else changed. */
#define LOAD_ROSE 0x8000u

static inline void load_note(struct pick_load *load, uint16_t worker, uint16_t rose)
{
	uint32_t block = worker / WORKER_BLOCK;

	load->changes++;
	load->changed[block] = (uint32_t)load->changes;
	load->recent[load->changes % LOAD_RECENT] = worker | rose;
}

/* Zero all fields. <ticks> is the clock's rate in Hz. */
void workers_load_init(struct pick_load *load, uint64_t ticks);
/* A link with <credits> free slots was made, or is gone. Both reset all that is known of the
 * worker. */
void workers_load_open(struct pick_load *load, uint16_t worker, uint16_t credits);
void workers_load_close(struct pick_load *load, uint16_t worker);

static inline void load_take_credit(struct pick_load *load, uint16_t worker)
{
	load->outstanding[worker]++;
	if (--load->credits[worker] == 0)
		load->open[worker / WORKER_BLOCK] &= ~(1u << worker % WORKER_BLOCK);
	load_note(load, worker, LOAD_ROSE);
}

static inline void load_give_credit(struct pick_load *load, uint16_t worker)
{
	load->outstanding[worker]--;
	load->credits[worker]++;
	load->open[worker / WORKER_BLOCK] |= 1u << worker % WORKER_BLOCK;
	load_note(load, worker, 0);
}

/* Take a credit for a request at time <now>, in ticks. The caller has checked that there is one. */
static inline void workers_load_sent(struct pick_load *load, uint16_t worker, uint64_t now)
{
	bool idle = load->outstanding[worker] == load->placed[worker];

	load->meter[worker].alone = idle;
	if (idle) {
		load->meter[worker].mark = now;
		load->told[worker]++;
	} else {
		load->later[worker]++;
	}
	load_take_credit(load, worker);
}

/* Give back the credit of a request that was not sent. */
static inline void workers_load_unsent(struct pick_load *load, uint16_t worker)
{
	load->later[worker] -= load->later[worker] > 0;
	load_give_credit(load, worker);
}

/*
 * Take a credit for a request whose bytes are still to come: the worker owes no answer for it
 * before it is announced. Or give its credit back, when it will not be.
 */
static inline void workers_load_placed(struct pick_load *load, uint16_t worker)
{
	load_take_credit(load, worker);
	load->placed[worker]++;
}

static inline void workers_load_announced(struct pick_load *load, uint16_t worker, uint64_t now)
{
	bool idle = load->outstanding[worker] == load->placed[worker]--;

	load->meter[worker].alone = idle;
	if (idle) {
		load->meter[worker].mark = now;
		load->told[worker]++;
	} else {
		load->later[worker]++;
	}
}

static inline void workers_load_unplaced(struct pick_load *load, uint16_t worker)
{
	load->placed[worker]--;
	load_give_credit(load, worker);
}

void load_measure(struct pick_load *load, uint16_t worker, uint64_t now, uint64_t run_ns);

/*
 * The last chunk of the reply arrived: give the credit back. <run_ns>: run time of the model as the
 * worker reports it; 0 if it did not run.
 */
static inline void workers_load_answered(struct pick_load *load, uint16_t worker, uint64_t now,
					 uint64_t run_ns)
{
	load_measure(load, worker, now, run_ns);
	load->later[worker] = 0;
	load_give_credit(load, worker);
}

/*
 * The worker says that <waiting> requests wait for a run there, those of others included: with each
 * answer, and when a run begins. It runs them by their deadlines and gives up what would be late.
 */
static inline void workers_load_told(struct pick_load *load, uint16_t worker, uint32_t waiting)
{
	load->by_deadline[worker] = true;
	load->told[worker] = waiting - load->later[worker];
}

/* A request of such a worker waited for so long until its run began. */
static inline void workers_load_waited(struct pick_load *load, uint16_t worker, uint64_t wait_ns)
{
	load->wait_ns[worker] += ((float)wait_ns - load->wait_ns[worker]) / 16;
}

/* Requests that wait for a run at a worker that runs them by deadline, with those that are on their
 * way there. */
static inline uint32_t workers_load_waiting(const struct pick_load *load, uint16_t worker)
{
	int32_t waiting = (int32_t)(load->told[worker] + load->later[worker]);

	return (uint32_t)(waiting > 0 ? waiting : 0) + load->placed[worker];
}

/*
 * Which of two such workers should have one more request that has the time to wait? One that has
 * nothing to do, and whose requests have waited for less than half a run of late, would run it at
 * once. Else the one where a batch of <batch> has begun to gather: full batches cost least. Else
 * where fewest wait, and then where it would be done first.
 */
bool workers_load_gathers_before(const struct pick_load *load, uint16_t a, uint16_t b, uint64_t now,
				 uint32_t batch);

/*
 * ns until such a worker could have run one more if it ran nothing but those that wait there, and
 * full batches only: its models' turns are its own to arrange.
 */
uint64_t workers_soonest_finish_ns(const struct pick_load *load, uint16_t worker, uint32_t batch);

/*
 * Expected ns from <now>, in ticks, until <worker>, which runs at most <batch> of the caller's
 * requests at a time, has run one more, without the network. Places are left out: their requests
 * may come later, or never. Before its first answer this is what earliest-finish guesses, or 0.
 */
uint64_t workers_expected_finish_ns(const struct pick_load *load, uint16_t worker, uint64_t now,
				    uint32_t batch);

static inline bool workers_load_is_measured(const struct pick_load *load, uint16_t worker)
{
	return load->meter[worker].measured;
}

/*
 * Call every LOAD_RELAX_MS. Lowers the times of idle workers, so that a worker that was slow gets a
 * request again and is measured anew. A worker that was five times slower than others gets one
 * after 10 s.
 */
#define LOAD_RELAX_MS 100
void workers_load_relax(struct pick_load *load);

#endif
