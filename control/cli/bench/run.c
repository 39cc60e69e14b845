/* SPDX-License-Identifier: BSD-3-Clause */
/* A run: its threads, and a line per second while they work. */
#include "cli/bench/bench.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "runtime/clock.h"

#define EXIT_ERROR 2

int bench_thread_init(struct bench_thread *thread, const struct bench_options *options,
		      const struct transport_ops *ops, unsigned int number, uint32_t tag)
{
	int ret;

	*thread = (struct bench_thread){.options = options, .ops = ops, .number = number};
	ret = ledger_init(&thread->ledger, tag + number);
	if (ret == 0)
		ret = histogram_init(&thread->lag);
	for (unsigned int i = 0; i < options->mix.n_targets && ret == 0; i++)
		ret = histogram_init(&thread->latency[i]);
	return ret;
}

void bench_thread_fini(struct bench_thread *thread)
{
	ledger_fini(&thread->ledger);
	histogram_fini(&thread->lag);
	for (unsigned int i = 0; i < thread->options->mix.n_targets; i++)
		histogram_fini(&thread->latency[i]);
}

/* --- progress --------------------------------------------------------------------------------- */

/* Read a counter of a running thread, which alone writes it and only increases it. */
static uint64_t counter_now(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static void add_now(struct ledger_counts *sum, const struct ledger_counts *counts)
{
	sum->sent += counter_now(&counts->sent);
	sum->answered += counter_now(&counts->answered);
	sum->wrong += counter_now(&counts->wrong) + counter_now(&counts->strangers);
	sum->refused += counter_now(&counts->refused);
	sum->lost += counter_now(&counts->lost);
}

static void progress(const struct bench_thread *threads, unsigned int n, double seconds,
		     struct ledger_counts *last, double *last_seconds)
{
	struct ledger_counts now = {0};
	double step = seconds - *last_seconds;

	for (unsigned int i = 0; i < n; i++)
		add_now(&now, &threads[i].ledger.counts);
	fprintf(stderr,
		"%6.1f s  sent %.0f/s  answered %.0f/s  outstanding %" PRIu64 "  lost %" PRIu64
		"  refused %" PRIu64 "  wrong %" PRIu64 "\n",
		seconds, (double)(now.sent - last->sent) / step,
		(double)(now.answered - last->answered) / step,
		now.sent - now.answered - now.refused - now.lost, now.lost, now.refused, now.wrong);
	*last = now;
	*last_seconds = seconds;
}

/* Join one thread after the other; print the progress every second. */
static void join_all(struct bench_thread *threads, unsigned int n, bool quiet)
{
	struct ledger_counts last = {0};
	double last_seconds = 0;
	uint64_t start = clock_now_ns();
	struct timespec until;

	until = clock_after_ms(CLOCK_MONOTONIC, 0);
	for (unsigned int i = 0; i < n;) {
		until.tv_sec++;
		while (i < n &&
		       pthread_clockjoin_np(threads[i].thread, NULL, CLOCK_MONOTONIC, &until) == 0)
			i++;
		if (i < n && !quiet)
			progress(threads, n, (double)(clock_now_ns() - start) / 1e9, &last,
				 &last_seconds);
	}
}

/* --- the run ---------------------------------------------------------------------------------- */

static unsigned int start_all(struct bench_thread *threads, unsigned int n, pthread_barrier_t *gate)
{
	unsigned int started;

	for (started = 0; started < n; started++) {
		threads[started].gate = gate;
		if (pthread_create(&threads[started].thread, NULL, bench_thread_run,
				   &threads[started]) != 0)
			break;
	}
	return started;
}

static bool say_errors(const struct bench_thread *threads, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		if (threads[i].error[0] == '\0')
			continue;
		fprintf(stderr, "doorbell bench: %s\n", threads[i].error);
		return true;
	}
	return false;
}

static bool open_gate(struct bench_thread *threads, unsigned int n, pthread_barrier_t *gate)
{
	uint64_t start;
	bool failed;

	pthread_barrier_wait(gate);
	failed = say_errors(threads, n);
	start = failed ? 0 : clock_now_ns();
	for (unsigned int i = 0; i < n; i++)
		threads[i].start_ns = start;
	pthread_barrier_wait(gate);
	return !failed;
}

static int run_threads(const struct bench_options *options, struct bench_thread *threads,
		       unsigned int n)
{
	pthread_barrier_t gate;
	bool opened;

	pthread_barrier_init(&gate, NULL, n + 1);
	if (start_all(threads, n, &gate) < n) {
		fprintf(stderr, "doorbell bench: no thread; give fewer --threads\n");
		exit(EXIT_ERROR); /* the other threads wait at the gate */
	}
	opened = open_gate(threads, n, &gate);
	join_all(threads, n, options->quiet || !opened);
	pthread_barrier_destroy(&gate);
	if (!opened || say_errors(threads, n))
		return EXIT_ERROR;
	return bench_report(options, threads, n, stdout);
}

int bench_run(const struct bench_options *options, const struct transport_ops *ops)
{
	unsigned int n = (unsigned int)options->threads;
	struct bench_thread *threads = calloc(n, sizeof(*threads));
	int status = EXIT_ERROR;
	uint32_t tag = 0;
	int ret = threads != NULL ? 0 : -ENOMEM;

	if (getrandom(&tag, sizeof(tag), 0) != sizeof(tag))
		tag = (uint32_t)clock_now_ns();
	for (unsigned int i = 0; i < n && ret == 0; i++)
		ret = bench_thread_init(&threads[i], options, ops, i, tag);
	if (ret == 0)
		status = run_threads(options, threads, n);
	else
		fprintf(stderr, "doorbell bench: %s\n", strerror(-ret));
	for (unsigned int i = 0; i < n && threads != NULL && threads[i].options != NULL; i++)
		bench_thread_fini(&threads[i]);
	free(threads);
	return status;
}
