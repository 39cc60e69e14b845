/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Traffic like that of a campus link, made up: some flows are active at a time, each packet belongs
 * to any of them, a flow ends after a Pareto-distributed number of packets and another begins.
 * Frames are small, middling or full. The same numbers every time.
 */
#ifndef BENCH_TRACE_H
#define BENCH_TRACE_H

#include <stdint.h>

#define TRACE_ACTIVE 200000u

struct trace_packet {
	uint32_t flow;  /* counted from 0 on as they begin */
	uint16_t frame; /* bytes without FCS */
};

struct trace {
	uint64_t random;
	uint32_t flows; /* that have begun */
	double full;    /* share of full frames */
	struct {
		uint32_t flow, left;
	} active[TRACE_ACTIVE];
};

/* NULL when memory is out. */
struct trace *trace_create(void);
void trace_destroy(struct trace *trace);
/* The mean of what follows: 250 to 1350 bytes. */
void trace_mean(struct trace *trace, double frame);
struct trace_packet trace_next(struct trace *trace);

/* <n> packets as a pcap file, cut off behind their headers: what others need to play the same. */
int trace_write(const char *path, uint64_t n, double frame);

#endif
