/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RC responder: checks each WRITE that arrives (IBTA volume 1, 9.7.4 to 9.7.6). Pure, no DPDK: the
 * caller owns the packet and puts the payload where the placement says, which is memory (the
 * software RNIC) or a chain of mbufs for a client (the load balancer).
 *
 * As strict as a NIC: PSN order, opcode order, exact lengths, rkey and range. The responder only
 * notes acknowledgements; the caller sends one per queue pair and burst (responder_ack_due()).
 *
 * Owner: one thread.
 */
#ifndef RDMA_RESPONDER_H
#define RDMA_RESPONDER_H

#include <stdbool.h>
#include <stdint.h>

#include "rdma/roce_wire.h"

/* The memory that a peer may write. */
struct rdma_region {
	uint64_t va;
	uint64_t length;
	uint32_t rkey;
	uint32_t stride; /* 0, or a power of two: a message starts at a multiple and is no longer */
};

struct responder_stats {
	uint64_t packets, messages, naks, duplicates, ahead, acks;
	uint64_t marked, notifications; /* packets with CE; notifications sent for them */
};

struct responder {
	struct rdma_region region;
	uint32_t mtu;
	uint32_t epsn; /* next expected PSN */
	uint32_t msn;  /* completed messages */
	bool error;    /* it refused a packet for good and accepts no more (atomic) */
	bool nak_sent; /* a sequence NAK went out since the last packet in order */
	bool in_message;
	uint64_t va;   /* where the next packet of the message goes */
	uint32_t left; /* bytes of the message still to come */
	/* the acknowledgement to send */
	bool ack_due;
	uint8_t ack_syndrome;
	uint32_t ack_psn;
	/* the congestion notification to send */
	bool notification_due;
	uint64_t notify_interval; /* least time between two; 0: never notify */
	uint64_t notify_after;    /* no notification before this time */
	struct responder_stats stats;
};

enum responder_verdict {
	RESPONDER_ACCEPT,
	RESPONDER_DUPLICATE, /* seen before; acknowledged again */
	RESPONDER_AHEAD,     /* a packet before it is missing; one NAK per gap */
	RESPONDER_INVALID,   /* opcode or length out of order; NAK, then error */
	RESPONDER_ACCESS,    /* rkey or range do not match; NAK, then error */
	RESPONDER_DEAD,      /* the queue pair was in error already */
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
 * Process a request: a WRITE, or another opcode, which puts the queue pair in error when it is next
 * in order. Fills <placement> on RESPONDER_ACCEPT only.
 */
enum responder_verdict responder_receive(struct responder *r, const struct roce_packet *packet,
					 struct responder_placement *placement);

/*
 * True when an acknowledgement is due: fills the PSN, syndrome and MSN for it and clears the note.
 */
bool responder_ack_due(struct responder *r, uint32_t *psn, uint8_t *syndrome, uint32_t *msn);

/* Notify the peer of congestion at most once per <interval>, on the caller's clock. 0: never. */
void responder_notify_every(struct responder *r, uint64_t interval);

/* Note a switch's congestion mark on a WRITE, independent of the verdict of responder_receive(). */
void responder_marked(struct responder *r, uint64_t now);

/* True when a notification is due; clears the note. */
bool responder_notification_due(struct responder *r);

#endif
