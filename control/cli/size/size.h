/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Facade of size/: computes from a service's load and its model's run time how many workers, links
 * and slots the service needs, and its latency. Formulas give bounds, a simulation of the same
 * queues gives percentiles. Pure: no sockets, no clock. README.md has the formulas and their
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
	double batch_timeout_us; /* time that a batch waits to fill */
	uint64_t workers;        /* 0: find the fewest that suffice */
	uint64_t slots;          /* per worker and data-plane core */
	uint64_t lcores;
	double p99_us; /* limit; 0: none, being stable is enough */
	double rtt_us; /* round trip of a request without the model's time, software included */
	double client_gbps, fabric_gbps, worker_gbps;
	uint64_t mtu;   /* bytes of an IP packet, on the fabric and the clients' network */
	double epsilon; /* share of the model's time that the network may add */
	enum size_policy policy;
	bool exponential;         /* run times vary exponentially around their mean */
	uint64_t seed, simulated; /* simulated: number of requests */
};

/* --- formulas.c ------------------------------------------------------------------------------- */

/* Run time of a batch of <n>, us. */
double size_run_us(const struct size_question *q, double n);
/* Requests per second that one worker can answer with full batches. */
double size_capacity(const struct size_question *q);
/* The smallest number of workers that keeps up with the rate, whatever the latency. */
uint64_t size_workers_least(const struct size_question *q);
/* Share of the time that <workers> are busy, with full batches. */
double size_load(const struct size_question *q, uint64_t workers);

/*
 * Bytes on the wire, preamble and gap included: on the clients' network for a payload, and on the
 * fabric for a request and for a reply.
 */
double size_client_bytes(const struct size_question *q, uint64_t payload);
double size_fabric_request_bytes(const struct size_question *q);
double size_fabric_reply_bytes(const struct size_question *q);
/* Links of <gbps> that are needed for <bytes> per request, each filled to SIZE_LINK_FILL. */
#define SIZE_LINK_FILL 0.8
uint64_t size_links(const struct size_question *q, double bytes, double gbps);

/* Bytes per second that <outstanding_bytes> in flight allow with a round trip of <rtt_us>. */
double size_window_rate(double outstanding_bytes, double rtt_us);
/* Requests per second that a worker's slots allow when each is held for <held_us>. */
double size_slot_rate(const struct size_question *q, double held_us);
/* Bytes in flight that fill a link. */
double size_window_bytes(double gbps, double rtt_us);

/*
 * Time that the network adds to a request, as a share of the model's run time for that request
 * alone.
 */
double size_cost(const struct size_question *q);
/* Round trip with which that share is epsilon, us; 0 if there is none. */
double size_cost_rtt_us(const struct size_question *q);

/* --- simulate.c ------------------------------------------------------------------------------- */

/* The parts of a request's time. */
enum size_term {
	SIZE_TERM_NETWORK, /* the round trip */
	SIZE_TERM_LINKS,   /* serialisation, and waiting for links */
	SIZE_TERM_SLOT,    /* waiting in the load balancer for a credit */
	SIZE_TERM_WORKER,  /* waiting in the worker's memory: for the GPU, for the batch */
	SIZE_TERM_RUN,
	SIZE_TERMS,
};

struct size_result {
	struct histogram latency;
	double mean_us[SIZE_TERMS];
	double tail_us[SIZE_TERMS]; /* mean of the requests near the 99th percentile */
	double busy, mean_batch;
	uint64_t most_outstanding; /* at one worker */
	bool unstable;             /* the queue grew until the end */
};

const char *size_term_name(enum size_term term);

/* Returns -ENOMEM on failure. The caller frees <result> with size_result_fini(). */
int size_simulate(const struct size_question *q, uint64_t workers, struct size_result *result);
void size_result_fini(struct size_result *result);

/* --- answer.c --------------------------------------------------------------------------------- */

struct size_answer {
	uint64_t workers, workers_least;
	bool found; /* the limit is kept */
	double p50_us, p99_us;
	struct size_result result; /* of the simulation with <workers> */
	uint64_t slots_needed;
	uint64_t client_links, fabric_links;
	enum size_term dominant;
};

/* Returns -ENOMEM on failure. Call size_answer_fini() afterwards. */
int size_answer(const struct size_question *q, struct size_answer *answer);
void size_answer_fini(struct size_answer *answer);

/* --- options.c, report.c ---------------------------------------------------------------------- */

/* Read the command line. Returns 0, 1 after --help, or -EINVAL after an error message. */
int size_options_read(int argc, char **argv, struct size_question *q, bool *json);
void size_options_names(void);

void size_print(const struct size_question *q, const struct size_answer *answer, FILE *out);
json_t *size_json(const struct size_question *q, const struct size_answer *answer);

#endif
