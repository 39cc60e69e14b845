/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The services' ends of flows. A front door has few doors: millions of flows share some
 * destinations (address, port, protocol), so each is kept once and a flow stores its number. That
 * is what lets a flow of either family fit one cache line. Private to this folder.
 */
#ifndef CONNTRACK_LOCALS_H
#define CONNTRACK_LOCALS_H

#include "conntrack.h"

#define LOCALS_BUCKETS CONNTRACK_LOCALS_MAX
#define LOCAL_NONE     UINT16_MAX

/* Written by the owner; other threads read <end> on behalf of a flow whose generation they check.
 */
struct local {
	struct flow_local end;
	uint16_t next;  /* of the same bucket, or of the free ones */
	uint32_t flows; /* that have this end; 0 = free */
} __attribute__((aligned(32)));

struct locals {
	struct local local[CONNTRACK_LOCALS_MAX];
	uint16_t bucket[LOCALS_BUCKETS];
	uint16_t free;
};

void locals_init(struct locals *locals);
/* The number of <key>'s destination, with one more flow; LOCAL_NONE when all numbers are taken. */
uint16_t locals_get(struct locals *locals, const struct flow_key *key);
/* One flow less; the last frees the number. */
void locals_put(struct locals *locals, uint16_t number);

#endif
