/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of doorbell bench. */
#include "cli/bench/bench.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "runtime/option_table.h"

#define RATE_MAX     100000000
#define SECONDS_MAX  1000000
#define DURATION_S   10
#define FLOWS        16
#define TIMEOUT_MS   1000
#define REQUESTS_MAX 1000000000000ull

static const char usage[] =
	"doorbell bench --to ADDR:PORT [--mix SIZE:WEIGHT,...] (--rate N | --window N) [...]\n"
	"Sends requests from UDP or TCP sockets and accounts for every one. --rate is an open "
	"loop:\n"
	"requests leave at random times that no reply changes, and latency counts from\n"
	"when they were due. --window is a closed loop. Requests are random bytes, and what a\n"
	"model makes of them is its own affair: replies are counted, and compared only with\n"
	"--verify. Targets are this machine's addresses and services of the load balancer here\n"
	"($DOORBELL_SOCKET); others need --remote. Exits with 1 if requests were lost, answered\n"
	"twice or answered wrongly.";

#define AT(field) OPTION_AT(struct bench_options, field)

static const char *const verify_names[BENCH_VERIFIES + 1] = {[BENCH_VERIFY_NONE] = "none",
							     [BENCH_VERIFY_ID] = "id",
							     [BENCH_VERIFY_ECHO] = "echo",
							     [BENCH_VERIFY_START] = "start"};
static const char *const framings[] = {"length", "tagged", NULL};
static const char *const arrivals[] = {"poisson", "even", NULL};

static const struct option_row rows[] = {
	{"to", OPTION_CALL, AT(mix), "ADDR:PORT", "where requests go; up to 16 times (needed)",
	 .take = mix_to},
	{"mix", OPTION_CALL, AT(mix), "B:W,...",
	 "sizes in bytes and their weights, of the --to before it [64]", .take = mix_sizes},
	{"share", OPTION_CALL, AT(mix), "N", "of the --to before it among all [1]",
	 .take = mix_share},
	{"deadline-ms", OPTION_CALL, AT(mix), "MS",
	 "of the --to before it, from due to the reply: those in time are counted, and with "
	 "--framing tagged each request tells what is left of it",
	 .take = mix_deadline},
	{"rate", OPTION_REAL, AT(rate), "N", "requests per second: an open loop", 0, RATE_MAX},
	{"arrivals", OPTION_WORD, AT(even), NULL, "with --rate: when requests leave",
	 .words = arrivals},
	{"window", OPTION_NUMBER, AT(window), "N",
	 "outstanding per flow: a closed loop, or a limit for --rate", 1, BENCH_WINDOW_MAX},
	{"flows", OPTION_NUMBER, AT(flows), "N", "source ports, or connections, per target", 1,
	 BENCH_FLOWS_MAX},
	{"tcp", OPTION_FLAG, AT(tcp), NULL,
	 "by TCP: each flow is a connection, and --window how many requests it has open at once"},
	{"framing", OPTION_WORD, AT(tagged), NULL, "of the service, with --tcp", .words = framings},
	{"threads", OPTION_NUMBER, AT(threads), "N", "of the generator", 1, BENCH_THREADS_MAX},
	{"duration", OPTION_REAL, AT(duration_s), "S", "time of sending, after the warm-up", 0,
	 SECONDS_MAX},
	{"warmup", OPTION_REAL, AT(warmup_s), "S", "time before, which no latency counts", 0,
	 SECONDS_MAX},
	{"requests", OPTION_NUMBER, AT(requests), "N",
	 "stop after so many, if the time is not over before", 1, REQUESTS_MAX},
	{"timeout-ms", OPTION_NUMBER, AT(timeout_ms), "MS",
	 "without a reply by then a request is lost", 1, 600000},
	{"verify", OPTION_WORD, AT(compare), NULL,
	 "replies: none (any will do), id (begin with the request's first 8 bytes), echo (are the "
	 "request) or start (are 8 bytes or more of its beginning)",
	 .words = verify_names},
	{"remote", OPTION_FLAG, AT(remote), NULL, "--to may be an address of another machine"},
	{"allow-lost", OPTION_NUMBER, AT(allow_lost), "N",
	 "do not fail if no more than so many are lost"},
	{"seed", OPTION_NUMBER, AT(seed), "N", "of arrival times and sizes [random]"},
	{"hgrm", OPTION_TEXT, AT(hgrm), "FILE",
	 "write the distribution to it as HdrHistogram's plotter reads it"},
	{"json", OPTION_FLAG, AT(json), NULL, "print JSON; the fields are in doorbell-json(5)"},
	{"quiet", OPTION_FLAG, AT(quiet), NULL, "no line per second on stderr"},
	{"spin", OPTION_FLAG, AT(spin), NULL, "never sleep: exacter, a CPU per thread"},
	{"dpdk", OPTION_TEXT, AT(dpdk), "DEVICE",
	 "send through this DPDK device instead of sockets"},
	{"address", OPTION_TEXT, AT(address), "IP/PREFIX",
	 "with --dpdk: our IPv4 address and prefix"},
	{"gateway", OPTION_TEXT, AT(gateway), "IP",
	 "with --dpdk: where targets of other networks are behind"},
	{0},
};

static const struct option_table bench_table = {
	.program = "doorbell bench", .usage = usage, .rows = rows};

const char *bench_verify_name(enum bench_verify verify)
{
	return verify_names[verify];
}

static int bench_options_error(const char *what)
{
	fprintf(stderr, "doorbell bench: %s\n", what);
	return -EINVAL;
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

static int check_tcp(const struct bench_options *o, bool framing)
{
	if (framing && !o->tcp)
		return bench_options_error("--framing is of --tcp; give that, too");
	if (o->tcp && o->dpdk != NULL)
		return bench_options_error("--tcp: the kernel's sockets only; leave --dpdk away");
	if (!o->tcp && mix_largest(&o->mix) > MIX_DATAGRAM_MAX)
		return bench_options_error("--mix: a datagram has 65507 bytes at most; give --tcp "
					   "for larger requests");
	return 0;
}

static int bench_options_check(const struct bench_options *o, uint64_t given)
{
	int ret = check_mix(&o->mix, o->rate, o->window);

	if (ret == 0 && o->rate == 0 && option_is_given(&bench_table, given, "arrivals"))
		ret = bench_options_error("--arrivals is of an open loop: give --rate too");
	if (ret == 0)
		ret = check_tcp(o, option_is_given(&bench_table, given, "framing"));
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

	/* without randomness the seed is 0, as with --seed 0 */
	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		return 0;
	return seed;
}

int bench_options_read(int argc, char **argv, struct bench_options *options)
{
	uint64_t given;
	int ret;

	*options = (struct bench_options){.flows = FLOWS,
					  .threads = 1,
					  .duration_s = DURATION_S,
					  .timeout_ms = TIMEOUT_MS,
					  .seed = random_seed()};
	ret = options_parse(&bench_table, argc, argv, options, &given);
	if (ret != 0)
		return ret;
	mix_complete(&options->mix);
	return bench_options_check(options, given);
}

void bench_options_names(void)
{
	options_print_names(rows);
}
