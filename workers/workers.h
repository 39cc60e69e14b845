/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which GPU gets a request: the pool of registered workers, and the table that lcores pick from.
 *
 * Threads: the pool belongs to the control thread. Lcores see it only through struct pick_table,
 * which is immutable once published; the load balancer swaps the pointer and says, by QSBR, when
 * the old table may be freed.
 */
#ifndef WORKERS_H
#define WORKERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORKERS_MAX       1024
#define WORKER_NAME_MAX   64
#define WORKER_NONE       UINT16_MAX
#define WORKER_REASON_MAX 128
#define WORKER_SLOTS_MAX  32768 /* struct pick_load counts slots in 16 bits */
#define WORKER_BYTES_MAX  (16u << 20)
#define WORKER_WEIGHT_MAX 256

enum worker_state {
	WORKER_GONE = 0, /* the place is free */
	WORKER_JOINING,  /* registered; waits for its address, its ready call and a heartbeat */
	WORKER_ACTIVE,   /* takes requests */
	WORKER_DRAINING, /* finishes what it has, takes nothing new */
	WORKER_STATES,
};

const char *worker_state_name(enum worker_state state);

/* What an agent says when it registers. Checked by workers_register(). */
struct worker_spec {
	char name[WORKER_NAME_MAX];  /* letters, digits and ._- */
	char model[WORKER_NAME_MAX]; /* printable ASCII without spaces */
	uint64_t instance;           /* random per agent start: tells a restart from a reconnect */
	uint32_t slots;              /* per link; power of two, RING_SLOTS_MIN..WORKER_SLOTS_MAX */
	uint32_t max_request, max_reply; /* bytes the model takes and gives: 1..WORKER_BYTES_MAX */
	uint32_t max_batch;              /* 1..65536 */
	uint32_t weight;       /* 1..256; a share of the hashes, so only maglev reads it */
	uint32_t heartbeat_ms; /* 10..60000 */
	uint32_t max_run_ms;   /* 0..600000; its longest batch: no heartbeat comes meanwhile */
};

struct worker {
	struct worker_spec spec;
	enum worker_state state;
	uint16_t number;        /* index in the pool */
	uint16_t generation;    /* grows each time the place is taken; never 0 */
	bool ready;             /* the agent's queue pairs can receive */
	uint64_t registered_ms; /* on the caller's clock; whoever registers fills it */
	uint64_t heartbeat_ms; /* when the last heartbeat was seen on the slowest link, 0 = never */
	char reason[WORKER_REASON_MAX]; /* why it is not active, for people */
	void *owner;                    /* the control connection, or whoever added it */
};

struct worker_pool;

struct worker_pool *workers_pool_create(void);
void workers_pool_destroy(struct worker_pool *pool);

/*
 * Take the lowest free place for <spec>: state joining, everything else zero. NULL with a sentence
 * in <error> when a field is out of range (it is named), the name is in use, or the pool is full.
 * An agent that comes back is refused like any other until workers_remove() took its old self away.
 * The pool owns the worker; the pointer holds until workers_remove().
 */
struct worker *workers_register(struct worker_pool *pool, const struct worker_spec *spec,
				char *error, size_t error_size);
void workers_remove(struct worker_pool *pool, struct worker *worker);
struct worker *workers_find(struct worker_pool *pool, const char *name);
/* NULL when the number's place is free or there is no such number. Numbers run from 0 to
 * WORKERS_MAX - 1. */
struct worker *workers_get(struct worker_pool *pool, unsigned int number);
/* Of WORKER_GONE: the free places. */
unsigned int workers_count(const struct worker_pool *pool, enum worker_state state);

/* --- choosing ---------------------------------------------------------------------------- */

enum pick_policy { PICK_ROUND_ROBIN, PICK_MAGLEV, PICK_LEAST_OUTSTANDING, PICK_POLICIES };
const char *pick_policy_name(enum pick_policy policy);

/* A prime well above 100 x the workers one service is likely to have. */
#define PICK_MAGLEV_SIZE 65537

/* The active workers of one service, in the order of their numbers. Immutable once published. */
struct pick_table {
	enum pick_policy policy;
	uint16_t n;
	uint64_t member[WORKERS_MAX / 64]; /* one bit per worker number */
	/* hash mod PICK_MAGLEV_SIZE to worker number; NULL for other policies */
	uint16_t *maglev;
	/* least-outstanding: per worker number, 0 or UINT16_MAX = not in the table; else NULL */
	uint16_t *closed;
	uint16_t worker[];
};

/*
 * NULL with errno ENOMEM. Reads the pool, keeps no pointer into it. Takes the workers that are
 * active and whose model is <model>; a table without workers is fine.
 */
struct pick_table *workers_pick_table_create(struct worker_pool *pool, const char *model,
					     enum pick_policy policy);
void workers_pick_table_destroy(struct pick_table *table);

/* One lcore's view of how busy each worker is; only that lcore writes it. */
struct pick_load {
	uint16_t credits[WORKERS_MAX];     /* free slots; 0 also when there is no link */
	uint16_t outstanding[WORKERS_MAX]; /* requests sent and not answered */
};

/*
 * The worker to use for a request of a flow with this hash, or WORKER_NONE if the policy's choice
 * (maglev) or every worker (the others) has no credit. <turn> is the lcore's own memory of whose
 * turn it is in this service; it may start anywhere and outlives tables.
 */
uint16_t workers_pick(const struct pick_table *table, const struct pick_load *load, uint32_t hash,
		      uint32_t *turn);

/* Is <worker> in the table? For flows that stay with their worker. */
static inline bool workers_pick_table_has(const struct pick_table *table, uint16_t worker)
{
	return worker < WORKERS_MAX && table->member[worker / 64] >> worker % 64 & 1;
}

#endif
