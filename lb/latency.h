/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a request's time went: log-linear histograms of microseconds, one set per service and lcore
 * and one per link. Pure; no DPDK.
 *
 * Owner: one lcore writes, with plain stores of 64-bit words; any thread may read them, a moment
 * old, without locks. The parts of one request, each by the clock of who saw both ends:
 *
 *   queue   from its arrival (the start of the turn that received it) to its descriptor being sent:
 *           0 unless it waited for a credit
 *   wire    what is left of sent to last chunk received: both ways over the fabric, and what the
 *           agent does around the model
 *   wait    in the worker's memory until the model began, by the worker's clock
 *   run     in the model, by the worker's clock
 *   reply   from the start of the turn that received the last chunk to the turn's replies being
 *           written for their clients
 *   total   of a service: arrival to reply, the sum of all above; of a link: sent to last chunk
 *
 * A reply whose header makes no sense (a clock that went back) counts in queue, reply and total
 * only. Answers that came too late for the client count like others: the worker took that long.
 *
 * Buckets: one per microsecond below 32, then 16 in each power of two, so that a bucket's middle is
 * at most 3.2 % from any value in it. What takes 134 s or longer is in the last. A histogram has 3
 * KiB, a service's set 18 KiB per lcore and a link's 12 KiB: 24 MiB for 512 workers and 4 lcores.
 */
#ifndef LB_LATENCY_H
#define LB_LATENCY_H

#include <stddef.h>
#include <stdint.h>

#define LATENCY_SUB_BITS 4
#define LATENCY_MAX_BITS 27
#define LATENCY_MAX_US   ((1u << LATENCY_MAX_BITS) - 1)
#define LATENCY_BUCKETS  ((LATENCY_MAX_BITS - LATENCY_SUB_BITS + 1) << LATENCY_SUB_BITS)

/* X(symbol, "name", "what it means") */
#define LATENCY_PART_LIST(X)                                                                       \
	X(WIRE, "wire", "on the fabric both ways, and in the agent around the model")              \
	X(WAIT, "wait", "in the worker's memory until the model began")                            \
	X(RUN, "run", "in the model")                                                              \
	X(TOTAL, "total", "all of it")                                                             \
	X(QUEUE, "queue", "in the load balancer until it was sent to a worker")                    \
	X(REPLY, "reply", "in the load balancer from the last chunk received to the reply sent")

enum latency_part {
#define LATENCY_PART_ENUM(symbol, name, text) LATENCY_##symbol,
	LATENCY_PART_LIST(LATENCY_PART_ENUM)
#undef LATENCY_PART_ENUM
		LATENCY_PARTS,
	/* A link's set ends here. */
	LATENCY_LINK_PARTS = LATENCY_QUEUE,
};

const char *latency_part_name(enum latency_part part);
const char *latency_part_text(enum latency_part part);

struct latency {
	uint64_t sum_ns[LATENCY_PARTS];
	uint64_t bucket[LATENCY_PARTS][LATENCY_BUCKETS];
};

/* Bytes of a link's set: the first LATENCY_LINK_PARTS of the struct. */
#define LATENCY_LINK_SIZE                                                                          \
	(offsetof(struct latency, bucket) + LATENCY_LINK_PARTS * LATENCY_BUCKETS * sizeof(uint64_t))

/* One reply. */
struct latency_sample {
	uint64_t queue_ns, total_ns, wait_ns, run_ns, reply_ns; /* total: sent to last chunk */
	int split; /* wait and run are known, and no longer than total together */
};

static inline unsigned int latency_bucket(uint64_t us)
{
	unsigned int shift;

	if (__builtin_expect(us > LATENCY_MAX_US, 0))
		us = LATENCY_MAX_US;
	shift = (63 - LATENCY_SUB_BITS) -
		(unsigned int)__builtin_clzll(us | 1u << LATENCY_SUB_BITS);
	return (shift << LATENCY_SUB_BITS) + (unsigned int)(us >> shift);
}

/* Count a reply in the sets of its service and its link. For the lcore that owns both. */
static inline void latency_add(struct latency *service, struct latency *link,
			       const struct latency_sample *s)
{
	uint64_t whole = s->queue_ns + s->total_ns + s->reply_ns;
	unsigned int at;

	link->bucket[LATENCY_TOTAL][latency_bucket(s->total_ns / 1000)]++;
	service->bucket[LATENCY_TOTAL][latency_bucket(whole / 1000)]++;
	service->bucket[LATENCY_QUEUE][latency_bucket(s->queue_ns / 1000)]++;
	service->bucket[LATENCY_REPLY][latency_bucket(s->reply_ns / 1000)]++;
	service->sum_ns[LATENCY_TOTAL] += whole;
	service->sum_ns[LATENCY_QUEUE] += s->queue_ns;
	service->sum_ns[LATENCY_REPLY] += s->reply_ns;
	link->sum_ns[LATENCY_TOTAL] += s->total_ns;
	if (__builtin_expect(!s->split, 0))
		return;
	at = latency_bucket((s->total_ns - s->wait_ns - s->run_ns) / 1000);
	service->bucket[LATENCY_WIRE][at]++;
	link->bucket[LATENCY_WIRE][at]++;
	at = latency_bucket(s->wait_ns / 1000);
	service->bucket[LATENCY_WAIT][at]++;
	link->bucket[LATENCY_WAIT][at]++;
	at = latency_bucket(s->run_ns / 1000);
	service->bucket[LATENCY_RUN][at]++;
	link->bucket[LATENCY_RUN][at]++;
	service->sum_ns[LATENCY_WIRE] += s->total_ns - s->wait_ns - s->run_ns;
	service->sum_ns[LATENCY_WAIT] += s->wait_ns;
	service->sum_ns[LATENCY_RUN] += s->run_ns;
	link->sum_ns[LATENCY_WIRE] += s->total_ns - s->wait_ns - s->run_ns;
	link->sum_ns[LATENCY_WAIT] += s->wait_ns;
	link->sum_ns[LATENCY_RUN] += s->run_ns;
}

/* Zeroed, its pages touched. <size> is sizeof(struct latency) or LATENCY_LINK_SIZE. Or NULL. */
struct latency *latency_create(size_t n, size_t size);

/* --- for readers ----------------------------------------------------------------------------- */

/* Add the first <parts> of <from> to <to>. */
void latency_merge(struct latency *to, const struct latency *from, unsigned int parts);

/* <to> less <from>: what came in between. */
void latency_since(struct latency *to, const struct latency *from);

uint64_t latency_count(const uint64_t bucket[LATENCY_BUCKETS]);

/* The first microsecond of a bucket, and the one behind its last. */
uint64_t latency_lower_us(unsigned int bucket);
uint64_t latency_upper_us(unsigned int bucket);

/* The middle of the bucket that <q> (0 to 1) of all values reach, us; 0 when there are none. */
double latency_quantile_us(const uint64_t bucket[LATENCY_BUCKETS], double q);

#endif
