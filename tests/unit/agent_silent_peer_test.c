/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A software RNIC that serves several peers: what one that says nothing, or one that takes all, can
 * hold up for the others.
 */
#include "soft_rnic_fixture.h"

/* So that no queue pair fails during a test: 4.3 s, 8 times. */
#define PATIENT 20
/* 4 ms, twice. */
#define HASTY 10

#define MIB (1u << 20)

static uint8_t memory[MIB] __attribute__((aligned(4096)));
static const unsigned int wide[FIXTURE_QUEUES] = {FIXTURE_RING, FIXTURE_RING};

static uint32_t held(const struct fixture *f)
{
	return *(const volatile uint32_t *)&((const struct soft_rnic *)f->rnic)->held;
}

/* Takes and drops packets of all queues. */
static void drop_packets(struct fixture *f)
{
	uint32_t psn;

	while (fixture_take(f, 0, &psn) != NULL)
		;
}

/* One packet there, and its acknowledgement back. */
static void answers(struct fixture *f, struct fixture_qp *q, uint32_t psn)
{
	fixture_post(f, q, 64);
	fixture_await(f, q, psn);
	fixture_acknowledge(f, q, psn);
	fixture_await_acknowledged(q);
}

/* The memory for packets that wait for acknowledgements is shared: peers that send none, each with
 * a window full of large replies, leave some of it to others. */
Test(agent_silent_peer, silent_peers_leave_packets_to_others, .timeout = 25)
{
	static struct fixture f;
	struct fixture_qp *other;

	fixture_start(&f, 1, wide, memory, sizeof(memory));
	for (unsigned int i = 0; i < FIXTURE_QPS - 1; i++)
		fixture_connect(&f, 0, PATIENT, 7);
	other = fixture_connect(&f, 0, PATIENT, 7);
	answers(&f, other, FIXTURE_PSN);
	for (unsigned int i = 0; i < FIXTURE_QPS - 1; i++)
		fixture_post(&f, &f.qp[i], MIB);
	/* Until they have what they get: with n of them, n parts of n + 1. */
	while (held(&f) < SOFT_HOLD_MAX / 8 * 7 - FIXTURE_QPS)
		drop_packets(&f);
	for (uint32_t i = 1; i <= 200; i++)
		answers(&f, other, FIXTURE_PSN + i);
	for (unsigned int i = 0; i < FIXTURE_QPS - 1; i++)
		cr_expect_eq(f.qp[i].failed, 0);
	fixture_end(&f);
}

/* One that is alone gets a whole window. */
Test(agent_silent_peer, a_peer_alone_has_a_whole_window, .timeout = 25)
{
	static struct fixture f;
	struct fixture_qp *q;

	fixture_start(&f, 1, wide, memory, sizeof(memory));
	q = fixture_connect(&f, 0, PATIENT, 7);
	fixture_post(&f, q, MIB);
	while (fixture_unacked(q) < REQUESTER_WINDOW)
		drop_packets(&f);
	fixture_end(&f);
}

/* A queue pair that has failed gives back its packets at once, not when it is destroyed, and
 * reports nothing of them as done. */
Test(agent_silent_peer, a_failed_queue_pair_holds_no_packets, .timeout = 25)
{
	static struct fixture f;
	struct fixture_qp *q, *other;
	uint8_t syndrome;

	fixture_start(&f, 1, wide, memory, sizeof(memory));
	q = fixture_connect(&f, 0, HASTY, 1);
	other = fixture_connect(&f, 0, PATIENT, 7);
	answers(&f, other, FIXTURE_PSN);
	fixture_post(&f, q, MIB / 2);
	while (__atomic_load_n(&q->failed, __ATOMIC_ACQUIRE) == 0)
		drop_packets(&f);
	while (held(&f) > 0)
		drop_packets(&f);
	fixture_acknowledge(&f, q, FIXTURE_PSN + MIB / 2 / FIXTURE_MTU - 1);
	answers(&f, other, FIXTURE_PSN + 1);
	cr_expect_eq(mlx5_cq_poll(&q->queue, &syndrome), MLX5_POLL_ERROR);
	cr_expect_eq(syndrome, MLX5_SYNDROME_RETRY_EXCEEDED);
	cr_expect_eq(mlx5_cq_poll(&q->queue, NULL), MLX5_POLL_EMPTY);
	fixture_end(&f);
}

/* A memif has a queue for each lcore of the load balancer. One that stands still takes nothing from
 * its queue; what comes by the other's is read all the same. */
Test(agent_silent_peer, a_queue_that_is_full_stops_no_other, .timeout = 25)
{
	static const unsigned int narrow[FIXTURE_QUEUES] = {FIXTURE_RING, 16};
	static struct fixture f;
	struct fixture_qp *stands, *other;
	const struct txq *full;

	fixture_start(&f, 2, narrow, memory, sizeof(memory));
	other = fixture_connect(&f, 0, PATIENT, 7);
	stands = fixture_connect(&f, 1, PATIENT, 7);
	answers(&f, other, FIXTURE_PSN);
	fixture_post(&f, stands, MIB);
	full = ((struct soft_qp *)stands->qp)->tx;
	while (*(const volatile uint16_t *)&full->n < TXQ_SIZE - 16)
		drop_packets(&f);
	for (uint32_t i = 1; i <= 200; i++)
		answers(&f, other, FIXTURE_PSN + i);
	fixture_end(&f);
}

/* Three links with replies of many packets fill the transmit queue of a slow port. A link with one
 * packet waits for what is in the queue, not for theirs that are not. */
Test(agent_silent_peer, a_lone_reply_waits_for_one_queue_of_others, .timeout = 25)
{
	static const unsigned int slow[FIXTURE_QUEUES] = {16};
	static struct fixture f;
	struct fixture_qp *lone, *from;
	uint32_t psn, packets = 0, posted = 0;
	const struct txq *tx;

	fixture_start(&f, 1, slow, memory, sizeof(memory));
	for (unsigned int i = 0; i < 3; i++)
		fixture_connect(&f, 0, PATIENT, 7);
	lone = fixture_connect(&f, 0, PATIENT, 7);
	answers(&f, lone, FIXTURE_PSN);
	for (unsigned int i = 0; i < 3; i++)
		for (unsigned int k = 0; k < 8; k++)
			fixture_post(&f, &f.qp[i], MIB);
	tx = ((struct soft_qp *)lone->qp)->tx;
	do {
		from = fixture_take(&f, 0, &psn);
		if (from == NULL)
			continue;
		if (psn % 16 == 0)
			fixture_acknowledge(&f, from, psn);
		if (posted > 0)
			packets++;
		else if (*(const volatile uint16_t *)&tx->n > TXQ_SIZE - 64)
			fixture_post(&f, lone, 64 * ++posted);
	} while (from != lone);
	cr_expect_leq(packets, 2 * TXQ_SIZE, "%u packets of others", packets);
	fixture_end(&f);
}
