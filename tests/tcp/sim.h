/* SPDX-License-Identifier: BSD-3-Clause */
/* A server's connection (lb/tcp), a client, and the network between them, in made-up time. */
#ifndef TESTS_TCP_SIM_H
#define TESTS_TCP_SIM_H

#include "client.h"
#include "tcp/connection.h"

#define SIM_STREAM_MAX (1u << 20)

/* Probabilities per thousand. */
struct sim_network {
	unsigned int lose, copy, reorder, mark;
	uint32_t delay_us;  /* one way */
	uint32_t jitter_us; /* of what is reordered */
	uint32_t limit;     /* packets under way at most, 0: any number */
};

struct sim_params {
	uint64_t seed;
	struct sim_network network;
	struct client_manner manner;
	struct tcp_settings settings;
	uint32_t request, reply; /* bytes of the two streams */
	uint32_t grant;          /* bytes that the server takes beyond what is in order */
	uint32_t forge; /* per thousand: segments of an attacker who does not see numbers */
	bool cookies;   /* SYNs leave no state */
	bool scarce;    /* the stack's memory is short */
	bool extends;   /* the server's port cuts packets of several segments */
};

struct sim_result {
	uint64_t segments; /* of both ends */
	uint64_t end_us;
	uint64_t placed_out_of_order; /* bytes */
	uint64_t extended;            /* packets of several segments */
	struct tcp_counters counters;
};

/* Runs until both ends have closed. 0, or -1 with the reason on stderr. */
int sim_run(const struct sim_params *params, struct sim_result *result);

/* Parameters by a seed: all kinds of networks and clients. */
void sim_params_random(uint64_t seed, struct sim_params *params);

#endif
