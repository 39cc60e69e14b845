/* SPDX-License-Identifier: BSD-3-Clause */
/* A UNIX socket on one side of a machine's wall for one on the other side: two relays, with TCP
 * between them. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <netinet/in.h>
#include <netinet/tcp.h>

#include "vm_exec.h"

union address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_un un;
};

/* Returns its length, or 0 if <text> is not an address. */
static socklen_t address_parse(union address *a, const char *text)
{
	const char *colon = strchr(text, ':');
	char host[INET_ADDRSTRLEN] = "";

	memset(a, 0, sizeof(*a));
	if (text[0] == '/' && strlen(text) < sizeof(a->un.sun_path)) {
		a->un.sun_family = AF_UNIX;
		memcpy(a->un.sun_path, text, strlen(text));
		return sizeof(a->un);
	}
	if (colon == NULL || colon - text >= (ptrdiff_t)sizeof(host))
		return 0;
	memcpy(host, text, colon - text);
	a->in.sin_family = AF_INET;
	a->in.sin_port = htons(atoi(colon + 1));
	return inet_pton(AF_INET, host, &a->in.sin_addr) == 1 ? sizeof(a->in) : 0;
}

/* Sends small packets at once. This fails on a UNIX socket, which has no such delay. */
static void hurry(int fd)
{
	int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static int listen_at(const char *text)
{
	union address a;
	socklen_t length = address_parse(&a, text);
	int fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || length == 0 || bind(fd, &a.any, length) < 0 || listen(fd, 64) < 0)
		return -1;
	return fd;
}

static int connect_to(const char *text)
{
	union address a;
	socklen_t length = address_parse(&a, text);
	int fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || length == 0 || connect(fd, &a.any, length) < 0)
		return -1;
	hurry(fd);
	return fd;
}

/* Returns whether more may come. */
static bool pass(int from, int to)
{
	static uint8_t bytes[65536];
	ssize_t n = read(from, bytes, sizeof(bytes));

	if (n > 0 && write_all(to, bytes, n) == 0)
		return true;
	shutdown(to, SHUT_WR);
	return false;
}

/* Passes bytes until <to> has closed: it may still answer a client that sends no more. */
static void relay(int from, int to)
{
	struct pollfd fds[] = {{.fd = from, .events = POLLIN}, {.fd = to, .events = POLLIN}};

	for (;;) {
		if (poll(fds, 2, -1) < 0)
			return;
		if (fds[0].revents && !pass(from, to))
			fds[0].fd = -1;
		if (fds[1].revents && !pass(to, from))
			return;
	}
}

int vm_exec_relay(const char *from, const char *to)
{
	int fd = listen_at(from), client, server;

	if (fd < 0) {
		fprintf(stderr, "vm-exec: cannot listen at %s: %s\n", from, strerror(errno));
		return 1;
	}
	signal(SIGCHLD, SIG_IGN); /* finished children need no wait() */
	printf("vm-exec: listening at %s\n", from);
	fflush(stdout);
	for (;;) {
		client = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		if (client < 0)
			continue;
		if (fork() == 0) {
			/* A machine that is cut off does not close connections. */
			prctl(PR_SET_PDEATHSIG, SIGTERM);
			hurry(client);
			server = connect_to(to);
			if (server >= 0)
				relay(client, server);
			_exit(0);
		}
		close(client);
	}
}
