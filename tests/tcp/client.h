/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A TCP client that is simple enough to be checked by reading: it goes back to the oldest byte when
 * nothing is acknowledged, keeps a flag per byte received, and checks everything that the server
 * sends against RFC 9293. It does nothing for speed. By a seed it does what the network and other
 * implementations do to a server.
 */
#ifndef TESTS_TCP_CLIENT_H
#define TESTS_TCP_CLIENT_H

#include "tcp/header.h"

/* The behaviour of one kind of client. Probabilities per thousand. */
struct client_manner {
	uint16_t mss;
	uint8_t scale; /* or TCP_SCALE_NONE */
	bool sack, timestamps, ecn;
	uint32_t flight;    /* bytes under way at most */
	uint32_t buffer;    /* bytes of its receive buffer */
	uint32_t segment;   /* bytes of payload at most */
	uint32_t ack_delay; /* ms at most */
	unsigned int slow;  /* per thousand: it does not read the bytes that came */
	unsigned int reneges;
};

struct client {
	const struct client_manner *manner;
	uint64_t *random;
	/* what it sends: byte i of the stream is client_byte(i) */
	uint32_t iss, una, nxt, top; /* <top>: one past the last number ever sent */
	uint32_t length;             /* of the stream */
	uint32_t wnd, wl1, wl2, edge;
	uint8_t scale;
	uint32_t rto_at, rto_ms; /* 0: not running */
	unsigned int duplicates;
	/* what it receives */
	uint32_t irs, rcv, offered, reply; /* <reply>: bytes of the server's stream */
	uint32_t unread;
	uint8_t *got;
	const uint8_t *expected; /* the server's stream; NULL: client_byte() */
	uint32_t last_from; /* the out-of-order range that came last */
	struct tcp_range dsack;
	uint32_t ts_recent, ts_acked;
	bool opened, syn_sent, fin_sent, fin_acked, fin_got, closed, reset;
	bool uses_ts, uses_sack;
	bool ack_due;
	uint32_t ack_at, ack_again;
	uint32_t read_at; /* 0: when the server sends something */
	char fault[160]; /* the first thing that the server did wrong */
};

uint64_t client_random(uint64_t *state, uint64_t below);

/* Byte <i> of the stream in a direction. */
static inline uint8_t client_byte(uint32_t i, bool reply)
{
	uint32_t x = (i ^ (reply ? 0x5bd1e995 : 0)) * 0x9e3779b1u;

	return x >> 24 ^ x >> 11;
}

/* It will send <length> bytes and expects <reply>. <got> has room for <reply> flags. */
void client_open(struct client *c, const struct client_manner *manner, uint64_t *random,
		 uint32_t length, uint32_t reply, uint8_t *got);

/* A segment of the server's, with its bytes. */
void client_receive(struct client *c, uint32_t now_ms, const struct tcp_header *h,
		    const uint8_t *payload);

/* The next segment that it sends now, if any. Its payload is client_byte() from stream byte
 * <seq> - iss - 1 on. */
bool client_next(struct client *c, uint32_t now_ms, struct tcp_header *out);

/* The client's program reads, unless it is slow: then it reads again at a time of client_due(). */
void client_read(struct client *c, uint32_t now_ms);

/* Returns when it wants to be called next; false: it waits for the server only. */
bool client_due(const struct client *c, uint32_t *at_ms);

#endif
