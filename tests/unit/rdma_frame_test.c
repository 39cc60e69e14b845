/* SPDX-License-Identifier: BSD-3-Clause */
/* An endpoint that accepts only RoCEv2 and address resolution recognises both in a frame. */
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "rdma/frame.h"
#include "packet.h"

#define ACK "1100ffff 00000022 00000101 1f000002 c46c4143"

struct row {
	const char *name;
	struct packet packet;
	enum frame_kind kind;
	uint16_t bth_offset, bth_length, l3_length;
};

static const struct row rows[] = {
	{"RoCE", {.family = 4, .destination_port = 4791, .body = ACK}, FRAME_ROCE, 42, 20, 48},
	{"RoCE over IPv6",
	 {.family = 6, .destination_port = 4791, .body = ACK},
	 FRAME_ROCE,
	 62,
	 20,
	 68},
	{"link padding",
	 {.family = 4, .destination_port = 4791, .body = ACK, .padding = 9},
	 FRAME_ROCE,
	 42,
	 20,
	 48},
	{"link padding over IPv6",
	 {.family = 6, .destination_port = 4791, .body = ACK, .padding = 9},
	 FRAME_ROCE,
	 62,
	 20,
	 68},
	{"do not fragment",
	 {.family = 4, .fragment = 0x4000, .destination_port = 4791, .body = ACK},
	 FRAME_ROCE,
	 42,
	 20,
	 48},
	{"nothing behind UDP", {.family = 4, .destination_port = 4791}, FRAME_ROCE, 42, 0, 28},
	{"ARP", {.to = TO_BROADCAST, .payload = 28}, FRAME_ARP, 0, 0, 28},
	{"neighbour discovery",
	 {.family = 6, .icmp = true, .icmp_type = 135, .payload = 24, .padding = 5},
	 FRAME_ICMP6,
	 0,
	 0,
	 72},
	{"another port", {.family = 4, .destination_port = 4792, .body = ACK}, FRAME_OTHER},
	{"from the port", {.family = 4, .source_port = 4791, .body = ACK}, FRAME_OTHER},
	{"a VLAN tag",
	 {.family = 4, .tagged = true, .destination_port = 4791, .body = ACK},
	 FRAME_OTHER},
	{"options",
	 {.family = 4, .options = 4, .destination_port = 4791, .body = ACK},
	 FRAME_OTHER},
	{"a short IP header",
	 {.family = 4, .header_words = 4, .destination_port = 4791, .body = ACK},
	 FRAME_OTHER},
	{"a first fragment",
	 {.family = 4, .fragment = 0x2000, .destination_port = 4791, .body = ACK},
	 FRAME_OTHER},
	{"a last fragment",
	 {.family = 4, .fragment = 1, .destination_port = 4791, .body = ACK},
	 FRAME_OTHER},
	{"TCP", {.family = 4, .next = IPPROTO_TCP, .destination_port = 4791}, FRAME_OTHER},
	{"an extension header",
	 {.family = 6, .next = IPPROTO_ROUTING, .destination_port = 4791},
	 FRAME_OTHER},
	{"IPv6 in an IPv4 frame",
	 {.family = 4, .version = 6, .destination_port = 4791, .body = ACK},
	 FRAME_OTHER},
	{"IPv4 in an IPv6 frame",
	 {.family = 6, .version = 4, .destination_port = 4791, .body = ACK},
	 FRAME_OTHER},
	{"IP longer than the frame",
	 {.family = 4, .total = 1, .destination_port = 4791, .body = ACK},
	 FRAME_OTHER},
	{"IPv6 longer than the frame",
	 {.family = 6, .total = 1, .destination_port = 4791, .body = ACK},
	 FRAME_OTHER},
	{"IP shorter than its header",
	 {.family = 4, .total = -29, .destination_port = 4791, .body = ACK},
	 FRAME_OTHER},
	{"IP that ends inside the UDP header",
	 {.family = 4, .total = -21, .destination_port = 4791, .body = ACK},
	 FRAME_OTHER},
	{"UDP longer than IP",
	 {.family = 4, .udp_length = 1, .destination_port = 4791, .body = ACK},
	 FRAME_OTHER},
	{"UDP into the link padding",
	 {.family = 6, .udp_length = 4, .padding = 9, .destination_port = 4791, .body = ACK},
	 FRAME_OTHER},
	{"UDP shorter than its header",
	 {.family = 4, .udp_length = -21, .destination_port = 4791, .body = ACK},
	 FRAME_OTHER},
	{"another protocol", {.ether_type = 0x88cc, .payload = 60}, FRAME_OTHER},
};

/* Parses a heap block of the exact size, so that the sanitizer sees a read past the end. */
static enum frame_kind locate(const uint8_t *frame, uint32_t length, struct roce_frame *out)
{
	uint8_t *exact = malloc(length);
	enum frame_kind kind;

	memcpy(exact, frame, length);
	kind = frame_locate(exact, length, out);
	free(exact);
	return kind;
}

Test(rdma_frame, finds_what_is_for_the_endpoint)
{
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t bytes[PACKET_MAX];
		uint32_t length = packet_build(&rows[i].packet, bytes);
		struct roce_frame f;

		cr_expect_eq(locate(bytes, length, &f), rows[i].kind, "%s", rows[i].name);
		if (rows[i].kind == FRAME_OTHER)
			continue;
		cr_expect_eq(f.ip_offset, 14, "%s", rows[i].name);
		cr_expect_eq(f.bth_offset, rows[i].bth_offset, "%s", rows[i].name);
		cr_expect_eq(f.bth_length, rows[i].bth_length, "%s", rows[i].name);
		cr_expect_eq(f.l3_length, rows[i].l3_length, "%s", rows[i].name);
	}
}

Test(rdma_frame, never_reads_past_a_frame_cut_at_any_byte)
{
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t bytes[PACKET_MAX];
		uint32_t whole = packet_build(&rows[i].packet, bytes);

		for (uint32_t length = 0; length < whole - rows[i].packet.padding; length++) {
			struct roce_frame f;

			if (locate(bytes, length, &f) == FRAME_ARP)
				cr_expect_eq(f.l3_length, length - 14);
			else
				cr_expect_eq(locate(bytes, length, &f), FRAME_OTHER, "%s, %u bytes",
					     rows[i].name, length);
		}
	}
}
