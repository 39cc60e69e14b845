/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The facade of this folder's pure part: pool.c, the pool of registered workers, and pick.c, the
 * table that lcores pick from.
 *
 * Threads: the pool belongs to the control thread. Lcores read struct pick_table only, which is
 * immutable once published; the load balancer swaps the pointer, and frees the old table when QSBR
 * shows that no lcore reads it.
 */
#ifndef WORKERS_H
#define WORKERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "outlier.h"

#define WORKERS_MAX       1024
#define WORKER_NAME_MAX   64
#define WORKER_NONE       UINT16_MAX
#define WORKER_REASON_MAX 128
#define WORKER_SLOTS_MAX  32768 /* struct pick_load counts slots in 16 bits */
#define WORKER_BYTES_MAX  (16u << 20)
#define WORKER_WEIGHT_MAX 256
#define WORKER_SHARE_FULL 1000 /* per mille of its weight: slow start is over */
#define WORKER_LABELS_MAX 16

#include "load.h"

enum worker_state {
	WORKER_GONE = 0, /* the place is free */
	WORKER_JOINING,  /* registered; its address, ready call and first heartbeat are awaited */
	WORKER_PROBING,  /* has to answer a probe request before it gets others */
	WORKER_ACTIVE,   /* takes requests */
	WORKER_SUSPECT,  /* missed heartbeats or answers worse than others: no new requests */
	WORKER_DRAINING, /* finishes its requests, gets no new ones */
	WORKER_STATES,
};

const char *worker_state_name(enum worker_state state);

/* A label of a worker: host=rack2-7, gpu=h200, memory=141GiB ... */
struct worker_label {
	char key[32];   /* letters, digits and ._-/ */
	char value[64]; /* printable ASCII without spaces */
};

/* An agent's registration. workers_register() checks it. */
struct worker_spec {
	char name[WORKER_NAME_MAX];  /* letters, digits and ._- */
	char model[WORKER_NAME_MAX]; /* printable ASCII without spaces */
	uint64_t instance;           /* random per agent start: tells a restart from a reconnect */
	uint32_t slots;              /* per link; power of two, RING_SLOTS_MIN..WORKER_SLOTS_MAX */
	uint32_t max_request, max_reply; /* bytes the model takes and gives: 1..WORKER_BYTES_MAX */
	uint32_t min_request;            /* bytes; the model refuses shorter ones; 0..max_request */
	uint32_t max_batch;              /* 1..65536 */
	uint32_t weight;       /* 1..256; round-robin and earliest-finish do not read it */
	uint32_t heartbeat_ms; /* 10..60000 */
	uint32_t max_run_ms;   /* 0..600000; its longest batch, without heartbeats meanwhile */
	unsigned int n_labels;
	struct worker_label label[WORKER_LABELS_MAX]; /* keys are unique */
};

/*
 * Why a worker is suspect. The load balancer's health and ejection checks own it; times are ms of
 * their clock.
 */
struct worker_doubt {
	bool silent;                /* its loop's heartbeats are missing */
	bool ejected;               /* it answers worse than the others */
	bool hinted;                /* its agent's connection closed, and no heartbeat came since */
	uint32_t hinted_ms;         /* when the connection closed */
	uint32_t since_ms;          /* when it last became suspect */
	uint32_t until_ms;          /* it stays suspect until then at least */
	uint32_t longest_run_ms[2]; /* longest batch of this window of time and of the last one */
	uint32_t window_ms;         /* start of this window */
	uint32_t times;             /* ejections in a row, close to each other */
	struct outlier_window window;
};

struct worker {
	struct worker_spec spec;
	enum worker_state state;
	uint16_t number;          /* index in the pool */
	uint16_t generation;      /* grows each time the place is taken; never 0 */
	bool ready;               /* the agent's queue pairs can receive */
	bool drain;               /* an operator drained it (settings.h) */
	bool drained;             /* draining, without outstanding requests, and that was logged */
	bool uncontrolled;        /* its agent's control connection is lost; its loop may run */
	uint32_t uncontrolled_ms; /* since when */
	bool leaving;             /* its agent asked for the drain because it will end */
	uint32_t own_weight;      /* the agent's weight; spec.weight is the one in effect */
	uint16_t share;         /* per mille of its weight, less than full in slow start; 0: full */
	uint32_t active_ms;     /* when it turned active first, on the same clock */
	uint64_t registered_ms; /* filled by the caller, on its clock */
	uint64_t heartbeat_ms; /* when the last heartbeat was seen on the slowest link, 0 = never */
	struct worker_doubt doubt;
	char reason[WORKER_REASON_MAX]; /* why it is not active, as the CLI prints it */
	void *owner;                    /* the control connection, or another caller's object */
};

struct worker_pool;

struct worker_pool *workers_pool_create(void);
void workers_pool_destroy(struct worker_pool *pool);

/*
 * Register a worker: its place is the one that its name had before, or the lowest free one. It is
 * joining, everything else is zero. NULL with a sentence in <error> when a field is out of range
 * (it is named), the name is in use, or the pool is full. An agent that returns is refused like any
 * other until workers_remove() removed its old registration. The pool owns the worker; the pointer
 * is valid until workers_remove().
 */
struct worker *workers_register(struct worker_pool *pool, const struct worker_spec *spec,
				char *error, size_t error_size);
/* True when a worker can have this name. */
bool workers_name_is_valid(const char *name);
/* True when all fields of <spec> are in range; else false with a sentence in <error>. */
bool workers_spec_is_valid(const struct worker_spec *spec, char *error, size_t error_size);
void workers_remove(struct worker_pool *pool, struct worker *worker);
struct worker *workers_find(struct worker_pool *pool, const char *name);
/* The last worker of this name, which is gone; NULL when its place was taken since. */
const struct worker *workers_find_gone(const struct worker_pool *pool, const char *name);
/*
 * The worker with this number, 0 to WORKERS_MAX - 1; NULL when its place is free or out of range.
 */
struct worker *workers_get(struct worker_pool *pool, unsigned int number);
/* The worker with the next higher number, also when <worker> is gone by now; the first one for
 * NULL. NULL: there is none. */
struct worker *workers_next(struct worker_pool *pool, const struct worker *worker);
/*
 * The worker's weight times its share: 1 to 256 x WORKER_SHARE_FULL. Maglev reads spec.weight
 * alone, because each step of a slow start would move flows.
 */
uint32_t workers_weight(const struct worker *worker);
/*
 * Slow start: a worker's share (per mille of its weight) <age_ms> after it became active. It grows
 * in proportion from a tenth to WORKER_SHARE_FULL at <slow_start_ms> (0: full at once). Pick tables
 * read the share when they are created.
 */
uint16_t workers_slow_start_share(uint64_t age_ms, uint32_t slow_start_ms);
/* The value of the worker's label <key>, or NULL. */
const char *workers_label(const struct worker *worker, const char *key);
/* Workers in this state; for WORKER_GONE the free places. */
unsigned int workers_count(const struct worker_pool *pool, enum worker_state state);

/* --- choosing ---------------------------------------------------------------------------- */

enum pick_policy {
	PICK_ROUND_ROBIN,
	PICK_WEIGHTED,
	PICK_MAGLEV,
	PICK_LEAST_OUTSTANDING,
	PICK_POWER_OF_TWO,
	PICK_EARLIEST_FINISH,
	PICK_POLICIES,
};
const char *pick_policy_name(enum pick_policy policy);

/* A set of workers, by number. */
struct worker_set {
	uint32_t block[LOAD_BLOCKS];
};

static inline bool worker_set_has(const struct worker_set *set, unsigned int number)
{
	return set->block[number / LOAD_BLOCK] >> number % LOAD_BLOCK & 1;
}

static inline void worker_set_add(struct worker_set *set, unsigned int number)
{
	set->block[number / LOAD_BLOCK] |= 1u << number % LOAD_BLOCK;
}

static inline void worker_set_join(struct worker_set *set, const struct worker_set *other)
{
	for (unsigned int i = 0; i < LOAD_BLOCKS; i++)
		set->block[i] |= other->block[i];
}

static inline unsigned int worker_set_count(const struct worker_set *set)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < LOAD_BLOCKS; i++)
		n += (unsigned int)__builtin_popcount(set->block[i]);
	return n;
}

/* The active workers of one service, in the order of their numbers. Immutable once published. */
struct pick_table {
	enum pick_policy policy;
	uint16_t n;
	uint16_t soon;                /* suspect and probing workers that may join it soon */
	uint64_t serial;              /* unique among this process's tables; never 0 */
	uint32_t blocks;              /* bit b: block b of load.h has members */
	uint32_t member[LOAD_BLOCKS]; /* one bit per worker number */
	/* Silent workers whose flows wait for them. Filled by the caller before it publishes. */
	struct worker_set away;
	/* Arrays that the policy prepares; NULL where it prepares none. */
	float *cost;    /* by worker number: of one outstanding request, less for heavier workers */
	float capacity; /* the sum of 1 / cost; n where costs are the same */
	uint16_t *entry; /* worker numbers, by hash (maglev) or turn (weighted) */
	uint32_t n_entries;
	uint16_t worker[];
};

/*
 * Create a table of the active workers in <in>; it may have none. <soon> is the table's field.
 * Keeps no pointer into the pool. NULL with errno ENOMEM.
 */
struct pick_table *workers_pick_table_create_of(struct worker_pool *pool,
						const struct worker_set *in, uint16_t soon,
						enum pick_policy policy);
/* Create a table of all active workers whose model is <model>. */
struct pick_table *workers_pick_table_create(struct worker_pool *pool, const char *model,
					     enum pick_policy policy);
void workers_pick_table_destroy(struct pick_table *table);
/* Entries of maglev's tables, a prime. Only tests set it, to a smaller prime. */
extern uint32_t workers_maglev_size;

/*
 * One lcore's state of picks for one service. It starts as zeros and outlives tables; only
 * workers_pick() reads and writes it.
 */
struct pick_state {
	uint64_t serial; /* of the table that the rest describes */
	uint64_t seen;   /* pick_load.changes at the last pick */
	uint64_t random;
	uint32_t turn;          /* worker number or entry where the next round-robin step starts */
	uint32_t stale;         /* one bit per block: its key and lanes are out of date */
	uint32_t least, blocks; /* the smallest of all keys; one bit per block that has it */
	uint32_t key[LOAD_BLOCKS];   /* the smallest key of each block */
	uint32_t lanes[LOAD_BLOCKS]; /* one bit per worker of the block that has that key */
};

/*
 * Pick the worker for a request of a flow with this hash. WORKER_NONE if the named worker (maglev)
 * or every worker (other policies) has no credit. <load> and <state> are the lcore's own;
 * earliest-finish also writes guesses into <load> for workers that have not answered yet.
 */
uint16_t workers_pick(const struct pick_table *table, struct pick_load *load, uint32_t hash,
		      struct pick_state *state);

/* True when <worker> is in the table. For flows that stay with their worker. */
static inline bool workers_pick_table_has(const struct pick_table *table, uint16_t worker)
{
	return worker < WORKERS_MAX &&
	       table->member[worker / LOAD_BLOCK] >> worker % LOAD_BLOCK & 1;
}

/* True when <worker> is silent, but its flows should still wait for it. */
static inline bool workers_pick_table_awaits(const struct pick_table *table, uint16_t worker)
{
	return worker < WORKERS_MAX && worker_set_has(&table->away, worker);
}

#endif
