/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>

#include "common/report.h"
#include "runtime/option_table.h"
#include "wire/wire_cpus.h"

#define RUNS_DEFAULT  7
#define TRIES_DEFAULT 10
#define MEASURE_MS    500
#define FLOWS_DEFAULT 1000000
#define OUTSTANDING   512
#define CONNECTIONS   8
#define REPLY_BYTES   64
#define SMOKE_FLOWS   10000
/* One span of conntrack-scale, or all five of wire-100g, outlast WIRE_DEAD_MS. */
#define SMOKE_MS_100G  900
#define SMOKE_MS_SCALE 4500
/* Requests: a whole burst, and the requester's window less descriptors. */
#define OUTSTANDING_MIN 32
#define OUTSTANDING_MAX 896
/* log2; the driver refuses more. */
#define RING_MIN  6
#define RING_MAX  10
#define REPLY_MAX 256
/* 4096 MB, less the EAL's own alignment. */
#define MEMIF_MAX_MB 4000u
/* Flows; where every request opens one, as many live as come in a timeout. */
#define NEW_CAPACITY       (2u << 20)
#define NEW_CAPACITY_MIN   (64u << 10)
#define NEW_CAPACITY_MAX   (16u << 20)
#define NEW_TIMEOUT_MS     500
#define NEW_TIMEOUT_MIN_MS 100
#define NEW_TIMEOUT_MAX_MS 60000
#define SMOKE_NEW_CAPACITY (1u << 20)
#define SMOKE_NEW_MS       750

/* Parses "2,3,5"; false when there are more than <max>. */
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

static int take_list(const char *text, uint16_t *number, unsigned int *n, unsigned int max,
		     char *error, size_t size)
{
	if (parse_list(text, number, n, max))
		return 0;
	snprintf(error, size, "is not a list of at most %u numbers; write 1,2,4", max);
	return -EINVAL;
}

static int take_lb_cpus(void *options, const char *text, char *error, size_t size)
{
	struct wire_options *o = options;

	return take_list(text, o->lb_cpu, &o->lcores, WIRE_QUEUES_MAX, error, size);
}

static int take_gen_cpus(void *options, const char *text, char *error, size_t size)
{
	struct wire_options *o = options;

	return take_list(text, o->gen_cpu, &o->threads, WIRE_THREADS_MAX, error, size);
}

static int take_steps(void *options, const char *text, char *error, size_t size)
{
	struct wire_options *o = options;

	return take_list(text, o->step, &o->n_steps, WIRE_STEPS_MAX, error, size);
}

static int take_smoke(void *options, const char *text, char *error, size_t size)
{
	struct wire_options *o = options;

	o->new_capacity_per_lcore = SMOKE_NEW_CAPACITY;
	o->new_timeout_ms = SMOKE_NEW_MS;
	o->flows = SMOKE_FLOWS;
	o->measure_ms = o->smoke_ms;
	o->runs = o->tries = 1;
	o->verify = true;
	return 0;
}

#define AT(field) OPTION_AT(struct wire_options, field)
#define WHOLE     OPTION_WHOLE(struct wire_options)

static const struct option_row rows_common[] = {
	{"only", OPTION_TEXT, AT(only), NULL, "100g: METRICs, a,b; scale: 1024b, 64b or new"},
	{"runs", OPTION_NUMBER, AT(runs), NULL, "spans per scenario", 1, REPORT_RUNS_MAX},
	{"tries", OPTION_NUMBER, AT(tries), NULL, "to get each undisturbed", 1},
	{"ms", OPTION_NUMBER, AT(measure_ms), NULL, "length of a span", 1},
	{"lb-cpus", OPTION_CALL, WHOLE, "LIST", "of the load balancer", .take = take_lb_cpus},
	{"gen-cpus", OPTION_CALL, WHOLE, "LIST", "of the generator", .take = take_gen_cpus},
	{"flows", OPTION_NUMBER, AT(flows), NULL, "of the clients", 1},
	{"outstanding", OPTION_NUMBER, AT(outstanding), NULL, "requests per queue without a reply",
	 OUTSTANDING_MIN, OUTSTANDING_MAX},
	{"reply", OPTION_NUMBER, AT(reply), NULL, "bytes", WIRE_NUMBER_LENGTH, REPLY_MAX},
	{"ring", OPTION_NUMBER, AT(ring), NULL, "slots of a memif ring, as a power of two",
	 RING_MIN, RING_MAX},
	{"verify", OPTION_FLAG, AT(verify), NULL, "check every byte, in time that is measured"},
	{"smoke", OPTION_CALL, WHOLE, "", "a short run that shows that it works",
	 .take = take_smoke, .optional = true},
	{"no-huge", OPTION_FLAG_OFF, AT(hugepages), NULL, "4 KiB pages"},
	{"copy", OPTION_FLAG_OFF, AT(zero_copy), NULL, "memif copies packets"},
	{"json", OPTION_TEXT, AT(json), "FILE", "write the figures to it"},
	{"commit", OPTION_TEXT, AT(commit), NULL, "what was measured"},
	{"machine", OPTION_TEXT, AT(machine), NULL, "and where"},
	{"print-pages", OPTION_FLAG, AT(print_pages), NULL, "print how many hugepages it takes"},
	{0},
};

static const struct option_row rows_100g[] = {
	{"sweep", OPTION_FLAG, AT(sweep), NULL, "also measure datagrams in small frames"},
	{"connections", OPTION_NUMBER, AT(connections), NULL, "of clients by TCP, per queue", 1,
	 WIRE_CONNECTIONS_MAX},
	{"lcores", OPTION_NUMBER, AT(lcores), NULL, "of the load balancer", 1, WIRE_QUEUES_MAX},
	{"gen-cores", OPTION_NUMBER, AT(threads), NULL, "of the generator [as many]", 1,
	 WIRE_THREADS_MAX},
	{0},
};

static const struct option_row rows_scale[] = {
	{"lcores-list", OPTION_CALL, WHOLE, "LIST", "numbers of lcores [1,2,4 ... all]",
	 .take = take_steps},
	{"gen-per-lcore", OPTION_NUMBER, AT(threads_per_lcore), NULL, "cores of the generator", 1,
	 2},
	{"new-capacity", OPTION_NUMBER, AT(new_capacity_per_lcore), NULL,
	 "flows per lcore where every request opens one", NEW_CAPACITY_MIN, NEW_CAPACITY_MAX},
	{"new-timeout", OPTION_NUMBER, AT(new_timeout_ms), "MS", "of such a flow",
	 NEW_TIMEOUT_MIN_MS, NEW_TIMEOUT_MAX_MS},
	{0},
};

static const struct option_table tables[] = {
	[WIRE_BENCH_100G] = {.program = "wire-100g",
			     .usage = "wire-100g [option ...]",
			     .rows = rows_100g,
			     .shared = rows_common},
	[WIRE_BENCH_SCALE] = {.program = "conntrack-scale",
			      .usage = "conntrack-scale [option ...]",
			      .rows = rows_scale,
			      .shared = rows_common},
};

/* The default, or a twentieth more than there are flows: some lcores get a few more than others. */
uint32_t wire_options_capacity(const struct wire_options *o)
{
	return o->capacity > 0 ? o->capacity : RTE_MAX(1048576u, o->flows + o->flows / 20);
}

unsigned int wire_options_pages(const struct wire_options *o)
{
	return RTE_ALIGN_MUL_CEIL(wire_lb_memory_mb(o), 2) / 2 +
	       RTE_ALIGN_MUL_CEIL(wire_gen_memory_mb(o), 2) / 2;
}

static bool complain(const char *what)
{
	fprintf(stderr, "%s\n", what);
	return false;
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
 * Without copies all memory of the load balancer may hold packets, and a memif descriptor gives a
 * packet's place in it in 32 bits.
 */
static bool fits_memif(const struct wire_options *o, uint32_t capacity, unsigned int lcores)
{
	uint64_t mb = 64 + capacity * 148ull / (1 << 20) +
		      (o->connections > 0 ? 180 : 80) * lcores; /* as above */

	if (!o->zero_copy || mb <= MEMIF_MAX_MB)
		return true;
	fprintf(stderr,
		"flows=%u lcores=%u take %lu MiB, memif reaches %u: fewer flows, or --copy\n",
		capacity, lcores, mb, MEMIF_MAX_MB);
	return false;
}

/* Without a list: 1, 2, 4 ... lcores, and the most that the CPUs allow. */
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
	if (o->n_steps == 0)
		choose_steps(o);
	for (unsigned int i = 0; i < o->n_steps; i++) {
		if (o->step[i] == 0 || o->step[i] > WIRE_QUEUES_MAX || o->step[i] > o->flows)
			return complain("--lcores-list: give numbers from 1 to 16, and as many "
					"--flows at least");
		if (!fits_memif(o, wire_options_capacity(o), o->step[i]) ||
		    !fits_memif(o, o->step[i] * o->new_capacity_per_lcore, o->step[i]))
			return false;
	}
	return true;
}

static bool fit_cores(struct wire_options *o)
{
	if (o->threads == 0)
		o->threads = o->lcores;
	if (o->threads > 2 * o->lcores)
		return complain("--gen-cores: give at most two per --lcores");
	if (o->flows < o->lcores)
		return complain("--flows: give as many as --lcores at least");
	if (!fits_memif(o, wire_options_capacity(o), o->lcores))
		return false;
	if (!wire_cpus_choose(o))
		warn(o);
	return true;
}

bool wire_options_parse(int argc, char **argv, enum wire_bench bench, struct wire_options *o)
{
	static char machine[256];

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
		.connections = bench == WIRE_BENCH_100G ? CONNECTIONS : 0,
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
	if (options_parse(&tables[bench], argc, argv, o, NULL) != 0 ||
	    !(bench == WIRE_BENCH_100G ? fit_cores(o) : fit_steps(o)))
		return false;
	snprintf(o->socket, sizeof(o->socket), "doorbell-wire-%d", (int)getpid());
	return true;
}
