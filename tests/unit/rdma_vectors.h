/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Known RoCEv2 packets. Those from 10.0.0.1 were checked against three independent implementations;
 * the frames between 10.77.0.2 and 10.77.0.9 were exchanged with Linux's rdma_rxe.
 */
#ifndef RDMA_VECTORS_H
#define RDMA_VECTORS_H

#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "rdma/path.h"

/* Hexadecimal digits to bytes, white space skipped. Returns the number of bytes. */
static inline uint32_t vector_bytes(const char *text, uint8_t *out)
{
	static const char digits[] = "0123456789abcdef";
	uint32_t n = 0;

	for (; *text != '\0'; text++) {
		if (isspace((unsigned char)*text))
			continue;
		if (n % 2 == 0)
			out[n / 2] = 0;
		out[n / 2] = out[n / 2] << 4 | (strchr(digits, *text) - digits);
		n++;
	}
	return n / 2;
}

/* From the IP header to the ICRC. */
#define VECTOR_WRITE_ONLY                                                                          \
	"4500004400004000401126a70a0000010a000002c00112b7003000000a00ffff00000011800001000000"     \
	"7f000000100000001234000000084142434445464748b5b2d940"
#define VECTOR_WRITE_ONLY_IMM                                                                      \
	"4500004800004000401126a30a0000010a000002c00112b7003400000b30ffff00000011800001010000"     \
	"7f00000010080000123400000005deadbeef68656c6c6f000000eb27aeeb"
#define VECTOR_ACK                                                                                 \
	"4500003000004000401126bb0a0000020a000001c00112b7001c00001100ffff00000022000001011f00"     \
	"0002c46c4143"
#define VECTOR_NAK                                                                                 \
	"4500003000004000401126bb0a0000020a000001c00112b7001c00001100ffff00000022000001026000"     \
	"0002dea6bd37"
#define VECTOR_WRITE_ONLY6                                                                         \
	"6000000000301140fe800000000000000000000000000001fe800000000000000000000000000002c001"     \
	"12b7003000000a00ffff000000118000010000007f000000100000001234000000084142434445464748"     \
	"8bbf9805"

/* A 600-byte WRITE at path MTU 256, byte i of the payload is i mod 256; PSN 0x200 to 0x202. */
#define VECTOR_LONG_LENGTH  600
#define VECTOR_LONG_VA      0x7f0000002000
#define VECTOR_LONG_PACKETS 3

static const struct {
	uint16_t ip_length, ip_checksum, udp_length;
	uint8_t opcode;
	uint8_t icrc[4];
} vector_long[VECTOR_LONG_PACKETS] = {
	{316, 0x25af, 296, ROCE_WRITE_FIRST, {0x54, 0x32, 0x25, 0x96}},
	{300, 0x25bf, 280, ROCE_WRITE_MIDDLE, {0x17, 0x23, 0xa1, 0x0f}},
	{132, 0x2667, 112, ROCE_WRITE_LAST, {0xa3, 0x33, 0x0e, 0x9f}},
};

#define RXE_TO_GUEST "0200000000020200000000090800"
#define RXE_TO_US    "0200000000090200000000020800"

#define VECTOR_OUR_ACK                                                                             \
	RXE_TO_GUEST "4500003012344000401113e50a4d00090a4d0002"                                    \
		     "c12312b7001c00001140ffff0000001c000005001f0000018454fce6"

/* Whole Ethernet frames and what they say. */
struct rxe_frame {
	const char *name, *bytes;
	uint8_t opcode, pad, syndrome;
	bool ack_request;
	uint32_t qpn, psn, msn, rkey, length, imm;
	uint64_t va;
	uint16_t payload_length;
};

static const struct rxe_frame rxe_frames[] = {
	{"write only",
	 RXE_TO_GUEST "4500005812344000401113bd0a4d00090a4d0002c12312b700440000"
		      "0a40ffff000000148000010000007f247caf7000000002f20000001c"
		      "68656c6c6f2066726f6d2075736572737061636520526f4345763221f3ec70e0",
	 .opcode = ROCE_WRITE_ONLY, .ack_request = true, .qpn = 0x14, .psn = 0x100,
	 .va = 0x7f247caf7000, .rkey = 0x2f2, .length = 28, .payload_length = 28},
	{"its ACK",
	 RXE_TO_US "450000304f5140004011d6c70a4d00020a4d0009d54e12b7001c0000"
		   "1100ffff00000777000001001f000001b58fde81",
	 .opcode = ROCE_ACK, .qpn = 0x777, .psn = 0x100, .syndrome = 0x1f, .msn = 1,
	 .imm = 0x1f000001},
	{"write only with immediate",
	 RXE_TO_GUEST "4500008012344000401113950a4d00090a4d0002c12312b7006c0000"
		      "0b40ffff000000148000010200007f247caf8000000002f200000040deadbeef"
		      "5858585858585858585858585858585858585858585858585858585858585858"
		      "5858585858585858585858585858585858585858585858585858585858585858"
		      "7b09f70a",
	 .opcode = ROCE_WRITE_ONLY_IMM, .ack_request = true, .qpn = 0x14, .psn = 0x102,
	 .va = 0x7f247caf8000, .rkey = 0x2f2, .length = 64, .imm = 0xdeadbeef,
	 .payload_length = 64},
	{"RNR NAK",
	 RXE_TO_US "450000304f5340004011d6c50a4d00020a4d0009d54e12b7001c0000"
		   "1100ffff00000777000001022c00000272cd9b1d",
	 .opcode = ROCE_ACK, .qpn = 0x777, .psn = 0x102, .syndrome = 0x2c, .msn = 2,
	 .imm = 0x2c000002},
	{"write after a gap",
	 RXE_TO_GUEST "4500004012344000401113d50a4d00090a4d0002c12312b7002c0000"
		      "0a40ffff000000148000010700007f247caf7000000002f200000004"
		      "67617021effcaf4c",
	 .opcode = ROCE_WRITE_ONLY, .ack_request = true, .qpn = 0x14, .psn = 0x107,
	 .va = 0x7f247caf7000, .rkey = 0x2f2, .length = 4, .payload_length = 4},
	{"sequence NAK",
	 RXE_TO_US "450000304f5a40004011d6be0a4d00020a4d0009d54e12b7001c0000"
		   "1100ffff000007770000010360000003f36f6cd1",
	 .opcode = ROCE_ACK, .qpn = 0x777, .psn = 0x103, .syndrome = 0x60, .msn = 3,
	 .imm = 0x60000003},
	{"write with a wrong rkey",
	 RXE_TO_GUEST "4500004012344000401113d50a4d00090a4d0002c12312b7002c0000"
		      "0a40ffff000000148000010f00007f247caf7000000002a700000004"
		      "6576696ceb189571",
	 .opcode = ROCE_WRITE_ONLY, .ack_request = true, .qpn = 0x14, .psn = 0x10f,
	 .va = 0x7f247caf7000, .rkey = 0x2a7, .length = 4, .payload_length = 4},
	{"access NAK",
	 RXE_TO_US "4500003050b840004011d5600a4d00020a4d0009d54e12b7001c0000"
		   "1100ffff000007770000010f6200000dff9de55f",
	 .opcode = ROCE_ACK, .qpn = 0x777, .psn = 0x10f, .syndrome = 0x62, .msn = 13,
	 .imm = 0x6200000d},
	{"write by rxe, with pad",
	 RXE_TO_US "45000064511840004011d4cc0a4d00020a4d0009d10712b700500000"
		   "0a30ffff000007778000050000007000000010001234abcd00000025"
		   "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
		   "2021222324000000db2e505c",
	 .opcode = ROCE_WRITE_ONLY, .pad = 3, .ack_request = true, .qpn = 0x777, .psn = 0x500,
	 .va = 0x700000001000, .rkey = 0x1234abcd, .length = 37, .payload_length = 37},
	{"our ACK", VECTOR_OUR_ACK, .opcode = ROCE_ACK, .qpn = 0x1c, .psn = 0x500, .syndrome = 0x1f,
	 .msn = 1, .imm = 0x1f000001},
};

#define RXE_FRAMES (sizeof(rxe_frames) / sizeof(rxe_frames[0]))

/* The path of the vectors: 10.0.0.1 -> 10.0.0.2 or fe80::1 -> fe80::2, and its way back. */
static inline struct roce_path_spec vector_spec(uint8_t family, bool back, uint32_t mtu)
{
	struct roce_path_spec spec = {
		.source_mac = {2, 0, 0, 0, 0, 1},
		.destination_mac = {2, 0, 0, 0, 0, 2},
		.family = family,
		.udp_source = 0xc001,
		.qpn = back ? 0x22 : 0x11,
		.mtu = mtu,
	};
	struct in6_addr *from = back ? &spec.destination : &spec.source;
	struct in6_addr *to = back ? &spec.source : &spec.destination;

	if (family == 4) {
		memcpy(from->s6_addr + 10, "\xff\xff\x0a\x00\x00\x01", 6);
		memcpy(to->s6_addr + 10, "\xff\xff\x0a\x00\x00\x02", 6);
	} else {
		from->s6_addr[0] = to->s6_addr[0] = 0xfe;
		from->s6_addr[1] = to->s6_addr[1] = 0x80;
		from->s6_addr[15] = 1;
		to->s6_addr[15] = 2;
	}
	return spec;
}

static inline void vector_path(struct roce_path *path, uint8_t family, bool back, uint32_t mtu)
{
	struct roce_path_spec spec = vector_spec(family, back, mtu);

	roce_path_init(path, &spec);
}

#endif
