/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The clients by TCP of one queue: few connections, each with requests of 1 MiB one behind the
 * other. A sender that fills a core: segments are written once into the mbufs of a small pool, and
 * only headers, numbers and checksums change. What is lost is seen and sent again, from the first
 * missing byte on (go-back-N); cwnd is not limited, the load balancer's window is. Owner: one
 * thread. Private to wire_clients.c.
 */
#ifndef BENCH_WIRE_TCP_H
#define BENCH_WIRE_TCP_H

#include "wire/wire_gen.h"

enum gen_state { GEN_CLOSED, GEN_CONNECTING, GEN_OPEN };

/* A place in a connection's stream, at the border of two segments. */
struct gen_cursor {
	uint64_t request;
	uint32_t segment;
};

/* Positions are bytes of the client's stream, from 0. */
struct gen_connection {
	enum gen_state state;
	uint16_t index;
	uint32_t first;          /* sequence number of position 0 */
	uint32_t expected, echo; /* of the load balancer: next number, last timestamp */
	uint8_t scale;           /* of its window */
	uint8_t sacks;           /* acknowledgements in a row that say what is missing */
	bool ack_due;
	uint64_t acked, next, top; /* acknowledged, to be sent next, never sent */
	uint64_t edge;             /* of its window */
	uint64_t recover;          /* no segment is sent again for SACKs before this is acked */
	uint64_t progress;         /* TSC; when something was sent or acknowledged */
	struct gen_cursor at, forward_at;
	uint64_t begun, replied; /* requests */
	uint32_t n_reply;        /* bytes of the next reply */
	uint8_t reply[8 + 256];
	/* Of a full segment, and of a request's last: headers without what changes, their sums. */
	uint8_t header[2][WIRE_TCP_HEADERS];
	uint64_t sum[2];
};

struct gen_tcp {
	struct gen_clients *clients;
	struct rte_mempool *segments; /* mbufs that hold a segment already */
	struct rte_mempool *control;  /* for those without bytes */
	struct gen_connection *connection;
	unsigned int n, turn;
	int64_t flying;           /* bytes on their way */
	uint32_t until_loss;      /* segments until one is not sent */
	uint64_t now, next_check; /* TSC */
	uint32_t now_ms;
	uint64_t tsc_per_ms;
	uint64_t forwarded_bytes, resent, unsent;
	/* the marks of forwarded segments on their way, by number */
	uint64_t *mark;
	bool stop; /* no request begins */
};

/* Before the thread starts; the pools are this side's alone. */
void gen_tcp_init(struct gen_tcp *t, struct gen_clients *c, struct rte_mempool *segments,
		  struct rte_mempool *control);
/* A load begins; its connections open if they are not. */
void gen_tcp_begin(struct gen_tcp *t);
/* Takes a frame that came for the clients. */
void gen_tcp_take(struct gen_tcp *t, const struct rte_mbuf *m);
/* Sends what may be sent. True when that was something. */
bool gen_tcp_send(struct gen_tcp *t);
/* Is there nothing that must be acknowledged? */
bool gen_tcp_settled(const struct gen_tcp *t);

/* Fills what is the same in every request into <bytes>, of WIRE_TCP_BYTES. */
void gen_tcp_fill(uint8_t *bytes);
/* Writes the marks of request <number> into it. */
void gen_tcp_mark(uint8_t *bytes, uint64_t number);

#endif
