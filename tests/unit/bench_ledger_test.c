/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/bench/ledger.h"

#include <criterion/criterion.h>

#define TAG 0xabcd1234u

static struct ledger ledger;
static struct flight ended;

static void init(void)
{
	cr_assert_eq(ledger_init(&ledger, TAG), 0);
}

static void fini(void)
{
	ledger_fini(&ledger);
}

TestSuite(ledger, .init = init, .fini = fini);

static uint64_t send_at(uint64_t ns, uint32_t flow)
{
	uint64_t id = ledger_next_id(&ledger);

	cr_assert_eq(
		ledger_sent(&ledger, &(struct flight){.due_ns = ns, .sent_ns = ns, .flow = flow}),
		0);
	return id;
}

static enum ledger_verdict answer(uint64_t id)
{
	return ledger_settle(&ledger, id, NOTICE_NONE, true, &ended);
}

Test(ledger, an_answer_ends_its_request_and_a_second_one_is_a_duplicate)
{
	uint64_t first = send_at(10, 1), second = send_at(20, 2);

	cr_assert_eq(answer(second), LEDGER_ANSWERED);
	cr_assert_eq(ended.flow, 2);
	cr_assert_eq(ended.due_ns, 20);
	cr_assert_eq(answer(second), LEDGER_DUPLICATE);
	cr_assert_eq(ledger.outstanding, 1);
	cr_assert_eq(answer(first), LEDGER_ANSWERED);
	cr_assert_eq(ledger.outstanding, 0);
	cr_assert_eq(ledger.counts.answered, 2);
	cr_assert_eq(ledger.counts.duplicates, 1);
}

Test(ledger, what_is_given_up_is_lost_and_its_answer_late)
{
	uint64_t first = send_at(10, 1), second = send_at(20, 2);

	cr_assert(ledger_expire(&ledger, 15, &ended));
	cr_assert_eq(ended.flow, 1);
	cr_assert_not(ledger_expire(&ledger, 15, &ended));
	cr_assert_eq(answer(first), LEDGER_LATE);
	cr_assert_eq(answer(second), LEDGER_ANSWERED);
	cr_assert_eq(ledger.counts.lost, 1);
	cr_assert_eq(ledger.counts.late, 1);
}

Test(ledger, expiry_passes_over_what_is_settled)
{
	uint64_t id[3] = {send_at(1, 0), send_at(2, 1), send_at(3, 2)};

	cr_assert_eq(answer(id[1]), LEDGER_ANSWERED);
	cr_assert(ledger_expire(&ledger, 100, &ended));
	cr_assert_eq(ended.flow, 0);
	cr_assert(ledger_expire(&ledger, 100, &ended));
	cr_assert_eq(ended.flow, 2);
	cr_assert_not(ledger_expire(&ledger, 100, &ended));
}

Test(ledger, a_notice_refuses_and_is_counted_by_its_code)
{
	uint64_t id = send_at(1, 0);

	cr_assert_eq(ledger_settle(&ledger, id, NOTICE_BUSY, true, &ended), LEDGER_REFUSED);
	cr_assert_eq(answer(id), LEDGER_DUPLICATE);
	cr_assert_eq(ledger.counts.notices[NOTICE_BUSY], 1);
	cr_assert_eq(ledger.counts.refused, 1);
}

Test(ledger, wrong_bytes_end_a_request_as_wrong)
{
	uint64_t id = send_at(1, 0);

	cr_assert_eq(ledger_settle(&ledger, id, NOTICE_NONE, false, &ended), LEDGER_WRONG);
	cr_assert_eq(ledger.counts.wrong, 1);
	cr_assert_eq(ledger.outstanding, 0);
}

Test(ledger, ids_of_others_and_of_the_future_are_strangers)
{
	uint64_t id = send_at(1, 0);

	cr_assert_eq(answer(id + 1), LEDGER_STRANGER);
	cr_assert_eq(answer(id ^ 1ull << 32), LEDGER_STRANGER);
	cr_assert_eq(ledger_find(&ledger, id + 1), NULL);
	cr_assert_eq(ledger.counts.strangers, 2);
	cr_assert_eq(ledger.outstanding, 1);
}

/* Far more requests than either table first has room for; one stays outstanding throughout. */
Test(ledger, a_duplicate_is_known_however_much_later_it_comes)
{
	uint64_t first = send_at(0, 77), id = 0;

	for (uint64_t i = 1; i < 600000; i++) {
		id = send_at(i, 0);
		if (i % 3 != 0)
			cr_assert_eq(answer(id), LEDGER_ANSWERED);
	}
	cr_assert_eq(answer(first + 1), LEDGER_DUPLICATE);
	cr_assert_eq(answer(first + 3), LEDGER_ANSWERED);
	cr_assert_eq(ended.due_ns, 3);
	cr_assert_eq(ledger_find(&ledger, first)->flow, 77);
	cr_assert_eq(answer(first), LEDGER_ANSWERED);
	cr_assert_eq(ledger.counts.sent, 600000);
	cr_assert_eq(ledger.outstanding, 600000 / 3 - 2);
}
