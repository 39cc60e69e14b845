/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The send side of the software RNIC: doorbell rings, WQEs are read and checked as a NIC checks
 * them, their bytes leave as packets; when the peer has acknowledged a WQE, its CQE is written.
 */
#include <endian.h>

#include <rte_cycles.h>

#include "soft_rnic_private.h"

/* Packets built per queue pair and turn, so that one cannot starve the others. */
#define BURST 64

static void write_cqe(struct soft_qp *qp, uint16_t index, uint8_t opcode, uint8_t syndrome)
{
	struct mlx5_cqe *cqe = &qp->cqes[qp->cq_index & (qp->params.wqe_count - 1)];
	uint8_t owner = (qp->cq_index & qp->params.wqe_count) != 0;

	cqe->opcode_qpn = htobe32(qp->qpn);
	cqe->wqe_counter = htobe16(index);
	cqe->syndrome = syndrome;
	/* The owner bit makes it valid: last, and after the rest. */
	__atomic_store_n(&cqe->op_own, (uint8_t)(opcode << 4 | owner), __ATOMIC_RELEASE);
	qp->cq_index++;
	qp->rnic->stats.cqes++;
}

/* An error ends the queue pair, as on hardware: everything posted later is flushed. */
static void fail(struct soft_qp *qp, uint16_t index, uint8_t syndrome)
{
	if (qp->dead)
		return;
	qp->dead = true;
	write_cqe(qp, index, MLX5_POST_CQE_ERROR, syndrome);
	if (qp->params.wqes_dead != NULL)
		__atomic_store_n(qp->params.wqes_dead, 1, __ATOMIC_RELEASE);
	if (qp->params.wake != NULL)
		sleeper_wake(qp->params.wake);
}

struct work {
	uint64_t remote, local;
	uint32_t rkey, length, imm;
	uint16_t index;
	bool with_imm, signal;
};

/* Read a WQE. Returns the syndrome it fails with, 0 when it is good. */
static uint8_t decode(const struct soft_qp *qp, struct work *w)
{
	const struct mlx5_wqe *wqe = &qp->wqes[qp->next & (qp->params.wqe_count - 1)];
	const struct soft_qp_local *l = &qp->params.sendable;
	uint32_t control = be32toh(wqe->opmod_index_opcode), qpn_ds = be32toh(wqe->qpn_ds);
	uint8_t opcode = control & 0xff;

	if ((opcode != MLX5_OP_RDMA_WRITE && opcode != MLX5_OP_RDMA_WRITE_IMM) ||
	    (uint16_t)(control >> 8) != qp->next || qpn_ds >> 8 != qp->qpn)
		return MLX5_SYNDROME_LOCAL_OPERATION;
	*w = (struct work){
		.remote = be64toh(wqe->remote_address),
		.rkey = be32toh(wqe->rkey),
		.imm = be32toh(wqe->imm),
		.index = qp->next,
		.with_imm = opcode == MLX5_OP_RDMA_WRITE_IMM,
		.signal = (wqe->fm_ce_se & MLX5_CE_ALWAYS) != 0,
	};
	switch (qpn_ds & 0x3f) {
	case 2: /* control and remote address: a message without data */
		return 0;
	case 3:
		w->length = be32toh(wqe->byte_count);
		w->local = be64toh(wqe->local_address);
		break;
	default:
		return MLX5_SYNDROME_LOCAL_OPERATION;
	}
	if (w->length == 0 || w->length >> 31 != 0)
		return MLX5_SYNDROME_LOCAL_OPERATION;
	if (be32toh(wqe->lkey) != l->lkey || w->local < l->va || w->local - l->va > l->length ||
	    w->length > l->length - (w->local - l->va))
		return MLX5_SYNDROME_LOCAL_PROTECTION;
	return 0;
}

/* One packet of the current WQE. False when memory or the window is out. */
static bool send_piece(struct soft_qp *qp, const struct work *w)
{
	uint32_t payload = RTE_MIN(w->length - qp->offset, qp->path.mtu);
	struct rte_mbuf *m;

	if (!requester_room(&qp->requester, 1) || qp->rnic->held >= SOFT_HOLD_MAX)
		return false;
	m = rte_pktmbuf_alloc(qp->rnic->packets);
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

static void finish(struct soft_qp *qp, const struct work *w)
{
	qp->sent[qp->sent_tail++ & (qp->params.wqe_count - 1)] = (struct soft_sent){
		.end_psn = qp->requester.next_psn,
		.index = w->index,
		.signal = w->signal,
	};
	qp->offset = 0;
	qp->next++;
	qp->rnic->stats.wqes++;
}

unsigned int soft_send_poll(struct soft_qp *qp)
{
	uint64_t bell = __atomic_load_n(qp->doorbell, __ATOMIC_ACQUIRE);
	unsigned int packets = 0;
	struct work w;
	uint8_t syndrome;

	if (bell != qp->rung) {
		qp->rung = bell;
		/* The record counts, the bell only says "look" (as a NIC treats it). */
		qp->producer = be32toh(__atomic_load_n(&qp->record[1], __ATOMIC_ACQUIRE));
	}
	if (qp->next == qp->producer || !qp->resolved || qp->dead)
		return 0;
	while (qp->next != qp->producer && packets < BURST) {
		syndrome = decode(qp, &w);
		if (syndrome != 0) {
			fail(qp, qp->next, syndrome);
			break;
		}
		do {
			if (!send_piece(qp, &w))
				return packets;
			packets++;
		} while (qp->offset < w.length && packets < BURST);
		if (qp->offset == w.length)
			finish(qp, &w);
	}
	return packets;
}

void soft_send_acked(struct soft_qp *qp)
{
	while (qp->sent_head != qp->sent_tail) {
		const struct soft_sent *s = &qp->sent[qp->sent_head & (qp->params.wqe_count - 1)];

		if (roce_psn_diff(s->end_psn, qp->requester.una_psn) > 0)
			break;
		if (s->signal)
			write_cqe(qp, s->index, MLX5_POST_CQE_OK, 0);
		qp->sent_head++;
	}
}

static uint8_t syndrome_of(const struct requester *rq)
{
	if (rq->error == REQUESTER_RETRY_EXCEEDED)
		return MLX5_SYNDROME_RETRY_EXCEEDED;
	switch (rq->nak) {
	case ROCE_NAK_REMOTE_ACCESS:
		return MLX5_SYNDROME_REMOTE_ACCESS;
	case ROCE_NAK_REMOTE_OPERATION:
		return MLX5_SYNDROME_REMOTE_OPERATION;
	default:
		return MLX5_SYNDROME_REMOTE_INVALID;
	}
}

void soft_send_check(struct soft_qp *qp, uint64_t now)
{
	uint16_t index;

	requester_poll(&qp->requester, now);
	if (likely(qp->requester.error == REQUESTER_OK && !qp->responder.error))
		return;
	index = qp->sent_head != qp->sent_tail
			? qp->sent[qp->sent_head & (qp->params.wqe_count - 1)].index
			: qp->next;
	fail(qp, index,
	     qp->requester.error == REQUESTER_OK ? MLX5_SYNDROME_FLUSHED
						 : syndrome_of(&qp->requester));
}
