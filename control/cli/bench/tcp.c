/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernel sockets by TCP: a connection per flow, requests one behind the other on it. The engine
 * sees requests and replies as it does those of UDP; each reply names its request, by the id of
 * framing `tagged` (packet/request.h), or by its place in the order of framing `length`
 * (framing/stream.h). A connection that ends is opened again by the next request.
 */
#include "cli/bench/transport.h"

#include "runtime/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define EVENTS         64
#define ROOM           (256 << 10) /* bytes read at a time */
#define QUEUED_MAX     (1 << 20)   /* bytes that wait for a socket, beside one request */
#define CONNECT_S      5
#define LENGTH_HEAD    4 /* of a request; an answer's is 8 */
#define LENGTH_MORE    256
#define TAGGED_HEAD    24
#define TAGGED_REQUEST 1
#define TAGGED_REPLY   3
#define TAGGED_NOTICE  4

static const uint8_t tagged_begin[5] = {0xdb, 'D', 'B', 'Q', 1};

struct bytes {
	uint8_t *at;
	size_t from, to, room;
};

struct ids {
	uint64_t *at; /* ring */
	size_t first, n, room;
};

/* A frame whose bytes are not all here. */
struct frame {
	uint8_t head[TAGGED_HEAD];
	uint32_t got;  /* bytes of the head */
	uint32_t left; /* bytes of the body that are missing */
	uint8_t notice;
	bool more;
	uint64_t id;
};

struct connection {
	int fd;       /* -1: closed */
	bool writing; /* waits for room in the socket */
	struct bytes out;
	struct ids asked; /* framing length: requests without an answer */
	struct frame frame;
	struct bytes part[2]; /* of a reply; the other one's may be with the engine */
	unsigned int part_now;
};

struct transport {
	int epoll;
	const struct mix *mix;
	bool tagged;
	uint32_t flows;
	struct connection *connection;
	struct epoll_event ready[EVENTS];
	int n_ready, at_ready;
	uint8_t *room; /* what was read last, of connection <reading> */
	uint32_t reading;
	size_t room_from, room_to;
};

/* --- memory -----------------------------------------------------------------------------------
 */

/* Room for <n> more. False: no memory. */
static bool bytes_grow(struct bytes *b, size_t n)
{
	size_t room = b->room != 0 ? b->room : 4096;
	uint8_t *at;

	if (b->from > 0 && b->to + n > b->room) {
		memmove(b->at, b->at + b->from, b->to - b->from);
		b->to -= b->from;
		b->from = 0;
	}
	while (room < b->to + n)
		room *= 2;
	if (room == b->room)
		return true;
	at = realloc(b->at, room);
	if (at == NULL)
		return false;
	b->at = at;
	b->room = room;
	return true;
}

static bool bytes_add(struct bytes *b, const void *bytes, size_t n)
{
	if (!bytes_grow(b, n))
		return false;
	memcpy(b->at + b->to, bytes, n);
	b->to += n;
	return true;
}

static bool ids_add(struct ids *ids, uint64_t id)
{
	if (ids->n == ids->room) {
		size_t room = ids->room != 0 ? 2 * ids->room : 16;
		uint64_t *at = malloc(room * sizeof(*at));

		if (at == NULL)
			return false;
		for (size_t i = 0; i < ids->n; i++)
			at[i] = ids->at[(ids->first + i) % ids->room];
		free(ids->at);
		*ids = (struct ids){at, 0, ids->n, room};
	}
	ids->at[(ids->first + ids->n++) % ids->room] = id;
	return true;
}

static bool ids_take(struct ids *ids, uint64_t *id)
{
	if (ids->n == 0)
		return false;
	*id = ids->at[ids->first];
	ids->first = (ids->first + 1) % ids->room;
	ids->n--;
	return true;
}

/* --- connections ------------------------------------------------------------------------------
 */

/* Its requests without an answer are lost when their time is up. */
static void connection_end(struct transport *t, uint32_t flow)
{
	struct connection *c = &t->connection[flow];

	if (c->fd < 0)
		return;
	close(c->fd);
	c->fd = -1;
	c->writing = false;
	c->out.from = c->out.to = 0;
	c->asked.n = 0;
	c->frame = (struct frame){0};
	c->part[c->part_now].to = 0;
	if (t->reading == flow)
		t->room_from = t->room_to;
}

static int connection_watch(struct transport *t, uint32_t flow, int how)
{
	struct connection *c = &t->connection[flow];
	struct epoll_event event = {.events = EPOLLIN | (c->writing ? EPOLLOUT : 0),
				    .data.u32 = flow};

	return epoll_ctl(t->epoll, how, c->fd, &event) == 0 ? 0 : -errno;
}

/* Begins to connect. 0 or -errno. */
static int connection_open(struct transport *t, uint32_t flow)
{
	const struct endpoint_address *to = &t->mix->target[flow % t->mix->n_targets].to;
	struct connection *c = &t->connection[flow];
	int on = 1;

	c->fd = socket(to->socket.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		return -errno;
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	c->writing = true;
	if (connect(c->fd, (const struct sockaddr *)&to->socket, to->length) != 0 &&
	    errno != EINPROGRESS)
		return -errno;
	return connection_watch(t, flow, EPOLL_CTL_ADD);
}

/* Writes what waits. Returns 0 or -errno, after which the connection is closed. */
static int connection_flush(struct transport *t, uint32_t flow)
{
	struct connection *c = &t->connection[flow];
	bool was = c->writing;
	ssize_t sent;

	while (c->out.from < c->out.to) {
		sent = send(c->fd, c->out.at + c->out.from, c->out.to - c->out.from, MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && errno != EAGAIN && errno != ENOTCONN) {
			int error = errno;

			connection_end(t, flow);
			return -error;
		}
		if (sent < 0)
			break;
		c->out.from += (size_t)sent;
	}
	if (c->out.from == c->out.to)
		c->out.from = c->out.to = 0;
	c->writing = c->out.to > 0;
	return c->writing == was ? 0 : connection_watch(t, flow, EPOLL_CTL_MOD);
}

/* --- opening ----------------------------------------------------------------------------------
 */

static void tcp_close(struct transport *t)
{
	for (uint32_t i = 0; i < t->flows && t->connection != NULL; i++) {
		struct connection *c = &t->connection[i];

		connection_end(t, i);
		free(c->out.at);
		free(c->asked.at);
		free(c->part[0].at);
		free(c->part[1].at);
	}
	if (t->epoll >= 0)
		close(t->epoll);
	free(t->connection);
	free(t->room);
	free(t);
}

/* Waits until all connections are open. 0, or -errno of one that is not. */
static int tcp_wait_open(struct transport *t)
{
	uint64_t end = clock_now_ms() + 1000 * CONNECT_S;
	uint32_t open = 0;

	while (open < t->flows && clock_now_ms() < end) {
		int n = epoll_wait(t->epoll, t->ready, EVENTS, 1000);

		for (int i = 0; i < n; i++) {
			uint32_t flow = t->ready[i].data.u32;
			struct connection *c = &t->connection[flow];
			int error = 0;
			socklen_t size = sizeof(error);

			getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &size);
			if (error != 0)
				return -error;
			open += c->writing;
			c->writing = false;
			connection_watch(t, flow, EPOLL_CTL_MOD);
		}
	}
	return open == t->flows ? 0 : -ETIMEDOUT;
}

static struct transport *tcp_open(const struct transport_params *params, char *error, size_t size)
{
	struct transport *t = calloc(1, sizeof(*t));
	uint32_t flow;
	int ret = 0;

	if (t == NULL)
		goto no_memory;
	*t = (struct transport){.mix = params->mix, .tagged = params->tagged};
	transport_raise_limit();
	t->epoll = epoll_create1(EPOLL_CLOEXEC);
	t->connection = calloc(params->flows, sizeof(*t->connection));
	t->room = malloc(ROOM);
	if (t->epoll < 0 || t->connection == NULL || t->room == NULL)
		goto no_memory;
	t->flows = params->flows;
	for (flow = 0; flow < t->flows; flow++)
		t->connection[flow].fd = -1;
	for (flow = 0; flow < t->flows && ret == 0; flow++)
		ret = connection_open(t, flow);
	if (ret == 0)
		ret = tcp_wait_open(t);
	if (ret == 0)
		return t;
	snprintf(error, size, "no connection to %s: %s%s",
		 t->mix->target[(flow - 1) % t->mix->n_targets].name, strerror(-ret),
		 ret == -EMFILE ? "; give fewer --flows, or raise `ulimit -n`" : "");
	tcp_close(t);
	return NULL;

no_memory:
	snprintf(error, size, "no memory for %u connections", params->flows);
	if (t != NULL)
		tcp_close(t);
	return NULL;
}

/* --- requests ---------------------------------------------------------------------------------
 */

/* us until the deadline; 1 if it has passed, as 0 is none. */
static uint32_t tcp_left_us(uint64_t deadline_ns)
{
	uint64_t now = clock_now_ns();

	return deadline_ns >= now + 1000 ? (uint32_t)((deadline_ns - now) / 1000) : 1;
}

static uint32_t tcp_write_head(const struct transport *t, const struct transport_datagram *d,
			       uint8_t *head)
{
	uint32_t length = d->length;

	if (!t->tagged) {
		for (int i = 0; i < LENGTH_HEAD; i++)
			head[i] = (uint8_t)(length >> 8 * i);
		return LENGTH_HEAD;
	}
	memset(head, 0, TAGGED_HEAD);
	memcpy(head, tagged_begin, sizeof(tagged_begin));
	head[5] = TAGGED_REQUEST;
	memcpy(head + 8, d->bytes, 8);
	if (d->deadline_ns != 0) {
		uint32_t left = htonl(tcp_left_us(d->deadline_ns));

		memcpy(head + 16, &left, sizeof(left));
	}
	length = htonl(length);
	memcpy(head + 20, &length, sizeof(length));
	return TAGGED_HEAD;
}

static uint64_t tcp_id_of(const uint8_t *bytes)
{
	uint64_t id = 0;

	for (int i = 7; i >= 0; i--)
		id = id << 8 | bytes[i];
	return id;
}

/* Returns 1; 0: no room now; or -errno. */
static int tcp_send_one(struct transport *t, const struct transport_datagram *d,
			uint64_t *unreachable)
{
	struct connection *c = &t->connection[d->flow];
	uint8_t head[TAGGED_HEAD];
	uint32_t size;

	if (c->fd < 0 && connection_open(t, d->flow) < 0) {
		connection_end(t, d->flow);
		(*unreachable)++;
		return 1; /* counted as sent; it is lost when its time is up */
	}
	if (c->out.to - c->out.from > QUEUED_MAX)
		return 0;
	size = tcp_write_head(t, d, head);
	if (!bytes_add(&c->out, head, size) || !bytes_add(&c->out, d->bytes, d->length) ||
	    (!t->tagged && !ids_add(&c->asked, tcp_id_of(d->bytes))))
		return -ENOMEM;
	return 1;
}

static int tcp_send(struct transport *t, const struct transport_datagram *datagram, unsigned int n,
		    uint64_t *unreachable)
{
	unsigned int done;
	int ret = 1;

	for (done = 0; done < n; done++) {
		ret = tcp_send_one(t, &datagram[done], unreachable);
		if (ret <= 0)
			break;
		/* Requests of one flow in a row go by one call. */
		if (done + 1 < n && datagram[done + 1].flow == datagram[done].flow)
			continue;
		if (t->connection[datagram[done].flow].fd >= 0 &&
		    connection_flush(t, datagram[done].flow) < 0)
			(*unreachable)++;
	}
	return done > 0 || ret >= 0 ? (int)done : ret;
}

/* --- replies ----------------------------------------------------------------------------------
 */

static bool tcp_read_length(struct connection *c, struct frame *f)
{
	uint32_t status = 0;

	f->left = 0;
	for (int i = 3; i >= 0; i--) {
		f->left = f->left << 8 | f->head[i];
		status = status << 8 | f->head[4 + i];
	}
	f->more = status == LENGTH_MORE;
	f->notice = f->more ? 0 : (uint8_t)status;
	return status <= LENGTH_MORE && (f->more || ids_take(&c->asked, &f->id));
}

static bool tcp_read_tagged(struct frame *f)
{
	memcpy(&f->left, f->head + 20, sizeof(f->left));
	f->left = ntohl(f->left);
	f->id = tcp_id_of(f->head + 8);
	f->more = f->head[5] == TAGGED_REPLY && f->head[6] != 0;
	f->notice = f->head[5] == TAGGED_NOTICE ? f->head[6] : 0;
	return memcmp(f->head, tagged_begin, sizeof(tagged_begin)) == 0 &&
	       (f->head[5] == TAGGED_REPLY || f->head[5] == TAGGED_NOTICE);
}

/* Takes the bytes of a frame's head. False: it is none. */
static bool tcp_take_head(struct transport *t, struct connection *c)
{
	uint32_t size = t->tagged ? TAGGED_HEAD : 2 * LENGTH_HEAD;
	struct frame *f = &c->frame;
	size_t part = t->room_to - t->room_from;

	if (part > size - f->got)
		part = size - f->got;
	memcpy(f->head + f->got, t->room + t->room_from, part);
	t->room_from += part;
	f->got += (uint32_t)part;
	return f->got < size || (t->tagged ? tcp_read_tagged(f) : tcp_read_length(c, f));
}

static void tcp_deliver(struct transport *t, const struct frame *f, uint8_t *bytes, size_t length,
			struct transport_datagram *out)
{
	*out = (struct transport_datagram){
		.flow = t->reading,
		.length = (uint32_t)length,
		.bytes = bytes,
		.named = true,
		.notice = f->notice,
		.id = f->id,
	};
}

/* Takes the bytes of a frame's body. Returns 1 when <out> is a reply; 0; or -ENOMEM. */
static int tcp_take_body(struct transport *t, struct connection *c, struct transport_datagram *out)
{
	struct bytes *part = &c->part[c->part_now];
	struct frame *f = &c->frame;
	size_t here = t->room_to - t->room_from;
	uint8_t *at = t->room + t->room_from;

	if (here > f->left)
		here = f->left;
	t->room_from += here;
	f->left -= (uint32_t)here;
	if (f->left == 0)
		f->got = 0;
	if (f->left == 0 && !f->more && part->to == 0) {
		tcp_deliver(t, f, at, here, out);
		return 1;
	}
	if (!bytes_add(part, at, here))
		return -ENOMEM;
	if (f->left > 0 || f->more)
		return 0;
	tcp_deliver(t, f, part->at, part->to, out);
	c->part_now ^= 1;
	c->part[c->part_now].to = 0;
	return 1;
}

/* Cuts what was read into replies. Returns how many, or -errno. */
static int tcp_cut(struct transport *t, struct transport_datagram *datagram, unsigned int n,
		   uint64_t *unreachable)
{
	struct connection *c = &t->connection[t->reading];
	uint32_t size = t->tagged ? TAGGED_HEAD : 2 * LENGTH_HEAD;
	unsigned int cut = 0, parts = 0;

	/* A reply in pieces stays with the engine until the next call: one at a time. */
	while (cut < n && parts == 0 && t->room_from < t->room_to) {
		int ret;

		if (c->frame.got < size && !tcp_take_head(t, c)) {
			(*unreachable)++;
			connection_end(t, t->reading);
			break;
		}
		if (c->frame.got < size)
			break;
		parts = c->part[c->part_now].to > 0;
		ret = tcp_take_body(t, c, &datagram[cut]);
		if (ret < 0)
			return ret;
		parts = parts && ret > 0;
		cut += (unsigned int)ret;
	}
	return (int)cut;
}

static void tcp_read(struct transport *t, const struct epoll_event *event, uint64_t *unreachable)
{
	struct connection *c = &t->connection[event->data.u32];
	ssize_t got;

	t->reading = event->data.u32;
	t->room_from = t->room_to = 0;
	if (c->fd < 0)
		return;
	if (event->events & EPOLLOUT && connection_flush(t, t->reading) < 0) {
		(*unreachable)++;
		return;
	}
	got = recv(c->fd, t->room, ROOM, 0);
	if (got > 0) {
		t->room_to = (size_t)got;
	} else if (got == 0 || (errno != EAGAIN && errno != EINTR && errno != ENOTCONN)) {
		(*unreachable)++;
		connection_end(t, t->reading);
	}
}

static int tcp_receive(struct transport *t, struct transport_datagram *datagram, unsigned int n,
		       uint64_t wait_ns, uint64_t *unreachable)
{
	struct timespec wait = {.tv_sec = (time_t)(wait_ns / 1000000000),
				.tv_nsec = (long)(wait_ns % 1000000000)};
	int got = tcp_cut(t, datagram, n, unreachable);

	for (int pass = 0; got == 0 && pass < 2; pass++) {
		while (got == 0 && t->at_ready < t->n_ready) {
			tcp_read(t, &t->ready[t->at_ready++], unreachable);
			got = tcp_cut(t, datagram, n, unreachable);
		}
		if (got != 0 || pass == 1)
			break;
		t->at_ready = 0;
		t->n_ready = epoll_pwait2(t->epoll, t->ready, EVENTS, &wait, NULL);
		if (t->n_ready < 0) {
			t->n_ready = 0;
			return errno == EINTR ? 0 : -errno;
		}
	}
	return got;
}

const struct transport_ops transport_tcp = {
	.open = tcp_open,
	.close = tcp_close,
	.send = tcp_send,
	.receive = tcp_receive,
	.names = true,
};
