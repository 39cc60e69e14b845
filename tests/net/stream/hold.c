/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections that take as long as they can: each does one small step per interval, all of them
 * evenly spread over it.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "stream.h"

#define PART_B      65536
#define READ_ROOM_B 4096 /* of a reader's socket: what the kernel takes for it is small */
#define STEP_US     1000

struct held {
	int fd;        /* -1: not yet, or over */
	bool opened;   /* counted for "ready" */
	uint32_t sent; /* bytes of the request, with its length in front */
	uint32_t got;  /* of the reply */
};

struct hold {
	const struct stream_hold *o;
	struct held *held;
	uint32_t opened, refused; /* <opened>: connections that have been open */
	uint64_t begun, ended, bytes;
};

static volatile sig_atomic_t hold_ending;

static void hold_on_signal(int signal)
{
	hold_ending = 1;
}

static void hold_bind(const struct hold *h, int fd, uint32_t number)
{
	struct sockaddr_storage at;
	socklen_t length = stream_address(h->o->from, 0, &at);
	struct sockaddr_in *four = (struct sockaddr_in *)&at;

	if (at.ss_family != AF_INET)
		errx(2, "%s: no IPv4 address", h->o->from);
	four->sin_addr.s_addr = htonl(ntohl(four->sin_addr.s_addr) + number % h->o->senders);
	if (bind(fd, (struct sockaddr *)&at, length) != 0)
		err(1, "%s", inet_ntoa(four->sin_addr));
}

static void hold_connect(struct hold *h, struct held *c, uint32_t number)
{
	struct sockaddr_storage at;
	socklen_t length = stream_address(h->o->address, h->o->port, &at);
	struct linger now = {.l_onoff = 1};
	int room = READ_ROOM_B;

	c->fd = socket(at.ss_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (c->fd < 0)
		err(1, "socket");
	stream_prepare(c->fd);
	setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	if (h->o->what == STREAM_READ)
		setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	if (h->o->from != NULL)
		hold_bind(h, c->fd, number);
	if (connect(c->fd, (struct sockaddr *)&at, length) != 0 && errno != EINPROGRESS)
		err(1, "connect");
	c->sent = c->got = 0;
	h->begun++;
}

static void hold_end(struct hold *h, struct held *c)
{
	close(c->fd);
	c->fd = -1;
	h->ended++;
}

/* Sends up to <most> bytes of the request. False: the connection has ended. */
static bool hold_send(struct hold *h, struct held *c, uint32_t most)
{
	static uint8_t bytes[PART_B];
	uint32_t all = h->o->size + STREAM_REQUEST_HEAD, n = all - c->sent;
	ssize_t sent;

	memcpy(bytes, &h->o->size, STREAM_REQUEST_HEAD);
	n = n < most ? n : most;
	n = n < PART_B ? n : PART_B;
	sent = send(c->fd, bytes + (c->sent < STREAM_REQUEST_HEAD ? c->sent : STREAM_REQUEST_HEAD),
		    n < PART_B - STREAM_REQUEST_HEAD ? n : PART_B - STREAM_REQUEST_HEAD,
		    MSG_NOSIGNAL);
	if (sent < 0)
		return errno == EAGAIN || errno == ENOTCONN;
	c->sent += (uint32_t)sent;
	h->bytes += (uint64_t)sent;
	return true;
}

/* Reads up to <most> bytes. False: the connection has ended, or its request has. */
static bool hold_read(struct hold *h, struct held *c, uint32_t most)
{
	uint8_t bytes[STREAM_REPLY_HEAD];
	ssize_t n = recv(c->fd, bytes, most, 0);

	if (n < 0)
		return errno == EAGAIN || errno == ENOTCONN;
	c->got += (uint32_t)n;
	/* A notice: no other answer comes to a request that drips. */
	if (n > 0 && h->o->what == STREAM_DRIP) {
		h->refused++;
		return false;
	}
	return n > 0;
}

/* One interval of a connection. */
static void hold_step(struct hold *h, struct held *c, uint32_t number)
{
	bool goes_on;

	if (c->fd < 0)
		return hold_connect(h, c, number);
	if (h->o->what == STREAM_DRIP)
		goes_on = hold_read(h, c, STREAM_REPLY_HEAD) &&
			  hold_send(h, c, c->sent == 0 ? STREAM_REQUEST_HEAD : 1);
	else
		goes_on = hold_send(h, c, UINT32_MAX) && hold_read(h, c, 1);
	if (c->sent > 0 && !c->opened) {
		c->opened = true;
		if (++h->opened == h->o->connections) {
			puts("ready");
			fflush(stdout);
		}
	}
	if (!goes_on)
		hold_end(h, c);
}

/* Requests that readers have begun go on as the socket takes them. */
static void hold_send_more(struct hold *h)
{
	for (uint32_t i = 0; i < h->o->connections; i++) {
		struct held *c = &h->held[i];

		if (c->fd >= 0 && c->sent > 0 && c->sent < h->o->size + STREAM_REQUEST_HEAD &&
		    !hold_send(h, c, UINT32_MAX))
			hold_end(h, c);
	}
}

static void hold_print(const struct hold *h)
{
	uint32_t open = 0;

	for (uint32_t i = 0; i < h->o->connections; i++)
		open += h->held[i].fd >= 0 && h->held[i].sent > 0;
	printf("{\"open\": %u, \"begun\": %lu, \"ended\": %lu, \"refused\": %u, \"bytes\": %lu}\n",
	       open, (unsigned long)h->begun, (unsigned long)h->ended, h->refused,
	       (unsigned long)h->bytes);
}

int stream_hold(const struct stream_hold *o)
{
	const struct timespec pause = {.tv_nsec = STEP_US * 1000};
	uint64_t began = stream_now_us(), steps = 0;
	struct hold h = {.o = o};

	h.held = calloc(o->connections, sizeof(*h.held));
	if (h.held == NULL || o->address == NULL)
		errx(2, "hold needs --address, and memory");
	for (uint32_t i = 0; i < o->connections; i++)
		h.held[i].fd = -1;
	signal(SIGTERM, hold_on_signal);
	while (!hold_ending) {
		uint64_t due = (stream_now_us() - began) * o->connections /
			       (o->interval_ms * UINT64_C(1000));

		/* Steps that this process had no CPU for are left out. */
		if (due - steps > o->connections)
			steps = due - o->connections;
		for (; steps < due && !hold_ending; steps++)
			hold_step(&h, &h.held[steps % o->connections],
				  (uint32_t)(steps % o->connections));
		if (o->what == STREAM_READ)
			hold_send_more(&h);
		nanosleep(&pause, NULL);
	}
	hold_print(&h);
	return 0;
}
