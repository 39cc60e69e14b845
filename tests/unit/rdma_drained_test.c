/* SPDX-License-Identifier: BSD-3-Clause */
/* Timers after the thread was not scheduled: packets in its receive ring are not taken for lost. */
#include "rdma_fixture.h"

#include "runtime/drained.h"

#define ACK_OK 0x1f

Test(rdma_drained, stands_still_while_rings_are_full_and_follows_behind)
{
	struct drained d = {0};

	drained_poll(&d, 100, true);
	cr_expect_eq(d.at, 100);
	for (unsigned int i = 0; i < DRAINED_BURSTS; i++) {
		drained_poll(&d, 200 + i, false);
		cr_expect_eq(d.at, 100);
	}
	/* All that lay there at 100 is taken by now, but not all that came since. */
	drained_poll(&d, 1000, false);
	cr_expect_eq(d.at, 100);
	for (unsigned int i = 0; i <= DRAINED_BURSTS; i++)
		drained_poll(&d, 1001 + i, false);
	cr_expect_eq(d.at, 1000);
	drained_poll(&d, 5000, true);
	cr_expect_eq(d.at, 5000);
}

Test(rdma_drained, starts_full_and_moves_on)
{
	struct drained d = {0};

	for (unsigned int i = 0; i < 3 * DRAINED_BURSTS; i++)
		drained_poll(&d, 1000 + i, false);
	cr_expect_geq(d.at, 1000);
}

Test(rdma_drained, a_timeout_waits_until_the_ring_was_looked_at)
{
	struct fixture *f = fixture_create(4, 256, 100, true);
	uint64_t heard;

	f->rq.drained = &heard;
	fixture_write(f, 10, REQUESTER_ACK_REQUEST);
	fixture_sent(f);
	heard = f->rq.timer;
	requester_poll(&f->rq, f->rq.timer + 10 * f->rq.timeout);
	cr_expect_eq(f->rq.stats.resent, 0, "its acknowledgement may lie in the ring");
	heard = f->rq.timer + f->rq.timeout;
	requester_poll(&f->rq, f->rq.timer + 10 * f->rq.timeout);
	cr_expect_eq(f->rq.stats.resent, 1, "it did not");
	fixture_destroy(f);
}

/* Retries before the timeout wait, too, and so do those whose timer was started after the ring was
 * read. */
Test(rdma_drained, an_early_retry_waits_as_well)
{
	struct fixture *f = fixture_create(4, 256, 100, true);
	uint64_t heard;

	f->rq.drained = &heard;
	fixture_write(f, 10, REQUESTER_ACK_REQUEST);
	requester_ack(&f->rq, 100, ACK_OK, f->rq.timed_at + 1);
	fixture_write(f, 11, REQUESTER_ACK_REQUEST);
	fixture_sent(f);
	heard = f->rq.timer - 1;
	requester_poll(&f->rq, f->rq.timer + f->rq.timeout / 2);
	cr_expect_eq(f->rq.stats.early, 0);
	heard = f->rq.timer + f->rq.timeout / 2;
	requester_poll(&f->rq, heard);
	cr_expect_eq(f->rq.stats.early, 1);
	fixture_destroy(f);
}
