/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * AF_XDP ports with our own XDP program (steer.bpf.c): only packets for our addresses bypass the
 * kernel. xdp.c is built where libbpf and clang are, xdp_none.c elsewhere. Main thread only.
 */
#ifndef RUNTIME_XDP_H
#define RUNTIME_XDP_H

#include <stdbool.h>
#include <stddef.h>

#include <netinet/in.h>

/* False in builds without the XDP program. */
bool xdp_is_built(void);

/* True for devargs of an AF_XDP port that name no XDP program of their own. */
bool xdp_wants(const char *device);

/*
 * Write to <devargs> the devargs to open instead of <device>: the same, with our XDP program. First
 * detach a program that a killed process left on the interface; the caller has claimed the
 * interface (port_claim), so no running one uses it. 0, or -errno with a sentence in <error>.
 */
int xdp_prepare(const char *device, char *devargs, size_t devargs_size, char *error, size_t size);

/*
 * Give the program on the interface of <device>, whose port is open, <n> more addresses to keep
 * from the kernel; IPv4 as ::ffff:a.b.c.d. 0, or -errno with a sentence in <error>.
 */
int xdp_keep(const char *device, const struct in6_addr *address, unsigned int n, char *error,
	     size_t size);

/*
 * A descriptor of the program on the interface of <device>, whose port is open. The caller closes
 * it. Or -errno with a sentence in <error>.
 */
int xdp_program(const char *device, char *error, size_t size);

/*
 * Put <program> of xdp_program() on the interface of <device> again, in place of the one that a
 * port of another queue has brought, and have it give the packets of <queue> to <socket> of that
 * port. 0, or -errno with a sentence in <error>.
 */
int xdp_join(const char *device, int program, unsigned int queue, int socket, char *error,
	     size_t size);

#endif
