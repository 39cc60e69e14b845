/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/bench/histogram.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct histogram h;

static void init(void)
{
	cr_assert_eq(histogram_init(&h), 0);
}

static void fini(void)
{
	histogram_fini(&h);
}

TestSuite(histogram, .init = init, .fini = fini);

Test(histogram, any_value_is_known_to_a_tenth_of_a_percent)
{
	for (double v = 1; v < (double)HISTOGRAM_MAX_NS; v *= 1.0137) {
		struct histogram one;
		uint64_t ns = (uint64_t)v, seen;

		cr_assert_eq(histogram_init(&one), 0);
		/* a larger value, as the largest is kept exactly */
		histogram_record(&one, ns);
		histogram_record(&one, HISTOGRAM_MAX_NS);
		seen = histogram_value_ns(&one, 0.5);
		cr_assert_geq(seen, ns);
		cr_assert_leq((double)(seen - ns), (double)ns / 1000, "%lu became %lu", ns, seen);
		histogram_fini(&one);
	}
}

Test(histogram, percentiles_are_nearest_ranks)
{
	for (uint64_t i = 1; i <= 1000; i++)
		histogram_record(&h, i);
	cr_assert_eq(histogram_value_ns(&h, 0), 1);
	cr_assert_eq(histogram_value_ns(&h, 0.5), 500);
	cr_assert_eq(histogram_value_ns(&h, 0.99), 990);
	cr_assert_eq(histogram_value_ns(&h, 0.9991), 1000);
	cr_assert_eq(histogram_value_ns(&h, 1), 1000);
}

Test(histogram, mean_and_deviation_are_those_of_the_values)
{
	for (int i = 0; i < 100; i++)
		histogram_record(&h, i % 2 == 0 ? 1000000 : 3000000);
	cr_assert_float_eq(histogram_mean_ns(&h), 2000000, 1e-6);
	cr_assert_float_eq(histogram_deviation_ns(&h), 1000000, 1e-3);
}

Test(histogram, what_is_too_long_is_the_longest_and_its_maximum_exact)
{
	histogram_record(&h, 5);
	histogram_record(&h, UINT64_MAX / 2);
	cr_assert_eq(h.max_ns, UINT64_MAX / 2);
	cr_assert_eq(histogram_value_ns(&h, 1), UINT64_MAX / 2);
	cr_assert_eq(histogram_value_ns(&h, 0.5), 5);
}

Test(histogram, merging_is_as_if_one_had_seen_all)
{
	struct histogram other, both;

	cr_assert_eq(histogram_init(&other), 0);
	cr_assert_eq(histogram_init(&both), 0);
	for (uint64_t i = 0; i < 5000; i++) {
		uint64_t ns = i * i * 37 + 11;

		histogram_record(i % 3 == 0 ? &h : &other, ns);
		histogram_record(&both, ns);
	}
	histogram_merge(&h, &other);
	cr_assert_eq(h.count, both.count);
	cr_assert_eq(h.min_ns, both.min_ns);
	cr_assert_eq(h.max_ns, both.max_ns);
	for (double of = 0; of <= 1; of += 0.01)
		cr_assert_eq(histogram_value_ns(&h, of), histogram_value_ns(&both, of));
	histogram_fini(&other);
	histogram_fini(&both);
}

Test(histogram, without_values_everything_is_zero)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	cr_assert_eq(histogram_value_ns(&h, 0.99), 0);
	cr_assert_eq(histogram_mean_ns(&h), 0);
	cr_assert_eq(histogram_deviation_ns(&h), 0);
	histogram_print(&h, out);
	fclose(out);
	cr_assert_not_null(strstr(text, "Total count    =            0]"));
	free(text);
}

/* Readers of .hgrm files rely on this form: four columns, rising, and the last row without the
 * fourth. */
Test(histogram, the_text_is_a_percentile_distribution)
{
	double value, of, inverse, last_value = 0, last_of = -1;
	unsigned long total, last_total = 0;
	char *text, *line, *rest;
	int columns = 4, rows = 0;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (uint64_t i = 1; i <= 10000; i++)
		histogram_record(&h, i * 1000);
	histogram_print(&h, out);
	fclose(out);
	line = strtok_r(text, "\n", &rest);
	cr_assert_str_eq(line, "       Value     Percentile TotalCount 1/(1-Percentile)");
	for (line = strtok_r(NULL, "\n", &rest); line[0] != '#'; rows++) {
		cr_assert_eq(columns, 4, "only the last row has three");
		columns = sscanf(line, "%lf %lf %lu %lf", &value, &of, &total, &inverse);
		cr_assert_geq(columns, 3);
		cr_assert_geq(value, last_value);
		cr_assert_gt(of, last_of);
		cr_assert_geq(total, last_total);
		/* as many as the fraction says, within a bucket */
		cr_assert_geq((double)total, of * 10000 - 1e-6);
		cr_assert_leq((double)total, of * 10000 + 11);
		if (columns == 4)
			cr_assert_float_eq(inverse, 1 / (1 - of), 0.005 + inverse / 1e3);
		last_value = value;
		last_of = of;
		last_total = total;
		line = strtok_r(NULL, "\n", &rest);
	}
	cr_assert_eq(columns, 3);
	cr_assert_eq(last_of, 1);
	cr_assert_eq(last_total, 10000);
	cr_assert_float_eq(last_value, 10000, 1e-9);
	cr_assert_gt(rows, 50);
	cr_assert_str_eq(line, "#[Mean    =     5000.500, StdDeviation   =     2886.751]");
	free(text);
}
