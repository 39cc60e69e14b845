/* SPDX-License-Identifier: BSD-3-Clause */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>

#include "common/report.h"
#include "wire/wire_cpus.h"

#define RUNS_DEFAULT  7
#define TRIES_DEFAULT 10
#define MEASURE_MS    500
#define FLOWS_DEFAULT 1000000
#define OUTSTANDING   512
#define REPLY_BYTES   64
#define SMOKE_FLOWS   10000
/* One span of conntrack-scale, or all five of wire-100g, outlast WIRE_DEAD_MS. */
#define SMOKE_MS_100G  500
#define SMOKE_MS_SCALE 2500
/* A whole burst, and the requester's window less descriptors. */
#define OUTSTANDING_MIN 32
#define OUTSTANDING_MAX 896
/* log2; the driver refuses more. */
#define RING_MIN  6
#define RING_MAX  10
#define REPLY_MAX 256
/* Of 4096, less what the EAL's own alignment may take. */
#define MEMIF_MAX_MB 4000u
/* Where every request opens a flow, as many live as come in a timeout. */
#define NEW_CAPACITY       (2u << 20)
#define NEW_CAPACITY_MIN   (64u << 10)
#define NEW_CAPACITY_MAX   (16u << 20)
#define NEW_TIMEOUT_MS     500
#define NEW_TIMEOUT_MIN_MS 100
#define NEW_TIMEOUT_MAX_MS 60000
#define SMOKE_NEW_CAPACITY (1u << 20)
#define SMOKE_NEW_MS       750

static void usage(FILE *to, enum wire_bench bench)
{
	if (bench == WIRE_BENCH_100G)
		fputs("usage: wire-100g [--lcores N] [--gen-cores N] [--only METRIC]\n", to);
	else
		fputs("usage: conntrack-scale [--lcores-list 1,2,4] [--gen-per-lcore 1|2]\n"
		      "                 [--new-capacity FLOWS PER LCORE] [--new-timeout MS]\n"
		      "                 [--only 1024b|64b|new]\n",
		      to);
	fputs("                 [--runs N] [--ms N] [--tries N] [--lb-cpus LIST] [--gen-cpus "
	      "LIST]\n"
	      "                 [--flows N] [--outstanding N] [--reply BYTES] [--ring LOG2]\n"
	      "                 [--verify] [--smoke] [--no-huge] [--copy] [--json FILE]\n"
	      "                 [--commit TEXT] [--machine TEXT] [--print-pages]\n",
	      to);
}

/* "2,3,5"; false when there are more than <max>. */
static bool parse_list(const char *text, uint16_t *number, unsigned int *n, unsigned int max)
{
	char *end;

	for (*n = 0; *n < max; text = end + 1) {
		number[(*n)++] = strtoul(text, &end, 10);
		if (end == text || (*end != ',' && *end != '\0'))
			return false;
		if (*end == '\0')
			return true;
	}
	return false;
}

enum {
	OPTION_RUNS = 1,
	OPTION_TRIES,
	OPTION_MS,
	OPTION_LCORES,
	OPTION_GEN_CORES,
	OPTION_LB_CPUS,
	OPTION_GEN_CPUS,
	OPTION_FLOWS,
	OPTION_OUTSTANDING,
	OPTION_REPLY,
	OPTION_RING,
	OPTION_VERIFY,
	OPTION_SMOKE,
	OPTION_NO_HUGE,
	OPTION_COPY,
	OPTION_ONLY,
	OPTION_STEPS,
	OPTION_GEN_PER_LCORE,
	OPTION_NEW_CAPACITY,
	OPTION_NEW_TIMEOUT,
	OPTION_PRINT_PAGES,
	OPTION_JSON,
	OPTION_COMMIT,
	OPTION_MACHINE,
	OPTION_HELP,
};

#define COMMON_OPTIONS                                                                             \
	{"runs", required_argument, NULL, OPTION_RUNS},                                            \
		{"tries", required_argument, NULL, OPTION_TRIES},                                  \
		{"ms", required_argument, NULL, OPTION_MS},                                        \
		{"lb-cpus", required_argument, NULL, OPTION_LB_CPUS},                              \
		{"gen-cpus", required_argument, NULL, OPTION_GEN_CPUS},                            \
		{"flows", required_argument, NULL, OPTION_FLOWS},                                  \
		{"outstanding", required_argument, NULL, OPTION_OUTSTANDING},                      \
		{"reply", required_argument, NULL, OPTION_REPLY},                                  \
		{"ring", required_argument, NULL, OPTION_RING},                                    \
		{"verify", no_argument, NULL, OPTION_VERIFY},                                      \
		{"smoke", no_argument, NULL, OPTION_SMOKE},                                        \
		{"no-huge", no_argument, NULL, OPTION_NO_HUGE},                                    \
		{"copy", no_argument, NULL, OPTION_COPY},                                          \
		{"print-pages", no_argument, NULL, OPTION_PRINT_PAGES},                            \
		{"only", required_argument, NULL, OPTION_ONLY},                                    \
		{"json", required_argument, NULL, OPTION_JSON},                                    \
		{"commit", required_argument, NULL, OPTION_COMMIT},                                \
		{"machine", required_argument, NULL, OPTION_MACHINE},                              \
	{                                                                                          \
		"help", no_argument, NULL, OPTION_HELP                                             \
	}

static const struct option options_100g[] = {
	COMMON_OPTIONS,
	{"lcores", required_argument, NULL, OPTION_LCORES},
	{"gen-cores", required_argument, NULL, OPTION_GEN_CORES},
	{NULL},
};

static const struct option options_scale[] = {
	COMMON_OPTIONS,
	{"lcores-list", required_argument, NULL, OPTION_STEPS},
	{"gen-per-lcore", required_argument, NULL, OPTION_GEN_PER_LCORE},
	{"new-capacity", required_argument, NULL, OPTION_NEW_CAPACITY},
	{"new-timeout", required_argument, NULL, OPTION_NEW_TIMEOUT},
	{NULL},
};

static bool take_option(struct wire_options *o, int c)
{
	unsigned long number = optarg == NULL ? 0 : strtoul(optarg, NULL, 10);

	switch (c) {
	case OPTION_RUNS:
		o->runs = number;
		return true;
	case OPTION_TRIES:
		o->tries = number;
		return true;
	case OPTION_MS:
		o->measure_ms = number;
		return true;
	case OPTION_LCORES:
		o->lcores = number;
		return true;
	case OPTION_GEN_CORES:
		o->threads = number;
		return true;
	case OPTION_LB_CPUS:
		return parse_list(optarg, o->lb_cpu, &o->lcores, WIRE_QUEUES_MAX);
	case OPTION_GEN_CPUS:
		return parse_list(optarg, o->gen_cpu, &o->threads, WIRE_THREADS_MAX);
	case OPTION_FLOWS:
		o->flows = number;
		return true;
	case OPTION_OUTSTANDING:
		o->outstanding = number;
		return true;
	case OPTION_REPLY:
		o->reply = number;
		return true;
	case OPTION_RING:
		o->ring = number;
		return true;
	case OPTION_VERIFY:
		o->verify = true;
		return true;
	case OPTION_STEPS:
		return parse_list(optarg, o->step, &o->n_steps, WIRE_STEPS_MAX);
	case OPTION_GEN_PER_LCORE:
		o->threads_per_lcore = number;
		return true;
	case OPTION_NEW_CAPACITY:
		o->new_capacity_per_lcore = number;
		return true;
	case OPTION_NEW_TIMEOUT:
		o->new_timeout_ms = number;
		return true;
	case OPTION_SMOKE:
		o->new_capacity_per_lcore = SMOKE_NEW_CAPACITY;
		o->new_timeout_ms = SMOKE_NEW_MS;
		o->flows = SMOKE_FLOWS;
		o->measure_ms = o->smoke_ms;
		o->runs = o->tries = 1;
		o->verify = true;
		return true;
	case OPTION_NO_HUGE:
		o->hugepages = false;
		return true;
	case OPTION_COPY:
		o->zero_copy = false;
		return true;
	case OPTION_ONLY:
		o->only = optarg;
		return true;
	case OPTION_PRINT_PAGES:
		o->print_pages = true;
		return true;
	case OPTION_JSON:
		o->json = optarg;
		return true;
	case OPTION_COMMIT:
		o->commit = optarg;
		return true;
	case OPTION_MACHINE:
		o->machine = optarg;
		return true;
	default:
		return false;
	}
}

/* The default, or a twentieth more than there are: some lcores get a few more than others. */
uint32_t wire_options_capacity(const struct wire_options *o)
{
	return o->capacity > 0 ? o->capacity : RTE_MAX(1048576u, o->flows + o->flows / 20);
}

/* The load balancer sizes itself; see lb/config/memory.c and MEMORY_MB in wire_gen.c. */
unsigned int wire_options_pages(const struct wire_options *o)
{
	return (160 + wire_options_capacity(o) * 160ull / 1000000 + 112 * o->lcores) / 2;
}

static void warn(const struct wire_options *o)
{
	fprintf(stderr, "%u CPUs for %u threads: the figures mean nothing\n", wire_cpus_count(),
		o->lcores + o->threads);
}

void wire_options_step(const struct wire_options *all, unsigned int lcores, bool fresh,
		       struct wire_options *step)
{
	*step = *all;
	step->lcores = lcores;
	step->threads = lcores * all->threads_per_lcore;
	if (fresh) {
		step->capacity = lcores * all->new_capacity_per_lcore;
		step->timeout_ms = all->new_timeout_ms;
	}
	if (!wire_cpus_choose(step) && !fresh)
		warn(step);
}

/*
 * Without copies all memory of the load balancer may hold packets, and a memif descriptor says in
 * 32 bits where in it one lies.
 */
static bool fits_memif(const struct wire_options *o, uint32_t capacity, unsigned int lcores)
{
	uint64_t mb = 64 + capacity * 148ull / (1 << 20) + 80 * lcores; /* as above */

	if (!o->zero_copy || mb <= MEMIF_MAX_MB)
		return true;
	fprintf(stderr,
		"flows=%u lcores=%u take %lu MiB, memif reaches %u: fewer flows, or --copy\n",
		capacity, lcores, mb, MEMIF_MAX_MB);
	return false;
}

/* Without a list: 1, 2, 4 ..., and all that the CPUs are enough for. */
static void choose_steps(struct wire_options *o)
{
	unsigned int most = wire_cpus_count() / (1 + o->threads_per_lcore);

	most = RTE_MIN(RTE_MAX(most, 1u), (unsigned int)WIRE_QUEUES_MAX);
	for (unsigned int n = 1; n < most; n *= 2)
		o->step[o->n_steps++] = n;
	o->step[o->n_steps++] = most;
}

static bool fit_steps(struct wire_options *o)
{
	if (o->threads_per_lcore == 0 || o->threads_per_lcore > 2 ||
	    o->new_capacity_per_lcore < NEW_CAPACITY_MIN ||
	    o->new_capacity_per_lcore > NEW_CAPACITY_MAX ||
	    o->new_timeout_ms < NEW_TIMEOUT_MIN_MS || o->new_timeout_ms > NEW_TIMEOUT_MAX_MS)
		return false;
	if (o->n_steps == 0)
		choose_steps(o);
	for (unsigned int i = 0; i < o->n_steps; i++)
		if (o->step[i] == 0 || o->step[i] > WIRE_QUEUES_MAX || o->step[i] > o->flows ||
		    !fits_memif(o, wire_options_capacity(o), o->step[i]) ||
		    !fits_memif(o, o->step[i] * o->new_capacity_per_lcore, o->step[i]))
			return false;
	return true;
}

static bool fit_cores(struct wire_options *o)
{
	if (o->threads == 0)
		o->threads = o->lcores;
	if (o->lcores == 0 || o->lcores > WIRE_QUEUES_MAX || o->threads > 2 * o->lcores ||
	    o->flows < o->lcores || !fits_memif(o, wire_options_capacity(o), o->lcores))
		return false;
	if (!wire_cpus_choose(o))
		warn(o);
	return true;
}

bool wire_options_parse(int argc, char **argv, enum wire_bench bench, struct wire_options *o)
{
	static char machine[256];
	const struct option *table = bench == WIRE_BENCH_100G ? options_100g : options_scale;
	int c;

	wire_cpus_machine(machine, sizeof(machine));
	*o = (struct wire_options){
		.commit = "unknown",
		.machine = machine,
		.lcores = 1,
		.threads = 0,
		.runs = RUNS_DEFAULT,
		.tries = TRIES_DEFAULT,
		.measure_ms = MEASURE_MS,
		.smoke_ms = bench == WIRE_BENCH_100G ? SMOKE_MS_100G : SMOKE_MS_SCALE,
		.flows = FLOWS_DEFAULT,
		.outstanding = OUTSTANDING,
		.reply = REPLY_BYTES,
		.ring = RING_MAX,
		.hugepages = true,
		.zero_copy = true,
		.threads_per_lcore = 1,
		.new_capacity_per_lcore = NEW_CAPACITY,
		.new_timeout_ms = NEW_TIMEOUT_MS,
	};
	memset(o->lb_cpu, 0xff, sizeof(o->lb_cpu));
	memset(o->gen_cpu, 0xff, sizeof(o->gen_cpu));
	while ((c = getopt_long(argc, argv, "", table, NULL)) != -1)
		if (!take_option(o, c))
			return usage(c == OPTION_HELP ? stdout : stderr, bench), false;
	if (optind != argc || o->runs == 0 || o->runs > REPORT_RUNS_MAX || o->tries == 0 ||
	    o->outstanding < OUTSTANDING_MIN || o->outstanding > OUTSTANDING_MAX ||
	    o->reply < WIRE_NUMBER_LENGTH || o->reply > REPLY_MAX || o->ring < RING_MIN ||
	    o->ring > RING_MAX || !(bench == WIRE_BENCH_100G ? fit_cores(o) : fit_steps(o)))
		return usage(stderr, bench), false;
	snprintf(o->socket, sizeof(o->socket), "doorbell-wire-%d", (int)getpid());
	return true;
}
