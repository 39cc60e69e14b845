/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Direct posting: a ConnectX gives its send queue, doorbell and completion queue to the poster, so
 * the loop rings the NIC itself, without the proxy. Not yet run on hardware.
 */
#include <errno.h>

#include "rnic/verbs_private.h"

#ifdef DOORBELL_MLX5DV

#include <infiniband/mlx5dv.h>

bool verbs_direct_possible(const struct verbs_device *device)
{
	return mlx5dv_is_supported(device->context->device);
}

int verbs_direct_view(struct ibv_qp *ibv_qp, struct ibv_cq *ibv_cq, struct mlx5_queue *view)
{
	struct mlx5dv_qp qp = {0};
	struct mlx5dv_cq cq = {0};
	struct mlx5dv_obj objects = {
		.qp = {.in = ibv_qp, .out = &qp},
		.cq = {.in = ibv_cq, .out = &cq},
	};
	int ret = mlx5dv_init_obj(&objects, MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ);

	if (ret != 0)
		return -ret;
	/* mlx5_post.h assumes these; environment variables of libmlx5 can change them. */
	if (qp.sq.stride != MLX5_WQEBB || cq.cqe_size != sizeof(struct mlx5_cqe) ||
	    (qp.sq.wqe_cnt & (qp.sq.wqe_cnt - 1)) != 0 || (cq.cqe_cnt & (cq.cqe_cnt - 1)) != 0)
		return -ENOTSUP;
	*view = (struct mlx5_queue){
		.wqes = qp.sq.buf,
		.record = (volatile uint32_t *)qp.dbrec,
		.doorbell = qp.bf.reg,
		.cqes = cq.buf,
		.cq_record = (volatile uint32_t *)cq.dbrec,
		.wqe_count = qp.sq.wqe_cnt,
		.cqe_count = cq.cqe_cnt,
		.qpn = ibv_qp->qp_num,
	};
	return 0;
}

#else

bool verbs_direct_possible(const struct verbs_device *device)
{
	return false;
}

int verbs_direct_view(struct ibv_qp *qp, struct ibv_cq *cq, struct mlx5_queue *view)
{
	return -ENOTSUP;
}

#endif
