/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of doorbell size. */
#include "cli/size/size.h"

#include "cli/bench/option_table.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define USAGE                                                                                      \
	"doorbell size --rate N --each-us T [--batch-us T] [--p99-us T] [...]\n"                   \
	"How many workers, links and slots a service needs, and what latency to expect. A\n"       \
	"batch of n requests takes the model --batch-us + n * --each-us. Simulates the queues;\n"  \
	"needs no daemon. Exits with 1 if --p99-us cannot be kept."

#define RATE_MAX  1000000000
#define US_MAX    1000000000
#define GBPS_MAX  10000
#define BYTES_MAX (16u << 20)

static const char *const policies[SIZE_POLICIES] = {
	[SIZE_LEAST_OUTSTANDING] = "least-outstanding",
	[SIZE_POWER_OF_TWO] = "power-of-two",
	[SIZE_ROUND_ROBIN] = "round-robin",
	[SIZE_RANDOM] = "random",
};

enum size_policy size_policy_find(const char *name)
{
	enum size_policy policy = 0;

	while (policy < SIZE_POLICIES && strcmp(policies[policy], name) != 0)
		policy++;
	return policy;
}

static int take_policy(void *value, const char *text, char *error, size_t size)
{
	enum size_policy *policy = value;

	*policy = size_policy_find(text);
	if (*policy < SIZE_POLICIES)
		return 0;
	snprintf(error, size, "must be least-outstanding, power-of-two, round-robin or random");
	return -EINVAL;
}

static int take_spread(void *value, const char *text, char *error, size_t size)
{
	bool *exponential = value;

	*exponential = strcmp(text, "exponential") == 0;
	if (*exponential || strcmp(text, "fixed") == 0)
		return 0;
	snprintf(error, size, "must be fixed or exponential");
	return -EINVAL;
}

#define ROWS(q, json)                                                                              \
	{                                                                                          \
		{"rate", OPTION_REAL, &(q)->rate, 0, RATE_MAX, "requests per second (needed)"},    \
			{"request", OPTION_NUMBER, &(q)->request_bytes,                            \
			 0,         BYTES_MAX,     "bytes of a request"},                          \
			{"reply", OPTION_NUMBER, &(q)->reply_bytes,                                \
			 0,       BYTES_MAX,     "bytes of a reply"},                              \
			{"each-us",                                                                \
			 OPTION_REAL,                                                              \
			 &(q)->each_us,                                                            \
			 0,                                                                        \
			 US_MAX,                                                                   \
			 "the model's time for each request of a batch (one of these is needed)"}, \
			{"batch-us",     OPTION_REAL,                                              \
			 &(q)->batch_us, 0,                                                        \
			 US_MAX,         "the model's time for a batch, independent of its size"}, \
			{"max-batch", OPTION_NUMBER, &(q)->max_batch,                              \
			 1,           65536,         "requests in a batch"},                       \
			{"batch-timeout-us",                                                       \
			 OPTION_REAL,                                                              \
			 &(q)->batch_timeout_us,                                                   \
			 0,                                                                        \
			 US_MAX,                                                                   \
			 "how long a batch waits to fill"},                                        \
			{"run-times", OPTION_CALL, &(q)->exponential,                              \
			 0,           0,           "fixed (default) or exponential",               \
			 "WORD",      take_spread},                                                \
			{"p99-us",                                                                 \
			 OPTION_REAL,                                                              \
			 &(q)->p99_us,                                                             \
			 0,                                                                        \
			 US_MAX,                                                                   \
			 "99 % of replies come within this; without: it only keeps up"},           \
			{"workers",                                                                \
			 OPTION_NUMBER,                                                            \
			 &(q)->workers,                                                            \
			 1,                                                                        \
			 SIZE_WORKERS_MAX,                                                         \
			 "what to expect of so many, instead of finding how many"},                \
			{"policy",                                                                 \
			 OPTION_CALL,                                                              \
			 &(q)->policy,                                                             \
			 0,                                                                        \
			 0,                                                                        \
			 "least-outstanding (default), power-of-two, round-robin, random",         \
			 "NAME",                                                                   \
			 take_policy},                                                             \
			{"slots", OPTION_NUMBER, &(q)->slots,                                      \
			 2,       32768,         "per worker and data-plane core"},                \
			{"lcores", OPTION_NUMBER, &(q)->lcores,                                    \
			 1,        128,           "data-plane cores of the load balancer"},        \
			{"rtt-us",     OPTION_REAL,                                                \
			 &(q)->rtt_us, 0,                                                          \
			 US_MAX,       "a request's time without the model, software included"},   \
			{"client-gbps",     OPTION_REAL,                                           \
			 &(q)->client_gbps, 0,                                                     \
			 GBPS_MAX,          "link of the load balancer to the clients"},           \
			{"fabric-gbps",     OPTION_REAL,                                           \
			 &(q)->fabric_gbps, 0,                                                     \
			 GBPS_MAX,          "link of the load balancer to the fabric"},            \
			{"worker-gbps", OPTION_REAL,       &(q)->worker_gbps, 0,                   \
			 GBPS_MAX,      "link of a worker"},                                       \
			{"mtu", OPTION_NUMBER, &(q)->mtu, 576, 9216, "IP, of both networks"},      \
			{"epsilon",     OPTION_REAL,                                               \
			 &(q)->epsilon, 0,                                                         \
			 1000,          "what remoting may add to the model's time, as a share"},  \
			{"seed", OPTION_NUMBER, &(q)->seed, 0, UINT64_MAX, "of the simulation"},   \
			{"simulated", OPTION_NUMBER, &(q)->simulated,                              \
			 100,         20000000,      "requests to simulate"},                      \
			{"json", OPTION_FLAG, json,                                                \
			 0,      0,           "print JSON; the fields are in doorbell-json(5)"},        \
			{0},                                                                       \
	}

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
	if (q->rate == 0)
		return size_options_error("--rate: give requests per second, above 0");
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
	const struct option_row table[] = ROWS(q, json);
	int ret;

	*q = defaults;
	*json = false;
	ret = options_parse(argc, argv, USAGE, table);
	return ret != 0 ? ret : size_options_check(q);
}

void size_options_names(void)
{
	struct size_question none, *q = &none;
	bool json;
	const struct option_row table[] = ROWS(q, &json);

	options_print_names(table);
}
