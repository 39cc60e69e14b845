/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes as frames. The first byte says what the NIC has checked and whether the frame's destination
 * is the port's own address; the rest is the frame, on a heap block of its exact size.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rdma/frame.h"
#include "runtime/neigh.h"
#include "packet/parse.h"
#include "rdma/path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TO_US 0x04u

static void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

/* Answers a request for an address as the load balancer does. */
static void try_neighbour(const uint8_t *frame, const struct parsed *p, uint32_t length)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};
	uint32_t end = p->kind == PARSE_ARP ? length : (uint32_t)p->l4_offset + p->l4_length;
	uint8_t *answer = malloc(NEIGH_FRAME_MAX);
	struct neigh_message m;

	if (neigh_parse(p->kind == PARSE_ARP ? 0x0806 : 0x86dd, frame + p->ip_offset,
			end - p->ip_offset, &m) &&
	    m.kind == NEIGH_REQUEST)
		require(neigh_reply_build(answer, &m, mac) <= NEIGH_FRAME_MAX, "answer too long");
	free(answer);
}

static void check_parsed(const uint8_t *frame, uint32_t length, const struct parsed *p,
			 const struct flow_key *key)
{
	require(p->kind <= PARSE_DROP && p->reason < LB_DROPS, "no such verdict");
	switch (p->kind) {
	case PARSE_UDP:
		require(key->src_port != 0, "a source that cannot be answered");
		/* fall through */
	case PARSE_ROCE:
		require(key->family == p->family && key->protocol == 17 && key->zone == 0,
			"half a key");
		require(p->payload_offset == p->l4_offset + 8 &&
				p->payload_length + 8u <= p->l4_length,
			"payload outside UDP");
		/* fall through */
	case PARSE_ICMP_ERROR:
		require(p->kind != PARSE_ICMP_ERROR ||
				(key->family == p->family && p->reason != 0 &&
				 (key->protocol == 17 || key->protocol == 6)),
			"an error about nothing");
		/* fall through */
	case PARSE_ICMP_ECHO:
		require(p->l4_offset + p->l4_length <= length && p->l4_length >= 8,
			"L4 outside the frame");
		break;
	case PARSE_FRAGMENT:
		require(key->family == p->family && key->src_port == 0 && key->dst_port == 0,
			"a fragment with ports");
		require(p->l4_offset + p->l4_length <= length, "a fragment outside the frame");
		break;
	case PARSE_ND:
		require(p->l4_offset + p->l4_length <= length, "ND outside the frame");
		/* fall through */
	case PARSE_ARP:
		try_neighbour(frame, p, length);
		break;
	}
}

/* Both ways to find a request's flow must agree. */
static void check_flow(const uint8_t *frame, uint32_t length, const struct parsed *p,
		       const struct flow_key *key)
{
	struct flow_key flow;
	uint16_t vlan;

	if (parse_flow(frame, length, &flow, &vlan))
		require(p->kind == PARSE_DROP ||
				((p->kind == PARSE_UDP || p->kind == PARSE_TCP) &&
				 p->vlan == vlan && memcmp(&flow, key, sizeof(flow)) == 0),
			"another flow");
	else
		require(p->kind != PARSE_UDP && p->kind != PARSE_TCP, "a request of no flow");
}

/* Takes a RoCE packet as the fabric does: headers, then the ICRC. */
static void try_roce(const uint8_t *frame, uint32_t length, const struct roce_frame *f)
{
	struct roce_packet p;

	require(f->bth_offset + f->bth_length <= length && f->ip_offset + f->l3_length <= length &&
			f->bth_offset + f->bth_length <= f->ip_offset + f->l3_length,
		"BTH outside the frame");
	if (roce_parse(frame + f->bth_offset, f->bth_length, &p) != ROCE_PARSED)
		return;
	require(p.payload_offset + p.payload_length + p.pad + ROCE_ICRC_LENGTH == f->bth_length,
		"RoCE payload outside the packet");
	roce_icrc_ok(frame + f->ip_offset, f->ip_length,
		     f->bth_offset + f->bth_length - f->ip_offset - ROCE_ICRC_LENGTH);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t port[6] = {2, 0, 0, 0, 0, 1};
	struct roce_frame f;
	struct flow_key key;
	struct parsed p;
	uint8_t *frame, options;

	if (size == 0 || size > UINT16_MAX)
		return 0;
	options = *data++;
	size--;
	frame = malloc(size);
	memcpy(frame, data, size);
	if (options & TO_US && size >= 6)
		memcpy(frame, port, 6);
	parse_frame(frame, size, port, options & (PARSE_IP_CHECKED | PARSE_L4_CHECKED), &p, &key);
	check_parsed(frame, size, &p, &key);
	check_flow(frame, size, &p, &key);
	if (frame_locate(frame, size, &f) == FRAME_ROCE) {
		try_roce(frame, size, &f);
		if (p.kind == PARSE_ROCE)
			require(p.payload_offset == f.bth_offset &&
					p.payload_length == f.bth_length,
				"the two ends see different packets");
	}
	free(frame);
	return 0;
}
