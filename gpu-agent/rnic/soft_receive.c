/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receive side of the software RNIC: WRITEs are checked as on a NIC and placed in memory;
 * acknowledgements retire what was sent. It sends one ACK per queue pair and burst.
 */
#include <rte_cycles.h>
#include <rte_ethdev.h>

#include "rnic/demote.h"
#include "rdma/frame.h"
#include "rnic/soft_rnic_private.h"

#define BURST 32
#define LINE  64

/*
 * Place bytes as a NIC's DMA does: a thread that sees the last word of a cache line sees all of the
 * line, and one that sees a line sees all lines and WRITEs before it. Descriptors are polled by
 * their last word, so the ring depends on this order.
 */
static void place_payload(uint8_t *to, const uint8_t *from, uint32_t length)
{
	uint64_t mark;

	while (length >= LINE && (uintptr_t)to % LINE == 0) {
		memcpy(to, from, LINE - sizeof(mark));
		memcpy(&mark, from + LINE - sizeof(mark), sizeof(mark));
		__atomic_store_n((uint64_t *)(to + LINE - sizeof(mark)), mark, __ATOMIC_RELEASE);
		to += LINE;
		from += LINE;
		length -= LINE;
	}
	if (length == sizeof(mark) && (uintptr_t)to % sizeof(mark) == 0) {
		memcpy(&mark, from, sizeof(mark));
		__atomic_store_n((uint64_t *)to, mark, __ATOMIC_RELEASE);
	} else {
		memcpy(to, from, length);
	}
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

static struct soft_qp *find_connected_qp(struct soft_rnic *rnic, uint32_t qpn)
{
	struct soft_qp *qp = rnic->by_number[qpn % SOFT_RNIC_QPS_MAX];

	return qp != NULL && qp->base.number == qpn && qp->connected ? qp : NULL;
}

static bool receive_roce_write(struct soft_qp *qp, const struct roce_packet *p, const uint8_t *bth)
{
	struct responder_placement at;

	if (responder_receive(&qp->responder, p, &at) != RESPONDER_ACCEPT)
		return false;
	if (p->payload_length > 0) {
		place_payload((uint8_t *)(uintptr_t)at.va, bth + p->payload_offset,
			      p->payload_length);
		if (soft_rnic_of(qp)->params.gpu_reads)
			demote((void *)(uintptr_t)at.va, p->payload_length);
	}
	soft_rnic_of(qp)->stats.writes_placed++;
	return at.last;
}

/* False when the packet is not for one of our queue pairs. */
static bool receive_roce(struct soft_rnic *rnic, const uint8_t *frame, const struct roce_frame *f,
			 uint64_t now, struct soft_qp **to_wake)
{
	const uint8_t *ip = frame + f->ip_offset, *bth = frame + f->bth_offset;
	uint32_t length = f->bth_offset + f->bth_length - f->ip_offset;
	struct roce_packet p;
	struct soft_qp *qp;

	if (roce_parse(bth, f->bth_length, &p) != ROCE_PARSED)
		return false;
	qp = find_connected_qp(rnic, p.qpn);
	if (qp != NULL &&
	    unlikely(qp->direct && qp->resolved && memcmp(frame + 6, qp->path.header, 6) != 0)) {
		qp->strangers++; /* it may be the peer after a move: soft_resolve_poll() asks for
				    its address */
		return false;
	}
	if (qp == NULL || roce_path_admit(&qp->path, ip, f->ip_length, length) != ROCE_ADMITTED)
		return false;
	if (p.opcode == ROCE_CNP) {
		requester_notify(&qp->requester, now);
	} else if (p.opcode == ROCE_ACK) {
		requester_ack(&qp->requester, p.psn, p.syndrome, now);
		soft_send_acked(qp);
	} else {
		if (unlikely(roce_is_marked(ip)))
			responder_marked(&qp->responder, now);
		if (receive_roce_write(qp, &p, bth))
			*to_wake = qp;
	}
	return true;
}

static void receive_frame(struct soft_rnic *rnic, struct rte_mbuf *m, uint64_t now,
			  struct soft_qp **to_wake)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	bool good = false;
	struct roce_frame f;

	switch (frame_locate(frame, m->data_len, &f)) {
	case FRAME_ROCE:
		if (memcmp(frame, rnic->port.mac, 6) == 0)
			good = receive_roce(rnic, frame, &f, now, to_wake);
		break;
	case FRAME_ARP:
		/* The reply is built in the request's mbuf. */
		if (soft_resolve_receive(rnic, m, RTE_ETHER_TYPE_ARP, f.ip_offset, f.l3_length))
			return;
		break;
	case FRAME_ICMP6:
		if (soft_resolve_receive(rnic, m, RTE_ETHER_TYPE_IPV6, f.ip_offset, f.l3_length))
			return;
		break;
	default:
		break;
	}
	rnic->stats.dropped += !good;
	rte_pktmbuf_free(m);
}

static void send_notification(struct soft_rnic *rnic, struct soft_qp *qp)
{
	struct rte_mbuf *m;

	if (!qp->resolved || txq_room(qp->tx) == 0)
		return;
	m = rte_pktmbuf_alloc(rnic->small);
	if (m == NULL)
		return;
	responder_notification_due(&qp->responder);
	m->data_len = m->pkt_len = roce_cnp_build(rte_pktmbuf_mtod(m, uint8_t *), &qp->path);
	txq_push(qp->tx, m);
}

static void send_acknowledgements(struct soft_rnic *rnic)
{
	uint32_t psn, msn;
	uint8_t syndrome;
	struct rte_mbuf *m;

	rnic->acks_wait = false;
	for (unsigned int i = 0; i < rnic->n_qps; i++) {
		struct soft_qp *qp = soft_rnic_qp(rnic, i);

		if (unlikely(qp->responder.notification_due))
			send_notification(rnic, qp);
		if (!qp->responder.ack_due || !qp->resolved)
			continue;
		m = txq_room(qp->tx) == 0 ? NULL : rte_pktmbuf_alloc(rnic->small);
		if (m == NULL) { /* the acknowledgement stays due */
			rnic->acks_wait = true;
			continue;
		}
		responder_ack_due(&qp->responder, &psn, &syndrome, &msn);
		m->data_len = m->pkt_len = roce_ack_build(rte_pktmbuf_mtod(m, uint8_t *), &qp->path,
							  psn, syndrome, msn);
		txq_push(qp->tx, m);
	}
}

unsigned int soft_receive_poll(struct soft_rnic *rnic)
{
	struct rte_mbuf *packet[BURST];
	struct soft_qp *to_wake = NULL;
	uint64_t now = rte_rdtsc();
	bool drained = true;
	unsigned int n = 0;

	for (uint16_t q = 0; q < rnic->port.queues; q++) {
		struct port_queue from = port_queue(&rnic->port, q);
		uint16_t got = rte_eth_rx_burst(from.id, from.queue, packet, BURST);

		drained &= got < BURST;
		for (uint16_t i = 0; i < got; i++)
			receive_frame(rnic, packet[i], now, &to_wake);
		n += got;
	}
	drained_poll(&rnic->drained, now, drained);
	rnic->stats.packets_in += n;
	if (n > 0 || rnic->acks_wait)
		send_acknowledgements(rnic);
	/* All queue pairs of a process share a wake-up: one is enough. */
	if (to_wake != NULL && to_wake->params.wake != NULL)
		sleeper_wake(to_wake->params.wake);
	return n;
}
