/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receiver's process: the agent's software RNIC, or, to find the requester's limit, a thread
 * that reads headers, acknowledges, and leaves payloads alone. A control thread answers orders.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_launch.h>
#include <rte_malloc.h>

#include "runtime/data_room.h"
#include "runtime/port.h"
#include "rdma/rdma.h"
#include "rdma/responder.h"
#include "rnic/soft_rnic.h"
#include "runtime/txq.h"
#include "common/wire_child.h"

#define MEMORY_MB   112
#define DESCRIPTORS 1024
#define PACKETS     4095
#define SMALL       1023
#define SMALL_ROOM  (RTE_PKTMBUF_HEADROOM + 128)
#define WQES        64
#define LCORE       1
#define RKEY        0x4321u
#define QPN         0x11u
#define SLOTS_BYTES ((uint64_t)RDMA_SLOTS * RDMA_PATH_MTU)

/* A receiver that only acknowledges. Owner: its thread; others read the counters. */
struct acker {
	struct port port;
	struct txq tx;
	struct rte_mempool *packets, *small;
	struct roce_path path;
	struct responder responder;
	uint64_t busy;
	uint64_t unwanted;
	int stop; /* atomic */
};

struct receiver {
	const struct rdma_wire *w;
	char device[160];
	uint8_t *slots;
	clockid_t clock; /* of the thread that receives */
	struct rnic *rnic;
	struct rnic_qp *qp;
	struct acker acker;
};

/* --- acknowledgements only -----------------------------------------------------------------------
 */

static struct rte_mbuf *new_packet(struct acker *a)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(a->small);

	if (m == NULL || txq_room(&a->tx) == 0)
		wire_die("no room for what is sent");
	txq_push(&a->tx, m);
	return m;
}

static void acker_take(struct acker *a, const struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	const uint8_t *bth = frame + ROCE_ETHER_LENGTH + 28;
	struct responder_placement at;
	struct roce_packet p;

	if (unlikely(writer_is_arp(frame))) {
		struct rte_mbuf *answer = new_packet(a);
		int length = writer_answer_arp(frame, rdma_receiver_mac,
					       rte_pktmbuf_mtod(answer, uint8_t *));

		answer->data_len = answer->pkt_len = RTE_MAX(length, 0);
		return;
	}
	if (m->nb_segs != 1 || roce_parse(bth, m->data_len - (bth - frame), &p) != ROCE_PARSED ||
	    p.qpn != QPN || responder_receive(&a->responder, &p, &at) != RESPONDER_ACCEPT)
		a->unwanted++;
}

static void acknowledge(struct acker *a)
{
	struct rte_mbuf *m;
	uint32_t psn, msn;
	uint8_t syndrome;

	if (!responder_ack_due(&a->responder, &psn, &syndrome, &msn))
		return;
	m = new_packet(a);
	m->data_len = m->pkt_len =
		roce_ack_build(rte_pktmbuf_mtod(m, uint8_t *), &a->path, psn, syndrome, msn);
}

static bool acker_turn(struct acker *a)
{
	struct rte_mbuf *packet[RDMA_BURST];
	unsigned int n = 0;

	if (txq_room(&a->tx) > 2 * RDMA_BURST)
		n = rte_eth_rx_burst(a->port.id, 0, packet, RDMA_BURST);
	for (unsigned int i = 0; i < n; i++)
		acker_take(a, packet[i]);
	rte_pktmbuf_free_bulk(packet, n);
	acknowledge(a);
	return (a->tx.n > 0 && txq_flush(&a->tx) > 0) || n > 0;
}

static int acker_loop(void *acker)
{
	struct acker *a = acker;

	while (!__atomic_load_n(&a->stop, __ATOMIC_RELAXED)) {
		uint64_t begin = rte_rdtsc();

		if (acker_turn(a))
			a->busy += rte_rdtsc() - begin;
	}
	return 0;
}

static void acker_start(struct receiver *r)
{
	struct acker *a = &r->acker;
	struct port_params p = {
		.device = r->device,
		.queues = 1,
		.rx_descriptors = DESCRIPTORS,
		.tx_descriptors = DESCRIPTORS,
		.mtu = RDMA_MTU,
		.pool = &a->packets,
	};
	struct roce_path_spec path = writer_path(RDMA_RECEIVER, rdma_receiver_mac, RDMA_SENDER,
						 rdma_sender_mac, RDMA_SENDER_QPN, RDMA_PATH_MTU);
	struct rdma_region region = {
		.va = (uint64_t)(uintptr_t)r->slots, .length = SLOTS_BYTES, .rkey = RKEY};
	char error[512];

	a->packets = rdma_pool("packets", PACKETS, port_data_room(RDMA_MTU));
	a->small = rdma_pool("small", SMALL, SMALL_ROOM);
	if (port_open(&a->port, &p, error, sizeof(error)) < 0)
		wire_die("%s", error);
	a->tx.port = a->port.id;
	roce_path_init(&a->path, &path);
	responder_init(&a->responder, &region, RDMA_PATH_MTU, RDMA_SENDER_PSN);
	if (rte_eal_remote_launch(acker_loop, a, LCORE) != 0)
		wire_die("the receiving thread does not start");
}

/* --- the software RNIC ---------------------------------------------------------------------------
 */

static struct rnic_address address(const char *text)
{
	struct roce_path_spec path =
		writer_path(text, rdma_receiver_mac, text, rdma_receiver_mac, 0, 0);

	return (struct rnic_address){.family = 4, .addr = path.source};
}

static void rnic_start(struct receiver *r)
{
	struct soft_rnic_params params = {
		.device = r->device,
		.mtu = RDMA_MTU,
		.address = address(RDMA_RECEIVER),
		.prefix = 24,
	};
	struct rnic_span slots = {
		.va = (uint64_t)(uintptr_t)r->slots, .length = SLOTS_BYTES, .dmabuf_fd = -1};
	struct rnic_qp_params qp = {
		.writable = slots,
		.sendable = slots,
		.wqe_count = WQES,
		.psn = RDMA_RECEIVER_PSN,
	};
	struct rnic_peer peer = {
		.address = address(RDMA_SENDER),
		.qpn = RDMA_SENDER_QPN,
		.psn = RDMA_SENDER_PSN,
		.path_mtu = RDMA_PATH_MTU,
	};
	char error[512];

	r->rnic = soft_rnic_create(&params, error, sizeof(error));
	if (r->rnic == NULL)
		wire_die("%s", error);
	r->qp = r->rnic->ops->create(r->rnic, &qp);
	if (r->qp == NULL || r->rnic->ops->connect(r->qp, &peer) < 0)
		wire_die("no queue pair");
}

/* --- orders --------------------------------------------------------------------------------------
 */

static void count(const struct receiver *r, struct rdma_answer *a)
{
	struct soft_rnic_stats s = {0};

	a->tsc = rte_rdtsc();
	if (r->rnic != NULL) {
		soft_rnic_stats_read(r->rnic, &s);
		a->busy = s.busy;
		a->writes = s.writes_placed;
		a->unwanted = s.dropped + s.naks_sent;
	} else {
		a->busy = r->acker.busy;
		a->writes = r->acker.responder.stats.packets;
		a->unwanted = r->acker.unwanted;
	}
	a->cpu_ns = wire_cpu_ns(r->clock);
}

static int verify(const struct receiver *r, const struct rdma_order *order)
{
	for (uint64_t i = order->first; i < order->first + order->count; i++)
		if (!payload_is(r->slots + i % RDMA_SLOTS * RDMA_PATH_MTU, order->length, i))
			return -EBADMSG;
	return 0;
}

static int read_clock(void *clock)
{
	return pthread_getcpuclockid(pthread_self(), clock);
}

static void start(struct receiver *r, struct rdma_answer *ready)
{
	snprintf(r->device, sizeof(r->device),
		 "net_memif_rnic,role=server,mac=02:00:00:00:00:f1," RDMA_DEVICE, r->w->o->socket);
	r->slots = rte_zmalloc("slots", SLOTS_BYTES, RDMA_PATH_MTU);
	if (r->slots == NULL)
		wire_die("no memory to write to");
	rte_eal_remote_launch(read_clock, &r->clock, LCORE);
	rte_eal_wait_lcore(LCORE);
	if (r->w->acks_only)
		acker_start(r);
	else
		rnic_start(r);
	*ready = (struct rdma_answer){
		.qpn = r->qp != NULL ? r->qp->number : QPN,
		.rkey = r->qp != NULL ? r->qp->rkey : RKEY,
		.va = (uint64_t)(uintptr_t)r->slots,
	};
}

void rdma_receiver_main(const void *wire, int socket)
{
	static struct receiver r;
	struct rdma_answer a;
	struct rdma_order order;

	r.w = wire;
	rdma_start_eal(r.w->o, "rdma-receiver", RDMA_NO_CPU, r.w->o->receiver_cpu, MEMORY_MB);
	start(&r, &a);
	while (send(socket, &a, sizeof(a), MSG_NOSIGNAL) == sizeof(a) &&
	       recv(socket, &order, sizeof(order), 0) == sizeof(order) && order.kind != RDMA_END) {
		a = (struct rdma_answer){0};
		if (order.kind == RDMA_VERIFY)
			a.status = verify(&r, &order);
		count(&r, &a);
	}
	/* The thread and the port end with the process: the driver may still use them. */
}
