/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client of a TCP service that sends the segments that a row says, and the services and workers
 * of such rows: raw_ is the client, large_ is for requests larger than a packet.
 */
#ifndef WALK_RAW_H
#define WALK_RAW_H

#include "packet.h"
#include "tcp/connection.h"
#include "walk.h"
#include "worker.h"

/* Services of IPv4 and IPv6 whose requests fit packets. */
#define RAW_SERVICES                                                                               \
	"  - {name: echo, protocol: tcp, address: " PACKET_DESTINATION4                            \
	", port: 8000, model: echo, max_request: 1400, max_reply: 1400}\n"                         \
	"  - {name: echo6, protocol: tcp, address: \"" PACKET_DESTINATION6                         \
	"\", port: 8000, model: echo, max_request: 1400, max_reply: 1400}\n"
extern const struct walk_params raw_small;

struct raw {
	struct walk *w;
	uint16_t port;
	uint8_t station;     /* of its router */
	unsigned int on;     /* port of the load balancer */
	uint32_t seq, ack;   /* next to send, next expected */
	bool fin;            /* the load balancer has closed */
	uint8_t sent_to;     /* last byte of the MAC address of its last segment */
	uint16_t service;    /* its port; 0: 8000 */
	const char *source;  /* address; NULL: one for all */
	enum packet_sum sum; /* of its segments */
};

/* Opens a connection from <port>; the handshake alone; on a port of the load balancer. */
void raw_open(struct raw *r, struct walk *w, uint16_t port);
void raw_connect(struct raw *r);
void raw_open_on(struct raw *r, struct walk *w, uint16_t port, unsigned int on);
/* Both ends close, and the load balancer, which must hold nothing any more, is destroyed. */
void raw_end(struct raw *r);
/* Both ends close: the load balancer's first, so that it is in TIME-WAIT. */
void raw_into_time_wait(struct raw *r);

/* Sends a segment, which the load balancer has not looked at yet; and has. */
void raw_put(struct raw *r, uint8_t flags, const void *bytes, uint32_t n);
void raw_send(struct raw *r, uint8_t flags, const void *bytes, uint32_t n);
/* Sends a request of framing length with <n> bytes in it, saying <said>. */
void raw_ask(struct raw *r, uint32_t said, uint32_t n);
/* Sends a part of a request of <size> bytes: from <from> up to <to>, its header in front of byte 0.
 */
void raw_part(struct raw *r, uint32_t size, uint32_t from, uint32_t to);

/* Takes the load balancer's next segment for the client. False: there is none. */
bool raw_take(struct raw *r, struct tcp_header *h, uint8_t *payload);
/* Acknowledges what comes to <r>. Returns whether something came to <other>. */
bool raw_read(struct raw *r, const struct raw *other);
/* Takes what comes to each of <n>: their next segments acknowledge it. */
void raw_note_acks(struct raw *r, unsigned int n);
/* Expects the head of an answer, and <length> bytes. */
void raw_expect_answer(struct raw *r, uint32_t status, uint32_t length);
void raw_expect_fin(struct raw *r);
/* Passes until the load balancer has forgotten all connections; expects that within <ms>. */
void raw_expect_none_left(struct walk *w, uint32_t ms);
/* A reload after which the service of IPv4 is gone. */
void raw_take_service_away(struct walk *w, const struct walk_params *params);

/* Services whose requests take many segments; %s: more keys of each. */
#define LARGE_SERVICE                                                                              \
	"  - {name: echo, protocol: tcp, address: " PACKET_DESTINATION4                            \
	", port: 8000, model: echo, max_request: 64KiB, max_reply: 64KiB%s}\n"                     \
	"  - {name: echo6, protocol: tcp, address: \"" PACKET_DESTINATION6                         \
	"\", port: 8000, model: echo, max_request: 64KiB, max_reply: 64KiB%s}\n"
/* A worker with room for few of them at a time. */
extern const struct walk_worker_params large_roomy;

/* A load balancer with these; <more> keys of a service, <buffer>: those of tcp. */
struct walk *large_create(const char *more, const char *buffer);
/* No slot and no page of a worker's ring is in use. */
void large_expect_room(const struct walk *w);
/* A worker that answers nothing. */
struct walk_worker *large_silent_worker(struct walk *w);
/* Two workers; <has> gets the first part of a request. */
void large_two_and_a_part(struct raw *r, struct walk *w, struct walk_worker **has,
			  struct walk_worker **other);
/* Request <i> that the worker has is raw_part()'s, whole. */
void large_expect_request(const struct walk_worker *v, unsigned int i, uint32_t size);
/* The worker answers all that it has, with two bytes each. */
void large_answer(struct walk_worker *v);
/* The worker is removed, and does nothing more. */
void large_take_worker(struct walk *w, struct walk_worker *v);

#endif
