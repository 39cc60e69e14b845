/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A histogram of nanoseconds whose buckets grow with the value. It has any value up to
 * HISTOGRAM_MAX_NS to 0.1 % in a fixed 270 KiB, and an increment per value. Written as JSON, or as
 * the text of HdrHistogram's percentile distributions (.hgrm), which its plotter draws.
 *
 * One thread writes; others may read only after that thread has ended.
 */
#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define HISTOGRAM_MAX_NS ((1ull << 42) - 1) /* 73 minutes; a longer time counts as this */

struct histogram {
	uint64_t *counts;
	uint64_t count;
	uint64_t min_ns, max_ns; /* exact; 0 without values */
	double sum, squares;     /* exact enough for mean and standard deviation */
};

/* Returns -ENOMEM on failure. */
int histogram_init(struct histogram *histogram);
void histogram_fini(struct histogram *histogram);

void histogram_record(struct histogram *histogram, uint64_t ns);
/* Add the values of <from> to <to>. */
void histogram_merge(struct histogram *to, const struct histogram *from);

/*
 * The value that the fraction <of> of all values did not exceed: the upper end of its bucket, but
 * never above the largest value. 0 without values.
 */
uint64_t histogram_value_ns(const struct histogram *histogram, double of);
double histogram_mean_ns(const struct histogram *histogram);
double histogram_deviation_ns(const struct histogram *histogram);

/* Print the .hgrm text, values in microseconds. */
void histogram_print(const struct histogram *histogram, FILE *out);

/*
 * {"count", "min_us", "mean_us", "stddev_us", "p50_us", "p90_us", "p99_us", "p999_us", "p9999_us",
 * "max_us", "percentiles": [[percent, us, count], ...]}; the last only with <rows>. Without values
 * all but "count" and "percentiles" are null.
 */
json_t *histogram_json(const struct histogram *histogram, bool rows);

#endif
