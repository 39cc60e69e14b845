/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "common/options.h"
#include "runtime/option_table.h"

#define AT(field) OPTION_AT(struct bench_options, field)

static const struct option_row rows[] = {
	{"runs", OPTION_NUMBER, AT(runs), NULL, "figures are their medians", 1, REPORT_RUNS_MAX},
	{"json", OPTION_TEXT, AT(json), "FILE", "write the figures to it"},
	{"commit", OPTION_TEXT, AT(commit), NULL, "what was measured"},
	{"machine", OPTION_TEXT, AT(machine), NULL, "and where"},
	{"no-huge", OPTION_FLAG_OFF, AT(hugepages), NULL, "4 KiB pages"},
	{0},
};

bool bench_options_read(struct bench_options *o, int argc, char **argv, const char *bench,
			const char *only, unsigned int runs)
{
	const struct option_row part[] = {
		{"only", OPTION_TEXT, AT(only), only, "measure only this part"}, {0}};
	char usage[64];
	const struct option_table table = {.program = bench,
					   .usage = usage,
					   .rows = rows,
					   .shared = only != NULL ? part : NULL};

	*o = (struct bench_options){
		.commit = "unknown", .machine = "unknown", .runs = runs, .hugepages = true};
	snprintf(usage, sizeof(usage), "%s [option ...]", bench);
	return options_parse(&table, argc, argv, o, NULL) == 0;
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
