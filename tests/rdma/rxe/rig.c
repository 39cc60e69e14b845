/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_ethdev.h>

#include "rdma/frame.h"
#include "runtime/neigh.h"
#include "rig.h"

#define BURST     32
#define QPN_FIRST 0x777000
/* The largest that the driver for packet sockets admits (DPDK 22.11); it carries what its frames
 * hold. */
#define PORT_MTU 1500

const struct rig_qp_options rig_defaults = {
	.access = "w",
	.psn = 0x100,
	.peer_psn = 0x500,
	.bytes = 65536,
	.timeout = 17, /* 537 ms: longer than emulation stalls */
	.retries = 7,
	.peer_retries = 7,
	.peer_timeout = 17,
	.rnr_code = 12,
};

void rig_fail(struct rig *rig, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("    ", stdout);
	vprintf(format, args);
	putchar('\n');
	va_end(args);
	longjmp(rig->failed, 1);
}

int rig_open(struct rig *rig, const char *device, const char *peer_address, uint16_t peer_port)
{
	struct port_params params = {
		.device = device,
		.queues = 1,
		.rx_descriptors = 1024,
		.tx_descriptors = 1024,
		.mtu = PORT_MTU,
		.pool = &rig->packets,
	};
	char error[256];
	int ret;

	rig->control = peer_connect(peer_address, peer_port);
	if (rig->control < 0) {
		fprintf(stderr, "no rxe-peer at %s: %s\n", peer_address, strerror(-rig->control));
		return rig->control;
	}
	/* A message lies in one buffer. */
	rig->packets = rte_pktmbuf_pool_create("packets", 4095, 0, 0,
					       RTE_PKTMBUF_HEADROOM + 16384 + 128, SOCKET_ID_ANY);
	rig->small = rte_pktmbuf_pool_create("small", 8191, 0, 0, RTE_PKTMBUF_HEADROOM + 256,
					     SOCKET_ID_ANY);
	if (rig->packets == NULL || rig->small == NULL)
		return -ENOMEM;
	ret = port_open(&rig->port, &params, error, sizeof(error));
	if (ret < 0)
		fprintf(stderr, "%s\n", error);
	rig->tx.port = rig->port.id;
	return ret;
}

unsigned int rig_close(struct rig *rig)
{
	port_close(&rig->port);
	close(rig->control);
	return rte_mempool_in_use_count(rig->packets) + rte_mempool_in_use_count(rig->small);
}

/* --- receive --------------------------------------------------------------------------------- */

static void neighbour(struct rig *rig, uint16_t type, const uint8_t *packet, uint32_t length)
{
	uint8_t frame[NEIGH_FRAME_MAX];
	struct neigh_message message;
	struct in6_addr ours;

	inet_pton(AF_INET6, rig->way->ours, &ours);
	if (!neigh_parse(type, packet, length, &message) || message.kind != NEIGH_REQUEST ||
	    memcmp(&message.target, &ours, sizeof(ours)) != 0)
		return;
	rig->asked++;
	if (!rig->ignore_neighbours)
		rig_send(rig, frame, neigh_reply_build(frame, &message, rig->port.mac));
}

static void write_receive(struct rig *rig, struct rig_qp *qp, const struct roce_packet *p,
			  const uint8_t *bth)
{
	struct responder_placement at;

	if (responder_receive(&qp->responder, p, &at) != RESPONDER_ACCEPT)
		return;
	if (p->payload_length > 0)
		memcpy(rig->memory + (at.va - RIG_VA), bth + p->payload_offset, p->payload_length);
	qp->writes += at.last;
	if (at.has_imm) {
		qp->imm = at.imm;
		qp->imms++;
	}
}

static void roce_receive(struct rig *rig, const uint8_t *frame, const struct roce_frame *f)
{
	const uint8_t *ip = frame + f->ip_offset, *bth = frame + f->bth_offset;
	uint32_t covered = f->bth_offset + f->bth_length - f->ip_offset - ROCE_ICRC_LENGTH;
	struct rig_qp *qp = NULL;
	struct rig_seen *seen;
	struct roce_packet p;

	if (!roce_icrc_ok(ip, f->ip_length, covered))
		rig_fail(rig, "a packet of the peer's has a wrong ICRC");
	/* Of an unknown packet only the opcode and the numbers are recorded. */
	if (roce_parse(bth, f->bth_length, &p) != ROCE_PARSED) {
		memset(&p, 0, sizeof(p));
		p.opcode = bth[0];
		p.qpn = bth[5] << 16 | bth[6] << 8 | bth[7];
		p.psn = bth[9] << 16 | bth[10] << 8 | bth[11];
	}
	for (unsigned int i = 0; i < rig->n_qps; i++)
		if (rig->qp[i].number == p.qpn)
			qp = &rig->qp[i];
	if (qp == NULL || !roce_path_is_from_peer(&qp->path, ip))
		return; /* of an earlier row */
	if (rig->n_received < 64 && rig->lose_received >> rig->n_received++ & 1)
		return;
	if (p.opcode == ROCE_ACK && rig->lose_acks)
		return;
	if (qp->n_seen < RIG_SEEN) {
		seen = &qp->seen[qp->n_seen++];
		*seen = (struct rig_seen){.packet = p,
					  .time = rte_rdtsc(),
					  .tries = qp->requester.stats.timeouts +
						   qp->requester.stats.early,
					  .flags = bth[1]};
	}
	if (qp->hands_off)
		return;
	if (p.opcode == ROCE_ACK)
		requester_ack(&qp->requester, p.psn, p.syndrome, rte_rdtsc());
	else if (roce_opcode_traits(p.opcode) & (ROCE_IS_WRITE | ROCE_IS_UNSERVED))
		write_receive(rig, qp, &p, bth);
}

static void receive(struct rig *rig, const struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	struct roce_frame f;

	switch (frame_locate(frame, m->data_len, &f)) {
	case FRAME_ROCE:
		roce_receive(rig, frame, &f);
		break;
	case FRAME_ARP:
		neighbour(rig, 0x0806, frame + f.ip_offset, f.l3_length);
		break;
	case FRAME_ICMP6:
		neighbour(rig, 0x86dd, frame + f.ip_offset, f.l3_length);
		break;
	default:
		break;
	}
}

/* --- send ------------------------------------------------------------------------------------ */

static uint32_t psn_of(const struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	const uint8_t *bth = frame + 14 + (frame[12] == 0x86 ? 40 : 20) + 8;

	return bth[9] << 16 | bth[10] << 8 | bth[11];
}

/* Drops the packets that the row wants lost, and transmits the others. */
static void flush(struct rig *rig)
{
	uint16_t kept = 0;

	for (uint16_t i = 0; i < rig->tx.n; i++) {
		struct rte_mbuf *m = rig->tx.packet[i];
		bool lose = rig->n_sent < 64 && rig->lose_sent >> rig->n_sent & 1;

		if (rig->n_sent < 64)
			rig->sent_psn[rig->n_sent] = psn_of(m);
		rig->n_sent++;
		if (lose || rig->lose_all)
			rte_pktmbuf_free(m);
		else
			rig->tx.packet[kept++] = m;
	}
	rig->tx.n = kept;
	while (rig->tx.n > 0)
		txq_flush(&rig->tx);
}

void rig_send(struct rig *rig, const void *frame, uint32_t length)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(rig->packets);

	if (m == NULL)
		rig_fail(rig, "out of packets");
	memcpy(rte_pktmbuf_append(m, length), frame, length);
	while (rte_eth_tx_burst(rig->port.id, 0, &m, 1) == 0)
		;
}

void rig_ack(struct rig *rig, struct rig_qp *qp, uint32_t psn, uint8_t syndrome, uint32_t msn)
{
	uint8_t frame[ROCE_ACK_FRAME_MAX];

	rig_send(rig, frame, roce_ack_build(frame, &qp->path, psn, syndrome, msn));
}

static void acknowledge(struct rig *rig, struct rig_qp *qp)
{
	uint32_t psn, msn;
	uint8_t syndrome;

	if (!qp->mute && responder_ack_due(&qp->responder, &psn, &syndrome, &msn))
		rig_ack(rig, qp, psn, syndrome, msn);
}

void rig_poll(struct rig *rig)
{
	struct rte_mbuf *burst[BURST];
	struct pollfd fds[] = {
		{.fd = rig->control, .events = POLLIN},
		{.fd = rig->port.n_fds > 0 ? rig->port.fds[0] : -1, .events = POLLIN}};
	uint16_t n;

	n = rte_eth_rx_burst(rig->port.id, 0, burst, BURST);
	for (uint16_t i = 0; i < n; i++)
		receive(rig, burst[i]);
	rte_pktmbuf_free_bulk(burst, n);
	for (unsigned int i = 0; i < rig->n_qps; i++) {
		acknowledge(rig, &rig->qp[i]);
		requester_poll(&rig->qp[i].requester, rte_rdtsc());
	}
	flush(rig);
	if (n == 0)
		poll(fds, 2, 1);
}

void rig_poll_ms(struct rig *rig, unsigned int ms)
{
	uint64_t end = rte_rdtsc() + rte_get_tsc_hz() / 1000 * ms;

	while (rte_rdtsc() < end)
		rig_poll(rig);
}

/* --- queue pairs ----------------------------------------------------------------------------- */

static void endpoint_init(struct rig *rig, struct rig_qp *qp, const struct rig_qp_options *o)
{
	static const uint8_t peer_mac[6] = {0x02, 0x00, 0x00, 0x01, 0x00, 0x01};
	uint32_t mtu = o->mtu != 0 ? o->mtu : rig->way->mtu;
	struct rdma_region region = {.va = RIG_VA, .length = RIG_MEMORY, .rkey = RIG_RKEY};
	struct roce_path_spec spec = {
		.family = rig->way->family,
		.udp_source = 0xc000 | (qp->number & 0x3fff),
		.qpn = qp->peer_qpn,
		.migrated = true,
		.mtu = mtu,
	};
	struct requester_params params = {
		.path = &qp->path,
		.tx = &rig->tx,
		.pool = rig->small,
		.held = &rig->held,
		.multi_segment = rig->port.segments_max >= REQUESTER_SEGMENTS,
		.psn = o->psn,
		.ack_timeout = o->timeout,
		.retry_limit = o->retries,
		.rnr_retry = ROCE_RNR_FOREVER,
	};

	memcpy(spec.source_mac, rig->port.mac, 6);
	memcpy(spec.destination_mac, peer_mac, 6);
	inet_pton(AF_INET6, rig->way->ours, &spec.source);
	inet_pton(AF_INET6, rig->way->peers, &spec.destination);
	roce_path_init(&qp->path, &spec);
	requester_init(&qp->requester, &params);
	responder_init(&qp->responder, &region, mtu, o->peer_psn);
}

struct rig_qp *rig_create(struct rig *rig, const struct rig_qp_options *o)
{
	static uint32_t numbers;
	struct rig_qp *qp = &rig->qp[rig->n_qps];

	RIG_EXPECT(rig, rig->n_qps < RIG_QPS, "too many queue pairs");
	memset(qp, 0, sizeof(*qp));
	qp->number = QPN_FIRST + numbers++;
	qp->first_psn = o->psn;
	qp->peer_psn = o->peer_psn;
	sscanf(peer_ask(rig, "mr %u %s", o->bytes, o->access), "%lx %x %x", &qp->va, &qp->lkey,
	       &qp->rkey);
	sscanf(peer_ask(rig, "qp"), "%u %x", &qp->peer, &qp->peer_qpn);
	endpoint_init(rig, qp, o);
	rig->n_qps++;
	return qp;
}

struct rig_qp *rig_connect(struct rig *rig, const struct rig_qp_options *o)
{
	struct rig_qp *qp = rig_create(rig, o);

	peer_ask(rig, "rtr %u %u %s %u %u %u %u", qp->peer, rig->way->gid_index, rig->way->ours,
		 qp->number, o->psn, o->mtu != 0 ? o->mtu : rig->way->mtu, o->rnr_code);
	peer_ask(rig, "rts %u %u %u %u 7", qp->peer, o->peer_psn, o->peer_timeout, o->peer_retries);
	return qp;
}

void rig_reset(struct rig *rig)
{
	rig->lose_sent = rig->lose_received = 0;
	rig->lose_acks = rig->lose_all = rig->ignore_neighbours = false;
	rte_pktmbuf_free_bulk(rig->tx.packet, rig->tx.n);
	rig->tx.n = 0;
	while (rig->n_qps > 0) {
		rig->n_qps--;
		requester_fini(&rig->qp[rig->n_qps].requester);
		peer_try(rig, "close %u", rig->qp[rig->n_qps].peer);
	}
	memset(rig->memory, 0, sizeof(rig->memory));
}

/* --- what rows do all the time --------------------------------------------------------------- */

void rig_write(struct rig *rig, struct rig_qp *qp, uint32_t offset, uint32_t bytes,
	       unsigned int seed, uint32_t imm, uint32_t flags)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(rig->packets);
	uint8_t *at;
	int ret;

	if (m == NULL)
		rig_fail(rig, "out of packets");
	at = (uint8_t *)rte_pktmbuf_append(m, bytes);
	for (uint32_t i = 0; i < bytes; i++)
		at[i] = rig_byte(seed, i);
	ret = requester_write(&qp->requester, m, bytes == 0 ? 0 : qp->va + offset,
			      bytes == 0 ? 0 : qp->rkey, imm, flags);
	if (ret < 0) {
		rte_pktmbuf_free(m);
		rig_fail(rig, "requester_write: %s", strerror(-ret));
	}
}

void rig_expect_acked(struct rig *rig, struct rig_qp *qp)
{
	struct requester *rq = &qp->requester;
	bool over = RIG_AWAIT(rig, requester_unacked(rq) == 0 || rq->error != REQUESTER_OK);

	RIG_EXPECT(rig, rq->error == REQUESTER_OK, "our requester failed: error %d, NAK %#x",
		   rq->error, rq->nak);
	RIG_EXPECT(rig, over, "%u packets were never acknowledged", requester_unacked(rq));
}

bool rig_has(const struct rig *rig, uint32_t offset, uint32_t bytes, unsigned int seed)
{
	for (uint32_t i = 0; i < bytes; i++)
		if (rig->memory[offset + i] != rig_byte(seed, i))
			return false;
	return true;
}

const struct rig_seen *rig_seen_at(struct rig *rig, struct rig_qp *qp, unsigned int n)
{
	RIG_EXPECT(rig, RIG_AWAIT(rig, qp->n_seen > n), "%u packets came, not %u", qp->n_seen,
		   n + 1);
	return &qp->seen[n];
}
