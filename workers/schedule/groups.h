/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Near and spread: a pick table's workers in groups by the value of one label, as host or nvlink.
 * The policy picks first; these calls find a worker in another place, which gets the request while
 * it has room.
 *
 * Threads: as pick.h. The control thread adds the groups to a table before it is published.
 */
#ifndef WORKERS_GROUPS_H
#define WORKERS_GROUPS_H

#include "schedule/pick.h"

enum pick_place {
	PICK_ANYWHERE,
	PICK_NEAR,   /* in the group of an anchor */
	PICK_SPREAD, /* not in the group of an anchor */
};

#define PICK_NO_GROUP UINT16_MAX

/* The groups of a table. Immutable once published. */
struct pick_groups {
	enum pick_place place;
	uint16_t n;
	uint16_t own;             /* the load balancer's own group, or PICK_NO_GROUP */
	uint16_t of[WORKERS_MAX]; /* by worker number, of all that are registered, members or not */
	uint32_t member[][WORKER_BLOCKS]; /* by group: the table's members */
};

/*
 * Add groups by the label <key> to <table>, whose policy compares loads; a worker without the label
 * is a group of its own. <own>: the load balancer's own value, or NULL. 0 or -ENOMEM.
 */
int workers_pick_table_group(struct pick_table *table, struct worker_pool *pool,
			     enum pick_place place, const char *key, const char *own);

/* The group of a worker; PICK_NO_GROUP when it is none, or was registered after the table's time.
 */
static inline uint16_t workers_group_of(const struct pick_table *table, uint16_t worker)
{
	return worker < WORKERS_MAX ? table->groups->of[worker] : PICK_NO_GROUP;
}

/* True when <worker> is where it should be: in the group <anchor> (near), or not (spread). Without
 * an anchor every place will do. */
static inline bool workers_is_placed(const struct pick_table *table, uint16_t worker,
				     uint16_t anchor)
{
	bool inside = workers_group_of(table, worker) == anchor;

	return anchor == PICK_NO_GROUP || inside == (table->groups->place == PICK_NEAR);
}

/*
 * The least loaded worker with a credit that is where it should be; equal ones take turns.
 * WORKER_NONE: there is none. Call it after workers_pick() of the same request, which guesses the
 * speed of new workers. <turn>: the lcore's, one per service; starts as 0.
 */
uint16_t workers_pick_placed(const struct pick_table *table, const struct pick_load *load,
			     uint16_t anchor, uint16_t *turn);

#endif
