/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parent of a generator and a load balancer: starts both, gives them orders, and looks that
 * nothing is lost. A bench may do that several times, each time with another struct wire_parent.
 */
#ifndef BENCH_WIRE_PARENT_H
#define BENCH_WIRE_PARENT_H

#include "wire/wire.h"
#include "common/wire_child.h"
#include "wire/wire_sums.h"

/* From the first request to the first that counts. */
#define WIRE_SETTLE_MS 100

struct wire_parent {
	struct wire_options o;
	struct wire_child lb, gen;
	uint64_t lost;
};

/* A failure in any of these ends the bench and both processes, with a reason; see wire_die().
 */

/* <p->o> is filled, all else is zero. Both processes are there and connected when it returns. */
void wire_parent_start(struct wire_parent *p);
void wire_parent_end(struct wire_parent *p);

/* Every flow comes into being, and is established: its client speaks again after an answer. */
void wire_parent_open_flows(struct wire_parent *p);

/*
 * <n> requests by TCP on each queue, of which every byte is compared. Of <lose> segments one is not
 * sent; 0: all are. Clients must see each loss, and repair it.
 */
void wire_parent_check_tcp(struct wire_parent *p, unsigned int n, unsigned int lose);

/*
 * One span of <load>, <settle_ms> after its start. One in which something else had a thread's CPU
 * is measured again, some times; returns how many. All that was sent is back afterwards.
 */
unsigned int wire_parent_measure(struct wire_parent *p, const struct wire_load *load,
				 uint32_t settle_ms, struct wire_sample *before,
				 struct wire_sample *after);
void wire_parent_sample(const struct wire_parent *p, struct wire_sample *s);

#endif
