/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * traffic: the whole walk on one lcore under made-up campus traffic, before the first flow expires
 * and while as many expire as begin, beside plain forwarding of the same packets; and the walk at 8
 * million flows beside the walk at a thousand. See README.md.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>

#include "conntrack/dumper.h"
#include "common/floor.h"
#include "common/options.h"
#include "common/trace.h"
#include "walk/walk_batch.h"

#define RUNS_DEFAULT 9
#define REPLY        64
#define DUMP_WINDOWS 4 /* pairs per run: their difference is small */
#define MEMORY_MB    3072

/* Batches per figure: 2048 turns. */
#define WINDOW 16

/* Sizes of the run; --smoke makes them small, and its figures mean nothing. */
struct size {
	uint32_t timeout_ms;
	uint32_t flows, many, dumped; /* of the table; drawn from; while it is dumped */
};

static const struct size full = {5000, 12000000, 8000000, 10000000};
/* Flows drawn from come on top of the traffic's: 200,000 active, and those of the last timeout. */
static const struct size smoke = {600, 1250000, 500000, 625000};

struct bench_traffic {
	struct size size;
	struct bench b;
	struct load trace, many, few;
	struct report report;
	unsigned int runs;
};

/* The lcore's clock stands still while the bench makes packets and takes them. */
static void batch(struct bench *b, struct load *load)
{
	struct lb *lb = b->rig.lb;
	uint64_t before = rte_rdtsc(), worked = b->worked;

	batch_run(b, load);
	lb->tsc_start += rte_rdtsc() - before - (b->worked - worked);
}

static double seconds(const struct bench *b)
{
	return (double)(rte_rdtsc() - b->rig.lb->tsc_start) / (double)b->rig.lb->tsc_hz;
}

static void forget(struct bench *b)
{
	b->requests.n = b->replies.n = 0;
}

/* A window's cost of a request, in cycles. */
static double window(struct bench *b, struct load *load, double *bytes)
{
	uint64_t before = b->bytes;
	double cycles;

	forget(b);
	for (unsigned int i = 0; i < WINDOW; i++)
		batch(b, load);
	cycles = turns_cost(&b->requests, LB_BURST).total;
	forget(b);
	*bytes = (double)(b->bytes - before) / (WINDOW * RIG_BATCH);
	return cycles;
}

static double gbps(const struct bench *b, double cycles, double bytes)
{
	return bytes * 8 * (double)b->rig.lb->tsc_hz / cycles / 1e9;
}

static void measure_trace(struct bench_traffic *t, const char *what, unsigned int frame)
{
	double bytes, cycles;

	trace_mean(t->trace.trace, frame);
	cycles = window(&t->b, &t->trace, &bytes);
	report_add(&t->report, cycles, "cycles_%s_%ub", what, frame);
	report_add(&t->report, gbps(&t->b, cycles, bytes), "gbps_%s_%ub", what, frame);
	report_add(&t->report, (double)t->b.rig.lb->tsc_hz / cycles / 1e6, "mpps_%s_%ub", what,
		   frame);
}

static void measure_forward(struct bench_traffic *t)
{
	struct turns *turns = &t->b.untimed;
	double bytes, cycles;
	uint64_t before = t->b.bytes;

	trace_mean(t->trace.trace, 1010);
	for (unsigned int i = 0; i < WINDOW; i++) {
		uint64_t start = rte_rdtsc();

		floor_forward(&t->b.clients, &t->trace, turns);
		t->b.bytes += batch_bytes(&t->b.clients);
		t->b.rig.lb->tsc_start += rte_rdtsc() - start;
	}
	bytes = (double)(t->b.bytes - before) / (WINDOW * RIG_BATCH);
	cycles = turns_cost(turns, LB_BURST).total;
	report_add(&t->report, cycles, "forward_cycles_1010b");
	report_add(&t->report, gbps(&t->b, cycles, bytes), "forward_gbps_1010b");
}

/* Flows begin and none ends, until the oldest is almost as old as the timeout. */
static void insert_only(struct bench_traffic *t)
{
	while (seconds(&t->b) < t->size.timeout_ms * 0.9 / 1000)
		measure_trace(t, "insert_only", 1010);
	report_add(&t->report, (double)conntrack_count(t->b.rig.lc->ct), "flows_insert_only");
}

/* As many flows end as begin. */
static void with_deletion(struct bench_traffic *t)
{
	struct conntrack_stats before, after;
	double start;

	while (seconds(&t->b) < t->size.timeout_ms * 2.2 / 1000) {
		batch(&t->b, &t->trace);
		forget(&t->b);
	}
	conntrack_stats_read(t->b.rig.lc->ct, &before);
	start = seconds(&t->b);
	for (unsigned int run = 0; run < t->runs; run++) {
		measure_trace(t, "with_deletion", 1010);
		measure_trace(t, "with_deletion", 980);
		measure_forward(t);
	}
	conntrack_stats_read(t->b.rig.lc->ct, &after);
	if (after.expired == before.expired || after.lag_ms > 100)
		rig_die("flows do not expire as they should: lag %lu ms", after.lag_ms);
	report_add(&t->report, (double)after.live, "flows_with_deletion");
	report_add(&t->report,
		   (double)(after.inserted - before.inserted) / (seconds(&t->b) - start),
		   "new_flows_per_s");
	report_add(&t->report, (double)(after.expired - before.expired) / (seconds(&t->b) - start),
		   "expired_flows_per_s");
}

static void many_flows(struct bench_traffic *t)
{
	struct load open = t->many;
	double bytes;

	open.in_turn = true;
	open.reply = REPLY;
	open.payload = REPLY;
	for (uint32_t sent = 0; sent < t->size.many; sent += RIG_BATCH) {
		batch(&t->b, &open);
		forget(&t->b);
	}
	for (unsigned int run = 0; run < t->runs; run++) {
		report_add(&t->report, window(&t->b, &t->many, &bytes), "walk_cycles_8m_1024b");
		report_add(&t->report, window(&t->b, &t->few, &bytes), "walk_cycles_1k_1024b");
	}
	report_add(&t->report,
		   report_median(&t->report, "walk_cycles_8m_1024b") /
			   report_median(&t->report, "walk_cycles_1k_1024b"),
		   "walk_cycles_8m_over_1k");
}

/* Measures while another core dumps the whole table, and while it does not. */
static void dumped(struct bench_traffic *t)
{
	uint32_t first = t->few.flows, opened = t->size.many;
	struct load open = t->many;
	struct dumper dumper;
	double bytes, cycles[2];

	open.in_turn = true;
	open.reply = open.payload = REPLY;
	open.flows = t->size.dumped;
	open.next = opened;
	for (; opened < t->size.dumped; opened += RIG_BATCH) {
		batch(&t->b, &open);
		forget(&t->b);
	}
	t->many.flows = first;
	dumper_start(&dumper, t->b.rig.lc->ct);
	for (unsigned int run = 0; run < t->runs * DUMP_WINDOWS; run++)
		for (int on = 0; on < 2; on++) {
			dumper_switch(&dumper, on);
			cycles[on] = window(&t->b, &t->many, &bytes);
			report_add(&t->report, cycles[on],
				   on ? "cycles_dumped" : "cycles_not_dumped");
		}
	/* windows are shorter than a dump: let one run through beside the walk */
	dumper_switch(&dumper, true);
	while (__atomic_load_n(&dumper.dumps, __ATOMIC_RELAXED) == 0)
		window(&t->b, &t->many, &bytes);
	dumper_stop(&dumper);
	report_add(&t->report, dumper.seconds * 1e7 / (double)dumper.flows, "dump_10m_s");
	report_add(&t->report, (double)dumper.flows, "flows_dumped");
	report_add(&t->report,
		   100 * (1 - report_median(&t->report, "cycles_not_dumped") /
				      report_median(&t->report, "cycles_dumped")),
		   "throughput_drop_pct");
}

static void print(const struct report *report)
{
	for (unsigned int i = 0; i < report->n; i++) {
		const char *name = report->series[i]->name;

		printf("%-32s %14.2f  (%.2f, %.2f)\n", name, report_median(report, name),
		       report_percentile(report, name, 10), report_percentile(report, name, 90));
	}
}

/* traffic --write FILE [PACKETS [BYTES]]: writes the trace and does nothing else. */
static int write_trace(int argc, char **argv)
{
	uint64_t packets = argc > 3 ? strtoull(argv[3], NULL, 10) : 1000000;
	double frame = argc > 4 ? strtod(argv[4], NULL) : 1010;
	int ret;

	if (argc < 3 || packets == 0 || frame < 250 || frame > 1350) {
		fputs("usage: traffic --write FILE [PACKETS [MEAN BYTES, 250 to 1350]]\n", stderr);
		return 2;
	}
	ret = trace_write(argv[2], packets, frame);
	if (ret < 0)
		fprintf(stderr, "traffic: cannot write %s: %s\n", argv[2], strerror(-ret));
	return ret < 0;
}

int main(int argc, char **argv)
{
	static struct bench_traffic t; /* too large for a stack */
	struct report_origin origin;
	struct bench_options o;
	int ret;

	if (argc > 1 && strcmp(argv[1], "--write") == 0)
		return write_trace(argc, argv);
	t.size = full;
	if (argc > 1 && strcmp(argv[1], "--smoke") == 0) {
		t.size = smoke;
		argv[1] = argv[0];
		argc--;
		argv++;
	}
	if (!bench_options_read(&o, argc, argv, "traffic", NULL, RUNS_DEFAULT))
		return 2;
	if (rig_create(&t.b.rig, &(struct rig_options){.hugepages = o.hugepages,
						       .flows = t.size.flows,
						       .mb = MEMORY_MB,
						       .timeout_ms = t.size.timeout_ms}) < 0)
		return 1;
	t.runs = o.runs;
	t.trace = (struct load){.service = RIG_ONE_WORKER, .trace = trace_create(), .reply = REPLY};
	t.many = (struct load){.service = RIG_MANY_WORKERS,
			       .flows = t.size.many,
			       .payload = 1024,
			       .reply = REPLY,
			       .nic_checks = true};
	t.few = t.many;
	t.few.flows = 1000;
	if (t.trace.trace == NULL)
		rig_die("no memory for the trace");
	clients_init(&t.b.clients, &t.b.rig);
	peer_join(&t.b.peer, &t.b.rig, &t.b.clients);
	insert_only(&t);
	with_deletion(&t);
	many_flows(&t);
	dumped(&t);
	origin = bench_origin(&o, "conntrack-traffic", rte_eal_has_hugepages());
	printf("one lcore, TSC %.2f GHz, bytes of frames without FCS\n\n",
	       (double)t.b.rig.lb->tsc_hz / 1e9);
	print(&t.report);
	ret = bench_write(&o, &t.report, &origin);
	trace_destroy(t.trace.trace);
	report_fini(&t.report);
	rig_destroy(&t.b.rig);
	rte_eal_cleanup();
	return ret < 0;
}
