/* SPDX-License-Identifier: BSD-3-Clause */
/* The load balancer, its ports and its time. */
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_ethdev.h>

#include "edge/edge.h"
#include "reload/reload.h"
#include "worker.h"
#include "lb.h"
#include "walk/handover.h"
#include "walk/loop.h"

#define MEMORY_MB "768"
/* Rings have their own size; few descriptors leave the load balancer less memory to fill. */
#define DESCRIPTORS "rx_descriptors: 64, tx_descriptors: 64"
/* Packets per pool; making them takes most of a row's time. */
#define PACKETS    1024
#define TICK_MS    10
#define SETTLE_MAX 3000 /* longer than the default queue_timeout_ms */

static const char services_default[] =
	"  - {name: echo, address: " PACKET_DESTINATION4 ", port: 8000, model: echo}\n"
	"  - {name: echo6, address: \"" PACKET_DESTINATION6 "\", port: 8000, model: echo}\n";

/* --- the EAL ------------------------------------------------------------------------------------
 */

void walk_start_eal(void)
{
	char *argv[] = {"walk",
			"--no-huge",
			"--no-shconf",
			"--no-pci",
			"--no-telemetry",
			"-m",
			MEMORY_MB,
			"--log-level=lib.*:error",
			"--log-level=pmd.*:error",
			NULL};
	static bool up;
	cpu_set_t cpus;

	if (up)
		return;
	up = true;
	/* The EAL ties this thread to one CPU. */
	sched_getaffinity(0, sizeof(cpus), &cpus);
	if (rte_eal_init(sizeof(argv) / sizeof(argv[0]) - 1, argv) < 0)
		walk_need(false, "the EAL did not start");
	sched_setaffinity(0, sizeof(cpus), &cpus);
	rte_log_set_level_pattern("doorbell.*",
				  getenv("WALK_LOG") != NULL ? RTE_LOG_DEBUG : RTE_LOG_EMERG);
}

/* --- the configuration --------------------------------------------------------------------------
 */

struct text {
	char *at;
	size_t room;
};

static void add(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct text *t, const char *format, ...)
{
	va_list arguments;
	int n;

	va_start(arguments, format);
	n = vsnprintf(t->at, t->room, format, arguments);
	va_end(arguments);
	walk_need(n >= 0 && (size_t)n < t->room, "the configuration is too long");
	t->at += n;
	t->room -= n;
}

static void add_ports(struct text *t, const struct walk_params *p)
{
	if (p->ports != NULL)
		return add(t, "%s", p->ports);
	for (unsigned int i = 0; i < RTE_MAX(p->client_ports, 1u); i++)
		add(t,
		    "  - {name: clients%u, device: net_ring_clients%u, roles: "
		    "[clients], " DESCRIPTORS "}\n",
		    i, i);
	add(t,
	    "  - {name: fabric, device: net_ring_fabric, roles: [fabric], address: "
	    "\"%s\", " DESCRIPTORS "}\n",
	    p->fabric6 ? "fd00:9::1/64" : "10.9.0.1/24");
}

void walk_yaml(const struct walk_params *params, const char *services, char *text, size_t size)
{
	static const struct walk_params none;
	const struct walk_params *p = params != NULL ? params : &none;
	struct text t = {text, size};
	unsigned int lcores = RTE_MAX(p->lcores, 1u);

	if (services == NULL)
		services = p->services != NULL ? p->services : services_default;
	add(&t, "ports:\n");
	add_ports(&t, p);
	add(&t, "services:\n%s", services);
	add(&t, "lcores: [0");
	for (unsigned int i = 1; i < lcores; i++)
		add(&t, ", %u", i);
	add(&t, "]\nflows: %u\n", p->flows != 0 ? p->flows : 1024 * lcores);
	add(&t,
	    "memory: {hugepages: false, mb: " MEMORY_MB
	    ", queue_packets: %u, window_packets: %u}\n",
	    p->packets != 0 ? p->packets : PACKETS, p->packets != 0 ? p->packets : PACKETS);
	add(&t, "%s", p->more != NULL ? p->more : "");
}

/* --- making and taking apart --------------------------------------------------------------------
 */

static void create_ports(struct walk *w, const struct walk_params *p)
{
	w->n_ports = w->config.n_ports;
	for (unsigned int i = 0; i < w->n_ports; i++) {
		const char *device = w->config.port[i].device;

		walk_need(strncmp(device, "net_ring_", 9) == 0, "device %s", device);
		walk_need(nic_create(&w->nic[i], device + 9,
				     p->queues != 0 ? p->queues : w->config.n_lcores) == 0,
			  "%s", device);
		if (w->config.port[i].fabric)
			w->fabric = i;
		if (p->verified)
			w->nic[i].ol_flags =
				RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD;
	}
}

/* Sets the port properties that net_ring does not report. */
static void set_ports(struct walk *w, const struct walk_params *p)
{
	for (unsigned int i = 0; i < w->n_ports; i++) {
		struct port *port = &w->lb->port[i];

		memcpy(port->mac, packet_our_mac, 6);
		port->mac[4] = w->config.port[i].clients ? 0 : 0xfa;
		port->rx_checksums =
			p->verified ? RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD : 0;
		if (p->no_chains)
			port->segments_max = 1;
	}
}

static void forget_all(struct walk *w)
{
	for (unsigned int i = 0; i < w->n_ports; i++)
		walk_forget(w, i);
}

static struct walk *create(const char *text, const struct walk_params *p)
{
	struct walk *w = calloc(1, sizeof(*w));
	uint32_t start_ms = p->start_ms != 0 ? p->start_ms : 1000;

	walk_start_eal();
	walk_need(lb_config_parse("walk", text, strlen(text), &w->config, w->error,
				  sizeof(w->error)) == 0,
		  "%s", w->error);
	create_ports(w, p);
	w->lb = lb_create(&w->config);
	walk_need(w->lb != NULL, "no load balancer; WALK_LOG=1 says why");
	set_ports(w, p);
	w->threads = p->threads;
	if (w->threads)
		return w;
	w->clock = w->lb->tsc_start + start_ms * w->lb->tsc_per_ms;
	w->lb->clock = &w->clock;
	for (unsigned int i = 0; i < w->lb->n_lcores; i++)
		w->lb->lcore[i]->now = w->clock;
	/* The load balancer announces its addresses. */
	walk_tick(w);
	walk_turn(w);
	forget_all(w);
	return w;
}

struct walk *walk_create_yaml(const char *text, const struct walk_params *params)
{
	static const struct walk_params none;

	return create(text, params != NULL ? params : &none);
}

struct walk *walk_create(const struct walk_params *params)
{
	char text[65536];

	walk_yaml(params, NULL, text, sizeof(text));
	return walk_create_yaml(text, params);
}

static void expect_returned(const char *pool, const struct rte_mempool *p, unsigned int lcore)
{
	unsigned int n = rte_mempool_in_use_count(p);

	walk_expect(n == 0, "%u packets are missing in pool %s of lcore %u", n, pool, lcore);
}

static void check_lcore(const struct lcore *lc)
{
	walk_expect(lc->held == 0, "lcore %u: held is %u", lc->index, lc->held);
	walk_expect(lc->replay_copies == 0, "lcore %u: replay_copies is %u", lc->index,
		    lc->replay_copies);
	walk_expect(lc->replay_copies_shared == 0, "lcore %u: replay_copies_shared is %u",
		    lc->index, lc->replay_copies_shared);
	walk_expect(lc->n_again == 0, "lcore %u: n_again is %u", lc->index, lc->n_again);
	walk_expect(lc->n_waiting == 0, "lcore %u: n_waiting is %u", lc->index, lc->n_waiting);
	walk_expect(lc->n_suspect == 0, "lcore %u: n_suspect is %u", lc->index, lc->n_suspect);
	walk_expect(lc->n_links == 0, "lcore %u: n_links is %u", lc->index, lc->n_links);
	expect_returned("packets", lc->packets, lc->index);
	expect_returned("control", lc->control, lc->index);
	expect_returned("cancels", lc->cancels, lc->index);
	expect_returned("indirect_pool", lc->indirect_pool, lc->index);
	expect_returned("reassembled_pool", lc->reassembled_pool, lc->index);
}

void walk_remove_workers(struct walk *w)
{
	struct worker *worker;

	while ((worker = workers_next(w->lb->pool, NULL)) != NULL)
		lb_worker_remove(w->lb, worker, "the row is over");
	for (unsigned int i = 0; i < w->n_workers; i++)
		w->worker[i]->gone = true;
}

/* True if nothing waits in a port's ring or for another lcore. */
static bool nothing_waits(const struct walk *w)
{
	for (unsigned int p = 0; p < w->n_ports; p++)
		for (uint16_t q = 0; q < w->nic[p].n_queues; q++)
			if (!rte_ring_empty(w->nic[p].rx[q]))
				return false;
	for (unsigned int i = 0; i < w->lb->n_lcores; i++)
		if (handover_waits(w->lb->lcore[i]))
			return false;
	return true;
}

/* Links end in housekeeping, a limited number of requests per call; waiting requests end a limited
 * number per turn. */
static bool is_busy(const struct walk *w)
{
	bool busy = w->lb->detached != NULL || !nothing_waits(w);

	for (unsigned int i = 0; i < w->lb->n_lcores; i++) {
		const struct lcore *lc = w->lb->lcore[i];

		busy |= lc->n_waiting > 0 || edge_deadline(lc) <= lc->now;
		for (unsigned int p = 0; p < w->n_ports; p++)
			busy |= lc->tx[p].n > 0;
	}
	return busy;
}

void walk_quiesce(struct walk *w)
{
	walk_remove_workers(w);
	for (unsigned int i = 0, quiet = 0; i < SETTLE_MAX && quiet < 4; i++) {
		quiet = is_busy(w) ? 0 : quiet + 1;
		walk_jump(w, 1);
		walk_turn(w);
		walk_tick(w);
		forget_all(w);
	}
	walk_expect(w->lb->detached == NULL, "links of workers that are gone are left");
	for (unsigned int i = 0; i < w->lb->n_lcores; i++)
		check_lcore(w->lb->lcore[i]);
	while (w->n_workers > 0)
		walk_worker_free(w->worker[--w->n_workers]);
}

/* No packet is in its pool twice, which the pool's count does not tell. */
static void expect_once(const char *pool, struct rte_mempool *p, unsigned int lcore)
{
	struct rte_mempool_cache *cache = rte_mempool_default_cache(p, rte_lcore_id());
	unsigned int n, twice = 0;
	struct rte_mbuf **m;

	if (cache != NULL)
		rte_mempool_cache_flush(cache, p);
	n = rte_mempool_avail_count(p);
	m = calloc(n, sizeof(*m));
	walk_need(m != NULL && rte_mempool_ops_dequeue_bulk(p, (void **)m, n) == 0, "%s", pool);
	for (unsigned int i = 0; i < n; i++)
		m[i]->port = 0;
	for (unsigned int i = 0; i < n; i++)
		twice += m[i]->port++ != 0;
	walk_expect(twice == 0, "%u packets are twice in pool %s of lcore %u", twice, pool, lcore);
	rte_mempool_ops_enqueue_bulk(p, (void **)m, n);
	free(m);
}

static void expect_all_once(const struct lcore *lc)
{
	expect_once("packets", lc->packets, lc->index);
	expect_once("control", lc->control, lc->index);
	expect_once("cancels", lc->cancels, lc->index);
	expect_once("indirect_pool", lc->indirect_pool, lc->index);
	expect_once("reassembled_pool", lc->reassembled_pool, lc->index);
}

void walk_destroy(struct walk *w)
{
	walk_quiesce(w);
	for (unsigned int i = 0; i < w->lb->n_lcores; i++)
		expect_all_once(w->lb->lcore[i]);
	lb_destroy(w->lb);
	for (unsigned int i = 0; i < w->n_ports; i++)
		nic_destroy(&w->nic[i]);
	free(w);
}

static struct {
	struct rte_mbuf *packet[65536];
	unsigned int n;
} taken;

static void take_pool(struct rte_mempool *p)
{
	while ((taken.packet[taken.n] = rte_pktmbuf_alloc(p)) != NULL)
		walk_need(++taken.n < RTE_DIM(taken.packet));
}

void walk_take_memory(struct walk *w)
{
	take_pool(w->lb->lcore[0]->packets);
	take_pool(w->lb->lcore[0]->control);
}

void walk_give_memory(struct walk *w)
{
	rte_pktmbuf_free_bulk(taken.packet, taken.n);
	taken.n = 0;
}

static void no_visit(void *context, const struct lb_config_change *change)
{
}

int walk_reload(struct walk *w, const char *text)
{
	char path[] = "/tmp/walk-XXXXXX";
	int fd = mkstemp(path), ret;

	walk_need(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), "%s", path);
	close(fd);
	ret = lb_reload_apply(w->lb, path, no_visit, NULL, w->error, sizeof(w->error));
	unlink(path);
	return ret;
}

/* --- turns --------------------------------------------------------------------------------------
 */

static void to_worker(struct walk *w, unsigned int port, const struct rte_mbuf *m)
{
	uint8_t frame[WALK_FRAME_MAX];
	const uint8_t *at = rte_pktmbuf_read(m, 0, m->pkt_len, frame);

	for (unsigned int i = 0; i < w->n_workers; i++)
		if (walk_worker_take(w->worker[i], port, at, m->pkt_len))
			return;
}

/* Takes the frames that ports have sent: to workers, or kept for the row. */
static unsigned int collect(struct walk *w)
{
	struct rte_mbuf *packet[NIC_SIZE];
	unsigned int n, all = 0;

	for (unsigned int p = 0; p < w->n_ports; p++) {
		for (uint16_t q = 0; q < w->nic[p].n_queues; q++) {
			n = nic_collect(&w->nic[p], q, packet, NIC_SIZE);
			all += n;
			for (unsigned int i = 0; i < n; i++) {
				if (w->config.port[p].fabric)
					to_worker(w, p, packet[i]);
				if (w->config.port[p].clients && w->n_pending[p] < NIC_SIZE)
					w->pending[p][w->n_pending[p]++] = packet[i];
				else
					rte_pktmbuf_free(packet[i]);
			}
		}
	}
	return all;
}

/* Returns true if there was work. */
static bool wire(struct walk *w)
{
	bool work;

	if (w->threads)
		w->clock = rte_rdtsc();
	work = collect(w) > 0;
	for (unsigned int i = 0; i < w->n_workers; i++)
		walk_worker_act(w->worker[i]);
	return work;
}

void walk_wire(struct walk *w)
{
	wire(w);
}

static bool turn(struct walk *w)
{
	bool work = false;

	for (unsigned int i = 0; i < w->lb->n_lcores; i++)
		work |= lb_poll(w->lb->lcore[i]);
	return wire(w) | work;
}

void walk_turn(struct walk *w)
{
	turn(w);
}

void walk_turns(struct walk *w, unsigned int n)
{
	for (; n > 0; n--)
		turn(w);
}

void walk_turn_lcore(struct walk *w, unsigned int lcore)
{
	lb_poll(w->lb->lcore[lcore]);
}

void walk_settle(struct walk *w)
{
	unsigned int i = 0;

	while ((turn(w) || !nothing_waits(w)) && i < SETTLE_MAX)
		i++;
	walk_expect(i < SETTLE_MAX, "it goes on for ever");
}

void walk_tick(struct walk *w)
{
	lb_tick(w->lb);
}

void walk_jump_us(struct walk *w, uint64_t us)
{
	w->clock += us * w->lb->tsc_per_ms / 1000;
}

void walk_jump(struct walk *w, uint32_t ms)
{
	w->clock += ms * w->lb->tsc_per_ms;
}

void walk_pass(struct walk *w, uint32_t ms)
{
	for (uint32_t i = 1; i <= ms; i++) {
		walk_jump(w, 1);
		if (i % TICK_MS == 0 || i == ms)
			walk_tick(w);
		turn(w);
	}
}
