/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A software RNIC whose thread was not scheduled: acknowledgements that came meanwhile lie in its
 * receive ring behind other packets, and the packets that they acknowledge are not sent again.
 */
#include <rte_cycles.h>

#include "soft_rnic_fixture.h"

/* Longer than the acknowledgement timeout, 67 ms. */
#define STALL_MS 200
/* Packets in the ring before the acknowledgement: several bursts. */
#define OTHERS 100

#define ACK_TIMEOUT 14
#define RETRIES     7

static uint8_t memory[4096] __attribute__((aligned(4096)));

struct stalled {
	struct fixture f;
	struct fixture_qp *q;
	uint32_t psn;    /* of the packet that is to be acknowledged */
	bool late;       /* it was due to be sent again before the RNIC's thread stood still */
	uint64_t resent; /* packets until then */
};

static void bring_up(struct stalled *s)
{
	static const unsigned int room[FIXTURE_QUEUES] = {FIXTURE_RING};

	fixture_start(&s->f, 1, room, memory, sizeof(memory));
	s->q = fixture_connect(&s->f, 0, ACK_TIMEOUT, RETRIES);
}

/* Runs on the RNIC's thread and halts it while packets come in. */
static void stall(void *rnic, void *argument)
{
	struct stalled *s = argument;
	struct soft_rnic_stats stats;

	s->late = requester_deadline(&((struct soft_qp *)s->q->qp)->requester) <= rte_rdtsc();
	if (s->late)
		return;
	soft_rnic_stats_read(s->f.rnic, &stats);
	s->resent = stats.resent;
	for (unsigned int i = 0; i < OTHERS; i++) {
		struct rte_mbuf *m = fixture_packet(&s->f);

		memset(rte_pktmbuf_mtod(m, void *), 0, 64);
		fixture_deliver(&s->f, m, 64);
	}
	fixture_acknowledge(&s->f, s->q, s->psn);
	rte_delay_us_block(STALL_MS * 1000);
}

Test(agent_stall, an_acknowledgement_in_the_ring_counts_before_the_timer, .timeout = 60)
{
	struct soft_rnic_stats stats;
	static struct stalled s;

	bring_up(&s);
	fixture_post(&s.f, s.q, 64);
	fixture_await(&s.f, s.q, FIXTURE_PSN);
	fixture_acknowledge(&s.f, s.q, FIXTURE_PSN);
	fixture_await_acknowledged(s.q);
	s.psn = FIXTURE_PSN;
	/* Try again if this thread was too late to stall the RNIC between the packet and its timer.
	 */
	do {
		fixture_post(&s.f, s.q, 64);
		fixture_await(&s.f, s.q, ++s.psn);
		mailbox_send(&((struct soft_rnic *)s.f.rnic)->mailbox, stall, s.f.rnic, &s);
		if (s.late)
			fixture_acknowledge(&s.f, s.q, s.psn);
		fixture_await_acknowledged(s.q);
	} while (s.late);
	soft_rnic_stats_read(s.f.rnic, &stats);
	cr_expect_eq(stats.resent, s.resent, "%lu packets were sent again",
		     stats.resent - s.resent);
	fixture_end(&s.f);
}

/* A packet that is really lost is sent again, although nothing else comes. */
Test(agent_stall, a_lost_packet_is_sent_again, .timeout = 60)
{
	struct soft_rnic_stats stats;
	static struct stalled s;

	bring_up(&s);
	fixture_post(&s.f, s.q, 64);
	fixture_await(&s.f, s.q, FIXTURE_PSN);
	fixture_await(&s.f, s.q, FIXTURE_PSN);
	fixture_acknowledge(&s.f, s.q, FIXTURE_PSN);
	fixture_await_acknowledged(s.q);
	soft_rnic_stats_read(s.f.rnic, &stats);
	cr_expect_geq(stats.resent, 1);
	fixture_end(&s.f);
}
