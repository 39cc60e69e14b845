/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The NIC's side of a send queue in mlx5 format (workers/rdma/mlx5_post.h is the poster's): it
 * finds WQEs when the doorbell rings, reads and checks them as a NIC does, and writes CQEs. For
 * engines that send with something other than a ConnectX.
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
	uint32_t qpn;      /* QPN that WQEs must name */
	uint64_t rung;     /* last doorbell value seen */
	uint16_t producer; /* from the doorbell */
	uint16_t next;     /* WQE to read next; advanced by the engine */
	uint32_t cq_index;
};

/* A WQE in host order. */
struct send_work {
	uint64_t remote, local;
	uint32_t rkey, length, imm;
	uint16_t index;
	bool with_imm, signal;
};

/* Allocate the queue. 0 or -ENOMEM. <count> is a power of two. */
int send_queue_create(struct send_queue *q, uint32_t count);
void send_queue_destroy(struct send_queue *q);
/* The poster's view of the queue; q->qpn must be set before. */
struct mlx5_queue send_queue_view(const struct send_queue *q);

/* True when the doorbell has rung since send_queue_update(). */
static inline bool send_queue_rings(const struct send_queue *q)
{
	return __atomic_load_n(q->doorbell, __ATOMIC_ACQUIRE) != q->rung;
}

/* Read the doorbell. True if there are WQEs to read. */
bool send_queue_update(struct send_queue *q);

/*
 * Read the WQE at q->next; it may send from <sendable> with <lkey>. Returns 0, or the syndrome that
 * it fails with (MLX5_SYNDROME_*).
 */
uint8_t send_queue_read(const struct send_queue *q, const struct rnic_span *sendable, uint32_t lkey,
			struct send_work *work);

/* Write a CQE: the WQE at <index> and all before it are done (MLX5_POST_CQE_OK), or it has failed.
 */
void send_queue_report(struct send_queue *q, uint16_t index, uint8_t opcode, uint8_t syndrome);

#endif
