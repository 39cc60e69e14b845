/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requester's verbs engine: an RDMA device sends, acknowledges and retries. It reads messages
 * from their mbufs; the requester's window holds an mbuf until the device reports its completion,
 * and counts work requests instead of packets.
 *
 * Threads: a verbs_cq and the queue pairs on it are one lcore's. Another thread makes and connects
 * a queue pair before the lcore knows it, and destroys it after the lcore has let go.
 */
#ifndef RDMA_VERBS_SEND_H
#define RDMA_VERBS_SEND_H

#include "rdma/requester.h"
#include "rdma/verbs.h"

/* --- packet memory ---------------------------------------------------------------------------- */

/* The memory that the device may read for sends: every mempool of this process. Immutable. */
struct verbs_memory;

/* Register all mempools; they outlive the result. NULL with a sentence in <error>. */
struct verbs_memory *verbs_memory_create(struct verbs_device *device, char *error, size_t size);
void verbs_memory_destroy(struct verbs_memory *memory);

/* --- one lcore's share of a device ------------------------------------------------------------ */

struct verbs_cq {
	struct verbs_device *device;
	const struct verbs_memory *memory;
	struct ibv_comp_channel
		*channel;  /* channel->fd is readable when an armed CQ has something */
	struct ibv_cq *cq; /* of all the lcore's queue pairs, both directions */
	uint32_t reserved; /* most completions of its queue pairs; the thread that creates them
			      counts */
	bool armed;
};

/*
 * Create a completion queue for <qps> queue pairs; it grows for more, if the device can. 0, or
 * -errno with a sentence in <error>.
 */
int verbs_cq_init(struct verbs_cq *cq, struct verbs_device *device,
		  const struct verbs_memory *memory, unsigned int qps, char *error, size_t size);
void verbs_cq_fini(struct verbs_cq *cq);
/* Ask the device for a wake-up. False: it was armed already. */
bool verbs_cq_arm(struct verbs_cq *cq);
/* Read the wake-ups after a sleep. */
void verbs_cq_awake(struct verbs_cq *cq);

/* --- queue pairs -------------------------------------------------------------------------------
 */

struct verbs_qp {
	struct verbs_cq *cq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *ex;
	uint32_t tag;      /* owner's number in the ids of work requests */
	bool posting;      /* between ibv_wr_start() and ibv_wr_complete() */
	uint32_t reserved; /* completions reserved in the CQ */
	uint32_t spent;    /* receives that were used and not posted again */
	/* memory that the peer writes */
	uint8_t *region;
	struct ibv_mr *mr;
};

struct verbs_qp_params {
	uint32_t tag;
	uint32_t length;  /* bytes that the peer may write */
	uint32_t receive; /* most messages with immediate at a time */
};

/* Create a queue pair; call verbs_connect() next. NULL with errno; ENOSPC: the CQ cannot grow. */
struct verbs_qp *verbs_qp_create(struct verbs_cq *cq, const struct verbs_qp_params *params);
/* Destroy it: on return the device touches neither packets nor the region. NULL is ignored. */
void verbs_qp_destroy(struct verbs_qp *qp);

/* Make <rq> send through <qp>; call it right after requester_init(). */
void verbs_requester_attach(struct requester *rq, struct verbs_qp *qp);

/* --- completions --------------------------------------------------------------------------------
 */

/* The tag of a completion's queue pair. */
static inline uint32_t verbs_wc_tag(const struct ibv_wc *wc)
{
	return wc->wr_id >> 32;
}

/* True for a received message, false for one that we sent. */
static inline bool verbs_wc_is_receive(const struct ibv_wc *wc)
{
	return wc->wr_id & UINT32_C(0x80000000);
}

/* Process the completion of a send of <rq>; a failure sets rq->error. */
void verbs_requester_complete(struct requester *rq, const struct ibv_wc *wc, uint64_t now);
/*
 * Process the completion of a received message, which used a receive. A failed receive is not
 * posted again: the queue pair is in error and would fail it again at once.
 */
void verbs_qp_received(struct verbs_qp *qp, const struct ibv_wc *wc);
/* Post all used receives again. */
void verbs_qp_refill(struct verbs_qp *qp);

#endif
