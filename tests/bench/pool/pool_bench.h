/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of the bench pool, and the workers that they choose from. */
#ifndef BENCH_POOL_H
#define BENCH_POOL_H

#include "common/report.h"
#include "pool.h"
#include "schedule/pick.h"

#define POOL_MODEL "bench"

/* <n> active workers of POOL_MODEL, gpu-0 upwards. Exits when there is no memory. */
struct worker_pool *pool_create(unsigned int n);
struct pick_table *pool_table(struct worker_pool *pool, enum pick_policy policy);

/* pool_pick.c: cycles per choice, and flows that move when one of 512 workers goes. */
void pool_pick(struct report *report);
void pool_maglev(struct report *report);
/* pool_sim.c: latency under each policy where one of four workers is slow. */
void pool_sim(struct report *report, unsigned int run);

#endif
