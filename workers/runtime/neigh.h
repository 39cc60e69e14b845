/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Address resolution for addresses that the kernel does not know: ARP (RFC 826) and IPv6 neighbour
 * discovery (RFC 4861), as far as an end host needs them. Pure: bytes in, bytes out.
 * IPv4 addresses are ::ffff:a.b.c.d throughout.
 */
#ifndef RDMA_NEIGH_H
#define RDMA_NEIGH_H

#include <stdbool.h>
#include <stdint.h>

#include <netinet/in.h>

/* Longest frame that these functions build: neighbour solicitation or advertisement. */
#define NEIGH_FRAME_MAX 86

enum neigh_kind {
	NEIGH_OTHER,   /* ARP or ND, but nothing for an end host */
	NEIGH_REQUEST, /* somebody asks for <target> */
	NEIGH_REPLY,   /* <sender> tells its MAC address */
};

struct neigh_message {
	enum neigh_kind kind;
	uint8_t family;         /* 4 or 6 */
	struct in6_addr target; /* asked for */
	struct in6_addr sender; /* who asks or tells; all zero in a probe */
	uint8_t sender_mac[6];
};

/*
 * Look at an ARP packet (<ether_type> 0x0806) or an ICMPv6 packet (0x86dd, behind an IPv6 header
 * that the caller has checked: <packet> points at it). False when it is not well-formed ARP or ND.
 */
bool neigh_parse(uint16_t ether_type, const uint8_t *packet, uint32_t length,
		 struct neigh_message *message);

/*
 * Does it tell an address's MAC address, one that a station can have, unasked or as an answer? A
 * gratuitous ARP request does, too: so bonds announce that another of their NICs took over.
 */
bool neigh_gives_mac(const struct neigh_message *message);

/*
 * Another MAC address than the known one claims an address that packets are sent to. Whoever is on
 * the segment can do that, so the old holder is asked first, by unicast; only if it stays silent
 * does the address move. Times are in ms of a clock that may wrap.
 */
#define NEIGH_PROBE_MS 100 /* for the old holder to deny it, where nothing else is configured */

struct neigh_claim {
	bool open;
	uint8_t mac[6];
	unsigned int probes;
	uint32_t since, probed;
};

enum neigh_heard {
	NEIGH_HEARD_KNOWN,   /* nothing new */
	NEIGH_HEARD_CLAIM,   /* somebody else has it, or says so: neigh_claim_due() goes on */
	NEIGH_HEARD_DENIED,  /* the old holder answered: the claim is over */
	NEIGH_HEARD_NOTHING, /* that cannot be one station's address, or a claim is open */
};

/* <mac> says that it has the address for which <known> is known. */
enum neigh_heard neigh_claim_hear(struct neigh_claim *claim, const uint8_t known[6],
				  const uint8_t mac[6], uint32_t now);

enum neigh_due { NEIGH_DUE_NOTHING, NEIGH_DUE_PROBE, NEIGH_DUE_MOVE };

/* What is to be done about the claim now: the old holder has <bound> to deny it. */
enum neigh_due neigh_claim_due(struct neigh_claim *claim, uint32_t now, uint32_t bound);

/* Answer a NEIGH_REQUEST for one of our addresses. Returns the frame's length. */
uint32_t neigh_reply_build(uint8_t *frame, const struct neigh_message *request,
			   const uint8_t our_mac[6]);

/* Tell everybody, unasked, that <address> is here now. Returns the frame's length. */
uint32_t neigh_announcement_build(uint8_t *frame, uint8_t family, const struct in6_addr *address,
				  const uint8_t our_mac[6]);

/* Ask for <target>'s MAC address. Returns the frame's length. */
uint32_t neigh_request_build(uint8_t *frame, uint8_t family, const struct in6_addr *target,
			     const struct in6_addr *our_address, const uint8_t our_mac[6]);

/* Ask <their_mac>, and nobody else, whether it has <target>. Returns the frame's length. */
uint32_t neigh_probe_build(uint8_t *frame, uint8_t family, const struct in6_addr *target,
			   const struct in6_addr *our_address, const uint8_t our_mac[6],
			   const uint8_t their_mac[6]);

/* ICMPv6 check sum over pseudo header and message; <ip> points at the IPv6 header. Also verifies:
 * a good message sums to 0. */
uint16_t neigh_icmp6_checksum(const uint8_t *ip, uint32_t icmp_length);

#endif
