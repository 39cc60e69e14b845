/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The controller's connections: clients', from which requests come whole, and workers', to which
 * actions go. Nothing blocks; what a socket does not take waits.
 */
#ifndef PREDICTABLE_PEER_CONNECTION_H
#define PREDICTABLE_PEER_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "predictable/wire.h"
#include "runtime/endpoint.h"

struct epoll_event;
struct connection;

/* The framing `tagged` (lb/packet/request.h), as its documentation has it. */
#define TAGGED_HEAD     24
#define TAGGED_DEADLINE 7 /* a notice's code */

struct request {
	struct connection *from;
	uint8_t id[8];
	uint64_t deadline_ns; /* CLOCK_MONOTONIC */
	uint32_t model, size, got;
	uint8_t *bytes; /* its own, until they are queued for a worker */
};

/* A reply with room in front for its head. */
struct reply {
	uint32_t length;
	uint8_t bytes[]; /* TAGGED_HEAD + length */
};

struct connections {
	uint32_t max_request; /* bytes */
	void *context;
	void (*request)(void *context, struct request *request); /* gives it away */
	/* Gives the replies away. */
	void (*result)(void *context, uint32_t worker, const struct wire_result *result,
		       struct reply **reply);
	/* private but for the counters */
	int poll;
	struct connection *dead;
	uint8_t *room;
	uint64_t bytes_in, bytes_out; /* of all sockets */
	uint64_t held, held_peak;     /* bytes of payloads: those of unfinished requests, too */
};

void connections_open(struct connections *k);
/* Ends the process when it cannot connect. */
struct connection *connection_to(struct connections *k, uint32_t worker,
				 const struct endpoint_address *at);
void connection_listen(struct connections *k, uint32_t model, uint32_t port, int backlog);
/* Reads and writes what is ready. */
void connection_ready(struct connections *k, const struct epoll_event *event);
/* Frees connections that have ended; call when no event is under way. */
void connections_sweep(struct connections *k);

/* Queue bytes; <owner> is freed when they are sent. Flush when all are queued. */
void connection_queue(struct connection *to, void *owner, const void *at, size_t length);
void connection_flush(struct connections *k, struct connection *to);

/* Answer a request; the reply is given away. Its client may be gone. */
void connection_answer(struct connections *k, const struct request *request, struct reply *reply);
void connection_notice(struct connections *k, const struct request *request, uint8_t code);
void request_free(struct connections *k, struct request *request);

#endif
