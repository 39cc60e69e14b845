/* SPDX-License-Identifier: BSD-3-Clause */
#include <endian.h>

#include "rdma/path.h"

#define TTL 64

static uint16_t path_ones_complement_sum(const uint8_t *bytes, unsigned int length)
{
	uint32_t sum = 0;
	uint16_t word;

	for (unsigned int i = 0; i < length; i += 2) {
		memcpy(&word, bytes + i, 2);
		sum += word;
	}
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

static void path_put16(uint8_t *at, uint16_t value)
{
	at[0] = value >> 8;
	at[1] = value & 0xff;
}

static void path_ipv4_init(struct roce_path *path, const struct roce_path_spec *spec)
{
	uint8_t *ip = path->header + ROCE_ETHER_LENGTH;

	path_put16(path->header + 12, 0x0800);
	ip[0] = 0x45;
	ip[1] = path->tos;
	path_put16(ip + 6, 0x4000); /* do not fragment; the identification stays 0 (RFC 6864) */
	ip[8] = TTL;
	ip[9] = IPPROTO_UDP;
	memcpy(ip + 12, spec->source.s6_addr + 12, 4);
	memcpy(ip + 16, spec->destination.s6_addr + 12, 4);
	path->ip_sum = path_ones_complement_sum(ip, 20);
	/* masked, as the ICRC covers them */
	ip[1] = ip[8] = ip[10] = ip[11] = 0xff;
}

static void path_ipv6_init(struct roce_path *path, const struct roce_path_spec *spec)
{
	uint8_t *ip = path->header + ROCE_ETHER_LENGTH;

	path_put16(path->header + 12, 0x86dd);
	ip[0] = 0x6f;
	ip[1] = ip[2] = ip[3] = 0xff;
	ip[6] = IPPROTO_UDP;
	ip[7] = 0xff;
	memcpy(ip + 8, &spec->source, 16);
	memcpy(ip + 24, &spec->destination, 16);
}

void roce_path_init(struct roce_path *path, const struct roce_path_spec *spec)
{
	uint8_t *udp, *bth;

	memset(path, 0, sizeof(*path));
	path->ip_length = spec->family == 4 ? 20 : 40;
	path->length = ROCE_ETHER_LENGTH + path->ip_length + 8 + ROCE_BTH_LENGTH;
	path->ttl = TTL;
	path->tos = spec->tos;
	path->bth_flags = spec->migrated ? 0x40 : 0;
	path->mtu = spec->mtu;
	memcpy(path->header, spec->destination_mac, 6);
	memcpy(path->header + 6, spec->source_mac, 6);
	if (spec->family == 4)
		path_ipv4_init(path, spec);
	else
		path_ipv6_init(path, spec);
	udp = path->header + ROCE_ETHER_LENGTH + path->ip_length;
	path_put16(udp, spec->udp_source);
	path_put16(udp + 2, ROCE_UDP_PORT);
	path_put16(udp + 6, 0xffff); /* masked */
	bth = udp + 8;
	path_put16(bth + 2, ROCE_PKEY_DEFAULT);
	bth[4] = 0xff; /* masked */
	bth[5] = spec->qpn >> 16;
	bth[6] = spec->qpn >> 8;
	bth[7] = spec->qpn;
}

void roce_path_set_mac(struct roce_path *path, const uint8_t destination_mac[6])
{
	memcpy(path->header, destination_mac, 6);
}

/* Constant sizes, so that the compiler inlines the comparisons. */
static inline bool path_is_from_peer(const struct roce_path *path, const uint8_t *ip)
{
	const uint8_t *own = path->header + ROCE_ETHER_LENGTH;

	if (path->ip_length == 20)
		return ip[0] >> 4 == 4 && memcmp(ip + 12, own + 16, 4) == 0 &&
		       memcmp(ip + 16, own + 12, 4) == 0;
	return ip[0] >> 4 == 6 && memcmp(ip + 8, own + 24, 16) == 0 &&
	       memcmp(ip + 24, own + 8, 16) == 0;
}

bool roce_path_is_from_peer(const struct roce_path *path, const uint8_t *ip)
{
	return path_is_from_peer(path, ip);
}

/* Fields that routers may change count as all ones (IBTA annex A17.3.3): IP, UDP, BTH. */
static const uint8_t varies4[20 + 8 + ROCE_BTH_LENGTH] = {
	[1] = 0xff, [8] = 0xff, [10] = 0xff, [11] = 0xff, [26] = 0xff, [27] = 0xff, [32] = 0xff,
};
static const uint8_t varies6[40 + 8 + ROCE_BTH_LENGTH] = {
	[0] = 0x0f, [1] = 0xff,  [2] = 0xff,  [3] = 0xff,
	[7] = 0xff, [46] = 0xff, [47] = 0xff, [52] = 0xff,
};

/*
 * The compiler makes wide stores of this. The CRC loads the bytes at once, and a wide load of bytes
 * stored in narrow pieces waits for all earlier stores.
 */
static inline void path_mask(uint8_t *to, const uint8_t *from, const uint8_t *varies,
			     uint32_t length)
{
	for (uint32_t i = 0; i < length; i++)
		to[i] = from[i] | varies[i];
}

static inline uint32_t path_icrc_of_packet(const uint8_t *ip, uint32_t ip_length, uint32_t length)
{
	uint8_t masked[40 + 8 + ROCE_BTH_LENGTH + ROCE_AETH_LENGTH];
	uint32_t headers = ip_length + 8 + ROCE_BTH_LENGTH;

	if (ip_length == 20)
		path_mask(masked, ip, varies4, sizeof(varies4));
	else
		path_mask(masked, ip, varies6, sizeof(varies6));
	/*
	 * An acknowledgement: a second CRC call for its four bytes would cost as much as the first.
	 */
	if (length == headers + ROCE_AETH_LENGTH) {
		memcpy(masked + headers, ip + headers, ROCE_AETH_LENGTH);
		return roce_icrc(ROCE_ICRC_SEED, masked, length);
	}
	return roce_icrc(roce_icrc(ROCE_ICRC_SEED, masked, headers), ip + headers,
			 length - headers);
}

uint32_t roce_icrc_of_packet(const uint8_t *ip, uint32_t ip_length, uint32_t length)
{
	return path_icrc_of_packet(ip, ip_length, length);
}

static inline bool path_icrc_ok(const uint8_t *ip, uint32_t ip_length, uint32_t length)
{
	uint32_t stored;

	memcpy(&stored, ip + length, sizeof(stored));
	return le32toh(stored) == path_icrc_of_packet(ip, ip_length, length);
}

bool roce_icrc_ok(const uint8_t *ip, uint32_t ip_length, uint32_t length)
{
	return path_icrc_ok(ip, ip_length, length);
}

enum roce_admission roce_path_admit(const struct roce_path *path, const uint8_t *ip,
				    uint32_t ip_length, uint32_t length)
{
	/* Check this first, so that a spoofed packet does not cost a CRC over its payload. */
	if (!path_is_from_peer(path, ip))
		return ROCE_NOT_PEER;
	/* RoCEv2 peers send no IP options. */
	if (ip_length != path->ip_length || !path_icrc_ok(ip, ip_length, length - ROCE_ICRC_LENGTH))
		return ROCE_BAD_ICRC;
	return ROCE_ADMITTED;
}

uint32_t roce_ack_build(uint8_t *at, const struct roce_path *path, uint32_t psn, uint8_t syndrome,
			uint32_t msn)
{
	struct roce_header h = {.opcode = ROCE_ACK, .psn = psn, .body = ROCE_AETH_LENGTH};
	uint32_t aeth = htobe32((uint32_t)syndrome << 24 | (msn & ROCE_PSN_MASK));
	uint32_t length = path->length + ROCE_AETH_LENGTH, crc;

	roce_header_write(at, path, &h);
	memcpy(at + path->length, &aeth, sizeof(aeth));
	crc = htole32(
		roce_icrc(ROCE_ICRC_SEED, at + ROCE_ETHER_LENGTH, length - ROCE_ETHER_LENGTH));
	memcpy(at + length, &crc, sizeof(crc));
	roce_header_unmask(at, path);
	return length + ROCE_ICRC_LENGTH;
}

/* Change the path's traffic class. */
static void path_set_tos(struct roce_path *path, uint8_t tos)
{
	/* The sum is over words in memory order: the class is the second byte of the first word. */
	uint8_t less[2] = {0, path->tos}, more[2] = {0, tos};
	uint16_t minus, plus;
	uint32_t sum;

	memcpy(&minus, less, sizeof(minus));
	memcpy(&plus, more, sizeof(plus));
	sum = path->ip_sum + (uint16_t)~minus + plus; /* RFC 1624 */
	sum = (sum & 0xffff) + (sum >> 16);
	path->ip_sum = (sum & 0xffff) + (sum >> 16);
	path->tos = tos;
}

uint32_t roce_cnp_build(uint8_t *at, const struct roce_path *path)
{
	struct roce_header h = {.opcode = ROCE_CNP, .body = ROCE_CNP_BODY};
	uint32_t length = path->length + ROCE_CNP_BODY, crc;
	struct roce_path urgent = *path;

	path_set_tos(&urgent, ROCE_TOS_CNP);
	roce_header_write(at, &urgent, &h);
	memset(at + path->length, 0, ROCE_CNP_BODY);
	crc = htole32(
		roce_icrc(ROCE_ICRC_SEED, at + ROCE_ETHER_LENGTH, length - ROCE_ETHER_LENGTH));
	memcpy(at + length, &crc, sizeof(crc));
	roce_header_unmask(at, &urgent);
	at[path->length - ROCE_BTH_LENGTH + 4] = 0x40; /* BECN; the ICRC does not cover it */
	return length + ROCE_ICRC_LENGTH;
}
