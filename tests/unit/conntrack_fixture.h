/* SPDX-License-Identifier: BSD-3-Clause */
/* Fixture of the tests of conntrack: EAL, parameters, keys by number, short calls. */
#ifndef CONNTRACK_FIXTURE_H
#define CONNTRACK_FIXTURE_H

#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_memory.h>

#include "conntrack.h"

/* The index to test: tests of the index itself are built once for each. */
#ifndef FIXTURE_TABLE
#define FIXTURE_TABLE CONNTRACK_TABLE_TAGS
#endif

#define ONE_WAY_MS     5000u
#define ESTABLISHED_MS 30000u
#define NO_BUDGET      UINT32_MAX

static inline void fixture_eal_sized(unsigned int megabytes)
{
	char memory[16];
	char *argv[] = {"conntrack",      "--no-huge", "--no-shconf", "--no-pci",
			"--no-telemetry", "-m",        memory,        NULL};
	cpu_set_t cpus;

	snprintf(memory, sizeof(memory), "%u", megabytes);

	/* EAL pins this thread to one CPU, and threads started later inherit that. */
	sched_getaffinity(0, sizeof(cpus), &cpus);
	if (rte_eal_init(7, argv) < 0)
		abort();
	sched_setaffinity(0, sizeof(cpus), &cpus);
}

static inline void fixture_eal(void)
{
	fixture_eal_sized(64);
}

static inline struct conntrack_params fixture_params(const char *name, uint32_t capacity)
{
	return (struct conntrack_params){
		.name = name,
		.capacity = capacity,
		.socket = SOCKET_ID_ANY,
		.table = FIXTURE_TABLE,
		.seed = {0x0123456789abcdef, 0xfedcba9876543210},
		.timeout_ms[0] =
			{
				[FLOW_UDP_ONE_WAY] = ONE_WAY_MS,
				[FLOW_UDP_ANSWERED] = ONE_WAY_MS,
				[FLOW_UDP_ESTABLISHED] = ESTABLISHED_MS,
			},
	};
}

static inline struct conntrack *fixture_table(const char *name, uint32_t capacity)
{
	struct conntrack_params params = fixture_params(name, capacity);

	return conntrack_create(&params);
}

static inline struct flow_key fixture_key4(uint32_t n)
{
	struct flow_key key;

	memset(&key, 0, sizeof(key));
	key.src.s6_addr32[2] = key.dst.s6_addr32[2] = htonl(0xffff);
	key.src.s6_addr32[3] = htonl(0x0a000000 + n);
	key.dst.s6_addr32[3] = htonl(0xc6336401);
	key.src_port = htons((uint16_t)(1024 + n));
	key.dst_port = htons(8000);
	key.protocol = IPPROTO_UDP;
	key.family = FLOW_IPV4;
	return key;
}

static inline struct flow_key fixture_key6(uint32_t n)
{
	struct flow_key key;

	memset(&key, 0, sizeof(key));
	key.src_port = htons(4000);
	key.dst_port = htons(8000);
	key.protocol = IPPROTO_UDP;
	key.family = FLOW_IPV6;
	key.src.s6_addr32[0] = key.dst.s6_addr32[0] = htonl(0x20010db8);
	memcpy(key.src.s6_addr + 12, &n, sizeof(n));
	key.dst.s6_addr[15] = 1;
	return key;
}

/* Families alternate. */
static inline struct flow_key fixture_key(uint32_t n)
{
	return n % 2 == 0 ? fixture_key4(n) : fixture_key6(n);
}

static inline struct flow *fixture_insert(struct conntrack *ct, uint32_t n, uint32_t now_ms)
{
	struct flow_key key = fixture_key(n);

	return conntrack_flow_insert(ct, &key, conntrack_hash(ct, &key), FLOW_UDP_ONE_WAY, 0,
				     now_ms);
}

static inline struct flow *fixture_find(struct conntrack *ct, uint32_t n)
{
	struct flow_key key = fixture_key(n);
	struct flow *flow;
	uint32_t hash;

	conntrack_hash_burst(ct, &key, 1, &hash);
	conntrack_lookup_burst(ct, &key, &hash, 1, &flow);
	return flow;
}

/* Returns all that a dump would say about a flow. */
static inline struct flow_info fixture_info(const struct conntrack *ct, const struct flow *flow)
{
	uint64_t handle = conntrack_handle(ct, flow);
	uint32_t cursor = (uint32_t)handle;
	struct flow_info info;

	if (conntrack_dump(ct, &cursor, &info, 1) != 1 || info.handle != handle)
		abort();
	return info;
}

#endif
