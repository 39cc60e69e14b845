/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The services' ends of flows. Millions of flows share a few destinations (address, port,
 * protocol), so each destination is stored once and a flow stores its number. That makes a flow of
 * either family fit one cache line. Private to this folder.
 */
#ifndef CONNTRACK_LOCALS_H
#define CONNTRACK_LOCALS_H

#include "conntrack.h"

#define LOCALS_BUCKETS CONNTRACK_LOCALS_MAX
#define LOCAL_NONE     UINT16_MAX

/* The owner writes it. Other threads read <end> for a flow whose generation they check. */
struct local {
	struct flow_local end;
	uint16_t next;  /* number of the next in the same bucket or in the free list */
	uint32_t flows; /* flows with this end; 0 = free */
} __attribute__((aligned(32)));

struct locals {
	struct local local[CONNTRACK_LOCALS_MAX];
	uint16_t bucket[LOCALS_BUCKETS];
	uint16_t free;
};

void locals_init(struct locals *locals);
/*
 * Count one more flow of <key>'s destination; returns its number, or LOCAL_NONE when all are taken.
 */
uint16_t locals_get(struct locals *locals, const struct flow_key *key);
/* Count one flow less; the last one frees the number. */
void locals_put(struct locals *locals, uint16_t number);

#endif
