/* SPDX-License-Identifier: BSD-3-Clause */
/* A control server on a socket in a temporary folder; the test itself runs its loop. */
#ifndef CONTROL_FIXTURE_H
#define CONTROL_FIXTURE_H

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <event2/event.h>
#include <jansson.h>

#include "control_fake_lb.h"
#include "server.h"

struct fixture {
	char folder[64];
	char socket[108];
	char error[512];
	struct lb *lb;
	struct event_base *base;
	struct control_server *server;
};

/* Exists with AddressSanitizer only. Criterion does not look for leaks at the end of a test. */
int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

/* Prepares everything but the server, whose configuration may still be changed. */
static inline void control_fixture_prepare(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	fake_eal();
	snprintf(f->folder, sizeof(f->folder), "/tmp/doorbell-control-XXXXXX");
	cr_assert_not_null(mkdtemp(f->folder));
	snprintf(f->socket, sizeof(f->socket), "%s/run/control.sock", f->folder);
	f->lb = fake_lb_create();
	snprintf(fake_lb_config(f->lb)->control_socket,
		 sizeof(fake_lb_config(f->lb)->control_socket), "%s", f->socket);
	f->base = event_base_new();
}

/* fixture.server is NULL with fixture.error when it cannot start. */
static inline void control_fixture_start(struct fixture *f)
{
	control_fixture_prepare(f);
	f->server = control_server_create(f->lb, f->base, f->error, sizeof(f->error));
}

static inline void control_fixture_stop(struct fixture *f)
{
	char run[80];

	control_server_destroy(f->server);
	/* as lb/main.c does: a connection whose callback was due is freed by the loop only */
	event_base_loop(f->base, EVLOOP_NONBLOCK);
	event_base_free(f->base);
	fake_lb_destroy(f->lb);
	unlink(f->socket);
	snprintf(run, sizeof(run), "%s/run", f->folder);
	rmdir(run);
	rmdir(f->folder);
	if (__lsan_do_recoverable_leak_check)
		cr_assert_eq(__lsan_do_recoverable_leak_check(), 0);
}

static inline int fixture_connect_unix(const struct fixture *f)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", f->socket);
	cr_assert_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static inline int fixture_connect_agent(const struct fixture *f)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				      .sin_port = htons(control_server_agents_port(f->server))};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	cr_assert_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

/* Lets the server work until <fd> can be read or is closed. */
static inline void fixture_turn_until(struct fixture *f, int fd)
{
	struct pollfd poller = {.fd = fd, .events = POLLIN};

	for (unsigned int i = 0; i < 20000 && poll(&poller, 1, 1) == 0; i++)
		event_base_loop(f->base, EVLOOP_NONBLOCK);
	cr_assert(poller.revents, "nothing came in 20 s");
}

static inline void fixture_send(int fd, const char *line)
{
	cr_assert_eq(write(fd, line, strlen(line)), (ssize_t)strlen(line));
	cr_assert_eq(write(fd, "\n", 1), 1);
}

/* Returns the next line, without its end; "" at the end of the stream. The caller frees it. */
static inline char *fixture_line(struct fixture *f, int fd)
{
	size_t n = 0, size = 256;
	char *line = malloc(size);

	for (;;) {
		ssize_t got;

		fixture_turn_until(f, fd);
		got = read(fd, line + n, 1);
		if (got <= 0 || line[n] == '\n')
			break;
		if (++n == size)
			line = realloc(line, size *= 2);
	}
	line[n] = '\0';
	return line;
}

static inline void fixture_expect(struct fixture *f, int fd, const char *part)
{
	char *line = fixture_line(f, fd);

	cr_assert_not_null(strstr(line, part), "got '%.300s', not %s", line, part);
	free(line);
}

static inline void fixture_expect_end(struct fixture *f, int fd)
{
	char byte;

	fixture_turn_until(f, fd);
	cr_assert_leq(read(fd, &byte, 1), 0, "the connection is still open");
}

#endif
