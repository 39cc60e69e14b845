/* SPDX-License-Identifier: BSD-3-Clause */
/* The published models: sums worked out by hand, each written out beside the expected value. */
#include "cli/size/calls.h"
#include "cli/size/reads.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

/* --- reads ------------------------------------------------------------------------------------ */

Test(size_reads, the_published_constants_give_the_published_figure)
{
	/* DxPU's table 4: 140 tags, reads of 128 bytes, 6.8 us: 2.64 GB/s */
	struct size_reads r = {.tags = 140, .read_bytes = 128, .rtt_us = 6.8};

	cr_assert_float_eq(size_reads_published(&r) / 1e9, 2.64, 0.005);
	cr_assert_float_eq(size_reads_rate(&r), size_reads_published(&r), 1e-3);
	cr_assert_eq(size_reads_full_rtt_us(&r), 0, "no link is known");
}

Test(size_reads, a_link_carries_no_more_than_it_can)
{
	/* 256 * 512 bytes in 1 us are 131 GB/s; 128 Gbit/s are 16 */
	struct size_reads r = {.tags = 256, .read_bytes = 512, .rtt_us = 1, .link_gbps = 128};

	cr_assert_float_eq(size_reads_rate(&r), 16e9, 1);
	cr_assert_float_eq(size_reads_published(&r), 131.072e9, 1);
	/* 131072 bytes at 16 GB/s are 8.192 us; 16000 bytes in 1 us are 31.25 reads */
	cr_assert_float_eq(size_reads_full_rtt_us(&r), 8.192, 1e-9);
	cr_assert_float_eq(size_reads_full_tags(&r), 32, 1e-9);
}

/* --- calls ------------------------------------------------------------------------------------ */

static struct trace_call calls[16];
static struct trace trace = {.call = calls};
/* 8 Gbit/s: a byte takes 1 ns */
static struct calls_network network = {.rtt_us = 10, .gbps = 8, .send_us = 1, .receive_us = 2};

static void add(struct trace_call call)
{
	calls[trace.n++] = call;
}

static struct calls_cost cost_of(void)
{
	struct calls_cost cost;

	cr_assert_eq(size_calls_cost(&trace, &network, &cost), 0);
	return cost;
}

/* No share of nothing: a cost of 0 would be kept with any network. */
Test(size_calls, calls_that_take_no_time_cost_endlessly)
{
	double rtt_us;

	add((struct trace_call){TRACE_SYNC, .sent = 8});
	cr_expect(isinf(cost_of().cost));
	cr_expect_eq(size_calls_rtt_us(&trace, &network, 0.05, 1e6, &rtt_us), 0);
	cr_expect_eq(rtt_us, 0);
}

Test(size_calls, a_sync_call_waits_for_its_round_trip)
{
	struct calls_cost cost;

	add((struct trace_call){TRACE_SYNC, .gap_us = 3, .call_us = 20, .sent = 4000,
				.received = 500});
	cost = cost_of();
	cr_assert_float_eq(cost.local_us, 23, 1e-9);
	/* 3 + send 1 + 4 + 5 + receive 2 + 20 + send 1 + 5 + 0.5 + receive 2 */
	cr_assert_float_eq(cost.remote_us, 43.5, 1e-9);
	cr_assert_float_eq(cost.cost, 43.5 / 23 - 1, 1e-9);
	cr_assert_eq(cost.calls[TRACE_SYNC], 1);
	cr_assert_float_eq(cost.sent, 4000, 1e-9);
}

Test(size_calls, an_async_call_takes_the_program_its_sending_only)
{
	struct calls_cost cost;

	add((struct trace_call){TRACE_ASYNC, .call_us = 20});
	add((struct trace_call){TRACE_LOCAL, .gap_us = 2, .call_us = 7});
	add((struct trace_call){TRACE_ASYNC, .gap_us = 4, .call_us = 1});
	cost = cost_of();
	/* 20 + 2 + 7 + 4 + 1 */
	cr_assert_float_eq(cost.local_us, 34, 1e-9);
	/* 1 + 2 (the local call is a shadow) + 4 + 1: cheaper than beside the GPU */
	cr_assert_float_eq(cost.remote_us, 8, 1e-9);
	cr_assert_lt(cost.cost, 0);
}

Test(size_calls, who_waits_for_the_gpu_waits_for_all_its_work)
{
	struct calls_cost cost;

	add((struct trace_call){TRACE_ASYNC, .call_us = 2, .gpu_us = 50});
	add((struct trace_call){TRACE_ASYNC, .call_us = 2, .gpu_us = 50});
	add((struct trace_call){TRACE_WAIT, .call_us = 1, .gpu_us = 5});
	cost = cost_of();
	/* 2 + 50 + 50 + 5 */
	cr_assert_float_eq(cost.local_us, 107, 1e-9);
	/* The first begins at 1 + 5 + 2 and 2: 10 + 105, and 1 + 5 + 2 back. */
	cr_assert_float_eq(cost.remote_us, 123, 1e-9);
}

Test(size_calls, work_that_nobody_waits_for_counts_until_it_is_done)
{
	add((struct trace_call){TRACE_ASYNC, .call_us = 2, .gpu_us = 50});
	cr_assert_float_eq(cost_of().local_us, 52, 1e-9);
	cr_assert_float_eq(cost_of().remote_us, 60, 1e-9); /* 1 + 5 + 2 + 2 + 50 */
}

Test(size_calls, a_busy_server_delays_only_with_queues)
{
	/* Ten calls of 20 us, sent every 1 us. */
	for (int i = 0; i < 10; i++)
		add((struct trace_call){TRACE_ASYNC, .call_us = 20});
	add((struct trace_call){TRACE_SYNC, .call_us = 1});
	/* 10 sent, then 1 + 5 + 2 + 1 + 1 + 5 + 2 */
	cr_assert_float_eq(cost_of().remote_us, 27, 1e-9);
	network.queues = true;
	/* The server begins at 6: ten of 22, then 3 and 8 back. */
	cr_assert_float_eq(cost_of().remote_us, 6 + 220 + 3 + 8, 1e-9);
}

Test(size_calls, a_busy_link_delays_only_with_queues)
{
	network.send_us = network.receive_us = 0;
	/* Three times 40,000 bytes: 40 us each on the link. */
	for (int i = 0; i < 3; i++)
		add((struct trace_call){TRACE_ASYNC, .sent = 40000});
	add((struct trace_call){TRACE_SYNC, .call_us = 0});
	cr_assert_float_eq(cost_of().remote_us, 10, 1e-9);
	network.queues = true;
	cr_assert_float_eq(cost_of().remote_us, 130, 1e-9);
}

Test(size_calls, few_outstanding_calls_wait_for_the_first_of_them)
{
	network = (struct calls_network){
		.rtt_us = 10, .gbps = 8, .send_us = 1, .queues = true, .outstanding = 2};
	for (int i = 0; i < 3; i++)
		add((struct trace_call){TRACE_ASYNC});
	add((struct trace_call){TRACE_SYNC});
	/* Sent until 1 and 2; begun at 6 and 7, known at 11 and 12; so the third leaves at 12, and
	 * the fourth, behind the second, at 13: 5 there, and 1 and 5 back. */
	cr_assert_float_eq(cost_of().remote_us, 24, 1e-9);
	network.outstanding = 0;
	cr_assert_float_eq(cost_of().remote_us, 15, 1e-9);
}

Test(size_calls, the_round_trip_that_keeps_a_cost_is_found)
{
	double rtt_us;

	network.send_us = network.receive_us = 0;
	/* A cost of 5 % of 100 us is a round trip of 5. */
	add((struct trace_call){TRACE_SYNC, .call_us = 100});
	cr_assert_eq(size_calls_rtt_us(&trace, &network, 0.05, 1e6, &rtt_us), 0);
	cr_assert_float_eq(rtt_us, 5, 0.02);
	calls[0].sent = 10000; /* 10 us */
	cr_assert_eq(size_calls_rtt_us(&trace, &network, 0.05, 1e6, &rtt_us), 0);
	cr_assert_eq(rtt_us, 0, "the link alone is too slow");
}
