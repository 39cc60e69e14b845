/* SPDX-License-Identifier: BSD-3-Clause */
#include <err.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "exchange.h"
#include "stream.h"

#define READ_B      65536       /* the least room that a read gets */
#define BACKLOG_B   (64u << 20) /* bytes of replies of a connection; beyond, nothing is read */
#define EVENTS      64
#define CONNECTIONS 4096

/* Bytes [from, to) of a growing buffer. */
struct buffer {
	uint8_t *at;
	size_t from, to, size;
};

struct served {
	int fd;
	bool blocked; /* EPOLLOUT is waited for */
	struct buffer in, out;
};

static void buffer_reserve(struct buffer *b, size_t n)
{
	if (b->from > 0 && (b->from == b->to || b->size - b->to < n)) {
		memmove(b->at, b->at + b->from, b->to - b->from);
		b->to -= b->from;
		b->from = 0;
	}
	if (b->size - b->to >= n)
		return;
	b->size = b->to + n > 2 * b->size ? b->to + n : 2 * b->size;
	b->at = realloc(b->at, b->size);
	if (b->at == NULL)
		err(1, "memory");
}

static void served_reply(struct served *v, const uint8_t *request, uint32_t length, bool drawn)
{
	struct stream_head head = {.wanted = length};
	uint32_t front[2];

	if (drawn) {
		if (length < sizeof(head))
			errx(1, "a request of %u bytes has no head", length);
		memcpy(&head, request, sizeof(head));
	}
	front[0] = head.wanted;
	front[1] = 0;
	buffer_reserve(&v->out, sizeof(front) + head.wanted);
	memcpy(v->out.at + v->out.to, front, sizeof(front));
	v->out.to += sizeof(front);
	if (drawn)
		exchange_fill(stream_hash(0, request, length), 0, v->out.at + v->out.to,
			      head.wanted);
	else
		memcpy(v->out.at + v->out.to, request, length);
	v->out.to += head.wanted;
}

/* Answers the requests that are whole. */
static void served_answer(struct served *v, bool drawn)
{
	struct buffer *in = &v->in;
	uint32_t length;

	while (in->to - in->from >= STREAM_REQUEST_HEAD) {
		memcpy(&length, in->at + in->from, sizeof(length));
		if (length > STREAM_SIZE_MAX)
			errx(1, "a request of %u bytes", length);
		if (in->to - in->from < STREAM_REQUEST_HEAD + (size_t)length) {
			buffer_reserve(in, STREAM_REQUEST_HEAD + (size_t)length);
			return;
		}
		served_reply(v, in->at + in->from + STREAM_REQUEST_HEAD, length, drawn);
		in->from += STREAM_REQUEST_HEAD + (size_t)length;
	}
}

/* Sends what there is. False: the connection is over. */
static bool served_send(struct served *v, int poll)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLOUT, .data.ptr = v};
	ssize_t n;

	while (v->out.from < v->out.to) {
		n = send(v->fd, v->out.at + v->out.from, v->out.to - v->out.from, MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN)
			return false;
		if (n < 0)
			break;
		v->out.from += (size_t)n;
	}
	if (v->blocked != (v->out.from < v->out.to)) {
		v->blocked = !v->blocked;
		event.events = v->blocked ? EPOLLOUT : EPOLLIN;
		/* A client that does not read is not read from beyond BACKLOG_B. */
		if (v->blocked && v->out.to - v->out.from < BACKLOG_B)
			event.events |= EPOLLIN;
		epoll_ctl(poll, EPOLL_CTL_MOD, v->fd, &event);
	}
	return true;
}

/* False: the connection is over. */
static bool served_run(struct served *v, int poll, uint32_t events, bool drawn)
{
	ssize_t n;

	if ((events & ~EPOLLOUT) != 0) {
		buffer_reserve(&v->in, READ_B);
		n = recv(v->fd, v->in.at + v->in.to, v->in.size - v->in.to, 0);
		if (n == 0 || (n < 0 && errno != EAGAIN))
			return false;
		v->in.to += n > 0 ? (size_t)n : 0;
		served_answer(v, drawn);
	}
	return served_send(v, poll);
}

static void served_accept(int poll, int listener)
{
	struct served *v = calloc(1, sizeof(*v));
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = v};

	if (v == NULL)
		err(1, "memory");
	v->fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
	if (v->fd < 0) {
		free(v);
		return;
	}
	if (epoll_ctl(poll, EPOLL_CTL_ADD, v->fd, &event) != 0)
		err(1, "epoll_ctl");
}

static void served_close(struct served *v)
{
	close(v->fd);
	free(v->in.at);
	free(v->out.at);
	free(v);
}

static int serve_listen(const struct stream_serve *o)
{
	struct sockaddr_storage at;
	socklen_t length = stream_address(o->address, o->port, &at);
	int on = 1, fd = socket(at.ss_family, SOCK_STREAM | SOCK_NONBLOCK, 0);

	stream_prepare(fd);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&at, length) != 0 || listen(fd, CONNECTIONS) != 0)
		err(1, "%s", o->address);
	return fd;
}

static void *serve_thread(void *options)
{
	const struct stream_serve *o = options;
	struct epoll_event events[EVENTS], event = {.events = EPOLLIN};
	int poll = epoll_create1(0), listener = serve_listen(o);

	epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event);
	for (;;) {
		int n = epoll_wait(poll, events, EVENTS, -1);

		for (int i = 0; i < n; i++) {
			struct served *v = events[i].data.ptr;

			if (v == NULL)
				served_accept(poll, listener);
			else if (!served_run(v, poll, events[i].events, o->drawn))
				served_close(v);
		}
	}
	return NULL;
}

int stream_serve(const struct stream_serve *o)
{
	struct stream_serve shared = *o;
	pthread_t thread;

	for (uint32_t i = 1; i < o->threads; i++)
		if (pthread_create(&thread, NULL, serve_thread, &shared) != 0)
			err(1, "thread");
	serve_thread(&shared);
	return 0;
}
