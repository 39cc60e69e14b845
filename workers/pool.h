/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pool of registered workers: what their agents registered, and the state of each. Pure.
 *
 * Threads: the pool belongs to the control thread. Lcores read pick tables only (schedule/pick.h).
 */
#ifndef WORKERS_POOL_H
#define WORKERS_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report.h"
#include "description.h"
#include "outlier.h"
#include "worker_limits.h"

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
	/* Its model's tensors. NULL: its agent does not say. That of a worker belongs to the pool.
	 */
	const struct model_description *description;
};

/*
 * The reasons why a worker is suspect. The load balancer's health and ejection checks own it; times
 * are ms of their clock.
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
	/* Its setting has a successor; <replaced>: which was seen to serve, and the drain for it is
	 * in force. */
	bool replacing, replaced;
	uint32_t own_weight;      /* the agent's weight; spec.weight is the one in effect */
	uint16_t share;         /* per mille of its weight, less than full in slow start; 0: full */
	uint32_t active_ms;     /* when it turned active first, on the same clock */
	uint64_t registered_ms; /* filled by the caller, on its clock */
	uint64_t heartbeat_ms; /* when the last heartbeat was seen on the slowest link, 0 = never */
	struct worker_doubt doubt;
	char reason[WORKER_REASON_MAX]; /* why it is not active, as the CLI prints it */
	void *owner;                    /* the control connection, or another caller's object */
	struct worker_report report;    /* as its agent last told */
};

struct worker_pool;

struct worker_pool *workers_pool_create(void);
void workers_pool_destroy(struct worker_pool *pool);

/*
 * Register a worker: its place is the one that its name had before, or the lowest free one. It is
 * joining, everything else is zero. NULL with a sentence in <error> when a field is out of range
 * (it is named), the name is in use, or the pool is full. An agent that returns is refused, like
 * any other agent, until workers_remove() has removed its old registration. The pool owns the
 * worker, with a copy of the description; the pointer is valid until workers_remove().
 */
struct worker *workers_register(struct worker_pool *pool, const struct worker_spec *spec,
				char *error, size_t error_size);
/*
 * True when the workers of the same model have the same tensors as <spec>; workers that are
 * undescribed, or have its name, do not count. Else false with a sentence in <error> that names
 * tensor, field and the other worker.
 */
bool workers_spec_agrees(const struct worker_pool *pool, const struct worker_spec *spec,
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

#endif
