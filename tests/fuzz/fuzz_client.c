/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client library (control/client) against a network and a peer that do whatever the input says:
 * any bytes, well-formed answers to any request, partial writes, errors, lost connections, and
 * time. The memory of a request is freed as soon as the library gives it back. What the client
 * writes must be whole frames of its framing, and every request must be over some time after its
 * deadline.
 *
 * The first three bytes are options; then one byte per step, and its arguments.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "doorbell_client.h"

#define FD       1000 /* of the one socket that there is at a time */
#define REQUESTS 64
#define INBOX    (1 << 16)
#define HEAD     24

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct world {
	bool running;
	int64_t now_us;
	int sockets;
	int connect_error; /* 0: connects; EINPROGRESS: when polled */
	size_t room;       /* bytes that the socket takes before EAGAIN */
	int send_error;
	int end; /* 0: open; 1: end of stream; else an errno */
	bool tcp;
	enum doorbell_framing framing;
	uint8_t inbox[INBOX];
	size_t in_from, in_to;
	uint16_t datagram[256]; /* lengths, in the order of <inbox> */
	uint32_t first_datagram, n_datagrams;
	/* The frame that the client is writing. */
	uint8_t head[HEAD];
	uint64_t got, body;
	uint64_t id[256]; /* of the requests sent last */
	uint8_t n_ids;
	struct doorbell_request *request[REQUESTS];
};
static struct world w;

static void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

/* --- what the client writes ----------------------------------------------------------------- */

static uint64_t be64(const uint8_t *at)
{
	uint64_t value = 0;

	for (int i = 0; i < 8; i++)
		value = value << 8 | at[i];
	return value;
}

/* A header of `tagged`: a request or a cancel, and nothing else. Returns the bytes behind it. */
static uint32_t check_tagged(const uint8_t *head)
{
	uint32_t last = (uint32_t)be64(head + 16);
	bool cancel = head[5] == 2;

	require(memcmp(head,
		       "\xdb"
		       "DBQ\1",
		       5) == 0 &&
			(head[5] == 1 || cancel),
		"a header");
	require(head[6] <= 4 && head[7] == 0 && be64(head + 8) != 0, "its fields");
	require(!cancel || (head[6] == 0 && be64(head + 16) == 0), "a cancel is bare");
	if (!cancel)
		w.id[w.n_ids++] = be64(head + 8);
	return last;
}

static uint32_t check_head(const uint8_t *head)
{
	uint32_t length = head[0] | (uint32_t)head[1] << 8 | (uint32_t)head[2] << 16 |
			  (uint32_t)head[3] << 24;

	if (w.framing == DOORBELL_TAGGED)
		return check_tagged(head);
	require(length > 0 && length <= 4096, "a length");
	return length;
}

/* All bytes of a request's body are 0x5a. */
static void check_stream(const uint8_t *at, size_t n)
{
	size_t head = w.framing == DOORBELL_TAGGED ? HEAD : 4;

	for (; n > 0; n--, at++) {
		if (w.body > 0) {
			require(*at == 0x5a, "bytes of a request");
			w.body--;
			continue;
		}
		w.head[w.got++] = *at;
		if (w.got < head)
			continue;
		w.got = 0;
		w.body = check_head(w.head);
	}
}

static void check_datagram(const uint8_t *at, size_t n)
{
	if (w.framing == DOORBELL_TAGGED) {
		require(n >= HEAD && check_tagged(at) == 0, "a datagram's header");
		at += HEAD, n -= HEAD;
	}
	for (size_t i = 0; i < n; i++)
		require(at[i] == 0x5a, "bytes of a request");
}

/* --- the network ---------------------------------------------------------------------------- */

int __wrap_socket(int domain, int type, int protocol);
int __wrap_connect(int fd, const struct sockaddr *to, socklen_t length);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t length);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *length);
int __wrap_poll(struct pollfd *fds, nfds_t n, int wait);
ssize_t __wrap_recv(int fd, void *at, size_t room, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags);
int __wrap_close(int fd);
int __real_close(int fd);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t);
int __real_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_getentropy(void *at, size_t n);

int __wrap_socket(int domain, int type, int protocol)
{
	require(w.sockets < 2, "sockets are leaked");
	w.sockets++;
	w.got = w.body = 0;
	w.in_from = w.in_to = w.n_datagrams = 0;
	w.end = 0;
	return FD;
}

int __wrap_connect(int fd, const struct sockaddr *to, socklen_t length)
{
	errno = w.connect_error;
	return w.connect_error == 0 ? 0 : -1;
}

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
	return 0;
}

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *length)
{
	*(int *)value = w.connect_error == EINPROGRESS ? 0 : w.connect_error;
	return 0;
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int wait)
{
	return w.room > 0; /* asked whether a connection is open */
}

static size_t take_in(void *at, size_t room, size_t length)
{
	size_t n = room < length ? room : length;

	memcpy(at, w.inbox + w.in_from, n);
	w.in_from += w.tcp ? n : length;
	return n;
}

ssize_t __wrap_recv(int fd, void *at, size_t room, int flags)
{
	if (w.tcp && w.in_from < w.in_to)
		return (ssize_t)take_in(at, room, w.in_to - w.in_from);
	if (!w.tcp && w.n_datagrams > 0) {
		w.n_datagrams--;
		return (ssize_t)take_in(at, room, w.datagram[w.first_datagram++ % 256]);
	}
	if (w.end == 1 && w.tcp)
		return 0;
	errno = w.end > 1 ? w.end : EAGAIN;
	if (!w.tcp)
		w.end = 0;
	return -1;
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags)
{
	uint8_t all[8192];
	size_t n = 0;

	require(fd == FD && (flags & MSG_NOSIGNAL), "how it sends");
	if (w.send_error != 0 || w.room == 0) {
		errno = w.send_error != 0 ? w.send_error : EAGAIN;
		if (!w.tcp)
			w.send_error = 0;
		return -1;
	}
	for (size_t i = 0; i < m->msg_iovlen; i++) {
		if (m->msg_iov[i].iov_len > 0)
			memcpy(all + n, m->msg_iov[i].iov_base, m->msg_iov[i].iov_len);
		n += m->msg_iov[i].iov_len;
	}
	require(n > 0, "an empty write");
	if (w.tcp && n > w.room)
		n = w.room;
	w.room -= w.tcp ? n : 0;
	if (w.tcp)
		check_stream(all, n);
	else
		check_datagram(all, n);
	return (ssize_t)n;
}

int __wrap_close(int fd)
{
	if (!w.running || fd != FD)
		return __real_close(fd);
	w.sockets--;
	return 0;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
	if (!w.running)
		return __real_clock_gettime(clock, t);
	*t = (struct timespec){.tv_sec = w.now_us / 1000000, .tv_nsec = w.now_us % 1000000 * 1000};
	return 0;
}

int __wrap_getentropy(void *at, size_t n)
{
	memset(at, 0xff, n); /* ids pass over 0 soon */
	return 0;
}

/* --- the peer ------------------------------------------------------------------------------- */

static void deliver(const uint8_t *at, size_t n)
{
	if (w.in_from == w.in_to && w.n_datagrams == 0)
		w.in_from = w.in_to = 0;
	if (w.in_to + n > INBOX || w.n_datagrams == 256)
		return;
	memcpy(w.inbox + w.in_to, at, n);
	w.in_to += n;
	if (!w.tcp)
		w.datagram[(w.first_datagram + w.n_datagrams++) % 256] = (uint16_t)n;
}

/* An answer to the request sent <back> before the last, with <n> bytes; or it claims 8 times as
 * many, and the rest may come as other bytes. */
static void deliver_answer(uint8_t back, uint8_t kind, uint8_t six, uint8_t chunk, size_t n,
			   bool claims)
{
	static uint8_t at[HEAD + 65536];
	uint64_t id = w.id[(uint8_t)(w.n_ids - 1 - back)];
	uint8_t *length = at + 20;
	size_t head = HEAD, claim = claims ? n * 8 : n;

	memset(at, 0, HEAD);
	if (w.framing == DOORBELL_LENGTH) {
		at[4] = kind == 4 ? six : 0;
		at[5] = kind == 3 && six == 1;
		n = kind == 4 ? 0 : n;
		claim = kind == 4 ? 0 : claim;
		at[0] = (uint8_t)claim, at[1] = (uint8_t)(claim >> 8),
		at[2] = (uint8_t)(claim >> 16);
		head = 8;
	} else if (kind == 4 && !w.tcp) {
		memcpy(at,
		       "\xdb"
		       "DBN\1",
		       5);
		at[5] = six;
		memset(at + 8, 0x5a, 8);
		head = 16, n = 0;
		for (int i = 0; i < 8 && w.framing == DOORBELL_TAGGED; i++)
			at[8 + i] = (uint8_t)(id >> (56 - 8 * i));
	} else {
		memcpy(at,
		       "\xdb"
		       "DBQ\1",
		       5);
		at[5] = kind, at[6] = six, at[19] = chunk;
		n = kind == 4 ? 0 : n;
		claim = kind == 4 ? 0 : claim;
		for (int i = 0; i < 8; i++)
			at[8 + i] = (uint8_t)(id >> (56 - 8 * i));
		if (w.tcp)
			length[1] = (uint8_t)(claim >> 16), length[2] = (uint8_t)(claim >> 8),
			length[3] = (uint8_t)claim;
	}
	deliver(at, head + n);
}

/* --- the caller ----------------------------------------------------------------------------- */

static void submit(struct doorbell_client *c, uint8_t length, uint8_t room, uint8_t flags)
{
	static const uint32_t deadlines[] = {0, 1, 50, 1000};
	struct doorbell_request *r;
	int at = 0;

	while (at < REQUESTS && w.request[at] != NULL)
		at++;
	if (at == REQUESTS)
		return;
	r = calloc(1, sizeof(*r));
	r->length = (size_t)length * 16 + 1;
	r->data = memset(malloc(r->length), 0x5a, r->length);
	r->reply_size = (size_t)room * room * 4;
	r->reply = malloc(r->reply_size + 1);
	r->deadline_ms = deadlines[flags & 3];
	r->retries = flags >> 2 & 3;
	r->idempotent = flags & 16;
	r->try_ms = flags & 32 ? 10 : 0;
	r->priority = flags >> 6;
	w.request[at] = r;
	r->context = &w.request[at];
	require(doorbell_client_submit(c, r) == 0, "a good request is refused");
}

static void release(struct doorbell_request *r)
{
	require(r->status != DOORBELL_PENDING, "over, and pending");
	require(r->tries <= r->retries + 1, "more tries than allowed");
	*(struct doorbell_request **)r->context = NULL;
	free((void *)(uintptr_t)r->data);
	free(r->reply);
	free(r);
}

static void release_finished(struct doorbell_client *c)
{
	struct doorbell_request *r;

	while ((r = doorbell_client_finished(c)) != NULL)
		release(r);
}

static void cancel(struct doorbell_client *c, uint8_t which)
{
	struct doorbell_request *r = w.request[which % REQUESTS];

	if (r == NULL || r->status != DOORBELL_PENDING)
		return;
	doorbell_client_cancel(c, r);
	require(r->status == DOORBELL_CANCELLED, "a cancel ends it");
	release(r);
}

/* One step; returns the bytes that it used. */
static size_t step(struct doorbell_client *c, const uint8_t *at, size_t n)
{
	static const int connects[] = {0, EINPROGRESS, ECONNREFUSED};
	static const int sends[] = {0, ECONNRESET, EMSGSIZE, ENOBUFS};
	size_t length;

	switch (at[0] % 10) {
	case 0:
		if (n < 4)
			return n;
		submit(c, at[1], at[2], at[3]);
		return 4;
	case 1:
		length = n < 2 ? 0 : (at[1] < n - 2 ? at[1] : n - 2);
		deliver(at + 2, length);
		return length + 2;
	case 2:
		if (n < 6)
			return n;
		deliver_answer(at[1], 3, at[2] & 1, at[3], at[4] | (size_t)(at[5] & 0x7f) << 8,
			       at[2] & 2);
		return 6;
	case 3:
		if (n < 3)
			return n;
		deliver_answer(at[1], 4, at[2], 0, 0, false);
		return 3;
	case 4:
		w.now_us += n < 2 ? 0 : (int64_t)at[1] * at[1] * 1000;
		return 2;
	case 5:
		w.room = n < 2 ? 0 : (size_t)at[1] * at[1];
		return 2;
	case 6:
		w.send_error = n < 2 ? 0 : sends[at[1] % 4];
		return 2;
	case 7:
		w.end = n < 2 ? 0 : (at[1] & 1 ? 1 : ECONNREFUSED);
		return 2;
	case 8:
		w.connect_error = n < 2 ? 0 : connects[at[1] % 3];
		return 2;
	default:
		if (n >= 2)
			cancel(c, at[1]);
		return 2;
	}
}

/* With a peer that says nothing more, all that is pending ends. */
static void run_out(struct doorbell_client *c)
{
	struct pollfd p;
	int wait;

	for (int i = 0; i < 20000; i++) {
		wait = doorbell_client_wants(c, &p);
		if (wait < 0)
			break;
		w.now_us += (int64_t)wait * 1000;
		doorbell_client_process(c);
		release_finished(c);
	}
	for (int i = 0; i < REQUESTS; i++)
		require(w.request[i] == NULL, "a request never ends");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct doorbell_options o = {.max_reply = 200000};
	struct doorbell_client *c;

	if (size < 3)
		return 0;
	w = (struct world){.running = true, .now_us = 1000000, .room = 1 << 20};
	w.tcp = data[0] & 1;
	w.framing = data[0] & 2 ? DOORBELL_TAGGED : (w.tcp ? DOORBELL_LENGTH : DOORBELL_DATAGRAM);
	o.protocol = w.tcp ? DOORBELL_TCP : DOORBELL_UDP;
	o.framing = w.framing;
	o.in_flight = data[1] % 9;
	o.silence_ms = data[2];
	c = doorbell_client_open("127.0.0.1:1", &o, NULL);
	require(c != NULL, "open");
	data += 3, size -= 3;
	while (size > 0) {
		size_t used = step(c, data, size);

		used = used < size ? used : size;
		data += used, size -= used;
		doorbell_client_process(c);
		release_finished(c);
	}
	run_out(c);
	doorbell_client_close(c);
	require(w.sockets == 0, "a socket stays open");
	w.running = false;
	return 0;
}
