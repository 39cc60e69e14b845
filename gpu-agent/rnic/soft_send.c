/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The send side of the software RNIC: it sends WQEs as packets, and writes a WQE's CQE when the
 * peer has acknowledged it.
 */
#include <rte_cycles.h>

#include "rnic/soft_rnic_private.h"
#include "rnic/soft_syndrome.h"

/* Packets built per queue pair and poll, so that one queue pair cannot starve the others. */
#define BURST 64

static void soft_send_report(struct soft_qp *qp, uint16_t index, uint8_t opcode, uint8_t syndrome)
{
	send_queue_report(&qp->sq, index, opcode, syndrome);
	soft_rnic_of(qp)->stats.cqes++;
}

/* An error ends the queue pair, as on hardware: everything posted later is flushed. */
static void soft_send_fail(struct soft_qp *qp, uint16_t index, uint8_t syndrome)
{
	if (qp->dead)
		return;
	qp->dead = true;
	/* It sends nothing any more, and others need the packets. */
	requester_fini(&qp->requester);
	soft_send_report(qp, index, MLX5_POST_CQE_ERROR, syndrome);
	rnic_qp_report_failure(&qp->params);
}

/* May one packet more wait for its acknowledgement? */
static bool may_hold(const struct soft_qp *qp)
{
	uint32_t held = soft_rnic_of(qp)->held;

	return held < SOFT_HOLD_MAX && requester_unacked(&qp->requester) < SOFT_HOLD_MAX - held;
}

/* Send one packet of the current WQE. False when there is no memory, or the window is full. */
static bool send_piece(struct soft_qp *qp, const struct send_work *w)
{
	uint32_t payload = RTE_MIN(w->length - qp->offset, qp->path.mtu);
	struct rte_mbuf *m;

	if (!requester_room(&qp->requester, 1) || !may_hold(qp))
		return false;
	m = rte_pktmbuf_alloc(soft_rnic_of(qp)->packets);
	if (m == NULL)
		return false;
	/* This copy is the NIC's DMA read. */
	if (payload > 0)
		memcpy(rte_pktmbuf_mtod(m, void *),
		       (const void *)(uintptr_t)(w->local + qp->offset), payload);
	m->data_len = m->pkt_len = payload;
	if (requester_write_piece(&qp->requester, m, qp->offset, w->length, w->remote, w->rkey,
				  w->imm,
				  REQUESTER_ACK_REQUEST | (w->with_imm ? REQUESTER_IMM : 0)) < 0) {
		rte_pktmbuf_free(m);
		return false;
	}
	qp->offset += payload;
	return true;
}

static void soft_send_finish(struct soft_qp *qp, const struct send_work *w)
{
	qp->sent[qp->sent_tail++ & (qp->sq.count - 1)] = (struct soft_sent){
		.end_psn = qp->requester.next_psn,
		.index = w->index,
		.signal = w->signal,
	};
	qp->offset = 0;
	qp->sq.next++;
	soft_rnic_of(qp)->stats.wqes++;
}

unsigned int soft_send_poll(struct soft_qp *qp)
{
	unsigned int packets = 0;
	struct send_work w;
	uint8_t syndrome;

	if (!send_queue_update(&qp->sq) || !qp->resolved || qp->dead)
		return 0;
	while (qp->sq.next != qp->sq.producer && packets < BURST) {
		syndrome = send_queue_read(&qp->sq, &qp->params.sendable, qp->base.lkey, &w);
		if (syndrome != 0) {
			soft_send_fail(qp, qp->sq.next, syndrome);
			break;
		}
		do {
			if (!send_piece(qp, &w))
				return packets;
			packets++;
		} while (qp->offset < w.length && packets < BURST);
		if (qp->offset == w.length)
			soft_send_finish(qp, &w);
	}
	return packets;
}

void soft_send_acked(struct soft_qp *qp)
{
	if (qp->dead)
		return;
	while (qp->sent_head != qp->sent_tail) {
		const struct soft_sent *s = &qp->sent[qp->sent_head & (qp->sq.count - 1)];

		if (roce_psn_diff(s->end_psn, qp->requester.una_psn) > 0)
			break;
		if (s->signal)
			soft_send_report(qp, s->index, MLX5_POST_CQE_OK, 0);
		qp->sent_head++;
	}
}

void soft_send_check(struct soft_qp *qp, uint64_t now)
{
	uint16_t index;

	requester_poll(&qp->requester, now);
	if (likely(qp->requester.error == REQUESTER_OK && !qp->responder.error))
		return;
	index = qp->sent_head != qp->sent_tail ? qp->sent[qp->sent_head & (qp->sq.count - 1)].index
					       : qp->sq.next;
	soft_send_fail(qp, index,
		       qp->requester.error == REQUESTER_OK
			       ? MLX5_SYNDROME_FLUSHED
			       : soft_syndrome(qp->requester.error, qp->requester.nak));
}
