/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The clients of the TCP bench: the client's end of a million connections, in a few bytes each.
 * They send nothing twice and lose nothing; what the load balancer sends must come in order. They
 * write segments and check answers outside the measured time.
 */
#ifndef BENCH_TCP_CLIENTS_H
#define BENCH_TCP_CLIENTS_H

#include "common/clients.h"
#include "walk/tcp_speech.h"

/* Ethernet, IPv4, TCP with the timestamps that every segment but a SYN has. */
#define TCP_CLIENT_HEADERS (14 + 20 + 32)

enum tcp_segment {
	TCP_SEGMENT_SYN,
	TCP_SEGMENT_ACK,
	TCP_SEGMENT_REQUEST,
	TCP_SEGMENT_FIN,
};

/* A client's end of a connection. */
struct tcp_client {
	uint32_t next;     /* number of its next byte */
	uint32_t expected; /* number of the load balancer's next byte */
	uint32_t echo;     /* the load balancer's last timestamp */
	uint32_t drawn;    /* number of the last batch that it was drawn for */
	uint32_t window;   /* that it was offered last */
};

/* The segments of the load balancer in one turn, but for those that only open a window, as one of
 * many connections of a client is offered more when there is room again. */
struct tcp_taken {
	unsigned int packets, replies, syns, fins, acknowledgements;
};

struct tcp_clients {
	struct clients *frames; /* the packets, flows and payloads of a batch */
	struct tcp_speech *speech;
	struct tcp_frames *http2; /* those that speak gRPC: by flow, from <http2_first> on */
	uint32_t http2_first;
	const struct rig *rig;
	struct tcp_client *client; /* by flow */
	uint32_t n;
	uint32_t batch;
	bool verify; /* read every byte; costs cache, so not while measuring */
	bool sums;   /* the NIC has not verified the checksums */
	bool ahead;  /* segments are made before others are sent: acknowledgements are behind */
};

/* <n>: connections, each of which may be opened once at a time. */
void tcp_clients_init(struct tcp_clients *c, struct tcp_speech *speech, const struct rig *rig,
		      struct clients *frames, uint32_t n);
void tcp_clients_fini(struct tcp_clients *c);

/* Draws RIG_BATCH connections of the first <among>, none twice, into <flow>. */
void tcp_clients_draw(struct tcp_clients *c, uint32_t among, uint32_t flow[RIG_BATCH]);

/* Makes a segment of each of the first <n> of <flow>, as frames that a NIC has received; a request
 * has <payload> bytes. */
void tcp_clients_prepare(struct tcp_clients *c, enum tcp_segment kind,
			 const uint32_t flow[RIG_BATCH], unsigned int n, uint32_t payload);

/* Of gRPC: the number of the next call of <flow>, from 0 on. */
static inline uint32_t tcp_clients_call(struct tcp_clients *c, uint32_t flow)
{
	return c->http2 == NULL ? 0 : c->http2[flow - c->http2_first].calls++;
}

/* Makes a segment of <flow> of <m>, whose <bytes> of payload lie TCP_CLIENT_HEADERS behind its
 * start already. */
void tcp_clients_write(struct tcp_clients *c, enum tcp_segment kind, uint32_t flow, uint32_t bytes,
		       struct rte_mbuf *m);

/*
 * Takes and checks what the clients' port has sent. <reply_at>: where the bytes of this turn's
 * LB_BURST replies are, of <payload> bytes each; NULL: there are none.
 */
void tcp_clients_take(struct tcp_clients *c, const uint8_t *const *reply_at, uint32_t payload,
		      struct tcp_taken *taken);

#endif
