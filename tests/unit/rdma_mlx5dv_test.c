/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The WQEs of mlx5_post.h against rdma-core's own: its header has inline functions that fill the
 * same segments, so both must give the same bytes.
 */
#include <criterion/criterion.h>
#include <infiniband/mlx5dv.h>
#include <stdlib.h>

#include "rdma/mlx5_post.h"

static void build_with_rdma_core(uint8_t *at, uint16_t index, uint32_t qpn,
				 const struct mlx5_write *w)
{
	struct mlx5_wqe_ctrl_seg *control = (void *)at;
	struct mlx5_wqe_raddr_seg *remote = (void *)(at + 16);
	struct mlx5_wqe_data_seg *data = (void *)(at + 32);

	memset(at, 0, MLX5_WQEBB);
	mlx5dv_set_ctrl_seg(control, index,
			    w->with_imm ? MLX5_OPCODE_RDMA_WRITE_IMM : MLX5_OPCODE_RDMA_WRITE, 0,
			    qpn, w->signal ? MLX5_WQE_CTRL_CQ_UPDATE : 0, w->length > 0 ? 3 : 2, 0,
			    w->with_imm ? htobe32(w->imm) : 0);
	remote->raddr = htobe64(w->remote_address);
	remote->rkey = htobe32(w->rkey);
	mlx5dv_set_data_seg(data, w->length, w->lkey, w->local_address);
}

static uint64_t random64(void)
{
	return (uint64_t)random() << 33 ^ (uint64_t)random() << 11 ^ (uint64_t)random();
}

Test(rdma_mlx5dv, wqes_are_what_rdma_core_builds)
{
	static struct mlx5_wqe wqes[64];
	uint8_t expected[MLX5_WQEBB];
	struct mlx5_queue q = {.wqes = wqes, .wqe_count = 64};

	srandom(1);
	for (int i = 0; i < 100000; i++) {
		struct mlx5_write w = {
			.remote_address = random64(),
			.local_address = random64(),
			.rkey = random64(),
			.lkey = random64(),
			.length = i % 5 == 0 ? 0 : random() & 0x7fffffff,
			.imm = random64(),
			.with_imm = random() & 1,
			.signal = random() & 1,
		};

		q.qpn = random() & 0xffffff;
		q.producer = random();
		mlx5_wqe_build(&q, 0, &w);
		build_with_rdma_core(expected, q.producer, q.qpn, &w);
		cr_assert_arr_eq(&wqes[q.producer & 63], expected, w.length > 0 ? 48 : 32,
				 "round %d", i);
	}
}

Test(rdma_mlx5dv, cqes_have_rdma_cores_layout)
{
	cr_assert_eq(offsetof(struct mlx5_cqe, opcode_qpn), offsetof(struct mlx5_cqe64, sop_drop_qpn));
	cr_assert_eq(offsetof(struct mlx5_cqe, wqe_counter),
		     offsetof(struct mlx5_cqe64, wqe_counter));
	cr_assert_eq(offsetof(struct mlx5_cqe, op_own), offsetof(struct mlx5_cqe64, op_own));
	cr_assert_eq(MLX5_POST_CQE_OK, MLX5_CQE_REQ);
	cr_assert_eq(MLX5_POST_CQE_ERROR, MLX5_CQE_REQ_ERR);
}
