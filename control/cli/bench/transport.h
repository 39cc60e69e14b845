/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The path of one thread's requests and replies: kernel sockets (udp.c, tcp.c), or a DPDK port
 * (port_transport.c, in a program of its own, as the CLI links no DPDK). A flow is a source port
 * towards one target; by TCP, a connection.
 */
#ifndef BENCH_TRANSPORT_H
#define BENCH_TRANSPORT_H

#include "cli/bench/mix.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRANSPORT_BURST 32

struct transport_datagram {
	uint32_t flow;
	uint32_t length;
	uint8_t *bytes;
	uint64_t deadline_ns; /* of a request: clock_now_ns() of its deadline; 0: none */
	/* Received by TCP only: the transport names the request that it answers. */
	bool named;
	uint8_t notice; /* enum notice_code */
	uint64_t id;
};

struct transport_params {
	const struct mix *mix;
	uint32_t flows; /* flow f belongs to target f modulo the number of targets */
	uint32_t largest;
	bool tagged;                            /* by TCP: the framing, else length */
	const char *device, *address, *gateway; /* of a DPDK port */
};

struct transport; /* each implementation has its own */

struct transport_ops {
	/* NULL with a sentence in <error>. */
	struct transport *(*open)(const struct transport_params *params, char *error, size_t size);
	void (*close)(struct transport *transport);
	/*
	 * Send the first of <n> datagrams, at most a burst, in order. Returns how many were sent,
	 * fewer when there is no room, or -errno. Errors that the network reported add to
	 * <unreachable>.
	 */
	int (*send)(struct transport *transport, const struct transport_datagram *datagram,
		    unsigned int n, uint64_t *unreachable);
	/*
	 * Receive at most a burst; wait up to <wait_ns> for the first datagram. Its bytes are valid
	 * until the next call. Returns how many came, or -errno.
	 */
	int (*receive)(struct transport *transport, struct transport_datagram *datagram,
		       unsigned int n, uint64_t wait_ns, uint64_t *unreachable);
	bool names; /* all that is received is named */
};

extern const struct transport_ops transport_udp, transport_tcp;

/* Raise the limit of descriptors: a socket per flow may need more than the default. */
void transport_raise_limit(void);

#endif
