/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How one thread's datagrams travel: kernel sockets (udp.c), or a DPDK port (port.c, in a program
 * of its own, as the CLI links none of DPDK). A flow is a source port towards one target.
 */
#ifndef BENCH_TRANSPORT_H
#define BENCH_TRANSPORT_H

#include "cli/bench/mix.h"

#include <stddef.h>
#include <stdint.h>

#define TRANSPORT_BURST 32

struct transport_datagram {
	uint32_t flow;
	uint32_t length;
	uint8_t *bytes;
};

struct transport_params {
	const struct mix *mix;
	uint32_t flows; /* flow f is towards target f modulo their number */
	uint32_t largest;
	const char *device, *address, *gateway; /* of a DPDK port */
};

struct transport; /* each kind has its own */

struct transport_ops {
	/* NULL with a sentence in <error>. */
	struct transport *(*open)(const struct transport_params *params, char *error, size_t size);
	void (*close)(struct transport *transport);
	/*
	 * Sends the first of <n>, at most a burst, in order. How many left, which is fewer when
	 * there is no room, or -errno. Errors that came back from the network add to <unreachable>.
	 */
	int (*send)(struct transport *transport, const struct transport_datagram *datagram,
		    unsigned int n, uint64_t *unreachable);
	/*
	 * Receive at most a burst; waits up to <wait_ns> for the first datagram. The bytes are
	 * good until the next call. How many, or -errno.
	 */
	int (*receive)(struct transport *transport, struct transport_datagram *datagram,
		       unsigned int n, uint64_t wait_ns, uint64_t *unreachable);
};

extern const struct transport_ops transport_udp;

#endif
