/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The workers: nine queue pairs on one host that play the fabric's side. They check PSNs, addresses
 * and descriptors of every WRITE, acknowledge, and answer. Their time is not measured.
 */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include "common/clients.h"
#include "common/rig.h"
#include "common/writer.h"

/* Of each worker's ring: a whole batch can be outstanding. */
#define PEER_SLOTS 8192
/* Turns from a WRITE to its acknowledgement; some 40 us, as on a busy fabric. */
#define PEER_ACK_TURNS 8

struct peer_worker {
	struct worker *worker; /* the load balancer's */
	struct lb_link_info info;
	uint32_t path_mtu;
	struct writer writer; /* to the load balancer */
	uint32_t epsn;        /* of its next WRITE */
	uint32_t msn;
	uint64_t sequence; /* of its last descriptor */
	uint32_t acked;    /* the last PSN of ours that it acknowledged */
	uint32_t stride;
	uint32_t request[PEER_SLOTS];
};

/* A request that was announced and not answered. */
struct peer_request {
	uint16_t worker;
	uint32_t slot;
	uint32_t index; /* in the batch */
	uint64_t sequence;
};

struct peer_ack {
	unsigned int turn; /* due then */
	uint16_t worker;
	uint32_t psn, msn;
};

#define PEER_ACKS 1024

/* Of the first worker, where the rig has connections: for requests that are larger than a tile. */
#define PEER_ROOM (16u << 20)

/* Takes the WRITEs of large requests. Both calls end the bench when something is wrong. */
struct peer_large {
	void *context;
	/* <length> bytes for <offset> of the room have come in <m>. */
	void (*take)(void *context, uint32_t offset, const uint8_t *bytes, uint32_t length,
		     const struct rte_mbuf *m);
	/* The request at <offset> is announced. Returns its number in the batch. */
	uint32_t (*announce)(void *context, uint32_t offset, uint32_t length);
};

struct peer {
	const struct rig *rig;
	const struct clients *clients;
	bool verify; /* read every byte; costs cache, so not while measuring */
	unsigned int turn;
	struct peer_worker worker[RIG_WORKERS];
	uint32_t n_acks, first_ack;
	struct peer_ack ack[PEER_ACKS]; /* ring */
	struct peer_large large;        /* all zero: there are none */
	/* this batch */
	uint32_t n_payloads, n_requests;
	struct peer_request request[RIG_BATCH]; /* in the order of their descriptors */
	struct rte_mbuf *reply[RIG_BATCH];
	const uint8_t *reply_at[RIG_BATCH]; /* the bytes for the client, where the NIC put them */
};

/* Register all workers and get them active: address resolution, ready, heartbeats. */
void peer_join(struct peer *peer, const struct rig *rig, const struct clients *clients);

/* Begins a batch of requests. */
void peer_expect(struct peer *peer);

/* Before a turn: hand over the acknowledgements that are due. Call once per turn. */
void peer_acknowledge(struct peer *peer);
static inline bool peer_owes_acks(const struct peer *peer)
{
	return peer->n_acks > 0;
}

/* After a turn: take what the fabric port has sent. */
void peer_receive(struct peer *peer);

/* Makes the replies to the requests that were announced, as frames that a NIC has received. */
void peer_prepare_replies(struct peer *peer, const struct load *load);

/* True if the load balancer has acknowledged all that was sent to it. */
bool peer_all_acked(const struct peer *peer);

#endif
