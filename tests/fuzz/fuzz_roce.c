/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes as a conversation: packets for a responder, acknowledgements for a requester, time that
 * passes. Nothing may be placed outside the region, executed twice or out of order; the requester's
 * window must stay sound and give every buffer back.
 *
 * Header: path MTU, first PSN (3 bytes). Then operations: one byte of kind, seven of arguments; a
 * raw packet has as many more bytes as its first argument says.
 */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_log.h>
#include <rte_mbuf.h>

#include "rdma/requester.h"
#include "rdma/responder.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define VA      0x7f0000001000ull
#define LENGTH  16384u
#define RKEY    0x1234u
#define OP_SIZE 8

enum op { OP_WRITE_PACKET, OP_RAW_PACKET, OP_SEND, OP_ACK, OP_POLL, OP_TRANSMIT, OPS };

struct world {
	struct responder responder;
	uint8_t *memory; /* the region, on a heap block of its size */
	uint32_t message_length, message_bytes;
	struct roce_path path;
	struct txq tx;
	uint32_t held;
	struct requester_list waiting;
	struct requester rq;
	uint64_t now;
};

static struct rte_mempool *packets, *small;

static void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	char *eal[] = {"fuzz",           "--no-huge", "--no-shconf", "--no-pci",
		       "--no-telemetry", "-m",        "64",          NULL};

	rte_log_set_global_level(RTE_LOG_ERR);
	if (rte_eal_init(7, eal) < 0)
		abort();
	packets = rte_pktmbuf_pool_create("packets", 255, 0, 0, RTE_PKTMBUF_HEADROOM + 8192,
					  SOCKET_ID_ANY);
	small = rte_pktmbuf_pool_create("small", 4095, 0, 0, RTE_PKTMBUF_HEADROOM + 256,
					SOCKET_ID_ANY);
	if (packets == NULL || small == NULL)
		abort();
	return 0;
}

static void check_placement(struct world *w, const struct responder *before,
			    const struct roce_packet *p, const struct responder_placement *at,
			    const uint8_t *payload)
{
	require(p->psn == before->epsn && !before->error, "accepted out of order");
	require(at->first == !before->in_message, "a message inside a message");
	if (at->first) {
		w->message_length = p->length;
		w->message_bytes = 0;
	}
	w->message_bytes += p->payload_length;
	require(w->message_bytes <= w->message_length, "more bytes than announced");
	require(!at->last || w->message_bytes == w->message_length, "fewer bytes than announced");
	if (p->payload_length > 0) {
		require(at->va >= VA && at->va - VA <= LENGTH &&
				p->payload_length <= LENGTH - (at->va - VA),
			"placed outside the region");
		memcpy(w->memory + (at->va - VA), payload, p->payload_length);
	}
	require(w->responder.epsn == roce_psn_add(before->epsn, 1), "the sequence stands still");
	require(w->responder.msn == roce_psn_add(before->msn, at->last), "a message miscounted");
}

static void check_acknowledgement(struct world *w, const struct responder *before)
{
	uint32_t psn, msn;
	uint8_t syndrome;

	if (!responder_ack_due(&w->responder, &psn, &syndrome, &msn))
		return;
	require(psn <= ROCE_PSN_MASK && msn <= ROCE_PSN_MASK, "more than 24 bits");
	if (syndrome == ROCE_CREDITS_UNUSED)
		require(roce_psn_diff(psn, w->responder.epsn) < 0, "acknowledged unseen");
	else
		require(psn == w->responder.epsn, "a NAK of something else");
	require(!before->error, "the dead do not speak");
}

static void receive(struct world *w, const struct roce_packet *p, const uint8_t *payload)
{
	struct responder before = w->responder;
	struct responder_placement at;

	if (responder_receive(&w->responder, p, &at) == RESPONDER_ACCEPT) {
		check_placement(w, &before, p, &at, payload);
	} else {
		require(w->responder.epsn == before.epsn && w->responder.msn == before.msn &&
				w->responder.in_message == before.in_message,
			"refused, yet taken");
	}
	check_acknowledgement(w, &before);
}

/* A packet that is nearly right: PSN, address and length differ from what is expected by little. */
static void op_write_packet(struct world *w, const uint8_t *a)
{
	static const uint8_t payload[ROCE_MTU_MAX + 8];
	struct responder *r = &w->responder;
	uint32_t mtu = r->mtu, piece = r->in_message && r->left < mtu ? r->left : mtu;
	struct roce_packet p = {
		.opcode = ROCE_WRITE_FIRST + a[0] % 6,
		.ack_request = a[1] & 1,
		.psn = roce_psn_add(r->epsn, (int8_t)a[2] / 16),
		.rkey = RKEY + (a[1] >> 7),
		.va = VA + (uint64_t)((int16_t)(a[3] | a[4] << 8)) + (a[1] & 2 ? -VA : 0),
		.length = a[1] & 4 ? a[5] * mtu + a[6] : a[5],
		.payload_length = a[1] & 8 ? a[5] : piece,
	};

	if (roce_opcode_traits(p.opcode) & ROCE_IS_FIRST &&
	    roce_opcode_traits(p.opcode) & ROCE_IS_LAST && a[1] & 16)
		p.payload_length = p.length < mtu ? p.length : mtu;
	p.pad = a[1] & 32 ? a[6] & 3 : -p.payload_length & 3;
	receive(w, &p, payload);
}

/* Returns how many bytes it took. */
static size_t op_raw_packet(struct world *w, const uint8_t *data, size_t size)
{
	size_t n = data[0] < size - OP_SIZE ? data[0] : size - OP_SIZE;
	uint8_t *exact = malloc(n);
	struct roce_packet p;

	memcpy(exact, data + OP_SIZE - 1, n);
	if (roce_parse(exact, n, &p) == ROCE_PARSED) {
		require((uint32_t)p.payload_offset + p.payload_length + p.pad + ROCE_ICRC_LENGTH ==
				n,
			"payload outside the packet");
		if (p.opcode == ROCE_ACK)
			requester_ack(&w->rq, p.psn, p.syndrome, w->now);
		else if (p.opcode != ROCE_CNP)
			receive(w, &p, exact + p.payload_offset);
	}
	free(exact);
	return n;
}

static void op_send(struct world *w, const uint8_t *a)
{
	uint32_t length = (a[0] | a[1] << 8) % 6000, psn = w->rq.next_psn;
	struct rte_mbuf *m;
	int ret;

	w->rq.multi_segment = a[2] & 1;
	if (!requester_room(&w->rq, requester_packets(&w->rq, length)))
		return;
	m = rte_pktmbuf_alloc(packets);
	if (m == NULL)
		return;
	m->data_len = m->pkt_len = length;
	ret = requester_write(&w->rq, m, VA, RKEY, a[3], a[2] >> 1 & 3);
	if (ret == 0) {
		require(w->rq.error == REQUESTER_OK, "sent on a dead queue pair");
		require(w->rq.next_psn == roce_psn_add(psn, requester_packets(&w->rq, length)),
			"PSNs miscounted");
		return;
	}
	require(w->rq.next_psn == psn && rte_mbuf_refcnt_read(m) == 1, "half sent");
	require(ret == -ENOMEM || w->rq.error != REQUESTER_OK, "refused without a reason");
	rte_pktmbuf_free(m);
}

static void op_ack(struct world *w, const uint8_t *a)
{
	uint32_t sent = w->rq.sent_psn, una = w->rq.una_psn, queued = w->tx.n;
	bool dead = w->rq.error != REQUESTER_OK;
	enum requester_verdict verdict =
		requester_ack(&w->rq, roce_psn_add(una, (int16_t)(a[0] | a[1] << 8)), a[2], w->now);

	require(roce_psn_diff(w->rq.una_psn, una) >= 0, "unacknowledged again");
	require(roce_psn_diff(w->rq.una_psn, sent) <= 0, "acknowledged unsent");
	if (verdict == REQUESTER_OLD || verdict == REQUESTER_BEYOND || dead)
		require(w->rq.una_psn == una && w->tx.n == queued, "ignored, yet heeded");
}

static void op_transmit(struct world *w)
{
	for (unsigned int i = 0; i < w->tx.n; i++)
		require(rte_mbuf_check(w->tx.packet[i], 1, &(const char *){NULL}) == 0,
			"a broken chain");
	rte_pktmbuf_free_bulk(w->tx.packet, w->tx.n);
	w->tx.n = 0;
}

static void check_window(const struct world *w)
{
	const struct requester *rq = &w->rq;
	int32_t unacked = roce_psn_diff(rq->next_psn, rq->una_psn);
	int32_t send = roce_psn_diff(rq->send_psn, rq->una_psn);

	require(unacked >= 0 && unacked <= REQUESTER_WINDOW, "the window burst");
	require(send >= 0 && send <= unacked, "sends outside the window");
	require(roce_psn_diff(rq->sent_psn, rq->send_psn) >= 0 &&
			roce_psn_diff(rq->next_psn, rq->sent_psn) >= 0,
		"has sent what is not built");
	require(w->held == (uint32_t)unacked, "packets miscounted");
	require(w->tx.n <= TXQ_SIZE, "the transmit queue burst");
	require(LIST_EMPTY(&w->waiting) == !rq->paced, "the list of those that wait for the rate");
	for (int32_t i = 0; i < unacked; i++)
		require(rq->window[(rq->una_psn + i) % REQUESTER_WINDOW] != NULL,
			"a hole in the window");
}

static size_t step(struct world *w, const uint8_t *data, size_t size)
{
	const uint8_t *a = data + 1;
	size_t more = 0;

	switch ((enum op)(data[0] % OPS)) {
	case OP_WRITE_PACKET:
		op_write_packet(w, a);
		break;
	case OP_RAW_PACKET:
		more = op_raw_packet(w, a, size);
		break;
	case OP_SEND:
		op_send(w, a);
		break;
	case OP_ACK:
		op_ack(w, a);
		break;
	case OP_POLL:
		w->now += (uint64_t)a[0] << a[1] % 32;
		if (a[2] & 1)
			requester_notify(&w->rq, w->now);
		requester_poll(&w->rq, w->now);
		break;
	default:
		op_transmit(w);
		break;
	}
	check_window(w);
	return OP_SIZE + more;
}

static void init(struct world *w, const uint8_t *data)
{
	struct rdma_region region = {.va = VA, .length = LENGTH, .rkey = RKEY};
	uint32_t mtu = ROCE_MTU_MIN << data[0] % 5;
	uint32_t psn = data[1] | data[2] << 8 | data[3] << 16;
	struct roce_path_spec spec = {
		.family = data[0] & 0x80 ? 6 : 4, .qpn = 0x11, .udp_source = 0xc001, .mtu = mtu};
	struct requester_params params = {
		.path = &w->path,
		.tx = &w->tx,
		.held = &w->held,
		.pool = small,
		.psn = psn,
		.ack_timeout = 1,
		.retry_limit = 3,
		.rnr_retry = 3,
		.line_rate = 1250000000,
		.waiting = &w->waiting,
		.clock = &w->now,
	};

	roce_path_init(&w->path, &spec);
	responder_init(&w->responder, &region, mtu, psn);
	requester_init(&w->rq, &params);
	w->memory = malloc(LENGTH);
	w->now = rte_rdtsc();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct world world;
	struct world *w = &world;

	if (size < 4)
		return 0;
	memset(w, 0, sizeof(*w));
	init(w, data);
	for (size_t at = 4; at + OP_SIZE <= size;)
		at += step(w, data + at, size - at);
	op_transmit(w);
	requester_fini(&w->rq);
	require(LIST_EMPTY(&w->waiting), "waits for the rate after the end");
	free(w->memory);
	require(rte_mempool_full(packets) && rte_mempool_full(small), "a buffer leaked");
	return 0;
}
