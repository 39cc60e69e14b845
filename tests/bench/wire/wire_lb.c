/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The load balancer's process: the daemon's own lb_create() and lb_poll() on lcores of their own,
 * and a control thread that ticks and takes the parent's orders. The same lcores and ports also
 * forward without reading packets, for comparison.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_launch.h>
#include <rte_lcore.h>

#include "ports/eal.h"
#include "lcore/lcore.h"
#include "common/swap.h"
#include "wire/wire.h"
#include "config/memory.h"
#include "lb.h"
#include "walk/loop.h"

#define TICK_MS      50
#define JOIN_TICK_MS 1
#define JOIN_TICKS   10000
#define HOUR_MS      3600000
/* ms after forwarding; the worker's heartbeats from that time have arrived long before. */
#define RESUME_MS 5000

enum phase { PHASE_WALK, PHASE_FORWARD, PHASE_END };

struct runner {
	struct lcore *lc;
	const int *phase; /* atomic: enum phase */
	clockid_t clock;
	int seen; /* atomic: the phase that it is in */
	/* written by the lcore only */
	uint64_t busy, turns, forwarded;
} __rte_cache_aligned;

struct balancer {
	const struct wire_options *o;
	struct lb *lb;
	struct worker *worker;
	struct wire_address address;
	int phase;           /* atomic */
	int nic_checks;      /* atomic: packets come as from a NIC that has verified checksums */
	uint32_t resumed_ms; /* when the lcores last began to walk */
	char inactive[256];  /* the worker's first state but active since it joined, and why */
	struct runner runner[WIRE_QUEUES_MAX];
};

/*
 * All else is the daemon's default, except the policy, which costs the same with one worker: with
 * the default policy, requests wait here for a worker that a busy machine makes slow, and leave in
 * another order than the generator checks. Nothing times out on a busy machine: requests and flows
 * live for an hour, and no acknowledgement is so late that a packet is sent again. A packet that is
 * lost all the same, which memif does not do, is a request without an answer.
 */
static const char config_text[] =
	"ports:\n"
	"  - {name: clients, device: \"net_memif_clients,role=client,%s\", roles: [clients],\n"
	"     queues: %u}\n"
	"  - {name: fabric, device: \"net_memif_fabric,role=client,%s\", roles: [fabric],\n"
	"     queues: %u, mtu: %u, address: " WIRE_LB_FABRIC "/24}\n"
	"services:\n"
	"  - {name: wire, address: " WIRE_VIP
	", port: %u, model: wire, policy: round-robin, flow_timeout_ms: %u,\n"
	"     one_way_timeout_ms: %u, request_timeout_ms: %u, queue_timeout_ms: %u}\n"
	"%s"
	"lcores: [%s]\n"
	"idle: poll\n"
	"flows: %u\n"
	"memory: {hugepages: %s}\n"
	"workers: {timeout_ms: %u}\n"
	"fabric: {ack_timeout: 31}\n"
	"log_level: warning\n";

/* The second service, and room for its connections: the window of each, several times. */
static const char tcp_text[] =
	"  - {name: wire-tcp, protocol: tcp, address: " WIRE_VIP ", port: %u, model: wire,\n"
	"     policy: round-robin, max_request: %u, max_reply: 4096, request_timeout_ms: %u,\n"
	"     queue_timeout_ms: %u}\n"
	"tcp: {connections: %u, connections_percent: 100, buffer_mb: %u, keepalive_ms: %u, give_up_ms: %u, min_rate: 0}\n";
#define TCP_BUFFER_MB 64 /* per lcore */

static void read_config(const struct wire_options *o, struct lb_config *config)
{
	char text[4096], tcp[1024] = "", clients[160], fabric[160], cpus[128] = "", error[512];
	const char *zero_copy = o->zero_copy ? ",zero-copy=yes" : "";
	uint32_t timeout = o->timeout_ms > 0 ? o->timeout_ms : HOUR_MS;
	int length;
	size_t n = 0;

	snprintf(clients, sizeof(clients), WIRE_DEVICE "%s", o->socket, "clients", o->ring,
		 zero_copy);
	snprintf(fabric, sizeof(fabric), WIRE_DEVICE "%s", o->socket, "fabric", o->ring, zero_copy);
	for (unsigned int i = 0; i < o->lcores; i++)
		n += snprintf(cpus + n, sizeof(cpus) - n, "%s%u", i ? ", " : "", o->lb_cpu[i]);
	if (o->connections > 0)
		snprintf(tcp, sizeof(tcp), tcp_text, WIRE_SERVICE_TCP, WIRE_TCP_BYTES, HOUR_MS / 2,
			 HOUR_MS / 4, o->connections * o->lcores, TCP_BUFFER_MB * o->lcores,
			 HOUR_MS, HOUR_MS);
	/* A flow must outlive its request. */
	length = snprintf(text, sizeof(text), config_text, clients, o->lcores, fabric, o->lcores,
			  WIRE_FABRIC_MTU, WIRE_SERVICE_UDP, timeout, timeout,
			  timeout - timeout / 8, timeout / 8, tcp, cpus, wire_options_capacity(o),
			  o->hugepages ? "true" : "false", WIRE_DEAD_MS);
	if (lb_config_parse("wire", text, length, config, error, sizeof(error)) < 0)
		wire_die("%s", error);
}

unsigned int wire_lb_memory_mb(const struct wire_options *o)
{
	struct lb_config *config = calloc(1, sizeof(*config));
	unsigned int mb;

	if (config == NULL)
		wire_die("no memory");
	read_config(o, config);
	mb = lb_memory_mb(config);
	free(config);
	return mb;
}

/* Marks packets as a NIC does that has verified their checksums. */
static uint16_t mark_checked(uint16_t port, uint16_t queue, struct rte_mbuf *packet[], uint16_t n,
			     uint16_t most, void *balancer)
{
	const struct balancer *b = balancer;

	if (__atomic_load_n(&b->nic_checks, __ATOMIC_RELAXED))
		for (uint16_t i = 0; i < n; i++)
			packet[i]->ol_flags |=
				RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD;
	return n;
}

/* A memif verifies nothing: the bench plays the NIC that would. */
static void add_marks(struct balancer *b)
{
	struct port *port = &b->lb->port[0];

	port->rx_checksums = RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD;
	for (unsigned int i = 0; i < b->o->lcores; i++)
		if (rte_eth_add_rx_callback(port->id, i, mark_checked, b) == NULL)
			wire_die("no callback for a queue");
}

static void create(struct balancer *b)
{
	struct lb_config *config = calloc(1, sizeof(*config));
	char error[512];

	if (config == NULL)
		wire_die("no memory");
	read_config(b->o, config);
	if (lb_eal_init(config, "wire-lb", error, sizeof(error)) < 0)
		wire_die("%s", error);
	b->lb = lb_create(config);
	if (b->lb == NULL)
		wire_die("the load balancer was not created");
	free(config);
	add_marks(b);
	memcpy(b->address.client_mac, b->lb->port[0].mac, 6);
	memcpy(b->address.fabric_mac, b->lb->port[1].mac, 6);
}

/* Called at every change of the worker's state. Once active, it must stay so. */
static void note_state(struct worker *worker, void *balancer)
{
	struct balancer *b = balancer;

	if (worker->state == WORKER_GONE)
		b->worker = NULL;
	if (worker->state == WORKER_JOINING || worker->state == WORKER_PROBING ||
	    worker->state == WORKER_ACTIVE || b->inactive[0] != '\0')
		return;
	snprintf(b->inactive, sizeof(b->inactive), "worker %s became %s: %s", worker->spec.name,
		 worker_state_name(worker->state), worker->reason);
}

/* Registers the worker, as its agent would over the control port. */
static void add_worker(struct balancer *b)
{
	struct lb_registration r = {
		.worker = {.name = "gpu0",
			   .model = "wire",
			   .instance = 1,
			   .slots = WIRE_SLOTS,
			   .max_request = WIRE_TCP_BYTES,
			   .max_reply = WIRE_BYTES_MAX,
			   .max_batch = 64,
			   .weight = 1,
			   .heartbeat_ms = WIRE_HEARTBEAT_MS},
		.path_mtu = WIRE_PATH_MTU,
		.n_links = b->o->lcores,
	};
	char error[256];

	for (unsigned int i = 0; i < r.n_links; i++)
		r.link[i] = (struct lb_link_spec){
			.lcore = i,
			.qpn = WIRE_QPN(i),
			.psn = WIRE_FIRST_PSN,
			.rkey = WIRE_RKEY(i),
			.descriptors = WIRE_DESCRIPTORS(i),
			.payloads = WIRE_REQUESTS(i),
			.cancels = WIRE_CANCELS(i),
			.stride = WIRE_STRIDE,
			.room = WIRE_ROOM,
			.entry = RING_ENTRY,
		};
	lb_address_parse(WIRE_HOST, &r.address);
	b->worker = lb_worker_register(b->lb, &r, b->address.link, &b->address.path_mtu, error,
				       sizeof(error));
	if (b->worker == NULL)
		wire_die("the worker is refused: %s", error);
	lb_on_worker_event(b->lb, note_state, b);
	if (b->address.path_mtu < WIRE_BYTES_MAX)
		wire_die("a request would take several packets on the fabric");
}

/* Receives, swaps, and sends back: the least that any middlebox does with these packets. */
static bool forward_turn(struct runner *r)
{
	uint16_t port = r->lc->lb->port[0].id, queue = r->lc->index, sent = 0;
	struct rte_mbuf *packet[LB_BURST];
	unsigned int n = rte_eth_rx_burst(port, queue, packet, LB_BURST);

	swap_burst(packet, n);
	while (sent < n)
		sent += rte_eth_tx_burst(port, queue, packet + sent, n - sent);
	r->forwarded += n;
	if (!mailbox_empty(&r->lc->mailbox))
		mailbox_run(&r->lc->mailbox);
	rte_rcu_qsbr_quiescent(r->lc->lb->qsbr, r->lc->index);
	return n > 0;
}

/* lb_loop() with a clock, and with forwarding as a second task. */
static int run(void *runner)
{
	struct runner *r = runner;
	struct lcore *lc = r->lc;
	int phase;

	pthread_getcpuclockid(pthread_self(), &r->clock);
	rte_rcu_qsbr_thread_register(lc->lb->qsbr, lc->index);
	rte_rcu_qsbr_thread_online(lc->lb->qsbr, lc->index);
	mailbox_open(&lc->mailbox);
	while ((phase = __atomic_load_n(r->phase, __ATOMIC_RELAXED)) != PHASE_END) {
		uint64_t begin = rte_rdtsc();

		/* The last acknowledgement of clients must not be turned around. */
		if (phase == PHASE_FORWARD && r->seen == PHASE_WALK)
			while (lb_poll(lc))
				;
		__atomic_store_n(&r->seen, phase, __ATOMIC_RELEASE);
		if (phase == PHASE_WALK ? lb_poll(lc) : forward_turn(r)) {
			r->busy += rte_rdtsc() - begin;
			r->turns++;
		}
	}
	mailbox_close(&lc->mailbox);
	rte_rcu_qsbr_thread_offline(lc->lb->qsbr, lc->index);
	rte_rcu_qsbr_thread_unregister(lc->lb->qsbr, lc->index);
	return 0;
}

static void launch(struct balancer *b)
{
	unsigned int index = 0, id;

	RTE_LCORE_FOREACH_WORKER(id)
	{
		struct runner *r = &b->runner[index];

		r->lc = b->lb->lcore[index++];
		r->phase = &b->phase;
		if (rte_eal_remote_launch(run, r, id) != 0)
			wire_die("an lcore does not start");
		mailbox_wait_open(&r->lc->mailbox);
	}
}

/* The daemon's control thread has memifs find each other. */
static void wait_for_links(const struct balancer *b)
{
	for (unsigned int i = 0; i < 2; i++) {
		for (unsigned int ms = 0; ms < WIRE_LINK_MS && !port_up(&b->lb->port[i]); ms++) {
			lb_attend(b->lb);
			poll(NULL, 0, 1);
		}
		if (!port_up(&b->lb->port[i]))
			wire_die("port %u does not connect", i);
	}
}

/* Joins as the daemon does: resolves the worker's address, waits for its loop's first heartbeat. */
static void join(struct balancer *b)
{
	wait_for_links(b);
	launch(b);
	lb_worker_ready(b->lb, b->worker);
	for (unsigned int i = 0;
	     i < JOIN_TICKS && b->worker != NULL && b->worker->state != WORKER_ACTIVE; i++) {
		lb_tick(b->lb);
		poll(NULL, 0, JOIN_TICK_MS);
	}
	if (b->inactive[0] != '\0')
		wire_die("%s", b->inactive);
	if (b->worker->state != WORKER_ACTIVE)
		wire_die("worker %s did not become active, it is %s: %s", b->worker->spec.name,
			 worker_state_name(b->worker->state), b->worker->reason);
}

/* Adds to <sum>, and puts the name into <names>. */
static void note(uint64_t count, const char *name, uint64_t *sum, char *names, size_t size)
{
	size_t n = strlen(names);

	*sum += count;
	if (count > 0)
		snprintf(names + n, size - n, " %s=%lu", name, count);
}

static void count_unwanted(const struct balancer *b, struct wire_answer *a)
{
	struct lb_link_stats link;
	uint64_t *sum = &a->lb[0].unwanted;

	if (b->inactive[0] != '\0') {
		*sum += 1;
		snprintf(a->unwanted, sizeof(a->unwanted), " %s;", b->inactive);
	}
	for (unsigned int i = 0; i < b->o->lcores; i++) {
		const struct lb_lcore_stats *s = &b->lb->lcore[i]->stats;

		for (unsigned int d = 0; d < LB_DROPS; d++)
			if (d != LB_DROP_TCP_REFUSED)
				note(s->drop[d], lb_drop_name(d), sum, a->unwanted,
				     sizeof(a->unwanted));
		note(s->payload_copies, "copies", sum, a->unwanted, sizeof(a->unwanted));
		note(s->notices, "notices", sum, a->unwanted, sizeof(a->unwanted));
	}
	if (b->worker == NULL)
		return;
	lb_worker_stats_read(b->lb, b->worker, &link);
	note(link.packets_resent, "resent", sum, a->unwanted, sizeof(a->unwanted));
	note(link.naks_received, "naks", sum, a->unwanted, sizeof(a->unwanted));
	note(link.naks_sent, "naks_sent", sum, a->unwanted, sizeof(a->unwanted));
}

static void snapshot(const struct balancer *b, struct wire_answer *a)
{
	for (unsigned int i = 0; i < b->o->lcores; i++) {
		const struct runner *r = &b->runner[i];
		struct lb_lcore_stats s;

		lb_lcore_stats_read(b->lb, i, &s);
		a->lb[i] = (struct wire_lb_counters){
			.requests = s.requests,
			.replies = s.replies,
			.forwarded = r->forwarded,
			.turns = r->turns,
			.packets_in = s.packets_in,
			.refused = s.drop[LB_DROP_TCP_REFUSED],
			.time = {.busy = r->busy, .cpu_ns = wire_cpu_ns(r->clock)},
		};
		memcpy(a->lb[i].stage_cycles, s.stage_cycles, sizeof(s.stage_cycles));
		conntrack_stats_read(b->lb->lcore[i]->ct, &a->lb[i].flows);
	}
	a->tsc = rte_rdtsc();
	count_unwanted(b, a);
}

/* Each lcore must have left the old phase before packets of the new one come. */
static void set_phase(struct balancer *b, int phase)
{
	if (phase != b->phase)
		b->resumed_ms = lb_now_ms(b->lb);
	__atomic_store_n(&b->phase, phase, __ATOMIC_RELEASE);
	for (unsigned int i = 0; i < b->o->lcores; i++)
		while (__atomic_load_n(&b->runner[i].seen, __ATOMIC_ACQUIRE) != phase)
			sched_yield();
}

static void obey(struct balancer *b, const struct wire_order *order, struct wire_answer *a)
{
	switch (order->kind) {
	case WIRE_JOIN:
		return join(b);
	case WIRE_START:
		__atomic_store_n(&b->nic_checks, order->load.nic_checks, __ATOMIC_RELAXED);
		return set_phase(b, order->load.forward ? PHASE_FORWARD : PHASE_WALK);
	case WIRE_SNAPSHOT:
		return snapshot(b, a);
	case WIRE_STOP:
		__atomic_store_n(&b->phase, PHASE_END, __ATOMIC_RELEASE);
		rte_eal_mp_wait_lcore();
		return;
	case WIRE_DRAIN:
	case WIRE_END:
		return;
	}
}

/* True if every lcore has heard the worker since it began to walk, or has had the time to. */
static bool heard_worker(const struct balancer *b)
{
	if (b->worker == NULL || lb_now_ms(b->lb) - b->resumed_ms > RESUME_MS)
		return true;
	for (unsigned int i = 0; i < b->o->lcores; i++) {
		const struct link *link = b->lb->lcore[i]->link[b->worker->number];
		uint32_t at = __atomic_load_n(&link->heartbeat_ms, __ATOMIC_RELAXED);

		if ((int32_t)(at - b->resumed_ms) < 0)
			return false;
	}
	return true;
}

/* Lcores that forward do not poll the fabric: the worker's silence means nothing then. */
static void tick(struct balancer *b)
{
	if (b->phase == PHASE_WALK && heard_worker(b))
		lb_tick(b->lb);
}

static void control(struct balancer *b, int socket)
{
	struct pollfd orders = {.fd = socket, .events = POLLIN};
	struct wire_order order;

	do {
		struct wire_answer a = {.tsc_hz = rte_get_tsc_hz()};

		while (poll(&orders, 1, TICK_MS) == 0)
			tick(b);
		wire_take_order(socket, &order);
		obey(b, &order, &a);
		wire_answer(socket, &a);
	} while (order.kind != WIRE_END);
}

void wire_lb_main(const struct wire_options *o, int socket)
{
	static struct balancer b;
	struct wire_answer ready = {0};

	b.o = o;
	create(&b);
	add_worker(&b);
	ready.address = b.address;
	wire_answer(socket, &ready);
	control(&b, socket);
	lb_destroy(b.lb);
	rte_eal_cleanup();
}
