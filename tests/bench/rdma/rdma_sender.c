/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requester's process: one lcore that WRITEs as fast as window and acknowledgements allow,
 * through a memif port without copies, and forks the receiver.
 */
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>

#include "rdma/frame.h"
#include "runtime/neigh.h"
#include "runtime/data_room.h"
#include "runtime/port.h"
#include "rdma/rdma.h"
#include "rdma/requester.h"
#include "common/wire_child.h"

#define MEMORY_MB 64
/* A full window, a full ring, and the packets in the mempool cache. */
#define PACKETS       4095
#define RECEIVED      2047
#define ROOM          (RTE_PKTMBUF_HEADROOM + RDMA_PATH_MTU + 64)
#define SETTLE_MS     50
#define SILENCE_S     5
#define CPU_SHARE_MIN 0.97
/* Turns between two reads of the socket. */
#define LOOK_TURNS 64

struct sender {
	const struct rdma_wire *w;
	struct wire_child receiver;
	struct rdma_answer peer; /* its memory and queue pair */
	struct port port;
	struct rte_mempool *packets, *received, *small;
	struct roce_path path;
	struct txq tx;
	uint32_t held;
	struct requester rq;
	uint32_t length;
	uint64_t number, limit; /* of the next message; of the first that is not to be written */
	uint64_t busy;
	bool answered; /* the receiver has sent its MAC address: it is up, and knows ours */
};

/* Counters of both sides at about the same time. */
struct sample {
	struct rdma_answer there;
	uint64_t tsc, busy, cpu_ns;
};

/* --- a turn --------------------------------------------------------------------------------------
 */

/* The payload lies there already; only its number is written for each message. */
static void write_one(struct sender *s, struct rte_mbuf *m, bool ask)
{
	uint64_t at = s->peer.va + s->number % RDMA_SLOTS * RDMA_PATH_MTU;

	m->data_len = m->pkt_len = s->length;
	memcpy(rte_pktmbuf_mtod(m, uint8_t *), &s->number, sizeof(s->number));
	s->number++;
	if (requester_write(&s->rq, m, at, s->peer.rkey, 0, ask ? REQUESTER_ACK_REQUEST : 0) < 0)
		wire_die("a WRITE was refused");
}

static unsigned int write_burst(struct sender *s)
{
	struct rte_mbuf *m[RDMA_BURST];
	unsigned int n = RTE_MIN((uint64_t)RDMA_BURST, s->limit - s->number);

	n = RTE_MIN(n, RTE_MIN(s->w->o->outstanding - requester_unacked(&s->rq), txq_room(&s->tx)));
	if (n == 0 || rte_pktmbuf_alloc_bulk(s->packets, m, n) != 0)
		return 0;
	for (unsigned int i = 0; i < n; i++)
		write_one(s, m[i], i == n - 1);
	return n;
}

static void take_arp(struct sender *s, const uint8_t *frame)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(s->small);
	int length;

	if (m == NULL || txq_room(&s->tx) == 0)
		wire_die("no room for what is sent");
	length = writer_answer_arp(frame, rdma_sender_mac, rte_pktmbuf_mtod(m, uint8_t *));
	if (length <= 0) {
		s->answered = true;
		return rte_pktmbuf_free(m);
	}
	m->data_len = m->pkt_len = length;
	txq_push(&s->tx, m);
}

static void take(struct sender *s, const struct rte_mbuf *m, uint64_t now)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	struct roce_frame f;
	struct roce_packet p;

	if (unlikely(writer_is_arp(frame)))
		return take_arp(s, frame);
	if (frame_locate(frame, m->data_len, &f) != FRAME_ROCE ||
	    roce_parse(frame + f.bth_offset, f.bth_length, &p) != ROCE_PARSED ||
	    roce_path_admit(&s->path, frame + f.ip_offset, f.ip_length,
			    f.bth_offset + f.bth_length - f.ip_offset) != ROCE_ADMITTED ||
	    p.opcode != ROCE_ACK)
		wire_die("a packet came that is no acknowledgement");
	if (requester_ack(&s->rq, p.psn, p.syndrome, now) != REQUESTER_PROGRESS)
		wire_die("PSN %u, syndrome %02x: no progress", p.psn, p.syndrome);
}

static void turn(struct sender *s)
{
	struct rte_mbuf *packet[RDMA_BURST];
	uint64_t begin = rte_rdtsc();
	unsigned int work = rte_eth_rx_burst(s->port.id, 0, packet, RDMA_BURST);

	for (unsigned int i = 0; i < work; i++)
		take(s, packet[i], begin);
	rte_pktmbuf_free_bulk(packet, work);
	work += write_burst(s);
	if (s->tx.n > 0)
		work += txq_flush(&s->tx);
	if (work > 0)
		s->busy += rte_rdtsc() - begin;
}

static void run_for(struct sender *s, uint32_t ms)
{
	uint64_t end = rte_rdtsc() + rte_get_tsc_hz() / 1000 * ms;

	while (rte_rdtsc() < end)
		turn(s);
}

/* --- setting up ----------------------------------------------------------------------------------
 */

static void open_port(struct sender *s)
{
	char device[160], error[512];
	struct port_params p = {
		.device = device,
		.queues = 1,
		.rx_descriptors = 1024,
		.tx_descriptors = 1024,
		.mtu = RDMA_MTU,
		.pool = &s->received,
	};

	snprintf(device, sizeof(device),
		 "net_memif_requester,role=client,zero-copy=yes,mac=02:00:00:00:00:01," RDMA_DEVICE,
		 s->w->o->socket);
	if (port_open(&s->port, &p, error, sizeof(error)) < 0)
		wire_die("%s", error);
	s->tx.port = s->port.id;
	wire_wait_for_link(s->port.id);
}

/* An ARP request tells the receiver our address, too. */
static void say_hello(struct sender *s)
{
	uint64_t end = rte_rdtsc() + rte_get_tsc_hz() * SILENCE_S;
	struct roce_path_spec path = writer_path(RDMA_SENDER, rdma_sender_mac, RDMA_RECEIVER,
						 rdma_receiver_mac, 0, RDMA_PATH_MTU);
	struct rte_mbuf *m = rte_pktmbuf_alloc(s->small);

	m->data_len = m->pkt_len =
		neigh_request_build(rte_pktmbuf_mtod(m, uint8_t *), 4, &path.destination,
				    &path.source, rdma_sender_mac);
	txq_push(&s->tx, m);
	while (!s->answered) {
		turn(s);
		if (rte_rdtsc() > end)
			wire_die("the receiver says nothing");
	}
}

static void init(struct sender *s)
{
	struct roce_path_spec path = writer_path(RDMA_SENDER, rdma_sender_mac, RDMA_RECEIVER,
						 rdma_receiver_mac, s->peer.qpn, RDMA_PATH_MTU);
	struct requester_params rq = {
		.path = &s->path,
		.tx = &s->tx,
		.held = &s->held,
		.multi_segment = true,
		.psn = RDMA_SENDER_PSN,
		/* No timer: a lost packet stays lost and is reported. */
	};

	s->packets = rdma_pool("packets", PACKETS, ROOM);
	s->received = rdma_pool("received", RECEIVED, port_data_room(RDMA_MTU));
	s->small = rq.pool = rdma_pool("small", 511, RTE_PKTMBUF_HEADROOM + 128);
	roce_path_init(&s->path, &path);
	requester_init(&s->rq, &rq);
	open_port(s);
	say_hello(s);
}

/* --- spans ---------------------------------------------------------------------------------------
 */

static void fill(struct rte_mempool *pool, void *sender, void *mbuf, unsigned int index)
{
	struct rte_mbuf *m = mbuf;

	payload_write((uint8_t *)m->buf_addr + RTE_PKTMBUF_HEADROOM, RDMA_PATH_MTU, 0);
}

/* The last message's pad and ICRC lie where the next one, if it is longer, has bytes. */
static void begin(struct sender *s, uint32_t length)
{
	s->length = length;
	rte_mempool_obj_iter(s->packets, fill, NULL);
}

static void ask(struct sender *s, const struct rdma_order *order, struct rdma_answer *a)
{
	ssize_t n = -1;

	if (send(s->receiver.socket, order, sizeof(*order), MSG_NOSIGNAL) != sizeof(*order))
		wire_die("the receiver is gone; its reason is above");
	while (n < 0) {
		for (unsigned int i = 0; i < LOOK_TURNS; i++)
			turn(s);
		n = recv(s->receiver.socket, a, sizeof(*a), MSG_DONTWAIT);
	}
	if (n != sizeof(*a))
		wire_die("the receiver is gone; its reason is above");
}

static void sample(struct sender *s, struct sample *to)
{
	static const struct rdma_order order = {.kind = RDMA_SNAPSHOT};

	ask(s, &order, &to->there);
	to->tsc = rte_rdtsc();
	to->busy = s->busy;
	to->cpu_ns = wire_cpu_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Waits until all messages have arrived and checks the slots. Returns how much is wrong. */
static uint64_t drain(struct sender *s)
{
	uint64_t end = rte_rdtsc() + rte_get_tsc_hz() * SILENCE_S;
	struct rdma_order order = {.kind = RDMA_VERIFY, .length = s->length};
	struct rdma_answer a;

	s->limit = s->number;
	while (requester_unacked(&s->rq) > 0 && rte_rdtsc() < end)
		turn(s);
	order.count = RTE_MIN((uint64_t)RDMA_SLOTS, s->number);
	order.first = s->number - order.count;
	if (s->w->acks_only)
		order.count = 0;
	ask(s, &order, &a);
	if (a.status < 0)
		wire_die("what was written is not what lies in the receiver's memory");
	if (s->rq.stats.resent > 0)
		wire_die("packets were sent again");
	return s->number - a.writes;
}

/* Checks every message before the next one takes its slot. */
static void run_verified(struct sender *s, uint32_t ms)
{
	uint64_t end = rte_rdtsc() + rte_get_tsc_hz() / 1000 * ms;

	while (rte_rdtsc() < end) {
		s->limit = s->number + RDMA_SLOTS;
		while (s->number < s->limit)
			turn(s);
		if (drain(s) > 0)
			wire_die("messages were lost");
	}
}

static uint64_t span(struct sender *s, uint32_t length, struct sample *before, struct sample *after)
{
	const struct rdma_options *o = s->w->o;

	begin(s, length);
	/* The first round of slots has the old length. */
	s->limit = s->number + RDMA_SLOTS;
	while (s->number < s->limit)
		turn(s);
	if (drain(s) > 0)
		wire_die("messages were lost");
	s->limit = UINT64_MAX;
	if (!o->verify)
		run_for(s, SETTLE_MS);
	sample(s, before);
	if (o->verify)
		run_verified(s, o->measure_ms);
	else
		run_for(s, o->measure_ms);
	sample(s, after);
	/* One answer too many to an address request may have come before this span. */
	if (after->there.unwanted > before->there.unwanted)
		wire_die("the receiver has dropped packets");
	return drain(s);
}

/* The share of the time between two samples of one side, on that side's clock. */
static double share(uint64_t from, uint64_t to, uint64_t before, uint64_t after)
{
	return (double)(after - before) / (double)(to - from);
}

static double sender_cpu(const struct sample *a, const struct sample *b)
{
	return share(a->tsc, b->tsc, a->cpu_ns, b->cpu_ns) * (double)rte_get_tsc_hz() / 1e9;
}

static double receiver_cpu(const struct sample *a, const struct sample *b)
{
	return share(a->there.tsc, b->there.tsc, a->there.cpu_ns, b->there.cpu_ns) *
	       (double)rte_get_tsc_hz() / 1e9;
}

static bool disturbed(const struct sample *a, const struct sample *b)
{
	return sender_cpu(a, b) < CPU_SHARE_MIN || receiver_cpu(a, b) < CPU_SHARE_MIN;
}

static void tell(const struct sender *s, int socket, const struct sample *a, const struct sample *b)
{
	const char *kind = s->w->acks_only ? "_acks_only" : "", *receiver;
	double writes = (double)(b->there.writes - a->there.writes);
	double seconds = (double)(b->there.tsc - a->there.tsc) / (double)rte_get_tsc_hz();
	char to[64];

	receiver = s->w->acks_only ? "acker" : "rnic";
	snprintf(to, sizeof(to), "%ub_1_core%s", s->length, kind);
	rdma_tell(socket, writes * s->length * 8 / seconds / 1e9, "gbps_%s", to);
	rdma_tell(socket, writes / seconds / 1e6, "mpps_%s", to);
	rdma_tell(socket, (double)(b->busy - a->busy) / writes, "requester_cycles_%s", to);
	rdma_tell(socket, (double)(b->there.busy - a->there.busy) / writes, "%s_cycles_%s",
		  receiver, to);
	rdma_tell(socket, 100 * share(a->tsc, b->tsc, a->busy, b->busy),
		  "requester_busy_percent_%s", to);
	rdma_tell(socket, 100 * share(a->there.tsc, b->there.tsc, a->there.busy, b->there.busy),
		  "%s_busy_percent_%s", receiver, to);
	rdma_tell(socket, 100 * sender_cpu(a, b), "requester_cpu_percent_%s", to);
	rdma_tell(socket, 100 * receiver_cpu(a, b), "%s_cpu_percent_%s", receiver, to);
}

static uint64_t measure(struct sender *s, int socket, uint32_t length)
{
	struct sample before, after;
	uint64_t lost = span(s, length, &before, &after);
	unsigned int again = 0;

	while (again < s->w->o->tries - 1 && disturbed(&before, &after)) {
		lost += span(s, length, &before, &after);
		again++;
	}
	tell(s, socket, &before, &after);
	rdma_tell(socket, again, "disturbed_spans");
	return lost;
}

void rdma_wire_main(const void *wire, int socket)
{
	static const struct rdma_order end = {.kind = RDMA_END};
	static struct sender s;
	uint64_t lost;

	s.w = wire;
	payload_init();
	wire_child_start(&s.receiver, "receiver", rdma_receiver_main, wire);
	if (recv(s.receiver.socket, &s.peer, sizeof(s.peer), 0) != sizeof(s.peer))
		wire_die("the receiver is gone; its reason is above");
	rdma_start_eal(s.w->o, "rdma-requester", s.w->o->sender_cpu, RDMA_NO_CPU, MEMORY_MB);
	init(&s);
	lost = measure(&s, socket, 4096) + measure(&s, socket, 64);
	rdma_tell(socket, (double)lost, "lost");
	if (lost > 0)
		wire_die("%lu messages were lost", lost);
	send(s.receiver.socket, &end, sizeof(end), MSG_NOSIGNAL);
	wire_child_end(&s.receiver);
}
