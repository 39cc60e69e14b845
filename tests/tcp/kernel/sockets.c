/* SPDX-License-Identifier: BSD-3-Clause */
#include "sockets.h"

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "exchange.h"
#include "lossy.h"

#define CHUNK 65536

static socklen_t parse_address(const char *text, uint16_t port, struct sockaddr_storage *out)
{
	struct sockaddr_in *four = (struct sockaddr_in *)out;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)out;

	memset(out, 0, sizeof(*out));
	if (inet_pton(AF_INET, text, &four->sin_addr) == 1) {
		four->sin_family = AF_INET;
		four->sin_port = htons(port);
		return sizeof(*four);
	}
	if (inet_pton(AF_INET6, text, &six->sin6_addr) != 1)
		errx(1, "%s: no address", text);
	six->sin6_family = AF_INET6;
	six->sin6_port = htons(port);
	return sizeof(*six);
}

/* The same congestion control on all machines. A namespace may not be allowed to choose: then its
 * default runs. */
static void choose_congestion(int fd)
{
	static const char name[] = "cubic";

	if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, sizeof(name) - 1) != 0)
		warn("congestion control %s", name);
}

/* --- server -------------------------------------------------------------------------------------
 */

struct served {
	int fd;
	struct exchange e;
	uint64_t sent;
	bool ended;
};

static void served_close(struct served *v)
{
	close(v->fd);
	free(v);
}

/* Returns false when the connection is over. */
static bool served_run(struct served *v)
{
	static uint8_t bytes[CHUNK];
	ssize_t n;

	/* Takes as many requests as there is room to remember. */
	while (!v->ended && v->e.n < EXCHANGE_OPEN / 2 &&
	       (n = recv(v->fd, bytes, sizeof(bytes), 0)) >= 0) {
		v->ended = n == 0;
		exchange_take(&v->e, bytes, (uint32_t)n);
		if (v->e.wrong)
			return false;
	}
	while (v->sent < v->e.queued) {
		uint32_t part = v->e.queued - v->sent < CHUNK ? v->e.queued - v->sent : CHUNK;

		exchange_give(&v->e, v->sent, bytes, part);
		n = send(v->fd, bytes, part, MSG_NOSIGNAL);
		if (n < 0)
			return errno == EAGAIN;
		v->sent += (uint64_t)n;
		exchange_forget(&v->e, v->sent);
	}
	return !v->ended;
}

void sockets_serve(const char *address, uint16_t port)
{
	struct sockaddr_storage at;
	socklen_t length = parse_address(address, port, &at);
	int on = 1, listener = socket(at.ss_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
	int poll = epoll_create1(0);
	struct epoll_event events[64], event = {.events = EPOLLIN};

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	choose_congestion(listener);
	if (bind(listener, (struct sockaddr *)&at, length) != 0 || listen(listener, 1024) != 0)
		err(1, "%s", address);
	epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event);
	puts("ready");
	fflush(stdout);
	for (;;) {
		int n = epoll_wait(poll, events, 64, -1);

		for (int i = 0; i < n; i++) {
			struct served *v = events[i].data.ptr;

			if (v != NULL) {
				if (!served_run(v))
					served_close(v);
				continue;
			}
			v = calloc(1, sizeof(*v));
			v->fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
			setsockopt(v->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
			event.events = EPOLLIN | EPOLLOUT | EPOLLET;
			event.data.ptr = v;
			if (v->fd < 0 || epoll_ctl(poll, EPOLL_CTL_ADD, v->fd, &event) != 0)
				free(v);
		}
	}
}

/* --- client -------------------------------------------------------------------------------------
 */

struct asked {
	uint64_t seed;
	uint32_t up, down;
};

struct asking {
	int fd;
	bool connected, over;
	struct asked open[EXCHANGE_OPEN]; /* oldest first */
	uint32_t first, n;
	uint32_t sent_up; /* of the newest: head and bytes */
	bool sending;
	uint32_t got_down; /* of the oldest */
	uint64_t moved_us; /* when a byte last moved, or when no request was open */
};

struct client {
	const struct sockets_load *load;
	struct sockets_result *result;
	uint64_t random, asked;
	int poll;
	struct sockaddr_storage at;
	socklen_t at_length;
	struct asking *asking;
	unsigned int alive;
};

static uint32_t draw_size(struct client *c)
{
	double low = log(c->load->min), high = log((double)c->load->max + 1), u;

	c->random = c->random * 6364136223846793005u + 1442695040888963407u;
	u = (double)(c->random >> 11) / (double)(UINT64_C(1) << 53);
	return (uint32_t)exp(low + (high - low) * u);
}

static void connect_to(struct client *c, struct asking *a)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = a};
	int on = 1;

	memset(a, 0, sizeof(*a));
	a->fd = socket(c->at.ss_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
	setsockopt(a->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	choose_congestion(a->fd);
	a->moved_us = lossy_now_us();
	if (connect(a->fd, (struct sockaddr *)&c->at, c->at_length) != 0 && errno != EINPROGRESS)
		err(1, "connect");
	epoll_ctl(c->poll, EPOLL_CTL_ADD, a->fd, &event);
}

static void note_stall(struct client *c, struct asking *a)
{
	uint64_t now = lossy_now_us();

	if (a->n > 0 && (double)(now - a->moved_us) / 1e3 > c->result->longest_stall_ms)
		c->result->longest_stall_ms = (double)(now - a->moved_us) / 1e3;
	a->moved_us = now;
}

static bool begin_request(struct client *c, struct asking *a)
{
	const struct sockets_load *load = c->load;
	uint32_t size;

	if (c->asked == load->requests || a->n == load->pipeline ||
	    (load->reconnect && a->n + a->got_down > 0))
		return false;
	if (a->n == 0)
		a->moved_us = lossy_now_us();
	size = draw_size(c);
	a->open[(a->first + a->n++) % EXCHANGE_OPEN] =
		(struct asked){load->seed + c->asked++ * 0x9e3779b97f4a7c15, load->down ? 1 : size,
			       load->up ? 1 : size};
	a->sent_up = 0;
	a->sending = true;
	return true;
}

/* Sends while the socket takes it. False: the connection failed. */
static bool ask_more(struct client *c, struct asking *a)
{
	static uint8_t bytes[CHUNK + EXCHANGE_HEAD];

	while (a->sending || begin_request(c, a)) {
		const struct asked *q = &a->open[(a->first + a->n - 1) % EXCHANGE_OPEN];
		struct exchange_head head = {q->up, q->down, q->seed};
		uint32_t part = 0, left = EXCHANGE_HEAD + q->up - a->sent_up;
		ssize_t n;

		if (a->sent_up < EXCHANGE_HEAD) {
			part = EXCHANGE_HEAD - a->sent_up;
			memcpy(bytes, (uint8_t *)&head + a->sent_up, part);
		}
		left = left - part < CHUNK ? left - part : CHUNK;
		exchange_fill(q->seed, a->sent_up + part - EXCHANGE_HEAD, bytes + part, left);
		n = send(a->fd, bytes, part + left, MSG_NOSIGNAL);
		if (n < 0)
			return errno == EAGAIN || errno == ENOTCONN;
		note_stall(c, a);
		a->sent_up += (uint32_t)n;
		c->result->bytes_up += (uint64_t)n;
		a->sending = a->sent_up < EXCHANGE_HEAD + q->up;
	}
	return true;
}

static bool take_reply(struct client *c, struct asking *a, const uint8_t *at, uint32_t n)
{
	while (n > 0) {
		const struct asked *q = &a->open[a->first];
		uint32_t part;

		if (a->n == 0)
			return false;
		part = q->down - a->got_down < n ? q->down - a->got_down : n;
		if (exchange_compare(~q->seed, a->got_down, at, part) != part)
			return false;
		a->got_down += part;
		at += part;
		n -= part;
		if (a->got_down == q->down) {
			c->result->answered++;
			a->first = (a->first + 1) % EXCHANGE_OPEN;
			a->n--;
			a->got_down = 0;
		}
	}
	return true;
}

static void note_options(struct client *c, const struct asking *a)
{
	struct tcp_info info = {0};
	socklen_t length = sizeof(info);

	getsockopt(a->fd, IPPROTO_TCP, TCP_INFO, &info, &length);
	c->result->sack |= info.tcpi_options & TCPI_OPT_SACK;
	c->result->timestamps |= info.tcpi_options & TCPI_OPT_TIMESTAMPS;
	c->result->scaling |= info.tcpi_options & TCPI_OPT_WSCALE;
	c->result->retransmits += info.tcpi_total_retrans;
}

static void close_one(struct client *c, struct asking *a)
{
	note_options(c, a);
	close(a->fd);
	a->over = true;
	c->alive--;
	if (c->load->reconnect && c->asked < c->load->requests) {
		connect_to(c, a);
		c->alive++;
	}
}

static void run_one(struct client *c, struct asking *a)
{
	static uint8_t bytes[CHUNK];
	bool good = true;
	ssize_t n;

	while (good && (n = recv(a->fd, bytes, sizeof(bytes), 0)) > 0) {
		note_stall(c, a);
		c->result->bytes_down += (uint64_t)n;
		good = take_reply(c, a, bytes, (uint32_t)n);
		c->result->wrong += !good;
	}
	if (good && (n == 0 || (n < 0 && errno != EAGAIN && errno != ENOTCONN))) {
		fprintf(stderr, "a connection ended with %u open: %s\n", a->n,
			n == 0 ? "closed" : strerror(errno));
		good = false;
		c->result->failed++;
	}
	good = good && ask_more(c, a);
	if (!good || (a->n == 0 && (c->load->reconnect || c->asked == c->load->requests)))
		close_one(c, a);
}

int sockets_ask(const struct sockets_load *load, struct sockets_result *result)
{
	struct client c = {.load = load, .result = result, .random = load->seed};
	uint64_t began = lossy_now_us(), now;
	struct epoll_event events[64];

	*result = (struct sockets_result){0};
	c.at_length = parse_address(load->address, load->port, &c.at);
	c.poll = epoll_create1(0);
	c.asking = calloc(load->connections, sizeof(*c.asking));
	c.alive = load->connections;
	for (unsigned int i = 0; i < load->connections; i++)
		connect_to(&c, &c.asking[i]);
	while (c.alive > 0 && (now = lossy_now_us()) < began + load->limit_s * UINT64_C(1000000)) {
		int n = epoll_wait(c.poll, events, 64, 1000);

		for (int i = 0; i < n; i++)
			if (!((struct asking *)events[i].data.ptr)->over)
				run_one(&c, events[i].data.ptr);
	}
	result->seconds = (double)(lossy_now_us() - began) / 1e6;
	for (unsigned int i = 0; i < load->connections; i++) {
		if (c.asking[i].over)
			continue;
		note_stall(&c, &c.asking[i]);
		fprintf(stderr, "connection %u: %u open, %u of %u sent, %u received\n", i,
			c.asking[i].n, c.asking[i].sent_up,
			c.asking[i]
				.open[(c.asking[i].first + c.asking[i].n - 1) % EXCHANGE_OPEN]
				.up,
			c.asking[i].got_down);
		close(c.asking[i].fd);
	}
	free(c.asking);
	close(c.poll);
	return result->answered != load->requests || result->wrong + result->failed > 0;
}
