/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The generator's two sides of one queue: clients that send requests and take replies, and a worker
 * that takes WRITEs, acknowledges and answers. Private to wire_gen.c and the two sides' files.
 */
#ifndef BENCH_WIRE_GEN_H
#define BENCH_WIRE_GEN_H

#include <rte_mbuf.h>

#include "common/payload.h"
#include "ring.h"
#include "wire/wire.h"
#include "common/writer.h"

#define GEN_BURST 32
/* Packets that the load balancer's port has no room for now. */
#define GEN_PENDING 2048

/* Orders of the control thread to all threads. */
struct gen_load {
	int epoch; /* atomic: grows when <load> is another */
	int stop;  /* atomic: of this epoch, no more requests */
	int end;   /* atomic: threads return */
	struct wire_load load;
};

/* Packets on their way to one port's queue: none is dropped. Owner: one thread. */
struct gen_out {
	uint16_t port, queue;
	unsigned int n;
	struct rte_mbuf *packet[GEN_PENDING];
};

void gen_out_flush(struct gen_out *out);
static inline unsigned int gen_out_room(const struct gen_out *out)
{
	return GEN_PENDING - out->n;
}

/* The clients of one queue. Owner: one thread; others read the counters. */
struct gen_clients {
	uint64_t sent, answered; /* of all loads */
	const struct wire_options *o;
	const struct gen_load *gen;
	const uint8_t *lb_mac;
	uint16_t queue;
	int epoch; /* atomic: of <load> */
	struct wire_load load;
	uint64_t first;  /* <sent> when the load began */
	uint64_t number; /* of its first request; what the worker gets is numbered apart */
	uint64_t walked, forwarded; /* requests of all loads before */
	uint64_t random;
	uint32_t flows, next; /* of this queue: flow i is number i * lcores + queue of all */
	/* sums over what does not change from request to request */
	uint64_t ip_sum, udp_sum;
	struct rte_mempool *requests; /* mbufs that hold a request already */
	struct gen_out out;
	/* the flows of requests on their way, by number */
	uint32_t mask;
	uint32_t *flow;
	struct gen_tcp *tcp; /* NULL: no service for them */
	int settled;         /* atomic: all that was received is acknowledged, on the wire */
} __rte_cache_aligned;

/* Before the thread starts. <requests> is this side's alone. */
void gen_clients_init(struct gen_clients *c, const struct wire_options *o,
		      const struct gen_load *gen, uint16_t port, uint16_t queue,
		      const uint8_t *lb_mac, struct rte_mempool *requests);
/* The same for clients by TCP, who have pools of their own. */
void gen_clients_add_tcp(struct gen_clients *c, struct rte_mempool *segments,
			 struct rte_mempool *control);
/* Adds what they count by TCP. For any thread. */
void gen_clients_count_tcp(const struct gen_clients *c, struct wire_queue_counters *to);
/* True when there was something to do. */
bool gen_clients_turn(struct gen_clients *c);

/* The worker's queue pair for one lcore of the load balancer. Owner: one thread, likewise. */
struct gen_worker {
	struct wire_queue_counters counters; /* the worker's part of them */
	const struct wire_options *o;
	const struct gen_load *gen;
	uint16_t queue;
	struct writer writer; /* to the load balancer */
	struct lb_link_info link;
	uint32_t acked;     /* PSN of the last packet of ours that it acknowledged */
	uint32_t replied;   /* PSN of our last reply */
	uint32_t epsn, msn; /* of its next WRITE; of messages taken */
	bool ack_due;
	uint64_t sequence;         /* of its last descriptor */
	uint64_t number;           /* of the request that must be announced next */
	uint64_t slot[WIRE_SLOTS]; /* the number of the request that lies there, plus one; 0 = none
				    */
	uint32_t length[WIRE_SLOTS]; /* its bytes */
	/* Of the room: bytes written from a page on, and the mark of a request that begins there.
	 */
	uint32_t written[WIRE_ROOM / RING_PAGE];
	uint64_t mark[WIRE_ROOM / RING_PAGE];
	/* of loads that verify: the room's memory, and what must lie there */
	uint8_t *room, *whole;
	struct rte_mempool *packets;    /* this side's alone */
	uint64_t beat_every, next_beat; /* TSC ticks */
	uint32_t beats;
	struct gen_out out;
} __rte_cache_aligned;

void gen_worker_init(struct gen_worker *w, const struct wire_options *o, const struct gen_load *gen,
		     uint16_t port, uint16_t queue, const struct wire_address *lb,
		     struct rte_mempool *packets);
/* <now>: TSC ticks. */
bool gen_worker_turn(struct gen_worker *w, uint64_t now);
/*
 * Has the load balancer acknowledged every reply? For any thread. Heartbeats do not count: on a
 * busy machine the next one leaves in the turn that takes the acknowledgement of the one before.
 */
static inline bool gen_worker_acked(const struct gen_worker *w)
{
	return roce_psn_diff(__atomic_load_n(&w->acked, __ATOMIC_RELAXED),
			     __atomic_load_n(&w->replied, __ATOMIC_RELAXED)) >= 0;
}

#endif
