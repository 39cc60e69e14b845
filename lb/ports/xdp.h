/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * AF_XDP ports with our own XDP program (steer.bpf.c): only packets for our addresses bypass the
 * kernel. xdp.c is built where libbpf and clang are, xdp_none.c elsewhere. Control thread, at
 * start.
 */
#ifndef LB_XDP_H
#define LB_XDP_H

#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"

/* True for devargs of an AF_XDP port that name no XDP program of their own. */
bool xdp_wants(const char *device);

/*
 * Write to <devargs> the devargs to open instead of <device>: the same, with our XDP program. First
 * detach a program that a killed doorbell-lb left on the interface; the caller has claimed the
 * interface (port_claim), so no running one uses it. 0, or -errno with a sentence in <error>.
 */
int xdp_prepare(const char *device, char *devargs, size_t devargs_size, char *error, size_t size);

/* After the port is open: give the program the VIPs and the fabric address of port <index>. 0, or
 * -errno with a sentence in <error>. */
int xdp_keep_addresses(const struct lb_config *config, unsigned int index, char *error,
		       size_t size);

#endif
