/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parts of tcp-stream: a client, a server and a bad wire for TCP services with framing
 * `length`, all by the kernel's sockets. A request is its length (u32, little-endian) and its
 * bytes; a reply is its length, a status (u32), and its bytes.
 *
 * A server answers in one of two ways. Echo: the reply is the request. Drawn: a request begins with
 * struct stream_head, and the reply has as many bytes as that wants, of a stream whose seed is the
 * hash of all of the request's bytes; so requests and replies can have different sizes, and the
 * client checks both.
 */
#ifndef TESTS_NET_STREAM_H
#define TESTS_NET_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define STREAM_REQUEST_HEAD 4
#define STREAM_REPLY_HEAD   8
#define STREAM_SIZE_MAX     (64u << 20)

/* In the machine's byte order, as client and server are on one machine. */
struct stream_head {
	uint32_t wanted; /* bytes of the reply */
	uint32_t number;
	uint64_t seed;
};

/* Returns the hash of <n> bytes, to be continued with the result as <before>; <n> is a multiple of
 * 8 unless these are the last bytes. */
uint64_t stream_hash(uint64_t before, const void *at, size_t n);

/* us of CLOCK_MONOTONIC */
uint64_t stream_now_us(void);

/* Fills <out>, or exits. */
socklen_t stream_address(const char *text, uint16_t port, struct sockaddr_storage *out);

/* Sends without Nagle's delay, with CUBIC. A listener's connections inherit both. */
void stream_prepare(int fd);

/* --- serve.c ---------------------------------------------------------------------------------- */

struct stream_serve {
	const char *address;
	uint16_t port;
	uint32_t threads;
	bool drawn; /* or echo */
};

/* Serves until a signal ends the process. */
int stream_serve(const struct stream_serve *o);

/* --- ask.c ------------------------------------------------------------------------------------ */

enum stream_mode {
	STREAM_ECHO, /* requests have the drawn sizes, and so have their replies */
	STREAM_UP,   /* requests have them; replies have 16 bytes */
	STREAM_DOWN, /* replies have them; requests have 16 bytes */
};

#define STREAM_WATCHED_MAX 16

struct stream_ask {
	const char *address;
	uint16_t port;
	uint32_t connections, pipeline;
	uint64_t requests; /* in all; 0: as many as <seconds> take */
	double seconds;
	double warm_up_s;  /* before what is measured */
	uint32_t min, max; /* bytes, log-uniform */
	enum stream_mode mode;
	uint64_t seed;
	uint32_t limit_s;
	uint32_t n_watched;
	int watched[STREAM_WATCHED_MAX]; /* processes whose CPU time is reported */
};

/* Sends requests, checks replies, prints one JSON object. 0, or 1: something was wrong or lost. */
int stream_ask(const struct stream_ask *o);

/* --- relay.c ---------------------------------------------------------------------------------- */

struct stream_relay {
	const char *device[2];               /* [0]: the clients' side */
	double lose, reorder, copy, corrupt; /* per cent of the TCP packets */
	uint32_t delay_us;                   /* one way, all packets */
	uint32_t jitter_us;                  /* of those that are reordered */
	uint64_t seed;
};

/* Carries frames between two devices until SIGTERM; then prints what it did to them, as JSON. */
int stream_relay(const struct stream_relay *o);

/* --- flood.c ---------------------------------------------------------------------------------- */

struct stream_flood {
	const char *device;         /* frames go out of it */
	const char *mac;            /* of the server */
	const char *address, *from; /* IPv4: the server, and the first of the senders */
	uint16_t port;
	uint32_t senders; /* addresses; the ports are random */
	uint32_t rate;    /* SYNs per second; 0: as many as go */
	double seconds;   /* 0: until SIGTERM */
	uint64_t seed;
};

/* Sends SYNs from addresses that are not ours; then prints how many, as JSON. */
int stream_flood(const struct stream_flood *o);

/* --- hold.c ----------------------------------------------------------------------------------- */

enum stream_hold_what {
	STREAM_DRIP, /* begins a request of <size> bytes, and sends one of them per interval */
	STREAM_READ, /* sends a request of <size> bytes, and reads one of the reply per interval */
};

struct stream_hold {
	const char *address, *from; /* <from>: first of our addresses; NULL: the kernel's choice */
	uint16_t port;
	uint32_t senders; /* addresses, one after the other */
	uint32_t connections, size;
	uint32_t interval_ms;
	enum stream_hold_what what;
};

/*
 * Keeps connections open that take as long as they can, until SIGTERM; a connection that has ended,
 * or was told that its request has, begins anew with its next interval. Prints "ready" when all
 * have been open, and at the end how many there were, as JSON.
 */
int stream_hold(const struct stream_hold *o);

#endif
