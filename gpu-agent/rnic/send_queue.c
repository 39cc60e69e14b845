/* SPDX-License-Identifier: BSD-3-Clause */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>

#include "rnic/send_queue.h"
#include "runtime/host_page.h"

#define DS_MASK 0x3fu /* of qpn_ds: 16-byte segments of the WQE */

/* Each piece has pages of its own, so that it can be mapped for a GPU. */
static void *queue_memory(size_t size)
{
	size_t whole = host_pages_up(size);
	void *at = aligned_alloc(host_page(), whole);

	if (at != NULL)
		memset(at, 0, whole);
	return at;
}

int send_queue_create(struct send_queue *q, uint32_t count)
{
	*q = (struct send_queue){
		.wqes = queue_memory(count * sizeof(*q->wqes)),
		.cqes = queue_memory(count * sizeof(*q->cqes)),
		.record = queue_memory(2 * sizeof(*q->record)),
		.doorbell = queue_memory(sizeof(*q->doorbell)),
		.count = count,
	};
	if (q->wqes == NULL || q->cqes == NULL || q->record == NULL || q->doorbell == NULL) {
		send_queue_destroy(q);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < count; i++)
		q->cqes[i].op_own = MLX5_POST_CQE_INVALID << 4 | 1;
	return 0;
}

void send_queue_destroy(struct send_queue *q)
{
	free(q->wqes);
	free(q->cqes);
	free(q->record);
	free(q->doorbell);
	*q = (struct send_queue){0};
}

struct mlx5_queue send_queue_view(const struct send_queue *q)
{
	return (struct mlx5_queue){
		.wqes = q->wqes,
		.record = q->record,
		.doorbell = q->doorbell,
		.cqes = q->cqes,
		.wqe_count = q->count,
		.cqe_count = q->count,
		.qpn = q->qpn,
		.bell_counts = true,
	};
}

bool send_queue_update(struct send_queue *q)
{
	uint64_t bell = __atomic_load_n(q->doorbell, __ATOMIC_ACQUIRE);

	if (bell != q->rung) {
		q->rung = bell;
		/* Not from the record, which a NIC would read: a poster's fence before the doorbell
		 * covers the WQEs that the doorbell counts, and the record may count more. */
		q->producer = mlx5_bell_counter(bell);
	}
	return q->next != q->producer;
}

uint8_t send_queue_read(const struct send_queue *q, const struct rnic_span *sendable, uint32_t lkey,
			struct send_work *w)
{
	const struct mlx5_wqe *wqe = &q->wqes[q->next & (q->count - 1)];
	uint32_t control = be32toh(wqe->opmod_index_opcode), qpn_ds = be32toh(wqe->qpn_ds);
	uint8_t opcode = control & 0xff;

	if ((opcode != MLX5_OP_RDMA_WRITE && opcode != MLX5_OP_RDMA_WRITE_IMM) ||
	    (uint16_t)(control >> 8) != q->next || qpn_ds >> 8 != q->qpn)
		return MLX5_SYNDROME_LOCAL_OPERATION;
	*w = (struct send_work){
		.remote = be64toh(wqe->remote_address),
		.rkey = be32toh(wqe->rkey),
		.imm = be32toh(wqe->imm),
		.index = q->next,
		.with_imm = opcode == MLX5_OP_RDMA_WRITE_IMM,
		.signal = (wqe->fm_ce_se & MLX5_CE_ALWAYS) != 0,
	};
	switch (qpn_ds & DS_MASK) {
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
	if (be32toh(wqe->lkey) != lkey || w->local < sendable->va ||
	    w->local - sendable->va > sendable->length ||
	    w->length > sendable->length - (w->local - sendable->va))
		return MLX5_SYNDROME_LOCAL_PROTECTION;
	return 0;
}

void send_queue_report(struct send_queue *q, uint16_t index, uint8_t opcode, uint8_t syndrome)
{
	struct mlx5_cqe *cqe = &q->cqes[q->cq_index & (q->count - 1)];
	uint8_t owner = (q->cq_index & q->count) != 0;

	cqe->opcode_qpn = htobe32(q->qpn);
	cqe->wqe_counter = htobe16(index);
	cqe->syndrome = syndrome;
	/* The owner bit makes the CQE valid: written last. */
	__atomic_store_n(&cqe->op_own, (uint8_t)(opcode << 4 | owner), __ATOMIC_RELEASE);
	q->cq_index++;
}
