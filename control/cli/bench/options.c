/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of doorbell bench. */
#include "cli/bench/bench.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define USAGE                                                                                      \
	"doorbell bench --to ADDR:PORT [--mix SIZE:WEIGHT,...] (--rate N | --window N) [...]\n"    \
	"Sends requests from UDP sockets and accounts for every one. --rate is an open loop:\n"    \
	"requests leave at random times that no reply changes, and latency counts from\n"          \
	"when they were due. --window is a closed loop. Requests are random bytes, and what a\n"   \
	"model makes of them is its own affair: replies are counted, and compared only with\n"     \
	"--verify. Targets are this machine's addresses and services of the load balancer here\n"  \
	"($DOORBELL_SOCKET); others need --remote. Exits with 1 if requests were lost, answered\n" \
	"twice or answered wrongly."

#define RATE_MAX     100000000
#define SECONDS_MAX  1000000
#define DURATION_S   10
#define FLOWS        16
#define TIMEOUT_MS   1000
#define REQUESTS_MAX 1000000000000ull

/* Rows for <o>, a pointer; with and without the table around them. */
#define ROWS(o)                                                                                     \
	{                                                                                           \
		{"to",        OPTION_CALL, &(o)->mix,                                               \
		 0,           0,           "where requests go; up to 16 times (needed)",            \
		 "ADDR:PORT", mix_to},                                                              \
			{"mix",     OPTION_CALL,                                                    \
			 &(o)->mix, 0,                                                              \
			 0,         "sizes in bytes and their weights, of the --to before it; 64",  \
			 "B:W,...", mix_sizes},                                                     \
			{"share", OPTION_CALL, &(o)->mix,                                           \
			 0,       0,           "of the --to before it among all; 1",                \
			 "N",     mix_share},                                                       \
			{"rate", OPTION_REAL, &(o)->rate,                                           \
			 0,      RATE_MAX,    "requests per second: an open loop"},                 \
			{"arrivals", OPTION_TEXT, &(o)->arrivals,                                   \
			 0,          0,           "with --rate: poisson (default) or even"},        \
			{"window",                                                                  \
			 OPTION_NUMBER,                                                             \
			 &(o)->window,                                                              \
			 1,                                                                         \
			 BENCH_WINDOW_MAX,                                                          \
			 "outstanding per flow: a closed loop, or a limit for --rate"},             \
			{"flows", OPTION_NUMBER,   &(o)->flows,                                     \
			 1,       BENCH_FLOWS_MAX, "source ports per target"},                      \
			{"threads", OPTION_NUMBER,     &(o)->threads,                               \
			 1,         BENCH_THREADS_MAX, "of the generator"},                         \
			{"duration", OPTION_REAL, &(o)->duration_s,                                 \
			 0,          SECONDS_MAX, "seconds of sending, after the warm-up"},         \
			{"warmup", OPTION_REAL, &(o)->warmup_s,                                     \
			 0,        SECONDS_MAX, "seconds before, which no latency counts"},         \
			{"requests",     OPTION_NUMBER,                                             \
			 &(o)->requests, 1,                                                         \
			 REQUESTS_MAX,   "stop after so many, if the time is not over before"},     \
			{"timeout-ms",     OPTION_NUMBER,                                           \
			 &(o)->timeout_ms, 1,                                                       \
			 600000,           "without a reply by then a request is lost"},            \
			{"verify",                                                                  \
			 OPTION_TEXT,                                                               \
			 &(o)->verify,                                                              \
			 0,                                                                         \
			 0,                                                                         \
			 "replies: none (any will do; default), id (begin with the request's "      \
			 "first 8 "                                                                 \
			 "bytes) or echo (are the request)"},                                       \
			{"remote", OPTION_FLAG, &(o)->remote,                                       \
			 0,        0,           "--to may be an address of another machine"},       \
			{"allow-lost",     OPTION_NUMBER,                                           \
			 &(o)->allow_lost, 0,                                                       \
			 UINT64_MAX,       "do not fail if no more than so many are lost"},         \
			{"seed", OPTION_NUMBER, &(o)->seed,                                         \
			 0,      UINT64_MAX,    "of arrival times and sizes; random if not given"}, \
			{"hgrm",                                                                    \
			 OPTION_TEXT,                                                               \
			 &(o)->hgrm,                                                                \
			 0,                                                                         \
			 0,                                                                         \
			 "file for the distribution as HdrHistogram's plotter reads it"},           \
			{"json", OPTION_FLAG, &(o)->json,                                           \
			 0,      0,           "print JSON; the fields are in doorbell-json(5)"},         \
			{"quiet", OPTION_FLAG, &(o)->quiet, 0, 0, "no line per second on stderr"},  \
			{"spin", OPTION_FLAG, &(o)->spin,                                           \
			 0,      0,           "never sleep: exacter, a CPU per thread"},            \
			{"dpdk", OPTION_TEXT, &(o)->dpdk,                                           \
			 0,      0,           "send through this DPDK device instead of sockets"},  \
			{"address", OPTION_TEXT, &(o)->address,                                     \
			 0,         0,           "with --dpdk: our IPv4 address and prefix"},       \
			{"gateway",                                                                 \
			 OPTION_TEXT,                                                               \
			 &(o)->gateway,                                                             \
			 0,                                                                         \
			 0,                                                                         \
			 "with --dpdk: where targets of other networks are behind"},                \
			{0},                                                                        \
	}

static int bench_options_error(const char *what)
{
	fprintf(stderr, "doorbell bench: %s\n", what);
	return -EINVAL;
}

/* One of two words; the first is also the default. */
static int option_is_second(const char *given, const char *first, const char *second,
			    bool *is_second)
{
	*is_second = given != NULL && strcmp(given, second) == 0;
	return given == NULL || *is_second || strcmp(given, first) == 0 ? 0 : -EINVAL;
}

static const char *const verify_names[BENCH_VERIFIES] = {
	[BENCH_VERIFY_NONE] = "none", [BENCH_VERIFY_ID] = "id", [BENCH_VERIFY_ECHO] = "echo"};

const char *bench_verify_name(enum bench_verify verify)
{
	return verify_names[verify];
}

static int check_verify(struct bench_options *o)
{
	for (int i = 0; i < BENCH_VERIFIES && o->verify != NULL; i++)
		if (strcmp(o->verify, verify_names[i]) == 0) {
			o->compare = i;
			return 0;
		}
	return o->verify == NULL ? 0 : bench_options_error("--verify: give none, id or echo");
}

static int check_words(struct bench_options *o)
{
	if (check_verify(o) != 0)
		return -EINVAL;
	if (option_is_second(o->arrivals, "poisson", "even", &o->even) != 0)
		return bench_options_error("--arrivals: give poisson or even");
	if (o->arrivals != NULL && o->rate == 0)
		return bench_options_error("--arrivals is of an open loop: give --rate too");
	return 0;
}

static int check_dpdk(const struct bench_options *o)
{
	if (o->dpdk == NULL && (o->address != NULL || o->gateway != NULL))
		return bench_options_error(
			"--address and --gateway are of --dpdk; sockets have the kernel's");
	if (o->dpdk != NULL && o->address == NULL)
		return bench_options_error("--dpdk: give --address too, like 192.0.2.7/24, "
					   "which no other host and no kernel interface has");
	if (o->dpdk != NULL && o->threads > 1)
		return bench_options_error(
			"--dpdk: one thread drives the port; leave --threads away");
	return 0;
}

static int check_mix(const struct mix *mix, double rate, uint64_t window)
{
	if (mix->n_targets == 0)
		return bench_options_error("the target is missing: give --to ADDR:PORT");
	if (rate == 0 && window == 0)
		return bench_options_error(
			"give --rate N for an open loop, or --window N for a closed one");
	for (unsigned int i = 0; i < mix->n_targets; i++)
		if (mix->target[i].share != 1 && window != 0)
			return bench_options_error(
				"--share: with --window every flow sends as it may; leave "
				"one of them away");
	return 0;
}

static int bench_options_check(struct bench_options *o)
{
	int ret = check_mix(&o->mix, o->rate, o->window);

	if (ret == 0)
		ret = check_words(o);
	if (ret == 0)
		ret = check_dpdk(o);
	if (ret == 0 && o->duration_s == 0)
		ret = bench_options_error("--duration: give a number of seconds above 0");
	if (ret == 0 && o->threads > o->flows)
		ret = bench_options_error(
			"--threads: each needs a flow; give as many --flows at least");
	return ret;
}

static uint64_t random_seed(void)
{
	uint32_t seed = 0;

	/* Without randomness the seed is 0, as if that had been given. */
	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		return 0;
	return seed;
}

int bench_options_read(int argc, char **argv, struct bench_options *options)
{
	const struct option_row table[] = ROWS(options);
	int ret;

	*options = (struct bench_options){.flows = FLOWS,
					  .threads = 1,
					  .duration_s = DURATION_S,
					  .timeout_ms = TIMEOUT_MS,
					  .seed = random_seed()};
	ret = options_parse(argc, argv, USAGE, table);
	if (ret != 0)
		return ret;
	mix_complete(&options->mix);
	return bench_options_check(options);
}

void bench_options_names(void)
{
	struct bench_options none, *o = &none;
	const struct option_row table[] = ROWS(o);

	options_print_names(table);
}
