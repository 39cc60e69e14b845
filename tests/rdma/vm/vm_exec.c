/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vm-exec serve               in the guest, as its process 1
 * vm-exec run ADDRESS COMMAND on the host: COMMAND's output, errors and exit status become its own
 * vm-exec relay FROM TO       either: forwards connections to FROM to TO
 */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "vm_exec.h"

int write_all(int fd, const void *bytes, size_t length)
{
	const uint8_t *at = bytes;
	ssize_t n;

	while (length > 0) {
		n = write(fd, at, length);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		at += n;
		length -= n;
	}
	return 0;
}

static int read_all(int fd, void *bytes, size_t length)
{
	uint8_t *at = bytes;
	ssize_t n;

	while (length > 0) {
		n = read(fd, at, length);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		at += n;
		length -= n;
	}
	return 0;
}

int frame_send(int fd, enum frame_type type, const void *bytes, size_t length)
{
	struct frame_header header = {.type = type, .length = htonl(length)};

	if (write_all(fd, &header, sizeof(header)) < 0)
		return -1;
	return write_all(fd, bytes, length);
}

int frame_receive(int fd, void *bytes, uint32_t *length)
{
	struct frame_header header;

	if (read_all(fd, &header, sizeof(header)) < 0)
		return -1;
	*length = ntohl(header.length);
	if (*length > VM_EXEC_FRAME_MAX || read_all(fd, bytes, *length) < 0)
		return -1;
	return header.type;
}

int main(int argc, char **argv)
{
	signal(SIGPIPE, SIG_IGN);
	if (argc == 2 && strcmp(argv[1], "serve") == 0)
		return vm_exec_serve();
	if (argc == 4 && strcmp(argv[1], "run") == 0)
		return vm_exec_run(argv[2], argv[3]);
	if (argc == 4 && strcmp(argv[1], "relay") == 0)
		return vm_exec_relay(argv[2], argv[3]);
	fprintf(stderr, "usage: vm-exec serve | run ADDRESS COMMAND | relay FROM TO\n");
	return 2;
}
