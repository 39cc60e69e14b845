/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Builds a load balancer from its configuration, starts and stops it, takes it apart.
 */
#include "lb.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

#include <rte_errno.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_mempool.h>

#include "config/cluster_secret.h"
#include "config/memory.h"
#include "config/zone.h"
#include "edge/edge.h"
#include "lcore/lcore.h"
#include "membership/eject.h"
#include "membership/health.h"
#include "membership/registry.h"
#include "membership/resolve.h"
#include "observe/access_log.h"
#include "observe/capture.h"
#include "observe/flow_trace.h"
#include "observe/stats.h"
#include "packet/fragment.h"
#include "ports/eal.h"
#include "ports/kept.h"
#include "ports/verbs_port.h"
#include "reload/apply.h"
#include "reload/certificates.h"
#include "reload/retire.h"
#include "source.h"
#include "stop.h"
#include "walk/choose.h"
#include "walk/loop.h"
#include "walk/replay.h"
#include "walk/waiting.h"
#include "runtime/data_room.h"
#include "runtime/joined.h"
#include "runtime/kernel_port.h"

RTE_LOG_REGISTER(lb_logtype, doorbell.lb, INFO)

#define HANDOVER_SIZE 1024
#define PUNT_SIZE     64
/* us: an lcore that begins no turn meanwhile stands still, or is not given its CPU. */
#define TURN_US 1000
/* The same where memifs rest until it does. */
#define REST_US 50000
/* ms that lcores have to end their loops. */
#define END_MS 5000u
/* Data room of small mbufs: headers or a trailer, an ACK, a notice with headroom for headers. */
#define SMALL_DATA_ROOM (RTE_PKTMBUF_HEADROOM + 128)

static struct rte_mempool *create_pool(const char *kind, unsigned int lcore, unsigned int n,
				       unsigned int cache, uint16_t data_room)
{
	char name[RTE_MEMPOOL_NAMESIZE];
	struct rte_mempool *pool;

	snprintf(name, sizeof(name), "%s_%u", kind, lcore);
	pool = port_pool_create(name, n, cache, data_room);
	if (pool == NULL)
		LB_LOG(ERR,
		       "no memory for packet pool name=%s buffers=%u size=%u reason=\"%s\"; "
		       "raise memory.mb",
		       name, n, data_room, rte_strerror(rte_errno));
	return pool;
}

static struct rte_ring *create_ring(const char *kind, unsigned int lcore, unsigned int size,
				    unsigned int flags)
{
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "%s_%u", kind, lcore);
	return rte_ring_create(name, size, SOCKET_ID_ANY, flags);
}

static int create_conntrack(struct lcore *lc, const uint64_t seed[2])
{
	const struct lb_config *config = &lc->lb->config;
	struct conntrack_params *p = calloc(1, sizeof(*p));
	char name[24];

	if (p == NULL)
		return -ENOMEM;
	snprintf(name, sizeof(name), "flows_%u", lc->index);
	p->name = name;
	p->capacity = RTE_MAX(config->flows / config->n_lcores, 1u);
	p->socket = SOCKET_ID_ANY;
	p->table = config->flow_table;
	p->new_flows_per_source = config->new_flows_per_source;
	p->reclaim_after_ms = config->reclaim_after_ms;
	memcpy(p->seed, seed, sizeof(p->seed));
	for (unsigned int i = 0; i < config->n_services; i++)
		apply_timeouts(&config->service[i], p->timeout_ms[i]);
	lc->ct = conntrack_create(p);
	free(p);
	if (lc->ct == NULL) {
		LB_LOG(ERR,
		       "no memory for the flow table lcore=%u flows=%u; lower flows or raise "
		       "memory.mb",
		       lc->index, config->flows / config->n_lcores);
		return -ENOMEM;
	}
	return 0;
}

/*
 * Divide this lcore's packets among services. Call it after the ports are open: they set how many
 * lcores share a pool.
 */
static int create_shares(struct lcore *lc)
{
	const struct lb_config *config = &lc->lb->config;

	lc->waiting_least = config->queue_packets / lc->sharers;
	lc->window_max = config->window_packets / lc->sharers;
	lc->replay_copies_max = lb_replays_per_lcore(config) / lc->sharers;
	lcore_share_windows(lc);
	replay_share(lc);
	waiting_share(lc);
	for (unsigned int i = 0; i < config->n_services; i++)
		if (waiting_init(lc, &config->service[i], &lc->service[i].queue) < 0)
			return -ENOMEM;
	return 0;
}

static uint16_t lb_largest_mtu(const struct lb_config *config, bool of_clients)
{
	uint16_t mtu = 0;

	for (unsigned int i = 0; i < config->n_ports; i++)
		if (config->port[i].clients || !of_clients)
			mtu = RTE_MAX(mtu, config->port[i].mtu);
	return mtu;
}

/* The rings between this lcore and the others. */
static int create_handover(struct lcore *lc)
{
	lc->outbound = rte_zmalloc("outbound", lc->lb->n_lcores * sizeof(*lc->outbound),
				   RTE_CACHE_LINE_SIZE);
	lc->handover = create_ring("handover", lc->index, HANDOVER_SIZE, RING_F_SC_DEQ);
	return lc->outbound == NULL || lc->handover == NULL ? -ENOMEM : 0;
}

/* Reassembly has buffers of its own: a flood of fragments cannot take those of the ports. */
static int create_fragments(struct lcore *lc, const uint64_t seed[2])
{
	uint16_t mtu = lb_largest_mtu(&lc->lb->config, true);
	/* The datagram without its IP header; the frame may have the longest kind of header. */
	struct fragment_params params = {.bytes = mtu - 20, .seed = {seed[0], seed[1]}};

	lc->fragments = fragment_table_create(&params);
	/* No caches: most buffers are freed on other lcores, whose caches would soon hold them all.
	 */
	lc->reassembled_pool = create_pool("reassembled", lc->index, LB_REASSEMBLED_PER_LCORE, 0,
					   port_data_room(mtu));
	return lc->fragments == NULL || lc->reassembled_pool == NULL ? -ENOMEM : 0;
}

static int create_lcore(struct lb *lb, unsigned int index, const uint64_t seed[2])
{
	struct lcore *lc = rte_zmalloc("lcore", sizeof(*lc), RTE_CACHE_LINE_SIZE);
	uint32_t packets = lb_packets_per_lcore(&lb->config);

	if (lc == NULL)
		return -ENOMEM;
	lb->lcore[index] = lc;
	lc->lb = lb;
	workers_load_init(&lc->load, lb->tsc_hz);
	lc->index = index;
	lc->services = lb->services;
	lc->sharers = 1;
	lc->client_queue_seed = seed[0] ^ seed[1];
	if (sleeper_init(&lc->sleeper) < 0)
		return -errno;
	lc->packets = create_pool("packets", index, packets, LB_POOL_CACHE,
				  port_data_room(lb_largest_mtu(&lb->config, false)));
	lc->control =
		create_pool("control", index, LB_CONTROL_PER_LCORE, LB_POOL_CACHE, SMALL_DATA_ROOM);
	lc->cancels = create_pool("cancels", index, LB_CANCELS_PER_LCORE, 0, SMALL_DATA_ROOM);
	lc->indirect_pool = create_pool("indirect", index, lb_indirect_per_lcore(&lb->config),
					LB_POOL_CACHE, SMALL_DATA_ROOM);
	if (lc->packets == NULL || lc->control == NULL || lc->cancels == NULL ||
	    lc->indirect_pool == NULL || create_handover(lc) < 0 ||
	    mailbox_init(&lc->mailbox, &lc->sleeper) < 0)
		return -ENOMEM;
	lb->link[index] = calloc(WORKERS_MAX, sizeof(*lb->link[index]));
	if (lb->link[index] == NULL)
		return -ENOMEM;
	lc->notices = malloc(sizeof(*lc->notices));
	if (lc->notices == NULL)
		return -ENOMEM;
	source_limit_init(lc->notices, lb->config.notices_per_source, seed);
	/* For every possible service, so that the packet path needs no check. */
	lc->latency = latency_create(LB_SERVICES_MAX, sizeof(*lc->latency));
	if (lc->latency == NULL || create_fragments(lc, seed) < 0)
		return -ENOMEM;
	if (create_conntrack(lc, seed) < 0)
		return -ENOMEM;
	if (!lb->config.tcp.used || edge_create(lc, seed) == 0)
		return 0;
	LB_LOG(ERR,
	       "no memory for TCP connections lcore=%u connections=%u buffer_mb=%u; lower "
	       "tcp.connections or tcp.buffer_mb, or raise memory.mb",
	       index, lb->config.tcp.connections, lb->config.tcp.buffer_mb);
	return -ENOMEM;
}

static void lb_drain_ring(struct rte_ring *ring)
{
	struct rte_mbuf *m;

	while (ring != NULL && rte_ring_sc_dequeue(ring, (void **)&m) == 0)
		rte_pktmbuf_free(m);
}

/* Packets may be of any lcore's pool, so all lcores free theirs before the first pool is freed. */
static void free_packets(struct lcore *lc)
{
	for (unsigned int i = 0; i < lc->services->n; i++) {
		struct lcore_service *s = &lc->service[i];

		while (s->queue.count > 0)
			rte_pktmbuf_free(queue_take(&s->queue, queue_first(&s->queue, 0)).packet);
		queue_fini(&s->queue);
	}
	for (unsigned int i = 0; i < lc->lb->config.n_ports; i++) {
		rte_pktmbuf_free_bulk(lc->tx[i].packet, lc->tx[i].n);
		lb_drain_ring(lc->outgoing[i]);
	}
	lb_drain_ring(lc->handover);
}

static void destroy_lcore(struct lcore *lc)
{
	sleeper_fini(&lc->sleeper);
	edge_destroy(lc);
	conntrack_destroy(lc->ct);
	rte_ring_free(lc->handover);
	rte_free(lc->outbound);
	for (unsigned int i = 0; i < lc->lb->config.n_ports; i++)
		rte_ring_free(lc->outgoing[i]);
	mailbox_fini(&lc->mailbox);
	fragment_table_destroy(lc->fragments);
	rte_mempool_free(lc->reassembled_pool);
	rte_mempool_free(lc->packets);
	rte_mempool_free(lc->control);
	rte_mempool_free(lc->cancels);
	rte_mempool_free(lc->indirect_pool);
	free(lc->latency);
	free(lc->notices);
	rte_free(lc);
}

/*
 * Divide the port's queues among lcores. With fewer queues than lcores, those without a queue pass
 * their packets to one that has.
 */
static int share_queues(struct lb *lb, unsigned int index)
{
	const struct port *port = &lb->port[index];
	unsigned int n = lb->n_lcores;

	for (unsigned int i = 0; i < n; i++) {
		struct lcore *lc = lb->lcore[i];
		unsigned int queue = (i + n - lb->first_lcore[index]) % n;
		struct port_queue q;

		lc->queue[index] = queue < port->queues ? queue : LCORE_NO_QUEUE;
		lc->carrier[index] = (lb->first_lcore[index] + queue % port->queues) % n;
		q = port_queue(port, RTE_MIN(queue, port->queues - 1u));
		lc->tx[index].port = q.id;
		lc->tx[index].queue = q.queue;
		memcpy(lc->tx[index].checksums, port->tx_checksums, sizeof(port->tx_checksums));
		lc->tx[index].prepares = port_computes_checksums(port);
		lc->tx[index].cuts = port->tso_mbufs > 0;
		if (port->queues >= n)
			continue;
		/* The number of lcores that hold packets of one pool. */
		if (lb->config.port[index].clients)
			lc->sharers = RTE_MAX(lc->sharers, (n + port->queues - 1u) / port->queues);
		if (lc->queue[index] == LCORE_NO_QUEUE)
			continue;
		lc->outgoing[index] =
			create_ring("outgoing", index * LB_LCORES_MAX + i, TXQ_SIZE, RING_F_SC_DEQ);
		lc->carries = true;
		if (lc->outgoing[index] == NULL)
			return -ENOMEM;
	}
	return 0;
}

static enum owner_rule owner_rule(const struct lb *lb, const struct port *port)
{
	if (port->queues < lb->n_lcores)
		return OWNER_HASH;
	return port->spread.known ? OWNER_RSS : OWNER_RECEIVER;
}

/*
 * A datagram that comes by another queue than the one before it begins a flow anew. A TCP
 * connection would be reset: it has one lcore for good.
 */
static bool tcp_by_hash(const struct lb *lb, unsigned int index)
{
	const struct port *port = &lb->port[index];

	return lb->n_lcores > 1 && (port->queues < lb->n_lcores || !port->keeps_flows ||
				    zone_joins_ports(&lb->config, index));
}

/*
 * Ports with fewer queues than lcores start at different lcores, behind those in use already. One
 * whose operator gave it a queue for each starts at the first: the other end of a memif sends to an
 * lcore by the queue of its number, and another lcore would hand over all of it.
 */
static void choose_first(struct lb *lb, unsigned int index)
{
	unsigned int first = 0;

	for (unsigned int i = 0; i < index && lb->config.port[index].queues < lb->n_lcores; i++)
		if (lb->port[i].queues < lb->n_lcores)
			first += lb->port[i].queues;
	lb->first_lcore[index] = first % lb->n_lcores;
}

/* Let ports wake sleeping lcores: each by its own queue where the port has a descriptor per queue.
 */
static int watch_port(struct lb *lb, unsigned int index)
{
	const struct port *port = &lb->port[index];

	for (unsigned int i = 0; i < lb->n_lcores; i++) {
		uint16_t queue = lb->lcore[i]->queue[index];
		struct sleeper *s = &lb->lcore[i]->sleeper;
		int ret = 0;

		if (queue == LCORE_NO_QUEUE)
			continue;
		if (port->n_fds == 0)
			s->blind = true;
		else if (port->n_fds == port->queues)
			ret = sleeper_add(s, port->fds[queue]);
		else
			for (unsigned int k = 0; ret == 0 && k < port->n_fds; k++)
				ret = sleeper_add(s, port->fds[k]);
		if (ret < 0)
			return ret;
	}
	return 0;
}

/* Names of the checksums that a port checks or computes, for the log. */
static const char *checksums_text(bool ip, bool udp, bool tcp)
{
	static const char *const texts[] = {"none", "ip",     "udp",     "ip,udp",
					    "tcp",  "ip,tcp", "udp,tcp", "ip,udp,tcp"};

	return texts[ip | udp << 1 | tcp << 2];
}

/* af_packet cuts off what the kernel has joined: its client sends it again, a segment at a time. */
static void log_joined(const struct lb *lb, unsigned int index)
{
	const struct lb_port_config *config = &lb->config.port[index];
	const char *at = strstr(config->device, "iface=");
	char name[32], fix[128];

	if (!lb->config.tcp.used || !config->clients || at == NULL ||
	    strcmp(lb->port[index].driver, "net_af_packet") != 0)
		return;
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(at + 6, ","), at + 6);
	if (joined_segments(name, fix, sizeof(fix)))
		LB_LOG(NOTICE,
		       "port=%s may get TCP segments that the kernel has joined, which af_packet "
		       "cuts "
		       "off, and clients stall for 200 ms; run: %s",
		       config->name, fix);
}

/* How to have more queues, for the log. */
static const char *queues_hint(const char *device)
{
	if (strncmp(device, "net_af_packet", strlen("net_af_packet")) == 0)
		return " (af_packet: qpairs=)";
	if (strncmp(device, "net_memif", strlen("net_memif")) == 0)
		return " (memif: queues:, if the other end has as many)";
	return "";
}

/* Log what an open port can do, and what may surprise its operator. */
static void log_port(const struct lb *lb, unsigned int index)
{
	const struct lb_port_config *config = &lb->config.port[index];
	const struct port *port = &lb->port[index];

	LB_LOG(INFO,
	       "port=%s device=%s driver=%s mac=%02x:%02x:%02x:%02x:%02x:%02x queues=%u "
	       "segments=%u checks=%s computes=%s tso=%u wakes=%d",
	       config->name, config->device, port->driver, port->mac[0], port->mac[1], port->mac[2],
	       port->mac[3], port->mac[4], port->mac[5], port->queues, port->segments_max,
	       checksums_text(port->rx_checksums & RTE_MBUF_F_RX_IP_CKSUM_GOOD, port->rx_udp,
			      port->rx_tcp),
	       checksums_text(port->tx_checksums[0] & RTE_MBUF_F_TX_IP_CKSUM,
			      port->tx_checksums[0] & RTE_MBUF_F_TX_UDP_CKSUM,
			      port->tx_tcp_checksums[0] & RTE_MBUF_F_TX_TCP_CKSUM),
	       port->tso_mbufs, port->n_fds > 0);
	if (port->n_fds == 0 && lb->config.idle_sleep)
		LB_LOG(WARNING,
		       "port=%s cannot wake a sleeping lcore, so idle lcores poll it every %u us; "
		       "idle: poll avoids losing the start of a burst",
		       config->name, SLEEPER_BLIND_NS / 1000);
	if (port->queues < lb->n_lcores)
		LB_LOG(NOTICE,
		       "port=%s has queues=%u for lcores=%u, so lcores hand packets to each other; "
		       "more queues are faster%s",
		       config->name, port->queues, lb->n_lcores, queues_hint(config->device));
}

/*
 * Queues to ask the device for. Both ends of a memif must have as many: what is sent to a queue
 * that the other end lacks is lost, and the driver reads the first queue's memory in its place.
 */
static uint16_t wanted_queues(const struct lb *lb, const struct lb_port_config *config)
{
	bool memif = strncmp(config->device, "net_memif", strlen("net_memif")) == 0;
	unsigned int queues = config->queues != 0 ? config->queues : memif ? 1 : lb->n_lcores;

	return RTE_MIN(queues, lb->n_lcores);
}

static int lb_open_port(struct lb *lb, unsigned int index)
{
	const struct lb_port_config *config = &lb->config.port[index];
	struct rte_mempool *pools[LB_LCORES_MAX];
	struct port_params params = {
		.device = config->device,
		.queues = wanted_queues(lb, config),
		.rx_descriptors = config->rx_descriptors,
		.tx_descriptors = config->tx_descriptors,
		.mtu = config->mtu,
		.rx_checksums = config->offloads,
		/* RoCE packets are protected by ICRCs, which no port computes. */
		.tx_checksums = config->offloads && config->clients,
		.tso = config->tso && lb->config.tcp.used,
		.pool = pools,
		.attends = true,
	};
	struct port *port = &lb->port[index];
	char reason[KERNEL_PORT_REASON_MAX], error[512];
	struct in6_addr kept[KEPT_MAX];
	int ret = port_claim(port, config->device, error, sizeof(error));

	choose_first(lb, index);
	for (unsigned int i = 0; i < lb->n_lcores; i++)
		pools[i] = lb->lcore[(lb->first_lcore[index] + i) % lb->n_lcores]->packets;
	if (ret == 0)
		ret = kernel_port_open(port, &params, kept,
				       kept_addresses(&lb->config, index, kept), true, reason,
				       error, sizeof(error));
	if (ret < 0) {
		LB_LOG(ERR, "port=%s %s", config->name, error);
		return -ENODEV;
	}
	if (reason[0] != '\0')
		LB_LOG(NOTICE,
		       "port=%s uses af_packet, which costs more per packet than AF_XDP: %s",
		       config->name, reason);
	/*
	 * Replies were lost on such ports when lcores freed each other's packets; the cause is
	 * not known.
	 */
	if (port->steered && port->queues < lb->n_lcores) {
		LB_LOG(ERR,
		       "port=%s has queues=%u for lcores=%u, and lcores cannot share a queue of "
		       "AF_XDP; use as many lcores, or af_packet",
		       config->name, port->queues, lb->n_lcores);
		return -ENOTSUP;
	}
	lb->port_index[port->id] = index;
	for (uint16_t i = 0; i < port->parts; i++)
		lb->port_index[port->part[i]] = index;
	lb->owner_rule[index] = owner_rule(lb, port);
	lb->tcp_by_hash[index] = tcp_by_hash(lb, index);
	if (share_queues(lb, index) < 0)
		return -ENOMEM;
	log_port(lb, index);
	log_joined(lb, index);
	return watch_port(lb, index);
}

/* Make the table from place to zone; without configured zones a place is its own zone. */
static int create_zones(struct lb *lb)
{
	if (lb->config.n_zones == 0)
		return 0;
	lb->zones = rte_malloc("zones", ZONE_PLACES * sizeof(*lb->zones), RTE_CACHE_LINE_SIZE);
	if (lb->zones == NULL)
		return -ENOMEM;
	for (unsigned int place = 0; place < lb->config.n_ports * ZONE_VLANS; place++)
		lb->zones[place] = zone_of_place(&lb->config, place);
	return 0;
}

/* True when the flow's hash chooses the service's worker. */
static bool chooses_by_hash(const struct lb_service_config *service)
{
	return lb_service_used(service) &&
	       (service->policy == PICK_MAGLEV || service->affinity == LB_AFFINITY_STICKY);
}

static int read_cluster_secret(struct lb *lb)
{
	uint64_t seed[2];
	char error[512];

	if (lb->config.cluster_secret[0] == '\0') {
		for (unsigned int i = 0; i < lb->config.n_services; i++)
			if (chooses_by_hash(&lb->config.service[i])) {
				LB_LOG(NOTICE,
				       "service=%s chooses workers by a hash that is random "
				       "without cluster_secret_file: other load balancers, and "
				       "this one after a restart, choose other workers",
				       lb->config.service[i].name);
				break;
			}
		return 0;
	}
	if (lb_cluster_secret_read(lb->config.cluster_secret, seed, error, sizeof(error)) < 0) {
		LB_LOG(ERR, "%s", error);
		return -EINVAL;
	}
	conntrack_secret_init(&lb->cluster_secret, seed);
	lb->has_cluster_secret = true;
	return 0;
}

static int create_qsbr(struct lb *lb)
{
	size_t size = rte_rcu_qsbr_get_memsize(lb->n_lcores);

	lb->qsbr = rte_zmalloc("qsbr", size, RTE_CACHE_LINE_SIZE);
	if (lb->qsbr == NULL || rte_rcu_qsbr_init(lb->qsbr, lb->n_lcores) != 0)
		return -ENOMEM;
	return 0;
}

/* The thread that makes handshakes, if a service has TLS. */
static int create_tls(struct lb *lb)
{
	struct tls_certificates *certificates;
	char error[1024];

	if (!lb->config.tcp.secured)
		return 0;
	certificates = certificates_load(&lb->config, false, error, sizeof(error));
	if (certificates == NULL) {
		LB_LOG(ERR, "%s", error);
		return -EINVAL;
	}
	lb->tls = tls_helper_create();
	if (lb->tls == NULL) {
		LB_LOG(ERR, "no memory or no thread for the handshakes of TLS");
		tls_certificates_free(certificates);
		return -ENOMEM;
	}
	tls_helper_use(lb->tls, certificates);
	return 0;
}

static int create_access_log(struct lb *lb)
{
	const struct lb_config *config = &lb->config;
	char error[LB_FILE_MAX + 128];

	if (config->access_log[0] == '\0')
		return 0;
	lb->access = access_log_open(config->access_log, config->n_lcores,
				     config->access_log_one_in, error, sizeof(error));
	if (lb->access == NULL)
		LB_LOG(ERR, "%s", error);
	return lb->access == NULL ? -EINVAL : 0;
}

struct lb *lb_create(const struct lb_config *config)
{
	struct lb *lb = rte_zmalloc("lb", sizeof(*lb), RTE_CACHE_LINE_SIZE);
	uint64_t seed[3];

	if (lb == NULL) {
		LB_LOG(ERR, "no memory; raise memory.mb");
		return NULL;
	}
	lb->config = *config;
	lb->n_lcores = config->n_lcores;
	lb->tsc_hz = rte_get_tsc_hz();
	lb->tsc_per_ms = lb->tsc_hz / 1000;
	lb->ns_per_tsc = (1000000000ull << 32) / lb->tsc_hz;
	lb->tsc_start = rte_rdtsc();
	lb->shortest_timeout = apply_shortest_timeout(lb, config);
	if (getrandom(seed, sizeof(seed), 0) != sizeof(seed)) {
		LB_LOG(ERR, "no random numbers for hash seeds");
		goto fail;
	}
	lb->service_seed = seed[2];
	lb->services = apply_snapshot(lb, config);
	lb->retire = retire_create();
	lb->pool = workers_pool_create();
	lb->settings = workers_settings_create();
	lb->punt = create_ring("punt", 0, PUNT_SIZE, RING_F_SC_DEQ);
	if (lb->services == NULL || lb->retire == NULL || lb->pool == NULL ||
	    lb->settings == NULL || lb->punt == NULL || create_qsbr(lb) < 0 ||
	    create_zones(lb) < 0 || read_cluster_secret(lb) < 0 || create_tls(lb) < 0 ||
	    create_access_log(lb) < 0)
		goto fail;
	for (unsigned int i = 0; i < lb->n_lcores; i++)
		if (create_lcore(lb, i, seed) < 0) {
			LB_LOG(ERR, "lcore=%u no memory; raise memory.mb, now %u, or lower %s", i,
			       lb_memory_mb(config), lb_memory_keys(config));
			goto fail;
		}
	for (unsigned int i = 0; i < config->n_ports; i++)
		if (!config->port[i].verbs && lb_open_port(lb, i) < 0)
			goto fail;
	for (unsigned int i = 0; i < lb->n_lcores; i++)
		if (create_shares(lb->lcore[i]) < 0)
			goto fail;
	/*
	 * These ports open last: they register all packet memory, also of pools that drivers made.
	 */
	for (unsigned int i = 0; i < config->n_ports; i++)
		if (config->port[i].verbs && verbs_port_open(lb, i) < 0)
			goto fail;
	return lb;
fail:
	lb_destroy(lb);
	return NULL;
}

int lb_start(struct lb *lb)
{
	unsigned int index = 0, id;

	RTE_LCORE_FOREACH_WORKER(id)
	{
		if (index == lb->n_lcores)
			break;
		if (rte_eal_remote_launch(lb_loop, lb->lcore[index++], id) != 0)
			return -EBUSY;
	}
	if (index < lb->n_lcores) {
		LB_LOG(ERR, "the EAL has %u lcores for %u configured", index, lb->n_lcores);
		return -EINVAL;
	}
	/* From here on only the lcore itself changes its structures. */
	for (unsigned int i = 0; i < lb->n_lcores; i++)
		mailbox_wait_open(&lb->lcore[i]->mailbox);
	return 0;
}

/* Wait until the lcores' loops have ended, for a while. */
static bool await_ends(const struct lb *lb)
{
	uint64_t end = rte_rdtsc() + END_MS * lb->tsc_per_ms;
	unsigned int id;

	RTE_LCORE_FOREACH_WORKER(id)
	{
		while (rte_eal_get_lcore_state(id) == RUNNING && rte_rdtsc() < end)
			rte_delay_us_sleep(100);
		if (rte_eal_get_lcore_state(id) == RUNNING)
			return false;
	}
	return true;
}

void lb_stop(struct lb *lb)
{
	__atomic_store_n(&lb->stop, 1, __ATOMIC_RELEASE);
	for (unsigned int i = 0; i < lb->n_lcores; i++)
		sleeper_wake(&lb->lcore[i]->sleeper);
	if (!await_ends(lb)) {
		/* It may write to any of this next: nothing is freed under it. */
		LB_LOG(ERR, "stopped: an lcore stands still, and the process ends without it");
		_exit(EXIT_FAILURE);
	}
	rte_eal_mp_wait_lcore();
	if (lb_stop_over(lb))
		stop_settle(lb);
}

/* Free links whose lcore stopped before it had notified all of their clients. */
static void destroy_dying(struct lb *lb)
{
	struct link *link, *next;

	for (link = lb->detached; link != NULL; link = next) {
		next = link->next_to_free;
		registry_destroy_link(lb, link);
	}
}

void lb_destroy(struct lb *lb)
{
	if (lb == NULL)
		return;
	capture_destroy(lb);
	lcores_end(lb);
	tls_helper_stop(lb->tls);
	/* Connections have places in the memory of links. */
	for (unsigned int i = 0; i < lb->n_lcores && lb->lcore[i] != NULL; i++)
		edge_drain(lb->lcore[i]);
	access_log_close(lb->access);
	lb->access = NULL;
	destroy_dying(lb);
	for (unsigned int i = 0; i < WORKERS_MAX; i++)
		for (unsigned int k = 0; k < lb->n_lcores && lb->link[k] != NULL; k++)
			registry_destroy_link(lb, lb->link[k][i]);
	for (unsigned int i = 0; i < lb->config.n_ports; i++)
		if (lb->port[i].queues > 0)
			port_close(&lb->port[i]);
	for (unsigned int i = 0; i < lb->config.n_ports; i++)
		verbs_port_close(lb, i);
	lb_drain_ring(lb->punt);
	for (unsigned int i = 0; i < LB_SERVICES_MAX; i++)
		workers_pick_table_destroy(lb->pick[i]);
	model_table_destroy(lb->models);
	for (unsigned int i = 0; i < lb->n_lcores && lb->lcore[i] != NULL; i++)
		free_packets(lb->lcore[i]);
	for (unsigned int i = 0; i < lb->n_lcores && lb->lcore[i] != NULL; i++)
		destroy_lcore(lb->lcore[i]);
	for (unsigned int i = 0; i < lb->n_lcores; i++) {
		free(lb->link[i]);
		free(lb->trace[i]);
	}
	tls_helper_destroy(lb->tls);
	workers_pool_destroy(lb->pool);
	workers_settings_destroy(lb->settings);
	rte_ring_free(lb->punt);
	retire_destroy(lb->retire);
	free((void *)lb->services);
	rte_free(lb->zones);
	free(lb->config_path);
	rte_free(lb->qsbr);
	rte_free(lb);
}

const struct lb_config *lb_config_get(const struct lb *lb)
{
	return &lb->config;
}

void lb_reopen_logs(struct lb *lb)
{
	if (lb->access != NULL)
		access_log_reopen(lb->access);
}

struct worker_pool *lb_pool(struct lb *lb)
{
	return lb->pool;
}

int lb_attention(const struct lb *lb)
{
	/* One tells of all. */
	for (unsigned int i = 0; i < lb->config.n_ports; i++)
		if (lb->port[i].attended)
			return lb->port[i].news;
	return -1;
}

static bool wants_attention(struct lb *lb, uint64_t now_ms)
{
	bool wants = false;

	for (unsigned int i = 0; i < lb->config.n_ports; i++)
		wants |= port_wants_attention(&lb->port[i], now_ms);
	return wants;
}

/* Wait until each lcore has begun another turn since rte_rcu_qsbr_start(), <us> at most. */
static bool await_turns(struct lb *lb, uint64_t token, unsigned int us)
{
	uint64_t end = rte_rdtsc() + us * (lb->tsc_per_ms / 1000);

	while (!rte_rcu_qsbr_check(lb->qsbr, token, false)) {
		if (rte_rdtsc() > end)
			return false;
		sched_yield(); /* an lcore may want this CPU */
	}
	return true;
}

/* Do all lcores go on? One that stands still, or takes long, is asked again by the next call. */
static bool lcores_go_on(struct lb *lb)
{
	bool all;

	if (lb->turns_since == 0)
		lb->turns_since = rte_rcu_qsbr_start(lb->qsbr);
	all = await_turns(lb, lb->turns_since, TURN_US);
	if (all)
		lb->turns_since = 0;
	return all;
}

/*
 * No lcore uses a memif any more. False while one stands still: it may be in the middle of its
 * rings. So that the others need not rest until it goes on, it is looked for first.
 */
static bool rest_memifs(struct lb *lb)
{
	if (!lcores_go_on(lb))
		return false;
	for (unsigned int i = 0; i < lb->config.n_ports; i++)
		if (lb->port[i].attended)
			port_pause(&lb->port[i]);
	lb->memifs_rest = await_turns(lb, rte_rcu_qsbr_start(lb->qsbr), REST_US);
	for (unsigned int i = 0; !lb->memifs_rest && i < lb->config.n_ports; i++)
		port_resume(&lb->port[i]);
	return lb->memifs_rest;
}

/*
 * Let the driver of memifs handle what came from their other ends, while no lcore uses any of them:
 * its handlers see them all. Where one is not over in time, the ports rest until it is.
 */
bool lb_attend(struct lb *lb)
{
	uint64_t now_ms = lb_now_ms(lb);
	bool came = true;

	if (!lb->memifs_rest && !wants_attention(lb, now_ms))
		return true;
	if (!lb->memifs_rest && !rest_memifs(lb))
		return false;
	for (unsigned int i = 0; came && i < lb->config.n_ports; i++)
		came = !lb->port[i].attended || port_attend(&lb->port[i], now_ms);
	for (unsigned int i = 0; came && i < lb->config.n_ports; i++)
		port_resume(&lb->port[i]);
	lb->memifs_rest = !came;
	return came && !wants_attention(lb, now_ms);
}

void lb_tick(struct lb *lb)
{
	lcores_tick(lb);
	lb_attend(lb);
	registry_free_links(lb);
	registry_publish_due(lb);
	verbs_ports_tick(lb);
	retire_tick(lb);
	trace_tick(lb);
	capture_tick(lb);
	stop_tick(lb);
	resolve_tick(lb, lb_now_ms(lb));
	health_tick(lb);
	eject_tick(lb);
}
