/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets made by hand, for what our requester and responder never send: built like theirs, then
 * changed, then completed with matching checksums, then perhaps damaged.
 */
#ifndef RXE_CRAFT_H
#define RXE_CRAFT_H

#include "rig.h"

/* UDP source port of these packets; it tells them from those of our own code in a capture. */
#define CRAFT_UDP_PORT 0xbadd

struct craft {
	uint8_t *ip, *udp, *bth, *payload;
	uint32_t ip_length;
	uint32_t length; /* of the frame, ICRC included */
	uint8_t frame[16384];
};

struct craft_write {
	uint8_t opcode;
	uint32_t psn;
	bool no_ack_request;
	uint32_t offset; /* in the peer's memory */
	uint32_t bytes;  /* of payload */
	uint32_t length; /* what RETH says; 0: <bytes> */
	uint32_t imm;
	unsigned int seed;
};

/* Builds any packet with a BTH: the opcode decides which headers follow. */
void craft_build(struct craft *c, const struct rig_qp *qp, const struct craft_write *w);
void craft_ack(struct craft *c, const struct rig_qp *qp, uint32_t psn, uint8_t syndrome,
	       uint32_t msn);
/* READ RESPONSE ONLY. */
void craft_read_response(struct craft *c, const struct rig_qp *qp, uint32_t psn, uint32_t bytes,
			 unsigned int seed);
/* Computes IPv4's checksum and the ICRC again, after changes. */
void craft_seal(struct craft *c);
void craft_send(struct rig *rig, const struct craft *c);

#endif
