/* SPDX-License-Identifier: BSD-3-Clause */
/* The NIC's side of a send queue against the poster's: what one writes the other must read. */
#include <criterion/criterion.h>

#include "rnic/send_queue.h"

#define COUNT 8
#define QPN   0x1234
#define LKEY  0x77

static const struct rnic_span sendable = {.va = 0x10000, .length = 0x1000};

struct fixture {
	struct send_queue nic;
	struct mlx5_queue poster;
};

static void init(struct fixture *f)
{
	cr_assert_eq(send_queue_create(&f->nic, COUNT), 0);
	f->nic.qpn = QPN;
	f->poster = send_queue_view(&f->nic);
}

static struct mlx5_write good(void)
{
	return (struct mlx5_write){
		.remote_address = 0x7f0000001000,
		.local_address = sendable.va,
		.rkey = 0x1111,
		.lkey = LKEY,
		.length = 100,
		.imm = 0xdeadbeef,
		.with_imm = true,
		.signal = true,
	};
}

static uint8_t read_one(struct fixture *f, const struct mlx5_write *w, struct send_work *work)
{
	mlx5_wqe_build(&f->poster, 0, w);
	mlx5_ring(&f->poster, 1);
	cr_assert(send_queue_rings(&f->nic));
	cr_assert(send_queue_update(&f->nic));
	return send_queue_read(&f->nic, &sendable, LKEY, work);
}

Test(agent_send_queue, reads_what_was_posted)
{
	struct mlx5_write w = good();
	struct send_work work;
	struct fixture f;

	init(&f);
	cr_expect(!send_queue_rings(&f.nic));
	cr_expect(!send_queue_update(&f.nic), "nothing was posted");
	cr_assert_eq(read_one(&f, &w, &work), 0);
	cr_expect_eq(work.remote, w.remote_address);
	cr_expect_eq(work.local, w.local_address);
	cr_expect_eq(work.rkey, w.rkey);
	cr_expect_eq(work.length, w.length);
	cr_expect_eq(work.imm, w.imm);
	cr_expect(work.with_imm && work.signal);
	cr_expect_eq(work.index, 0);
	send_queue_destroy(&f.nic);
}

Test(agent_send_queue, believes_the_doorbell_and_not_its_record)
{
	struct mlx5_write w = good();
	struct send_work work;
	struct fixture f;

	init(&f);
	cr_assert_eq(read_one(&f, &w, &work), 0);
	f.nic.next++;
	/* A poster's next record may be there before the WQEs that it counts. */
	f.nic.record[1] = mlx5_be32(2);
	cr_expect_not(send_queue_update(&f.nic), "WQE 1 may not be there yet");
	mlx5_wqe_build(&f.poster, 0, &w);
	mlx5_ring(&f.poster, 1);
	cr_expect(send_queue_update(&f.nic));
	send_queue_destroy(&f.nic);
}

Test(agent_send_queue, goes_round_many_times)
{
	struct mlx5_write w = good();
	struct send_work work;
	struct fixture f;
	uint8_t syndrome;

	init(&f);
	for (uint32_t i = 0; i < 0x20000; i++) {
		w.length = i % 3;
		cr_assert_eq(read_one(&f, &w, &work), 0);
		cr_assert_eq(work.index, (uint16_t)i);
		cr_assert_eq(work.length, i % 3);
		f.nic.next++;
		cr_assert_eq(mlx5_cq_poll(&f.poster, &syndrome), MLX5_POLL_EMPTY);
		send_queue_report(&f.nic, work.index, MLX5_POST_CQE_OK, 0);
		cr_assert_eq(mlx5_cq_poll(&f.poster, &syndrome), MLX5_POLL_DONE);
		cr_assert_eq(mlx5_room(&f.poster), COUNT);
	}
	send_queue_destroy(&f.nic);
}

Test(agent_send_queue, refuses_what_a_nic_refuses)
{
	const struct {
		const char *what;
		uint64_t local;
		uint32_t length, lkey;
		uint8_t syndrome;
	} rows[] = {
		{"the whole region", 0x10000, 0x1000, LKEY, 0},
		{"its last byte", 0x10fff, 1, LKEY, 0},
		{"a byte too many", 0x10000, 0x1001, LKEY, MLX5_SYNDROME_LOCAL_PROTECTION},
		{"behind the end", 0x11000, 1, LKEY, MLX5_SYNDROME_LOCAL_PROTECTION},
		{"before the start", 0xffff, 2, LKEY, MLX5_SYNDROME_LOCAL_PROTECTION},
		{"an end that wraps", 0x10001, 0x7fffffff, LKEY, MLX5_SYNDROME_LOCAL_PROTECTION},
		{"a wrong key", 0x10000, 1, LKEY + 1, MLX5_SYNDROME_LOCAL_PROTECTION},
		{"a length with bit 31", 0x10000, 0x80000001, LKEY, MLX5_SYNDROME_LOCAL_OPERATION},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct mlx5_write w = good();
		struct send_work work;
		struct fixture f;

		init(&f);
		w.local_address = rows[i].local;
		w.length = rows[i].length;
		w.lkey = rows[i].lkey;
		cr_expect_eq(read_one(&f, &w, &work), rows[i].syndrome, "%s", rows[i].what);
		send_queue_destroy(&f.nic);
	}
}

Test(agent_send_queue, refuses_wqes_that_are_not_for_it)
{
	struct mlx5_write w = good();
	struct send_work work;
	struct fixture f;

	init(&f);
	f.nic.qpn = QPN + 1;
	cr_expect_eq(read_one(&f, &w, &work), MLX5_SYNDROME_LOCAL_OPERATION, "another QPN");
	f.nic.qpn = QPN;
	cr_expect_eq(send_queue_read(&f.nic, &sendable, LKEY, &work), 0);
	f.nic.next++;
	cr_expect_eq(send_queue_read(&f.nic, &sendable, LKEY, &work), MLX5_SYNDROME_LOCAL_OPERATION,
		     "nothing was built there");
	f.nic.next--;
	f.nic.wqes[0].opmod_index_opcode = mlx5_be32(0x10);
	cr_expect_eq(send_queue_read(&f.nic, &sendable, LKEY, &work), MLX5_SYNDROME_LOCAL_OPERATION,
		     "a READ");
	send_queue_destroy(&f.nic);
}

Test(agent_send_queue, reports_errors)
{
	struct mlx5_write w = good();
	struct send_work work;
	struct fixture f;
	uint8_t syndrome = 0;

	init(&f);
	cr_assert_eq(read_one(&f, &w, &work), 0);
	send_queue_report(&f.nic, work.index, MLX5_POST_CQE_ERROR, MLX5_SYNDROME_RETRY_EXCEEDED);
	cr_expect_eq(mlx5_cq_poll(&f.poster, &syndrome), MLX5_POLL_ERROR);
	cr_expect_eq(syndrome, MLX5_SYNDROME_RETRY_EXCEEDED);
	send_queue_destroy(&f.nic);
}
