/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The NIC's side of a send queue in mlx5 format (workers/rdma/mlx5_post.h is the poster's): finds
 * WQEs when the doorbell rings, reads and checks them as a NIC does, writes CQEs. For engines that
 * send with something else than a ConnectX.
 *
 * Owner: the engine's thread; the memory is shared with the poster.
 */
#ifndef AGENT_SEND_QUEUE_H
#define AGENT_SEND_QUEUE_H

#include "rnic/rnic.h"

struct send_queue {
	struct mlx5_wqe *wqes;
	struct mlx5_cqe *cqes;
	uint32_t *record;
	uint64_t *doorbell;
	uint32_t count;    /* of WQEs and of CQEs; power of two */
	uint32_t qpn;      /* that WQEs must name */
	uint64_t rung;     /* last doorbell value seen */
	uint16_t producer; /* as the record said */
	uint16_t next;     /* WQE to read next; the engine moves it on */
	uint32_t cq_index;
};

/* A WQE in host order. */
struct send_work {
	uint64_t remote, local;
	uint32_t rkey, length, imm;
	uint16_t index;
	bool with_imm, signal;
};

/* 0 or -ENOMEM. <count> is a power of two. */
int send_queue_create(struct send_queue *q, uint32_t count);
void send_queue_destroy(struct send_queue *q);
/* What the poster gets; <qpn> is known by now. */
struct mlx5_queue send_queue_view(const struct send_queue *q);

/* Has the doorbell rung since send_queue_look()? */
static inline bool send_queue_rings(const struct send_queue *q)
{
	return __atomic_load_n(q->doorbell, __ATOMIC_ACQUIRE) != q->rung;
}

/* Take note of what was posted. True if there are WQEs to read. */
bool send_queue_look(struct send_queue *q);

/*
 * Read the WQE at q->next, which may send what lies in <sendable> by <lkey>. Returns the syndrome
 * that it fails with (MLX5_SYNDROME_*), 0 when it is good.
 */
uint8_t send_queue_read(const struct send_queue *q, const struct rnic_span *sendable, uint32_t lkey,
			struct send_work *work);

/* The WQE at <index> and all before it are done (MLX5_POST_CQE_OK) or it failed. */
void send_queue_report(struct send_queue *q, uint16_t index, uint8_t opcode, uint8_t syndrome);

#endif
