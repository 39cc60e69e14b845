/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting WQEs by hand: the bytes a ConnectX expects, and its completions read back. */
#include <criterion/criterion.h>

#include "rdma/mlx5_post.h"

#define WQES 8
#define CQES 4

struct fixture {
	struct mlx5_wqe wqes[WQES];
	struct mlx5_cqe cqes[CQES];
	uint32_t record[2];
	uint64_t doorbell;
	struct mlx5_queue q;
};

static void init(struct fixture *f, uint16_t start)
{
	memset(f, 0, sizeof(*f));
	/* opcode "invalid", as before first use */
	memset(f->cqes, 0xff, sizeof(f->cqes));
	f->q = (struct mlx5_queue){
		.wqes = f->wqes,
		.record = f->record,
		.doorbell = &f->doorbell,
		.cqes = f->cqes,
		.wqe_count = WQES,
		.cqe_count = CQES,
		.qpn = 0x00abcd,
		.producer = start,
		.consumer = start,
	};
}

/* Plays the NIC: completes the WQE with index <counter>. */
static void complete(struct fixture *f, uint32_t cq_index, uint16_t counter, uint8_t opcode)
{
	struct mlx5_cqe *cqe = &f->cqes[cq_index % CQES];

	cqe->wqe_counter = (uint16_t)(counter << 8 | counter >> 8);
	cqe->syndrome = opcode == MLX5_POST_CQE_ERROR ? MLX5_SYNDROME_REMOTE_ACCESS : 0;
	cqe->op_own = opcode << 4 | ((cq_index & CQES) != 0);
}

static const struct mlx5_write worked = {
	.remote_address = 0x00007f1122334455,
	.local_address = 0x00007faabbccdd00,
	.rkey = 0x00180ee1,
	.lkey = 0x00180ee7,
	.length = 4096,
	.signal = true,
};

Test(rdma_mlx5_post, builds_the_worked_wqe_byte_for_byte)
{
	static const uint8_t wqe[48] = {
		0x00, 0x12, 0x34, 0x08, 0x00, 0xab, 0xcd, 0x03, 0x00, 0x00, 0x00, 0x08,
		0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x7f, 0x11, 0x22, 0x33, 0x44, 0x55,
		0x00, 0x18, 0x0e, 0xe1, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x10, 0x00,
		0x00, 0x18, 0x0e, 0xe7, 0x00, 0x00, 0x7f, 0xaa, 0xbb, 0xcc, 0xdd, 0x00,
	};
	static const uint8_t record[8] = {0, 0, 0, 0, 0, 0, 0x12, 0x35};
	static const uint8_t bell[8] = {0x00, 0x12, 0x35, 0x00, 0x00, 0xab, 0xcd, 0x00};
	struct fixture f;

	init(&f, 0x1234);
	/* The bytes that the slot held before must not remain. */
	memset(f.wqes, 0x5a, sizeof(f.wqes));
	mlx5_wqe_build(&f.q, 0, &worked);
	cr_expect_arr_eq(&f.wqes[0x1234 % WQES], wqe, sizeof(wqe));
	cr_expect_eq(f.record[1], 0, "nothing is published before the ring");
	mlx5_ring(&f.q, 1);
	cr_expect_arr_eq(f.record, record, sizeof(record));
	cr_expect_arr_eq(&f.doorbell, bell, sizeof(bell));
}

Test(rdma_mlx5_post, sends_the_immediate_in_network_order)
{
	struct mlx5_write w = worked;
	struct fixture f;

	w.with_imm = true;
	w.imm = 0xdeadbeef;
	w.signal = false;
	init(&f, 0);
	mlx5_wqe_build(&f.q, 0, &w);
	cr_expect_arr_eq(&f.wqes[0], "\x00\x00\x00\x09", 4);
	cr_expect_arr_eq(&f.wqes[0].imm, "\xde\xad\xbe\xef", 4);
	cr_expect_eq(f.wqes[0].fm_ce_se, 0, "no completion asked for");
}

Test(rdma_mlx5_post, leaves_the_data_segment_out_of_an_empty_write)
{
	struct mlx5_write w = worked;
	struct fixture f;

	w.length = 0;
	init(&f, 0);
	mlx5_wqe_build(&f.q, 0, &w);
	/* A byte count of 0 would mean 2 GiB. */
	cr_expect_arr_eq(&f.wqes[0].qpn_ds, "\x00\xab\xcd\x02", 4);
}

Test(rdma_mlx5_post, publishes_many_wqes_with_one_doorbell)
{
	struct mlx5_write w = worked;
	struct fixture f;

	init(&f, 0xfffe);
	for (uint32_t i = 0; i < 5; i++) {
		w.rkey = i;
		mlx5_wqe_build(&f.q, i, &w);
	}
	mlx5_ring(&f.q, 5);
	for (uint32_t i = 0; i < 5; i++) {
		uint16_t index = 0xfffe + i;
		const struct mlx5_wqe *wqe = &f.wqes[index % WQES];

		cr_expect_eq(mlx5_be32(wqe->opmod_index_opcode), (uint32_t)index << 8 | 8);
		cr_expect_eq(mlx5_be32(wqe->rkey), i);
	}
	cr_expect_eq(mlx5_be32(f.record[1]), 3, "the counter has 16 bits and wraps");
	cr_expect_arr_eq(&f.doorbell, "\x00\x00\x03\x00\x00\xab\xcd\x00", 8);
}

Test(rdma_mlx5_post, accounts_for_room_across_the_wrap)
{
	struct fixture f;
	uint8_t syndrome;

	init(&f, 0xfffc);
	cr_expect_eq(mlx5_room(&f.q), WQES);
	mlx5_ring(&f.q, WQES);
	cr_expect_eq(mlx5_room(&f.q), 0);
	complete(&f, 0, 0xfffe, MLX5_POST_CQE_OK);
	cr_expect_eq(mlx5_cq_poll(&f.q, &syndrome), MLX5_POLL_DONE);
	cr_expect_eq(mlx5_room(&f.q), 3, "a CQE completes its WQE and all before it");
	complete(&f, 1, 0x0003, MLX5_POST_CQE_OK);
	cr_expect_eq(mlx5_cq_poll(&f.q, &syndrome), MLX5_POLL_DONE);
	cr_expect_eq(mlx5_room(&f.q), WQES);
}

Test(rdma_mlx5_post, reads_each_completion_once_over_many_laps)
{
	struct fixture f;
	uint8_t syndrome = 0xaa;

	init(&f, 0);
	for (uint32_t i = 0; i < 9 * CQES; i++) {
		cr_assert_eq(mlx5_cq_poll(&f.q, &syndrome), MLX5_POLL_EMPTY, "lap %u", i / CQES);
		mlx5_ring(&f.q, 1);
		complete(&f, i, i, MLX5_POST_CQE_OK);
		cr_assert_eq(mlx5_cq_poll(&f.q, &syndrome), MLX5_POLL_DONE, "lap %u", i / CQES);
		cr_expect_eq(mlx5_room(&f.q), WQES);
	}
	cr_expect_eq(syndrome, 0xaa, "only errors have one");
}

Test(rdma_mlx5_post, reads_completions_that_came_together)
{
	struct fixture f;
	uint8_t syndrome;

	init(&f, 0);
	for (uint32_t lap = 0; lap < 5; lap++) {
		mlx5_ring(&f.q, CQES);
		for (uint32_t i = 0; i < CQES; i++)
			complete(&f, lap * CQES + i, lap * CQES + i, MLX5_POST_CQE_OK);
		for (uint32_t i = 0; i < CQES; i++)
			cr_assert_eq(mlx5_cq_poll(&f.q, &syndrome), MLX5_POLL_DONE);
		cr_assert_eq(mlx5_cq_poll(&f.q, &syndrome), MLX5_POLL_EMPTY);
	}
}

Test(rdma_mlx5_post, tells_why_the_queue_died)
{
	struct fixture f;
	uint8_t syndrome = 0;

	init(&f, 0);
	mlx5_ring(&f.q, 3);
	complete(&f, 0, 1, MLX5_POST_CQE_ERROR);
	cr_expect_eq(mlx5_cq_poll(&f.q, &syndrome), MLX5_POLL_ERROR);
	cr_expect_eq(syndrome, MLX5_SYNDROME_REMOTE_ACCESS);
	cr_expect_eq(mlx5_cq_poll(&f.q, &syndrome), MLX5_POLL_EMPTY);
}

Test(rdma_mlx5_post, takes_no_completion_that_was_never_written)
{
	struct fixture f;
	uint8_t syndrome;

	init(&f, 0);
	cr_expect_eq(mlx5_cq_poll(&f.q, &syndrome), MLX5_POLL_EMPTY);
	/* A fresh entry reads 0xff or 0xf1: not even on a lap whose owner bit is 1. */
	f.q.cq_index = CQES;
	cr_expect_eq(mlx5_cq_poll(&f.q, &syndrome), MLX5_POLL_EMPTY);
	memset(f.cqes, 0xf1, sizeof(f.cqes));
	cr_expect_eq(mlx5_cq_poll(&f.q, &syndrome), MLX5_POLL_EMPTY);
}

Test(rdma_mlx5_post, counts_completions_past_32_bits)
{
	struct fixture f;
	uint8_t syndrome;

	init(&f, 0);
	f.q.cq_index = UINT32_MAX;
	complete(&f, UINT32_MAX, 0, MLX5_POST_CQE_OK);
	cr_expect_eq(mlx5_cq_poll(&f.q, &syndrome), MLX5_POLL_DONE);
	cr_expect_eq(mlx5_cq_poll(&f.q, &syndrome), MLX5_POLL_EMPTY);
	complete(&f, 0, 1, MLX5_POST_CQE_OK);
	cr_expect_eq(mlx5_cq_poll(&f.q, &syndrome), MLX5_POLL_DONE);
}
