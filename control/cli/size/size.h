/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Facade of size/: computes from the load of a service and the run time of its model how many
 * workers, links and slots it needs, and its latency. Formulas give bounds, a simulation of the
 * same queues gives percentiles. Pure: no sockets, no clock. README.md has the formulas and their
 * sources. Each part below names the file that defines it.
 */
#ifndef SIZE_H
#define SIZE_H

#include "cli/bench/histogram.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIZE_WORKERS_MAX 1024

enum size_policy {
	SIZE_LEAST_OUTSTANDING,
	SIZE_POWER_OF_TWO,
	SIZE_ROUND_ROBIN,
	SIZE_RANDOM,
	SIZE_POLICIES
};

struct size_question {
	double rate; /* requests per second */
	uint64_t request_bytes, reply_bytes;
	double batch_us, each_us; /* the model takes batch_us + n * each_us for n requests */
	uint64_t max_batch;
	double batch_timeout_us; /* a batch waits so long to fill */
	uint64_t workers;        /* 0: the fewest that suffice */
	uint64_t slots;          /* per worker and data-plane core */
	uint64_t lcores;
	double p99_us; /* allowed; 0: not asked, stable is enough */
	double rtt_us; /* of a request that no model delays, software included */
	double client_gbps, fabric_gbps, worker_gbps;
	uint64_t mtu;   /* IP, of the fabric and the clients' network */
	double epsilon; /* share of the model's time that remoting may add */
	enum size_policy policy;
	bool exponential;         /* run times vary exponentially around their mean */
	uint64_t seed, simulated; /* requests */
};

/* --- formulas.c ----------------------------------------------------------------------------------
 */

/* A batch of <n>. */
double size_run_us(const struct size_question *q, double n);
/* Requests per second that one worker can answer, its batches full. */
double size_capacity(const struct size_question *q);
/* The smallest number of workers that keeps up, were there no waiting. */
uint64_t size_workers_least(const struct size_question *q);
/* Share of the time that <workers> are needed, batches full. */
double size_load(const struct size_question *q, uint64_t workers);

/* Bytes that pass on the wire, preamble and gap included: of the clients' network, and of the
 * fabric in its busier direction for requests and replies. */
double size_client_bytes(const struct size_question *q, uint64_t payload);
double size_fabric_request_bytes(const struct size_question *q);
double size_fabric_reply_bytes(const struct size_question *q);
/* Links of <gbps> that carry <bytes> per request, filled to SIZE_LINK_FILL. */
#define SIZE_LINK_FILL 0.8
uint64_t size_links(const struct size_question *q, double bytes, double gbps);

/* Bytes per second that <outstanding_bytes> in flight allow at a round trip of <rtt_us>. */
double size_window_rate(double outstanding_bytes, double rtt_us);
/* Requests per second that a worker's slots allow when each is held for <held_us>. */
double size_slot_rate(const struct size_question *q, double held_us);
/* Bytes in flight that fill a link. */
double size_window_bytes(double gbps, double rtt_us);

/* Time that the network adds to a request, as a share of the model's time for it alone. */
double size_cost(const struct size_question *q);
/* The round trip that would make it epsilon; 0 if none would. */
double size_cost_rtt_us(const struct size_question *q);

/* --- simulate.c ----------------------------------------------------------------------------------
 */

/* Where a request's time goes. */
enum size_term {
	SIZE_TERM_NETWORK, /* the round trip */
	SIZE_TERM_LINKS,   /* serialisation, and waiting for a link */
	SIZE_TERM_SLOT,    /* in the load balancer, for a credit */
	SIZE_TERM_WORKER,  /* in the worker's memory: for the GPU, and for the batch to fill */
	SIZE_TERM_RUN,
	SIZE_TERMS,
};

struct size_result {
	struct histogram latency;
	double mean_us[SIZE_TERMS];
	double tail_us[SIZE_TERMS]; /* mean of the requests near the 99th percentile */
	double busy, mean_batch;
	uint64_t most_outstanding; /* at one worker */
	bool unstable;             /* the queue grew to the end */
};

const char *size_term_name(enum size_term term);

/* -ENOMEM. The caller frees <result> with size_result_fini(). */
int size_simulate(const struct size_question *q, uint64_t workers, struct size_result *result);
void size_result_fini(struct size_result *result);

/* --- answer.c ------------------------------------------------------------------------------------
 */

struct size_answer {
	uint64_t workers, workers_least;
	bool found; /* the limit is kept */
	double p50_us, p99_us;
	struct size_result result; /* of the simulation with that many */
	uint64_t slots_needed;
	uint64_t client_links, fabric_links;
	enum size_term dominant;
};

/* -ENOMEM. size_answer_fini() afterwards. */
int size_answer(const struct size_question *q, struct size_answer *answer);
void size_answer_fini(struct size_answer *answer);

/* --- options.c, report.c -------------------------------------------------------------------------
 */

/* Reads the command line. 0, 1 after --help, -EINVAL after saying what is wrong. */
int size_options_read(int argc, char **argv, struct size_question *q, bool *json);
void size_options_names(void);

void size_print(const struct size_question *q, const struct size_answer *answer, FILE *out);
json_t *size_json(const struct size_question *q, const struct size_answer *answer);

#endif
