/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends pings of several sizes that no router may fragment, and notes which are answered. One
 * packet per size from an ordinary socket; takes 1 s at most.
 */
#ifndef DOCTOR_PROBE_H
#define DOCTOR_PROBE_H

#include <net/if.h>
#include <stdbool.h>

#include "config/address.h"

#define PROBE_SIZES_MAX 8

struct probe {
	unsigned int n;
	struct probe_size {
		unsigned int bytes; /* of the whole IP packet */
		unsigned int tag;   /* for the caller's use */
		bool too_long;      /* longer than our own interface takes */
		bool answered;
	} size[PROBE_SIZES_MAX];
};

void probe_add(struct probe *probe, unsigned int bytes, unsigned int tag);

/* Find the interface by which the kernel sends to <to>; an empty text without a route. */
void probe_route(const struct lb_address *to, char interface[IF_NAMESIZE]);

/* Send all pings and wait for the answers. Returns 0, or -errno when nothing could be sent. */
int probe_run(struct probe *probe, const struct lb_address *to);

#endif
