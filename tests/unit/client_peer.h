/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The other end of a client's sockets, played by the test itself: the client never blocks, so that
 * both ends turn in one thread. Waits end with an event, or fail the test after PATIENCE_MS.
 */
#ifndef CLIENT_PEER_H
#define CLIENT_PEER_H

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "doorbell_client.h"

#define PATIENCE_MS 20000
#define HEAD        24

struct peer {
	struct doorbell_client *client;
	int listener; /* UDP: the socket */
	int fd;       /* the connection; -1: none */
	char address[32];
	struct sockaddr_in from; /* UDP: of the last datagram */
};

static inline int64_t peer_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static inline void peer_open(struct peer *p, struct doorbell_options options)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(at);
	bool tcp = options.protocol == DOORBELL_TCP;
	char error[DOORBELL_ERROR_SIZE] = "";

	p->fd = -1;
	p->listener = socket(AF_INET, tcp ? SOCK_STREAM : SOCK_DGRAM, 0);
	cr_assert_eq(bind(p->listener, (struct sockaddr *)&at, sizeof(at)), 0);
	cr_assert(!tcp || listen(p->listener, 8) == 0);
	getsockname(p->listener, (struct sockaddr *)&at, &length);
	snprintf(p->address, sizeof(p->address), "127.0.0.1:%u", ntohs(at.sin_port));
	if (options.backoff_ms == 0)
		options.backoff_ms = 2;
	p->client = doorbell_client_open(p->address, &options, error);
	cr_assert_not_null(p->client, "%s", error);
}

static inline void peer_hang_up(struct peer *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
}

static inline void peer_close(struct peer *p)
{
	doorbell_client_close(p->client);
	peer_hang_up(p);
	close(p->listener);
}

/* Turn the client until <fd> can be read; with -1, for one event of the client's. */
static inline bool peer_turn(struct peer *p, int fd)
{
	struct pollfd both[2] = {{.fd = -1}, {.fd = fd, .events = POLLIN}};
	int wait = doorbell_client_wants(p->client, &both[0]);

	poll(both, 2, wait < 0 || wait > 100 ? 100 : wait);
	doorbell_client_process(p->client);
	return (both[1].revents & (POLLIN | POLLHUP | POLLERR)) != 0;
}

#define PEER_UNTIL(peer, condition)                                                                \
	do {                                                                                       \
		int64_t until = peer_now_ms() + PATIENCE_MS;                                       \
		while (!(condition)) {                                                             \
			cr_assert(peer_now_ms() < until, "waited in vain for " #condition);        \
			peer_turn(peer, -1);                                                       \
		}                                                                                  \
	} while (0)

static inline void peer_wait(struct peer *p, int fd)
{
	int64_t until = peer_now_ms() + PATIENCE_MS;

	while (!peer_turn(p, fd))
		cr_assert(peer_now_ms() < until, "waited in vain for the client to send");
}

static inline void peer_accept(struct peer *p)
{
	peer_hang_up(p);
	peer_wait(p, p->listener);
	p->fd = accept(p->listener, NULL, NULL);
	cr_assert(p->fd >= 0);
}

/* Take exactly <n> bytes of the stream. */
static inline void peer_take(struct peer *p, void *at, size_t n)
{
	uint8_t *to = at;

	for (ssize_t got; n > 0; n -= (size_t)got, to += got) {
		peer_wait(p, p->fd);
		got = recv(p->fd, to, n, 0);
		cr_assert(got > 0, "the client closed the connection: %s",
			  doorbell_client_error(p->client));
	}
}

static inline void peer_send(struct peer *p, const void *at, size_t n)
{
	cr_assert_eq(send(p->fd, at, n, MSG_NOSIGNAL), (ssize_t)n);
}

/* The client has closed the connection. */
static inline void peer_expect_end(struct peer *p)
{
	uint8_t rest[65536];

	do {
		peer_wait(p, p->fd);
	} while (recv(p->fd, rest, sizeof(rest), 0) > 0);
}

static inline size_t peer_take_datagram(struct peer *p, void *at, size_t room)
{
	socklen_t length = sizeof(p->from);
	ssize_t n;

	peer_wait(p, p->listener);
	n = recvfrom(p->listener, at, room, 0, (struct sockaddr *)&p->from, &length);
	cr_assert(n >= 0);
	return (size_t)n;
}

static inline void peer_send_datagram(struct peer *p, const void *at, size_t n)
{
	cr_assert_eq(sendto(p->listener, at, n, 0, (struct sockaddr *)&p->from, sizeof(p->from)),
		     (ssize_t)n);
}

/* --- bytes ---------------------------------------------------------------------------------- */

/* A header of `tagged`; <last> is the length in a stream. Returns HEAD. */
static inline size_t peer_head(uint8_t *at, uint8_t kind, uint8_t six, uint64_t id, uint32_t chunk,
			       uint32_t last)
{
	memcpy(at,
	       "\xdb"
	       "DBQ\1",
	       5);
	at[5] = kind;
	at[6] = six;
	at[7] = 0;
	id = htobe64(id);
	memcpy(at + 8, &id, 8);
	chunk = htobe32(chunk);
	memcpy(at + 16, &chunk, 4);
	last = htobe32(last);
	memcpy(at + 20, &last, 4);
	return HEAD;
}

static inline uint64_t peer_id(const uint8_t *at)
{
	uint64_t id;

	memcpy(&id, at + 8, 8);
	return be64toh(id);
}

static inline uint32_t peer_word(const uint8_t *at)
{
	uint32_t word;

	memcpy(&word, at, 4);
	return be32toh(word);
}

/* A chunk of a reply in a stream. */
static inline size_t peer_chunk(uint8_t *at, uint64_t id, uint32_t chunk, bool more,
				const char *text)
{
	size_t n = strlen(text);

	peer_head(at, 3, more, id, chunk, (uint32_t)n);
	memcpy(at + HEAD, text, n);
	return HEAD + n;
}

static inline size_t peer_answer(uint8_t *at, uint32_t status, const char *text)
{
	uint32_t words[2] = {htole32((uint32_t)strlen(text)), htole32(status)};

	memcpy(at, words, 8);
	memcpy(at + 8, text, strlen(text));
	return 8 + strlen(text);
}

static inline size_t peer_notice(uint8_t *at, uint8_t code, const void *first)
{
	memcpy(at,
	       "\xdb"
	       "DBN\1",
	       5);
	at[5] = code;
	at[6] = at[7] = 0;
	memcpy(at + 8, first, 8);
	return 16;
}

/* --- requests ------------------------------------------------------------------------------- */

struct ask {
	struct doorbell_request r;
	char reply[64];
};

static inline struct doorbell_request *ask_begin(struct peer *p, struct ask *a, const char *text)
{
	a->r.data = text;
	a->r.length = strlen(text);
	a->r.reply = a->reply;
	if (a->r.reply_size == 0)
		a->r.reply_size = sizeof(a->reply);
	cr_assert_eq(doorbell_client_submit(p->client, &a->r), 0);
	return &a->r;
}

static inline void ask_expect(struct peer *p, struct ask *a, const char *text)
{
	PEER_UNTIL(p, a->r.status != DOORBELL_PENDING);
	cr_expect_eq(a->r.status, DOORBELL_OK, "%s: %s", text, doorbell_client_text(a->r.status));
	cr_expect_eq(a->r.reply_length, strlen(text), "%zu bytes", a->r.reply_length);
	cr_expect_arr_eq(a->reply, text, strlen(text));
}

static inline void ask_expect_status(struct peer *p, struct ask *a, int status)
{
	PEER_UNTIL(p, a->r.status != DOORBELL_PENDING);
	cr_expect_eq(a->r.status, status, "%s, expected %s", doorbell_client_text(a->r.status),
		     doorbell_client_text(status));
}

#endif
