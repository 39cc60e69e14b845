/* SPDX-License-Identifier: BSD-3-Clause */
/* Histograms: buckets without gaps, how far a quantile may be off, and what a reply counts in. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "latency.h"

Test(lb_latency, buckets_follow_each_other_without_gap_or_overlap)
{
	cr_expect_eq(latency_lower_us(0), 0);
	for (unsigned int i = 0; i < LATENCY_BUCKETS; i++) {
		cr_assert_lt(latency_lower_us(i), latency_upper_us(i), "%u", i);
		cr_assert_eq(latency_bucket(latency_lower_us(i)), i, "%u", i);
		cr_assert_eq(latency_bucket(latency_upper_us(i) - 1), i, "%u", i);
	}
	cr_expect_eq(latency_upper_us(LATENCY_BUCKETS - 1), LATENCY_MAX_US + 1ull);
}

Test(lb_latency, what_is_beyond_the_last_bucket_counts_in_it)
{
	cr_expect_eq(latency_bucket(LATENCY_MAX_US), LATENCY_BUCKETS - 1);
	cr_expect_eq(latency_bucket(LATENCY_MAX_US + 1ull), LATENCY_BUCKETS - 1);
	cr_expect_eq(latency_bucket(UINT64_MAX), LATENCY_BUCKETS - 1);
}

Test(lb_latency, the_middle_of_a_bucket_is_within_3_2_percent_of_its_values)
{
	/* below 16 us a bucket has one value, and half a microsecond is what clocks differ by */
	for (unsigned int i = 16; i < LATENCY_BUCKETS; i++) {
		double low = (double)latency_lower_us(i), high = (double)latency_upper_us(i);

		cr_assert_leq((high - low) / 2 / low, 0.032, "%u", i);
	}
}

static struct latency service, worker;

static void reply(uint64_t queue, uint64_t wire, uint64_t wait, uint64_t run, uint64_t after)
{
	struct latency_sample s = {
		.queue_ns = queue * 1000,
		.total_ns = (wire + wait + run) * 1000,
		.wait_ns = wait * 1000,
		.run_ns = run * 1000,
		.reply_ns = after * 1000,
		.split = 1,
	};

	latency_add(&service, &worker, &s);
}

Test(lb_latency, each_part_of_a_reply_is_counted_where_it_belongs)
{
	reply(3, 20, 5, 7, 1);
	cr_expect_eq(service.bucket[LATENCY_QUEUE][3], 1);
	cr_expect_eq(service.bucket[LATENCY_WIRE][20], 1);
	cr_expect_eq(service.bucket[LATENCY_WAIT][5], 1);
	cr_expect_eq(service.bucket[LATENCY_RUN][7], 1);
	cr_expect_eq(service.bucket[LATENCY_REPLY][1], 1);
	cr_expect_eq(service.bucket[LATENCY_TOTAL][latency_bucket(36)], 1);
	cr_expect_eq(worker.bucket[LATENCY_WIRE][20], 1);
	cr_expect_eq(worker.bucket[LATENCY_WAIT][5], 1);
	cr_expect_eq(worker.bucket[LATENCY_RUN][7], 1);
	cr_expect_eq(worker.bucket[LATENCY_TOTAL][latency_bucket(32)], 1);
	cr_expect_eq(worker.sum_ns[LATENCY_TOTAL], 32000);
	cr_expect_eq(service.sum_ns[LATENCY_TOTAL], 36000);
	cr_expect_eq(service.sum_ns[LATENCY_WIRE] + service.sum_ns[LATENCY_WAIT] +
			     service.sum_ns[LATENCY_RUN] + service.sum_ns[LATENCY_QUEUE] +
			     service.sum_ns[LATENCY_REPLY],
		     36000);
	for (unsigned int p = 0; p < LATENCY_PARTS; p++)
		cr_expect_eq(latency_count(service.bucket[p]), 1, "%s", latency_part_name(p));
}

Test(lb_latency, a_reply_whose_clock_went_back_is_not_split)
{
	struct latency_sample s = {.total_ns = 5000, .wait_ns = 1000, .run_ns = UINT64_MAX};

	latency_add(&service, &worker, &s);
	cr_expect_eq(latency_count(worker.bucket[LATENCY_TOTAL]), 1);
	cr_expect_eq(latency_count(worker.bucket[LATENCY_RUN]), 0);
	cr_expect_eq(latency_count(service.bucket[LATENCY_WIRE]), 0);
	cr_expect_eq(service.sum_ns[LATENCY_RUN], 0);
}

Test(lb_latency, a_links_set_is_written_no_further_than_its_size)
{
	struct latency *link = latency_create(1, LATENCY_LINK_SIZE + 64);

	memset((char *)link + LATENCY_LINK_SIZE, 0xa5, 64);
	for (uint64_t us = 1; us < UINT64_MAX / 4000; us *= 2) {
		struct latency_sample s = {us, us * 1000, us, us, us, 1};

		latency_add(&service, link, &s);
	}
	for (int i = 0; i < 64; i++)
		cr_assert_eq(((unsigned char *)link)[LATENCY_LINK_SIZE + i], 0xa5);
	free(link);
}

Test(lb_latency, quantiles_of_known_values_are_as_close_as_the_header_says)
{
	/* 1 to 100,000 us, each once: the quantile is known exactly */
	for (uint64_t us = 1; us <= 100000; us++)
		worker.bucket[LATENCY_RUN][latency_bucket(us)]++;
	for (double q = 0.01; q < 1; q += 0.01) {
		double got = latency_quantile_us(worker.bucket[LATENCY_RUN], q);

		cr_expect_float_eq(got / (q * 100000), 1, 0.033, "q %f: %f us", q, got);
	}
	cr_expect_eq(latency_quantile_us(service.bucket[LATENCY_RUN], 0.5), 0);
}

Test(lb_latency, sets_add_up_and_tell_what_came_in_between)
{
	struct latency before = {0}, after = {0};

	reply(1, 10, 10, 10, 1);
	latency_merge(&before, &service, LATENCY_PARTS);
	reply(2, 20, 20, 20, 2);
	latency_merge(&after, &service, LATENCY_PARTS);
	latency_since(&after, &before);
	cr_expect_eq(latency_count(after.bucket[LATENCY_TOTAL]), 1);
	cr_expect_eq(after.bucket[LATENCY_QUEUE][2], 1);
	cr_expect_eq(after.sum_ns[LATENCY_TOTAL], 64000);
}

Test(lb_latency, a_new_set_is_empty)
{
	struct latency *l = latency_create(3, sizeof(*l));

	cr_assert_not_null(l);
	for (unsigned int i = 0; i < 3; i++)
		cr_expect_eq(latency_count(l[i].bucket[LATENCY_REPLY]), 0);
	free(l);
}
