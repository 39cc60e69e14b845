/* SPDX-License-Identifier: BSD-3-Clause */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_branch_prediction.h>
#include <rte_malloc.h>
#include <rte_mempool.h>

#include "rdma/verbs_send.h"

#define RECEIVE_BIT UINT64_C(0x80000000)
/* Receives posted per call. */
#define REFILL 64

/* --- packet memory ---------------------------------------------------------------------------- */

struct span {
	uintptr_t start, end;
	struct ibv_mr *mr;
};

struct verbs_memory {
	unsigned int n, room;
	struct span *span; /* sorted by address; spans do not touch */
};

static void add_chunk(struct rte_mempool *pool, void *argument, struct rte_mempool_memhdr *chunk,
		      unsigned int index)
{
	struct verbs_memory *memory = argument;
	struct span *more;

	if (memory->n == memory->room) {
		more = realloc(memory->span, (memory->room + 64) * 2 * sizeof(*more));
		if (more == NULL)
			return; /* sending from this chunk fails as an unknown address */
		memory->span = more;
		memory->room = (memory->room + 64) * 2;
	}
	memory->span[memory->n++] = (struct span){
		.start = (uintptr_t)chunk->addr,
		.end = (uintptr_t)chunk->addr + chunk->len,
	};
}

static void add_pool(struct rte_mempool *pool, void *memory)
{
	rte_mempool_mem_iter(pool, add_chunk, memory);
}

static int span_by_start(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Sort the chunks and join those that touch. */
static void spans_merge(struct verbs_memory *memory)
{
	unsigned int last = 0;

	qsort(memory->span, memory->n, sizeof(*memory->span), span_by_start);
	for (unsigned int i = 1; i < memory->n; i++) {
		if (memory->span[i].start <= memory->span[last].end)
			memory->span[last].end =
				RTE_MAX(memory->span[last].end, memory->span[i].end);
		else
			memory->span[++last] = memory->span[i];
	}
	memory->n = memory->n == 0 ? 0 : last + 1;
}

struct verbs_memory *verbs_memory_create(struct verbs_device *device, char *error, size_t size)
{
	struct verbs_memory *memory = calloc(1, sizeof(*memory));

	if (memory == NULL) {
		snprintf(error, size, "no memory");
		return NULL;
	}
	rte_mempool_walk(add_pool, memory);
	spans_merge(memory);
	for (unsigned int i = 0; i < memory->n; i++) {
		struct span *s = &memory->span[i];

		/* No remote access flags: only the device reads it, for sends. */
		s->mr = ibv_reg_mr(device->pd, (void *)s->start, s->end - s->start, 0);
		if (s->mr != NULL)
			continue;
		snprintf(error, size,
			 "%zu bytes of packet memory cannot be registered: %s; raise the limit of "
			 "locked memory (ulimit -l, LimitMEMLOCK=)",
			 s->end - s->start, strerror(errno));
		verbs_memory_destroy(memory);
		return NULL;
	}
	return memory;
}

void verbs_memory_destroy(struct verbs_memory *memory)
{
	if (memory == NULL)
		return;
	for (unsigned int i = 0; i < memory->n; i++)
		if (memory->span[i].mr != NULL)
			ibv_dereg_mr(memory->span[i].mr);
	free(memory->span);
	free(memory);
}

/* The memory region of <address>; NULL when no mempool had it at creation. */
static const struct ibv_mr *verbs_mr_of(const struct verbs_memory *memory, uintptr_t address)
{
	unsigned int low = 0, high = memory->n;

	while (low < high) {
		unsigned int middle = (low + high) / 2;
		const struct span *s = &memory->span[middle];

		if (address < s->start)
			high = middle;
		else if (address >= s->end)
			low = middle + 1;
		else
			return s->mr;
	}
	return NULL;
}

/* --- one lcore's completion queue ---------------------------------------------------------------
 */

int verbs_cq_init(struct verbs_cq *cq, struct verbs_device *device,
		  const struct verbs_memory *memory, unsigned int qps, char *error, size_t size)
{
	uint64_t entries = (uint64_t)qps * REQUESTER_WINDOW;

	*cq = (struct verbs_cq){.device = device, .memory = memory};
	cq->channel = verbs_channel_create(device);
	if (cq->channel != NULL)
		cq->cq = ibv_create_cq(device->context, RTE_MIN(entries, device->cqe_max), NULL,
				       cq->channel, 0);
	if (cq->cq != NULL)
		return 0;
	snprintf(error, size, "RDMA device '%s' gives no completion queue: %s",
		 ibv_get_device_name(device->context->device), strerror(errno));
	verbs_cq_fini(cq);
	return -ENODEV;
}

void verbs_cq_fini(struct verbs_cq *cq)
{
	if (cq->cq != NULL)
		ibv_destroy_cq(cq->cq);
	if (cq->channel != NULL)
		ibv_destroy_comp_channel(cq->channel);
	*cq = (struct verbs_cq){0};
}

bool verbs_cq_arm(struct verbs_cq *cq)
{
	if (cq->armed)
		return false;
	cq->armed = true;
	ibv_req_notify_cq(cq->cq, 0);
	return true;
}

void verbs_cq_awake(struct verbs_cq *cq)
{
	if (verbs_channel_drain(cq->channel))
		cq->armed = false;
}

/* --- queue pairs ---------------------------------------------------------------------------------
 */

static int verbs_qp_make(struct verbs_qp *qp, const struct verbs_qp_params *params)
{
	struct verbs_device *device = qp->cq->device;
	/* In an error every posted work request completes, even those without a signal. */
	uint32_t completions = REQUESTER_WINDOW + params->receive;
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = qp->cq->cq,
		.recv_cq = qp->cq->cq,
		.qp_type = IBV_QPT_RC,
		.pd = device->pd,
		.cap = {.max_send_wr = REQUESTER_WINDOW,
			.max_recv_wr = params->receive,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
	};
	int ret = verbs_cq_reserve(device, qp->cq->cq, &qp->cq->reserved, completions);

	if (ret < 0)
		return ret;
	qp->reserved = completions;
	qp->region = rte_zmalloc("replies", params->length, 4096);
	if (qp->region == NULL)
		return -ENOMEM;
	qp->mr = ibv_reg_mr(device->pd, qp->region, params->length,
			    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (qp->mr == NULL)
		return -errno;
	qp->qp = ibv_create_qp_ex(device->context, &attr);
	if (qp->qp == NULL)
		return -errno;
	qp->ex = ibv_qp_to_qp_ex(qp->qp);
	return qp->ex == NULL ? -ENOTSUP : 0;
}

struct verbs_qp *verbs_qp_create(struct verbs_cq *cq, const struct verbs_qp_params *params)
{
	struct verbs_qp *qp = calloc(1, sizeof(*qp));
	int ret;

	if (qp == NULL)
		return NULL;
	qp->cq = cq;
	qp->tag = params->tag;
	qp->spent = params->receive;
	ret = verbs_qp_make(qp, params);
	if (ret < 0) {
		verbs_qp_destroy(qp);
		errno = -ret;
		return NULL;
	}
	return qp;
}

void verbs_qp_destroy(struct verbs_qp *qp)
{
	if (qp == NULL)
		return;
	if (qp->qp != NULL)
		ibv_destroy_qp(qp->qp);
	qp->cq->reserved -= qp->reserved;
	/* Leak the region if it stays registered: the peer could write it after its reuse. */
	if (qp->mr == NULL || ibv_dereg_mr(qp->mr) == 0)
		rte_free(qp->region);
	free(qp);
}

void verbs_qp_received(struct verbs_qp *qp, const struct ibv_wc *wc)
{
	qp->spent += wc->status == IBV_WC_SUCCESS;
}

/* Receives have no buffer: a WRITE WITH IMMEDIATE puts its payload into the region. */
void verbs_qp_refill(struct verbs_qp *qp)
{
	struct ibv_recv_wr wr[REFILL], *bad;

	while (qp->spent > 0) {
		uint32_t n = RTE_MIN(qp->spent, (uint32_t)REFILL);

		for (uint32_t i = 0; i < n; i++)
			wr[i] = (struct ibv_recv_wr){
				.wr_id = (uint64_t)qp->tag << 32 | RECEIVE_BIT,
				.next = i + 1 < n ? &wr[i + 1] : NULL,
			};
		/* It fails only with the queue pair, whose error the completions report. */
		if (ibv_post_recv(qp->qp, wr, &bad) != 0)
			return;
		qp->spent -= n;
	}
}

/* --- sending -------------------------------------------------------------------------------------
 */

static int verbs_write(struct requester *rq, struct rte_mbuf *m, uint64_t va, uint32_t rkey,
		       uint32_t imm, uint32_t flags)
{
	struct verbs_qp *qp = rq->engine_context;
	uintptr_t address = rte_pktmbuf_mtod(m, uintptr_t);
	const struct ibv_mr *mr = verbs_mr_of(qp->cq->memory, address);

	if (unlikely(rq->error != REQUESTER_OK))
		return -EPIPE;
	if (unlikely(mr == NULL))
		return -ENOMEM;
	if (!qp->posting)
		ibv_wr_start(qp->ex);
	qp->posting = true;
	qp->ex->wr_id = (uint64_t)qp->tag << 32 | rq->next_psn;
	/* One signalled completion per burst retires the whole burst. */
	qp->ex->wr_flags = flags & REQUESTER_ACK_REQUEST ? IBV_SEND_SIGNALED : 0;
	if (flags & REQUESTER_IMM)
		ibv_wr_rdma_write_imm(qp->ex, rkey, va, htobe32(imm));
	else
		ibv_wr_rdma_write(qp->ex, rkey, va);
	ibv_wr_set_sge(qp->ex, mr->lkey, address, m->data_len);
	requester_engine_sent(rq, m);
	return 0;
}

/* Ring one doorbell for all writes since the last one. */
static void verbs_ring(struct requester *rq)
{
	struct verbs_qp *qp = rq->engine_context;

	if (!qp->posting)
		return;
	qp->posting = false;
	if (ibv_wr_complete(qp->ex) != 0)
		__atomic_store_n(&rq->error, REQUESTER_DEVICE, __ATOMIC_RELEASE);
}

static const struct requester_engine engine = {.write = verbs_write, .ring = verbs_ring};

void verbs_requester_attach(struct requester *rq, struct verbs_qp *qp)
{
	rq->engine = &engine;
	rq->engine_context = qp;
	/* The device has its own retransmission timers. */
	rq->timeout = 0;
}

static enum requester_error verbs_error_of(struct requester *rq, enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_RETRY_EXC_ERR:
		return REQUESTER_RETRY_EXCEEDED;
	case IBV_WC_RNR_RETRY_EXC_ERR:
		return REQUESTER_RNR_EXCEEDED;
	case IBV_WC_REM_ACCESS_ERR:
		rq->nak = ROCE_NAK_REMOTE_ACCESS;
		return REQUESTER_NAK;
	case IBV_WC_REM_INV_REQ_ERR:
		rq->nak = ROCE_NAK_INVALID_REQUEST;
		return REQUESTER_NAK;
	case IBV_WC_REM_OP_ERR:
		rq->nak = ROCE_NAK_REMOTE_OPERATION;
		return REQUESTER_NAK;
	default:
		return REQUESTER_DEVICE;
	}
}

void verbs_requester_complete(struct requester *rq, const struct ibv_wc *wc, uint64_t now)
{
	if (likely(wc->status == IBV_WC_SUCCESS))
		requester_ack(rq, wc->wr_id & ROCE_PSN_MASK, ROCE_CREDITS_UNUSED, now);
	else if (rq->error == REQUESTER_OK)
		__atomic_store_n(&rq->error, verbs_error_of(rq, wc->status), __ATOMIC_RELEASE);
}
