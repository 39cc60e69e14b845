/* SPDX-License-Identifier: BSD-3-Clause */
/* The simulation against queues whose answers are known in closed form. */
#include "cli/size/events.h"
#include "cli/size/size.h"

#include <criterion/criterion.h>
#include <math.h>

static struct size_question q;
static struct size_result r;

/* One worker, one request at a time, 1 ms each, and a network that takes no time to speak of. */
static void init(void)
{
	q = (struct size_question){.rate = 500,
				   .each_us = 1000,
				   .max_batch = 1,
				   .slots = 32768,
				   .lcores = 1,
				   .client_gbps = 10000,
				   .fabric_gbps = 10000,
				   .worker_gbps = 10000,
				   .mtu = 1500,
				   .seed = 1,
				   .simulated = 1000000};
}

static void fini(void)
{
	size_result_fini(&r);
}

TestSuite(size_simulate, .init = init, .fini = fini);

static void simulate(uint64_t workers)
{
	size_result_fini(&r);
	cr_assert_eq(size_simulate(&q, workers, &r), 0);
}

static double latency_us(double of)
{
	return (double)histogram_value_ns(&r.latency, of) / 1e3;
}

#define ABOUT(value, expected, share)                                                              \
	cr_assert_float_eq(value, expected, (expected) * (share), "%g, expected %g", value,        \
			   expected)

/* Pollaczek-Khinchine: fixed times wait half of what exponential ones do. */
Test(size_simulate, md1_waits_as_pollaczek_and_khinchine_say)
{
	static const double load[] = {0.3, 0.5, 0.7, 0.85};

	for (int i = 0; i < 4; i++) {
		q.rate = load[i] * 1000;
		simulate(1);
		ABOUT(r.mean_us[SIZE_TERM_WORKER], 1000 * load[i] / (2 * (1 - load[i])), 0.03);
		ABOUT(r.busy, load[i], 0.01);
		ABOUT(r.mean_us[SIZE_TERM_RUN], 1000.0, 0.001);
	}
}

/* Erlang's distribution of the waiting time in M/D/1, for a rate and time of service of 1 / load.
 */
static double md1_waits_less(double load, double services)
{
	double sum = 0;

	for (int k = 0; k <= (int)services; k++) {
		double x = load * ((double)k - services);

		sum += pow(x, k) / tgamma(k + 1) * exp(-x);
	}
	return (1 - load) * sum;
}

Test(size_simulate, md1_has_erlang_s_percentiles)
{
	q.rate = 600;
	simulate(1);
	cr_assert_float_eq(md1_waits_less(0.6, latency_us(0.5) / 1000 - 1), 0.5, 0.01);
	cr_assert_float_eq(md1_waits_less(0.6, latency_us(0.9) / 1000 - 1), 0.9, 0.005);
	cr_assert_float_eq(md1_waits_less(0.6, latency_us(0.99) / 1000 - 1), 0.99, 0.0015);
}

/* Its time in the system is exponential: mean 1 / (mu - lambda), p99 ln 100 of that. */
Test(size_simulate, mm1_has_an_exponential_time_in_the_system)
{
	static const double load[] = {0.3, 0.5, 0.7};

	q.exponential = true;
	for (int i = 0; i < 3; i++) {
		double mean = 1000 / (1 - load[i]);

		q.rate = load[i] * 1000;
		simulate(1);
		ABOUT(histogram_mean_ns(&r.latency) / 1e3, mean, 0.03);
		ABOUT(latency_us(0.5), mean * log(2), 0.03);
		ABOUT(latency_us(0.99), mean * log(100), 0.05);
	}
}

/* Thinning a Poisson process leaves one: two at random are two queues of half the rate. */
Test(size_simulate, a_random_choice_of_two_is_two_queues)
{
	q.exponential = true;
	q.rate = 1000;
	q.policy = SIZE_RANDOM;
	simulate(2);
	ABOUT(histogram_mean_ns(&r.latency) / 1e3, 2000.0, 0.03);
}

Test(size_simulate, choosing_the_least_outstanding_waits_less_than_turns_and_these_less_than_chance)
{
	double p99[SIZE_POLICIES];

	q.exponential = true;
	q.rate = 2800;
	for (int p = 0; p < SIZE_POLICIES; p++) {
		q.policy = (enum size_policy)p;
		simulate(4);
		p99[p] = latency_us(0.99);
	}
	cr_assert_lt(p99[SIZE_LEAST_OUTSTANDING], p99[SIZE_POWER_OF_TWO]);
	cr_assert_lt(p99[SIZE_POWER_OF_TWO], p99[SIZE_ROUND_ROBIN]);
	cr_assert_lt(p99[SIZE_ROUND_ROBIN], p99[SIZE_RANDOM]);
}

/* At so low a rate each request is alone: it waits for the timeout, which fills nothing. */
Test(size_simulate, a_lonely_request_waits_for_the_batch_timeout)
{
	q.rate = 0.01;
	q.max_batch = 8;
	q.batch_timeout_us = 500;
	q.rtt_us = 40;
	q.simulated = 1000;
	simulate(1);
	ABOUT(latency_us(0.99), 1540.0, 0.002);
	ABOUT(r.mean_batch, 1.0, 0.01);
}

/* A batch of any size costs the same: more and more requests go in at once, and none is slower. */
Test(size_simulate, batches_grow_with_the_load_and_carry_it)
{
	q.batch_us = 1000;
	q.each_us = 0;
	q.max_batch = 32;
	q.rate = 8000;
	simulate(1);
	cr_assert_not(r.unstable);
	/* Always busy, so 8 arrive in the millisecond of the batch before. */
	ABOUT(r.mean_batch, 8.0, 0.02);
	/* One waits for the rest of a batch, evenly spread, and then its own. */
	ABOUT(latency_us(0.5), 1500.0, 0.01);
	ABOUT(latency_us(0.99), 1990.0, 0.01);
}

Test(size_simulate, a_rate_above_capacity_is_unstable)
{
	q.rate = 1100;
	q.simulated = 50000;
	simulate(1);
	cr_assert(r.unstable);
}

Test(size_simulate, credits_bound_what_a_worker_owes_and_the_rest_waits_before_it)
{
	q.rate = 1600;
	q.slots = 2;
	simulate(2);
	cr_assert_eq(r.most_outstanding, 2);
	cr_assert_gt(r.mean_us[SIZE_TERM_SLOT], 100);
	/* The place where a request waits does not change how long: no worker is idle meanwhile. */
	q.slots = 32768;
	double bounded = histogram_mean_ns(&r.latency);

	simulate(2);
	cr_assert_leq(bounded, histogram_mean_ns(&r.latency) * 1.02);
	cr_assert_float_eq(r.mean_us[SIZE_TERM_SLOT], 0, 1e-6);
}

Test(size_simulate, a_narrow_link_is_where_requests_wait)
{
	q.rate = 90000;
	q.each_us = 1;
	q.rtt_us = 10;
	q.request_bytes = 1000;
	q.client_gbps = 0.8; /* 1066 bytes take 10.66 us of the 11.1 between two */
	simulate(4);
	/* M/D/1 at a load of 0.96 */
	ABOUT(r.mean_us[SIZE_TERM_LINKS], 10.66 * (1 + 0.9594 / (2 * (1 - 0.9594))) + 0.66, 0.1);
}

Test(size_simulate, the_terms_add_up_to_the_latency)
{
	double sum = 0;

	q.rtt_us = 123;
	q.rate = 1500;
	q.slots = 4;
	q.client_gbps = q.fabric_gbps = 0.1;
	q.request_bytes = 2000;
	simulate(2);
	for (int t = 0; t < SIZE_TERMS; t++)
		sum += r.mean_us[t];
	ABOUT(histogram_mean_ns(&r.latency) / 1e3, sum, 0.001);
}

/* Also where all requests take as long, so that all of them are the tail. */
Test(size_simulate, the_tail_s_terms_add_up_to_the_tail)
{
	static const double rates[] = {0.001, 1, 10, 500, 900};

	q.rtt_us = 20;
	q.simulated = 200000;
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		double sum = 0;

		q.rate = rates[i];
		simulate(1);
		for (int t = 0; t < SIZE_TERMS; t++)
			sum += r.tail_us[t];
		cr_expect(sum >= latency_us(0.985) * 0.999 && sum <= latency_us(0.995) * 1.001,
			  "rate %g: %g us in [%g, %g]", rates[i], sum, latency_us(0.985),
			  latency_us(0.995));
		cr_expect_float_eq(r.tail_us[SIZE_TERM_RUN], 1000, 0.1, "rate %g: a run of %g us",
				   rates[i], r.tail_us[SIZE_TERM_RUN]);
	}
}

Test(size_simulate, the_answer_is_the_fewest_workers_that_keep_the_limit)
{
	struct size_answer a;

	q.rate = 6300;
	q.p99_us = 4000;
	q.simulated = 100000;
	cr_assert_eq(size_answer(&q, &a), 0);
	cr_assert(a.found);
	cr_assert_leq(a.p99_us, 4000);
	cr_assert_geq(a.workers, 7);
	simulate(a.workers - 1);
	cr_assert(r.unstable || latency_us(0.99) > 4000);
	size_answer_fini(&a);
}

/* Two of two is all of them. */
Test(size_simulate, the_lesser_of_two_workers_is_the_least_outstanding_of_two)
{
	double least;

	q.exponential = true;
	q.rate = 1500;
	simulate(2);
	least = histogram_mean_ns(&r.latency);
	q.policy = SIZE_POWER_OF_TWO;
	simulate(2);
	ABOUT(histogram_mean_ns(&r.latency), least, 0.03);
}

Test(size_simulate, no_number_of_workers_is_faster_than_the_model)
{
	struct size_answer a;

	q.p99_us = 999;
	q.simulated = 10000;
	cr_assert_eq(size_answer(&q, &a), 0);
	cr_assert_not(a.found);
	size_answer_fini(&a);
}

Test(size_events, come_in_the_order_of_time_then_of_adding)
{
	struct events events = {0};
	struct event event, last = {.at_us = -1};
	uint32_t x = 1;
	int n = 0;

	for (uint32_t i = 0; i < 5000; i++) {
		x = x * 1664525 + 1013904223;
		cr_assert_eq(events_add(&events, x >> 24, 0, i), 0);
	}
	while (events_next(&events, &event)) {
		cr_assert(event.at_us > last.at_us ||
			  (event.at_us == last.at_us && event.order > last.order));
		last = event;
		n++;
	}
	cr_assert_eq(n, 5000);
	events_fini(&events);
}
