/* SPDX-License-Identifier: BSD-3-Clause */
/* Latency histograms: buckets without gaps, the error of a quantile, and where a reply is counted.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "lcore/latency.h"

Test(lb_latency, buckets_follow_each_other_without_gap_or_overlap)
{
	cr_expect_eq(latency_lower_ns(0), 0);
	for (unsigned int i = 0; i < LATENCY_BUCKETS; i++) {
		cr_assert_lt(latency_lower_ns(i), latency_upper_ns(i), "%u", i);
		cr_assert_eq(latency_bucket(latency_lower_ns(i)), i, "%u", i);
		cr_assert_eq(latency_bucket(latency_upper_ns(i) - 1), i, "%u", i);
	}
	cr_expect_eq(latency_upper_ns(LATENCY_BUCKETS - 1), (LATENCY_MAX_UNITS + 1ull)
								    << LATENCY_UNIT_BITS);
}

Test(lb_latency, what_is_beyond_the_last_bucket_counts_in_it)
{
	cr_expect_eq(latency_bucket(((uint64_t)LATENCY_MAX_UNITS) << LATENCY_UNIT_BITS),
		     LATENCY_BUCKETS - 1);
	cr_expect_eq(latency_bucket((LATENCY_MAX_UNITS + 1ull) << LATENCY_UNIT_BITS),
		     LATENCY_BUCKETS - 1);
	cr_expect_eq(latency_bucket(UINT64_MAX), LATENCY_BUCKETS - 1);
}

Test(lb_latency, the_middle_of_a_bucket_is_within_3_2_percent_of_its_values)
{
	/* below 16 units a bucket is as narrow as it gets */
	for (unsigned int i = 16; i < LATENCY_BUCKETS; i++) {
		double low = (double)latency_lower_ns(i), high = (double)latency_upper_ns(i);

		cr_assert_leq((high - low) / 2 / low, 0.032, "%u", i);
	}
}

static struct latency service, worker, service_read, worker_read;

/* One reply, times in ns. */
static void reply(uint64_t queue, uint64_t wire, uint64_t wait, uint64_t run, uint64_t after)
{
	struct latency_sample s = {
		.queue_ns = queue,
		.total_ns = wire + wait + run,
		.wait_ns = wait,
		.run_ns = run,
		.reply_ns = after,
		.reply_bucket = latency_bucket(after),
		.split = 1,
	};

	latency_add(&service, &worker, &s);
}

static void read_both(void)
{
	memset(&service_read, 0, sizeof(service_read));
	memset(&worker_read, 0, sizeof(worker_read));
	latency_merge_service(&service_read, &service);
	latency_merge_link(&worker_read, &worker);
}

static uint64_t at(const struct latency *l, enum latency_part part, uint64_t ns)
{
	return l->bucket[part][latency_bucket(ns)];
}

Test(lb_latency, each_part_of_a_reply_is_counted_where_it_belongs)
{
	reply(3000, 20000, 5000, 7000, 1500);
	read_both();
	cr_expect_eq(at(&service_read, LATENCY_QUEUE, 3000), 1);
	cr_expect_eq(at(&service_read, LATENCY_WIRE, 20000), 1);
	cr_expect_eq(at(&service_read, LATENCY_WAIT, 5000), 1);
	cr_expect_eq(at(&service_read, LATENCY_RUN, 7000), 1);
	cr_expect_eq(at(&service_read, LATENCY_REPLY, 1500), 1);
	cr_expect_eq(at(&service_read, LATENCY_TOTAL, 36500), 1);
	cr_expect_eq(at(&worker_read, LATENCY_WIRE, 20000), 1);
	cr_expect_eq(at(&worker_read, LATENCY_WAIT, 5000), 1);
	cr_expect_eq(at(&worker_read, LATENCY_RUN, 7000), 1);
	cr_expect_eq(at(&worker_read, LATENCY_TOTAL, 32000), 1);
	for (unsigned int p = 0; p < LATENCY_PARTS; p++)
		cr_expect_eq(latency_count(service_read.bucket[p]), 1, "%s", latency_part_name(p));
	for (unsigned int p = 0; p < LATENCY_LINK_PARTS; p++)
		cr_expect_eq(latency_count(worker_read.bucket[p]), 1, "%s", latency_part_name(p));
}

Test(lb_latency, sums_are_exact_and_those_of_the_parts_make_the_whole)
{
	uint64_t parts = 0;

	reply(3000, 20000, 5000, 7000, 1500);
	reply(0, 20, 5, 7, 1);
	read_both();
	for (unsigned int p = 0; p < LATENCY_PARTS; p++)
		parts += p == LATENCY_TOTAL ? 0 : service_read.sum_ns[p];
	cr_expect_eq(service_read.sum_ns[LATENCY_TOTAL], 36533);
	cr_expect_eq(parts, 36533);
	cr_expect_eq(service_read.sum_ns[LATENCY_WIRE], 20020);
	cr_expect_eq(worker_read.sum_ns[LATENCY_TOTAL], 32032);
	cr_expect_eq(worker_read.sum_ns[LATENCY_WIRE], 20020);
}

Test(lb_latency, requests_that_did_not_wait_count_in_the_first_bucket_of_queue)
{
	for (int i = 0; i < 5; i++)
		reply(0, 100, 100, 100, 100);
	reply(1000, 100, 100, 100, 100); /* less than a unit */
	reply(90000, 100, 100, 100, 100);
	read_both();
	cr_expect_eq(service_read.bucket[LATENCY_QUEUE][0], 6);
	cr_expect_eq(at(&service_read, LATENCY_QUEUE, 90000), 1);
	cr_expect_eq(service_read.sum_ns[LATENCY_QUEUE], 91000);
}

Test(lb_latency, a_reply_whose_clock_went_back_is_not_split)
{
	struct latency_sample s = {.total_ns = 5000, .wait_ns = 1000, .run_ns = UINT64_MAX};

	latency_add(&service, &worker, &s);
	read_both();
	cr_expect_eq(latency_count(worker_read.bucket[LATENCY_TOTAL]), 1);
	cr_expect_eq(latency_count(worker_read.bucket[LATENCY_RUN]), 0);
	cr_expect_eq(latency_count(service_read.bucket[LATENCY_WIRE]), 0);
	cr_expect_eq(service_read.sum_ns[LATENCY_TOTAL], 5000);
	cr_expect_eq(service_read.sum_ns[LATENCY_RUN], 0);
	cr_expect_eq(service_read.sum_ns[LATENCY_WIRE], 0);
	cr_expect_eq(worker_read.sum_ns[LATENCY_WIRE], 0);
}

Test(lb_latency, a_links_set_is_written_no_further_than_its_size)
{
	struct latency *link = latency_create(1, LATENCY_LINK_SIZE + 64);

	memset((char *)link + LATENCY_LINK_SIZE, 0xa5, 64);
	for (uint64_t us = 1; us < UINT64_MAX / 4000; us *= 2) {
		struct latency_sample s = {us, us * 1000, us, us, 1, us, latency_bucket(us)};

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
		worker.bucket[LATENCY_RUN][latency_bucket(us * 1000)]++;
	for (double q = 0.01; q < 1; q += 0.01) {
		double got = latency_quantile_us(worker.bucket[LATENCY_RUN], q);

		cr_expect_float_eq(got / (q * 100000), 1, 0.033, "q %f: %f us", q, got);
	}
	cr_expect_eq(latency_quantile_us(service.bucket[LATENCY_RUN], 0.5), 0);
}

Test(lb_latency, sets_add_up_and_tell_what_came_in_between)
{
	struct latency before;

	reply(1, 10, 10, 10, 1);
	read_both();
	before = service_read;
	reply(2000, 20000, 20000, 20000, 2000);
	read_both();
	latency_since(&service_read, &before);
	for (unsigned int p = 0; p < LATENCY_PARTS; p++)
		cr_expect_eq(latency_count(service_read.bucket[p]), 1, "%s", latency_part_name(p));
	cr_expect_eq(at(&service_read, LATENCY_QUEUE, 2000), 1);
	cr_expect_eq(service_read.sum_ns[LATENCY_TOTAL], 64000);
	latency_merge_service(&service_read, &service);
	cr_expect_eq(latency_count(service_read.bucket[LATENCY_RUN]), 3);
}

Test(lb_latency, a_new_set_is_empty)
{
	struct latency *l = latency_create(3, sizeof(*l));

	cr_assert_not_null(l);
	for (unsigned int i = 0; i < 3; i++)
		cr_expect_eq(latency_count(l[i].bucket[LATENCY_REPLY]), 0);
	free(l);
}
