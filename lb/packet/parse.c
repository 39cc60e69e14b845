/* SPDX-License-Identifier: BSD-3-Clause */
#include <netinet/in.h>
#include <string.h>

#include <rte_common.h>

#include "packet/checksum.h"
#include "packet/parse.h"
#include "rdma/roce_wire.h"

#define ETHER_LENGTH 14
#define VLAN_LENGTH  4
#define IP4_LENGTH   20
#define IP6_LENGTH   40
#define UDP_LENGTH   8
#define TCP_LENGTH   20

#define TYPE_IP4  0x0800
#define TYPE_ARP  0x0806
#define TYPE_VLAN 0x8100
#define TYPE_IP6  0x86dd

#define FRAGMENT_LENGTH 8

#define ICMP_LENGTH    8
#define ICMP4_ECHO     8
#define ICMP6_ECHO     128
#define ICMP6_ND_FIRST 133
#define ICMP6_ND_LAST  137

#define ICMP4_PORT_UNREACHABLE     3
#define ICMP4_FRAGMENTATION_NEEDED 4
#define ICMP6_PORT_UNREACHABLE     4

static inline uint16_t parse_get16(const uint8_t *at)
{
	return at[0] << 8 | at[1];
}

static inline bool parse_is_flow(uint8_t protocol)
{
	return protocol == IPPROTO_UDP || protocol == IPPROTO_TCP;
}

static inline void parse_drop(struct parsed *out, enum lb_drop reason)
{
	out->kind = PARSE_DROP;
	out->reason = reason;
}

static inline void parse_map4(struct in6_addr *mapped, const uint8_t *address)
{
	mapped->s6_addr32[2] = htonl(0xffff);
	memcpy(&mapped->s6_addr32[3], address, 4);
}

/* The counter for an ICMP error, or LB_DROP_NONE if it is no error (RFC 792, RFC 4443). */
static enum lb_drop icmp_error4(uint8_t type, uint8_t code)
{
	switch (type) {
	case 3:
		if (code == ICMP4_PORT_UNREACHABLE)
			return LB_DROP_ICMP_PORT;
		return code == ICMP4_FRAGMENTATION_NEEDED ? LB_DROP_ICMP_TOO_BIG
							  : LB_DROP_ICMP_UNREACHABLE;
	case 11:
		return LB_DROP_ICMP_TIME;
	case 12:
		return LB_DROP_ICMP_PARAMETER;
	default:
		return LB_DROP_NONE;
	}
}

static enum lb_drop icmp_error6(uint8_t type, uint8_t code)
{
	switch (type) {
	case 1:
		return code == ICMP6_PORT_UNREACHABLE ? LB_DROP_ICMP_PORT
						      : LB_DROP_ICMP_UNREACHABLE;
	case 2:
		return LB_DROP_ICMP_TOO_BIG;
	case 3:
		return LB_DROP_ICMP_TIME;
	case 4:
		return LB_DROP_ICMP_PARAMETER;
	default:
		return LB_DROP_NONE;
	}
}

/* Find the header of UDP or TCP in the packet that an error is about. LB_DROP_NONE, or why it has
 * none. */
static enum lb_drop find_inner_l4(const uint8_t *ip, uint32_t left, enum flow_family family,
				  const uint8_t **l4)
{
	bool v4 = family == FLOW_IPV4;
	uint32_t header = IP6_LENGTH;

	if (left < (v4 ? IP4_LENGTH : IP6_LENGTH))
		return LB_DROP_TRUNCATED;
	if (v4)
		header = (ip[0] & 0x0f) * 4u;
	if (ip[0] >> 4 != (v4 ? 4 : 6) || header < IP4_LENGTH)
		return LB_DROP_IP_HEADER;
	if (v4 && (parse_get16(ip + 6) & 0x1fff) != 0) /* a fragment without ports; we send none */
		return LB_DROP_ICMP_NO_FLOW;
	if (!parse_is_flow(ip[v4 ? 9 : 6]))
		return LB_DROP_ICMP_OTHER;
	/* Of TCP no more than this is promised: ports and number (RFC 792). */
	if (left < header + UDP_LENGTH)
		return LB_DROP_TRUNCATED;
	*l4 = ip + header;
	return LB_DROP_NONE;
}

/*
 * An error carries the start of the packet that it is about: a reply of ours, so its destination is
 * the client. The error must have come to the address that the reply came from.
 */
static void parse_icmp_error(const uint8_t *icmp, struct parsed *out, const uint8_t *addresses,
			     struct flow_key *key, enum lb_drop what)
{
	const uint8_t *ip = icmp + ICMP_LENGTH, *l4;
	bool v4 = out->family == FLOW_IPV4;
	enum lb_drop reason;
	uint32_t n = v4 ? 4 : 16;

	reason = find_inner_l4(ip, out->l4_length - ICMP_LENGTH, out->family, &l4);
	if (reason != LB_DROP_NONE)
		return parse_drop(out, reason);
	key->protocol = ip[v4 ? 9 : 6];
	ip += v4 ? 12 : 8;
	if (memcmp(ip, addresses + n, n) != 0)
		return parse_drop(out, LB_DROP_ICMP_NO_FLOW);
	if (v4)
		parse_map4(&key->src, ip + n);
	else
		memcpy(&key->src, ip + n, n);
	memcpy(&key->src_port, l4 + 2, 2);
	memcpy(&key->dst_port, l4, 2);
	out->kind = PARSE_ICMP_ERROR;
	out->reason = what;
}

static void parse_icmp(const uint8_t *frame, struct parsed *out, const uint8_t *addresses,
		       struct flow_key *key)
{
	const uint8_t *icmp = frame + out->l4_offset;
	bool v4 = out->family == FLOW_IPV4;
	uint64_t sum = checksum_add(icmp, out->l4_length);
	enum lb_drop error;

	if (out->l4_length < ICMP_LENGTH)
		return parse_drop(out, LB_DROP_TRUNCATED);
	if (!v4)
		sum += checksum_pseudo(addresses, FLOW_IPV6, IPPROTO_ICMPV6, out->l4_length);
	if (checksum_fold(sum) != 0xffff)
		return parse_drop(out, LB_DROP_ICMP_CHECKSUM);
	error = v4 ? icmp_error4(icmp[0], icmp[1]) : icmp_error6(icmp[0], icmp[1]);
	if (!v4 && icmp[0] >= ICMP6_ND_FIRST && icmp[0] <= ICMP6_ND_LAST)
		out->kind = PARSE_ND;
	else if (icmp[0] == (v4 ? ICMP4_ECHO : ICMP6_ECHO) && icmp[1] == 0)
		out->kind = PARSE_ICMP_ECHO;
	else if (error != LB_DROP_NONE)
		parse_icmp_error(icmp, out, addresses, key, error);
	else
		parse_drop(out, LB_DROP_ICMP_OTHER);
}

static __rte_always_inline void parse_udp(const uint8_t *frame, uint32_t checked,
					  struct fetch *fetch, struct parsed *out,
					  const uint8_t *addresses, struct flow_key *key)
{
	const uint8_t *udp = frame + out->l4_offset;
	uint16_t length;

	if (out->l4_length < UDP_LENGTH)
		return parse_drop(out, LB_DROP_UDP_LENGTH);
	length = parse_get16(udp + 4);
	if (length < UDP_LENGTH || length > out->l4_length)
		return parse_drop(out, LB_DROP_UDP_LENGTH);
	memcpy(&key->src_port, udp, 2);
	memcpy(&key->dst_port, udp + 2, 2);
	out->payload_offset = out->l4_offset + UDP_LENGTH;
	out->payload_length = length - UDP_LENGTH;
	if (parse_get16(udp + 2) == ROCE_UDP_PORT) {
		out->kind = PARSE_ROCE; /* the ICRC protects it; senders leave the checksum 0 */
		return;
	}
	out->kind = PARSE_UDP;
	if (key->src_port == 0)
		return parse_drop(out, LB_DROP_BAD_SOURCE);
	if (checked & PARSE_L4_CHECKED)
		return;
	if (parse_get16(udp + 6) == 0) {
		/* no checksum: allowed over IPv4 only (RFC 768, RFC 8200 8.1) */
		if (out->family == FLOW_IPV6)
			parse_drop(out, LB_DROP_UDP_CHECKSUM);
		return;
	}
	if (checksum_fold(checksum_pseudo(addresses, out->family, IPPROTO_UDP, length) +
			  checksum_add_fetching(udp, length, fetch)) != 0xffff)
		parse_drop(out, LB_DROP_UDP_CHECKSUM);
}

/* Kept apart, as NICs most often have done it. */
static __attribute__((noinline)) void parse_tcp_sum(const uint8_t *tcp, struct parsed *out,
						    const uint8_t *addresses)
{
	if (checksum_fold(checksum_pseudo(addresses, out->family, IPPROTO_TCP, out->l4_length) +
			  checksum_add(tcp, out->l4_length)) != 0xffff)
		parse_drop(out, LB_DROP_TCP_CHECKSUM);
}

static void parse_tcp(const uint8_t *frame, uint32_t checked, struct parsed *out,
		      const uint8_t *addresses, struct flow_key *key)
{
	const uint8_t *tcp = frame + out->l4_offset;
	uint32_t header;

	if (out->l4_length < TCP_LENGTH)
		return parse_drop(out, LB_DROP_TCP_HEADER);
	header = (tcp[12] >> 4) * 4u;
	if (header < TCP_LENGTH || header > out->l4_length)
		return parse_drop(out, LB_DROP_TCP_HEADER);
	memcpy(&key->src_port, tcp, 2);
	memcpy(&key->dst_port, tcp + 2, 2);
	out->payload_offset = out->l4_offset + header;
	out->payload_length = out->l4_length - header;
	out->kind = PARSE_TCP;
	if (key->src_port == 0)
		return parse_drop(out, LB_DROP_BAD_SOURCE);
	if (!(checked & PARSE_L4_CHECKED))
		parse_tcp_sum(tcp, out, addresses);
}

/* True for a source that cannot be answered: unspecified, loopback, multicast, broadcast. */
static inline bool bad_source4(const uint8_t *a)
{
	return a[0] == 0 || a[0] == 127 || a[0] >= 224;
}

/* A mapped IPv4 address must not be on the wire, and would be taken for the IPv4 one. */
static inline bool parse_is_mapped(const uint8_t *a)
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

	return memcmp(a, prefix, sizeof(prefix)) == 0;
}

static inline bool bad_source6(const uint8_t *a)
{
	static const uint8_t zeros[15];

	return a[0] == 0xff || (memcmp(a, zeros, 15) == 0 && a[15] <= 1) || parse_is_mapped(a);
}

/* Kept apart, so that UDP's path stays in registers. */
static __attribute__((noinline)) void parse_other(const uint8_t *frame, uint8_t protocol,
						  uint32_t checked, struct parsed *out,
						  const uint8_t *addresses, struct flow_key *key)
{
	if (protocol == IPPROTO_TCP)
		parse_tcp(frame, checked, out, addresses, key);
	else if (protocol == (out->family == FLOW_IPV4 ? IPPROTO_ICMP : IPPROTO_ICMPV6))
		parse_icmp(frame, out, addresses, key);
	else
		parse_drop(out, LB_DROP_L4_PROTOCOL);
}

/* Inlined: every packet comes through here, and its family is known. */
static __rte_always_inline void parse_l4(const uint8_t *frame, uint8_t protocol, uint32_t checked,
					 struct fetch *fetch, struct parsed *out,
					 const uint8_t *addresses, struct flow_key *key)
{
	key->protocol = protocol;
	key->family = out->family;
	if (protocol == IPPROTO_UDP)
		parse_udp(frame, checked, fetch, out, addresses, key);
	else
		parse_other(frame, protocol, checked, out, addresses, key);
}

static inline bool ip4_sum_ok(const uint8_t *ip, uint32_t header)
{
	uint64_t sum = checksum_add_few(ip, IP4_LENGTH);

	if (header > IP4_LENGTH)
		sum += checksum_add_few(ip + IP4_LENGTH, header - IP4_LENGTH);
	return checksum_fold(sum) == 0xffff;
}

static void parse_fragment(struct parsed *out, uint8_t protocol, struct flow_key *key)
{
	key->protocol = protocol;
	key->family = out->family;
	out->kind = PARSE_FRAGMENT;
	/* Other protocols would be dropped after reassembly. */
	if (protocol != IPPROTO_UDP &&
	    protocol != (out->family == FLOW_IPV4 ? IPPROTO_ICMP : IPPROTO_ICMPV6))
		parse_drop(out, LB_DROP_L4_PROTOCOL);
}

static inline void parse_ip4(const uint8_t *frame, uint32_t length, uint32_t checked,
			     struct fetch *fetch, struct parsed *out, struct flow_key *key)
{
	const uint8_t *ip = frame + out->ip_offset;
	uint32_t left = length - out->ip_offset, header, total;

	if (left < IP4_LENGTH)
		return parse_drop(out, LB_DROP_TRUNCATED);
	header = (ip[0] & 0x0f) * 4u;
	total = parse_get16(ip + 2);
	if (ip[0] >> 4 != 4 || header < IP4_LENGTH || total < header)
		return parse_drop(out, LB_DROP_IP_HEADER);
	if (total > left)
		return parse_drop(out, LB_DROP_TRUNCATED);
	if (!(checked & PARSE_IP_CHECKED) && !ip4_sum_ok(ip, header))
		return parse_drop(out, LB_DROP_IP_CHECKSUM);
	if (bad_source4(ip + 12))
		return parse_drop(out, LB_DROP_BAD_SOURCE);
	out->family = FLOW_IPV4;
	out->hops = ip[8];
	out->l4_offset = out->ip_offset + header;
	out->l4_length = total - header;
	parse_map4(&key->src, ip + 12);
	parse_map4(&key->dst, ip + 16);
	if ((parse_get16(ip + 6) & 0x3fff) != 0) /* more fragments, or not the first */
		return parse_fragment(out, ip[9], key);
	parse_l4(frame, ip[9], checked, fetch, out, ip + 12, key);
}

/* The fragment header of IPv6 (RFC 8200 4.5), right behind the first one. */
static void parse_fragment6(const uint8_t *frame, uint32_t checked, struct fetch *fetch,
			    struct parsed *out, const uint8_t *addresses, struct flow_key *key)
{
	const uint8_t *extension = frame + out->l4_offset;

	if (out->l4_length < FRAGMENT_LENGTH)
		return parse_drop(out, LB_DROP_TRUNCATED);
	out->l4_offset += FRAGMENT_LENGTH;
	out->l4_length -= FRAGMENT_LENGTH;
	if ((parse_get16(extension + 2) & 0xfff9) != 0)
		return parse_fragment(out, extension[0], key);
	/* an atomic fragment, which is the whole datagram (RFC 6946) */
	if (extension[0] == IPPROTO_ICMPV6)
		return parse_drop(out, LB_DROP_FRAGMENT);
	parse_l4(frame, extension[0], checked, fetch, out, addresses, key);
}

static void parse_ip6(const uint8_t *frame, uint32_t length, uint32_t checked, struct fetch *fetch,
		      struct parsed *out, struct flow_key *key)
{
	const uint8_t *ip = frame + out->ip_offset;
	uint32_t left = length - out->ip_offset, payload;

	if (left < IP6_LENGTH)
		return parse_drop(out, LB_DROP_TRUNCATED);
	payload = parse_get16(ip + 4);
	if (ip[0] >> 4 != 6)
		return parse_drop(out, LB_DROP_IP_HEADER);
	if (payload > left - IP6_LENGTH)
		return parse_drop(out, LB_DROP_TRUNCATED);
	if (ip[6] == IPPROTO_HOPOPTS || ip[6] == IPPROTO_ROUTING || ip[6] == IPPROTO_DSTOPTS)
		return parse_drop(out, LB_DROP_IP_EXTENSION);
	out->family = FLOW_IPV6;
	out->hops = ip[7];
	out->l4_offset = out->ip_offset + IP6_LENGTH;
	out->l4_length = payload;
	memcpy(&key->src, ip + 8, 16);
	memcpy(&key->dst, ip + 24, 16);
	if (parse_is_mapped(ip + 24))
		return parse_drop(out, LB_DROP_NOT_OUR_ADDRESS);
	if (ip[6] == IPPROTO_FRAGMENT)
		parse_fragment6(frame, checked, fetch, out, ip + 8, key);
	else
		parse_l4(frame, ip[6], checked, fetch, out, ip + 8, key);
	/* Only duplicate address detection may come from ::. */
	if (out->kind != PARSE_DROP && bad_source6(ip + 8) &&
	    !(out->kind == PARSE_ND && memcmp(ip + 8, &in6addr_any, 16) == 0))
		parse_drop(out, LB_DROP_BAD_SOURCE);
}

static inline bool for_us(const uint8_t *destination, const uint8_t *mac)
{
	static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

	return memcmp(destination, mac, 6) == 0 || memcmp(destination, broadcast, 6) == 0 ||
	       (destination[0] == 0x33 && destination[1] == 0x33);
}

static inline void parse_ether(const uint8_t *frame, uint32_t length, const uint8_t mac[6],
			       uint32_t checked, struct fetch *fetch, struct parsed *out,
			       struct flow_key *key)
{
	uint16_t type;

	*out = (struct parsed){.ip_offset = ETHER_LENGTH};
	memset(key, 0, sizeof(*key));
	if (length < ETHER_LENGTH)
		return parse_drop(out, LB_DROP_TRUNCATED);
	if (!for_us(frame, mac))
		return parse_drop(out, LB_DROP_NOT_OUR_MAC);
	if (frame[6] & 1) /* a group address is no sender */
		return parse_drop(out, LB_DROP_BAD_SOURCE);
	type = parse_get16(frame + 12);
	if (type == TYPE_VLAN) {
		if (length < ETHER_LENGTH + VLAN_LENGTH)
			return parse_drop(out, LB_DROP_TRUNCATED);
		out->vlan = parse_get16(frame + 14);
		out->ip_offset += VLAN_LENGTH;
		type = parse_get16(frame + 16);
	}
	if (type == TYPE_IP4)
		parse_ip4(frame, length, checked, fetch, out, key);
	else if (type == TYPE_IP6)
		parse_ip6(frame, length, checked, fetch, out, key);
	else if (type == TYPE_ARP)
		out->kind = PARSE_ARP;
	else
		return parse_drop(out, LB_DROP_ETHERTYPE);
	/* Only ARP and neighbour discovery may come by broadcast or multicast. */
	if (frame[0] & 1 && out->kind != PARSE_ARP && out->kind != PARSE_ND &&
	    out->kind != PARSE_DROP)
		parse_drop(out, LB_DROP_NOT_OUR_MAC);
}

void parse_frame_fetching(const uint8_t *frame, uint32_t length, const uint8_t mac[6],
			  uint32_t checked, struct fetch fetch, struct parsed *out,
			  struct flow_key *key)
{
	parse_ether(frame, length, mac, checked, &fetch, out, key);
	fetch_rest(&fetch);
}

void parse_frame(const uint8_t *frame, uint32_t length, const uint8_t mac[6], uint32_t checked,
		 struct parsed *out, struct flow_key *key)
{
	parse_ether(frame, length, mac, checked, &(struct fetch){0}, out, key);
}

void parse_error(const uint8_t *frame, const struct parsed *p, struct parsed_error *out)
{
	const uint8_t *icmp = frame + p->l4_offset, *ip = icmp + ICMP_LENGTH;
	bool v4 = p->family == FLOW_IPV4;
	const uint8_t *l4 = ip + (v4 ? (ip[0] & 0x0f) * 4u : IP6_LENGTH);

	/* RFC 1191, 4; RFC 4443, 3.2: of 32 bits, as no path of ours is wider */
	out->mtu = v4 || parse_get16(icmp + 4) == 0 ? parse_get16(icmp + 6) : UINT16_MAX;
	out->seq = (uint32_t)parse_get16(l4 + 4) << 16 | parse_get16(l4 + 6);
}

bool parse_finish_checksum(uint8_t *frame, const struct parsed *p)
{
	bool tcp = p->reason == LB_DROP_TCP_CHECKSUM;
	uint8_t *l4 = frame + p->l4_offset, *field = l4 + (tcp ? 16 : 6);
	const uint8_t *addresses = frame + p->ip_offset + (p->family == FLOW_IPV4 ? 12 : 8);
	uint16_t length = tcp ? p->l4_length : parse_get16(l4 + 4), sum;

	memcpy(&sum, field, sizeof(sum));
	if (sum != checksum_fold(checksum_pseudo(addresses, p->family,
						 tcp ? IPPROTO_TCP : IPPROTO_UDP, length)))
		return false;
	sum = ~checksum_fold(checksum_add(l4, length));
	sum = sum == 0 ? 0xffff : sum; /* 0 would mean "none" (RFC 768) */
	memcpy(field, &sum, sizeof(sum));
	return true;
}

bool parse_flow(const uint8_t *frame, uint32_t length, struct flow_key *key, uint16_t *vlan)
{
	uint32_t offset = ETHER_LENGTH, l4;
	const uint8_t *ip;
	uint16_t type;

	if (length < ETHER_LENGTH + VLAN_LENGTH + IP4_LENGTH)
		return false;
	type = parse_get16(frame + 12);
	*vlan = 0;
	if (type == TYPE_VLAN) {
		*vlan = parse_get16(frame + 14);
		offset += VLAN_LENGTH;
		type = parse_get16(frame + 16);
	}
	ip = frame + offset;
	memset(key, 0, sizeof(*key));
	if (type == TYPE_IP4 && (parse_get16(ip + 6) & 0x3fff) == 0) {
		key->family = FLOW_IPV4;
		key->protocol = ip[9];
		parse_map4(&key->src, ip + 12);
		parse_map4(&key->dst, ip + 16);
		l4 = offset + (ip[0] & 0x0f) * 4u;
	} else if (type == TYPE_IP6 && length >= offset + IP6_LENGTH + FRAGMENT_LENGTH) {
		l4 = offset + IP6_LENGTH;
		key->protocol = ip[6];
		if (ip[6] == IPPROTO_FRAGMENT && (parse_get16(ip + IP6_LENGTH + 2) & 0xfff9) == 0) {
			key->protocol = ip[IP6_LENGTH];
			l4 += FRAGMENT_LENGTH;
		}
		key->family = FLOW_IPV6;
		memcpy(&key->src, ip + 8, 16);
		memcpy(&key->dst, ip + 24, 16);
	} else {
		return false;
	}
	/* The ports of both begin the header, and a header of UDP is the shorter one. */
	if (!parse_is_flow(key->protocol) || length < l4 + UDP_LENGTH)
		return false;
	memcpy(&key->src_port, frame + l4, 2);
	memcpy(&key->dst_port, frame + l4 + 2, 2);
	return key->protocol == IPPROTO_TCP || key->dst_port != htons(ROCE_UDP_PORT);
}

/* Bytes of the IP header of an unfragmented UDP packet; 0: it is invalid. */
static uint32_t cut_header(const uint8_t *ip, uint32_t left, uint16_t type, struct parsed *p,
			   struct flow_key *key)
{
	uint32_t header;

	memset(key, 0, sizeof(*key));
	key->protocol = IPPROTO_UDP;
	if (type == TYPE_IP4 && left >= IP4_LENGTH) {
		header = (ip[0] & 0x0f) * 4u;
		if (ip[0] >> 4 != 4 || header < IP4_LENGTH || left < header ||
		    ip[9] != IPPROTO_UDP || (parse_get16(ip + 6) & 0x3fff) != 0 ||
		    !ip4_sum_ok(ip, header) || bad_source4(ip + 12))
			return 0;
		p->family = key->family = FLOW_IPV4;
		p->hops = ip[8];
		parse_map4(&key->src, ip + 12);
		parse_map4(&key->dst, ip + 16);
		return header;
	}
	if (type != TYPE_IP6 || left < IP6_LENGTH || ip[0] >> 4 != 6 || ip[6] != IPPROTO_UDP ||
	    bad_source6(ip + 8) || parse_is_mapped(ip + 24))
		return 0;
	p->family = key->family = FLOW_IPV6;
	p->hops = ip[7];
	memcpy(&key->src, ip + 8, 16);
	memcpy(&key->dst, ip + 24, 16);
	return IP6_LENGTH;
}

bool parse_cut(const uint8_t *frame, uint32_t length, struct parsed *p, struct flow_key *key)
{
	uint32_t l4, header;
	const uint8_t *udp;

	/* Packets to a group are not answered. */
	if (length < p->ip_offset || frame[0] & 1)
		return false;
	header = cut_header(frame + p->ip_offset, length - p->ip_offset,
			    parse_get16(frame + p->ip_offset - 2), p, key);
	l4 = p->ip_offset + header;
	if (header == 0 || length < l4 + UDP_LENGTH)
		return false;
	udp = frame + l4;
	if (parse_get16(udp + 4) < UDP_LENGTH || parse_get16(udp + 2) == ROCE_UDP_PORT)
		return false;
	memcpy(&key->src_port, udp, 2);
	memcpy(&key->dst_port, udp + 2, 2);
	p->payload_offset = l4 + UDP_LENGTH;
	/* Link padding may follow the payload. */
	p->payload_length = RTE_MIN(length - l4, (uint32_t)parse_get16(udp + 4)) - UDP_LENGTH;
	return true;
}
