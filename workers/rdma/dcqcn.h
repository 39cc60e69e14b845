/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DCQCN, the rate control of RoCEv2, at the sender (reaction point): congestion notifications cut a
 * queue pair's rate, silence lets it recover, and a pacer keeps to it. As published: Zhu et al.,
 * "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, 3.1 and 5.2. Pure.
 *
 * A queue pair that nobody complains about is not limited and pays for one look at <limited>.
 * Owner: the requester's thread. Times are TSC cycles, rates bytes per second.
 */
#ifndef RDMA_DCQCN_H
#define RDMA_DCQCN_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The constants; the paper's but for those marked. Rates there are in bits.
 */
#define DCQCN_G          (1.0 / 256)       /* weight of the newest in alpha */
#define DCQCN_ALPHA_NS   55000             /* without notification for so long: alpha falls */
#define DCQCN_TIMER_NS   55000             /* a step of recovery by time */
#define DCQCN_STEP_BYTES 10000000          /* a step of recovery by bytes */
#define DCQCN_FAST_STEPS 5                 /* steps back to the target before it is raised */
#define DCQCN_ADDITIVE   (40000000.0 / 8)  /* raises the target per step */
#define DCQCN_HYPER      (400000000.0 / 8) /* ours: ten times that, the ratio that NICs have */
#define DCQCN_RATE_MIN   (10000000.0 / 8)  /* ours */
#define DCQCN_CNP_NS     50000             /* the receiver notifies at most so often */
/* Ours. Two notifications this close are one: networks may repeat packets. */
#define DCQCN_CUT_NS 4000
/* Ours. What was not sent may be made up for this long: threads look at intervals, and oversleep.
 */
#define DCQCN_BURST_NS 100000

struct dcqcn {
	bool limited;           /* hot; all else matters only while this is set */
	uint64_t next;          /* the pacer: when the rate allows the next packet */
	double cycles_per_byte; /* at the current rate */
	double rate, target;    /* R_C and R_T of the paper */
	double alpha;           /* how congested, 0 to 1 */
	double line_rate;       /* 0: no rate control */
	uint64_t hz;            /* TSC */
	uint64_t alpha_due, timer_due;
	uint64_t last_cut;
	uint64_t step_bytes;             /* sent since the last step by bytes */
	uint32_t time_steps, byte_steps; /* T and BC of the paper */
};

/* Starts without a limit. <line_rate> 0 switches rate control off: notifications change nothing. */
void dcqcn_init(struct dcqcn *d, uint64_t line_rate, uint64_t tsc_hz);

/* The receiver saw congestion. */
void dcqcn_notify(struct dcqcn *d, uint64_t now);

/* Let time pass: alpha and rate recover, and the limit goes once the line rate is reached. */
void dcqcn_advance(struct dcqcn *d, uint64_t now);

/* May a packet leave now? Asked while limited. */
static inline bool dcqcn_may_send(const struct dcqcn *d, uint64_t now)
{
	return !d->limited || now >= d->next;
}

/* A packet of <bytes> on the wire left. */
void dcqcn_sent(struct dcqcn *d, uint32_t bytes, uint64_t now);

/* Bytes per second; 0 when there is no limit. Any thread may ask. */
static inline uint64_t dcqcn_rate(const struct dcqcn *d)
{
	return d->limited ? (uint64_t)d->rate : 0;
}

#endif
