/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports on an interface of the kernel, by the device string "kernel0,iface=eth1": AF_XDP with our
 * XDP program where the build, the interface and the kernel can, because it costs less per packet;
 * af_packet elsewhere. The number behind "kernel" tells such ports of a process apart.
 *
 * DPDK's driver of AF_XDP takes only the first queue of an interface that has no combined queues,
 * such as a veth with several, but any one by its number. There each queue is a DPDK port of its
 * own (port->parts), and all of them share the XDP program.
 *
 * Threads: the main thread, as port_open().
 */
#ifndef RUNTIME_KERNEL_PORT_H
#define RUNTIME_KERNEL_PORT_H

#include <netinet/in.h>

#include "runtime/port.h"

/* bytes; larger frames do not fit into AF_XDP's buffers of 4 KiB beside XDP's headroom */
#define KERNEL_PORT_XDP_MTU_MAX 3378

#define KERNEL_PORT_REASON_MAX 512

/* True for device strings of this kind. */
bool kernel_port_is(const char *device);

/* The devargs by which a port with <queues> queues is opened. False when they do not fit. */
bool kernel_port_devargs(const char *device, bool xdp, unsigned int queues, char *devargs,
			 size_t size);

/* The same for a port of queue <queue> alone, by AF_XDP. */
bool kernel_port_part_devargs(const char *device, unsigned int queue, char *devargs, size_t size);

/*
 * The reason why an interface with <rx_queues> receive queues is no AF_XDP port with <queues>
 * queues and <mtu>; NULL when it may be one. <rx_queues> is 0 when unknown.
 */
const char *kernel_port_without_xdp(unsigned int rx_queues, const struct port_params *params,
				    char *text, size_t size);

/*
 * port_open() for device strings of any kind. Where it uses our XDP program, which the port then
 * says (port->steered), the <n> addresses are kept from the kernel. For "kernelN" devices that it
 * opens through af_packet, <reason> says why, in at most KERNEL_PORT_REASON_MAX bytes; else it is
 * empty. <steer>: other devices of AF_XDP get our program, too. 0, or -errno with a sentence in
 * <error>.
 */
int kernel_port_open(struct port *port, const struct port_params *params,
		     const struct in6_addr *address, unsigned int n, bool steer, char *reason,
		     char *error, size_t size);

#endif
