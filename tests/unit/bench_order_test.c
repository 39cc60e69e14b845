/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/bench/order.h"

#include <criterion/criterion.h>

#define FLOWS 3

static struct ledger ledger;
static struct order order;
static struct flight ended;

static void init(void)
{
	cr_assert_eq(ledger_init(&ledger, 0xabcd1234), 0);
	cr_assert_eq(order_init(&order, FLOWS), 0);
}

static void fini(void)
{
	ledger_fini(&ledger);
	order_fini(&order);
}

TestSuite(order, .init = init, .fini = fini);

static uint64_t send_on(uint32_t flow)
{
	uint64_t id = ledger_next_id(&ledger);

	cr_assert_eq(ledger_sent(&ledger, &(struct flight){.sent_ns = 1, .flow = flow}), 0);
	cr_assert_eq(order_sent(&order, &ledger, flow, id), 0);
	return id;
}

static void end(uint64_t id)
{
	cr_assert_eq(ledger_settle(&ledger, id, NOTICE_NONE, true, &ended), LEDGER_ANSWERED);
}

Test(order, the_oldest_of_a_flow_is_next)
{
	uint64_t first = send_on(0), other = send_on(1), second = send_on(0), id;

	cr_assert(order_oldest(&order, &ledger, 0, &id));
	cr_assert_eq(id, first);
	end(first);
	cr_assert(order_oldest(&order, &ledger, 0, &id));
	cr_assert_eq(id, second);
	cr_assert(order_oldest(&order, &ledger, 1, &id));
	cr_assert_eq(id, other);
	cr_assert_not(order_oldest(&order, &ledger, 2, &id));
}

Test(order, what_ended_otherwise_is_passed_over)
{
	uint64_t first = send_on(0), second = send_on(0), third = send_on(0), id;

	end(second);
	end(first);
	cr_assert(order_oldest(&order, &ledger, 0, &id));
	cr_assert_eq(id, third);
	end(third);
	cr_assert_not(order_oldest(&order, &ledger, 0, &id));
}

Test(order, many_outstanding_keep_their_order)
{
	uint64_t sent[100], id;

	for (int i = 0; i < 100; i++)
		sent[i] = send_on(2);
	for (int i = 0; i < 100; i++) {
		cr_assert(order_oldest(&order, &ledger, 2, &id));
		cr_assert_eq(id, sent[i]);
		end(id);
	}
}

Test(order, room_is_for_what_is_outstanding_only)
{
	for (int i = 0; i < 100000; i++)
		end(send_on(1));
	cr_assert_leq(order.flow[1].room, 8);
}

Test(order, each_lost_request_has_one_late_reply)
{
	send_on(0);
	cr_assert(ledger_expire(&ledger, 2, &ended));
	order_lost(&order, 0);
	cr_assert(order_is_late(&order, 0));
	cr_assert_not(order_is_late(&order, 0));
}
