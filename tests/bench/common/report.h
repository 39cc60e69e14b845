/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Named series of numbers, one value per repetition, and their output for people and scripts.
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <stdbool.h>

#define REPORT_SERIES_MAX 1024
#define REPORT_RUNS_MAX   999
#define REPORT_NAME_MAX   96

struct series {
	char name[REPORT_NAME_MAX];
	unsigned int n;
	double value[REPORT_RUNS_MAX];
};

struct report {
	unsigned int n;
	struct series *series[REPORT_SERIES_MAX];
};

/* The circumstances of a measurement. The texts are the caller's. */
struct report_origin {
	const char *bench, *commit, *machine, *pages;
	unsigned int runs;
};

void report_add(struct report *report, double value, const char *name, ...)
	__attribute__((format(printf, 3, 4)));
/* The value that <percent> of a series' values are below or at; the series must exist. */
double report_percentile(const struct report *report, const char *name, double percent);
static inline double report_median(const struct report *report, const char *name)
{
	return report_percentile(report, name, 50);
}

/* {"bench", "commit", "machine", "pages", "runs", "metrics": {name: median}, "spread": {name:
 * [p10, p90]}}. 0 or -errno. */
int report_write(const struct report *report, const struct report_origin *origin, const char *path);
void report_fini(struct report *report);

#endif
