/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The clients: many UDP flows, drawn at random. They write requests and check replies; all of it
 * outside the measured time.
 */
#ifndef BENCH_CLIENTS_H
#define BENCH_CLIENTS_H

#include <rte_ether.h>

#include "common/rig.h"
#include "common/trace.h"

#define CLIENT_HEADERS (14 + 20 + 8)

/* The composition of a batch. */
struct load {
	enum rig_service service;
	uint32_t flows;   /* drawn from this many */
	uint32_t payload; /* bytes of a request and of a reply */
	bool nic_checks;  /* the NIC has verified the checksums */
	bool in_turn;     /* every flow in turn, from <next> on, instead of at random */
	uint32_t next;
	/*
	 * Flows and payloads of requests come from here instead. Payloads are not written but for
	 * their numbers, and not checked; the NIC has verified the checksums.
	 */
	struct trace *trace;
	uint32_t reply; /* bytes of a reply; 0 = as the request */
};

struct clients {
	const struct rig *rig;
	uint8_t lb_mac[6];
	uint64_t random;
	uint64_t number; /* of the next request; its payload starts with it */
	/* the requests of this batch */
	uint64_t first;
	uint32_t flow[RIG_BATCH];
	uint16_t length[RIG_BATCH]; /* of the payload */
	struct rte_mbuf *packet[RIG_BATCH];
	const uint8_t *payload[RIG_BATCH]; /* where the NIC has put it */
};

/* The client's end of a flow, in network order. */
uint32_t clients_address(uint32_t flow);
uint16_t clients_port(uint32_t flow);
/* The flow with that end. */
uint32_t clients_flow(uint32_t address, uint16_t port);
extern const struct rte_ether_addr clients_mac;

void clients_init(struct clients *c, const struct rig *rig);

/* Make a batch of requests, as frames that a NIC has received. */
void clients_prepare(struct clients *c, struct load *load);

/* Byte <i> of what follows the number in any payload. */
static inline uint8_t clients_pattern(uint32_t i)
{
	return (uint8_t)(i * 7 + 3);
}

/* True if this is the reply to request <index> of the batch. Checks every byte. */
bool clients_is_reply(const struct clients *c, const struct load *load, const struct rte_mbuf *m,
		      uint32_t index);

/* Returns a random number in 0..n-1. */
uint32_t clients_random(struct clients *c, uint32_t n);

#endif
