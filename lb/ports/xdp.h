/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * AF_XDP ports with our own XDP program (steer.bpf.c): only what is for our addresses leaves the
 * kernel. xdp.c where libbpf and clang are, xdp_none.c elsewhere. Control thread, at start.
 */
#ifndef LB_XDP_H
#define LB_XDP_H

#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"

/* Is this devargs of an AF_XDP port that leaves the choice of the XDP program to us? */
bool xdp_wants(const char *device);

/*
 * The devargs to open instead of <device>: the same with our program. Takes a program that an
 * earlier doorbell-lb left behind (it was killed) off the interface first; the caller has claimed
 * the interface (port_claim), so no living one has it. 0, or -errno with a
 * sentence in <error>.
 */
int xdp_prepare(const char *device, char *devargs, size_t devargs_size, char *error, size_t size);

/* After the port is open: tell the program the VIPs and the fabric address of port <index>. */
int xdp_keep_addresses(const struct lb_config *config, unsigned int index, char *error,
		       size_t size);

#endif
