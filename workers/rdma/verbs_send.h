/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requester's other engine: an RDMA device sends, acknowledges and retries. Messages leave from
 * mbufs where they lie; the window of the requester holds them until the device has reported their
 * completion, with work requests in the place of packets.
 *
 * Threads: a verbs_cq and the queue pairs on it are one lcore's. Another thread makes and connects
 * a queue pair before the lcore knows it, and destroys it after the lcore has let go.
 */
#ifndef RDMA_VERBS_SEND_H
#define RDMA_VERBS_SEND_H

#include "rdma/requester.h"
#include "rdma/verbs.h"

/* --- packet memory ---------------------------------------------------------------------------- */

/* What the device may read to send: every mempool of this process. Immutable. */
struct verbs_memory;

/* NULL with a sentence in <error>. The mempools outlive it. */
struct verbs_memory *verbs_memory_create(struct verbs_device *device, char *error, size_t size);
void verbs_memory_destroy(struct verbs_memory *memory);

/* --- one lcore's share of a device ------------------------------------------------------------ */

struct verbs_cq {
	struct verbs_device *device;
	const struct verbs_memory *memory;
	struct ibv_comp_channel
		*channel;  /* channel->fd is readable when an armed CQ has something */
	struct ibv_cq *cq; /* of all its queue pairs, both directions */
	uint32_t reserved; /* completions that those may have at a time; who makes them counts */
	bool armed;
};

/*
 * <qps>: so many queue pairs are usual; for more its CQ grows, the device permitting. 0, or -errno
 * with a sentence in <error>.
 */
int verbs_cq_init(struct verbs_cq *cq, struct verbs_device *device,
		  const struct verbs_memory *memory, unsigned int qps, char *error, size_t size);
void verbs_cq_fini(struct verbs_cq *cq);
/* Ask for a wake-up. False: it was asked for before, and nothing has come since. */
bool verbs_cq_arm(struct verbs_cq *cq);
/* After a sleep. */
void verbs_cq_awake(struct verbs_cq *cq);

/* --- queue pairs -------------------------------------------------------------------------------
 */

struct verbs_qp {
	struct verbs_cq *cq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *ex;
	uint32_t tag;      /* the owner's, in the work requests' names */
	bool posting;      /* since ibv_wr_start() */
	uint32_t reserved; /* completions reserved in the CQ */
	uint32_t spent;    /* receives that are used up and not posted again */
	/* what the peer writes */
	uint8_t *region;
	struct ibv_mr *mr;
};

struct verbs_qp_params {
	uint32_t tag;
	uint32_t length;  /* bytes that the peer may write */
	uint32_t receive; /* messages with immediate that may come at a time */
};

/* NULL with errno; ENOSPC: the CQ cannot grow. verbs_connect() comes next. */
struct verbs_qp *verbs_qp_create(struct verbs_cq *cq, const struct verbs_qp_params *params);
/* From here on the device touches neither packets nor the region. NULL is fine. */
void verbs_qp_destroy(struct verbs_qp *qp);

/* Let <rq>, fresh from requester_init(), send through <qp>. */
void verbs_requester_attach(struct requester *rq, struct verbs_qp *qp);

/* --- completions --------------------------------------------------------------------------------
 */

/* A completion is of the queue pair with this tag; and of a message that came, or one that we sent.
 */
static inline uint32_t verbs_wc_tag(const struct ibv_wc *wc)
{
	return wc->wr_id >> 32;
}

static inline bool verbs_wc_is_receive(const struct ibv_wc *wc)
{
	return wc->wr_id & UINT32_C(0x80000000);
}

/* What <rq> sent is done, or went wrong: see rq->error. */
void verbs_requester_complete(struct requester *rq, const struct ibv_wc *wc, uint64_t now);
/*
 * A message came, and its receive is used up. One that failed is not posted again: the queue pair
 * is in error, and would fail it at once, over and over.
 */
void verbs_qp_received(struct verbs_qp *qp, const struct ibv_wc *wc);
/*
 * Append the <length> bytes that came to <offset> of the region to <m>. -EMSGSIZE: they are more
 * than <room>, or than <m> takes; <m> is as it was. The peer may write there at any time: what is
 * checked must be the copy.
 */
int verbs_qp_read(const struct verbs_qp *qp, uint64_t offset, uint32_t length, uint32_t room,
		  struct rte_mbuf *m);
/* Post again what is used up, in one go. */
void verbs_qp_refill(struct verbs_qp *qp);

#endif
