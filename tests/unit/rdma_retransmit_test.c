/* SPDX-License-Identifier: BSD-3-Clause */
/* The requester after losses and refusals: go-back-N, timers, and impossible
 * acknowledgements. */
#include "rdma_fixture.h"

#define ACK_OK 0x1f

/* Each single-packet message is different, so that a resent packet cannot be taken for another. */
static void write_some(struct fixture *f, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		fixture_write(f, 1 + f->rq.next_psn % 200, REQUESTER_ACK_REQUEST);
}

static struct fixture *with_packets_sent(uint32_t psn, unsigned int n)
{
	struct fixture *f = fixture_create(4, 256, psn, true);

	write_some(f, n);
	fixture_sent(f);
	return f;
}

static enum requester_verdict ack(struct fixture *f, uint32_t psn, uint8_t syndrome)
{
	return requester_ack(&f->rq, psn, syndrome, f->rq.timer + 1);
}

Test(rdma_retransmit, retires_everything_up_to_an_ack)
{
	struct fixture *f = with_packets_sent(100, 10);

	cr_expect_eq(fixture_in_use(f), 10);
	cr_expect_eq(ack(f, 106, ACK_OK), REQUESTER_PROGRESS);
	cr_expect_eq(fixture_in_use(f), 3);
	cr_expect_eq(requester_unacked(&f->rq), 3);
	cr_expect_eq(ack(f, 109, ACK_OK), REQUESTER_PROGRESS);
	cr_expect_eq(fixture_in_use(f), 0);
	cr_expect_eq(f->tx.n, 0);
	cr_expect_eq(f->rq.stats.resent, 0);
	fixture_destroy(f);
}

Test(rdma_retransmit, retires_across_the_wrap_of_psns)
{
	struct fixture *f = with_packets_sent(0xfffffe, 5);

	cr_expect_eq(ack(f, 0, ACK_OK), REQUESTER_PROGRESS);
	cr_expect_eq(requester_unacked(&f->rq), 2);
	cr_expect_eq(ack(f, 0xffffff, ACK_OK), REQUESTER_OLD);
	cr_expect_eq(ack(f, 2, ACK_OK), REQUESTER_PROGRESS);
	cr_expect_eq(requester_unacked(&f->rq), 0);
	fixture_destroy(f);
}

struct row {
	const char *what;
	uint32_t psn;
	uint8_t syndrome;
	enum requester_verdict verdict;
};

/* PSNs 100 to 109 were sent, those below 105 are acknowledged. */
static const struct row rows[] = {
	{"an ACK seen before", 104, ACK_OK, REQUESTER_OLD},
	{"an ACK from long ago", 3, ACK_OK, REQUESTER_OLD},
	{"what a fresh responder answers to a duplicate", 0xffffff, ACK_OK, REQUESTER_OLD},
	{"an ACK of what was never sent", 110, ACK_OK, REQUESTER_BEYOND},
	{"an ACK far beyond", 0x700000, ACK_OK, REQUESTER_BEYOND},
	{"a sequence NAK seen before", 104, ROCE_NAK_SEQUENCE, REQUESTER_OLD},
	{"a sequence NAK beyond", 110, ROCE_NAK_SEQUENCE, REQUESTER_BEYOND},
	{"an old access NAK", 104, ROCE_NAK_REMOTE_ACCESS, REQUESTER_OLD},
	{"an access NAK beyond", 110, ROCE_NAK_REMOTE_ACCESS, REQUESTER_BEYOND},
	{"an old RNR NAK", 104, ROCE_AETH_RNR | 12, REQUESTER_OLD},
	{"an RNR NAK beyond", 110, ROCE_AETH_RNR | 12, REQUESTER_BEYOND},
};

Test(rdma_retransmit, ignores_acknowledgements_that_cannot_be)
{
	struct fixture *f = with_packets_sent(100, 10);

	ack(f, 104, ACK_OK);
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cr_expect_eq(ack(f, rows[i].psn, rows[i].syndrome), rows[i].verdict, "%s",
			     rows[i].what);
		cr_expect_eq(requester_unacked(&f->rq), 5, "%s", rows[i].what);
		cr_expect_eq(f->rq.error, REQUESTER_OK, "%s", rows[i].what);
		cr_expect_eq(f->tx.n, 0, "%s", rows[i].what);
		cr_expect_eq(f->rq.hold_until, 0, "%s", rows[i].what);
	}
	fixture_destroy(f);
}

Test(rdma_retransmit, acknowledges_nothing_it_has_built_but_not_sent)
{
	struct fixture *f = fixture_create(4, 256, 100, true);

	/* The port takes nothing: what is built waits. */
	write_some(f, 2);
	f->tx.n += TXQ_SIZE - 2;
	write_some(f, 3);
	cr_expect_eq(ack(f, 101, ACK_OK), REQUESTER_PROGRESS);
	cr_expect_eq(ack(f, 102, ACK_OK), REQUESTER_BEYOND);
	f->tx.n = 2;
	fixture_destroy(f);
}

/* The bytes of all packets in the transmit queue. */
static uint32_t snapshot(const struct fixture *f, uint8_t *out)
{
	uint32_t n = 0;

	for (unsigned int i = 0; i < f->tx.n; i++)
		n += fixture_flatten(f->tx.packet[i], out + n);
	return n;
}

Test(rdma_retransmit, goes_back_to_a_nak_and_sends_the_same_bytes)
{
	struct fixture *f = fixture_create(4, 256, 0xfffffc, true);
	static uint8_t first[1 << 16], again[1 << 16];
	uint8_t frame[FIXTURE_FRAME_MAX];
	uint32_t n, skip = 0;

	fixture_write(f, 1000, REQUESTER_ACK_REQUEST); /* PSN fffffc to ffffff */
	write_some(f, 4);                              /* 0 to 3 */
	fixture_write(f, 600, REQUESTER_ACK_REQUEST);  /* 4 to 6 */
	n = snapshot(f, first);
	for (unsigned int i = 0; i < 2; i++)
		skip += fixture_flatten(f->tx.packet[i], frame);
	fixture_sent(f);
	/* In the middle of the first message. */
	cr_expect_eq(ack(f, 0xfffffe, ROCE_NAK_SEQUENCE), REQUESTER_PROGRESS);
	fixture_expect_psns(f, 0xfffffe, 9);
	cr_expect_eq(snapshot(f, again), n - skip);
	cr_expect_arr_eq(again, first + skip, n - skip);
	cr_expect_eq(f->rq.stats.resent, 9);
	cr_expect_eq(f->rq.stats.naks, 1);
	cr_expect_eq(f->rq.retries, 0, "progress was made");
	fixture_destroy(f);
}

Test(rdma_retransmit, sends_again_what_the_port_has_not_sent_yet)
{
	struct fixture *f = fixture_create(4, 256, 7, true);

	write_some(f, 3);
	cr_expect_eq(ack(f, 7, ROCE_NAK_SEQUENCE), REQUESTER_PROGRESS);
	cr_expect_eq(f->tx.n, 6);
	cr_expect_eq(f->tx.packet[0], f->tx.packet[3]);
	cr_expect_eq(rte_mbuf_refcnt_read(f->tx.packet[0]), 3);
	ack(f, 9, ACK_OK);
	cr_expect_eq(fixture_in_use(f), 3, "the port still holds them");
	fixture_destroy(f);
}

Test(rdma_retransmit, sends_everything_again_after_a_timeout)
{
	struct fixture *f = with_packets_sent(100, 5);
	uint64_t now = f->rq.timer;

	requester_poll(&f->rq, now + f->rq.timeout - 1);
	cr_expect_eq(f->tx.n, 0);
	requester_poll(&f->rq, now + f->rq.timeout);
	fixture_expect_psns(f, 100, 5);
	cr_expect_eq(f->rq.stats.timeouts, 1);
	cr_expect_eq(f->rq.retries, 1);
	fixture_sent(f);
	requester_poll(&f->rq, now + 2 * f->rq.timeout - 1);
	cr_expect_eq(f->tx.n, 0, "the timer starts anew");
	fixture_destroy(f);
}

Test(rdma_retransmit, waits_as_long_as_the_infiniband_formula_says)
{
	struct fixture *f = with_packets_sent(1, 1);

	/* 4.096 us x 2^14 */
	cr_expect_float_eq((double)f->rq.timeout / rte_get_tsc_hz(), 0.0671, 0.0005);
	fixture_destroy(f);
}

Test(rdma_retransmit, never_times_out_when_told_so)
{
	struct fixture *f = with_packets_sent(100, 1);

	f->rq.timeout = 0;
	cr_expect_eq(requester_deadline(&f->rq), UINT64_MAX);
	requester_poll(&f->rq, f->rq.timer + INT64_MAX);
	cr_expect_eq(f->tx.n, 0);
	fixture_destroy(f);
}

Test(rdma_retransmit, takes_a_clock_read_before_the_timer_started)
{
	struct fixture *f = with_packets_sent(100, 1);

	requester_poll(&f->rq, f->rq.timer - 1000);
	cr_expect_eq(f->rq.stats.timeouts, 0);
	fixture_destroy(f);
}

Test(rdma_retransmit, gives_up_when_the_peer_stays_silent)
{
	struct fixture *f = with_packets_sent(100, 5);
	struct rte_mbuf *m = fixture_message(f, 10);

	for (unsigned int i = 1; i <= 3; i++) {
		requester_poll(&f->rq, f->rq.timer + f->rq.timeout);
		cr_expect_eq(f->tx.n, 5, "try %u", i);
		fixture_sent(f);
	}
	requester_poll(&f->rq, f->rq.timer + f->rq.timeout);
	cr_expect_eq(f->tx.n, 0);
	cr_expect_eq(f->rq.error, REQUESTER_RETRY_EXCEEDED);
	cr_expect_eq(requester_deadline(&f->rq), UINT64_MAX);
	cr_expect_eq(requester_write(&f->rq, m, 0, 0, 0, 0), -EPIPE);
	cr_expect_eq(rte_mbuf_refcnt_read(m), 1, "still the caller's");
	rte_pktmbuf_free(m);
	fixture_destroy(f);
}

Test(rdma_retransmit, gives_up_on_a_peer_that_asks_for_the_same_packet_for_ever)
{
	struct fixture *f = with_packets_sent(100, 5);

	cr_expect_eq(ack(f, 102, ROCE_NAK_SEQUENCE), REQUESTER_PROGRESS);
	cr_expect_eq(f->rq.retries, 0, "it acknowledged two packets");
	for (unsigned int i = 1; i <= 3; i++) {
		fixture_sent(f);
		requester_poll(&f->rq, f->rq.timer + f->rq.timeout);
		cr_expect_eq(f->tx.n, 3);
		cr_expect_eq(ack(f, 102, ROCE_NAK_SEQUENCE), REQUESTER_PROGRESS);
		cr_expect_eq(f->rq.retries, i);
	}
	fixture_sent(f);
	requester_poll(&f->rq, f->rq.timer + f->rq.timeout);
	cr_expect_eq(f->rq.error, REQUESTER_RETRY_EXCEEDED);
	cr_expect_eq(f->tx.n, 0);
	fixture_destroy(f);
}

Test(rdma_retransmit, answers_a_storm_of_naks_for_one_packet_once)
{
	struct fixture *f = with_packets_sent(100, 20);

	cr_expect_eq(ack(f, 105, ROCE_NAK_SEQUENCE), REQUESTER_PROGRESS);
	cr_expect_eq(f->tx.n, 15);
	for (unsigned int i = 0; i < 10000; i++)
		cr_assert_eq(ack(f, 105, ROCE_NAK_SEQUENCE), REQUESTER_OLD);
	cr_expect_eq(f->tx.n, 15);
	cr_expect_eq(f->rq.stats.naks, 10001);
	cr_expect_eq(f->rq.error, REQUESTER_OK, "what the network repeats is no reason to give up");
	/* The next gap is another matter. */
	fixture_sent(f);
	cr_expect_eq(ack(f, 110, ROCE_NAK_SEQUENCE), REQUESTER_PROGRESS);
	cr_expect_eq(f->tx.n, 10);
	fixture_destroy(f);
}

Test(rdma_retransmit, answers_a_storm_of_rnr_naks_once)
{
	struct fixture *f = with_packets_sent(100, 20);
	uint64_t until;

	cr_expect_eq(ack(f, 105, ROCE_AETH_RNR | 12), REQUESTER_PROGRESS);
	until = f->rq.hold_until;
	for (unsigned int i = 0; i < 10000; i++)
		cr_assert_eq(requester_ack(&f->rq, 105, ROCE_AETH_RNR | 31, until - 1),
			     REQUESTER_OLD);
	cr_expect_eq(f->tx.n, 0);
	cr_expect_eq(f->rq.hold_until, until, "nor do they hold it up for ever");
	requester_poll(&f->rq, until);
	fixture_expect_psns(f, 105, 15);
	fixture_destroy(f);
}

/* A packet that was built but never sent must survive any acknowledgement. */
Test(rdma_retransmit, frees_nothing_unsent_in_a_storm_of_forged_acknowledgements)
{
	static const uint8_t syndromes[] = {ACK_OK, 0, ROCE_NAK_SEQUENCE, ROCE_AETH_RNR | 1};
	struct fixture *f = fixture_create(4, 256, 0xfffffd, true);

	write_some(f, 2);
	f->tx.n += TXQ_SIZE - 2; /* the port is stuck */
	write_some(f, 5);
	for (uint32_t psn = 0; psn <= ROCE_PSN_MASK; psn += 61)
		for (unsigned int i = 0; i < sizeof(syndromes); i++)
			ack(f, psn, syndromes[i]);
	cr_expect_geq(requester_unacked(&f->rq), 5);
	cr_expect_geq(f->held, 5);
	for (unsigned int i = 0; i < sizeof(syndromes); i++)
		cr_expect_eq(ack(f, 0xffffff, syndromes[i]), REQUESTER_BEYOND);
	cr_expect_eq(ack(f, 0xfffffe, ACK_OK), REQUESTER_PROGRESS);
	cr_expect_eq(requester_unacked(&f->rq), 5);
	f->tx.n = 2;
	fixture_sent(f);
	f->rq.hold_until = 0;
	requester_poll(&f->rq, f->rq.timer);
	fixture_expect_psns(f, 0xffffff, 5);
	fixture_destroy(f);
}

Test(rdma_retransmit, takes_an_ack_for_the_middle_of_a_message)
{
	struct fixture *f = fixture_create(4, 256, 0xfffffe, true);
	uint8_t frame[FIXTURE_FRAME_MAX];

	fixture_write(f, 1000, REQUESTER_ACK_REQUEST); /* PSN fffffe to 1 */
	fixture_sent(f);
	cr_expect_eq(ack(f, 0xffffff, ACK_OK), REQUESTER_PROGRESS);
	cr_expect_eq(requester_unacked(&f->rq), 2);
	requester_poll(&f->rq, f->rq.timer + f->rq.timeout);
	fixture_expect_psns(f, 0, 2);
	cr_expect_eq(fixture_packet(f, 0, frame).opcode, ROCE_WRITE_MIDDLE);
	cr_expect_eq(fixture_packet(f, 1, frame).opcode, ROCE_WRITE_LAST);
	fixture_destroy(f);
}

Test(rdma_retransmit, resends_to_where_the_peer_is_now)
{
	static const uint8_t mac[6] = {2, 9, 8, 7, 6, 5};
	struct fixture *f = with_packets_sent(100, 1);
	uint8_t frame[FIXTURE_FRAME_MAX];

	fixture_write(f, 600, REQUESTER_ACK_REQUEST);
	fixture_sent(f);
	roce_path_set_mac(&f->path, mac);
	ack(f, 100, ROCE_NAK_SEQUENCE);
	fixture_expect_psns(f, 100, 4);
	for (unsigned int i = 0; i < 4; i++) {
		fixture_packet(f, i, frame);
		cr_expect_arr_eq(frame, mac, 6, "packet %u", i);
	}
	fixture_destroy(f);
}

Test(rdma_retransmit, counts_the_packets_it_holds)
{
	struct fixture *f = fixture_create(4, 256, 100, true);

	write_some(f, 3);
	fixture_write(f, 600, 0);
	cr_expect_eq(f->held, 6);
	fixture_sent(f);
	ack(f, 101, ROCE_NAK_SEQUENCE);
	cr_expect_eq(f->held, 5);
	ack(f, 104, ACK_OK);
	cr_expect_eq(f->held, 1);
	fixture_destroy(f);
}

Test(rdma_retransmit, gives_a_peer_that_makes_progress_new_tries)
{
	struct fixture *f = with_packets_sent(100, 9);

	for (unsigned int i = 0; i < 8; i++) {
		for (unsigned int try = 0; try < 3; try++)
			requester_poll(&f->rq, f->rq.timer + f->rq.timeout);
		fixture_sent(f);
		cr_expect_eq(ack(f, 100 + i, ACK_OK), REQUESTER_PROGRESS);
	}
	cr_expect_eq(f->rq.error, REQUESTER_OK);
	fixture_destroy(f);
}

Test(rdma_retransmit, dies_of_a_fatal_nak_and_sends_nothing_more)
{
	static const uint8_t fatal[] = {ROCE_NAK_INVALID_REQUEST,
					ROCE_NAK_REMOTE_ACCESS,
					ROCE_NAK_REMOTE_OPERATION,
					0x64,
					0x7f,
					0x80,
					0xff};
	struct fixture *f = with_packets_sent(100, 5);
	uint64_t late = f->rq.timer + 9 * f->rq.timeout;
	struct requester before = f->rq;

	for (unsigned int i = 0; i < sizeof(fatal); i++) {
		f->rq = before;
		cr_expect_eq(ack(f, 100, fatal[i]), REQUESTER_FAILED, "syndrome %02x", fatal[i]);
		cr_expect_eq(f->rq.error, REQUESTER_NAK);
		cr_expect_eq(f->rq.nak, fatal[i]);
		requester_poll(&f->rq, late);
		ack(f, 102, ROCE_NAK_SEQUENCE);
		ack(f, 102, ROCE_AETH_RNR | 1);
		requester_poll(&f->rq, late);
		cr_expect_eq(f->tx.n, 0, "syndrome %02x", fatal[i]);
		cr_expect_eq(f->rq.nak, fatal[i]);
		f->rq.error = REQUESTER_OK;
	}
	fixture_destroy(f);
}

Test(rdma_retransmit, holds_after_an_rnr_nak_for_as_long_as_it_says)
{
	struct fixture *f = with_packets_sent(100, 5);
	uint64_t now = f->rq.timer + 1, us = rte_get_tsc_hz() / 1000000;

	cr_expect_eq(ack(f, 102, ROCE_AETH_RNR | 14), REQUESTER_PROGRESS); /* 1.28 ms */
	cr_expect_eq(requester_unacked(&f->rq), 3, "what came before is acknowledged");
	cr_expect_eq(requester_deadline(&f->rq), now + 1280 * us);
	write_some(f, 1);
	requester_poll(&f->rq, now + 1280 * us - 1);
	cr_expect_eq(f->tx.n, 0, "neither old nor new packets");
	requester_poll(&f->rq, now + 1280 * us);
	fixture_expect_psns(f, 102, 4);
	cr_expect_eq(f->rq.stats.rnr_naks, 1);
	fixture_destroy(f);
}

Test(rdma_retransmit, holds_even_if_a_sequence_nak_follows)
{
	struct fixture *f = with_packets_sent(100, 5);
	uint64_t late = f->rq.timer + rte_get_tsc_hz() / 100;

	/* As the kernel's responder answers: not ready for 102, and 103 came too early. */
	ack(f, 102, ROCE_AETH_RNR | 14);
	ack(f, 102, ROCE_NAK_SEQUENCE);
	cr_expect_eq(f->tx.n, 0);
	requester_poll(&f->rq, late);
	fixture_expect_psns(f, 102, 3);
	fixture_destroy(f);
}

Test(rdma_retransmit, never_gives_up_on_a_receiver_that_is_not_ready)
{
	struct fixture *f = with_packets_sent(100, 1);

	for (unsigned int i = 0; i < 50; i++) {
		cr_expect_eq(ack(f, 100, ROCE_AETH_RNR | 1), REQUESTER_PROGRESS);
		requester_poll(&f->rq, f->rq.hold_until);
		cr_assert_eq(f->tx.n, 1);
		fixture_sent(f);
	}
	cr_expect_eq(f->rq.error, REQUESTER_OK);
	cr_expect_eq(f->rq.stats.timeouts, 0);
	fixture_destroy(f);
}

Test(rdma_retransmit, gives_up_on_a_receiver_that_is_not_ready_when_told_so)
{
	struct fixture *f = with_packets_sent(100, 3);

	f->rq.rnr_retry = 2;
	for (unsigned int i = 0; i < 2; i++) {
		cr_expect_eq(ack(f, 100, ROCE_AETH_RNR | 1), REQUESTER_PROGRESS);
		requester_poll(&f->rq, f->rq.hold_until);
		fixture_sent(f);
	}
	/* It was ready for one packet: that is progress. */
	for (unsigned int i = 0; i < 2; i++) {
		cr_expect_eq(ack(f, 101, ROCE_AETH_RNR | 1), REQUESTER_PROGRESS);
		requester_poll(&f->rq, f->rq.hold_until);
		fixture_sent(f);
	}
	cr_expect_eq(ack(f, 101, ROCE_AETH_RNR | 1), REQUESTER_FAILED);
	cr_expect_eq(f->rq.error, REQUESTER_RNR_EXCEEDED);
	cr_expect_eq(requester_deadline(&f->rq), UINT64_MAX);
	requester_poll(&f->rq, f->rq.timer + 9 * f->rq.timeout);
	cr_expect_eq(f->tx.n, 0);
	fixture_destroy(f);
}

Test(rdma_retransmit, does_not_wait_for_a_receiver_at_all_with_a_limit_of_zero)
{
	struct fixture *f = with_packets_sent(100, 3);

	f->rq.rnr_retry = 0;
	cr_expect_eq(ack(f, 100, ROCE_AETH_RNR | 1), REQUESTER_FAILED);
	cr_expect_eq(f->rq.error, REQUESTER_RNR_EXCEEDED);
	fixture_destroy(f);
}

Test(rdma_retransmit, forgets_a_hold_when_all_is_acknowledged)
{
	struct fixture *f = with_packets_sent(100, 2);

	ack(f, 100, ROCE_AETH_RNR | 0);
	ack(f, 101, ACK_OK);
	write_some(f, 1);
	cr_expect_eq(f->tx.n, 1);
	fixture_destroy(f);
}

Test(rdma_retransmit, resends_in_bursts_and_goes_on_with_polls_and_acks)
{
	struct fixture *f = with_packets_sent(1000, 200);

	ack(f, 1000, ROCE_NAK_SEQUENCE);
	fixture_expect_psns(f, 1000, REQUESTER_RESEND_BURST);
	fixture_sent(f);
	requester_poll(&f->rq, f->rq.timer);
	fixture_expect_psns(f, 1064, 36);
	fixture_sent(f);
	ack(f, 1063, ACK_OK);
	fixture_expect_psns(f, 1100, REQUESTER_RESEND_BURST);
	fixture_sent(f);
	ack(f, 1163, ACK_OK);
	fixture_expect_psns(f, 1164, 36);
	fixture_destroy(f);
}

Test(rdma_retransmit, has_half_as_many_packets_under_way_after_a_loss)
{
	struct fixture *f = with_packets_sent(1000, 400);

	ack(f, 1000, ROCE_NAK_SEQUENCE);
	for (unsigned int i = 0; i < 10; i++)
		requester_poll(&f->rq, f->rq.timer);
	fixture_expect_psns(f, 1000, 200);
	fixture_destroy(f);
}

Test(rdma_retransmit, has_more_packets_under_way_again_as_they_are_acknowledged)
{
	struct fixture *f = with_packets_sent(0, 128);

	ack(f, 0, ROCE_NAK_SEQUENCE);
	cr_expect_eq(f->rq.limit, REQUESTER_LIMIT_MIN);
	ack(f, REQUESTER_GROWTH - 2, ACK_OK);
	cr_expect_eq(f->rq.limit, REQUESTER_LIMIT_MIN);
	ack(f, REQUESTER_GROWTH - 1, ACK_OK);
	cr_expect_eq(f->rq.limit, REQUESTER_LIMIT_MIN + 1);
	for (uint32_t psn = 0; f->rq.limit < REQUESTER_WINDOW; psn = f->rq.next_psn) {
		cr_assert_lt(psn, 2 * REQUESTER_GROWTH * REQUESTER_WINDOW);
		fixture_sent(f);
		ack(f, roce_psn_add(f->rq.sent_psn, ROCE_PSN_MASK), ACK_OK);
		write_some(f, 32);
	}
	fixture_destroy(f);
}

/* The path is long and had no queue: fewer packets in flight would be slower. */
Test(rdma_retransmit, keeps_the_path_full_after_a_loss)
{
	struct fixture *f = fixture_create(4, 256, 1000, true);
	uint64_t now = 1000000;

	f->rq.clock = &now;
	write_some(f, 400);
	fixture_sent(f);
	now += 1000;
	requester_ack(&f->rq, 1399, ACK_OK, now);
	write_some(f, 400);
	fixture_sent(f);
	requester_ack(&f->rq, 1400, ROCE_NAK_SEQUENCE, now);
	for (unsigned int i = 0; i < 10; i++)
		requester_poll(&f->rq, now);
	fixture_expect_psns(f, 1400, 400);
	fixture_destroy(f);
}

Test(rdma_retransmit, tries_again_before_the_timeout_where_acknowledgements_are_fast)
{
	struct fixture *f = fixture_create(4, 256, 1000, true);
	uint64_t now = 1000000, early;

	f->rq.clock = &now;
	early = f->rq.timeout / REQUESTER_EARLY;
	write_some(f, 1);
	now += early / 100;
	requester_ack(&f->rq, 1000, ACK_OK, now);
	write_some(f, 1);
	fixture_sent(f);
	cr_expect_eq(requester_deadline(&f->rq), now + early);
	requester_poll(&f->rq, now + early - 1);
	cr_expect_eq(f->tx.n, 0);
	requester_poll(&f->rq, now + early);
	fixture_expect_psns(f, 1001, 1);
	cr_expect_eq(requester_deadline(&f->rq), now + 3 * early, "twice as long");
	cr_expect_eq(f->rq.retries, 0);
	cr_expect_eq(f->rq.stats.timeouts, 0);
	fixture_destroy(f);
}

Test(rdma_retransmit, tries_again_early_only_after_some_round_trips)
{
	struct fixture *f = fixture_create(4, 256, 1000, true);
	uint64_t now = 1000000, rtt;

	f->rq.clock = &now;
	rtt = f->rq.timeout / 10;
	write_some(f, 1);
	now += rtt;
	requester_ack(&f->rq, 1000, ACK_OK, now);
	write_some(f, 1);
	fixture_sent(f);
	cr_expect_eq(requester_deadline(&f->rq), now + 4 * rtt);
	fixture_destroy(f);
}

Test(rdma_retransmit, does_not_let_new_packets_overtake_old_ones)
{
	struct fixture *f = with_packets_sent(1000, 100);

	ack(f, 1000, ROCE_NAK_SEQUENCE);
	write_some(f, 3);
	fixture_expect_psns(f, 1000, 64);
	fixture_sent(f);
	ack(f, 1063, ACK_OK);
	fixture_expect_psns(f, 1064, 39);
	fixture_sent(f);
	write_some(f, 1);
	fixture_expect_psns(f, 1103, 1);
	fixture_destroy(f);
}

Test(rdma_retransmit, skips_what_an_ack_retires_during_a_resend)
{
	struct fixture *f = with_packets_sent(1000, 200);

	ack(f, 1000, ROCE_NAK_SEQUENCE);
	fixture_sent(f);
	/* The first copies had arrived after all. */
	ack(f, 1149, ACK_OK);
	fixture_expect_psns(f, 1150, 50);
	fixture_destroy(f);
}

Test(rdma_retransmit, waits_for_a_full_transmit_queue)
{
	struct fixture *f = with_packets_sent(100, 10);
	unsigned int room = 4;

	f->tx.n = TXQ_SIZE - room;
	ack(f, 100, ROCE_NAK_SEQUENCE);
	cr_expect_eq(f->tx.n, TXQ_SIZE);
	memmove(f->tx.packet, f->tx.packet + TXQ_SIZE - room, room * sizeof(f->tx.packet[0]));
	f->tx.n = room;
	fixture_expect_psns(f, 100, room);
	fixture_sent(f);
	requester_poll(&f->rq, f->rq.timer);
	fixture_expect_psns(f, 104, 6);
	fixture_destroy(f);
}

Test(rdma_retransmit, tells_when_it_wants_to_be_polled)
{
	struct fixture *f = fixture_create(4, 256, 100, true);

	cr_expect_eq(requester_deadline(&f->rq), UINT64_MAX);
	write_some(f, 1);
	fixture_sent(f);
	cr_expect_eq(requester_deadline(&f->rq), f->rq.timer + f->rq.timeout);
	ack(f, 100, ACK_OK);
	cr_expect_eq(requester_deadline(&f->rq), UINT64_MAX);
	fixture_destroy(f);
}

/* A sleeping owner looks every few ms: a window takes longer than the timer runs. */
Test(rdma_retransmit, does_not_take_a_resend_in_bursts_for_silence)
{
	struct fixture *f = fixture_create(4, 256, 0xfffe00, true);
	uint64_t now, step = rte_get_tsc_hz() / 1000 * 5;
	unsigned int sent;

	/* Only the last packet asks for an acknowledgement. */
	for (unsigned int i = 0; i < REQUESTER_WINDOW; i++) {
		fixture_write(f, 8, i + 1 < REQUESTER_WINDOW ? 0 : REQUESTER_ACK_REQUEST);
		fixture_sent(f);
	}
	now = f->rq.timer + f->rq.timeout;
	requester_poll(&f->rq, now);
	for (sent = f->tx.n; sent < REQUESTER_WINDOW; sent += f->tx.n) {
		fixture_sent(f);
		now += step;
		requester_poll(&f->rq, now);
		cr_assert_eq(f->rq.retries, 1, "started again after %u packets", sent);
	}
	fixture_sent(f);
	cr_expect_eq(sent, REQUESTER_WINDOW);
	/* From here on it waits for its full time. */
	cr_expect_eq(requester_deadline(&f->rq), now + f->rq.timeout);
	requester_poll(&f->rq, now + f->rq.timeout - 1);
	cr_expect_eq(f->rq.retries, 1);
	requester_poll(&f->rq, now + f->rq.timeout);
	cr_expect_eq(f->rq.retries, 2);
	fixture_destroy(f);
}

Test(rdma_retransmit, times_out_even_if_the_port_takes_nothing)
{
	struct fixture *f = with_packets_sent(100, 10);
	uint64_t now = f->rq.timer;

	f->tx.n = TXQ_SIZE;
	for (unsigned int i = 0; i < 4; i++) {
		now += f->rq.timeout;
		requester_poll(&f->rq, now);
		requester_poll(&f->rq, now + 1);
	}
	cr_expect_eq(f->rq.error, REQUESTER_RETRY_EXCEEDED);
	f->tx.n = 0;
	fixture_destroy(f);
}

Test(rdma_retransmit, wants_to_be_polled_soon_while_there_is_more_to_resend)
{
	struct fixture *f = with_packets_sent(1000, 200);
	uint64_t now = f->rq.timer + f->rq.timeout;

	requester_poll(&f->rq, now);
	cr_expect_eq(f->tx.n, REQUESTER_RESEND_BURST);
	cr_expect_eq(requester_deadline(&f->rq),
		     now + rte_get_tsc_hz() / 1000000 * REQUESTER_RESEND_US);
	fixture_destroy(f);
}
