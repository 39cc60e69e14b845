/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A server of HTTP/1.1 for the bench kserve-peers, as fast as sockets allow: it reads each
 * request's body, and sends the same bytes for each. What it knows of a head it remembers, as a
 * proxy sends the same one again.
 *
 *   bench-http-respond ADDRESS PORT FILE THREADS     FILE: a response, head and body
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define BUFFER   65536
#define HEAD_MAX 2048
#define EVENTS   256

struct connection {
	int fd;
	bool closes;   /* the client wants no more */
	uint64_t body; /* bytes of it that are to come */
	size_t unsent; /* bytes of responses that the socket did not take */
	uint32_t got;  /* bytes of <buffer> */
	char buffer[BUFFER];
};

struct server {
	int listener, epoll;
	/* the head that came last */
	uint32_t head_length;
	uint64_t head_body;
	char head[HEAD_MAX];
};

static const char *response;
static size_t response_length;
static struct sockaddr_in address = {.sin_family = AF_INET};

static void die(const char *what)
{
	fprintf(stderr, "bench-http-respond: %s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

/* Content-Length of a head that ends with an empty line, 0 if it has none. */
static uint64_t content_length(const char *head, const char *end)
{
	static const char name[] = "content-length:";
	const char *at = head;

	while ((at = memchr(at, '\n', end - at)) != NULL) {
		at++;
		if (end - at > (ptrdiff_t)sizeof(name) &&
		    strncasecmp(at, name, sizeof(name) - 1) == 0)
			return strtoull(at + sizeof(name) - 1, NULL, 10);
	}
	return 0;
}

/* Reads a head from <at> on. Returns its length; 0: more is to come. */
static uint32_t read_head(struct server *s, const char *at, uint32_t n, uint64_t *body)
{
	const char *end;

	if (s->head_length > 0 && n >= s->head_length && memcmp(at, s->head, s->head_length) == 0) {
		*body = s->head_body;
		return s->head_length;
	}
	end = memmem(at, n, "\r\n\r\n", 4);
	if (end == NULL)
		return 0;
	*body = content_length(at, end + 2);
	n = (uint32_t)(end + 4 - at);
	if (n <= HEAD_MAX) {
		memcpy(s->head, at, n);
		s->head_length = n;
		s->head_body = *body;
	}
	return n;
}

/* Sends what is due, and waits for room if there is none. False: the connection is over. */
static bool send_due(const struct server *s, struct connection *c)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLOUT, .data.ptr = c};

	while (c->unsent > 0) {
		/* The end of a response first. */
		size_t n = c->unsent % response_length == 0 ? response_length
							    : c->unsent % response_length;
		ssize_t sent = send(c->fd, response + response_length - n, n, MSG_NOSIGNAL);

		if (sent < 0)
			return errno == EAGAIN &&
			       epoll_ctl(s->epoll, EPOLL_CTL_MOD, c->fd, &event) == 0;
		c->unsent -= sent;
	}
	return !c->closes || c->body > 0;
}

/* Reads what is in the buffer; a request is due for an answer when its last byte was read. */
static void take(struct server *s, struct connection *c)
{
	uint32_t at = 0;

	while (at < c->got) {
		uint64_t body = 0;
		uint32_t n;

		if (c->body > 0) {
			n = c->got - at < c->body ? c->got - at : (uint32_t)c->body;
			at += n;
			c->body -= n;
			c->unsent += c->body == 0 ? response_length : 0;
			continue;
		}
		n = read_head(s, c->buffer + at, c->got - at, &body);
		if (n == 0)
			break;
		c->closes = memmem(c->buffer + at, n, "\r\nConnection: close\r\n", 21) != NULL;
		at += n;
		c->body = body;
		c->unsent += body == 0 ? response_length : 0;
	}
	memmove(c->buffer, c->buffer + at, c->got - at);
	c->got -= at;
}

static bool serve(struct server *s, struct connection *c, uint32_t events)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
	ssize_t n;

	if ((events & EPOLLOUT) != 0) {
		epoll_ctl(s->epoll, EPOLL_CTL_MOD, c->fd, &event);
		if (!send_due(s, c))
			return false;
	}
	if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0)
		return true;
	n = recv(c->fd, c->buffer + c->got, sizeof(c->buffer) - c->got, 0);
	if (n == 0 || (n < 0 && errno != EAGAIN))
		return false;
	if (n < 0)
		return true;
	c->got += (uint32_t)n;
	take(s, c);
	return c->got < sizeof(c->buffer) && send_due(s, c);
}

static void welcome(struct server *s)
{
	struct epoll_event event = {.events = EPOLLIN};
	struct connection *c;
	int fd, on = 1;

	while ((fd = accept4(s->listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		c = malloc(sizeof(*c));
		if (c == NULL)
			die("malloc");
		c->fd = fd;
		c->closes = false;
		c->body = 0;
		c->unsent = 0;
		c->got = 0;
		event.data.ptr = c;
		if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event) < 0)
			die("epoll_ctl");
	}
}

static void *run(void *arg)
{
	struct epoll_event event = {.events = EPOLLIN}, events[EVENTS];
	struct server s = {.epoll = epoll_create1(0)};
	int on = 1;

	(void)arg;
	s.listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (s.listener < 0 || s.epoll < 0)
		die("socket");
	setsockopt(s.listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	setsockopt(s.listener, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
	if (bind(s.listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(s.listener, 1024) < 0 ||
	    epoll_ctl(s.epoll, EPOLL_CTL_ADD, s.listener, &event) < 0)
		die("listen");
	for (;;) {
		int n = epoll_wait(s.epoll, events, EVENTS, -1);

		for (int i = 0; i < n; i++) {
			struct connection *c = events[i].data.ptr;

			if (c == NULL) {
				welcome(&s);
			} else if (!serve(&s, c, events[i].events)) {
				close(c->fd);
				free(c);
			}
		}
	}
	return NULL;
}

static void read_response(const char *path)
{
	FILE *f = fopen(path, "rb");
	char *at;

	if (f == NULL || fseek(f, 0, SEEK_END) != 0)
		die(path);
	response_length = ftell(f);
	rewind(f);
	response = at = malloc(response_length);
	if (at == NULL || response_length == 0 ||
	    fread(at, 1, response_length, f) != response_length)
		die(path);
	fclose(f);
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc != 5 || inet_pton(AF_INET, argv[1], &address.sin_addr) != 1) {
		fputs("bench-http-respond ADDRESS PORT FILE THREADS\n", stderr);
		return 2;
	}
	address.sin_port = htons((uint16_t)atoi(argv[2]));
	read_response(argv[3]);
	for (int i = 1; i < atoi(argv[4]); i++)
		if (pthread_create(&thread, NULL, run, NULL) != 0)
			die("pthread_create");
	run(NULL);
}
