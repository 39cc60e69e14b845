/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <netinet/tcp.h>

#include "rig.h"

int peer_connect(const char *address, uint16_t port)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

	if (fd < 0 || inet_pton(AF_INET, address, &to.sin_addr) != 1 ||
	    connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		return -errno;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

/* While the peer works, its kernel may need answers from us, so the rig keeps polling. */
static void answer_receive(struct rig *rig)
{
	size_t n = 0;
	ssize_t got;

	do {
		got = recv(rig->control, rig->reply + n, sizeof(rig->reply) - 1 - n, MSG_DONTWAIT);
		if (got > 0)
			n += got;
		else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
			fprintf(stderr, "rxe-peer has gone\n");
			exit(1);
		} else
			rig_poll(rig);
	} while (n == 0 || rig->reply[n - 1] != '\n');
	rig->reply[n - 1] = '\0';
}

static void ask(struct rig *rig, const char *format, va_list args)
{
	char line[1 << 14];
	int n = vsnprintf(line, sizeof(line) - 1, format, args);

	line[n++] = '\n';
	if (send(rig->control, line, n, 0) != n) {
		perror("rxe-peer");
		exit(1);
	}
	answer_receive(rig);
}

const char *peer_ask(struct rig *rig, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	ask(rig, format, args);
	va_end(args);
	if (strncmp(rig->reply, "ok", 2) != 0)
		rig_fail(rig, "the peer, asked '%s': %s", format, rig->reply);
	return rig->reply + 2;
}

int peer_try(struct rig *rig, const char *format, ...)
{
	int error = 0;
	va_list args;

	va_start(args, format);
	ask(rig, format, args);
	va_end(args);
	sscanf(rig->reply, "error %d", &error);
	return error;
}

struct peer_completion peer_poll(struct rig *rig, struct rig_qp *qp, unsigned int ms)
{
	const char *reply = peer_ask(rig, "poll %u %u", qp->peer, ms);
	struct peer_completion c = {0};

	c.any = sscanf(reply, "%d %d %u %x %u", &c.status, &c.opcode, &c.flags, &c.imm, &c.bytes) ==
		5;
	return c;
}

void peer_expect(struct rig *rig, struct rig_qp *qp, int status)
{
	struct peer_completion c = peer_poll(rig, qp, RIG_PATIENCE_MS);

	RIG_EXPECT(rig, c.any, "no completion instead of status %d", status);
	RIG_EXPECT(rig, c.status == status, "completion status %d instead of %d", c.status, status);
}

bool peer_has(struct rig *rig, uint64_t va, uint32_t bytes, unsigned int seed)
{
	return strcmp(peer_ask(rig, "same %#lx %u %u", va, bytes, seed), " 1") == 0;
}

int peer_state(struct rig *rig, struct rig_qp *qp)
{
	return atoi(peer_ask(rig, "state %u", qp->peer));
}
