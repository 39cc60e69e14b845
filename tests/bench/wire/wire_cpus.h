/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which CPUs the threads of a run have to themselves.
 */
#ifndef BENCH_WIRE_CPUS_H
#define BENCH_WIRE_CPUS_H

#include "wire/wire.h"

/* As many as this process may use. */
unsigned int wire_cpus_count(void);
/* The machine in words, for those who were not told: processor, CPUs, kernel. */
void wire_cpus_machine(char *to, size_t size);

/*
 * Whoever was not given a CPU gets one that nobody was given: first threads of cores before second
 * ones, and no lcore shares a core with the generator of its own queue if that can be helped. Where
 * there are too few, threads share CPUs; false then.
 */
bool wire_cpus_choose(struct wire_options *o);

/* Lcores of the load balancer that share their core with another thread of ours. */
unsigned int wire_cpus_shared(const struct wire_options *o);

#endif
