/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A DPDK port, for both programs: opened from a device string, one pair of queues per lcore, with
 * the descriptors that wake a sleeping thread.
 *
 * Threads: open and close on the main thread while no other thread uses the port.
 */
#ifndef RUNTIME_PORT_H
#define RUNTIME_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_mempool.h>

#include "runtime/memif.h"

#define PORT_FDS_MAX   32
#define PORT_PARTS_MAX PORT_FDS_MAX

#define PORT_RSS_KEY_MAX     64
#define PORT_RSS_ENTRIES_MAX 512

/* The NIC's RSS settings, read back from it. */
struct port_rss {
	bool known;          /* false: no RSS, or the driver does not report it */
	bool ip4, ip6;       /* it hashes addresses */
	bool ports4, ports6; /* it hashes UDP ports as well */
	bool tcp4, tcp6;     /* and TCP ports */
	uint8_t key_length;
	uint16_t entries;
	uint8_t key[PORT_RSS_KEY_MAX];        /* of the Toeplitz hash */
	uint16_t queue[PORT_RSS_ENTRIES_MAX]; /* indexed by the hash's lowest bits */
};

struct port {
	uint16_t id; /* DPDK's; of the first queue, if it has parts */
	uint16_t queues;
	/*
	 * DPDK ports, each with one queue, that are the port's queues; 0: all queues are those of
	 * <id>. See kernel_port.h.
	 */
	uint16_t parts;
	uint16_t part[PORT_PARTS_MAX];
	uint16_t mtu;
	uint8_t mac[6];
	uint16_t segments_max; /* most mbufs of a packet that it sends; 1: no chains */
	/*
	 * ol_flags that make the port compute the checksums of a UDP datagram over IPv4 and over
	 * IPv6; 0: it computes none. With them, the UDP checksum field holds the pseudo header's
	 * sum and the IPv4 checksum field is 0.
	 */
	uint64_t tx_checksums[2];
	uint64_t tx_tcp_checksums[2]; /* the same for TCP segments */
	/*
	 * Most mbufs of a packet that it cuts into TCP segments by itself (TSO), headers included;
	 * 0: it cuts none. No segment may lie in more than <segments_max>.
	 */
	uint16_t tso_mbufs;
	bool rx_udp, rx_tcp;   /* it verifies these */
	uint64_t rx_checksums; /* RTE_MBUF_F_RX_*_CKSUM_GOOD flags of checksums that it verifies */
	bool rss;              /* it spreads flows over its queues */
	/* Frames of senders on this machine come by it, with checksums left to hardware that they
	 * never passed. */
	bool local_senders;
	bool keeps_flows;   /* all packets of a flow come by one queue, whatever happens */
	bool steered;       /* AF_XDP with our own XDP program: see kernel_port.h */
	const char *driver; /* DPDK's name for its driver */
	struct port_rss spread;
	/* A memif whose driver's handlers run in port_attend() only. */
	bool attended;
	bool connects; /* it connects anew when it has no link; see port_params.may_wait */
	bool waits;    /* it is not started, as nobody listened: it must not be used */
	int news;      /* descriptor: something has come for a handler */
	char socket[MEMIF_SOCKET_MAX]; /* of one that connects */
	uint64_t connect_at,
		connect_ms;     /* ms: when it may connect again, and the wait after that */
	uint64_t give_up_at;    /* ms: when a handshake that has begun is broken off */
	void *receives, *sends; /* what port_pause() put aside; NULL: not paused */
	int claim;          /* socket of port_claim(); 0 = none */
	unsigned int n_fds; /* sockets behind the port to poll; 0 = it cannot wake a sleeper */
	int fds[PORT_FDS_MAX];
};

struct port_params {
	const char *device; /* devargs, e.g. "net_af_packet0,iface=eth1" or a PCI address */
	uint16_t queues;    /* number that is wanted; the port may have fewer */
	uint16_t rx_descriptors, tx_descriptors;
	uint16_t mtu;                    /* IP MTU */
	bool rx_checksums, tx_checksums; /* use the port's checksum offloads if it has them */
	bool tso;                        /* the same for cutting TCP segments; with tx_checksums */
	bool attends;                    /* the caller calls port_attend() */
	bool may_wait; /* and by the thread that uses the queues: nobody need listen yet */
	struct rte_mempool *const *pool; /* receive buffers, one per queue */
};

/*
 * Make a pool of <n> packet buffers of <data_room> bytes. Its buffers lie one behind the other without
 * gaps, because DPDK's driver for AF_XDP computes the end of a pool from their number: the kernel
 * refuses the buffers behind that end, and their packets are lost. In a process with PCI devices a pool
 * has gaps, as each buffer must lie within a page and have an address for the devices. After the EAL has
 * started. NULL with rte_errno.
 */
struct rte_mempool *port_pool_create(const char *name, unsigned int n, unsigned int cache,
				     uint16_t data_room);

/*
 * Claim the interface that <device> names with iface=, so that no second doorbell process answers
 * on it. Call it before port_open(); port_close() or the end of the process releases it. 0, or
 * -errno with a sentence in <error>.
 */
int port_claim(struct port *port, const char *device, char *error, size_t error_size);

/* Open, configure and start. 0, or -errno with a sentence in <error>. */
int port_open(struct port *port, const struct port_params *params, char *error, size_t error_size);
/*
 * Does an <attended> port have something for its driver's handlers, or want to connect? Then nobody
 * may use the queues of any attended port during port_attend(), which takes a millisecond or so.
 * <now_ms> of any clock. If it returns false a handler still runs: call it again before the queues
 * are used.
 */
bool port_wants_attention(struct port *port, uint64_t now_ms);
bool port_attend(struct port *port, uint64_t now_ms);
/*
 * Make the port's queues receive and send nothing, and undo that. Those who use them on other
 * threads notice from their next call on: wait until each has made one.
 */
void port_pause(struct port *port);
void port_resume(struct port *port);
/* Stop and close, and keep the claim for another port_open(). */
void port_stop(struct port *port);
void port_close(struct port *port);

/* A queue as DPDK knows it. */
struct port_queue {
	uint16_t id, queue;
};

static inline struct port_queue port_queue(const struct port *port, uint16_t queue)
{
	if (port->parts == 0)
		return (struct port_queue){port->id, queue};
	return (struct port_queue){port->part[queue], 0};
}

/* True when the port computes checksums of packets that it sends. */
static inline bool port_computes_checksums(const struct port *port)
{
	return (port->tx_checksums[0] | port->tx_checksums[1] | port->tx_tcp_checksums[0] |
		port->tx_tcp_checksums[1]) != 0;
}

/* True when the port has a link, or cannot report it. Reads the hardware: not for every packet. */
bool port_up(const struct port *port);

/* The link's rate in bytes per second; 10 Gbit/s when the port does not report it. */
uint64_t port_line_rate(const struct port *port);

#endif
