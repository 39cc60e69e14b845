/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rte_ethdev.h>

#include "common/wire_child.h"

#define CHILDREN_MAX 2

static const char *role = "bench";
/* This process's children; a child starts with none. */
static pid_t children[CHILDREN_MAX];

void wire_name(const char *name)
{
	role = name;
}

/* The next children need the memory that these have. */
static void kill_children(void)
{
	for (unsigned int i = 0; i < CHILDREN_MAX; i++) {
		if (children[i] == 0)
			continue;
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
	}
}

void wire_die(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fprintf(stderr, "%s: ", role);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
	kill_children();
	_exit(EXIT_FAILURE);
}

static void remember(pid_t pid)
{
	unsigned int i = 0;

	while (i < CHILDREN_MAX && children[i] != 0)
		i++;
	if (i == CHILDREN_MAX)
		wire_die("too many processes");
	children[i] = pid;
}

void wire_child_start(struct wire_child *c, const char *name,
		      void (*run)(const void *argument, int socket), const void *argument)
{
	int pair[2];

	c->name = name;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		wire_die("socketpair: %s", strerror(errno));
	fflush(stdout);
	c->pid = fork();
	if (c->pid < 0)
		wire_die("fork: %s", strerror(errno));
	if (c->pid == 0) {
		role = name;
		memset(children, 0, sizeof(children));
		/* The child must not outlive a parent that is interrupted. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(pair[0]);
		run(argument, pair[1]);
		_exit(EXIT_SUCCESS);
	}
	remember(c->pid);
	close(pair[1]);
	c->socket = pair[0];
}

void wire_child_let_go(const struct wire_child *c)
{
	for (unsigned int i = 0; i < CHILDREN_MAX; i++)
		if (children[i] == c->pid)
			children[i] = 0;
}

void wire_child_end(const struct wire_child *c)
{
	int status;

	wire_child_let_go(c);
	if (waitpid(c->pid, &status, 0) != c->pid || status != 0)
		wire_die("%s ended badly", c->name);
	close(c->socket);
}

void wire_wait_for_link(uint16_t port)
{
	struct rte_eth_link link = {0};

	for (unsigned int ms = 0; ms < WIRE_LINK_MS; ms++) {
		if (rte_eth_link_get_nowait(port, &link) == 0 && link.link_status)
			return;
		poll(NULL, 0, 1);
	}
	wire_die("port %u does not connect", port);
}

uint64_t wire_cpu_ns(int clock)
{
	struct timespec t = {0};

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}
