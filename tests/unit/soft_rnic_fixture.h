/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fixture of the tests of the software RNIC: its port is a pair of rings for each queue, at whose
 * other end the test plays the peers of all queue pairs, which have one address.
 */
#ifndef SOFT_RNIC_FIXTURE_H
#define SOFT_RNIC_FIXTURE_H

#include <criterion/criterion.h>

#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_ring.h>

#include "common/writer.h"
#include "rdma/frame.h"
#include "rnic/soft_rnic_private.h"

#define FIXTURE_RING   1024
#define FIXTURE_QUEUES 2
#define FIXTURE_QPS    8
#define FIXTURE_MTU    1024
#define FIXTURE_PSN    500u  /* of each queue pair's first packet */
#define FIXTURE_QPN    0x77u /* of the first one's peer; the next ones count up */

struct fixture_qp {
	struct rnic_qp *qp;
	struct mlx5_queue queue;
	struct roce_path back; /* from its peer */
	uint32_t failed;
};

struct fixture {
	struct rte_ring *in[FIXTURE_QUEUES], *out[FIXTURE_QUEUES]; /* seen from the RNIC */
	struct rte_mempool *pool;
	struct rnic *rnic;
	uint8_t *memory; /* all queue pairs' */
	size_t size;
	uint32_t n;
	struct fixture_qp qp[FIXTURE_QPS];
};

static const uint8_t fixture_mac[6] = {2, 0, 0, 0, 0, 0x77};

/* Starts the RNIC; queue q takes <room>[q] packets that were not read. */
static inline void fixture_start(struct fixture *f, uint16_t queues,
				 const unsigned int room[FIXTURE_QUEUES], uint8_t *memory,
				 size_t size)
{
	char *argv[] = {"soft_rnic",       "--no-huge", "--no-shconf", "--no-pci",
			"--no-telemetry",  "-m",        "128",         "--lcores",
			"0@(0-1),1@(0-1)", NULL};
	struct soft_rnic_params params = {
		.device = "net_ring_fixture",
		.mtu = 1500,
		.address = {.family = 4},
		.prefix = 24,
		.queues = queues,
	};
	char error[256], name[16];

	*f = (struct fixture){.memory = memory, .size = size};
	cr_assert_geq(rte_eal_init(9, argv), 0);
	for (uint16_t q = 0; q < queues; q++) {
		snprintf(name, sizeof(name), "in%u", q);
		f->in[q] = rte_ring_create(name, FIXTURE_RING, SOCKET_ID_ANY, RING_F_EXACT_SZ);
		snprintf(name, sizeof(name), "out%u", q);
		f->out[q] = rte_ring_create(name, room[q], SOCKET_ID_ANY, RING_F_EXACT_SZ);
		cr_assert(f->in[q] != NULL && f->out[q] != NULL);
	}
	f->pool = rte_pktmbuf_pool_create("peer", 2 * FIXTURE_RING - 1, 0, 0,
					  RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	cr_assert(f->pool != NULL);
	cr_assert_geq(rte_eth_from_rings("fixture", f->in, queues, f->out, queues, 0), 0);
	inet_pton(AF_INET6, "::ffff:10.9.0.11", &params.address.addr);
	f->rnic = soft_rnic_create(&params, error, sizeof(error));
	cr_assert(f->rnic != NULL, "%s", error);
}

/* Connects one more queue pair, whose packets go by queue <spread>. */
static inline struct fixture_qp *fixture_connect(struct fixture *f, uint32_t spread,
						 uint8_t ack_timeout, uint8_t retry_limit)
{
	struct rnic_span span = {.va = (uintptr_t)f->memory, .length = f->size, .dmabuf_fd = -1};
	struct fixture_qp *q = &f->qp[f->n];
	struct rnic_qp_params params = {
		.writable = span,
		.sendable = span,
		.wqe_count = 64,
		.psn = FIXTURE_PSN,
		.spread = spread,
		.failed = &q->failed,
	};
	struct rnic_peer peer = {
		.address = {.family = 4},
		.qpn = FIXTURE_QPN + f->n,
		.psn = 9,
		.path_mtu = FIXTURE_MTU,
		.ack_timeout = ack_timeout,
		.retry_limit = retry_limit,
	};
	struct roce_path_spec spec;

	f->n++;
	q->qp = f->rnic->ops->create(f->rnic, &params);
	cr_assert(q->qp != NULL);
	q->queue = q->qp->queue;
	inet_pton(AF_INET6, "::ffff:10.9.0.77", &peer.address.addr);
	cr_assert_eq(f->rnic->ops->connect(q->qp, &peer), 0);
	spec = writer_path("10.9.0.77", fixture_mac, "10.9.0.11",
			   ((struct soft_rnic *)f->rnic)->port.mac, q->qp->number, FIXTURE_MTU);
	roce_path_init(&q->back, &spec);
	return q;
}

static inline void fixture_end(struct fixture *f)
{
	for (uint32_t i = 0; i < f->n; i++)
		f->rnic->ops->destroy(f->qp[i].qp);
	f->rnic->ops->close(f->rnic);
}

/* Posts a WRITE of <length> bytes. */
static inline void fixture_post(struct fixture *f, struct fixture_qp *q, uint32_t length)
{
	struct mlx5_write w = {
		.remote_address = 0x1000,
		.local_address = (uintptr_t)f->memory,
		.rkey = 1,
		.lkey = q->qp->lkey,
		.length = length,
		.signal = true,
	};

	mlx5_wqe_build(&q->queue, 0, &w);
	mlx5_ring(&q->queue, 1);
}

static inline struct rte_mbuf *fixture_packet(struct fixture *f)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(f->pool);

	cr_assert(m != NULL);
	return m;
}

static inline void fixture_deliver(struct fixture *f, struct rte_mbuf *m, uint32_t length)
{
	m->data_len = m->pkt_len = length;
	cr_assert_eq(rte_ring_enqueue(f->in[0], m), 0);
}

static inline void fixture_acknowledge(struct fixture *f, const struct fixture_qp *q, uint32_t psn)
{
	struct rte_mbuf *m = fixture_packet(f);

	fixture_deliver(f, m,
			roce_ack_build(rte_pktmbuf_mtod(m, uint8_t *), &q->back, psn,
				       ROCE_CREDITS_UNUSED, psn - FIXTURE_PSN + 1));
}

/* The next packet of queue <queue> that belongs to a queue pair: <psn> gets its number. Questions
 * for our address are answered. NULL: there is none. */
static inline struct fixture_qp *fixture_take(struct fixture *f, uint16_t queue, uint32_t *psn)
{
	struct fixture_qp *found = NULL;
	struct roce_packet p;
	struct roce_frame at;
	struct rte_mbuf *m;

	while (found == NULL && rte_ring_dequeue(f->out[queue], (void **)&m) == 0) {
		const uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);

		if (writer_is_arp(frame)) {
			struct rte_mbuf *answer = fixture_packet(f);

			fixture_deliver(f, answer,
					writer_answer_arp(frame, fixture_mac,
							  rte_pktmbuf_mtod(answer, uint8_t *)));
		} else if (frame_locate(frame, m->pkt_len, &at) == FRAME_ROCE &&
			   roce_parse(frame + at.bth_offset, at.bth_length, &p) == ROCE_PARSED &&
			   p.qpn - FIXTURE_QPN < f->n) {
			found = &f->qp[p.qpn - FIXTURE_QPN];
			*psn = p.psn;
		}
		rte_pktmbuf_free(m);
	}
	return found;
}

/* Waits for packet <psn> of the queue pair. Others are taken and not acknowledged. */
static inline void fixture_await(struct fixture *f, const struct fixture_qp *q, uint32_t psn)
{
	struct fixture_qp *from;
	uint32_t n = psn + 1;

	do {
		from = fixture_take(f, 0, &n);
		if (from == NULL)
			rte_pause();
	} while (from != q || n != psn);
}

static inline uint32_t fixture_unacked(const struct fixture_qp *q)
{
	const volatile struct requester *rq = &((const struct soft_qp *)q->qp)->requester;

	return roce_psn_diff(rq->next_psn, rq->una_psn);
}

/* Waits until all that was sent is acknowledged. */
static inline void fixture_await_acknowledged(const struct fixture_qp *q)
{
	while (fixture_unacked(q) > 0)
		rte_pause();
}

#endif
