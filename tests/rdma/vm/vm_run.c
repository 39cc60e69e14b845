/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "vm_exec.h"

/* Exit status when the machine does not exist or has gone. */
#define EXIT_NO_MACHINE 125

static uint8_t buffer[VM_EXEC_FRAME_MAX];

static int connect_to(const char *address)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(VM_EXEC_PORT)};
	struct timeval patience = {.tv_sec = 5}, none = {0};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (fd < 0 || inet_pton(AF_INET, address, &to.sin_addr) != 1 ||
	    connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &none, sizeof(none));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

/*
 * A machine that ends sends nothing on the connection, but the other end of its card, a tap device
 * here, loses its carrier. This opens a socket that reports such changes.
 */
static int links_open(void)
{
	struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd >= 0)
		bind(fd, (struct sockaddr *)&address, sizeof(address));
	return fd;
}

/* True if this change of a link is the end of the machine. */
static bool machine_ends(int links)
{
	struct {
		struct nlmsghdr header;
		struct ifinfomsg link;
		uint8_t rest[16384];
	} message;
	ssize_t n = recv(links, &message, sizeof(message), 0);

	return n >= (ssize_t)(sizeof(message.header) + sizeof(message.link)) &&
	       (message.header.nlmsg_type == RTM_NEWLINK ||
		message.header.nlmsg_type == RTM_DELLINK) &&
	       message.link.ifi_index == (int)if_nametoindex(VM_EXEC_CARD) &&
	       (message.link.ifi_flags & IFF_RUNNING) == 0;
}

/* Signals that would end this program go to the command. */
static int signals_open(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

static int signal_forward(int signals, int fd)
{
	struct signalfd_siginfo info;
	uint8_t number;

	if (read(signals, &info, sizeof(info)) != sizeof(info))
		return -1;
	number = info.ssi_signo;
	return frame_send(fd, FRAME_SIGNAL, &number, 1);
}

/* Returns -1 when the connection is over, -2 to go on, else the exit status. */
static int frame_take(int fd)
{
	uint32_t length;

	switch (frame_receive(fd, buffer, &length)) {
	case FRAME_OUTPUT:
		write_all(1, buffer, length);
		return -2;
	case FRAME_ERRORS:
		write_all(2, buffer, length);
		return -2;
	case FRAME_EXIT:
		return buffer[0];
	default:
		return -1;
	}
}

static int pump(int fd, int signals, int links)
{
	struct pollfd fds[] = {
		{.fd = fd, .events = POLLIN},
		{.fd = signals, .events = POLLIN},
		{.fd = 0, .events = POLLIN},
		{.fd = links, .events = POLLIN},
	};
	ssize_t n;
	int ret;

	for (;;) {
		if (poll(fds, 4, -1) < 0)
			return -1;
		if (fds[0].revents) {
			ret = frame_take(fd);
			if (ret != -2)
				return ret;
		}
		if (fds[3].revents && machine_ends(links))
			return -1;
		if (fds[1].revents && signal_forward(signals, fd) < 0)
			return -1;
		if (fds[2].revents) {
			n = read(0, buffer, sizeof(buffer));
			if (n <= 0)
				fds[2].fd = -1;
			/* A command that has ended does not read; its status is on the way. */
			if (frame_send(fd, FRAME_INPUT, buffer, n < 0 ? 0 : n) < 0)
				fds[2].fd = -1;
		}
	}
}

int vm_exec_run(const char *address, const char *command)
{
	int signals = signals_open(), links = links_open(), fd = connect_to(address), ret;

	if (fd < 0) {
		fprintf(stderr, "vm-exec: no machine answers at %s\n", address);
		return EXIT_NO_MACHINE;
	}
	if (strlen(command) > VM_EXEC_FRAME_MAX ||
	    frame_send(fd, FRAME_COMMAND, command, strlen(command)) < 0)
		return EXIT_NO_MACHINE;
	ret = pump(fd, signals, links);
	if (ret < 0)
		fprintf(stderr, "vm-exec: the machine at %s has gone\n", address);
	return ret < 0 ? EXIT_NO_MACHINE : ret;
}
