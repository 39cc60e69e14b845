/* SPDX-License-Identifier: BSD-3-Clause */
/* A server and a client of exchange.h over the kernel's sockets. */
#ifndef TESTS_TCP_SOCKETS_H
#define TESTS_TCP_SOCKETS_H

#include <stdbool.h>
#include <stdint.h>

/* Serves until a signal ends it. */
void sockets_serve(const char *address, uint16_t port);

struct sockets_load {
	const char *address;
	uint16_t port;
	unsigned int connections, pipeline;
	uint64_t requests; /* in all */
	uint32_t min, max; /* bytes, log-uniform */
	bool up, down;     /* only requests, or only replies, have that size; or both */
	uint64_t seed;
	uint32_t limit_s;
	bool reconnect; /* a connection per request */
};

struct sockets_result {
	uint64_t answered, wrong, failed, bytes_up, bytes_down;
	double seconds, longest_stall_ms;
	bool sack, timestamps, scaling;
	uint32_t retransmits;
};

/* Sends requests until all are answered. 0, or 1 with the reason on stderr. */
int sockets_ask(const struct sockets_load *load, struct sockets_result *result);

#endif
