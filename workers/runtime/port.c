/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <linux/if_packet.h>
#include <net/if.h>

#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_ethdev.h>

#include "runtime/eal_end.h"
#include "runtime/memif.h"
#include "runtime/port.h"

#ifndef AF_XDP
#define AF_XDP 44
#endif

#define FDS_MAX 1024
/* ms from one try to connect a memif to the next; it doubles. */
#define CONNECT_MS     200
#define CONNECT_MAX_MS 800
/*
 * ms for a handshake. It takes five messages of each side, each of which waits for both sides' next
 * attention, and some have to wait for other programs' time slices before.
 */
#define HANDSHAKE_MS 5000
/* The thread sees a new socket a round later than it was told. */
#define ROUNDS_MAX 8
#define ROUND_MS   50

/* Collect the process's packet sockets; returns their number. */
static unsigned int packet_sockets(int *fds, unsigned int max)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	unsigned int n = 0;

	if (dir == NULL)
		return 0;
	while (n < max && (entry = readdir(dir)) != NULL) {
		int fd = atoi(entry->d_name), domain;
		socklen_t size = sizeof(domain);

		if (entry->d_name[0] == '.' ||
		    getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) < 0)
			continue;
		if (domain == AF_PACKET || domain == AF_XDP)
			fds[n++] = fd;
	}
	closedir(dir);
	return n;
}

static bool contains(const int *fds, unsigned int n, int fd)
{
	for (unsigned int i = 0; i < n; i++)
		if (fds[i] == fd)
			return true;
	return false;
}

/* Store the sockets that appeared while the port was opened: drivers do not report theirs. */
static void sockets_since(struct port *port, const int *before, unsigned int n_before)
{
	int now[FDS_MAX];
	unsigned int n = packet_sockets(now, FDS_MAX);

	port->n_fds = 0;
	for (unsigned int i = 0; i < n && port->n_fds < PORT_FDS_MAX; i++)
		if (!contains(before, n_before, now[i]))
			port->fds[port->n_fds++] = now[i];
}

/* The interface in the devargs of <device>, or an empty string. */
static void interface_name(const char *device, char name[IF_NAMESIZE])
{
	const char *at = strstr(device, "iface=");

	name[0] = '\0';
	if (at != NULL)
		snprintf(name, IF_NAMESIZE, "%.*s", (int)strcspn(at + 6, ","), at + 6);
}

int port_claim(struct port *port, const char *device, char *error, size_t error_size)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char interface[IF_NAMESIZE];
	int length;

	memset(port, 0, sizeof(*port));
	interface_name(device, interface);
	if (interface[0] == '\0')
		return 0;
	if (if_nametoindex(interface) == 0) {
		snprintf(error, error_size,
			 "device '%s': there is no interface '%s' in this network namespace (ip "
			 "link "
			 "lists them)",
			 device, interface);
		return -ENODEV;
	}
	/* An abstract socket name: valid in this network namespace, and it ends with the process.
	 */
	length = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "doorbell/%s",
			  interface);
	port->claim = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (port->claim >= 0 && bind(port->claim, (struct sockaddr *)&address,
				     offsetof(struct sockaddr_un, sun_path) + 1 + length) == 0)
		return 0;
	snprintf(error, error_size,
		 "device '%s': another doorbell process or port uses interface '%s'; stop that one "
		 "first",
		 device, interface);
	if (port->claim >= 0)
		close(port->claim);
	port->claim = 0;
	return -EBUSY;
}

static const char *port_probe_hint(const char *device, int error)
{
	if (strncmp(device, "net_", 4) != 0)
		return "; the driver's reason is above; doorbell doctor says what is missing";
	switch (error) {
	case EPERM:
	case EACCES:
		return "; run as root or with CAP_NET_RAW and CAP_NET_ADMIN";
	case EBUSY:
		return "; is its name used by another port?";
	default:
		return "; write a PCI address, kernel0,iface=eth1, or devargs of DPDK";
	}
}

static int port_probe(struct port *port, const char *device, char *error, size_t error_size)
{
	char name[256];
	int ret;

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(device, ","), device);
	/* The EAL may have probed the device already. */
	if (rte_eth_dev_get_port_by_name(name, &port->id) == 0)
		return 0;
	ret = rte_dev_probe(device);
	if (ret == 0)
		ret = rte_eth_dev_get_port_by_name(name, &port->id);
	if (ret != 0)
		snprintf(error, error_size, "device '%s' cannot be opened: %s%s", device,
			 strerror(ret < 0 ? -ret : EINVAL), port_probe_hint(device, -ret));
	return ret;
}

#define RSS_HASHES (RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_TCP)

/*
 * Most mbufs of one packet that the port does not cut, as the driver reports it. Drivers without a
 * limit report 0 or the largest number.
 */
static uint16_t segments_max(const struct rte_eth_dev_info *info)
{
	uint16_t n = info->tx_desc_lim.nb_mtu_seg_max;

	if (!(info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS))
		return 1;
	if (n == 0)
		n = info->tx_desc_lim.nb_seg_max;
	return n == 0 ? UINT16_MAX : n;
}

static void choose_checksums(struct port *port, uint64_t offloads)
{
	port->tx_checksums[0] = port->tx_checksums[1] = 0;
	if (offloads & RTE_ETH_TX_OFFLOAD_UDP_CKSUM) {
		port->tx_checksums[0] = RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_UDP_CKSUM;
		port->tx_checksums[1] = RTE_MBUF_F_TX_IPV6 | RTE_MBUF_F_TX_UDP_CKSUM;
	}
	port->tx_tcp_checksums[0] = port->tx_tcp_checksums[1] = 0;
	if (offloads & RTE_ETH_TX_OFFLOAD_TCP_CKSUM) {
		port->tx_tcp_checksums[0] = RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_TCP_CKSUM;
		port->tx_tcp_checksums[1] = RTE_MBUF_F_TX_IPV6 | RTE_MBUF_F_TX_TCP_CKSUM;
	}
	if (offloads & RTE_ETH_TX_OFFLOAD_IPV4_CKSUM) {
		port->tx_checksums[0] |= RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM;
		port->tx_tcp_checksums[0] |= RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM;
	}
}

/* Does the port cut TCP segments, of chains, and compute their checksums? */
static bool cuts_segments(const struct port_params *p, const struct rte_eth_dev_info *info)
{
	uint64_t needs = RTE_ETH_TX_OFFLOAD_TCP_TSO | RTE_ETH_TX_OFFLOAD_TCP_CKSUM |
			 RTE_ETH_TX_OFFLOAD_MULTI_SEGS;

	return p->tso && p->tx_checksums && (info->tx_offload_capa & needs) == needs;
}

/*
 * Most mbufs of a packet that is cut. A packet must fit the queue's descriptors, or it would wait
 * for ever; half of them leave room for those of the driver itself.
 */
static uint16_t tso_mbufs(const struct rte_eth_dev_info *info, uint16_t descriptors)
{
	uint16_t most = info->tx_desc_lim.nb_seg_max;

	return most == 0 ? descriptors / 2 : RTE_MIN(most, descriptors / 2);
}

#define RX_L4_CHECKSUMS (RTE_ETH_RX_OFFLOAD_UDP_CKSUM | RTE_ETH_RX_OFFLOAD_TCP_CKSUM)

static void choose_features(struct port *port, const struct port_params *p,
			    const struct rte_eth_dev_info *info, struct rte_eth_conf *conf,
			    uint8_t *rss_key)
{
	uint64_t rx = RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RX_L4_CHECKSUMS;
	uint64_t tx = RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM |
		      RTE_ETH_TX_OFFLOAD_TCP_CKSUM;
	uint64_t hash = RSS_HASHES;

	conf->rxmode.offloads = p->rx_checksums ? info->rx_offload_capa & rx : 0;
	conf->txmode.offloads = info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	conf->txmode.offloads |= p->tx_checksums ? info->tx_offload_capa & tx : 0;
	if (cuts_segments(p, info))
		conf->txmode.offloads |= RTE_ETH_TX_OFFLOAD_TCP_TSO;
	port->rx_checksums = 0;
	if (conf->rxmode.offloads & RTE_ETH_RX_OFFLOAD_IPV4_CKSUM)
		port->rx_checksums |= RTE_MBUF_F_RX_IP_CKSUM_GOOD;
	port->rx_udp = conf->rxmode.offloads & RTE_ETH_RX_OFFLOAD_UDP_CKSUM;
	port->rx_tcp = conf->rxmode.offloads & RTE_ETH_RX_OFFLOAD_TCP_CKSUM;
	/* Of a protocol that it does not verify it reports nothing. */
	if (conf->rxmode.offloads & RX_L4_CHECKSUMS)
		port->rx_checksums |= RTE_MBUF_F_RX_L4_CKSUM_GOOD;
	port->segments_max = segments_max(info);
	choose_checksums(port, conf->txmode.offloads);
	port->rss = port->queues > 1 && (info->flow_type_rss_offloads & hash) != 0;
	if (!port->rss)
		return;
	conf->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
	conf->rx_adv_conf.rss_conf.rss_hf = info->flow_type_rss_offloads & hash;
	/* A random key, so that clients cannot aim at one lcore. */
	if (info->hash_key_size > 0 && info->hash_key_size <= 64 &&
	    getrandom(rss_key, info->hash_key_size, 0) == info->hash_key_size) {
		conf->rx_adv_conf.rss_conf.rss_key = rss_key;
		conf->rx_adv_conf.rss_conf.rss_key_len = info->hash_key_size;
	}
}

static bool read_table(uint16_t id, uint16_t entries, struct port_rss *rss)
{
	struct rte_eth_rss_reta_entry64 table[PORT_RSS_ENTRIES_MAX / RTE_ETH_RETA_GROUP_SIZE];

	if (entries == 0 || entries > PORT_RSS_ENTRIES_MAX || !RTE_IS_POWER_OF_2(entries))
		return false;
	for (unsigned int i = 0; i < RTE_DIM(table); i++)
		table[i].mask = UINT64_MAX;
	if (rte_eth_dev_rss_reta_query(id, table, entries) != 0)
		return false;
	for (uint16_t i = 0; i < entries; i++)
		rss->queue[i] =
			table[i / RTE_ETH_RETA_GROUP_SIZE].reta[i % RTE_ETH_RETA_GROUP_SIZE];
	rss->entries = entries;
	return true;
}

/* Read back the NIC's RSS settings, which may be less than was configured. */
static void read_rss(struct port *port, const struct rte_eth_dev_info *info)
{
	struct port_rss *rss = &port->spread;
	struct rte_eth_rss_conf conf = {.rss_key = rss->key, .rss_key_len = sizeof(rss->key)};

	memset(rss, 0, sizeof(*rss));
	if (!port->rss || info->hash_key_size < 40 || info->hash_key_size > sizeof(rss->key) ||
	    rte_eth_dev_rss_hash_conf_get(port->id, &conf) != 0)
		return;
	rss->key_length = info->hash_key_size;
	rss->ip4 = conf.rss_hf & RTE_ETH_RSS_IPV4;
	rss->ip6 = conf.rss_hf & RTE_ETH_RSS_IPV6;
	rss->ports4 = conf.rss_hf & RTE_ETH_RSS_NONFRAG_IPV4_UDP;
	rss->ports6 = conf.rss_hf & RTE_ETH_RSS_NONFRAG_IPV6_UDP;
	rss->tcp4 = conf.rss_hf & RTE_ETH_RSS_NONFRAG_IPV4_TCP;
	rss->tcp6 = conf.rss_hf & RTE_ETH_RSS_NONFRAG_IPV6_TCP;
	rss->known = read_table(port->id, info->reta_size, rss);
}

/*
 * NICs spread flows by a fixed rule, and so do those at the other end of a memif or a ring. Not so
 * the kernel: af_packet uses another socket when one is full, and AF_XDP the queue that the
 * sender's kernel chose, anew after a retransmission.
 */
static bool keeps_flows(const struct rte_eth_dev_info *info)
{
	const struct rte_bus *bus = rte_dev_bus(info->device);

	return (bus != NULL && strcmp(rte_bus_name(bus), "vdev") != 0) ||
	       strcmp(info->driver_name, "net_memif") == 0 ||
	       strcmp(info->driver_name, "net_ring") == 0;
}

static int setup_queues(struct port *port, const struct port_params *p,
			const struct rte_eth_dev_info *info)
{
	uint16_t rx = p->rx_descriptors, tx = p->tx_descriptors;
	int socket = rte_eth_dev_socket_id(port->id), ret;
	struct rte_eth_txconf txconf = info->default_txconf;

	/* Packets stay referenced until acknowledged, so the driver must check reference counts. */
	txconf.offloads &= ~RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
	ret = rte_eth_dev_adjust_nb_rx_tx_desc(port->id, &rx, &tx);
	port->tso_mbufs = cuts_segments(p, info) ? tso_mbufs(info, tx) : 0;
	for (uint16_t q = 0; ret == 0 && q < port->queues; q++) {
		ret = rte_eth_rx_queue_setup(port->id, q, rx, socket, NULL, p->pool[q]);
		if (ret == 0)
			ret = rte_eth_tx_queue_setup(port->id, q, tx, socket, &txconf);
	}
	return ret;
}

/* The largest MTU: some drivers report an MTU, some a frame size. */
static uint32_t port_largest_mtu(const struct rte_eth_dev_info *info)
{
	uint32_t frame = info->max_rx_pktlen > RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN
				 ? info->max_rx_pktlen - RTE_ETHER_HDR_LEN - RTE_ETHER_CRC_LEN
				 : UINT16_MAX;

	return RTE_MIN(frame, (uint32_t)info->max_mtu);
}

static int set_mtu(struct port *port, uint16_t mtu)
{
	uint16_t now = 0;

	port->mtu = mtu;
	if (rte_eth_dev_get_mtu(port->id, &now) == 0 && now == mtu)
		return 0;
	return rte_eth_dev_set_mtu(port->id, mtu);
}

struct rte_mempool *port_pool_create(const char *name, unsigned int n, unsigned int cache,
				     uint16_t data_room)
{
	struct rte_pktmbuf_pool_private private = {.mbuf_data_room_size = data_room};

	return rte_mempool_create(name, n, sizeof(struct rte_mbuf) + data_room, cache,
				  sizeof(private), rte_pktmbuf_pool_init, &private,
				  rte_pktmbuf_init, NULL, SOCKET_ID_ANY,
				  rte_eal_has_pci() ? 0 : RTE_MEMPOOL_F_NO_IOVA_CONTIG);
}

/*
 * Number of queues to use. A NIC without RSS sends all packets to its first queue, so lcores with
 * other queues would be idle. Software ports spread packets in their own way.
 */
static uint16_t useful_queues(const struct rte_eth_dev_info *info, uint16_t wanted)
{
	const struct rte_bus *bus = rte_dev_bus(info->device);
	bool nic = bus != NULL && strcmp(rte_bus_name(bus), "pci") == 0;

	if (nic && (info->flow_type_rss_offloads & RSS_HASHES) == 0)
		return 1;
	return RTE_MIN(wanted, RTE_MIN(info->max_rx_queues, info->max_tx_queues));
}

/* False with a sentence in <error> when packets would wait in queues that are not polled: af_packet
 * spreads them over all its sockets, whether we read them or not. */
static bool polls_all_queues(const struct rte_eth_dev_info *info, const struct port_params *p,
			     char *error, size_t error_size)
{
	if (strcmp(info->driver_name, "net_af_packet") != 0 || info->max_rx_queues <= p->queues)
		return true;
	snprintf(error, error_size,
		 "device '%s': qpairs=%u, but only %u are polled; write qpairs=%u", p->device,
		 info->max_rx_queues, p->queues, p->queues);
	return false;
}

/* Without memif's words where nobody listens: that is waited for, or said in other words. */
static int start_device(const struct port *port)
{
	int log = strcmp(port->driver, "net_memif") == 0 ? rte_log_register("pmd.net.memif") : -1;
	int level = log < 0 ? -1 : rte_log_get_level(log), ret;

	if (level >= 0)
		rte_log_set_level(log, RTE_LOG_CRIT);
	ret = rte_eth_dev_start(port->id);
	if (level >= 0)
		rte_log_set_level(log, level);
	return ret;
}

/* If it is attended: before the start, hold the thread of its driver's handlers. */
static int attend_from_now(struct port *port, const struct port_params *p, char *error,
			   size_t error_size)
{
	port->attended = p->attends && strcmp(port->driver, "net_memif") == 0;
	port->connects = port->attended && p->may_wait && memif_connects(p->device);
	memif_socket(p->device, port->socket);
	if (!port->attended || (eal_interrupt_hold() && memif_watch(&port->news)))
		return 0;
	snprintf(error, error_size,
		 "device '%s': the EAL's interrupt thread does not answer, or /proc is not there",
		 p->device);
	return -EIO;
}

static int port_start(struct port *port, const struct port_params *p, char *error,
		      size_t error_size)
{
	struct rte_eth_dev_info info;
	struct rte_eth_conf conf = {0};
	struct rte_ether_addr mac;
	uint8_t rss_key[64];
	const char *step = "information";
	int ret;

	ret = rte_eth_dev_info_get(port->id, &info);
	if (ret < 0)
		goto fail;
	port->driver = info.driver_name;
	port->steered = false;
	port->keeps_flows = keeps_flows(&info);
	port->local_senders = strcmp(info.driver_name, "net_af_packet") == 0 ||
			      strcmp(info.driver_name, "net_af_xdp") == 0;
	port->queues = useful_queues(&info, p->queues);
	if (!polls_all_queues(&info, p, error, error_size))
		return -EINVAL;
	choose_features(port, p, &info, &conf, rss_key);
	step = "configuration";
	ret = rte_eth_dev_configure(port->id, port->queues, port->queues, &conf);
	if (ret < 0)
		goto fail;
	step = "MTU";
	ret = set_mtu(port, p->mtu);
	/* Checked after the attempt: drivers that cannot set an MTU accept more than they report.
	 */
	if (ret < 0 && ret != -ENOTSUP && p->mtu > port_largest_mtu(&info)) {
		snprintf(error, error_size,
			 "device '%s': its driver %s supports an MTU of %u at most; lower mtu",
			 p->device, info.driver_name, port_largest_mtu(&info));
		return ret;
	}
	if (ret < 0 && ret != -ENOTSUP)
		goto fail;
	step = "queue set-up";
	ret = setup_queues(port, p, &info);
	if (ret < 0)
		goto fail;
	step = "start";
	ret = attend_from_now(port, p, error, error_size);
	if (ret < 0)
		return ret;
	ret = start_device(port);
	port->waits = ret < 0 && port->connects;
	if (port->attended)
		memif_watch(&port->news);
	if (ret < 0 && memif_connects(p->device) && !port->waits) {
		snprintf(error, error_size,
			 "device '%s': nobody listens at its socket; start the other end first, or "
			 "give this one role=server",
			 p->device);
		return ret;
	}
	if (ret < 0 && !port->waits)
		goto fail;
	read_rss(port, &info);
	/* Neighbour discovery uses multicast. Errors do not matter: software ports receive it
	 * anyway. */
	rte_eth_allmulticast_enable(port->id);
	step = "MAC address";
	ret = rte_eth_macaddr_get(port->id, &mac);
	if (ret < 0)
		goto fail;
	memcpy(port->mac, mac.addr_bytes, sizeof(port->mac));
	return 0;
fail:
	snprintf(error, error_size, "device '%s': %s failed: %s%s", p->device, step, strerror(-ret),
		 strcmp(step, "MTU") == 0 ? "; set the interface's first: ip link set dev ... mtu"
					  : "");
	return ret;
}

int port_open(struct port *port, const struct port_params *params, char *error, size_t error_size)
{
	int before[FDS_MAX], ret;
	unsigned int n_before = packet_sockets(before, FDS_MAX);

	memif_remove_left(params->device);
	ret = port_probe(port, params->device, error, error_size);
	if (ret < 0)
		return ret;
	ret = port_start(port, params, error, error_size);
	if (ret < 0) {
		rte_eth_dev_close(port->id);
		return ret;
	}
	sockets_since(port, before, n_before);
	return 0;
}

bool port_up(const struct port *port)
{
	struct rte_eth_link link;

	return rte_eth_link_get_nowait(port->id, &link) != 0 || link.link_status == RTE_ETH_LINK_UP;
}

uint64_t port_line_rate(const struct port *port)
{
	struct rte_eth_link link;
	uint32_t mbit = 10000;

	if (rte_eth_link_get_nowait(port->id, &link) == 0 && link.link_speed != 0 &&
	    link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN)
		mbit = link.link_speed;
	return mbit * 1000000ull / 8;
}

static void port_stop_here(struct port *port)
{
	for (uint16_t i = port->parts; i > 1; i--) {
		rte_eth_dev_stop(port->part[i - 1]);
		rte_eth_dev_close(port->part[i - 1]);
	}
	port->parts = 0;
	rte_eth_dev_stop(port->id);
	rte_eth_dev_close(port->id);
}

static void port_stop_called(void *argument)
{
	port_stop_here(argument);
}

static void port_come_by(void *argument)
{
}

/*
 * The driver of memif hears from the other end on the EAL's interrupt thread, and when that has
 * gone it frees there what a stop frees, too: each of both may find the other's half done. So stop
 * on that thread, between two calls of its handlers. It may still hold an event of a socket that
 * was closed then; one that is opened with the same number would be read although nothing has come,
 * and halt the thread. So wait until it has come by once more. If it does not come at all, the port
 * stays open until the process ends.
 */
void port_stop(struct port *port)
{
	if (port->driver == NULL || strcmp(port->driver, "net_memif") != 0)
		port_stop_here(port);
	else if (eal_interrupt_call(port_stop_called, port))
		eal_interrupt_call(port_come_by, NULL);
}

static void stop_device(void *argument)
{
	const struct port *port = argument;

	rte_eth_dev_stop(port->id);
}

/* Start the port again, which connects it. */
static void connect_device(struct port *port)
{
	/* As port_stop() does. */
	if (!port->waits &&
	    (!eal_interrupt_call(stop_device, port) || !eal_interrupt_call(port_come_by, NULL)))
		return;
	port->waits = start_device(port) < 0;
}

/* Or connected already. */
static bool is_connecting(const struct port *port, uint64_t now_ms)
{
	return !port->waits &&
	       (port_up(port) || (now_ms < port->give_up_at && memif_has_connection(port->socket)));
}

bool port_wants_attention(struct port *port, uint64_t now_ms)
{
	if (!port->attended)
		return false;
	if (port->connect_at == 0 || (!port->waits && port_up(port))) {
		port->connect_ms = CONNECT_MS;
		port->connect_at = now_ms + CONNECT_MS;
		port->give_up_at = now_ms + HANDSHAKE_MS;
	}
	return memif_has_news(port->news) || (port->connects && now_ms >= port->connect_at);
}

bool port_attend(struct port *port, uint64_t now_ms)
{
	bool came = eal_interrupt_round(ROUND_MS);

	for (unsigned int i = 1; came && i < ROUNDS_MAX && memif_has_news(port->news); i++)
		came = eal_interrupt_round(ROUND_MS);
	if (came && port->connects && now_ms >= port->connect_at) {
		if (!is_connecting(port, now_ms)) {
			connect_device(port);
			port->give_up_at = now_ms + HANDSHAKE_MS;
		}
		port->connect_ms = RTE_MIN(2 * port->connect_ms, (uint64_t)CONNECT_MAX_MS);
		port->connect_at = now_ms + port->connect_ms;
	}
	memif_watch(&port->news);
	return came;
}

static uint16_t nothing(void *queue, struct rte_mbuf **packet, uint16_t n)
{
	return 0;
}

void port_pause(struct port *port)
{
	struct rte_eth_fp_ops *calls = &rte_eth_fp_ops[port->id];

	if (port->receives != NULL)
		return;
	port->receives = calls->rx_pkt_burst;
	port->sends = calls->tx_pkt_burst;
	__atomic_store_n(&calls->rx_pkt_burst, nothing, __ATOMIC_RELEASE);
	__atomic_store_n(&calls->tx_pkt_burst, nothing, __ATOMIC_RELEASE);
}

void port_resume(struct port *port)
{
	struct rte_eth_fp_ops *calls = &rte_eth_fp_ops[port->id];

	if (port->receives == NULL)
		return;
	__atomic_store_n(&calls->rx_pkt_burst, (eth_rx_burst_t)port->receives, __ATOMIC_RELEASE);
	__atomic_store_n(&calls->tx_pkt_burst, (eth_tx_burst_t)port->sends, __ATOMIC_RELEASE);
	port->receives = port->sends = NULL;
}

void port_close(struct port *port)
{
	port_stop(port);
	if (port->claim > 0)
		close(port->claim);
}
