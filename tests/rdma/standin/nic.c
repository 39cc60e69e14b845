/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The NIC: a thread that sees doorbells, reads records and WQEs, hands them to the network, and
 * writes CQEs. Formats by rdma-core's structs.
 */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "standin_private.h"

/* WQEs of a queue pair per look at it. */
#define BURST 64
/* Looks without work before the thread gives up its CPU for some microseconds: a store to memory
 * raises no event. */
#define IDLE_LOOKS 2000
#define IDLE_NS    20000

static void count(uint64_t *counter)
{
	__atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
}

static void wrong(const struct standin_qp *qp, const char *what)
{
	if (standin_counters.wrong == 0)
		snprintf(standin_wrong, sizeof(standin_wrong), "QP %#x, WQE %u: %s",
			 qp->base.qp_num, qp->next, what);
	count(&standin_counters.wrong);
}

/* --- memory -------------------------------------------------------------------------------------
 */

void (*standin_copy)(void *to, const void *from, size_t size);

void standin_copy_bytes(void *to, const void *from, size_t size)
{
	if (standin_copy != NULL)
		standin_copy(to, from, size);
	else
		memcpy(to, from, size);
}

void standin_place(uint8_t *to, const uint8_t *from, size_t length)
{
	size_t first = length > sizeof(uint64_t) ? length - sizeof(uint64_t) : 0;
	uint64_t mark;

	if (first > 0)
		standin_copy_bytes(to, from, first);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	if (standin_copy == NULL && length - first == sizeof(mark) &&
	    ((uintptr_t)to + first) % sizeof(mark) == 0) {
		memcpy(&mark, from + first, sizeof(mark));
		__atomic_store_n((uint64_t *)(to + first), mark, __ATOMIC_RELEASE);
	} else {
		standin_copy_bytes(to + first, from + first, length - first);
	}
}

/* --- CQEs ---------------------------------------------------------------------------------------
 */

/* The owner of a queue that overflows loses it, and is told by an event only. */
static bool overflows(struct standin_cq *cq)
{
	uint32_t consumer = be32toh(__atomic_load_n(&cq->record[0], __ATOMIC_ACQUIRE));

	if (((cq->producer - consumer) & 0xffffff) < cq->count)
		return false;
	count(&standin_counters.overruns);
	cq->lost = true;
	standin_event(IBV_EVENT_CQ_ERR, &cq->base);
	return true;
}

/* Write <what>, of which the last byte is an opcode only. False: the queue has overflown. */
static bool put_cqe(struct standin_qp *qp, struct standin_cq *cq, struct mlx5_cqe64 what)
{
	struct mlx5_cqe64 *cqe;
	uint8_t owner;

	pthread_mutex_lock(&cq->lock);
	if (cq->lost || overflows(cq)) {
		pthread_mutex_unlock(&cq->lock);
		qp->base.state = IBV_QPS_ERR;
		return false;
	}
	cqe = (void *)(cq->buffer + (size_t)((cq->producer & (cq->count - 1)) + 1) * cq->size -
		       sizeof(*cqe));
	owner = (cq->producer & cq->count) != 0;
	/* All of it before the last byte. */
	memcpy(cqe, &what, sizeof(*cqe) - 1);
	__atomic_store_n(&cqe->op_own, (uint8_t)(what.op_own << 4 | owner), __ATOMIC_RELEASE);
	cq->producer++;
	if (cq->armed && cq->producer != cq->armed_at) {
		cq->armed = false;
		standin_raise(cq);
	}
	pthread_mutex_unlock(&cq->lock);
	count(&standin_counters.cqes);
	return true;
}

/* Fields without a meaning are garbage. */
static struct mlx5_cqe64 new_cqe(const struct standin_qp *qp, uint8_t send_opcode)
{
	struct mlx5_cqe64 cqe;

	memset(&cqe, 0x5a, sizeof(cqe));
	cqe.sop_drop_qpn = htobe32((uint32_t)send_opcode << 24 | qp->base.qp_num);
	return cqe;
}

static void write_cqe(struct standin_qp *qp, uint16_t index, uint8_t send_opcode, uint8_t syndrome)
{
	struct mlx5_cqe64 cqe = new_cqe(qp, send_opcode);

	cqe.wqe_counter = htobe16(index);
	cqe.op_own = syndrome == 0 ? MLX5_CQE_REQ : MLX5_CQE_REQ_ERR;
	if (syndrome != 0)
		((struct mlx5_err_cqe *)&cqe)->syndrome = syndrome;
	put_cqe(qp, STANDIN_OF(standin_cq, qp->base.send_cq), cqe);
}

void standin_received(struct standin_qp *qp, uint32_t imm, uint32_t length)
{
	struct mlx5_cqe64 cqe = new_cqe(qp, 0);

	cqe.imm_inval_pkey = htobe32(imm);
	cqe.byte_cnt = htobe32(length);
	cqe.op_own = MLX5_CQE_RESP_WR_IMM;
	__atomic_sub_fetch(&qp->receives, 1, __ATOMIC_RELAXED);
	put_cqe(qp, STANDIN_OF(standin_cq, qp->base.recv_cq), cqe);
}

void standin_done(struct standin_qp *qp, const struct standin_work *work, uint8_t syndrome)
{
	if (syndrome != 0)
		standin_fail(qp);
	if (syndrome != 0 || work->signal)
		write_cqe(qp, work->index, work->opcode, syndrome);
}

void standin_fail(struct standin_qp *qp)
{
	__atomic_store_n(&qp->base.state, IBV_QPS_ERR, __ATOMIC_RELAXED);
}

void standin_break(uint32_t qpn)
{
	standin_lock();
	standin_fail(standin_qp_find(qpn));
	standin_unlock();
}

/* --- WQEs ---------------------------------------------------------------------------------------
 */

/* Where the WQE's bytes are sent from must be memory of the program. */
static uint8_t check_local(const struct standin_qp *qp, const struct mlx5_wqe_data_seg *data,
			   struct standin_work *w)
{
	const struct standin_mr *mr = standin_mr_find(be32toh(data->lkey));

	w->length = be32toh(data->byte_count);
	w->local = be64toh(data->addr);
	if (w->length == 0 || w->length >> 31 != 0)
		return MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR;
	if (mr == NULL || w->local < mr->iova || w->local - mr->iova > mr->base.length ||
	    w->length > mr->base.length - (w->local - mr->iova))
		return MLX5_CQE_SYNDROME_LOCAL_PROT_ERR;
	return 0;
}

/* Read the WQE at qp->next. 0, or the syndrome that it fails with. */
static uint8_t read_wqe(struct standin_qp *qp, struct standin_work *w)
{
	const uint8_t *wqe = qp->sq + (size_t)(qp->next & (qp->count - 1)) * WQEBB;
	const struct mlx5_wqe_ctrl_seg *control = (const void *)wqe;
	const struct mlx5_wqe_raddr_seg *remote = (const void *)(wqe + 16);
	uint32_t first = be32toh(control->opmod_idx_opcode), second = be32toh(control->qpn_ds);

	*w = (struct standin_work){
		.remote = be64toh(remote->raddr),
		.rkey = be32toh(remote->rkey),
		.imm = be32toh(control->imm),
		.index = qp->next,
		.opcode = first & 0xff,
		.with_imm = (first & 0xff) == MLX5_OPCODE_RDMA_WRITE_IMM,
		.signal = (control->fm_ce_se & MLX5_WQE_CTRL_CQ_UPDATE) != 0,
	};
	if ((first >> 8 & 0xffff) != qp->next || second >> 8 != qp->base.qp_num) {
		wrong(qp, "its index or queue pair is another one's");
		return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
	}
	if ((w->opcode != MLX5_OPCODE_RDMA_WRITE && !w->with_imm) || remote->reserved != 0 ||
	    control->signature != 0) {
		wrong(qp, "no RDMA WRITE");
		return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
	}
	switch (second & 0x3f) {
	case 2:
		return 0;
	case 3:
		return check_local(qp, (const void *)(wqe + 32), w);
	default:
		wrong(qp, "no WRITE with one segment or none");
		return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
	}
}

/* --- doorbells ----------------------------------------------------------------------------------
 */

/* The record has the position; a doorbell may only say what the record says already. */
static void hear(struct standin_qp *qp)
{
	uint64_t bell = __atomic_load_n(qp->reg->at, __ATOMIC_ACQUIRE);
	uint16_t producer;
	uint32_t words[2];

	if (qp->by_owner && bell == qp->rung)
		return;
	producer = (uint16_t)be32toh(__atomic_load_n(&qp->record[1], __ATOMIC_ACQUIRE));
	if (!qp->by_owner) {
		qp->producer = producer;
		return;
	}
	qp->rung = bell;
	memcpy(words, &bell, sizeof(words));
	if (be32toh(words[1]) >> 8 != qp->base.qp_num) {
		/* With a register of its own, no other queue pair's doorbell comes here. */
		if (qp->reg != standin_shared_register())
			wrong(qp, "a doorbell for another queue pair");
		return;
	}
	count(&standin_counters.doorbells);
	if ((uint16_t)(producer - (uint16_t)(be32toh(words[0]) >> 8)) > qp->count)
		wrong(qp, "the doorbell came before its record");
	if ((uint16_t)(producer - qp->next) > qp->count)
		wrong(qp, "more WQEs than the queue has");
	qp->producer = producer;
}

/* Everything that is posted to a broken queue pair comes back at once. */
static unsigned int flush(struct standin_qp *qp)
{
	unsigned int n = 0;

	for (; qp->next != qp->producer; qp->next++, n++)
		write_cqe(qp, qp->next, 0, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	return n;
}

static unsigned int serve(struct standin_qp *qp)
{
	unsigned int n = 0;
	struct standin_work work;
	uint8_t syndrome;

	if (qp->base.state != IBV_QPS_RTS && qp->base.state != IBV_QPS_ERR)
		return 0;
	hear(qp);
	if (qp->net != NULL)
		n = standin_net.poll(qp);
	for (; qp->next != qp->producer && n < BURST && qp->base.state == IBV_QPS_RTS; n++) {
		syndrome = read_wqe(qp, &work);
		if (syndrome == 0 && !standin_net.send(qp, &work))
			break;
		qp->next++;
		count(&standin_counters.wqes);
		if (syndrome != 0)
			standin_done(qp, &work, syndrome);
	}
	if (qp->base.state == IBV_QPS_ERR)
		n += flush(qp);
	return n;
}

static void back_off(unsigned int idle)
{
	const struct timespec some = {.tv_nsec = IDLE_NS};

	if (idle < IDLE_LOOKS)
		sched_yield();
	else
		nanosleep(&some, NULL);
}

void *standin_nic(void *unused)
{
	unsigned int idle = 0, n;

	while (!__atomic_load_n(&standin.stop, __ATOMIC_ACQUIRE)) {
		n = 0;
		standin_lock();
		for (unsigned int i = 0; i < STANDIN_QPS; i++)
			if (standin.qp[i] != NULL && !standin.removed)
				n += serve(standin.qp[i]);
		standin_unlock();
		if (n > 0)
			idle = 0;
		else
			back_off(idle++);
	}
	return NULL;
}
