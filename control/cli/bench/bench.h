/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Facade of bench/: sends requests as many clients would, and accounts for every one. options.c
 * reads the options, run.c starts the threads, engine.c is the body of each, report.c prints.
 *
 * Open loop: requests are due at times that no reply changes, and latency counts from when a
 * request was due, so that a service that stalls is charged for all requests that had to wait (no
 * coordinated omission). Closed loop: each flow keeps a window of requests outstanding, and latency
 * counts from sending.
 */
#ifndef BENCH_H
#define BENCH_H

#include "cli/bench/histogram.h"
#include "cli/bench/ledger.h"
#include "cli/bench/mix.h"
#include "cli/bench/order.h"
#include "cli/bench/transport.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define BENCH_THREADS_MAX 64
#define BENCH_FLOWS_MAX   65536
#define BENCH_WINDOW_MAX  65536

/* The part of a reply that is compared. */
enum bench_verify {
	BENCH_VERIFY_NONE,
	BENCH_VERIFY_ID,    /* the reply begins with the request's first 8 bytes */
	BENCH_VERIFY_ECHO,  /* the reply is the request */
	BENCH_VERIFY_START, /* the reply is the beginning of the request */
	BENCH_VERIFIES
};

struct bench_options {
	struct mix mix;
	double rate;     /* per second over all threads; 0: closed loop */
	uint64_t window; /* outstanding per flow; 0: no limit, open loop only */
	uint64_t flows;  /* per target */
	uint64_t threads;
	double duration_s, warmup_s;
	uint64_t requests; /* of all threads, after which the run ends; 0: it ends by time only */
	uint64_t timeout_ms;
	uint64_t seed;
	uint64_t allow_lost;
	bool tcp;    /* connections instead of datagrams */
	bool tagged; /* of tcp: framing tagged instead of length */
	bool even;   /* arrivals at even distances instead of Poisson's */
	bool remote; /* targets may belong to other machines */
	bool quiet;  /* no progress */
	bool spin;   /* never sleep */
	bool json;
	const char *hgrm;                     /* file for the latency distribution */
	const char *dpdk, *address, *gateway; /* DPDK mode */
	enum bench_verify compare;
};

/* One thread of a run, with its flows and requests. */
struct bench_thread {
	pthread_t thread;
	const struct bench_options *options;
	const struct transport_ops *ops;
	unsigned int number;
	pthread_barrier_t *gate; /* passed twice: when all are ready, and at the start */
	uint64_t start_ns;       /* start of the warm-up; 0: the run does not take place */
	struct ledger ledger;
	struct histogram latency[MIX_TARGETS]; /* of answered requests, without warm-up */
	struct histogram lag;                  /* from due to sent, ns */
	uint64_t due;                          /* requests that became due during the whole run */
	uint64_t unsent; /* requests that were due but not sent when the run ended */
	uint64_t counted, answered_counted; /* requests sent and answered, without warm-up */
	/* Of those, by target: requests sent, and answered within the target's deadline. */
	uint64_t counted_of[MIX_TARGETS], in_time[MIX_TARGETS];
	uint64_t unreachable;
	uint64_t first_ns, last_ns; /* first and last request sent, without warm-up */
	uint64_t last_answer_ns;
	char error[256]; /* why it ended early; "" if it did not */
};

/*
 * Allocate the memory of the thread's counters. Returns -ENOMEM on failure; call
 * bench_thread_fini() in either case.
 */
int bench_thread_init(struct bench_thread *thread, const struct bench_options *options,
		      const struct transport_ops *ops, unsigned int number, uint32_t tag);
void bench_thread_fini(struct bench_thread *thread);

/*
 * Fill <options> with defaults, then read the command line. Returns 0; 1 after --help; -EINVAL
 * after an error message.
 */
int bench_options_read(int argc, char **argv, struct bench_options *options);
/* The name of <verify>, as --verify takes it. */
const char *bench_verify_name(enum bench_verify verify);
/* Print all names of --verify, for completion. */
void bench_options_names(void);

/* engine.c: the body of a thread; its argument and its result are a struct bench_thread. */
void *bench_thread_run(void *thread);

/*
 * run.c: run the whole benchmark. Returns the exit status: 0; 1 when requests were lost or wrong; 2
 * when it could not run.
 */
int bench_run(const struct bench_options *options, const struct transport_ops *ops);

/* report.c: print the sum over all threads, which must have ended. Returns the exit status. */
int bench_report(const struct bench_options *options, struct bench_thread *threads, unsigned int n,
		 FILE *out);

#endif
