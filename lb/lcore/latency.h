/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a request's time went: log-linear histograms, one set per service and lcore
 * and one per link. Pure; no DPDK.
 *
 * Owner: one lcore writes, with plain stores of 64-bit words; any thread may read them, a moment
 * old, without locks. The parts of one request, each measured with one clock, which saw its start
 * and its end:
 *
 *   queue   from its arrival (the start of the iteration that received it) until its descriptor is
 *           sent: 0 unless it waited for a credit
 *   wire    from sent to the last chunk received, less wait and run: both ways over the fabric, and
 *           the agent's work around the model
 *   wait    in the worker's memory until the model began, by the worker's clock
 *   run     in the model, by the worker's clock
 *   reply   from the start of the iteration that received the last chunk until the iteration writes
 *           its replies for their clients
 *   total   of a service: arrival to reply, the sum of all above; of a link: sent to last chunk
 *
 * A reply whose times are inconsistent (a clock that went back) counts in queue, reply and total
 * only. Replies that came too late for the client count like others: the worker took that long.
 *
 * Buckets: 1.024 us each below 32 of them, then 16 in each power of two, so that a bucket's middle
 * is at most 3.2 % from any value in it. Values of 137 s and more are in the last. A histogram has
 * 3 KiB, a service's set 18 KiB per lcore and a link's 12 KiB: 24 MiB for 512 workers and 4 lcores.
 *
 * Stores are the cost of counting a reply. Values that follow from the others are therefore not
 * stored: the first bucket of queue, and the sum of wire. The merge functions add them.
 */
#ifndef LB_LATENCY_H
#define LB_LATENCY_H

#include <stddef.h>
#include <stdint.h>

#define LATENCY_UNIT_BITS 10 /* log2 of the ns in one unit, the lowest bucket */
#define LATENCY_SUB_BITS  4  /* log2 of the buckets in each power of two */
#define LATENCY_MAX_BITS  27 /* bits of the longest time, in units */
#define LATENCY_MAX_UNITS ((1u << LATENCY_MAX_BITS) - 1)
#define LATENCY_MAX_NS    ((uint64_t)LATENCY_MAX_UNITS << LATENCY_UNIT_BITS)
#define LATENCY_BUCKETS   ((LATENCY_MAX_BITS - LATENCY_SUB_BITS + 1) << LATENCY_SUB_BITS)

#define LATENCY_PART_LIST(X)                                                                       \
	X(WIRE, "wire")   /* on the fabric both ways, and in the agent around the model */         \
	X(WAIT, "wait")   /* in the worker's memory until the model began */                       \
	X(RUN, "run")     /* in the model */                                                       \
	X(TOTAL, "total") /* all of it */                                                          \
	X(QUEUE, "queue") /* in the load balancer until it was sent to a worker */                 \
	X(REPLY, "reply") /* in the load balancer, from the last chunk received to the reply sent */

enum latency_part {
#define LATENCY_PART_ENUM(symbol, name) LATENCY_##symbol,
	LATENCY_PART_LIST(LATENCY_PART_ENUM)
#undef LATENCY_PART_ENUM
		LATENCY_PARTS,
	/* A link's set ends here. */
	LATENCY_LINK_PARTS = LATENCY_QUEUE,
};

const char *latency_part_name(enum latency_part part);

struct latency {
	uint64_t sum_ns[LATENCY_PARTS];
	uint64_t unsplit_ns; /* of total, sent to last chunk, of replies without wait and run */
	uint64_t pad;
	uint64_t bucket[LATENCY_PARTS][LATENCY_BUCKETS];
};

/* Bytes of a link's set: the first LATENCY_LINK_PARTS of the struct. */
#define LATENCY_LINK_SIZE                                                                          \
	(offsetof(struct latency, bucket) + LATENCY_LINK_PARTS * LATENCY_BUCKETS * sizeof(uint64_t))

/* One reply. */
struct latency_sample {
	uint64_t queue_ns, total_ns, wait_ns, run_ns; /* total: sent to last chunk */
	int split; /* wait and run are known, and no longer than total together */
	/* the same for all replies of an iteration */
	uint64_t reply_ns;
	unsigned int reply_bucket;
};

/* The bucket of a time that is at most LATENCY_MAX_NS. */
static inline unsigned int latency_bucket_of(uint64_t ns)
{
	uint64_t units = ns >> LATENCY_UNIT_BITS;
	unsigned int shift = (63 - LATENCY_SUB_BITS) -
			     (unsigned int)__builtin_clzll(units | 1u << LATENCY_SUB_BITS);

	return (shift << LATENCY_SUB_BITS) + (unsigned int)(units >> shift);
}

static inline unsigned int latency_bucket(uint64_t ns)
{
	return latency_bucket_of(ns < LATENCY_MAX_NS ? ns : LATENCY_MAX_NS);
}

/* Count a reply in the sets of its service and its link. On the lcore that owns both. */
static inline void latency_add(struct latency *service, struct latency *link,
			       const struct latency_sample *s)
{
	uint64_t whole = s->queue_ns + s->total_ns + s->reply_ns;
	/* these find the buckets; no part is longer than the whole */
	uint64_t total = s->total_ns, wait = s->wait_ns, run = s->run_ns;
	unsigned int at;

	service->sum_ns[LATENCY_TOTAL] += whole;
	service->sum_ns[LATENCY_REPLY] += s->reply_ns;
	link->sum_ns[LATENCY_TOTAL] += total;
	if (__builtin_expect(whole >> LATENCY_UNIT_BITS > LATENCY_MAX_UNITS, 0)) {
		whole = LATENCY_MAX_NS;
		total = total < LATENCY_MAX_NS ? total : LATENCY_MAX_NS;
		wait = wait < total ? wait : total;
		run = run < total - wait ? run : total - wait;
	}
	service->bucket[LATENCY_TOTAL][latency_bucket_of(whole)]++;
	service->bucket[LATENCY_REPLY][s->reply_bucket]++;
	link->bucket[LATENCY_TOTAL][latency_bucket_of(total)]++;
	if (__builtin_expect(s->queue_ns != 0, 0)) {
		service->sum_ns[LATENCY_QUEUE] += s->queue_ns;
		if (s->queue_ns >> LATENCY_UNIT_BITS != 0)
			service->bucket[LATENCY_QUEUE][latency_bucket(s->queue_ns)]++;
	}
	if (__builtin_expect(!s->split, 0)) {
		service->unsplit_ns += s->total_ns;
		link->unsplit_ns += s->total_ns;
		return;
	}
	at = latency_bucket_of(total - wait - run);
	service->bucket[LATENCY_WIRE][at]++;
	link->bucket[LATENCY_WIRE][at]++;
	at = latency_bucket_of(wait);
	service->bucket[LATENCY_WAIT][at]++;
	link->bucket[LATENCY_WAIT][at]++;
	at = latency_bucket_of(run);
	service->bucket[LATENCY_RUN][at]++;
	link->bucket[LATENCY_RUN][at]++;
	service->sum_ns[LATENCY_WAIT] += s->wait_ns;
	service->sum_ns[LATENCY_RUN] += s->run_ns;
	link->sum_ns[LATENCY_WAIT] += s->wait_ns;
	link->sum_ns[LATENCY_RUN] += s->run_ns;
}

/*
 * Allocate <n> zeroed sets of <size> bytes, sizeof(struct latency) or LATENCY_LINK_SIZE, and touch
 * their pages. The caller frees them with free(). NULL: no memory.
 */
struct latency *latency_create(size_t n, size_t size);

/* --- for readers ----------------------------------------------------------------------------- */

/* Add the sums of a service's set to <sum_ns>: all that a lcore has the time to add up. */
void latency_add_sums(uint64_t sum_ns[LATENCY_PARTS], const struct latency *from);

/*
 * Add <from> to <to>, with the values that its lcore did not store. A reader may read between two
 * stores of the lcore: counts of parts may differ by a few, and nothing falls below zero.
 */
void latency_merge_service(struct latency *to, const struct latency *from);
/* The same for a link's set; <to> may be no larger than LATENCY_LINK_SIZE. */
void latency_merge_link(struct latency *to, const struct latency *from);

/* Subtract the earlier set <from> from <to>: what was counted in between is left. */
void latency_since(struct latency *to, const struct latency *from);

/* The number of values in a histogram. */
uint64_t latency_count(const uint64_t bucket[LATENCY_BUCKETS]);

/* ns; the shortest time of a bucket, and the shortest of the next bucket. */
uint64_t latency_lower_ns(unsigned int bucket);
uint64_t latency_upper_ns(unsigned int bucket);

/* us; the middle of the bucket in which quantile <q> (0 to 1) lies; 0 for an empty histogram. */
double latency_quantile_us(const uint64_t bucket[LATENCY_BUCKETS], double q);

#endif
