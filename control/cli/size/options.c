/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of doorbell size. */
#include "cli/size/size.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "runtime/option_table.h"

#define RATE_MIN  0.001
#define RATE_MAX  1000000000
#define US_MAX    1000000000
#define GBPS_MAX  10000
#define BYTES_MAX (64u << 20)

static const char usage[] =
	"doorbell size --rate N --each-us T [--batch-us T] [--p99-us T] [...]\n"
	"How many workers, links and slots a service needs, and what latency to expect. A\n"
	"batch of n requests takes the model --batch-us + n * --each-us. Simulates the queues;\n"
	"needs no daemon. Exits with 1 if --p99-us cannot be kept.";

static const char *const policies[SIZE_POLICIES + 1] = {
	[SIZE_LEAST_OUTSTANDING] = "least-outstanding",
	[SIZE_POWER_OF_TWO] = "power-of-two",
	[SIZE_ROUND_ROBIN] = "round-robin",
	[SIZE_RANDOM] = "random",
};

static const char *const spreads[] = {"fixed", "exponential", NULL};

struct size_options {
	struct size_question question;
	bool json;
};

#define AT(field) OPTION_AT(struct size_options, field)

static const struct option_row rows[] = {
	{"rate", OPTION_REAL, AT(question.rate), "N", "requests per second (needed)", 0, RATE_MAX},
	{"request", OPTION_NUMBER, AT(question.request_bytes), "N", "bytes of a request", 0,
	 BYTES_MAX},
	{"reply", OPTION_NUMBER, AT(question.reply_bytes), "N", "bytes of a reply", 0, BYTES_MAX},
	{"each-us", OPTION_REAL, AT(question.each_us), "N",
	 "the model's time for each request of a batch (one of these is needed)", 0, US_MAX},
	{"batch-us", OPTION_REAL, AT(question.batch_us), "N",
	 "the model's time for a batch, independent of its size", 0, US_MAX},
	{"max-batch", OPTION_NUMBER, AT(question.max_batch), "N", "requests in a batch", 1, 65536},
	{"batch-timeout-us", OPTION_REAL, AT(question.batch_timeout_us), "N",
	 "how long a batch waits to fill", 0, US_MAX},
	{"run-times", OPTION_WORD, AT(question.exponential), NULL, "of the model",
	 .words = spreads},
	{"p99-us", OPTION_REAL, AT(question.p99_us), "N",
	 "99 % of replies come within this; without: it only keeps up", 0, US_MAX},
	{"workers", OPTION_NUMBER, AT(question.workers), "N",
	 "what to expect of so many, instead of finding how many", 1, SIZE_WORKERS_MAX},
	{"policy", OPTION_WORD, AT(question.policy), NULL, "that chooses a worker",
	 .words = policies},
	{"slots", OPTION_NUMBER, AT(question.slots), "N", "per worker and lcore", 2, 32768},
	{"lcores", OPTION_NUMBER, AT(question.lcores), "N",
	 "data-plane threads of the load balancer", 1, 128},
	{"rtt-us", OPTION_REAL, AT(question.rtt_us), "N",
	 "a request's time without the model, software included", 0, US_MAX},
	{"client-gbps", OPTION_REAL, AT(question.client_gbps), "N",
	 "link of the load balancer to the clients", 0, GBPS_MAX},
	{"fabric-gbps", OPTION_REAL, AT(question.fabric_gbps), "N",
	 "link of the load balancer to the fabric", 0, GBPS_MAX},
	{"worker-gbps", OPTION_REAL, AT(question.worker_gbps), "N", "link of a worker", 0,
	 GBPS_MAX},
	{"mtu", OPTION_NUMBER, AT(question.mtu), "N", "IP, of both networks", 576, 9216},
	{"epsilon", OPTION_REAL, AT(question.epsilon), "N",
	 "what remoting may add to the model's time, as a share", 0, 1000},
	{"seed", OPTION_NUMBER, AT(question.seed), "N", "of the simulation"},
	{"simulated", OPTION_NUMBER, AT(question.simulated), "N", "requests to simulate", 100,
	 20000000},
	{"json", OPTION_FLAG, AT(json), NULL, "print JSON; the fields are in doorbell-json(5)"},
	{0},
};

static const struct option_table size_table = {
	.program = "doorbell size", .usage = usage, .rows = rows};

static const struct size_question defaults = {
	.request_bytes = 1024,
	.reply_bytes = 1024,
	.max_batch = 32,
	.slots = 256,
	.lcores = 1,
	.rtt_us = 20,
	.client_gbps = 100,
	.fabric_gbps = 100,
	.worker_gbps = 100,
	.mtu = 1500,
	.epsilon = 0.05,
	.seed = 1,
	.simulated = 200000,
};

static int size_options_error(const char *what)
{
	fprintf(stderr, "doorbell size: %s\n", what);
	return -EINVAL;
}

static int size_options_check(const struct size_question *q)
{
	/* Below that the simulated time is too long for its parts to be told. */
	if (q->rate < RATE_MIN)
		return size_options_error("--rate: give requests per second, 0.001 or more");
	if (q->each_us == 0 && q->batch_us == 0)
		return size_options_error(
			"the run time of the model is missing: give --each-us, --batch-us or both; "
			"`doorbell workers list` shows RUN of a worker that serves it");
	if (q->client_gbps == 0 || q->fabric_gbps == 0 || q->worker_gbps == 0)
		return size_options_error(
			"--client-gbps, --fabric-gbps, --worker-gbps: give links above 0");
	if (q->workers == 0 && size_workers_least(q) > SIZE_WORKERS_MAX)
		return size_options_error(
			"--rate: one load balancer has at most 1024 workers, and these "
			"need more; give a larger --max-batch, or divide the rate among "
			"load balancers");
	return 0;
}

int size_options_read(int argc, char **argv, struct size_question *q, bool *json)
{
	struct size_options options = {.question = defaults};
	int ret = options_parse(&size_table, argc, argv, &options, NULL);

	*q = options.question;
	*json = options.json;
	return ret != 0 ? ret : size_options_check(q);
}

void size_options_names(void)
{
	options_print_names(rows);
}
