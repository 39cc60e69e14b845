/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_launch.h>
#include <rte_lcore.h>

#include "e2e/e2e.h"
#include "common/report.h"
#include "common/wire_child.h"
#include "runtime/option_table.h"

/* Requests before the first run, so that every flow is known and every page touched. */
#define WARM_UP 1000

struct totals {
	uint64_t answered, lost, busy, other, wrong, late, duplicates;
};

static int check_options(const struct e2e_options *o)
{
	const char *problem = NULL;

	if (o->load.to.socket.ss_family != AF_INET)
		problem = "--to: only IPv4";
	else if ((o->model == NULL) != (o->weights == NULL) ||
		 (o->model != NULL && o->data == NULL))
		problem = "--model and --weights need each other, and --data";
	else if (o->threads > 1 && o->data != NULL)
		problem = "--threads: the account of digits belongs to one";
	else if (o->threads > o->load.window || o->threads > o->load.sockets ||
		 o->threads > o->load.requests)
		problem = "--threads: more than there are flows, requests, or places in the window";
	else if (o->load.window > o->threads * E2E_WINDOW_MAX)
		problem = "--window: more than 1024 for each of --threads";
	if (problem != NULL)
		fprintf(stderr, "bench-e2e: %s\n", problem);
	return problem == NULL ? 0 : 2;
}

#define AT(field) OPTION_AT(struct e2e_options, field)

static const struct option_row e2e_rows[] = {
	{"device", OPTION_TEXT, AT(device), NULL, "devargs of the client's port", .required = true},
	{"to", OPTION_ADDRESS, AT(load.to), NULL, "the service", .required = true},
	{"requests", OPTION_NUMBER, AT(load.requests), NULL, "of each run", 1, 100000000},
	{"runs", OPTION_NUMBER, AT(runs), NULL, "figures are their medians", 1, REPORT_RUNS_MAX},
	{"flows", OPTION_NUMBER, AT(load.sockets), NULL, "UDP flows", 1, LOAD_SOCKETS_MAX},
	{"window", OPTION_NUMBER, AT(load.window), NULL,
	 "requests without a reply, all flows together; 1024 per thread at most", 1,
	 E2E_WINDOW_MAX *E2E_THREADS_MAX},
	{"threads", OPTION_NUMBER, AT(threads), NULL,
	 "each with a queue of the port, and its share of flows, window and requests", 1,
	 E2E_THREADS_MAX},
	{"size", OPTION_NUMBER, AT(size), NULL, "bytes of an echo request", LOAD_ID_MIN,
	 E2E_REQUEST_MAX},
	{"timeout-ms", OPTION_NUMBER, AT(load.timeout_ms), NULL,
	 "a request without a reply by then is lost", 1, 600000},
	{"data", OPTION_TEXT, AT(data), NULL, "the images, digits.bin"},
	{"model", OPTION_TEXT, AT(model), NULL, "the served plug-in, mlp.so"},
	{"weights", OPTION_TEXT, AT(weights), NULL, "the served safetensors file"},
	{"json", OPTION_TEXT, AT(json), NULL, "write the figures to this file"},
	{"commit", OPTION_TEXT, AT(commit), NULL, "what was measured"},
	{"machine", OPTION_TEXT, AT(machine), NULL, "and where"},
	{"no-huge", OPTION_FLAG, AT(no_huge), NULL, "4 KiB pages"},
	{"yield", OPTION_FLAG, AT(yield), NULL, "leave an idle CPU to others"},
	{"progress", OPTION_FLAG, AT(load.progress), NULL, "a line per second on stderr"},
	{0},
};

static const struct option_table e2e_table = {
	.program = "bench-e2e",
	.usage = "bench-e2e --device DEVICE --to VIP:PORT [option ...]\n"
		 "The client of e2e.sh, which starts the rest. With --data it sends digits, whose\n"
		 "answers it knows with --model and --weights; otherwise echo requests of --size.\n"
		 "Exits 1 if a reply was lost or wrong, or the run could not be made.",
	.rows = e2e_rows,
};

/* 0 to go on, 1 after --help, 2 after a usage error. */
static int parse_options(int argc, char **argv, struct e2e_options *o)
{
	int ret = options_parse(&e2e_table, argc, argv, o, NULL);

	if (ret != 0)
		return ret == 1 ? 1 : 2;
	return check_options(o);
}

/* "1kib", "100b", or "digits". */
static const char *name_of(const struct e2e_options *o)
{
	static char name[32];

	if (o->data != NULL)
		return "digits";
	snprintf(name, sizeof(name), o->size % 1024 == 0 ? "%lukib" : "%lub",
		 o->size % 1024 == 0 ? o->size / 1024 : o->size);
	return name;
}

static void add_totals(struct totals *all, const struct tally *t)
{
	all->answered += t->answered;
	all->lost += t->lost;
	all->busy += t->notices[NOTICE_BUSY];
	all->other += tally_notices(t) - t->notices[NOTICE_BUSY];
	all->wrong += t->wrong;
	all->late += t->late;
	all->duplicates += t->duplicates;
}

static void add_run(struct report *report, const struct e2e_options *o, const struct tally *t)
{
	static const struct {
		const char *name;
		double of;
	} rows[] = {{"p50", 0.5}, {"p99", 0.99}, {"p999", 0.999}};
	uint64_t *sorted = tally_latencies(t);

	if (sorted == NULL)
		wire_die("no memory for the latencies");
	for (unsigned int i = 0; i < RTE_DIM(rows); i++)
		report_add(report, tally_percentile_us(sorted, t->answered, rows[i].of),
			   "e2e_%s_us_%s", rows[i].name, name_of(o));
	report_add(report, tally_rps(t), "e2e_rps_%s", name_of(o));
	free(sorted);
}

static void add_counts(struct report *report, const struct e2e_options *o, const struct totals *all)
{
	report_add(report, o->load.requests, "requests");
	report_add(report, o->load.window, "window");
	report_add(report, o->load.sockets, "flows");
	report_add(report, o->threads, "threads");
	report_add(report, all->answered, "answered");
	report_add(report, all->lost, "lost");
	report_add(report, all->busy, "busy");
	report_add(report, all->other, "other_notices");
	report_add(report, all->wrong, "wrong");
	report_add(report, all->late, "late");
	report_add(report, all->duplicates, "duplicates");
	if (o->data != NULL)
		report_add(report, e2e_work_accuracy(), "accuracy");
}

static double median(const struct report *report, const struct e2e_options *o, const char *what)
{
	char name[REPORT_NAME_MAX];

	snprintf(name, sizeof(name), "e2e_%s_%s", what, name_of(o));
	return report_median(report, name);
}

static void print(const struct report *report, const struct e2e_options *o,
		  const struct totals *all)
{
	printf("%s, window %lu, %lu flows, %lu requests%s; commit %s, %s, %s\n", name_of(o),
	       o->load.window, o->load.sockets, o->load.requests,
	       o->runs > 1 ? " per run, medians" : "", o->commit, o->machine,
	       o->no_huge ? "4 KiB pages" : "2 MiB pages");
	printf("latency     p50 %.1f us  p99 %.1f us  p99.9 %.1f us\n", median(report, o, "p50_us"),
	       median(report, o, "p99_us"), median(report, o, "p999_us"));
	printf("rate        %.0f requests/s\n", median(report, o, "rps"));
	printf("answered    %lu  lost %lu  busy %lu  other notices %lu  wrong %lu  late %lu  "
	       "duplicates %lu\n",
	       all->answered, all->lost, all->busy, all->other, all->wrong, all->late,
	       all->duplicates);
	if (o->data != NULL)
		printf("accuracy    %.4f of the pictures that training had not seen\n",
		       e2e_work_accuracy());
}

/* One thread of a run. */
struct share {
	struct e2e_net net;
	struct e2e_options o;
	const struct load_work *work;
	uint64_t requests;
	struct tally tally;
};

static int run_share(void *argument)
{
	struct share *s = argument;

	e2e_load_run(&s->net, &s->o, s->work, s->requests, &s->tally);
	return 0;
}

/* The n-th of <threads> parts of <all>. */
static uint64_t part(uint64_t all, uint64_t threads, uint64_t n)
{
	return all * (n + 1) / threads - all * n / threads;
}

/* Runs <requests> on all threads; <tally>, which the caller finishes, gets the account of all. */
static void run(const struct e2e_net *net, const struct e2e_options *o,
		const struct load_work *work, uint64_t requests, struct tally *tally)
{
	static struct share share[E2E_THREADS_MAX];
	uint32_t first_flow = 0, lcore;
	uint64_t i = 1;

	for (uint64_t n = 0; n < o->threads; n++) {
		struct share *s = &share[n];

		*s = (struct share){.net = *net, .o = *o, .work = work};
		s->net.queue = n;
		s->net.first_flow = first_flow;
		s->o.load.sockets = part(o->load.sockets, o->threads, n);
		s->o.load.window = part(o->load.window, o->threads, n);
		s->requests = part(requests, o->threads, n);
		first_flow += s->o.load.sockets;
	}
	RTE_LCORE_FOREACH_WORKER(lcore)
	rte_eal_remote_launch(run_share, &share[i++], lcore);
	run_share(&share[0]);
	rte_eal_mp_wait_lcore();
	*tally = share[0].tally;
	for (uint64_t n = 1; n < o->threads; n++) {
		if (tally_add(tally, &share[n].tally) != 0)
			wire_die("no memory for the account of all threads");
		tally_fini(&share[n].tally);
	}
}

static void measure(const struct e2e_options *o, struct report *report, struct totals *all)
{
	static struct e2e_net net;
	struct load_work work = e2e_work(o);
	struct tally tally;

	e2e_net_open(&net, o);
	run(&net, o, &work, RTE_MAX(o->load.sockets, (uint64_t)WARM_UP), &tally);
	add_totals(all, &tally);
	all->answered = 0;
	tally_fini(&tally);
	for (uint64_t i = 0; i < o->runs; i++) {
		run(&net, o, &work, o->load.requests, &tally);
		add_totals(all, &tally);
		add_run(report, o, &tally);
		tally_fini(&tally);
	}
	e2e_net_close(&net);
}

int main(int argc, char **argv)
{
	static struct report report;
	struct e2e_options o = {
		.load = {.sockets = 64, .window = 1, .requests = 100000, .timeout_ms = 1000},
		.threads = 1,
		.size = 1024,
		.runs = 1,
		.commit = "unknown",
		.machine = "unknown",
	};
	struct totals all = {0};
	int ret = parse_options(argc, argv, &o);

	if (ret != 0)
		return ret == 1 ? EXIT_SUCCESS : ret;
	wire_name("bench-e2e");
	measure(&o, &report, &all);
	add_counts(&report, &o, &all);
	print(&report, &o, &all);
	if (o.json != NULL) {
		struct report_origin origin = {"e2e", o.commit, o.machine,
					       o.no_huge ? "4 KiB" : "2 MiB", o.runs};

		ret = report_write(&report, &origin, o.json);
		if (ret < 0)
			fprintf(stderr, "bench-e2e: cannot write %s\n", o.json);
	}
	report_fini(&report);
	return ret < 0 || all.lost > 0 || all.wrong > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
