/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The outcome of each request of a run, and the figures computed from it. 16 bytes per request,
 * kept to the end of the run, so that percentiles are exact and a late or second reply is not taken
 * for a wrong one.
 */
#ifndef CLIENT_TALLY_H
#define CLIENT_TALLY_H

#include "cli/bench/notice.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#define TALLY_STEP_NS 100000000ull /* of the timeline */

enum record_state {
	RECORD_UNSENT,
	RECORD_SENT,
	RECORD_ANSWERED,
	RECORD_WRONG,   /* a reply came, with other bytes */
	RECORD_LOST,    /* no reply came in time */
	RECORD_REFUSED, /* a notice came instead */
};

struct record {
	uint64_t ns; /* when it was sent; of an answered request, the time until its answer */
	uint32_t flow;
	enum record_state state;
};

struct tally {
	struct record *records; /* by index of the request; RECORD_UNSENT where there is none */
	size_t n_records;
	uint64_t requests;
	uint64_t answered;
	uint64_t lost;
	uint64_t refused;
	uint64_t wrong;       /* replies with bytes, a length or a flow that cannot be right */
	uint64_t duplicates;  /* more replies to a request that has one */
	uint64_t late;        /* replies to a request that was given up */
	uint64_t unreachable; /* errors the network sent back (ICMP) */
	uint64_t notices[NOTICE_CODES];
	uint64_t start_ns;
	uint64_t end_ns; /* time of the last answer, or of the end of sending if that is later and
			    the run was timed */
	uint64_t *timeline; /* answers in each TALLY_STEP_NS since start */
	size_t n_timeline;
	uint64_t *gap_ns; /* per flow: longest time without any reply */
	size_t n_flows;
};

int tally_init(struct tally *tally, size_t n_flows);
void tally_fini(struct tally *tally);

/* Returns the record of request <index>, made if need be; NULL if memory ran out. */
struct record *tally_record(struct tally *tally, size_t index);
/* Counts an answer that took <ns>. */
int tally_answer(struct tally *tally, struct record *record, uint64_t now);

/* Add the requests of another run at the same time to <tally>'s, whose flows stay its own. 0 or
 * -ENOMEM. */
int tally_add(struct tally *tally, const struct tally *other);

double tally_seconds(const struct tally *tally);
/* Returns answers per second; 0 without any. */
double tally_rps(const struct tally *tally);
uint64_t tally_notices(const struct tally *tally);
uint64_t tally_longest_gap_ns(const struct tally *tally);

/* The latency in microseconds that the fraction <of> of answers did not exceed (nearest rank); 0
 * without answers. <sorted> comes from tally_latencies(), which the caller frees. */
double tally_percentile_us(const uint64_t *sorted, size_t n, double of);
uint64_t *tally_latencies(const struct tally *tally);

/* The figures as a new JSON object, NULL if memory ran out; and as text on stdout. */
json_t *tally_json(const struct tally *tally);
void tally_print(const struct tally *tally);

#endif
