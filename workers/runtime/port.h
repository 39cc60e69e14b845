/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A DPDK port as both programs use it: opened from a device string, one queue pair per lcore, and
 * knowing how a thread that sleeps is woken by its traffic.
 *
 * Threads: open and close on the main thread while nobody uses the port.
 */
#ifndef RDMA_PORT_H
#define RDMA_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_mempool.h>

#define PORT_FDS_MAX 32

#define PORT_RSS_KEY_MAX     64
#define PORT_RSS_ENTRIES_MAX 512

/* How a NIC chooses the queue of a packet: read back from it. */
struct port_rss {
	bool known;          /* false: it spreads nothing, or in a way of its own */
	bool ip4, ip6;       /* addresses are hashed */
	bool ports4, ports6; /* UDP's ports are, too */
	uint8_t key_length;
	uint16_t entries;
	uint8_t key[PORT_RSS_KEY_MAX];        /* of the Toeplitz hash */
	uint16_t queue[PORT_RSS_ENTRIES_MAX]; /* by the hash's lowest bits */
};

struct port {
	uint16_t id;
	uint16_t queues;
	uint16_t mtu;
	uint8_t mac[6];
	uint16_t segments_max; /* mbufs of a packet that it sends; 1: no chains */
	/*
	 * What the ol_flags of a UDP datagram over IPv4 and IPv6 ask of the port; 0: it computes no
	 * checksums. The UDP checksum field has the pseudo-header's sum then, the IPv4 header's 0.
	 */
	uint64_t tx_checksums[2];
	uint64_t rx_checksums; /* RTE_MBUF_F_RX_*_CKSUM_GOOD of what it verifies */
	bool rss;              /* spreads flows over its queues */
	struct port_rss spread;
	int claim;          /* socket whose name nobody else can have; 0 = none */
	unsigned int n_fds; /* pollable sockets behind the port; 0 = cannot wake a sleeper */
	int fds[PORT_FDS_MAX];
};

struct port_params {
	const char *device; /* devargs, e.g. "net_af_packet0,iface=eth1" or a PCI address */
	uint16_t queues;    /* wanted; a port may give fewer */
	uint16_t rx_descriptors, tx_descriptors;
	uint16_t mtu;                    /* IP MTU */
	bool rx_checksums, tx_checksums; /* use the port's, where it has them */
	struct rte_mempool *const *pool; /* receive buffers, one per queue */
};

/*
 * Make sure that no other process of ours has the interface that <device> names with iface=: two
 * would both answer. To be called before port_open(); port_close() lets go, as does the end of the
 * process. 0, or -errno with a sentence in <error>.
 */
int port_claim(struct port *port, const char *device, char *error, size_t error_size);

/* Open, configure and start. 0, or -errno with a sentence in <error>. */
int port_open(struct port *port, const struct port_params *params, char *error, size_t error_size);
void port_close(struct port *port);

/* Does the port have a link? Yes, where it cannot say. Asks the hardware, so not for each packet. */
bool port_up(const struct port *port);

/* Bytes per second that the port's link carries; what a virtual port does not say is a guess. */
uint64_t port_line_rate(const struct port *port);

/* mbuf data room that holds a frame of <mtu> with headroom for every header we may prepend. */
uint16_t port_data_room(uint16_t mtu);

#endif
