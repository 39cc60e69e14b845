/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RC responder: decides what to do with a WRITE that arrived (IBTA volume 1, 9.7.4 to 9.7.6). Pure
 * state, no DPDK: the caller owns the packet and puts the payload where the placement says, be it
 * memory (the software RNIC) or a chain of mbufs on its way to a client (the load balancer).
 *
 * As strict as a NIC: PSN order, opcode order, exact lengths, rkey and range. Acknowledgements are
 * noted, not sent: the caller sends one per queue pair and burst (responder_ack_due()).
 *
 * Owner: one thread.
 */
#ifndef RDMA_RESPONDER_H
#define RDMA_RESPONDER_H

#include <stdbool.h>
#include <stdint.h>

#include "rdma/roce_wire.h"

/* The memory a peer may write. */
struct rdma_region {
	uint64_t va;
	uint64_t length;
	uint32_t rkey;
	uint32_t stride; /* 0, or a power of two: a message starts at a multiple and is no longer */
};

struct responder_stats {
	uint64_t packets, messages, naks, duplicates, ahead, acks;
	uint64_t marked, notifications; /* packets with CE; notifications of them */
};

struct responder {
	struct rdma_region region;
	uint32_t mtu;
	uint32_t epsn; /* next expected */
	uint32_t msn;  /* completed messages */
	bool error;    /* refused something for good: takes nothing any more (atomic) */
	bool nak_sent; /* since the last packet in order */
	bool in_message;
	uint64_t va;   /* where the next packet of the message goes */
	uint32_t left; /* bytes of the message still to come */
	/* what to acknowledge */
	bool ack_due;
	uint8_t ack_syndrome;
	uint32_t ack_psn;
	/* congestion to tell the peer of */
	bool notification_due;
	uint64_t notify_interval; /* at least so long between two; 0 = never tell */
	uint64_t notify_after;
	struct responder_stats stats;
};

enum responder_verdict {
	RESPONDER_ACCEPT,
	RESPONDER_DUPLICATE, /* seen before; acknowledged again */
	RESPONDER_AHEAD,     /* a gap; NAK once */
	RESPONDER_INVALID,   /* opcode or length out of order; NAK, error */
	RESPONDER_ACCESS,    /* rkey or range; NAK, error */
	RESPONDER_DEAD,      /* in error already */
};

/* Where an accepted packet's payload goes. */
struct responder_placement {
	uint64_t va;
	bool first, last; /* of its message */
	bool has_imm;
	uint32_t imm;
};

void responder_init(struct responder *r, const struct rdma_region *region, uint32_t mtu,
		    uint32_t psn);

/*
 * <packet> is any request: a WRITE, or one that is not served and ends the queue pair when its turn
 * comes. <placement> is filled on RESPONDER_ACCEPT only.
 */
enum responder_verdict responder_receive(struct responder *r, const struct roce_packet *packet,
					 struct responder_placement *placement);

/*
 * Something to tell the peer? Then the PSN, syndrome and MSN to build an ACK from; the note is
 * cleared.
 */
bool responder_ack_due(struct responder *r, uint32_t *psn, uint8_t *syndrome, uint32_t *msn);

/* Notify the peer of congestion, at most once per <interval>, on whatever clock. 0: never. */
void responder_notify_every(struct responder *r, uint64_t interval);

/* A WRITE of the peer's came with a switch's mark, whatever responder_receive() makes of it. */
void responder_marked(struct responder *r, uint64_t now);

/* Is a notification due? The note is cleared. */
bool responder_notification_due(struct responder *r);

#endif
