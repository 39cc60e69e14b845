/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TSC cycles of what the endpoint does to a packet, in bursts of 32, beside an ICRC and a copy of
 * the same bytes. A packet lies in the second-level cache ("near": written right before), or
 * where a NIC's DMA leaves it (4096 others were written since).
 */
#include <stdio.h>

#include "rdma/rdma.h"
#include "rdma/requester.h"
#include "rdma/responder.h"
#include "common/turns.h"
#include "common/wire_child.h"

#define NEAR         RDMA_BURST
#define FAR          4096
#define BATCHES      4 /* of FAR packets, per repetition */
#define ROOM         (RTE_PKTMBUF_HEADROOM + 4096 + 64)
#define MEMORY_MB    96
#define RKEY         0x1234
#define VA           0x7f0000000000ull
#define ACKS_AT_ONCE 8
/* IP, UDP, BTH and RETH: what the ICRC covers besides the payload. */
#define HEADERS (20 + 8 + ROCE_BTH_LENGTH + ROCE_RETH_LENGTH)

struct bench {
	int socket;
	struct rte_mempool *packets, *small;
	struct roce_path path;
	struct txq tx;
	uint32_t held;
	struct requester rq;
	struct responder responder;
	struct writer writer; /* the peer */
	struct turns turns;
	unsigned int disturbed;
	uint32_t length;
	uint8_t ack[RDMA_BURST][ROCE_ACK_FRAME_MAX];
	struct rte_mbuf *packet[FAR];
	uint8_t pattern[4096 + HEADERS], copy[4096 + HEADERS];
	uint32_t sum; /* so that nothing is optimised away */
};

static void init(struct bench *b)
{
	struct roce_path_spec there = writer_path(RDMA_SENDER, rdma_sender_mac, RDMA_RECEIVER,
						  rdma_receiver_mac, 0x11, RDMA_PATH_MTU),
			      back = writer_path(RDMA_RECEIVER, rdma_receiver_mac, RDMA_SENDER,
						 rdma_sender_mac, RDMA_SENDER_QPN, RDMA_PATH_MTU);
	struct requester_params rq = {
		.path = &b->path,
		.tx = &b->tx,
		.held = &b->held,
		.multi_segment = true,
		.psn = RDMA_SENDER_PSN,
	};
	struct rdma_region region = {.va = VA, .length = 4096, .rkey = RKEY};

	b->packets = rdma_pool("packets", FAR + 1024, ROOM);
	b->small = rq.pool = rdma_pool("small", 511, RTE_PKTMBUF_HEADROOM + 64);
	roce_path_init(&b->path, &there);
	roce_path_init(&b->writer.path, &back);
	b->writer.rkey = RKEY;
	requester_init(&b->rq, &rq);
	responder_init(&b->responder, &region, RDMA_PATH_MTU, 0);
	for (uint32_t i = 0; i < sizeof(b->pattern); i++)
		b->pattern[i] = i * 7 + 3;
}

/* --- what is timed: a burst of packets -----------------------------------------------------------
 */

static void write_burst(struct bench *b, struct rte_mbuf **m)
{
	int ret = 0;

	for (unsigned int i = 0; i < RDMA_BURST; i++)
		ret |= requester_write(&b->rq, m[i], VA, RKEY, 0,
				       i == RDMA_BURST - 1 ? REQUESTER_ACK_REQUEST : 0);
	if (unlikely(ret != 0))
		wire_die("a WRITE was refused");
}

static void icrc_burst(struct bench *b, struct rte_mbuf **m)
{
	for (unsigned int i = 0; i < RDMA_BURST; i++)
		b->sum ^= roce_icrc(ROCE_ICRC_SEED, rte_pktmbuf_mtod(m[i], uint8_t *) - HEADERS,
				    HEADERS + b->length);
}

static void copy_burst(struct bench *b, struct rte_mbuf **m)
{
	for (unsigned int i = 0; i < RDMA_BURST; i++) {
		memcpy(b->copy, rte_pktmbuf_mtod(m[i], uint8_t *), b->length);
		/* every copy counts */
		__asm__ volatile("" : : "r"(b->copy) : "memory");
	}
}

/* Does what lb/walk/fabric.c does, from the packet's place to the reply's bytes. */
static void reply_burst(struct bench *b, struct rte_mbuf **m)
{
	struct responder_placement at;
	unsigned int good = 0;

	for (unsigned int i = 0; i < RDMA_BURST; i++) {
		const uint8_t *ip = rte_pktmbuf_mtod_offset(m[i], uint8_t *, ROCE_ETHER_LENGTH);
		uint32_t length = m[i]->data_len - ROCE_ETHER_LENGTH;
		struct roce_packet p;

		good += roce_parse(ip + 28, length - 28, &p) == ROCE_PARSED &&
			p.qpn == RDMA_SENDER_QPN &&
			roce_path_admit(&b->path, ip, 20, length) == ROCE_ADMITTED &&
			responder_receive(&b->responder, &p, &at) == RESPONDER_ACCEPT;
		rte_pktmbuf_adj(m[i], ROCE_ETHER_LENGTH + 28 + p.payload_offset);
		m[i]->data_len = m[i]->pkt_len = p.payload_length;
	}
	if (unlikely(good != RDMA_BURST))
		wire_die("a reply was refused");
}

static void ack_burst(struct bench *b, unsigned int n)
{
	const uint32_t length = 20 + 8 + ROCE_BTH_LENGTH + ROCE_AETH_LENGTH + ROCE_ICRC_LENGTH;
	uint64_t now = rte_rdtsc();
	unsigned int good = 0;

	for (unsigned int i = 0; i < n; i++) {
		const uint8_t *ip = b->ack[i] + ROCE_ETHER_LENGTH;
		struct roce_packet p;

		good += roce_parse(ip + 28, length - 28, &p) == ROCE_PARSED &&
			p.qpn == RDMA_SENDER_QPN &&
			roce_path_admit(&b->path, ip, 20, length) == ROCE_ADMITTED &&
			requester_ack(&b->rq, p.psn, p.syndrome, now) == REQUESTER_PROGRESS;
	}
	if (unlikely(good != n))
		wire_die("an acknowledgement was refused");
}

static void build_acks(struct bench *b, unsigned int n, uint32_t psn, uint32_t step)
{
	for (unsigned int i = 0; i < n; i++)
		roce_ack_build(b->ack[i], &b->writer.path, roce_psn_add(psn, i * step),
			       ROCE_CREDITS_UNUSED, i);
}

/* --- around it -----------------------------------------------------------------------------------
 */

static void fill_raw(struct bench *b, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		uint8_t *at = rte_pktmbuf_mtod(b->packet[i], uint8_t *);

		memcpy(at - HEADERS, b->pattern, HEADERS + b->length);
		b->packet[i]->data_len = b->packet[i]->pkt_len = b->length;
	}
}

static void fill_reply(struct bench *b, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		uint8_t *at = writer_begin(&b->writer, b->packet[i], VA, b->length, i);

		memcpy(at, b->pattern, b->length);
		writer_end(&b->writer, b->packet[i]);
	}
}

/* Plays port and peer: the written packets have left and are acknowledged. */
static void leave(struct bench *b)
{
	rte_pktmbuf_free_bulk(b->tx.packet, b->tx.n);
	b->tx.n = 0;
}

static void settle_write(struct bench *b, struct rte_mbuf **m)
{
	leave(b);
	if (requester_ack(&b->rq, roce_psn_add(b->rq.next_psn, ROCE_PSN_MASK), ROCE_CREDITS_UNUSED,
			  0) != REQUESTER_PROGRESS)
		wire_die("a burst was not acknowledged");
}

static void settle_free(struct bench *b, struct rte_mbuf **m)
{
	rte_pktmbuf_free_bulk(m, RDMA_BURST);
}

static const struct operation {
	const char *name;
	void (*fill)(struct bench *b, unsigned int n);
	void (*run)(struct bench *b, struct rte_mbuf **m); /* timed */
	void (*settle)(struct bench *b, struct rte_mbuf **m);
	uint32_t length[5];
} operations[] = {
	{"write_cycles", fill_raw, write_burst, settle_write, {64, 256, 1024, 4096}},
	{"reply_cycles", fill_reply, reply_burst, settle_free, {64, 1024}},
	{"icrc_cycles", fill_raw, icrc_burst, settle_free, {64, 256, 1024, 4096}},
	{"copy_cycles", fill_raw, copy_burst, settle_free, {64, 256, 1024, 4096}},
};

static void report_turns(struct bench *b, unsigned int packets, const char *name)
{
	struct cost cost = turns_cost(&b->turns, packets);

	b->disturbed += cost.disturbed;
	rdma_tell(b->socket, cost.total, "%s", name);
}

static void measure(struct bench *b, const struct operation *op, uint32_t length, unsigned int n)
{
	char name[REPORT_NAME_MAX];

	b->length = length;
	for (unsigned int done = 0; done < BATCHES * FAR; done += n) {
		if (rte_pktmbuf_alloc_bulk(b->packets, b->packet, n) != 0)
			wire_die("packet memory is out");
		op->fill(b, n);
		for (unsigned int i = 0; i < n; i += RDMA_BURST) {
			uint64_t begin = turns_begin();

			op->run(b, b->packet + i);
			turns_end(&b->turns, begin);
			op->settle(b, b->packet + i);
		}
	}
	snprintf(name, sizeof(name), "%s_%ub%s", op->name, length, n == NEAR ? "_near" : "");
	report_turns(b, RDMA_BURST, name);
}

/* Fills the window; no packet of it is acknowledged. */
static void fill_window(struct bench *b)
{
	b->length = 64;
	for (unsigned int i = 0; i < REQUESTER_WINDOW; i += RDMA_BURST) {
		if (rte_pktmbuf_alloc_bulk(b->packets, b->packet, RDMA_BURST) != 0)
			wire_die("packet memory is out");
		fill_raw(b, RDMA_BURST);
		write_burst(b, b->packet);
		leave(b);
	}
}

static void measure_acks(struct bench *b, unsigned int at_once, uint32_t per_ack, const char *name)
{
	for (unsigned int turn = 0; turn < 512;) {
		fill_window(b);
		for (; requester_unacked(&b->rq) > 0; turn++) {
			uint64_t begin;

			build_acks(b, at_once, roce_psn_add(b->rq.una_psn, per_ack - 1), per_ack);
			begin = turns_begin();
			ack_burst(b, at_once);
			turns_end(&b->turns, begin);
		}
	}
	report_turns(b, at_once, name);
}

static void measure_ack_build(struct bench *b)
{
	for (unsigned int turn = 0; turn < 512; turn++) {
		uint64_t begin = turns_begin();

		build_acks(b, RDMA_BURST, turn, 1);
		turns_end(&b->turns, begin);
	}
	report_turns(b, RDMA_BURST, "ack_build_cycles");
}

/* Fail unless the packets that are measured are right. */
static void check(struct bench *b)
{
	const uint8_t *ip;

	b->length = 1024;
	if (rte_pktmbuf_alloc_bulk(b->packets, b->packet, RDMA_BURST) != 0)
		wire_die("packet memory is out");
	fill_raw(b, RDMA_BURST);
	write_burst(b, b->packet);
	ip = rte_pktmbuf_mtod_offset(b->packet[0], uint8_t *, ROCE_ETHER_LENGTH);
	if (!roce_icrc_ok(ip, 20, HEADERS + b->length) ||
	    memcmp(ip + HEADERS, b->pattern + HEADERS, b->length) != 0)
		wire_die("a WRITE has wrong bytes");
	settle_write(b, b->packet);
}

void rdma_cycles_main(const void *options, int socket)
{
	static struct bench b;
	const struct rdma_options *o = options;

	b.socket = socket;
	rdma_start_eal(o, "rdma-cycles", o->sender_cpu, RDMA_NO_CPU, MEMORY_MB);
	init(&b);
	check(&b);
	for (unsigned int run = 0; run < o->runs; run++) {
		b.disturbed = 0;
		for (unsigned int i = 0; i < RTE_DIM(operations); i++)
			for (const uint32_t *length = operations[i].length; *length > 0; length++) {
				measure(&b, &operations[i], *length, NEAR);
				measure(&b, &operations[i], *length, FAR);
			}
		measure_acks(&b, RDMA_BURST, 1, "ack_cycles");
		measure_acks(&b, ACKS_AT_ONCE, RDMA_BURST, "ack_of_32_cycles");
		measure_ack_build(&b);
		rdma_tell(socket, b.disturbed, "disturbed_turns");
	}
}
