/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums worked out by hand, each written out beside the expected value. */
#include "cli/size/size.h"

#include <criterion/criterion.h>

static struct size_question q;

static void init(void)
{
	q = (struct size_question){.rate = 1000,
				   .request_bytes = 1000,
				   .reply_bytes = 100,
				   .batch_us = 200,
				   .each_us = 50,
				   .max_batch = 16,
				   .slots = 256,
				   .lcores = 2,
				   .rtt_us = 10,
				   .client_gbps = 100,
				   .fabric_gbps = 100,
				   .worker_gbps = 100,
				   .mtu = 1500,
				   .epsilon = 0.05,
				   .seed = 1,
				   .simulated = 100000};
}

TestSuite(size_formulas, .init = init);

Test(size_formulas, a_full_batch_makes_the_capacity)
{
	cr_assert_float_eq(size_run_us(&q, 16), 1000, 1e-9); /* 200 + 16 * 50 */
	cr_assert_float_eq(size_capacity(&q), 16000, 1e-6);  /* 16 / 1 ms */
	q.rate = 40000;
	cr_assert_eq(size_workers_least(&q), 3); /* 2.5 */
	cr_assert_float_eq(size_load(&q, 4), 0.625, 1e-9);
	q.rate = 32000;
	cr_assert_eq(size_workers_least(&q), 3, "two would be busy all the time");
}

Test(size_formulas, frames_on_wires_have_headers_and_gaps)
{
	/* 1000 + UDP 8, in one frame: IP 20, Ethernet with preamble, checksum and gap 38 */
	cr_assert_float_eq(size_client_bytes(&q, 1000), 1066, 1e-9);
	/* 3000 + 8 in three frames of at most 1480 */
	cr_assert_float_eq(size_client_bytes(&q, 3000), 3008 + 3 * 58, 1e-9);
	cr_assert_float_eq(size_client_bytes(&q, 0), 66, 1e-9);
	/* Payload: 1000 + RETH 16 + frame 38 + IP 20 + UDP 8 + BTH 12 + ICRC 4 = 1098; its
	 * descriptor: 64 + 98 = 162 */
	cr_assert_float_eq(size_fabric_request_bytes(&q), 1260, 1e-9);
	/* 100 + header 40 + RETH 16 + immediate 4 + 82 = 242; an ACK: 4 + 82 = 86 */
	cr_assert_float_eq(size_fabric_reply_bytes(&q), 328, 1e-9);
	/* RoCE packets of an MTU of 1500 carry 1024: two of 82 each */
	q.request_bytes = 1025;
	cr_assert_float_eq(size_fabric_request_bytes(&q), 1025 + 16 + 2 * 82 + 162, 1e-9);
}

Test(size_formulas, links_are_filled_to_four_fifths)
{
	/* 1e6 * 10000 bytes * 8 = 80 Gbit/s: exactly four fifths of 100 */
	q.rate = 1e6;
	cr_assert_eq(size_links(&q, 10000, 100), 1);
	cr_assert_eq(size_links(&q, 10001, 100), 2);
	cr_assert_eq(size_links(&q, 10000, 25), 4);
}

Test(size_formulas, throughput_is_what_is_outstanding_by_the_round_trip)
{
	/* 100 Gbit/s for 10 us are 125,000 bytes */
	cr_assert_float_eq(size_window_bytes(100, 10), 125000, 1e-6);
	cr_assert_float_eq(size_window_rate(125000, 10), 12.5e9, 1);
	/* 2 * 256 slots, held for 1 ms each */
	cr_assert_float_eq(size_slot_rate(&q, 1000), 512000, 1e-6);
}

Test(size_formulas, the_cost_of_being_remote_is_round_trip_and_wire_by_the_model_s_time)
{
	/* Clients: 1066 + 166, fabric: 1260 + 328; 2820 bytes at 100 Gbit/s are 0.2256 us */
	cr_assert_float_eq(size_cost(&q), 10.2256 / 250, 1e-9);
	/* 5 % of 250 us is 12.5 us, less the wire */
	cr_assert_float_eq(size_cost_rtt_us(&q), 12.5 - 0.2256, 1e-9);
	q.client_gbps = 0.1;
	cr_assert_eq(size_cost_rtt_us(&q), 0, "the wire alone takes 99 us");
}
