/* SPDX-License-Identifier: BSD-3-Clause */
/* The rate control step by step, against rates worked out by hand. 1 cycle is 1 ns here. */
#include <criterion/criterion.h>

#include "rdma/dcqcn.h"

#define HZ   1000000000ull
#define LINE 1250000000.0 /* 10 Gbit/s */
#define US   1000ull

static struct dcqcn fresh(void)
{
	struct dcqcn d;

	dcqcn_init(&d, LINE, HZ);
	return d;
}

static void expect_near(double got, double want, const char *what)
{
	cr_expect_float_eq(got, want, want * 1e-9, "%s: %.3f, expected %.3f", what, got, want);
}

static void expect_rates(const struct dcqcn *d, double rate, double target, double alpha,
			 const char *what)
{
	expect_near(d->rate, rate, what);
	expect_near(d->target, target, what);
	expect_near(d->alpha, alpha, what);
}

Test(rdma_dcqcn, does_not_limit_until_somebody_complains)
{
	struct dcqcn d = fresh();

	cr_expect_not(d.limited);
	cr_expect_eq(dcqcn_rate(&d), 0);
	cr_expect(dcqcn_may_send(&d, 0));
	dcqcn_advance(&d, 1000000 * US);
	cr_expect_not(d.limited);
}

Test(rdma_dcqcn, does_nothing_when_switched_off)
{
	struct dcqcn d;

	dcqcn_init(&d, 0, HZ);
	dcqcn_notify(&d, 5);
	cr_expect_not(d.limited);
}

Test(rdma_dcqcn, halves_the_rate_at_first_and_less_when_congestion_was_rare)
{
	struct dcqcn d = fresh();

	dcqcn_notify(&d, 0);
	expect_rates(&d, LINE / 2, LINE, 1, "alpha starts as 1, and stays there");
	cr_expect_eq(dcqcn_rate(&d), (uint64_t)(LINE / 2));
	dcqcn_notify(&d, 50 * US);
	expect_rates(&d, LINE / 4, LINE / 2, 1, "the second before any recovery");
	/* 55 us later: one step back, and alpha is 255/256. */
	dcqcn_notify(&d, 105 * US);
	expect_rates(&d, LINE * 3 / 8 * (1 - 255.0 / 512), LINE * 3 / 8,
		     255.0 / 256 * 255 / 256 + 1.0 / 256, "the third after a step");
}

Test(rdma_dcqcn, takes_notifications_that_come_together_for_one)
{
	struct dcqcn d = fresh();

	dcqcn_notify(&d, 100 * US);
	dcqcn_notify(&d, 100 * US);
	dcqcn_notify(&d, 104 * US - 1);
	expect_near(d.rate, LINE / 2, "one cut");
	dcqcn_notify(&d, 104 * US);
	expect_near(d.rate, LINE / 4, "two cuts");
}

/* Time alone: four steps halve the distance to the target, then the target rises by 40 Mbit/s. */
Test(rdma_dcqcn, recovers_by_time_first_fast_then_additively)
{
	static const double halves[] = {0.75, 0.875, 0.9375, 0.96875};
	struct dcqcn d = fresh();
	double rate, target = LINE / 16;

	for (unsigned int i = 0; i < 5; i++)
		dcqcn_notify(&d, i * 5 * US);
	expect_near(d.rate, LINE / 32, "cut five times");
	expect_near(d.target, target, "cut five times");
	for (unsigned int i = 0; i < 4; i++) {
		dcqcn_advance(&d, (20 + 55 * (i + 1)) * US - 1);
		expect_near(d.rate, target * (i == 0 ? 0.5 : halves[i - 1]), "too early");
		dcqcn_advance(&d, (20 + 55 * (i + 1)) * US);
		expect_near(d.rate, target * halves[i], "fast recovery");
		expect_near(d.target, target, "fast recovery");
	}
	rate = d.rate;
	for (unsigned int i = 4; i < 10; i++) {
		dcqcn_advance(&d, (20 + 55 * (i + 1)) * US);
		target += 5000000;
		rate = (rate + target) / 2;
		expect_near(d.target, target, "additive increase");
		expect_near(d.rate, rate, "additive increase");
	}
}

Test(rdma_dcqcn, recovers_by_bytes_too_and_in_leaps_once_both_have_come_far)
{
	struct dcqcn d = fresh();
	double target = LINE / 16, rate = LINE / 32;

	for (unsigned int i = 0; i < 5; i++)
		dcqcn_notify(&d, i * 5 * US);
	dcqcn_sent(&d, DCQCN_STEP_BYTES - 1, 20 * US);
	expect_near(d.rate, rate, "a byte too few");
	dcqcn_sent(&d, 1, 20 * US);
	for (unsigned int i = 1;; i++) {
		if (i >= DCQCN_FAST_STEPS)
			target += 5000000;
		rate = (rate + target) / 2;
		expect_near(d.rate, rate, "by bytes");
		if (i == 6)
			break;
		dcqcn_sent(&d, DCQCN_STEP_BYTES, 20 * US);
	}
	/* Six steps by bytes; time has to come as far for the leap of 400 Mbit/s. */
	for (unsigned int i = 1; i <= 6; i++) {
		dcqcn_advance(&d, (20 + 55 * i) * US);
		target += i == 6 ? 50000000 : 5000000;
		rate = (rate + target) / 2;
		expect_near(d.target, target, "by time");
		expect_near(d.rate, rate, "by time");
	}
}

Test(rdma_dcqcn, forgets_the_limit_and_what_it_learnt_once_the_line_rate_is_reached)
{
	struct dcqcn d = fresh();
	uint64_t now = 0;

	dcqcn_notify(&d, now);
	for (; d.limited && now < 10000 * US; now += 55 * US)
		dcqcn_advance(&d, now);
	cr_expect_not(d.limited);
	cr_expect_lt(now, 1000 * US, "ten halvings of the distance");
	cr_expect_eq(dcqcn_rate(&d), 0);
	dcqcn_notify(&d, now);
	expect_rates(&d, LINE / 2, LINE, 1, "as for the first time");
}

Test(rdma_dcqcn, never_stops_altogether)
{
	struct dcqcn d = fresh();

	for (unsigned int i = 0; i < 1000; i++)
		dcqcn_notify(&d, i * 5 * US);
	expect_near(d.rate, DCQCN_RATE_MIN, "10 Mbit/s");
}

Test(rdma_dcqcn, alpha_falls_without_notifications)
{
	struct dcqcn d = fresh();

	for (unsigned int i = 0; i < 200; i++)
		dcqcn_notify(&d, i * 5 * US);
	cr_assert(d.limited);
	dcqcn_advance(&d, (995 + 55 * 3) * US);
	expect_near(d.alpha, 255.0 / 256 * 255 / 256 * 255 / 256, "three periods");
}

/* 625 MB/s: 1000 bytes take 1.6 us. */
Test(rdma_dcqcn, spaces_packets_at_its_rate)
{
	struct dcqcn d = fresh();
	uint64_t sent = 0;

	dcqcn_notify(&d, 1000 * US);
	/* Unused rate of the past may be used now, for a bounded time only. */
	for (; dcqcn_may_send(&d, 1001 * US); sent += 1000)
		dcqcn_sent(&d, 1000, 1001 * US);
	cr_expect_leq(sent * 16 / 10, DCQCN_BURST_NS + 1 * US + 1600);
	cr_expect_eq(d.next, 1000 * US + sent / 1000 * 1600);
	cr_expect_not(dcqcn_may_send(&d, d.next - 1));
	cr_expect(dcqcn_may_send(&d, d.next));
}

Test(rdma_dcqcn, sends_what_the_rate_allows_over_a_while)
{
	struct dcqcn d = fresh();
	uint64_t sent = 0;

	dcqcn_notify(&d, 0);
	d.timer_due = UINT64_MAX / 4; /* no recovery by time */
	for (uint64_t now = 0; now < 1000 * US; now += 7 * US)
		while (dcqcn_may_send(&d, now)) {
			dcqcn_sent(&d, 1000, now);
			sent += 1000;
		}
	cr_expect_float_eq((double)sent, LINE / 2 / 1000, LINE / 2 / 1000 * 0.02, "%lu bytes",
			   (unsigned long)sent);
}
