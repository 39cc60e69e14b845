/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "common/trace.h"

/* Lengths of flows: Pareto with this exponent from this minimum, cut off; 17 packets in the mean.
 */
#define SHAPE   1.2
#define LEAST   3.0
#define LONGEST 100000

#define SMALL   70
#define MIDDLE  576
#define FULL    1514
#define MIDDLES 0.1 /* their share */

static uint64_t random_next(struct trace *t)
{
	t->random ^= t->random >> 12;
	t->random ^= t->random << 25;
	t->random ^= t->random >> 27;
	return t->random * 0x2545f4914f6cdd1d;
}

/* A random number above 0, up to 1. */
static double uniform(struct trace *t)
{
	return (double)((random_next(t) >> 11) + 1) * 0x1p-53;
}

static void begin(struct trace *t, uint32_t i)
{
	double length = LEAST * pow(uniform(t), -1 / SHAPE);

	t->active[i].flow = t->flows++;
	t->active[i].left = length < LONGEST ? (uint32_t)length : LONGEST;
}

struct trace *trace_create(void)
{
	struct trace *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	t->random = 0x9e3779b97f4a7c15;
	for (uint32_t i = 0; i < TRACE_ACTIVE; i++)
		begin(t, i);
	trace_mean(t, 1010);
	return t;
}

void trace_destroy(struct trace *t)
{
	free(t);
}

void trace_mean(struct trace *t, double frame)
{
	t->full = (frame - MIDDLES * MIDDLE - (1 - MIDDLES) * SMALL) / (FULL - SMALL);
}

static uint16_t frame_next(struct trace *t)
{
	double u = uniform(t);

	return u < t->full ? FULL : u < t->full + MIDDLES ? MIDDLE : SMALL;
}

struct trace_packet trace_next(struct trace *t)
{
	uint32_t i = (uint32_t)((random_next(t) >> 32) * TRACE_ACTIVE >> 32);
	struct trace_packet packet = {.flow = t->active[i].flow, .frame = frame_next(t)};

	if (--t->active[i].left == 0)
		begin(t, i);
	return packet;
}

struct pcap_file {
	uint32_t magic;
	uint16_t major, minor;
	uint32_t zone, precision, snap, link;
};

struct pcap_packet {
	uint32_t seconds, microseconds, captured, length;
};

struct headers {
	struct rte_ether_hdr ether;
	struct rte_ipv4_hdr ip;
	struct rte_udp_hdr udp;
};
_Static_assert(sizeof(struct headers) == 42, "as on the wire");

static void headers_fill(struct headers *h, const struct trace_packet *packet)
{
	*h = (struct headers){
		.ether = {.dst_addr = {{2, 0, 0, 0, 0, 1}},
			  .src_addr = {{2, 0, 0, 0, 0, 0xc1}},
			  .ether_type = htons(RTE_ETHER_TYPE_IPV4)},
		.ip = {.version_ihl = 0x45,
		       .total_length = htons((uint16_t)(packet->frame - sizeof(h->ether))),
		       .time_to_live = 60,
		       .next_proto_id = IPPROTO_UDP,
		       .src_addr = htonl(0x64400001 + packet->flow / 60000),
		       .dst_addr = htonl(0x0a000064)},
		.udp = {.src_port = htons((uint16_t)(1024 + packet->flow % 60000)),
			.dst_port = htons(8500),
			.dgram_len = htons(
				(uint16_t)(packet->frame - sizeof(h->ether) - sizeof(h->ip)))},
	};
	h->ip.hdr_checksum = rte_ipv4_cksum(&h->ip);
}

int trace_write(const char *path, uint64_t n, double frame)
{
	const struct pcap_file file = {.magic = 0xa1b2c3d4,
				       .major = 2,
				       .minor = 4,
				       .snap = sizeof(struct headers),
				       .link = 1};
	struct trace *t = trace_create();
	FILE *to = t == NULL ? NULL : fopen(path, "wb");
	int ret;

	if (to == NULL) {
		trace_destroy(t);
		return -errno;
	}
	trace_mean(t, frame);
	fwrite(&file, sizeof(file), 1, to);
	/* One packet per 200 ns, 5 million a second. */
	for (uint64_t i = 0; i < n; i++) {
		struct trace_packet packet = trace_next(t);
		struct pcap_packet record = {.seconds = (uint32_t)(i / 5000000),
					     .microseconds = (uint32_t)(i % 5000000 / 5),
					     .captured = sizeof(struct headers),
					     .length = packet.frame};
		struct headers h;

		headers_fill(&h, &packet);
		fwrite(&record, sizeof(record), 1, to);
		fwrite(&h, sizeof(h), 1, to);
	}
	ret = ferror(to) ? -EIO : 0;
	if (fclose(to) != 0)
		ret = -errno;
	trace_destroy(t);
	return ret;
}
