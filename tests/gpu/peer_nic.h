/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A NIC that is a GPU, for a worker's loop on another one: its kernels write payloads and
 * descriptors into a link's memory by peer access, as a load balancer's WRITEs come there, watch
 * the doorbell that the loop rings, read WQEs and replies, compare every byte, and write CQEs. No
 * thread of a CPU takes part.
 *
 * It is no PCIe device behind a switch. Peer access may go by NVLink, order comes from
 * fences, not from PCIe, and a GPU polls the doorbell in the host's memory, where a NIC has a
 * register.
 *
 * Threads: one.
 */
#ifndef GPU_PEER_NIC_H
#define GPU_PEER_NIC_H

#include <stdint.h>

#include "rdma/mlx5_post.h"
#include "ring.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PEER_LINKS_MAX 64
/* Random bytes that payloads are cut from, beyond the longest one. */
#define PEER_SHIFTS 65536u

/* A link as the NIC's GPU sees it. */
struct peer_link {
	struct ring_descriptor *descriptors;
	uint8_t *payloads;
	uint64_t *cancels;
	uint32_t slots;
	uint64_t tile, first; /* the payload of slot i lies at payloads + first + i * tile */
	/* what its WQEs must say */
	uint64_t replies; /* of slot i at replies + i * reply_stride */
	uint32_t reply_stride, lkey, rkey, qpn;
	uint64_t remote, place; /* the reply to slot i goes to remote + i * place */
	/* its queue */
	const struct mlx5_wqe *wqes;
	struct mlx5_cqe *cqes;
	const uint64_t *doorbell;
	uint32_t wqe_count;
	/* goes on from call to call */
	uint64_t position;
	uint32_t cq_index;
	uint16_t next;
};

/* The first thing that was wrong. */
enum peer_fault {
	PEER_FINE,
	PEER_SILENT,  /* no reply for seconds */
	PEER_WQE,     /* a WQE that no right poster builds; <got> is its index */
	PEER_SLOT,    /* a reply to a slot that waits for none; <got> is the slot */
	PEER_STATUS,  /* <got> is the status */
	PEER_HEADER,  /* a header with another length or sequence; <got> is the sequence */
	PEER_CQ_FULL, /* more WQEs are out than the queue has */
};

struct peer_result {
	uint64_t answered, bytes, wrong_bytes, wrong_replies;
	uint64_t cancelled; /* replies that say so */
	uint64_t missed;    /* requests that were cancelled before they were there, and answered all
			       the    same */
	uint32_t fault;     /* enum peer_fault: the first one, of */
	uint32_t link, slot;
	uint64_t got;
};

/* Requests of many links at once, each by a block of threads of its own. */
struct peer_load {
	uint64_t requests;    /* per link */
	uint32_t window;      /* of a link, without a reply; at most its slots */
	uint32_t least, most; /* bytes of a request */
	uint32_t cancel_each; /* every n-th is cancelled before its descriptor is there; 0: none */
	uint32_t deadline_us;
	uint32_t patience_ms; /* without a reply, until PEER_SILENT; 0: 10 s */
	bool backwards; /* the descriptor first, then its payload: a NIC that keeps no order */
};

/* One request at a time on one link, written and read by all blocks. */
struct peer_ask {
	uint32_t length;
	uint32_t warm, n; /* requests before those that count, and these */
	uint32_t gap_ns;  /* from a reply to the next request */
	uint32_t deadline_us;
};

/* ns, of each request: */
struct peer_took {
	uint32_t placed; /* first byte of the payload to the mark */
	uint32_t rung;   /* mark to the reply's doorbell */
	uint32_t read;   /* doorbell to the reply's last byte, compared */
	uint32_t whole;  /* all of it */
};

struct peer_nic;

/*
 * Why <nic> cannot play the NIC of <gpu>, or NULL. <how> gets a sentence about the way between
 * them. The same GPU for both is possible, which tests the test, but not the order between GPUs.
 */
const char *peer_nic_lacks(int gpu, int nic, char *how, unsigned int size);
/* Open the NIC before the loop starts, because later a driver's call may wait for it to end.
 * <longest> bytes of a request. NULL with a sentence in <error>. */
struct peer_nic *peer_nic_open(int gpu, int nic, uint32_t longest, uint32_t slots, char *error,
			       unsigned int size);
void peer_nic_close(struct peer_nic *nic);
/* Run; <links> go on. 0, or -1 with the CUDA error's text in <error>. */
int peer_nic_load(struct peer_nic *nic, struct peer_link *links, uint32_t n,
		  const struct peer_load *load, struct peer_result *result, char *error,
		  unsigned int size);
/* <took> has room for ask->n. */
int peer_nic_ask(struct peer_nic *nic, struct peer_link *link, const struct peer_ask *ask,
		 struct peer_took *took, struct peer_result *result, char *error,
		 unsigned int size);

#ifdef __cplusplus
}
#endif

#endif
