/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of conntrack share: EAL, parameters, keys by number, short calls. */
#ifndef CONNTRACK_FIXTURE_H
#define CONNTRACK_FIXTURE_H

#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_memory.h>

#include "conntrack.h"

#define ONE_WAY_MS     5000u
#define ESTABLISHED_MS 30000u
#define NO_BUDGET      UINT32_MAX

static inline void fixture_eal(void)
{
	char *argv[] = {"conntrack",      "--no-huge", "--no-shconf", "--no-pci",
			"--no-telemetry", "-m",        "64",          NULL};
	cpu_set_t cpus;

	/* EAL pins this thread to one CPU, and threads started later inherit that. */
	sched_getaffinity(0, sizeof(cpus), &cpus);
	if (rte_eal_init(7, argv) < 0)
		abort();
	sched_setaffinity(0, sizeof(cpus), &cpus);
}

static inline struct conntrack_params fixture_params(const char *name, uint32_t capacity)
{
	return (struct conntrack_params){
		.name = name,
		.capacity = capacity,
		.socket = SOCKET_ID_ANY,
		.seed = {0x0123456789abcdef, 0xfedcba9876543210},
		.timeout_ms[0] =
			{
				[FLOW_UDP_ONE_WAY] = ONE_WAY_MS,
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
	key.src4 = htonl(0x0a000000 + n);
	key.dst4 = htonl(0xc6336401);
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
	memcpy(key.src6, "\x20\x01\x0d\xb8", 4);
	memcpy(key.src6 + 12, &n, sizeof(n));
	memcpy(key.dst6, "\x20\x01\x0d\xb8", 4);
	key.dst6[15] = 1;
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
	const struct flow_key *keys[] = {&key};
	uint32_t hash = conntrack_hash(ct, &key);
	struct flow *flow;

	conntrack_lookup_burst(ct, keys, &hash, 1, &flow);
	return flow;
}

#endif
