/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bursts (private to lb/): the packets that travel from stage to stage. They lie in an lcore's
 * memory, an array per field.
 */
#ifndef LB_BURST_H
#define LB_BURST_H

#include <rte_mbuf.h>

#include "packet/client_path.h"
#include "packet/parse.h"

/* Packets of one burst, at most. */
#define LB_BURST 32

struct link;

/* Where a request queues, and how often it was sent to a worker that was lost. */
struct priority {
	uint8_t level; /* of the queue, see queue.h; lower goes first */
	uint8_t replays;
};

/* Client requests on their way through the stages. Index i is the same packet in all arrays. */
struct burst {
	unsigned int n;
	struct rte_mbuf *packet[LB_BURST];
	struct parsed parsed[LB_BURST];
	struct flow_key key[LB_BURST];
	uint32_t hash[LB_BURST];
	struct flow *flow[LB_BURST];
	uint64_t handle[LB_BURST];  /* of the flow */
	uint16_t service[LB_BURST]; /* of the request: the flow's, or one with its address */
	struct client_path path[LB_BURST];
	uint64_t tag[LB_BURST];      /* for notices: the request's id, or its first 8 bytes */
	uint64_t arrived[LB_BURST];  /* TSC */
	uint64_t deadline[LB_BURST]; /* TSC; 0: none */
	struct priority priority[LB_BURST];
	struct link *link[LB_BURST];
};

/* TCP segments of clients. */
struct segment_burst {
	unsigned int n;
	struct rte_mbuf *packet[LB_BURST];
	struct parsed parsed[LB_BURST];
	struct flow_key key[LB_BURST];
};

/* RoCE packets from the fabric, and the replies they complete. */
struct fabric_burst {
	unsigned int n;
	struct rte_mbuf *packet[LB_BURST];
	struct parsed parsed[LB_BURST];
	unsigned int n_replies;
	struct {
		struct rte_mbuf *message; /* chain: struct ring_reply, then the bytes */
		struct link *link;
		uint32_t imm;
	} reply[LB_BURST];
};

/* Packets that another lcore gets at the end of the burst. */
struct outbound {
	unsigned int n;
	struct rte_mbuf *packet[LB_BURST];
};

#endif
