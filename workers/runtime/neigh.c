/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "runtime/neigh.h"

#define ETHER        14
#define ARP_LENGTH   28
#define IP6          40
#define ND_LENGTH    24 /* type, code, checksum, flags, target */
#define ND_OPTION    8  /* link-layer address option */
#define ND_SOLICIT   135
#define ND_ADVERT    136
#define ND_SOLICITED 0x40 /* flag of an advertisement */
#define OPT_SOURCE   1
#define OPT_TARGET   2

static uint16_t neigh_get16(const uint8_t *at)
{
	return at[0] << 8 | at[1];
}

static void neigh_put16(uint8_t *at, uint16_t value)
{
	at[0] = value >> 8;
	at[1] = value & 0xff;
}

static void neigh_map4(struct in6_addr *out, const uint8_t *ip4)
{
	memset(out, 0, sizeof(*out));
	out->s6_addr[10] = out->s6_addr[11] = 0xff;
	memcpy(out->s6_addr + 12, ip4, 4);
}

static void ether_build(uint8_t *frame, const uint8_t *to, const uint8_t *from, uint16_t type)
{
	memcpy(frame, to, 6);
	memcpy(frame + 6, from, 6);
	neigh_put16(frame + 12, type);
}

uint16_t neigh_icmp6_checksum(const uint8_t *ip, uint32_t icmp_length)
{
	uint32_t sum = IPPROTO_ICMPV6 + icmp_length;

	for (uint32_t i = 8; i < IP6; i += 2) /* both addresses */
		sum += neigh_get16(ip + i);
	for (uint32_t i = 0; i + 1 < icmp_length; i += 2)
		sum += neigh_get16(ip + IP6 + i);
	if (icmp_length & 1)
		sum += ip[IP6 + icmp_length - 1] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

static bool arp_parse(const uint8_t *arp, uint32_t length, struct neigh_message *m)
{
	/* Ethernet, IPv4, address lengths 6 and 4 */
	static const uint8_t ether_ip4[6] = {0, 1, 8, 0, 6, 4};

	if (length < ARP_LENGTH || memcmp(arp, ether_ip4, sizeof(ether_ip4)) != 0)
		return false;
	m->family = 4;
	memcpy(m->sender_mac, arp + 8, 6);
	neigh_map4(&m->sender, arp + 14);
	neigh_map4(&m->target, arp + 24);
	m->kind = neigh_get16(arp + 6) == 1   ? NEIGH_REQUEST
		  : neigh_get16(arp + 6) == 2 ? NEIGH_REPLY
					      : NEIGH_OTHER;
	return true;
}

/*
 * Parse the options. <mac> points at the first link-layer address of <type>, or is NULL. False when
 * they are malformed, which makes the whole message invalid (RFC 4861, 7.1).
 */
static bool nd_options(const uint8_t *at, uint32_t length, uint8_t type, const uint8_t **mac)
{
	*mac = NULL;
	while (length > 0) {
		uint32_t size = length < ND_OPTION ? 0 : at[1] * 8u;

		if (size == 0 || size > length)
			return false;
		if (at[0] == type && *mac == NULL)
			*mac = at + 2;
		at += size;
		length -= size;
	}
	return true;
}

static bool solicitation_parse(const uint8_t *ip, const uint8_t *mac, struct neigh_message *m)
{
	memcpy(&m->sender, ip + 8, 16);
	/* A probe for a duplicate address, from ::, has no option; its answer goes to all nodes. */
	if (mac != NULL && IN6_IS_ADDR_UNSPECIFIED(&m->sender))
		return false;
	m->kind = NEIGH_REQUEST;
	if (mac != NULL)
		memcpy(m->sender_mac, mac, 6);
	return true;
}

static bool advertisement_parse(const uint8_t *ip, const uint8_t *mac, struct neigh_message *m)
{
	/* A multicast advertisement must not have the solicited flag (RFC 4861, 7.1.2). */
	if (ip[24] == 0xff && ip[IP6 + 4] & ND_SOLICITED)
		return false;
	m->sender = m->target;
	if (mac != NULL) {
		m->kind = NEIGH_REPLY;
		memcpy(m->sender_mac, mac, 6);
	}
	return true;
}

static bool nd_parse(const uint8_t *ip, uint32_t length, struct neigh_message *m)
{
	const uint8_t *nd = ip + IP6, *mac;
	uint32_t size;

	if (length < IP6 + ND_LENGTH || ip[6] != IPPROTO_ICMPV6)
		return false;
	size = neigh_get16(ip + 4);
	/* Hop limit 255 proves that the message comes from this link (RFC 4861, 7.1). */
	if (size < ND_LENGTH || size > length - IP6 || ip[7] != 255 || nd[1] != 0 ||
	    neigh_icmp6_checksum(ip, size) != 0)
		return false;
	m->family = 6;
	m->kind = NEIGH_OTHER;
	if (nd[0] != ND_SOLICIT && nd[0] != ND_ADVERT)
		return true;
	/* Neither the sender nor the target may be a multicast address. */
	if (ip[8] == 0xff || nd[8] == 0xff ||
	    !nd_options(nd + ND_LENGTH, size - ND_LENGTH,
			nd[0] == ND_SOLICIT ? OPT_SOURCE : OPT_TARGET, &mac))
		return false;
	memcpy(&m->target, nd + 8, 16);
	return nd[0] == ND_SOLICIT ? solicitation_parse(ip, mac, m)
				   : advertisement_parse(ip, mac, m);
}

bool neigh_parse(uint16_t ether_type, const uint8_t *packet, uint32_t length,
		 struct neigh_message *message)
{
	memset(message, 0, sizeof(*message));
	return ether_type == 0x0806 ? arp_parse(packet, length, message)
				    : nd_parse(packet, length, message);
}

static uint32_t arp_build(uint8_t *frame, uint16_t operation, const uint8_t *our_mac,
			  const uint8_t *our_ip4, const uint8_t *their_mac,
			  const uint8_t *their_ip4)
{
	static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	uint8_t *arp = frame + ETHER;

	ether_build(frame, operation == 1 ? broadcast : their_mac, our_mac, 0x0806);
	neigh_put16(arp, 1);
	neigh_put16(arp + 2, 0x0800);
	arp[4] = 6;
	arp[5] = 4;
	neigh_put16(arp + 6, operation);
	memcpy(arp + 8, our_mac, 6);
	memcpy(arp + 14, our_ip4, 4);
	memset(arp + 18, 0, 6);
	if (operation == 2)
		memcpy(arp + 18, their_mac, 6);
	memcpy(arp + 24, their_ip4, 4);
	return ETHER + ARP_LENGTH;
}

static uint32_t nd_build(uint8_t *frame, uint8_t type, uint32_t flags, const struct in6_addr *from,
			 const struct in6_addr *to, const struct in6_addr *target,
			 const uint8_t *our_mac, const uint8_t *their_mac)
{
	uint8_t *ip = frame + ETHER, *nd = ip + IP6;
	uint32_t length = ND_LENGTH + ND_OPTION;

	ether_build(frame, their_mac, our_mac, 0x86dd);
	memset(ip, 0, IP6 + length);
	ip[0] = 0x60;
	neigh_put16(ip + 4, length);
	ip[6] = IPPROTO_ICMPV6;
	ip[7] = 255;
	memcpy(ip + 8, from, 16);
	memcpy(ip + 24, to, 16);
	nd[0] = type;
	nd[4] = flags >> 24;
	memcpy(nd + 8, target, 16);
	nd[24] = type == ND_SOLICIT ? OPT_SOURCE : OPT_TARGET;
	nd[25] = 1; /* units of 8 bytes */
	memcpy(nd + 26, our_mac, 6);
	neigh_put16(nd + 2, neigh_icmp6_checksum(ip, length));
	return ETHER + IP6 + length;
}

uint32_t neigh_reply_build(uint8_t *frame, const struct neigh_message *request,
			   const uint8_t our_mac[6])
{
	static const uint8_t all_nodes_mac[6] = {0x33, 0x33, 0, 0, 0, 1};
	struct in6_addr all_nodes = {.s6_addr = {0xff, 2, [15] = 1}};
	bool probe;

	if (request->family == 4)
		return arp_build(frame, 2, our_mac, request->target.s6_addr + 12,
				 request->sender_mac, request->sender.s6_addr + 12);
	probe = IN6_IS_ADDR_UNSPECIFIED(&request->sender);
	/* Flags: solicited, except for probes, and override (RFC 4861, 7.2.4). */
	return nd_build(frame, ND_ADVERT, probe ? 1u << 29 : 3u << 29, &request->target,
			probe ? &all_nodes : &request->sender, &request->target, our_mac,
			probe ? all_nodes_mac : request->sender_mac);
}

uint32_t neigh_request_build(uint8_t *frame, uint8_t family, const struct in6_addr *target,
			     const struct in6_addr *our_address, const uint8_t our_mac[6])
{
	const uint8_t *t = target->s6_addr;
	uint8_t mac[6] = {0x33, 0x33, 0xff, t[13], t[14], t[15]};
	struct in6_addr solicited = {
		.s6_addr = {0xff,
			    2, [11] = 1, [12] = 0xff, [13] = t[13], [14] = t[14], [15] = t[15]}};

	if (family == 4)
		return arp_build(frame, 1, our_mac, our_address->s6_addr + 12, NULL, t + 12);
	return nd_build(frame, ND_SOLICIT, 0, our_address, &solicited, target, our_mac, mac);
}

uint32_t neigh_announcement_build(uint8_t *frame, uint8_t family, const struct in6_addr *address,
				  const uint8_t our_mac[6])
{
	/*
	 * IPv4: an ARP request for our own address (RFC 5227, 1.1). IPv6: an answer to all nodes.
	 */
	struct neigh_message probe = {.family = 6, .target = *address};

	if (family == 4)
		return neigh_request_build(frame, 4, address, address, our_mac);
	return neigh_reply_build(frame, &probe, our_mac);
}

uint32_t neigh_probe_build(uint8_t *frame, uint8_t family, const struct in6_addr *target,
			   const struct in6_addr *our_address, const uint8_t our_mac[6],
			   const uint8_t their_mac[6])
{
	uint32_t length;

	if (family == 6)
		return nd_build(frame, ND_SOLICIT, 0, our_address, target, target, our_mac,
				their_mac);
	length = neigh_request_build(frame, 4, target, our_address, our_mac);
	memcpy(frame, their_mac, 6);
	return length;
}

bool neigh_gives_mac(const struct neigh_message *message)
{
	static const struct in6_addr none4 = {.s6_addr = {[10] = 0xff, [11] = 0xff}};
	static const uint8_t none[6];

	/* No station has a multicast MAC address (RFC 1812, 3.3.2). */
	if (message->sender_mac[0] & 1 || memcmp(message->sender_mac, none, 6) == 0)
		return false;
	if (message->kind == NEIGH_REPLY)
		return true;
	return message->kind == NEIGH_REQUEST && message->family == 4 &&
	       IN6_ARE_ADDR_EQUAL(&message->sender, &message->target) &&
	       !IN6_ARE_ADDR_EQUAL(&message->sender, &none4);
}

enum neigh_heard neigh_claim_hear(struct neigh_claim *claim, const uint8_t known[6],
				  const uint8_t mac[6], uint32_t now)
{
	static const uint8_t none[6];

	if (memcmp(known, mac, 6) == 0) {
		if (!claim->open)
			return NEIGH_HEARD_KNOWN;
		claim->open = false;
		return NEIGH_HEARD_DENIED;
	}
	if (claim->open || mac[0] & 1 || memcmp(mac, none, 6) == 0)
		return NEIGH_HEARD_NOTHING;
	*claim = (struct neigh_claim){.open = true, .since = now};
	memcpy(claim->mac, mac, 6);
	return NEIGH_HEARD_CLAIM;
}

enum neigh_due neigh_claim_due(struct neigh_claim *claim, uint32_t now, uint32_t bound)
{
	if (!claim->open)
		return NEIGH_DUE_NOTHING;
	/* Move only after two probes, because one answer may be lost. */
	if (claim->probes > 1 && now - claim->since >= bound) {
		claim->open = false;
		return NEIGH_DUE_MOVE;
	}
	if (claim->probes > 0 && now - claim->probed < bound / 4)
		return NEIGH_DUE_NOTHING;
	claim->probes++;
	claim->probed = now;
	return NEIGH_DUE_PROBE;
}
