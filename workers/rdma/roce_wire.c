/* SPDX-License-Identifier: BSD-3-Clause */
#include <endian.h>

#include "rdma/roce_wire.h"

static const uint8_t traits[256] = {
	/* RC requests, reserved opcodes included; 0x0d to 0x10 and 0x12 are responses. */
	[0x00 ... 0x05] = ROCE_IS_KNOWN | ROCE_IS_UNSERVED, /* SEND */
	[0x0c] = ROCE_IS_KNOWN | ROCE_IS_UNSERVED,          /* READ */
	[0x13 ... 0x1f] = ROCE_IS_KNOWN | ROCE_IS_UNSERVED, /* atomics, SEND with invalidate */
	[ROCE_WRITE_FIRST] = ROCE_IS_KNOWN | ROCE_IS_WRITE | ROCE_HAS_RETH | ROCE_IS_FIRST,
	[ROCE_WRITE_MIDDLE] = ROCE_IS_KNOWN | ROCE_IS_WRITE,
	[ROCE_WRITE_LAST] = ROCE_IS_KNOWN | ROCE_IS_WRITE | ROCE_IS_LAST,
	[ROCE_WRITE_LAST_IMM] = ROCE_IS_KNOWN | ROCE_IS_WRITE | ROCE_IS_LAST | ROCE_HAS_IMM,
	[ROCE_WRITE_ONLY] =
		ROCE_IS_KNOWN | ROCE_IS_WRITE | ROCE_HAS_RETH | ROCE_IS_FIRST | ROCE_IS_LAST,
	[ROCE_WRITE_ONLY_IMM] = ROCE_IS_KNOWN | ROCE_IS_WRITE | ROCE_HAS_RETH | ROCE_IS_FIRST |
				ROCE_IS_LAST | ROCE_HAS_IMM,
	[ROCE_CNP] = ROCE_IS_KNOWN,
	[ROCE_ACK] = ROCE_IS_KNOWN | ROCE_HAS_AETH,
};

uint8_t roce_opcode_traits(uint8_t opcode)
{
	return traits[opcode];
}

enum roce_parse_result roce_parse(const uint8_t *bth, uint32_t length, struct roce_packet *packet)
{
	struct roce_bth b;
	struct roce_reth reth;
	uint32_t word, offset = ROCE_BTH_LENGTH, payload;
	uint8_t has;

	if (length < ROCE_BTH_LENGTH + ROCE_ICRC_LENGTH || length > UINT16_MAX)
		return ROCE_PARSE_MALFORMED;
	memcpy(&b, bth, sizeof(b));
	/* Transport version 0, and the default partition, whose low 15 bits are all ones. */
	if ((b.flags & 0x0f) != 0 || (be16toh(b.pkey) & 0x7fff) != 0x7fff)
		return ROCE_PARSE_MALFORMED;
	has = traits[b.opcode];
	if (!has)
		return ROCE_PARSE_OPCODE;

	*packet = (struct roce_packet){
		.opcode = b.opcode,
		.pad = b.flags >> 4 & 3,
		.ack_request = be32toh(b.psn) >> 31,
		.qpn = be32toh(b.qpn) & ROCE_PSN_MASK,
		.psn = be32toh(b.psn) & ROCE_PSN_MASK,
	};
	length -= ROCE_ICRC_LENGTH;
	if (has & ROCE_HAS_RETH) {
		if (length < offset + ROCE_RETH_LENGTH)
			return ROCE_PARSE_MALFORMED;
		memcpy(&reth, bth + offset, sizeof(reth));
		packet->va = be64toh(reth.va);
		packet->rkey = be32toh(reth.rkey);
		packet->length = be32toh(reth.length);
		offset += ROCE_RETH_LENGTH;
	}
	if (has & (ROCE_HAS_IMM | ROCE_HAS_AETH)) {
		if (length < offset + sizeof(word))
			return ROCE_PARSE_MALFORMED;
		memcpy(&word, bth + offset, sizeof(word));
		word = be32toh(word);
		packet->imm = word;
		if (has & ROCE_HAS_AETH) {
			packet->syndrome = word >> 24;
			packet->msn = word & ROCE_PSN_MASK;
		}
		offset += sizeof(word);
	}
	payload = length - offset;
	/* An ACK ends with its AETH. */
	if (payload < packet->pad || (payload & 3) != 0 || (has & ROCE_HAS_AETH && payload != 0))
		return ROCE_PARSE_MALFORMED;
	packet->payload_offset = offset;
	packet->payload_length = payload - packet->pad;
	return ROCE_PARSED;
}

uint32_t roce_rnr_us(uint8_t code)
{
	static const uint32_t us[32] = {
		655360, 10,    20,    30,    40,    60,     80,     120,    160,    240,    320,
		480,    640,   960,   1280,  1920,  2560,   3840,   5120,   7680,   10240,  15360,
		20480,  30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520,
	};

	return us[code & 31];
}

uint32_t roce_path_mtu(uint32_t ip_mtu)
{
	/* IPv6, UDP, BTH, RETH, ImmDt and ICRC, rounded up as other stacks do, so that both ends
	 * come to the same answer: 1500 gives 1024, 4096 needs 4176. */
	const uint32_t headers = 80;
	uint32_t mtu = ROCE_MTU_MAX;

	while (mtu > ROCE_MTU_MIN && mtu + headers > ip_mtu)
		mtu /= 2;
	return mtu;
}
