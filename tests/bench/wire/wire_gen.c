/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The generator's process: clients and the worker, on threads of their own, and a control thread
 * that takes the parent's orders.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_alarm.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_launch.h>
#include <rte_lcore.h>

#include "runtime/cpus.h"
#include "runtime/data_room.h"
#include "runtime/port.h"
#include "wire/wire_gen.h"

/* Received frames live for one burst; sent frames live until they are copied. */
#define RECEIVE_MBUFS 1024
#define REQUEST_MBUFS 256
#define REPLY_MBUFS   (2 * GEN_PENDING)
#define REPLY_ROOM    (RTE_PKTMBUF_HEADROOM + 512)
#define POOL_CACHE    64
#define MEMORY_MB     64 /* and for each queue: */
#define MEMORY_QUEUE  24
#define MEMORY_TCP    4
#define CONTROL_MBUFS 512
#define ARGUMENTS_MAX 16
/* ms; a drain ends when no packet has come back for this long. */
#define SILENCE_MS 5000

struct thread {
	uint64_t busy;
	clockid_t clock;
	const struct gen_load *load;
	unsigned int n_clients, n_workers;
	struct gen_clients *clients[WIRE_QUEUES_MAX];
	struct gen_worker *workers[WIRE_QUEUES_MAX];
} __rte_cache_aligned;

/* Both semaphores are posted once. */
struct gate {
	sem_t closed, opened;
};

struct generator {
	const struct wire_options *o;
	struct gate gate;
	struct gen_load load;
	struct wire_address lb;
	struct port port[2]; /* clients, fabric */
	struct rte_mempool *received[2][WIRE_QUEUES_MAX];
	struct gen_clients clients[WIRE_QUEUES_MAX];
	struct gen_worker worker[WIRE_QUEUES_MAX];
	struct thread thread[WIRE_THREADS_MAX];
};

void gen_out_flush(struct gen_out *out)
{
	unsigned int sent = 0, n;

	do {
		n = rte_eth_tx_burst(out->port, out->queue, out->packet + sent, out->n - sent);
		sent += n;
	} while (n > 0 && sent < out->n);
	out->n -= sent;
	memmove(out->packet, out->packet + sent, out->n * sizeof(out->packet[0]));
}

/* --- setting up --------------------------------------------------------------------------------
 */

unsigned int wire_gen_memory_mb(const struct wire_options *o)
{
	return MEMORY_MB + (MEMORY_QUEUE + (o->connections > 0 ? MEMORY_TCP : 0)) * o->lcores;
}

static void start_eal(const struct wire_options *o)
{
	char cpus[CPUS_TEXT_MAX], lcores[CPUS_TEXT_MAX + 512], memory[16];
	char *argv[ARGUMENTS_MAX + 1] = {"wire-gen",
					 "--file-prefix=wire-gen",
					 "--no-pci",
					 "--log-level=lib.*:warning",
					 "--log-level=pmd.*:warning",
					 "--lcores",
					 lcores,
					 "-m",
					 memory};
	int argc = 9;
	size_t n = snprintf(lcores, sizeof(lcores), "0@(%s)", cpus_allowed(cpus));

	for (unsigned int i = 0; i < o->threads; i++)
		n += snprintf(lcores + n, sizeof(lcores) - n, ",%u@%u", i + 1, o->gen_cpu[i]);
	snprintf(memory, sizeof(memory), "%u", wire_gen_memory_mb(o));
	if (o->hugepages) {
		argv[argc++] = "--in-memory";
	} else {
		argv[argc++] = "--no-huge";
		argv[argc++] = "--no-shconf";
	}
	if (rte_eal_init(argc, argv) < 0)
		wire_die("the generator's EAL did not start");
}

static struct rte_mempool *create_pool(const char *kind, unsigned int queue, unsigned int n,
				       uint16_t room)
{
	char name[RTE_MEMPOOL_NAMESIZE];
	struct rte_mempool *pool;

	snprintf(name, sizeof(name), "%s_%u", kind, queue);
	pool = rte_pktmbuf_pool_create(name, n, POOL_CACHE, 0, room, SOCKET_ID_ANY);
	if (pool == NULL)
		wire_die("no memory for the generator's packets");
	return pool;
}

static void open_port(struct generator *g, unsigned int index, const char *kind)
{
	char device[160], error[512];
	struct port_params p = {
		.device = device,
		.queues = g->o->lcores,
		.rx_descriptors = 1024,
		.tx_descriptors = 1024,
		.mtu = WIRE_FABRIC_MTU,
		.pool = g->received[index],
	};

	snprintf(device, sizeof(device), "net_memif_%s,role=server," WIRE_DEVICE, kind,
		 g->o->socket, kind, g->o->ring);
	for (unsigned int q = 0; q < g->o->lcores; q++)
		g->received[index][q] =
			create_pool(kind, q, RECEIVE_MBUFS, port_data_room(WIRE_FABRIC_MTU));
	if (port_open(&g->port[index], &p, error, sizeof(error)) < 0)
		wire_die("%s", error);
}

static void wait_at_gate(void *gate)
{
	struct gate *g = gate;

	sem_post(&g->closed);
	sem_wait(&g->opened);
}

/*
 * Keep the driver from accepting connections, which it does where alarms go off. A memif client
 * without copies closes the file of its memory once a port is connected, so that no later port can
 * hand it over: the load balancer's two must connect side by side.
 */
static void close_gate(struct gate *gate)
{
	sem_init(&gate->closed, 0, 0);
	sem_init(&gate->opened, 0, 0);
	if (rte_eal_alarm_set(1, wait_at_gate, gate) < 0)
		wire_die("no alarm can be set");
	sem_wait(&gate->closed);
}

/* --- threads ------------------------------------------------------------------------------------
 */

static int run(void *thread)
{
	struct thread *t = thread;

	pthread_getcpuclockid(pthread_self(), &t->clock);
	while (!__atomic_load_n(&t->load->end, __ATOMIC_RELAXED)) {
		uint64_t begin = rte_rdtsc();
		bool work = false;

		for (unsigned int i = 0; i < t->n_workers; i++)
			work |= gen_worker_turn(t->workers[i], begin);
		for (unsigned int i = 0; i < t->n_clients; i++)
			work |= gen_clients_turn(t->clients[i]);
		if (work)
			t->busy += rte_rdtsc() - begin;
	}
	return 0;
}

static void share_out(struct generator *g)
{
	for (unsigned int q = 0; q < g->o->lcores; q++) {
		struct thread *clients = &g->thread[wire_clients_thread(g->o, q)];
		struct thread *worker = &g->thread[wire_worker_thread(g->o, q)];

		clients->clients[clients->n_clients++] = &g->clients[q];
		worker->workers[worker->n_workers++] = &g->worker[q];
	}
}

static void join(struct generator *g, const struct wire_address *lb)
{
	unsigned int index = 0, id;

	g->lb = *lb;
	for (unsigned int q = 0; q < g->o->lcores; q++) {
		gen_clients_init(
			&g->clients[q], g->o, &g->load, g->port[0].id, q, g->lb.client_mac,
			create_pool("requests", q, REQUEST_MBUFS, RTE_MBUF_DEFAULT_BUF_SIZE));
		if (g->o->connections > 0)
			gen_clients_add_tcp(&g->clients[q],
					    create_pool("segments", q, REQUEST_MBUFS,
							RTE_MBUF_DEFAULT_BUF_SIZE),
					    create_pool("control", q, CONTROL_MBUFS, REPLY_ROOM));
		gen_worker_init(&g->worker[q], g->o, &g->load, g->port[1].id, q, &g->lb,
				create_pool("replies", q, REPLY_MBUFS, REPLY_ROOM));
	}
	sem_post(&g->gate.opened);
	wire_wait_for_link(g->port[0].id);
	wire_wait_for_link(g->port[1].id);
	share_out(g);
	RTE_LCORE_FOREACH_WORKER(id)
	{
		struct thread *t = &g->thread[index++];

		t->load = &g->load;
		if (rte_eal_remote_launch(run, t, id) != 0)
			wire_die("a thread of the generator does not start");
	}
}

/* --- orders --------------------------------------------------------------------------------------
 */

static void start(struct generator *g, const struct wire_load *load)
{
	g->load.load = *load;
	__atomic_fetch_add(&g->load.epoch, 1, __ATOMIC_RELEASE);
	for (unsigned int q = 0; q < g->o->lcores; q++)
		while (__atomic_load_n(&g->clients[q].epoch, __ATOMIC_ACQUIRE) != g->load.epoch)
			sched_yield();
}

static uint64_t read_counter(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_ACQUIRE);
}

static bool is_over(const struct generator *g, uint64_t *answered)
{
	bool over = true;

	*answered = 0;
	for (unsigned int q = 0; q < g->o->lcores; q++) {
		const struct gen_clients *c = &g->clients[q];
		uint64_t back = read_counter(&c->answered);

		over &= back == read_counter(&c->sent);
		over &= c->tcp == NULL || g->load.load.forward ||
			__atomic_load_n(&c->settled, __ATOMIC_ACQUIRE);
		/* The load balancer does not poll the fabric while it only forwards. */
		over &= g->load.load.forward || gen_worker_acked(&g->worker[q]);
		over &= g->load.load.limit == 0 || back - c->first == g->load.load.limit;
		*answered += back;
	}
	return over;
}

static int drain(struct generator *g)
{
	uint64_t before = 0, answered = 0;

	if (g->load.load.limit == 0)
		__atomic_store_n(&g->load.stop, g->load.epoch, __ATOMIC_RELAXED);
	for (unsigned int silence = 0; !is_over(g, &answered); silence++) {
		if (answered != before)
			silence = 0;
		before = answered;
		if (silence == SILENCE_MS)
			return -ETIMEDOUT;
		poll(NULL, 0, 1);
	}
	return 0;
}

static void snapshot(const struct generator *g, struct wire_answer *a)
{
	for (unsigned int q = 0; q < g->o->lcores; q++) {
		struct wire_queue_counters *c = &a->gen.queue[q];

		*c = g->worker[q].counters;
		c->answered = read_counter(&g->clients[q].answered);
		c->sent = read_counter(&g->clients[q].sent);
		gen_clients_count_tcp(&g->clients[q], c);
	}
	a->tsc = rte_rdtsc();
	for (unsigned int i = 0; i < g->o->threads; i++)
		a->gen.thread[i] = (struct wire_time){
			.busy = read_counter(&g->thread[i].busy),
			.cpu_ns = wire_cpu_ns(g->thread[i].clock),
		};
}

static void obey(struct generator *g, const struct wire_order *order, struct wire_answer *a)
{
	switch (order->kind) {
	case WIRE_JOIN:
		return join(g, &order->address);
	case WIRE_START:
		return start(g, &order->load);
	case WIRE_DRAIN:
		a->status = drain(g);
		return;
	case WIRE_SNAPSHOT:
		return snapshot(g, a);
	case WIRE_STOP:
		__atomic_store_n(&g->load.end, 1, __ATOMIC_RELAXED);
		rte_eal_mp_wait_lcore();
		return;
	case WIRE_END:
		return;
	}
}

void wire_gen_main(const struct wire_options *o, int socket)
{
	static struct generator g;
	struct wire_answer ready = {0};
	struct wire_order order;

	g.o = o;
	payload_init();
	start_eal(o);
	open_port(&g, 0, "clients");
	open_port(&g, 1, "fabric");
	close_gate(&g.gate);
	wire_answer(socket, &ready);
	do {
		struct wire_answer a = {.tsc_hz = rte_get_tsc_hz()};

		wire_take_order(socket, &order);
		obey(&g, &order, &a);
		wire_answer(socket, &a);
	} while (order.kind != WIRE_END);
	/* The ports are not closed: the driver may still use them, as the other side has gone. */
}
