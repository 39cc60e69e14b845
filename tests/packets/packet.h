/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames as data: a struct packet says how a frame differs from a good one, packet_build() makes
 * its bytes. Every field's zero means "as it should be", so that a row names only what it is about.
 */
#ifndef PACKETS_PACKET_H
#define PACKETS_PACKET_H

#include <stdbool.h>
#include <stdint.h>

#define PACKET_MAX 2048

/* MAC addresses of the port and of its peer. */
extern const uint8_t packet_our_mac[6], packet_their_mac[6];

/* Values unless a row says otherwise. */
#define PACKET_SOURCE4          "192.0.2.7"
#define PACKET_DESTINATION4     "198.51.100.1"
#define PACKET_SOURCE6          "2001:db8::7"
#define PACKET_DESTINATION6     "2001:db8:ffff::1"
#define PACKET_SOURCE_PORT      40000
#define PACKET_DESTINATION_PORT 8000

#define PACKET_HOPS_0 256

enum packet_to { TO_US, TO_BROADCAST, TO_GROUP4, TO_GROUP6, TO_ALL_GROUP6, TO_ANOTHER };
/* SUM_PARTIAL: of the pseudo header only, as senders leave it to hardware */
enum packet_sum { SUM_RIGHT, SUM_WRONG, SUM_NONE, SUM_PARTIAL };

struct packet {
	enum packet_to to;
	uint8_t station; /* last byte of the sender's MAC address, instead of the usual one */
	bool tagged;     /* 802.1Q */
	uint16_t tci;
	uint16_t inner_type; /* behind the tag, instead of the right one */
	uint16_t ether_type;
	/* IP */
	uint8_t family; /* 4, 6, or 0: no IP, <body> follows the Ethernet header */
	const char *source, *destination;
	uint8_t version, header_words; /* instead of the right ones */
	uint8_t options;               /* bytes of IPv4 options, a multiple of 4 */
	uint16_t fragment;             /* flags and offset */
	bool fragment_header;          /* IPv6: with one, that says <fragment> */
	uint16_t next; /* protocol or next header, instead of the right one; 256 for 0 */
	uint16_t hops; /* TTL or hop limit, instead of 64 or 255 (IPv6); PACKET_HOPS_0 for 0 */
	int total;     /* added to the IP length */
	enum packet_sum ip_sum;
	/* UDP, unless <icmp> or <tcp> is set. Of TCP only the ports: the rest of its header is the
	 * payload's first 16 bytes or more, with zero for the checksum. */
	bool tcp;
	uint16_t source_port, destination_port;
	bool no_source_port;
	int udp_length; /* added to the UDP length */
	enum packet_sum l4_sum;
	bool icmp;
	uint8_t icmp_type, icmp_code;
	uint16_t icmp_mtu; /* in an error of ICMP; 0: other bytes */
	/* bytes of payload: 0x40, 0x41, ...; then, in hexadecimal, <body>; then <bytes> */
	uint16_t payload;
	const char *body;
	const void *bytes;
	uint16_t n_bytes;
	/* link layer */
	uint8_t padding; /* bytes behind the IP packet */
	int length;      /* when not 0, the frame is cut to this many bytes */
};

/* Returns the frame's length. */
uint32_t packet_build(const struct packet *packet, uint8_t frame[PACKET_MAX]);

/*
 * The part of a frame's IP packet that begins <offset> bytes behind its IP header, <bytes> long or
 * what is left: as a frame of its own. Returns its length.
 */
uint32_t packet_cut(const uint8_t *frame, uint32_t length, uint32_t offset, uint32_t bytes,
		    uint8_t piece[PACKET_MAX]);

#endif
