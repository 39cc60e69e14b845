/* SPDX-License-Identifier: BSD-3-Clause */
#include <endian.h>
#include <string.h>

#include "craft.h"

#define READ_REQUEST       0x0c
#define READ_RESPONSE_ONLY 0x10

static void put16(uint8_t *at, uint16_t value)
{
	at[0] = value >> 8;
	at[1] = value;
}

/* Headers up to the BTH for <body> bytes behind it. */
static uint8_t *headers(struct craft *c, const struct rig_qp *qp, const struct roce_header *h)
{
	roce_header_write(c->frame, &qp->path, h);
	roce_header_unmask(c->frame, &qp->path);
	c->ip = c->frame + ROCE_ETHER_LENGTH;
	c->ip_length = qp->path.ip_length;
	c->udp = c->ip + c->ip_length;
	c->bth = c->udp + 8;
	put16(c->udp, CRAFT_UDP_PORT);
	c->length = qp->path.length + h->body + ROCE_ICRC_LENGTH;
	return c->bth + ROCE_BTH_LENGTH;
}

void craft_build(struct craft *c, const struct rig_qp *qp, const struct craft_write *w)
{
	uint8_t traits = w->opcode == READ_REQUEST ? ROCE_HAS_RETH : roce_opcode_traits(w->opcode);
	struct roce_header h = {.opcode = w->opcode,
				.pad = -w->bytes & 3,
				.ack_request = !w->no_ack_request,
				.psn = w->psn};
	struct roce_reth reth = {.va = htobe64(qp->va + w->offset),
				 .rkey = htobe32(qp->rkey),
				 .length = htobe32(w->length != 0 ? w->length : w->bytes)};
	uint32_t imm = htobe32(w->imm);
	uint8_t *at;

	h.body = (traits & ROCE_HAS_RETH ? ROCE_RETH_LENGTH : 0) +
		 (traits & ROCE_HAS_IMM ? ROCE_IMM_LENGTH : 0) + w->bytes + h.pad;
	at = headers(c, qp, &h);
	if (traits & ROCE_HAS_RETH) {
		memcpy(at, &reth, sizeof(reth));
		at += sizeof(reth);
	}
	if (traits & ROCE_HAS_IMM) {
		memcpy(at, &imm, sizeof(imm));
		at += sizeof(imm);
	}
	c->payload = at;
	for (uint32_t i = 0; i < w->bytes; i++)
		at[i] = rig_byte(w->seed, i);
	memset(at + w->bytes, 0, h.pad);
	craft_seal(c);
}

void craft_ack(struct craft *c, const struct rig_qp *qp, uint32_t psn, uint8_t syndrome,
	       uint32_t msn)
{
	struct roce_header h = {.opcode = ROCE_ACK, .psn = psn, .body = ROCE_AETH_LENGTH};
	uint32_t aeth = htobe32((uint32_t)syndrome << 24 | msn);

	c->payload = headers(c, qp, &h);
	memcpy(c->payload, &aeth, sizeof(aeth));
	craft_seal(c);
}

void craft_read_response(struct craft *c, const struct rig_qp *qp, uint32_t psn, uint32_t bytes,
			 unsigned int seed)
{
	struct roce_header h = {
		.opcode = READ_RESPONSE_ONLY, .psn = psn, .body = ROCE_AETH_LENGTH + bytes};
	uint32_t aeth = htobe32((uint32_t)ROCE_CREDITS_UNUSED << 24 | 1);

	c->payload = headers(c, qp, &h);
	memcpy(c->payload, &aeth, sizeof(aeth));
	c->payload += sizeof(aeth);
	for (uint32_t i = 0; i < bytes; i++)
		c->payload[i] = rig_byte(seed, i);
	craft_seal(c);
}

static void ipv4_checksum(uint8_t *ip)
{
	uint32_t sum = 0;

	put16(ip + 10, 0);
	for (unsigned int i = 0; i < 20; i += 2)
		sum += ip[i] << 8 | ip[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	put16(ip + 10, ~sum);
}

void craft_seal(struct craft *c)
{
	uint32_t covered = c->frame + c->length - ROCE_ICRC_LENGTH - c->ip;
	uint32_t crc;

	if (c->ip_length == 20)
		ipv4_checksum(c->ip);
	crc = htole32(roce_icrc_of_packet(c->ip, c->ip_length, covered));
	memcpy(c->ip + covered, &crc, sizeof(crc));
}

void craft_send(struct rig *rig, const struct craft *c)
{
	rig_send(rig, c->frame, c->length);
}
