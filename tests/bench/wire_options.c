/* SPDX-License-Identifier: BSD-3-Clause */
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>

#include "report.h"
#include "wire.h"

#define RUNS_DEFAULT  7
#define TRIES_DEFAULT 10
#define MEASURE_MS    500
#define FLOWS_DEFAULT 1000000
#define OUTSTANDING   512
#define REPLY_BYTES   64
#define SMOKE_FLOWS   10000
#define SMOKE_MS      50
/* A whole burst, and the requester's window less descriptors. */
#define OUTSTANDING_MIN 32
#define OUTSTANDING_MAX 896
/* log2; the driver refuses more. */
#define RING_MIN  6
#define RING_MAX  10
#define REPLY_MAX 256

static void usage(FILE *to)
{
	fputs("usage: wire-100g [--runs N] [--ms N] [--tries N] [--lcores N] [--gen-cores N]\n"
	      "                 [--lb-cpus LIST] [--gen-cpus LIST] [--flows N] [--outstanding N]\n"
	      "                 [--reply BYTES] [--ring LOG2] [--verify] [--smoke] [--no-huge]\n"
	      "                 [--copy] [--only METRIC] [--json FILE] [--commit TEXT]\n"
	      "                 [--machine TEXT] [--print-pages]\n",
	      to);
}

/* "2,3,5"; false when there are more than <max>. */
static bool parse_cpus(const char *text, uint16_t *cpu, unsigned int *n, unsigned int max)
{
	char *end;

	for (*n = 0; *n < max; text = end + 1) {
		cpu[(*n)++] = strtoul(text, &end, 10);
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
	OPTION_PRINT_PAGES,
	OPTION_JSON,
	OPTION_COMMIT,
	OPTION_MACHINE,
	OPTION_HELP,
};

static const struct option option_table[] = {
	{"runs", required_argument, NULL, OPTION_RUNS},
	{"tries", required_argument, NULL, OPTION_TRIES},
	{"ms", required_argument, NULL, OPTION_MS},
	{"lcores", required_argument, NULL, OPTION_LCORES},
	{"gen-cores", required_argument, NULL, OPTION_GEN_CORES},
	{"lb-cpus", required_argument, NULL, OPTION_LB_CPUS},
	{"gen-cpus", required_argument, NULL, OPTION_GEN_CPUS},
	{"flows", required_argument, NULL, OPTION_FLOWS},
	{"outstanding", required_argument, NULL, OPTION_OUTSTANDING},
	{"reply", required_argument, NULL, OPTION_REPLY},
	{"ring", required_argument, NULL, OPTION_RING},
	{"verify", no_argument, NULL, OPTION_VERIFY},
	{"smoke", no_argument, NULL, OPTION_SMOKE},
	{"no-huge", no_argument, NULL, OPTION_NO_HUGE},
	{"copy", no_argument, NULL, OPTION_COPY},
	{"print-pages", no_argument, NULL, OPTION_PRINT_PAGES},
	{"only", required_argument, NULL, OPTION_ONLY},
	{"json", required_argument, NULL, OPTION_JSON},
	{"commit", required_argument, NULL, OPTION_COMMIT},
	{"machine", required_argument, NULL, OPTION_MACHINE},
	{"help", no_argument, NULL, OPTION_HELP},
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
		return parse_cpus(optarg, o->lb_cpu, &o->lcores, WIRE_QUEUES_MAX);
	case OPTION_GEN_CPUS:
		return parse_cpus(optarg, o->gen_cpu, &o->threads, WIRE_THREADS_MAX);
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
	case OPTION_SMOKE:
		o->flows = SMOKE_FLOWS;
		o->measure_ms = SMOKE_MS;
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

/* Whoever was not given CPUs gets the next ones that nobody was given; or shares, if need be. */
static void choose_cpus(struct wire_options *o)
{
	unsigned int wanted = o->lcores + o->threads, n = 0, next = 0;
	uint16_t *cpu[WIRE_QUEUES_MAX + WIRE_THREADS_MAX], left[CPU_SETSIZE];
	cpu_set_t set;

	CPU_ZERO(&set);
	sched_getaffinity(0, sizeof(set), &set);
	if ((unsigned int)CPU_COUNT(&set) < wanted)
		fprintf(stderr, "wire-100g: %d CPUs for %u threads: the figures mean nothing\n",
			CPU_COUNT(&set), wanted);
	for (unsigned int i = 0; i < wanted; i++) {
		cpu[i] = i < o->lcores ? &o->lb_cpu[i] : &o->gen_cpu[i - o->lcores];
		if (*cpu[i] < CPU_SETSIZE && CPU_COUNT(&set) > 1)
			CPU_CLR(*cpu[i], &set);
	}
	for (unsigned int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &set))
			left[n++] = i;
	for (unsigned int i = 0; i < wanted; i++)
		if (*cpu[i] == UINT16_MAX)
			*cpu[i] = left[next++ % n];
}

/* The load balancer sizes itself; see memory_mb() in lb/eal.c and MEMORY_MB in wire_gen.c. */
unsigned int wire_options_pages(const struct wire_options *o)
{
	uint64_t flows = RTE_MAX(1048576u, o->flows + o->flows / 20);

	return (160 + flows * 352 / 1000000 + 112 * o->lcores) / 2;
}

bool wire_options_parse(int argc, char **argv, struct wire_options *o)
{
	int c;

	*o = (struct wire_options){
		.commit = "unknown",
		.machine = "unknown",
		.lcores = 1,
		.threads = 0,
		.runs = RUNS_DEFAULT,
		.tries = TRIES_DEFAULT,
		.measure_ms = MEASURE_MS,
		.flows = FLOWS_DEFAULT,
		.outstanding = OUTSTANDING,
		.reply = REPLY_BYTES,
		.ring = RING_MAX,
		.hugepages = true,
		.zero_copy = true,
	};
	memset(o->lb_cpu, 0xff, sizeof(o->lb_cpu));
	memset(o->gen_cpu, 0xff, sizeof(o->gen_cpu));
	while ((c = getopt_long(argc, argv, "", option_table, NULL)) != -1)
		if (!take_option(o, c))
			return usage(c == OPTION_HELP ? stdout : stderr), false;
	if (o->threads == 0)
		o->threads = o->lcores;
	if (optind != argc || o->runs == 0 || o->runs > REPORT_RUNS_MAX || o->tries == 0 ||
	    o->lcores == 0 || o->lcores > WIRE_QUEUES_MAX || o->threads > 2 * o->lcores ||
	    o->flows < o->lcores || o->outstanding < OUTSTANDING_MIN ||
	    o->outstanding > OUTSTANDING_MAX || o->reply < WIRE_NUMBER_LENGTH ||
	    o->reply > REPLY_MAX || o->ring < RING_MIN || o->ring > RING_MAX)
		return usage(stderr), false;
	snprintf(o->socket, sizeof(o->socket), "doorbell-wire-%d", (int)getpid());
	choose_cpus(o);
	return true;
}
