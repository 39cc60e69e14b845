/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The worker that owes the fewest answers, of those with a credit. Equals take turns: among them
 * the first after the last choice wins, counted around the ring of worker numbers.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/schedule.h"

_Static_assert((WORKERS_MAX & (WORKERS_MAX - 1)) == 0, "distances wrap by masking");
_Static_assert(WORKERS_MAX <= UINT16_MAX, "distances fit the low half of a key");
_Static_assert(WORKER_SLOTS_MAX < UINT16_MAX, "UINT16_MAX outstanding means closed");

static int least_outstanding_prepare(struct pick_table *table, const struct worker *const *member)
{
	table->closed = malloc(WORKERS_MAX * sizeof(*table->closed));
	if (table->closed == NULL)
		return -ENOMEM;
	memset(table->closed, 0xff, WORKERS_MAX * sizeof(*table->closed));
	for (unsigned int i = 0; i < table->n; i++)
		table->closed[table->worker[i]] = 0;
	return 0;
}

/*
 * One minimum over all numbers from the table's first to its last, of keys made of load and
 * distance. It reads numbers that are not in the table too, and so needs no branch and no
 * indirection: the compiler makes eight steps of it at a time.
 */
static uint16_t least_outstanding_pick(const struct pick_table *table, const struct pick_load *load,
				       uint32_t hash, uint32_t *turn)
{
	const uint16_t *closed = table->closed;
	uint32_t first = table->worker[0], last = table->worker[table->n - 1];
	uint32_t start = *turn, best = UINT32_MAX;

	for (uint32_t i = first; i <= last; i++) {
		uint32_t no_credit = load->credits[i] == 0 ? UINT16_MAX : 0;
		uint32_t busy = load->outstanding[i] | closed[i] | no_credit;
		uint32_t key = busy << 16 | ((i - start) & (WORKERS_MAX - 1));

		best = key < best ? key : best;
	}
	if (best >> 16 == UINT16_MAX)
		return WORKER_NONE;
	start = (start + best) & (WORKERS_MAX - 1);
	*turn = start + 1;
	return start;
}

const struct schedule_policy schedule_least_outstanding = {
	.name = "least-outstanding",
	.prepare = least_outstanding_prepare,
	.pick = least_outstanding_pick,
};
