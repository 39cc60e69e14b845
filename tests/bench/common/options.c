/* SPDX-License-Identifier: BSD-3-Clause */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/options.h"

static void usage(FILE *to, const char *bench, const char *only)
{
	fprintf(to,
		"usage: %s [--runs N] [--json FILE] [--commit TEXT] [--machine TEXT] [--no-huge]",
		bench);
	if (only != NULL)
		fprintf(to, " [--only %s]", only);
	fputc('\n', to);
}

bool bench_options_read(struct bench_options *o, int argc, char **argv, const char *bench,
			const char *only, unsigned int runs)
{
	static const struct option table[] = {
		{"runs", required_argument, NULL, 'r'},   {"json", required_argument, NULL, 'j'},
		{"commit", required_argument, NULL, 'c'}, {"machine", required_argument, NULL, 'm'},
		{"no-huge", no_argument, NULL, 'n'},      {"only", required_argument, NULL, 'o'},
		{"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0},
	};
	int c;

	*o = (struct bench_options){
		.commit = "unknown", .machine = "unknown", .runs = runs, .hugepages = true};
	while ((c = getopt_long(argc, argv, "", table, NULL)) != -1) {
		if (c == 'r')
			o->runs = strtoul(optarg, NULL, 10);
		else if (c == 'j')
			o->json = optarg;
		else if (c == 'c')
			o->commit = optarg;
		else if (c == 'm')
			o->machine = optarg;
		else if (c == 'o' && only != NULL)
			o->only = optarg;
		else if (c == 'n')
			o->hugepages = false;
		else
			return usage(c == 'h' ? stdout : stderr, bench, only), false;
	}
	if (o->runs == 0 || o->runs > REPORT_RUNS_MAX || optind != argc)
		return usage(stderr, bench, only), false;
	return true;
}

struct report_origin bench_origin(const struct bench_options *o, const char *bench, bool huge)
{
	struct report_origin origin = {
		.bench = bench,
		.commit = o->commit,
		.machine = o->machine,
		.pages = huge ? "2 MiB pages" : "4 KiB pages",
		.runs = o->runs,
	};

	printf("%s: medians (p10, p90) of %u interleaved repetitions\n"
	       "commit %s, %s, %s\n\n",
	       bench, origin.runs, origin.commit, origin.machine, origin.pages);
	return origin;
}

int bench_write(const struct bench_options *o, const struct report *report,
		const struct report_origin *origin)
{
	int ret = o->json == NULL ? 0 : report_write(report, origin, o->json);

	if (ret < 0)
		fprintf(stderr, "%s: cannot write %s\n", origin->bench, o->json);
	return ret;
}
