/* SPDX-License-Identifier: BSD-3-Clause */
/* Completions of an RDMA device, and those that a peer can provoke, tested without a device. */
#include <criterion/criterion.h>

#include "rdma/verbs_send.h"

/* --- receives ----------------------------------------------------------------------------------
 */

static unsigned int posted;

static int count_posts(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	for (; wr != NULL; wr = wr->next)
		posted++;
	return 0;
}

Test(rdma_verbs_send, receives_are_posted_again_unless_they_failed)
{
	struct ibv_context context = {.ops.post_recv = count_posts};
	struct ibv_qp device_qp = {.context = &context};
	struct verbs_qp qp = {.qp = &device_qp, .spent = 100};
	const struct ibv_wc came = {.status = IBV_WC_SUCCESS},
			    flushed = {.status = IBV_WC_WR_FLUSH_ERR};

	verbs_qp_refill(&qp);
	cr_expect_eq(posted, 100);
	verbs_qp_received(&qp, &came);
	verbs_qp_refill(&qp);
	cr_expect_eq(posted, 101);
	verbs_qp_received(&qp, &flushed);
	verbs_qp_refill(&qp);
	cr_expect_eq(posted, 101, "the queue pair is in error: each would come back at once");
}

/* --- errors ------------------------------------------------------------------------------------
 */

Test(rdma_verbs_send, the_first_error_is_the_reason)
{
	static const struct {
		enum ibv_wc_status status;
		enum requester_error error;
		uint8_t nak;
	} rows[] = {
		{IBV_WC_RETRY_EXC_ERR, REQUESTER_RETRY_EXCEEDED, 0},
		{IBV_WC_RNR_RETRY_EXC_ERR, REQUESTER_RNR_EXCEEDED, 0},
		{IBV_WC_REM_ACCESS_ERR, REQUESTER_NAK, ROCE_NAK_REMOTE_ACCESS},
		{IBV_WC_REM_INV_REQ_ERR, REQUESTER_NAK, ROCE_NAK_INVALID_REQUEST},
		{IBV_WC_REM_OP_ERR, REQUESTER_NAK, ROCE_NAK_REMOTE_OPERATION},
		{IBV_WC_WR_FLUSH_ERR, REQUESTER_DEVICE, 0},
		{IBV_WC_FATAL_ERR, REQUESTER_DEVICE, 0},
	};

	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		const struct ibv_wc wc = {.status = rows[i].status},
				    flushed = {.status = IBV_WC_WR_FLUSH_ERR};
		struct requester rq = {0};

		verbs_requester_complete(&rq, &wc, 0);
		verbs_requester_complete(&rq, &flushed, 0);
		cr_expect_eq(rq.error, rows[i].error, "row %zu", i);
		cr_expect_eq(rq.nak, rows[i].nak, "row %zu", i);
	}
}

/* --- completions -------------------------------------------------------------------------------
 */

Test(rdma_verbs_send, a_completion_queue_is_never_promised_twice)
{
	const struct verbs_device device = {.cqe_max = 100};
	struct ibv_cq cq = {.cqe = 100};
	uint32_t reserved = 0;

	cr_expect_eq(verbs_cq_reserve(&device, &cq, &reserved, 60), 0);
	cr_expect_eq(verbs_cq_reserve(&device, &cq, &reserved, 41), -ENOSPC);
	cr_expect_eq(verbs_cq_reserve(&device, &cq, &reserved, UINT32_MAX), -ENOSPC);
	cr_expect_eq(reserved, 60, "what was refused is not counted");
	cr_expect_eq(verbs_cq_reserve(&device, &cq, &reserved, 40), 0);
	cr_expect_eq(reserved, 100);
}
