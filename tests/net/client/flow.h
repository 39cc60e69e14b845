/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One socket of a run: its outstanding requests, oldest first, and how its datagrams are matched
 * with requests.
 */
#ifndef CLIENT_FLOW_H
#define CLIENT_FLOW_H

#include "load.h"

/* Short requests lately settled: they have no id, so a late reply is known by its bytes. */
#define FLOW_RECENT 16

struct flow {
	int fd;
	uint32_t number;
	uint32_t n_outstanding;
	uint32_t *outstanding; /* indices of requests, in the order of sending */
	uint64_t next;         /* index of the next request: number, number + sockets, ... */
	bool has_short;        /* the outstanding request has no id */
	bool blocked;          /* the socket takes no more until it polls writable */
	uint64_t lost;
	uint64_t last_reply_ns; /* or when the first request left */
	uint32_t recent[FLOW_RECENT];
	uint64_t n_recent; /* since the start */
};

struct load {
	const struct load_options *options;
	const struct load_work *work;
	struct tally *tally;
	struct flow *flows;
	uint32_t tag;
	uint64_t n_outstanding; /* over all flows */
};

/* The same without a socket, for callers that have another way to send. */
int flow_init(struct flow *flow, const struct load_options *options, uint32_t number);
int flow_open(struct flow *flow, const struct load_options *options, uint32_t number);
void flow_close(struct flow *flow);

/* A request with <index> has just left. */
int flow_sent(struct load *load, struct flow *flow, uint32_t index, uint64_t now);
/* Takes a datagram. */
int flow_received(struct load *load, struct flow *flow, const uint8_t *datagram, size_t length,
		  uint64_t now);
/* Gives up the requests sent before <before>. */
void flow_expire(struct load *load, struct flow *flow, uint64_t before);

/* Returns the id of request <index> of this run. */
uint64_t load_id(const struct load *load, uint32_t index);

#endif
