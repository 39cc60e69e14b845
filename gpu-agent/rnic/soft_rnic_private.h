/* SPDX-License-Identifier: BSD-3-Clause */
/* Facade of the software RNIC's files, private to them. All of it is owned by the RNIC's thread. */
#ifndef AGENT_SOFT_RNIC_PRIVATE_H
#define AGENT_SOFT_RNIC_PRIVATE_H

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "runtime/drained.h"
#include "runtime/mailbox.h"
#include "runtime/neigh.h"
#include "runtime/kernel_port.h"
#include "rdma/requester.h"
#include "rdma/responder.h"
#include "rnic/send_queue.h"
#include "rnic/soft_rnic.h"
#include "runtime/txq.h"

/* Packets that may wait for acknowledgements; the pool holds more, so that receiving goes on. A
 * queue pair has no more of them than are left: n silent peers leave a part in n + 1 to others. */
#define SOFT_HOLD_MAX 4096

/* A WQE on the wire. It is complete when the peer has acknowledged its last packet. */
struct soft_sent {
	uint32_t end_psn; /* one past its last */
	uint16_t index;
	bool signal;
};

struct soft_qp {
	struct rnic_qp base;
	bool connected;
	bool resolved; /* the next hop's MAC address is known */
	bool direct;   /* the peer is the next hop: its packets come from that MAC address */
	bool dead;     /* an error CQE was written */
	struct txq *tx; /* of the queue that its packets take */
	struct rnic_qp_params params;
	struct rnic_address next_hop;
	uint64_t asked;     /* TSC of the last request for the next hop's MAC address */
	uint64_t doubts;    /* timeouts + strangers then; if there are more, it may have moved */
	uint64_t strangers; /* packets from other MAC addresses than the peer's */
	struct neigh_claim claim; /* another MAC address's claim to the next hop's address */
	struct send_queue sq;
	uint32_t offset; /* bytes sent of the WQE at sq.next */
	/* WQEs in flight: a ring of wqe_count entries */
	struct soft_sent *sent;
	uint16_t sent_head, sent_tail;
	struct roce_path path;
	struct responder responder;
	struct requester requester;
};

struct soft_rnic {
	struct rnic base;
	struct soft_rnic_params params;
	struct port port;
	char without_xdp[KERNEL_PORT_REASON_MAX]; /* the reason; see kernel_port.h */
	struct txq tx[SOFT_RNIC_QUEUES_MAX];      /* of the port's queues */
	struct rte_mempool *packets; /* received, and sent until acknowledged */
	struct rte_mempool *small;   /* ACKs and ARP */
	uint64_t attend_at;          /* TSC: when the port is looked after again */
	uint32_t held;               /* packets that wait for an acknowledgement */
	bool acks_wait; /* for room in a transmit queue: acknowledgements that are due */
	struct requester_list paced; /* queue pairs that wait until their rate lets them send */
	struct drained drained;
	struct mailbox mailbox;
	struct sleeper sleeper;
	int stop; /* atomic */
	unsigned int lcore;
	unsigned int n_qps;
	unsigned int first; /* of <qp>: the one behind the last that has sent sends first */
	struct soft_qp *qp[SOFT_RNIC_QPS_MAX];        /* live ones, in no order */
	struct soft_qp *by_number[SOFT_RNIC_QPS_MAX]; /* QPN mod size */
	struct soft_rnic_stats stats;
};

static inline struct soft_rnic *soft_rnic_of(const struct soft_qp *qp)
{
	return (struct soft_rnic *)qp->base.rnic;
}

/* Queue pair <i> of all, in the order of this turn: where a transmit queue is full, its first ones
 * get what becomes free. */
static inline struct soft_qp *soft_rnic_qp(const struct soft_rnic *rnic, unsigned int i)
{
	unsigned int at = rnic->first + i;

	return rnic->qp[at < rnic->n_qps ? at : at - rnic->n_qps];
}

/* The transmit queue of a packet of no queue pair: the peer's host reads all of them. */
static inline struct txq *soft_rnic_tx(struct soft_rnic *rnic)
{
	return &rnic->tx[0];
}

/* soft_send.c: makes packets of WQEs, and CQEs of acknowledgements. */
unsigned int soft_send_poll(struct soft_qp *qp);
void soft_send_acked(struct soft_qp *qp);
void soft_send_check(struct soft_qp *qp, uint64_t now);
/* soft_receive.c: places packets in memory. */
unsigned int soft_receive_poll(struct soft_rnic *rnic);
/* soft_resolve.c: finds the MAC addresses of next hops. */
void soft_resolve_poll(struct soft_rnic *rnic, uint64_t now);
bool soft_resolve_receive(struct soft_rnic *rnic, struct rte_mbuf *m, uint16_t ether_type,
			  uint32_t offset, uint32_t length);
/* soft_filter.c: a socket filter against copies of other processes' packets. soft_filter_make()
 * returns the number of instructions that it wrote to <code>. */
#define SOFT_FILTER_MAX 16
struct sock_filter;
unsigned int soft_filter_make(const struct rnic_address *address, struct sock_filter *code);
void soft_filter_attach(const struct port *port, const struct rnic_address *address);

#endif
