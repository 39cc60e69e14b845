/* SPDX-License-Identifier: BSD-3-Clause */
#include "predictable/peer_connection.h"

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "runtime/clock.h"

#define ROOM       262144
#define PARTS      64
#define READS      16 /* of one connection in a row: others have their turn */
#define TIMEOUT_NS 10000000000

enum connection_kind { CONNECTION_LISTENER, CONNECTION_CLIENT, CONNECTION_WORKER };

/* Bytes that wait to be sent. */
struct out {
	struct out *next;
	const uint8_t *at;
	size_t left;
	void *owner;
};

struct connection {
	enum connection_kind kind;
	int fd;          /* -1: it has ended */
	uint32_t number; /* of its model or worker */
	uint32_t open;   /* requests that name it */
	bool writing;
	struct out *first, **last;
	struct connection *next_dead;
	/* a client's */
	uint8_t head[TAGGED_HEAD];
	size_t got; /* of the head */
	struct request *request;
	/* a worker's */
	struct wire_result result;
	struct reply *reply[WIRE_BATCH_MAX];
	size_t replied; /* bytes of the result's replies that have come */
};

static const uint8_t tagged_magic[5] = {0xdb, 0x44, 0x42, 0x51, 1};
enum { TAGGED_REQUEST = 1, TAGGED_REPLY = 3, TAGGED_NOTICE = 4 };

static void *connection_alloc(size_t size)
{
	void *at = malloc(size);

	if (at == NULL)
		err(1, "memory");
	return at;
}

static void connection_watch(const struct connections *k, struct connection *c, int how)
{
	struct epoll_event event = {.events = EPOLLIN | (c->writing ? EPOLLOUT : 0), .data.ptr = c};

	if (epoll_ctl(k->poll, how, c->fd, &event) != 0)
		err(1, "epoll");
}

static struct connection *connection_new(struct connections *k, enum connection_kind kind, int fd,
					 uint32_t number)
{
	struct connection *c = calloc(1, sizeof(*c));
	int on = 1;

	if (c == NULL || fd < 0)
		err(1, "connection");
	c->kind = kind;
	c->fd = fd;
	c->number = number;
	c->last = &c->first;
	if (kind != CONNECTION_LISTENER)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	connection_watch(k, c, EPOLL_CTL_ADD);
	return c;
}

void connections_open(struct connections *k)
{
	k->poll = epoll_create1(EPOLL_CLOEXEC);
	k->room = connection_alloc(ROOM);
	if (k->poll < 0)
		err(1, "epoll");
}

struct connection *connection_to(struct connections *k, uint32_t worker,
				 const struct endpoint_address *at)
{
	int fd = socket(at->socket.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (connect(fd, (const struct sockaddr *)&at->socket, at->length) != 0)
		err(1, "worker %u", worker);
	if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0)
		err(1, "worker %u", worker);
	return connection_new(k, CONNECTION_WORKER, fd, worker);
}

void connection_listen(struct connections *k, uint32_t model, uint32_t port, int backlog)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) != 0 || listen(fd, backlog) != 0)
		err(1, "port %u", port);
	connection_new(k, CONNECTION_LISTENER, fd, model);
}

/* --- ends ---------------------------------------------------------------------------------------
 */

void request_free(struct connections *k, struct request *r)
{
	k->held -= r->size;
	r->from->open--;
	free(r->bytes);
	free(r);
}

/* A client has gone: what it asked for runs, and is answered to nobody. */
static void connection_end(struct connections *k, struct connection *c)
{
	if (c->fd < 0)
		return;
	if (c->kind == CONNECTION_WORKER)
		errx(1, "worker %u has gone", c->number);
	close(c->fd);
	c->fd = -1;
	if (c->request != NULL)
		request_free(k, c->request);
	c->request = NULL;
	while (c->first != NULL) {
		struct out *out = c->first;

		c->first = out->next;
		free(out->owner);
		free(out);
	}
	c->next_dead = k->dead;
	k->dead = c;
}

void connections_sweep(struct connections *k)
{
	struct connection **at = &k->dead;

	while (*at != NULL) {
		struct connection *c = *at;

		if (c->open > 0) {
			at = &c->next_dead;
			continue;
		}
		*at = c->next_dead;
		free(c);
	}
}

/* --- sending ------------------------------------------------------------------------------------
 */

void connection_queue(struct connection *to, void *owner, const void *at, size_t length)
{
	struct out *out = connection_alloc(sizeof(*out));

	*out = (struct out){.at = at, .left = length, .owner = owner};
	*to->last = out;
	to->last = &out->next;
}

/* <sent> bytes have left. */
static void connection_sent(struct connection *c, size_t sent)
{
	while (c->first != NULL && sent >= c->first->left) {
		struct out *out = c->first;

		sent -= out->left;
		c->first = out->next;
		free(out->owner);
		free(out);
	}
	if (c->first == NULL) {
		c->last = &c->first;
		return;
	}
	c->first->at += sent;
	c->first->left -= sent;
}

void connection_flush(struct connections *k, struct connection *c)
{
	bool was = c->writing;

	while (c->fd >= 0 && c->first != NULL) {
		struct iovec part[PARTS];
		struct msghdr message = {.msg_iov = part};
		ssize_t sent;

		for (struct out *out = c->first; out != NULL && message.msg_iovlen < PARTS;
		     out = out->next)
			part[message.msg_iovlen++] =
				(struct iovec){(void *)(uintptr_t)out->at, out->left};
		sent = sendmsg(c->fd, &message, MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && errno == EAGAIN)
			break;
		if (sent < 0) {
			connection_end(k, c);
			return;
		}
		k->bytes_out += (uint64_t)sent;
		connection_sent(c, (size_t)sent);
	}
	c->writing = c->first != NULL;
	if (c->fd >= 0 && c->writing != was)
		connection_watch(k, c, EPOLL_CTL_MOD);
}

static void tagged_write(uint8_t *head, uint8_t kind, uint8_t code, const uint8_t *id,
			 uint32_t length)
{
	memset(head, 0, TAGGED_HEAD);
	memcpy(head, tagged_magic, sizeof(tagged_magic));
	head[5] = kind;
	head[6] = code;
	memcpy(head + 8, id, 8);
	length = htonl(length);
	memcpy(head + 20, &length, sizeof(length));
}

void connection_answer(struct connections *k, const struct request *r, struct reply *reply)
{
	if (r->from->fd < 0) {
		free(reply);
		return;
	}
	tagged_write(reply->bytes, TAGGED_REPLY, 0, r->id, reply->length);
	connection_queue(r->from, reply, reply->bytes, TAGGED_HEAD + reply->length);
	connection_flush(k, r->from);
}

void connection_notice(struct connections *k, const struct request *r, uint8_t code)
{
	uint8_t *head;

	if (r->from->fd < 0)
		return;
	head = connection_alloc(TAGGED_HEAD);
	tagged_write(head, TAGGED_NOTICE, code, r->id, 0);
	connection_queue(r->from, head, head, TAGGED_HEAD);
	connection_flush(k, r->from);
}

/* --- requests -----------------------------------------------------------------------------------
 */

static struct request *client_begin(struct connections *k, struct connection *c)
{
	struct request *r = connection_alloc(sizeof(*r));
	uint32_t size, deadline_us;

	memcpy(&deadline_us, c->head + 16, sizeof(deadline_us));
	memcpy(&size, c->head + 20, sizeof(size));
	size = ntohl(size);
	if (memcmp(c->head, tagged_magic, sizeof(tagged_magic)) != 0 ||
	    c->head[5] != TAGGED_REQUEST || size == 0 || size > k->max_request)
		errx(1, "a client sends no request");
	*r = (struct request){.from = c, .model = c->number, .size = size};
	memcpy(r->id, c->head + 8, sizeof(r->id));
	r->deadline_ns = clock_now_ns() + (deadline_us == 0 ? (uint64_t)TIMEOUT_NS
							    : ntohl(deadline_us) * UINT64_C(1000));
	r->bytes = connection_alloc(size);
	k->held += size;
	if (k->held > k->held_peak)
		k->held_peak = k->held;
	c->open++;
	return r;
}

/* More bytes of the request that is being read. */
static void client_advance(struct connections *k, struct connection *c, size_t n)
{
	struct request *r = c->request;

	r->got += (uint32_t)n;
	if (r->got < r->size)
		return;
	c->request = NULL;
	k->request(k->context, r);
}

static void client_feed(struct connections *k, struct connection *c, const uint8_t *at, size_t n)
{
	while (n > 0 && c->fd >= 0) {
		size_t part;

		if (c->request == NULL) {
			part = TAGGED_HEAD - c->got < n ? TAGGED_HEAD - c->got : n;
			memcpy(c->head + c->got, at, part);
			c->got += part;
			if (c->got == TAGGED_HEAD) {
				c->request = client_begin(k, c);
				c->got = 0;
			}
		} else {
			struct request *r = c->request;

			part = r->size - r->got < n ? r->size - r->got : n;
			memcpy(r->bytes + r->got, at, part);
			client_advance(k, c, part);
		}
		at += part;
		n -= part;
	}
}

/* Reads on: what is left of a large request goes to its place at once. */
static ssize_t client_read(struct connections *k, struct connection *c)
{
	struct request *r = c->request;
	ssize_t n;

	if (r != NULL) {
		n = recv(c->fd, r->bytes + r->got, r->size - r->got, 0);
		if (n > 0)
			client_advance(k, c, (size_t)n);
		return n;
	}
	n = recv(c->fd, k->room, ROOM, 0);
	if (n > 0)
		client_feed(k, c, k->room, (size_t)n);
	return n;
}

/* --- results ------------------------------------------------------------------------------------
 */

static void worker_begin_replies(struct connection *c)
{
	for (uint32_t i = 0; i < c->result.n; i++) {
		c->reply[i] =
			connection_alloc(sizeof(struct reply) + TAGGED_HEAD + c->result.length[i]);
		c->reply[i]->length = c->result.length[i];
	}
}

/* The parts of replies that have not come. */
static int worker_parts(struct connection *c, struct iovec *part)
{
	size_t skip = c->replied;
	int n = 0;

	for (uint32_t i = 0; i < c->result.n; i++) {
		size_t length = c->reply[i]->length, cut = skip < length ? skip : length;

		skip -= cut;
		if (cut < length)
			part[n++] = (struct iovec){c->reply[i]->bytes + TAGGED_HEAD + cut,
						   length - cut};
	}
	return n;
}

static ssize_t worker_read(struct connections *k, struct connection *c)
{
	struct iovec part[WIRE_BATCH_MAX];
	ssize_t n;
	int parts;

	if (c->got < sizeof(c->result)) {
		n = recv(c->fd, (uint8_t *)&c->result + c->got, sizeof(c->result) - c->got, 0);
		if (n <= 0)
			return n;
		c->got += (size_t)n;
		if (c->got == sizeof(c->result))
			worker_begin_replies(c);
		return n;
	}
	parts = worker_parts(c, part);
	n = readv(c->fd, part, parts);
	if (n <= 0)
		return n;
	c->replied += (size_t)n;
	if (worker_parts(c, part) > 0)
		return n;
	c->got = c->replied = 0;
	k->result(k->context, c->number, &c->result, c->reply);
	return n;
}

/* --- events -------------------------------------------------------------------------------------
 */

static void listener_accept(struct connections *k, const struct connection *c)
{
	int fd;

	while ((fd = accept4(c->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
		connection_new(k, CONNECTION_CLIENT, fd, c->number);
}

void connection_ready(struct connections *k, const struct epoll_event *event)
{
	struct connection *c = event->data.ptr;
	ssize_t n = 1;

	if (c->kind == CONNECTION_LISTENER) {
		listener_accept(k, c);
		return;
	}
	if (event->events & EPOLLOUT)
		connection_flush(k, c);
	for (int i = 0; i < READS && c->fd >= 0 && n > 0; i++) {
		n = c->kind == CONNECTION_CLIENT ? client_read(k, c) : worker_read(k, c);
		if (n > 0)
			k->bytes_in += (uint64_t)n;
	}
	if (c->fd >= 0 && (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)))
		connection_end(k, c);
}
