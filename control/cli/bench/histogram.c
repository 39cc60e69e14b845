/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/bench/histogram.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/*
 * Values below LINEAR have a bucket each. Above, each doubling has HALF buckets of one width, so
 * that a bucket's width is at most 1/HALF of its lowest value.
 */
#define LINEAR    2048u
#define HALF      1024u
#define HALF_BITS 10
#define DOUBLINGS 31 /* from 2^11 to 2^42 */
#define BUCKETS   (LINEAR + DOUBLINGS * HALF)

/* Rows of the text per halving of the distance to 100 %. */
#define TICKS_PER_HALF 5

int histogram_init(struct histogram *histogram)
{
	*histogram = (struct histogram){.counts = calloc(BUCKETS, sizeof(uint64_t))};
	return histogram->counts != NULL ? 0 : -ENOMEM;
}

void histogram_fini(struct histogram *histogram)
{
	free(histogram->counts);
}

static unsigned int histogram_bucket(uint64_t ns)
{
	unsigned int shift;

	if (ns < LINEAR)
		return (unsigned int)ns;
	shift = 63 - (unsigned int)__builtin_clzll(ns) - HALF_BITS;
	return LINEAR + (shift - 1) * HALF + (unsigned int)(ns >> shift) - HALF;
}

/* The largest value in the bucket. */
static uint64_t bucket_end(unsigned int bucket)
{
	unsigned int shift;

	if (bucket < LINEAR)
		return bucket;
	shift = (bucket - LINEAR) / HALF + 1;
	return ((uint64_t)((bucket - LINEAR) % HALF + HALF + 1) << shift) - 1;
}

void histogram_record(struct histogram *histogram, uint64_t ns)
{
	double value = (double)ns;

	if (histogram->count++ == 0 || ns < histogram->min_ns)
		histogram->min_ns = ns;
	if (ns > histogram->max_ns)
		histogram->max_ns = ns;
	histogram->sum += value;
	histogram->squares += value * value;
	histogram->counts[histogram_bucket(ns < HISTOGRAM_MAX_NS ? ns : HISTOGRAM_MAX_NS)]++;
}

void histogram_merge(struct histogram *to, const struct histogram *from)
{
	if (from->count == 0)
		return;
	for (unsigned int i = 0; i < BUCKETS; i++)
		to->counts[i] += from->counts[i];
	if (to->count == 0 || from->min_ns < to->min_ns)
		to->min_ns = from->min_ns;
	if (from->max_ns > to->max_ns)
		to->max_ns = from->max_ns;
	to->count += from->count;
	to->sum += from->sum;
	to->squares += from->squares;
}

static uint64_t rank_of(const struct histogram *histogram, double of)
{
	double rank = ceil((double)histogram->count * of);

	if (rank < 1)
		return 1;
	return rank < (double)histogram->count ? (uint64_t)rank : histogram->count;
}

/* The value of rank <rank>; <*up_to> gets how many values do not exceed it. */
static uint64_t value_at(const struct histogram *histogram, uint64_t rank, uint64_t *up_to)
{
	uint64_t sum = 0, end;
	unsigned int i;

	for (i = 0; i < BUCKETS; i++) {
		sum += histogram->counts[i];
		if (sum >= rank)
			break;
	}
	*up_to = sum;
	end = i < BUCKETS ? bucket_end(i) : histogram->max_ns;
	return sum == histogram->count || end > histogram->max_ns ? histogram->max_ns : end;
}

uint64_t histogram_value_ns(const struct histogram *histogram, double of)
{
	uint64_t up_to;

	if (histogram->count == 0)
		return 0;
	return value_at(histogram, rank_of(histogram, of), &up_to);
}

double histogram_mean_ns(const struct histogram *histogram)
{
	return histogram->count != 0 ? histogram->sum / (double)histogram->count : 0;
}

double histogram_deviation_ns(const struct histogram *histogram)
{
	double mean = histogram_mean_ns(histogram), variance;

	if (histogram->count == 0)
		return 0;
	variance = histogram->squares / (double)histogram->count - mean * mean;
	return variance > 0 ? sqrt(variance) : 0; /* rounding may make it -0.1 */
}

/* One row of the distribution. */
struct row {
	double of; /* fraction of the values */
	uint64_t ns, up_to;
};

/*
 * Go to the next fraction: TICKS_PER_HALF steps through each half of the distance to 1. Returns
 * false after the last, which is 1.
 */
static bool row_next(const struct histogram *histogram, struct row *row)
{
	double halvings;

	if (row->up_to == histogram->count)
		return false;
	halvings = floor(log2(1 / (1 - row->of))) + 1;
	row->of += 1 / (TICKS_PER_HALF * exp2(halvings));
	row->ns = value_at(histogram, rank_of(histogram, row->of), &row->up_to);
	if (row->up_to == histogram->count)
		row->of = 1;
	return true;
}

static bool row_first(const struct histogram *histogram, struct row *row)
{
	*row = (struct row){0};
	if (histogram->count == 0)
		return false;
	row->ns = value_at(histogram, 1, &row->up_to);
	return true;
}

void histogram_print(const struct histogram *histogram, FILE *out)
{
	struct row row;

	fprintf(out, "%12s %14s %10s %14s\n\n", "Value", "Percentile", "TotalCount",
		"1/(1-Percentile)");
	for (bool more = row_first(histogram, &row); more; more = row_next(histogram, &row)) {
		fprintf(out, "%12.3f %14.12f %10" PRIu64, (double)row.ns / 1e3, row.of, row.up_to);
		/* The last row has no finite distance to 100 %. */
		if (row.of < 1)
			fprintf(out, " %14.2f", 1 / (1 - row.of));
		fputc('\n', out);
	}
	fprintf(out, "#[Mean    = %12.3f, StdDeviation   = %12.3f]\n",
		histogram_mean_ns(histogram) / 1e3, histogram_deviation_ns(histogram) / 1e3);
	fprintf(out, "#[Max     = %12.3f, Total count    = %12" PRIu64 "]\n",
		(double)histogram->max_ns / 1e3, histogram->count);
	fprintf(out, "#[Buckets = %12d, SubBuckets     = %12u]\n", DOUBLINGS + 1, LINEAR);
}

/* Write a time in us; null, not 0, without values. */
static void us_json(json_t *object, const struct histogram *histogram, const char *name, double ns)
{
	json_object_set_new(object, name,
			    histogram->count != 0 ? json_real(ns / 1e3) : json_null());
}

json_t *histogram_json(const struct histogram *histogram, bool rows)
{
	static const struct {
		const char *name;
		double of;
	} points[] = {{"p50_us", 0.5},
		      {"p90_us", 0.9},
		      {"p99_us", 0.99},
		      {"p999_us", 0.999},
		      {"p9999_us", 0.9999}};
	json_t *object = json_pack("{s:I}", "count", (json_int_t)histogram->count);
	json_t *list;
	struct row row;

	us_json(object, histogram, "min_us", (double)histogram->min_ns);
	us_json(object, histogram, "mean_us", histogram_mean_ns(histogram));
	us_json(object, histogram, "stddev_us", histogram_deviation_ns(histogram));
	for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++)
		us_json(object, histogram, points[i].name,
			(double)histogram_value_ns(histogram, points[i].of));
	us_json(object, histogram, "max_us", (double)histogram->max_ns);
	if (!rows)
		return object;
	list = json_array();
	for (bool more = row_first(histogram, &row); more; more = row_next(histogram, &row))
		json_array_append_new(list, json_pack("[f, f, I]", row.of * 100,
						      (double)row.ns / 1e3, (json_int_t)row.up_to));
	json_object_set_new(object, "percentiles", list);
	return object;
}
