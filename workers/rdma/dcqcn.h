/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DCQCN, the rate control of RoCEv2, at the sender (reaction point): congestion notifications cut a
 * queue pair's rate, time without them restores it, and a pacer enforces it. As published: Zhu et
 * al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, 3.1 and 5.2. Pure.
 *
 * A queue pair without notifications has no limit and pays one load of <limited> per packet.
 * Owner: the requester's thread. Times are TSC cycles, rates bytes per second.
 */
#ifndef RDMA_DCQCN_H
#define RDMA_DCQCN_H

#include <stdbool.h>
#include <stdint.h>

/* The paper's constants, except those marked as ours. The paper gives rates in bits per second. */
#define DCQCN_G          (1.0 / 256)       /* weight of the newest sample in alpha */
#define DCQCN_ALPHA_NS   55000             /* time without a notification after which alpha falls */
#define DCQCN_TIMER_NS   55000             /* time per step of recovery */
#define DCQCN_STEP_BYTES 10000000          /* bytes per step of recovery */
#define DCQCN_FAST_STEPS 5                 /* steps back to the target before it is raised */
#define DCQCN_ADDITIVE   (40000000.0 / 8)  /* raises the target per step */
#define DCQCN_HYPER      (400000000.0 / 8) /* ours: ten times DCQCN_ADDITIVE, as on NICs */
#define DCQCN_RATE_MIN   (10000000.0 / 8)  /* ours */
#define DCQCN_CNP_NS     50000             /* least time between a receiver's notifications */
/* Ours. Two notifications within this time count as one: networks may repeat packets. */
#define DCQCN_CUT_NS 4000
/* Ours. A sender may make up for this much unused time: threads poll at intervals and oversleep. */
#define DCQCN_BURST_NS 100000

struct dcqcn {
	bool limited;           /* the rate is below the line rate; else the rest is unused */
	uint64_t next;          /* the pacer: time when the rate allows the next packet */
	double cycles_per_byte; /* at the current rate */
	double rate, target;    /* R_C and R_T of the paper */
	double alpha;           /* estimate of the congestion, 0 to 1 */
	double line_rate;       /* 0: no rate control */
	uint64_t hz;            /* TSC */
	uint64_t alpha_due, timer_due;
	uint64_t last_cut;
	uint64_t step_bytes;             /* sent since the last step by bytes */
	uint32_t time_steps, byte_steps; /* T and BC of the paper */
};

/* Start without a limit. <line_rate> 0 turns rate control off: notifications change nothing. */
void dcqcn_init(struct dcqcn *d, uint64_t line_rate, uint64_t tsc_hz);

/* A congestion notification arrived: cut the rate. */
void dcqcn_notify(struct dcqcn *d, uint64_t now);

/* Advance to <now>: alpha and rate recover, and the limit ends at the line rate. */
void dcqcn_advance(struct dcqcn *d, uint64_t now);

/* True when the rate allows a packet at <now>. */
static inline bool dcqcn_may_send(const struct dcqcn *d, uint64_t now)
{
	return !d->limited || now >= d->next;
}

/* Count a packet of <bytes> on the wire that left. */
void dcqcn_sent(struct dcqcn *d, uint32_t bytes, uint64_t now);

/* The limit in bytes per second; 0 when there is none. Any thread may call it. */
static inline uint64_t dcqcn_rate(const struct dcqcn *d)
{
	return d->limited ? (uint64_t)d->rate : 0;
}

#endif
