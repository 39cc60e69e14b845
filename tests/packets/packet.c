/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "packet.h"

const uint8_t packet_our_mac[6] = {2, 0, 0, 0, 0, 1};
const uint8_t packet_their_mac[6] = {2, 0, 0, 0, 0, 7};

/* The frame so far. */
struct writer {
	uint8_t *start, *end;
	uint8_t *ip, *addresses, *l4;
};

static uint8_t *put(struct writer *w, const void *bytes, uint32_t n)
{
	uint8_t *at = w->end;

	memcpy(at, bytes, n);
	w->end += n;
	return at;
}

static void put8(struct writer *w, uint8_t value)
{
	*w->end++ = value;
}

static void set16(uint8_t *at, uint16_t value)
{
	at[0] = value >> 8;
	at[1] = value & 0xff;
}

static void put16(struct writer *w, uint16_t value)
{
	set16(w->end, value);
	w->end += 2;
}

static uint32_t add(uint32_t sum, const uint8_t *bytes, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		sum += i % 2 == 0 ? bytes[i] << 8 : bytes[i];
	return sum;
}

static void set_sum(uint8_t *at, uint32_t sum, enum packet_sum how)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	if (how != SUM_PARTIAL)
		sum = ~sum & 0xffff;
	if (how == SUM_NONE)
		sum = 0;
	else if (how == SUM_WRONG)
		sum ^= 0x0101;
	set16(at, sum);
}

static void put_address(struct writer *w, uint8_t family, const char *text)
{
	uint8_t bytes[16];

	if (inet_pton(family == 4 ? AF_INET : AF_INET6, text, bytes) != 1)
		abort();
	put(w, bytes, family == 4 ? 4 : 16);
}

static void put_hex(struct writer *w, const char *text)
{
	char digits[3] = "";

	while (*text != '\0') {
		if (isspace((unsigned char)*text)) {
			text++;
			continue;
		}
		memcpy(digits, text, 2);
		put8(w, strtoul(digits, NULL, 16));
		text += 2;
	}
}

static void put_ether(struct writer *w, const struct packet *p)
{
	static const uint8_t to[][6] = {
		[TO_BROADCAST] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		[TO_GROUP4] = {0x01, 0x00, 0x5e, 0x00, 0x00, 0x01},
		[TO_GROUP6] = {0x33, 0x33, 0xff, 0x00, 0x00, 0x01},
		[TO_ALL_GROUP6] = {0x33, 0x33, 0x00, 0x00, 0x00, 0x01},
		[TO_ANOTHER] = {2, 0, 0, 0, 0, 9},
	};
	uint16_t type = p->family == 4 ? 0x0800 : p->family == 6 ? 0x86dd : 0x0806;

	if (p->ether_type != 0)
		type = p->ether_type;
	put(w, p->to == TO_US ? packet_our_mac : to[p->to], 6);
	put(w, packet_their_mac, 6);
	if (p->station != 0)
		w->end[-1] = p->station;
	if (p->tagged) {
		put16(w, 0x8100);
		put16(w, p->tci);
		type = p->inner_type != 0 ? p->inner_type : type;
	}
	put16(w, type);
}

static uint8_t next_of(const struct packet *p)
{
	if (p->next != 0)
		return p->next;
	if (p->icmp)
		return p->family == 4 ? IPPROTO_ICMP : IPPROTO_ICMPV6;
	return p->tcp ? IPPROTO_TCP : IPPROTO_UDP;
}

static void put_ip4(struct writer *w, const struct packet *p)
{
	uint8_t words = 5 + p->options / 4;

	w->ip = w->end;
	put8(w, (p->version != 0 ? p->version : 4) << 4 |
			(p->header_words != 0 ? p->header_words : words));
	put8(w, 0);
	put16(w, 0); /* length: later */
	put16(w, 0x1234);
	put16(w, p->fragment);
	put8(w, p->hops != 0 ? p->hops & 0xff : 64);
	put8(w, next_of(p));
	put16(w, 0); /* checksum: later */
	w->addresses = w->end;
	put_address(w, 4, p->source != NULL ? p->source : PACKET_SOURCE4);
	put_address(w, 4, p->destination != NULL ? p->destination : PACKET_DESTINATION4);
	for (uint8_t i = 0; i < p->options; i++)
		put8(w, 1); /* no operation */
}

static void put_ip6(struct writer *w, const struct packet *p)
{
	w->ip = w->end;
	put8(w, (p->version != 0 ? p->version : 6) << 4);
	put8(w, 0);
	put16(w, 0);
	put16(w, 0); /* length: later */
	put8(w, p->fragment_header ? IPPROTO_FRAGMENT : next_of(p));
	put8(w, p->hops != 0 ? p->hops & 0xff : 255);
	w->addresses = w->end;
	put_address(w, 6, p->source != NULL ? p->source : PACKET_SOURCE6);
	put_address(w, 6, p->destination != NULL ? p->destination : PACKET_DESTINATION6);
	if (p->fragment_header) {
		put8(w, next_of(p));
		put8(w, 0);
		put16(w, p->fragment);
		put(w, "\x12\x34\x56\x78", 4);
	}
}

static void put_payload(struct writer *w, const struct packet *p)
{
	for (uint16_t i = 0; i < p->payload; i++)
		put8(w, 0x40 + i);
	if (p->body != NULL)
		put_hex(w, p->body);
	if (p->bytes != NULL)
		put(w, p->bytes, p->n_bytes);
}

static void put_l4(struct writer *w, const struct packet *p)
{
	w->l4 = w->end;
	if (p->icmp) {
		put8(w, p->icmp_type);
		put8(w, p->icmp_code);
		put16(w, 0); /* checksum: later */
		if (p->icmp_mtu == 0) {
			put(w, "\x12\x34\x00\x01", 4);
		} else {
			put16(w, 0);
			put16(w, p->icmp_mtu);
		}
	} else {
		put16(w, p->no_source_port     ? 0
			 : p->source_port != 0 ? p->source_port
					       : PACKET_SOURCE_PORT);
		put16(w, p->destination_port != 0 ? p->destination_port : PACKET_DESTINATION_PORT);
		if (!p->tcp) {
			put16(w, 0);
			put16(w, 0);
		}
	}
	put_payload(w, p);
}

/* Fills in lengths and checksums. UDP's checksum covers the announced length, as far as the bytes
 * exist. */
static void finish(struct writer *w, const struct packet *p)
{
	uint32_t length = w->end - w->l4, covered = length, sum;
	uint32_t header = w->l4 - w->ip;
	uint8_t protocol = p->tcp ? IPPROTO_TCP : p->icmp ? IPPROTO_ICMPV6 : IPPROTO_UDP;

	if (!p->icmp && !p->tcp) {
		covered = length + p->udp_length;
		set16(w->l4 + 4, covered);
		covered = covered > length ? length : covered;
	}
	sum = p->icmp && p->family == 4
		      ? 0
		      : add(covered + protocol, w->addresses, p->family == 4 ? 8 : 32);
	set_sum(w->l4 + (p->tcp    ? 16
			 : p->icmp ? 2
				   : 6),
		p->l4_sum == SUM_PARTIAL ? sum : add(sum, w->l4, covered), p->l4_sum);
	if (p->family == 4) {
		set16(w->ip + 2, header + length + p->total);
		set_sum(w->ip + 10, add(0, w->ip, header), p->ip_sum);
	} else {
		set16(w->ip + 4, header - 40 + length + p->total);
	}
}

uint32_t packet_build(const struct packet *p, uint8_t frame[PACKET_MAX])
{
	struct writer w = {.start = frame, .end = frame};
	uint32_t length;

	memset(frame, 0, PACKET_MAX);
	put_ether(&w, p);
	if (p->family == 0) {
		put_payload(&w, p);
	} else {
		if (p->family == 4)
			put_ip4(&w, p);
		else
			put_ip6(&w, p);
		put_l4(&w, p);
		finish(&w, p);
	}
	w.end += p->padding;
	length = w.end - w.start;
	return p->length != 0 && (uint32_t)p->length < length ? (uint32_t)p->length : length;
}

uint32_t packet_cut(const uint8_t *frame, uint32_t length, uint32_t offset, uint32_t bytes,
		    uint8_t piece[PACKET_MAX])
{
	uint32_t ip = frame[12] == 0x81 ? 18 : 14, head;
	bool v4 = frame[ip] >> 4 == 4, more;
	struct writer w = {.start = piece, .end = piece};

	head = ip + (v4 ? (frame[ip] & 15) * 4u : 40);
	more = head + offset + bytes < length;
	if (!more)
		bytes = length - head - offset;
	memset(piece, 0, PACKET_MAX);
	put(&w, frame, head);
	if (!v4) {
		piece[ip + 6] = IPPROTO_FRAGMENT;
		put8(&w, frame[ip + 6]);
		put8(&w, 0);
		put16(&w, offset | more);
		put(&w, "\x12\x34\x56\x78", 4);
		set16(piece + ip + 4, 8 + bytes);
	} else {
		set16(piece + ip + 2, head - ip + bytes);
		set16(piece + ip + 6, offset / 8 | (more ? 0x2000 : 0));
		set16(piece + ip + 10, 0);
		set_sum(piece + ip + 10, add(0, piece + ip, head - ip), SUM_RIGHT);
	}
	put(&w, frame + head + offset, bytes);
	return w.end - w.start;
}
