/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/bench/arrivals.h"

#include <criterion/criterion.h>
#include <math.h>

#define N 200000

Test(arrivals, poisson_has_the_rate_and_the_spread_of_a_memoryless_process)
{
	double last = 0, sum = 0, squares = 0, below = 0;
	struct arrivals a;

	arrivals_init(&a, 12345, false, 1, 0);
	for (int i = 0; i < N; i++) {
		double gap = a.next_ns - last;

		last = a.next_ns;
		sum += gap;
		squares += gap * gap;
		below += gap < 1e9 / 12345;
		arrivals_take(&a);
	}
	/* The standard errors are 0.22 %, 0.45 % and 0.11 %; the limits are five of each. */
	cr_assert_float_eq(sum / N * 12345 / 1e9, 1, 0.011);
	cr_assert_float_eq(squares / N / (sum / N * sum / N) - 1, 1, 0.03);
	cr_assert_float_eq(below / N, 1 - exp(-1), 0.0055);
}

/* Counts in windows of time have a variance equal to their mean; dependent gaps would not. */
Test(arrivals, counts_in_windows_are_poisson_too)
{
	double sum = 0, squares = 0;
	struct arrivals a;

	arrivals_init(&a, 1e6, false, 7, 3);
	for (int w = 1; w <= 10000; w++) {
		double n = 0;

		for (; arrivals_next_ns(&a) < w * 20000ull; arrivals_take(&a))
			n++;
		sum += n;
		squares += n * n;
	}
	cr_assert_float_eq(sum / 10000, 20, 0.25);
	cr_assert_float_eq(squares / 10000 - pow(sum / 10000, 2), 20, 1.5);
}

Test(arrivals, even_ones_keep_their_distance)
{
	struct arrivals a;
	double last;

	arrivals_init(&a, 1000, true, 5, 0);
	last = a.next_ns;
	cr_assert_leq(last, 1e6);
	for (int i = 0; i < 1000; i++) {
		arrivals_take(&a);
		cr_assert_float_eq(a.next_ns - last, 1e6, 1e-3);
		last = a.next_ns;
	}
}

Test(arrivals, a_seed_repeats_and_streams_differ)
{
	struct draw a, b, c, d;
	int same = 0;

	draw_init(&a, 42, 0);
	draw_init(&b, 42, 0);
	draw_init(&c, 42, 1);
	draw_init(&d, 43, 0);
	for (int i = 0; i < 1000; i++) {
		uint64_t x = draw_next(&a);

		cr_assert_eq(x, draw_next(&b));
		same += x == draw_next(&c);
		same += x == draw_next(&d);
	}
	cr_assert_eq(same, 0);
}

Test(arrivals, two_threads_of_half_the_rate_are_one_of_the_whole)
{
	struct arrivals a, b;
	int n = 0;

	arrivals_init(&a, 5000, false, 9, 0);
	arrivals_init(&b, 5000, false, 9, 1);
	for (; arrivals_next_ns(&a) < 20000000000ull; arrivals_take(&a))
		n++;
	for (; arrivals_next_ns(&b) < 20000000000ull; arrivals_take(&b))
		n++;
	cr_assert_float_eq(n, 200000, 5 * sqrt(200000));
}
