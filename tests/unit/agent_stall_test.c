/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A software RNIC whose thread was not scheduled: acknowledgements that came meanwhile lie in its
 * receive ring behind other packets, and the packets that they acknowledge are not sent again. The
 * port is two rings.
 */
#include <criterion/criterion.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_ring.h>

#include "rdma/frame.h"
#include "rnic/soft_rnic_private.h"
#include "common/writer.h"

#define RING     1024
#define PEER_QPN 0x77
#define PSN      500
#define MTU      1500
/* Longer than the acknowledgement timeout, 67 ms. */
#define STALL_MS 200
/* Packets in the ring before the acknowledgement: several bursts. */
#define OTHERS 100

static const uint8_t peer_mac[6] = {2, 0, 0, 0, 0, 0x77};
static char memory[4096] __attribute__((aligned(4096)));

struct fixture {
	struct rte_ring *in, *out; /* of the port, seen from the RNIC */
	struct rte_mempool *pool;
	struct rnic *rnic;
	struct rnic_qp *qp;
	struct mlx5_queue queue;
	struct roce_path back; /* from the peer */
	uint32_t psn;          /* of the packet that is to be acknowledged */
	bool late;       /* it was due to be sent again before the RNIC's thread stood still */
	uint64_t resent; /* packets until then */
};

static void bring_up(struct fixture *f)
{
	char *argv[] = {"stall", "--no-huge", "--no-shconf", "--no-pci",        "--no-telemetry",
			"-m",    "128",       "--lcores",    "0@(0-1),1@(0-1)", NULL};
	struct soft_rnic_params params = {
		.device = "net_ring_stall",
		.mtu = MTU,
		.address = {.family = 4},
		.prefix = 24,
	};
	char error[256];

	cr_assert_geq(rte_eal_init(9, argv), 0);
	f->in = rte_ring_create("in", RING, SOCKET_ID_ANY, RING_F_EXACT_SZ);
	f->out = rte_ring_create("out", RING, SOCKET_ID_ANY, RING_F_EXACT_SZ);
	f->pool = rte_pktmbuf_pool_create("peer", 2 * RING - 1, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
					  SOCKET_ID_ANY);
	cr_assert(f->in != NULL && f->out != NULL && f->pool != NULL);
	cr_assert_geq(rte_eth_from_rings("stall", &f->in, 1, &f->out, 1, 0), 0);
	inet_pton(AF_INET6, "::ffff:10.9.0.11", &params.address.addr);
	f->rnic = soft_rnic_create(&params, error, sizeof(error));
	cr_assert(f->rnic != NULL, "%s", error);
}

static void connect_queue(struct fixture *f)
{
	struct rnic_span span = {
		.va = (uintptr_t)memory, .length = sizeof(memory), .dmabuf_fd = -1};
	struct rnic_qp_params params = {
		.writable = span, .sendable = span, .wqe_count = 64, .psn = PSN};
	struct rnic_peer peer = {
		.address = {.family = 4},
		.qpn = PEER_QPN,
		.psn = 9,
		.path_mtu = 1024,
		.ack_timeout = 14,
		.retry_limit = 7,
	};
	struct roce_path_spec spec;

	f->qp = f->rnic->ops->create(f->rnic, &params);
	cr_assert(f->qp != NULL);
	f->queue = f->qp->queue;
	inet_pton(AF_INET6, "::ffff:10.9.0.77", &peer.address.addr);
	cr_assert_eq(f->rnic->ops->connect(f->qp, &peer), 0);
	spec = writer_path("10.9.0.77", peer_mac, "10.9.0.11",
			   ((struct soft_rnic *)f->rnic)->port.mac, f->qp->number, 1024);
	roce_path_init(&f->back, &spec);
}

static void post(struct fixture *f)
{
	struct mlx5_write w = {
		.remote_address = 0x1000,
		.local_address = (uintptr_t)memory,
		.rkey = 1,
		.lkey = f->qp->lkey,
		.length = 64,
	};

	mlx5_wqe_build(&f->queue, 0, &w);
	mlx5_ring(&f->queue, 1);
}

static void deliver(struct fixture *f, struct rte_mbuf *m, uint32_t length)
{
	m->data_len = m->pkt_len = length;
	cr_assert_eq(rte_ring_enqueue(f->in, m), 0);
}

static struct rte_mbuf *new_packet(struct fixture *f)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(f->pool);

	cr_assert(m != NULL);
	return m;
}

static void acknowledge(struct fixture *f, uint32_t psn)
{
	struct rte_mbuf *m = new_packet(f);

	deliver(f, m,
		roce_ack_build(rte_pktmbuf_mtod(m, uint8_t *), &f->back, psn, ROCE_CREDITS_UNUSED,
			       psn - PSN + 1));
}

static void answer_arp(struct fixture *f, const uint8_t *question)
{
	struct rte_mbuf *answer = new_packet(f);

	deliver(f, answer,
		writer_answer_arp(question, peer_mac, rte_pktmbuf_mtod(answer, uint8_t *)));
}

static bool has_psn(const uint8_t *frame, uint32_t length, uint32_t psn)
{
	struct roce_packet p;
	struct roce_frame at;

	return frame_locate(frame, length, &at) == FRAME_ROCE &&
	       roce_parse(frame + at.bth_offset, at.bth_length, &p) == ROCE_PARSED && p.psn == psn;
}

/* Waits until the RNIC sends this packet, and answers its questions for our address. Other packets
 * are retransmissions, because this thread was late. */
static void await_packet(struct fixture *f, uint32_t psn)
{
	bool found = false;
	struct rte_mbuf *m;

	while (!found) {
		while (rte_ring_dequeue(f->out, (void **)&m) != 0)
			rte_pause();
		if (writer_is_arp(rte_pktmbuf_mtod(m, uint8_t *)))
			answer_arp(f, rte_pktmbuf_mtod(m, uint8_t *));
		else
			found = has_psn(rte_pktmbuf_mtod(m, uint8_t *), m->pkt_len, psn);
		rte_pktmbuf_free(m);
	}
}

static uint32_t unacked(const struct fixture *f)
{
	return requester_unacked(&((struct soft_qp *)f->qp)->requester);
}

static void await_acknowledged(const struct fixture *f)
{
	while (*(volatile uint32_t *)&((struct soft_qp *)f->qp)->requester.una_psn !=
	       ((struct soft_qp *)f->qp)->requester.next_psn)
		rte_pause();
	cr_expect_eq(unacked(f), 0);
}

/* Runs on the RNIC's thread and halts it while packets come in. */
static void stall(void *rnic, void *argument)
{
	struct fixture *f = argument;
	struct soft_rnic_stats stats;

	f->late = requester_deadline(&((struct soft_qp *)f->qp)->requester) <= rte_rdtsc();
	if (f->late)
		return;
	soft_rnic_stats_read(f->rnic, &stats);
	f->resent = stats.resent;
	for (unsigned int i = 0; i < OTHERS; i++) {
		struct rte_mbuf *m = new_packet(f);

		memset(rte_pktmbuf_mtod(m, void *), 0, 64);
		deliver(f, m, 64);
	}
	acknowledge(f, f->psn);
	rte_delay_us_block(STALL_MS * 1000);
}

Test(agent_stall, an_acknowledgement_in_the_ring_counts_before_the_timer, .timeout = 60)
{
	struct soft_rnic_stats stats;
	struct fixture f;

	bring_up(&f);
	connect_queue(&f);
	post(&f);
	await_packet(&f, PSN);
	acknowledge(&f, PSN);
	await_acknowledged(&f);
	f.psn = PSN;
	/* Try again if this thread was too late to stall the RNIC between the packet and its timer.
	 */
	do {
		post(&f);
		await_packet(&f, ++f.psn);
		mailbox_send(&((struct soft_rnic *)f.rnic)->mailbox, stall, f.rnic, &f);
		if (f.late)
			acknowledge(&f, f.psn);
		await_acknowledged(&f);
	} while (f.late);
	soft_rnic_stats_read(f.rnic, &stats);
	cr_expect_eq(stats.resent, f.resent, "%lu packets were sent again",
		     stats.resent - f.resent);
	f.rnic->ops->destroy(f.qp);
	f.rnic->ops->close(f.rnic);
}

/* A packet that is really lost is sent again, although nothing else comes. */
Test(agent_stall, a_lost_packet_is_sent_again, .timeout = 60)
{
	struct soft_rnic_stats stats;
	struct fixture f;

	bring_up(&f);
	connect_queue(&f);
	post(&f);
	await_packet(&f, PSN);
	await_packet(&f, PSN);
	acknowledge(&f, PSN);
	await_acknowledged(&f);
	soft_rnic_stats_read(f.rnic, &stats);
	cr_expect_geq(stats.resent, 1);
	f.rnic->ops->destroy(f.qp);
	f.rnic->ops->close(f.rnic);
}
