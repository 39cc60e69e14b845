/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clients of TCP services in a walk: models of tests/tcp over a network that loses, copies and
 * reorders frames by a seed. Each sends a stream of bytes and expects another.
 */
#ifndef WALK_STREAM_CLIENT_H
#define WALK_STREAM_CLIENT_H

#include "client.h"

#include "walk.h"

struct stream_net {
	unsigned int lose, copy, delay, damage; /* per thousand */
	uint32_t delay_ms;                      /* of delayed frames, at most */
};

struct stream_client {
	struct client tcp;
	struct client_manner manner;
	uint8_t family;
	uint16_t port;
	const uint8_t *stream;
	uint32_t n_stream;
	uint8_t *got;
};

struct stream_clients {
	struct walk *w;
	const struct stream_net *net;
	uint64_t random;
	bool wander;  /* segments of a connection come by any queue and port, not by one of its own
		       */
	bool partial; /* clients leave checksums to hardware */
	bool by_port; /* checksums are the ports' to compute */
	unsigned int ports; /* of clients, all in one zone; 0: one */
	struct stream_client *client;
	unsigned int n;
	uint32_t segment; /* bytes; clients send no shorter segments by themselves */
	struct stream_frame *frames; /* on their way */
};

/* Client <i> of <all> will send <stream> and expects <expected>; both outlive it. Manner and family
 * come from the seed. */
void stream_client_open(struct stream_clients *all, unsigned int i, const uint8_t *stream,
			uint32_t n_stream, const uint8_t *expected, uint32_t n_expected);
/* A ms: clients send, the load balancer and its workers turn, frames arrive. */
void stream_clients_pass(struct stream_clients *all);
/* Passes until all clients have closed; fails the row after <limit_ms>, and at a client's fault. */
void stream_clients_run(struct stream_clients *all, uint32_t limit_ms);
void stream_clients_free(struct stream_clients *all);

/* Appends a request of framing length to <stream>, and the reply that echoes it to <expected>. */
void stream_add_echo(uint8_t *stream, uint32_t *n_stream, uint8_t *expected, uint32_t *n_expected,
		     const uint8_t *bytes, uint32_t n);

#endif
