/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A RoCEv2 path: the headers that all packets of a queue pair share. Ethernet, IP, UDP and BTH are
 * laid out once; a packet copies the template and fills in the rest.
 *
 * The template has the form that the ICRC covers (fields that routers may change are all ones). So
 * a packet's ICRC is computed first, in one pass, and then those fields get their real values.
 */
#ifndef RDMA_PATH_H
#define RDMA_PATH_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <netinet/in.h>

#include <isa-l/crc.h>

#include "rdma/roce_wire.h"

/* CRC-32 of the eight 0xff bytes that stand for the InfiniBand LRH (IBTA annex A17.3.3). */
#define ROCE_ICRC_SEED 0x2144df1cu

#define ROCE_ETHER_LENGTH 14
#define ROCE_TOS_DEFAULT  0x00 /* not ECT: no rate control reacts to marks */
#define ROCE_TOS_ECT      0x02 /* ECT(0): switches may mark what rate control reacts to (RFC 3168) */
#define ROCE_TOS_CNP      0xc2 /* CS6, as NICs send notifications, so that congestion spares them */

struct roce_path {
	uint8_t header[14 + 40 + 8 + ROCE_BTH_LENGTH]; /* masked template */
	uint8_t length;    /* bytes of the template: 54 (IPv4) or 74 (IPv6) */
	uint8_t ip_length; /* 20 or 40 */
	uint8_t tos;       /* real traffic class */
	uint8_t ttl;       /* real TTL or hop limit */
	uint8_t bth_flags; /* M bit */
	uint16_t ip_sum;   /* IPv4: ones' complement sum of the real header without total length */
	uint32_t mtu;      /* path MTU, bytes of payload per packet */
};

struct roce_path_spec {
	uint8_t source_mac[6], destination_mac[6];
	uint8_t family; /* 4 or 6; IPv4 as ::ffff:a.b.c.d */
	struct in6_addr source, destination;
	uint16_t udp_source; /* host order */
	uint32_t qpn;        /* the peer's queue pair */
	uint8_t tos;         /* DSCP and ECN */
	bool migrated;       /* BTH M bit: set, as NICs without path migration send it */
	uint32_t mtu;        /* 256, 512, 1024, 2048 or 4096 */
};

void roce_path_init(struct roce_path *path, const struct roce_path_spec *spec);
/* Set the next hop's MAC address: the peer's or the gateway's. */
void roce_path_set_mac(struct roce_path *path, const uint8_t destination_mac[6]);

/* True when the next hop's MAC address is known. */
static inline bool roce_path_is_resolved(const struct roce_path *path)
{
	static const uint8_t none[6];

	return memcmp(path->header, none, sizeof(none)) != 0;
}

/* True when a packet with this IP header is from the path's peer to us. */
bool roce_path_is_from_peer(const struct roce_path *path, const uint8_t *ip);

/* The header fields that differ from packet to packet. */
struct roce_header {
	uint8_t opcode;
	uint8_t pad;
	bool ack_request;
	uint32_t psn;
	uint32_t body; /* bytes between BTH and ICRC: extension headers, payload, pad */
};

/* Write the path's headers with the masked fields still masked. <at> has path->length bytes. */
static inline void roce_header_write(uint8_t *at, const struct roce_path *path,
				     const struct roce_header *h)
{
	uint8_t *ip = at + ROCE_ETHER_LENGTH;
	uint8_t *udp = ip + path->ip_length;
	uint8_t *bth = udp + 8;
	uint16_t udp_length = 8 + ROCE_BTH_LENGTH + h->body + ROCE_ICRC_LENGTH;
	uint16_t be_udp = __builtin_bswap16(udp_length);
	uint32_t be_psn = __builtin_bswap32(h->psn | (h->ack_request ? 1u << 31 : 0));

	memcpy(at, path->header, 54);
	if (path->ip_length == 40) {
		memcpy(at + 54, path->header + 54, 20);
		memcpy(ip + 4, &be_udp, 2);
	} else {
		uint16_t be_total = __builtin_bswap16(20 + udp_length);

		memcpy(ip + 2, &be_total, 2);
	}
	memcpy(udp + 4, &be_udp, 2);
	bth[0] = h->opcode;
	bth[1] = path->bth_flags | h->pad << 4;
	memcpy(bth + 8, &be_psn, 4);
}

/* Replace the masked fields by their real values. */
static inline void roce_header_unmask(uint8_t *at, const struct roce_path *path)
{
	uint8_t *ip = at + ROCE_ETHER_LENGTH;
	uint8_t *udp = ip + path->ip_length;

	if (path->ip_length == 20) {
		uint16_t total, sum16;
		uint32_t sum;

		memcpy(&total, ip + 2, 2);
		sum = (uint32_t)path->ip_sum + total;
		sum = (sum & 0xffff) + (sum >> 16);
		sum16 = ~(uint16_t)sum;
		ip[1] = path->tos;
		ip[8] = path->ttl;
		memcpy(ip + 10, &sum16, 2);
	} else {
		ip[0] = 0x60 | path->tos >> 4;
		ip[1] = (uint8_t)(path->tos << 4);
		ip[2] = ip[3] = 0;
		ip[7] = path->ttl;
	}
	udp[6] = udp[7] = 0; /* RoCEv2 leaves the UDP checksum out */
	udp[8 + 4] = 0;      /* FECN, BECN and reserved bits */
}

static inline uint32_t roce_icrc(uint32_t crc, const void *bytes, uint64_t length)
{
	return crc32_gzip_refl(crc, bytes, length);
}

/*
 * Compute the ICRC of a received packet. <ip> points at the IP header of a contiguous packet,
 * <length> counts from there to the byte before the ICRC; <ip_length> is 20 or 40.
 */
uint32_t roce_icrc_of_packet(const uint8_t *ip, uint32_t ip_length, uint32_t length);

/* True when the four bytes behind the packet are its ICRC (least significant byte first). */
bool roce_icrc_ok(const uint8_t *ip, uint32_t ip_length, uint32_t length);

enum roce_admission { ROCE_ADMITTED, ROCE_NOT_PEER, ROCE_BAD_ICRC };

/*
 * Check a packet before its queue pair reads it: from the path's peer, to us, with a good ICRC.
 * <length> counts from the IP header to the end of the ICRC. A packet that fails gets no answer.
 */
enum roce_admission roce_path_admit(const struct roce_path *path, const uint8_t *ip,
				    uint32_t ip_length, uint32_t length);

/* True when a switch marked the packet with this IP header for congestion (CE, RFC 3168). */
static inline bool roce_is_marked(const uint8_t *ip)
{
	return (ip[0] >> 4 == 4 ? ip[1] & 3 : ip[1] >> 4 & 3) == 3;
}

/* The longest ACK frame: over IPv6. */
#define ROCE_ACK_FRAME_MAX                                                                         \
	(ROCE_ETHER_LENGTH + 40 + 8 + ROCE_BTH_LENGTH + ROCE_AETH_LENGTH + ROCE_ICRC_LENGTH)

/*
 * Build an ACK or NAK frame into <at> (ROCE_ACK_FRAME_MAX bytes); returns its length.
 * <psn> is the last acknowledged PSN, or for a sequence NAK the expected one.
 */
uint32_t roce_ack_build(uint8_t *at, const struct roce_path *path, uint32_t psn, uint8_t syndrome,
			uint32_t msn);

/* The longest notification frame: over IPv6. */
#define ROCE_CNP_FRAME_MAX                                                                         \
	(ROCE_ETHER_LENGTH + 40 + 8 + ROCE_BTH_LENGTH + ROCE_CNP_BODY + ROCE_ICRC_LENGTH)

/*
 * Build a congestion notification for the path's peer into <at> (ROCE_CNP_FRAME_MAX bytes); returns
 * its length (IBTA annex A17.9.3: BECN, PSN 0, 16 bytes of zero).
 */
uint32_t roce_cnp_build(uint8_t *at, const struct roce_path *path);

#endif
