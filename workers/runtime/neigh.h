/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Address resolution for addresses that the kernel does not have: ARP (RFC 826) and IPv6 neighbour
 * discovery (RFC 4861), the parts that an end host needs. Pure: bytes in, bytes out.
 * IPv4 addresses are ::ffff:a.b.c.d throughout.
 */
#ifndef RUNTIME_NEIGH_H
#define RUNTIME_NEIGH_H

#include <stdbool.h>
#include <stdint.h>

#include <netinet/in.h>

/* Longest frame built here: a neighbour solicitation or advertisement. */
#define NEIGH_FRAME_MAX 86

enum neigh_kind {
	NEIGH_OTHER,   /* ARP or ND that does not concern an end host */
	NEIGH_REQUEST, /* <sender> asks for the MAC address of <target> */
	NEIGH_REPLY,   /* <sender> gives its MAC address */
};

struct neigh_message {
	enum neigh_kind kind;
	uint8_t family;         /* 4 or 6 */
	struct in6_addr target; /* the address asked for */
	struct in6_addr sender; /* zero in a probe for a duplicate address */
	uint8_t sender_mac[6];
};

/*
 * Parse an ARP packet (<ether_type> 0x0806), or an ICMPv6 packet (0x86dd; <packet> points at the
 * IPv6 header, which the caller has checked). False when it is not well-formed ARP or ND.
 */
bool neigh_parse(uint16_t ether_type, const uint8_t *packet, uint32_t length,
		 struct neigh_message *message);

/*
 * True when the message tells the MAC address of an IP address, in an answer or unasked, and a
 * station can have that MAC address. A gratuitous ARP request counts, because bonds announce a
 * change of their active NIC by it.
 */
bool neigh_gives_mac(const struct neigh_message *message);

/*
 * A claim: another MAC address than the known one announces an address that we send to. Any host of
 * the segment can do that, so the old holder is asked first, by unicast; the address moves only if
 * the old holder does not answer. Times are in ms of a clock that may wrap.
 */
#define NEIGH_PROBE_MS 100 /* default time for the old holder to answer */

struct neigh_claim {
	bool open;
	uint8_t mac[6];
	unsigned int probes;
	uint32_t since, probed;
};

enum neigh_heard {
	NEIGH_HEARD_KNOWN,   /* the known MAC address, and no claim is open */
	NEIGH_HEARD_CLAIM,   /* another MAC address: a claim is open now, see neigh_claim_due() */
	NEIGH_HEARD_DENIED,  /* the old holder answered: the claim is over */
	NEIGH_HEARD_NOTHING, /* <mac> is no station's address, or a claim is open already */
};

/* Process an announcement by <mac> of the address whose known MAC address is <known>. */
enum neigh_heard neigh_claim_hear(struct neigh_claim *claim, const uint8_t known[6],
				  const uint8_t mac[6], uint32_t now);

enum neigh_due { NEIGH_DUE_NOTHING, NEIGH_DUE_PROBE, NEIGH_DUE_MOVE };

/* The next step of a claim at time <now>; the old holder has <bound> ms to answer. */
enum neigh_due neigh_claim_due(struct neigh_claim *claim, uint32_t now, uint32_t bound);

/* Answer a NEIGH_REQUEST for one of our addresses. Returns the frame's length. */
uint32_t neigh_reply_build(uint8_t *frame, const struct neigh_message *request,
			   const uint8_t our_mac[6]);

/* Announce to the segment that we have <address> now. Returns the frame's length. */
uint32_t neigh_announcement_build(uint8_t *frame, uint8_t family, const struct in6_addr *address,
				  const uint8_t our_mac[6]);

/* Ask for <target>'s MAC address. Returns the frame's length. */
uint32_t neigh_request_build(uint8_t *frame, uint8_t family, const struct in6_addr *target,
			     const struct in6_addr *our_address, const uint8_t our_mac[6]);

/* Ask <their_mac> by unicast whether it has <target>. Returns the frame's length. */
uint32_t neigh_probe_build(uint8_t *frame, uint8_t family, const struct in6_addr *target,
			   const struct in6_addr *our_address, const uint8_t our_mac[6],
			   const uint8_t their_mac[6]);

/* The ICMPv6 checksum over pseudo header and message; <ip> points at the IPv6 header. A message
 * with a good checksum gives 0. */
uint16_t neigh_icmp6_checksum(const uint8_t *ip, uint32_t icmp_length);

#endif
