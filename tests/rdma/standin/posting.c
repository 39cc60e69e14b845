/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting by verbs, as libmlx5 does it for the proxy of the agent. */
#include <errno.h>
#include <string.h>

#include "standin_private.h"

static void post_one(struct standin_qp *qp, const struct ibv_send_wr *wr)
{
	uint8_t *wqe = qp->sq + (size_t)(qp->posted & (qp->count - 1)) * WQEBB;
	struct mlx5_wqe_ctrl_seg *control = (void *)wqe;
	struct mlx5_wqe_raddr_seg *remote = (void *)(wqe + 16);
	bool imm = wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM, data = wr->num_sge > 0;

	qp->wr_id[qp->posted & (qp->count - 1)] = wr->wr_id;
	mlx5dv_set_ctrl_seg(
		control, qp->posted, imm ? MLX5_OPCODE_RDMA_WRITE_IMM : MLX5_OPCODE_RDMA_WRITE, 0,
		qp->base.qp_num, wr->send_flags & IBV_SEND_SIGNALED ? MLX5_WQE_CTRL_CQ_UPDATE : 0,
		data ? 3 : 2, 0, imm ? wr->imm_data : 0);
	*remote = (struct mlx5_wqe_raddr_seg){.raddr = htobe64(wr->wr.rdma.remote_addr),
					      .rkey = htobe32(wr->wr.rdma.rkey)};
	if (data)
		mlx5dv_set_data_seg((void *)(wqe + 32), wr->sg_list->length, wr->sg_list->lkey,
				    wr->sg_list->addr);
	qp->posted++;
}

int standin_post_send(struct ibv_qp *base, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct standin_qp *qp = STANDIN_OF(standin_qp, base);
	uint32_t words[2];
	uint64_t value;

	for (; wr != NULL; wr = wr->next) {
		uint16_t completed = __atomic_load_n(&qp->completed, __ATOMIC_ACQUIRE);

		if ((uint16_t)(qp->posted - completed) >= qp->count) {
			*bad = wr;
			return ENOMEM;
		}
		post_one(qp, wr);
		__atomic_add_fetch(&standin_counters.posts, 1, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&qp->record[1], htobe32(qp->posted), __ATOMIC_RELEASE);
	words[0] = htobe32((uint32_t)qp->posted << 8);
	words[1] = htobe32(base->qp_num << 8);
	memcpy(&value, words, sizeof(value));
	/* The register may be another queue pair's too: libmlx5 has a lock for it, and a real
	 * register forgets no doorbell, so the NIC looks at the record instead. */
	__atomic_store_n(qp->reg->at, value, __ATOMIC_RELEASE);
	return 0;
}

static enum ibv_wc_status status_of(uint8_t syndrome)
{
	switch (syndrome) {
	case 0:
		return IBV_WC_SUCCESS;
	case MLX5_CQE_SYNDROME_LOCAL_PROT_ERR:
		return IBV_WC_LOC_PROT_ERR;
	case MLX5_CQE_SYNDROME_WR_FLUSH_ERR:
		return IBV_WC_WR_FLUSH_ERR;
	case MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR:
		return IBV_WC_REM_INV_REQ_ERR;
	case MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR:
		return IBV_WC_REM_ACCESS_ERR;
	case MLX5_CQE_SYNDROME_REMOTE_OP_ERR:
		return IBV_WC_REM_OP_ERR;
	case MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR:
		return IBV_WC_RETRY_EXC_ERR;
	default:
		return IBV_WC_LOC_QP_OP_ERR;
	}
}

/* With the fault, the state tells of an error before its completion does. */
static bool is_late(const struct mlx5_cqe64 *cqe)
{
	const struct standin_qp *qp = standin_qp_find(be32toh(cqe->sop_drop_qpn) & 0xffffff);

	return standin_faults.late_errors && qp != NULL && cqe->op_own >> 4 == MLX5_CQE_REQ_ERR &&
	       !__atomic_load_n(&qp->shown, __ATOMIC_ACQUIRE);
}

int standin_post_recv(struct ibv_qp *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct standin_qp *qp = STANDIN_OF(standin_qp, base);

	/* Messages of WRITEs use receives up, and no memory of them. */
	for (; wr != NULL; wr = wr->next)
		__atomic_add_fetch(&qp->receives, 1, __ATOMIC_RELAXED);
	return 0;
}

/* Read one CQE of a message that has come into <wc>. */
static bool receive(struct ibv_wc *wc, const struct mlx5_cqe64 *cqe)
{
	*wc = (struct ibv_wc){
		.status = IBV_WC_SUCCESS,
		.opcode = IBV_WC_RECV_RDMA_WITH_IMM,
		.byte_len = be32toh(cqe->byte_cnt),
		.imm_data = cqe->imm_inval_pkey,
		.qp_num = be32toh(cqe->sop_drop_qpn) & 0xffffff,
		.wc_flags = IBV_WC_WITH_IMM,
	};
	return standin_qp_find(wc->qp_num) != NULL;
}

/* Read one CQE into <wc>. False when its queue pair is gone. */
static bool complete(struct ibv_wc *wc, const struct mlx5_cqe64 *cqe)
{
	uint32_t qpn = be32toh(cqe->sop_drop_qpn) & 0xffffff;
	uint16_t index = be16toh(cqe->wqe_counter);
	struct standin_qp *qp = standin_qp_find(qpn);

	if (qp == NULL)
		return false;
	*wc = (struct ibv_wc){
		.wr_id = qp->wr_id[index & (qp->count - 1)],
		.status = cqe->op_own >> 4 == MLX5_CQE_REQ_ERR
				  ? status_of(((const struct mlx5_err_cqe *)cqe)->syndrome)
				  : IBV_WC_SUCCESS,
		.opcode = IBV_WC_RDMA_WRITE,
		.qp_num = qpn,
	};
	__atomic_store_n(&qp->completed, (uint16_t)(index + 1), __ATOMIC_RELEASE);
	return true;
}

int standin_poll_cq(struct ibv_cq *base, int max, struct ibv_wc *wc)
{
	struct standin_cq *cq = STANDIN_OF(standin_cq, base);
	int n = 0;

	__atomic_add_fetch(&standin_counters.polls, 1, __ATOMIC_RELAXED);
	standin_lock();
	pthread_mutex_lock(&cq->lock);
	while (n < max && cq->consumer != cq->producer) {
		const struct mlx5_cqe64 *cqe =
			(const void *)(cq->buffer +
				       (size_t)((cq->consumer & (cq->count - 1)) + 1) * cq->size -
				       sizeof(*cqe));

		if (is_late(cqe))
			break;
		n += cqe->op_own >> 4 == MLX5_CQE_RESP_WR_IMM ? receive(&wc[n], cqe)
							      : complete(&wc[n], cqe);
		cq->consumer++;
	}
	__atomic_store_n(&cq->record[0], htobe32(cq->consumer & 0xffffff), __ATOMIC_RELEASE);
	pthread_mutex_unlock(&cq->lock);
	standin_unlock();
	return n;
}

int standin_req_notify_cq(struct ibv_cq *base, int solicited_only)
{
	struct standin_cq *cq = STANDIN_OF(standin_cq, base);

	pthread_mutex_lock(&cq->lock);
	cq->armed = true;
	cq->armed_at = cq->consumer;
	pthread_mutex_unlock(&cq->lock);
	return 0;
}
