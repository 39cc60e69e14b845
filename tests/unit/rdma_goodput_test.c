/* SPDX-License-Identifier: BSD-3-Clause */
/* Goodput of a 100 Gbit/s link that loses packets both ways, in simulated time. */
#include "rdma_fixture.h"
#include "stream.h"

#define LENGTH   4096
#define MESSAGES 100000

static double goodput(double drop, struct stream_result *r)
{
	struct stream_params p = {
		.there = {.bytes_per_s = 12500000000, .delay_ns = 2000, .drop = drop, .seed = 1},
		.home = {.bytes_per_s = 12500000000, .delay_ns = 2000, .drop = drop, .seed = 2},
		.messages = MESSAGES,
		.length = LENGTH,
		.ack_every = 32,
		.ack_timeout = 14,
		.poll_ns = 1000000,
	};

	fixture_eal();
	p.packets = fixture_pool("packets", 2047, LENGTH + 64);
	p.small = fixture_pool("small", 63, 64);
	cr_assert_eq(stream_run(&p, r), 0);
	cr_expect_eq(rte_mempool_in_use_count(p.packets), 0);
	rte_mempool_free(p.packets);
	rte_mempool_free(p.small);
	return stream_goodput(&p, r);
}

Test(rdma_goodput, fills_a_link_that_loses_nothing)
{
	struct stream_result r;

	cr_expect_gt(goodput(0, &r), 0.97 * 100e9);
	cr_expect_eq(r.resent, 0);
}

Test(rdma_goodput, keeps_four_fifths_when_one_packet_in_a_thousand_is_lost)
{
	struct stream_result r;
	double all = goodput(0, &r), some = goodput(0.001, &r);

	cr_expect_gt(some, 0.8 * all, "%.3f", some / all);
	cr_expect_gt(r.naks, 20);
}

/* NAKs and the packets that they ask for are lost, too; still no packet waits 67 ms for the
 * timeout. */
Test(rdma_goodput, waits_for_no_timeout_when_one_packet_in_a_hundred_is_lost)
{
	struct stream_result r;
	double all = goodput(0, &r), some = goodput(0.01, &r);

	cr_expect_gt(some, 0.2 * all, "%.3f", some / all);
	cr_expect_eq(r.timeouts, 0);
}
