/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a scheduling policy implements. Private to workers/. pick.c holds the list of policies and
 * everything they share.
 */
#ifndef WORKERS_SCHEDULE_H
#define WORKERS_SCHEDULE_H

#include "workers.h"

struct schedule_policy {
	const char *name; /* as in the configuration file */
	/*
	 * Control thread, before <table> is published: the common fields are filled, <member> holds
	 * its n workers in the same order. Fill the policy's own array. 0 or -ENOMEM. May be NULL.
	 */
	int (*prepare)(struct pick_table *table, const struct worker *const *member);
	/* An lcore, per request; table->n is not 0. See workers_pick(). */
	uint16_t (*pick)(const struct pick_table *table, const struct pick_load *load,
			 uint32_t hash, uint32_t *turn);
};

extern const struct schedule_policy schedule_round_robin;
extern const struct schedule_policy schedule_maglev;
extern const struct schedule_policy schedule_least_outstanding;

#endif
