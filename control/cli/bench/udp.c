/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernel sockets: one connected UDP socket per flow, bursts by sendmmsg() and recvmmsg(). */
#include "cli/bench/transport.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SOCKET_BUFFER (4 << 20) /* bytes asked of the kernel, which may give less */
#define EVENTS        64
#define ROOM          65536 /* bytes; one datagram */
#define SEND_ATTEMPTS 3

struct transport {
	int epoll;
	uint32_t flows;
	int *fd;
	struct epoll_event ready[EVENTS];
	int n_ready, at_ready; /* sockets that may have more to read */
	uint8_t *room;         /* a burst of datagrams */
};

/* Errors that report the state of the network or the peer, not a wrong call. */
static bool is_unreachable(int error)
{
	return error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH ||
	       error == EHOSTDOWN || error == EPROTO;
}

static int flow_open(struct transport *t, uint32_t flow, const struct mix_target *target)
{
	const struct endpoint_address *to = &target->to;
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = flow};
	int buffer = SOCKET_BUFFER;
	int fd = socket(to->socket.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	t->fd[flow] = fd;
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
	if (connect(fd, (const struct sockaddr *)&to->socket, to->length) != 0 ||
	    epoll_ctl(t->epoll, EPOLL_CTL_ADD, fd, &event) != 0)
		return -errno;
	return 0;
}

static void udp_close(struct transport *t)
{
	for (uint32_t i = 0; i < t->flows; i++)
		if (t->fd[i] >= 0)
			close(t->fd[i]);
	if (t->epoll >= 0)
		close(t->epoll);
	free(t->fd);
	free(t->room);
	free(t);
}

static struct transport *udp_open(const struct transport_params *params, char *error, size_t size)
{
	struct transport *t = calloc(1, sizeof(*t));
	int ret = 0;

	if (t == NULL)
		goto no_memory;
	transport_raise_limit();
	t->epoll = epoll_create1(EPOLL_CLOEXEC);
	t->fd = calloc(params->flows, sizeof(*t->fd));
	t->room = malloc((size_t)TRANSPORT_BURST * ROOM);
	if (t->epoll < 0 || t->fd == NULL || t->room == NULL)
		goto no_memory;
	for (; t->flows < params->flows && ret == 0; t->flows++) {
		const struct mix *mix = params->mix;

		ret = flow_open(t, t->flows, &mix->target[t->flows % mix->n_targets]);
	}
	if (ret == 0)
		return t;
	snprintf(error, size, "no socket %u of %u to %s: %s%s", t->flows, params->flows,
		 params->mix->target[(t->flows - 1) % params->mix->n_targets].name, strerror(-ret),
		 ret == -EMFILE ? "; give fewer --flows, or raise `ulimit -n`" : "");
	udp_close(t);
	return NULL;

no_memory:
	snprintf(error, size, "no memory for %u flows", params->flows);
	if (t != NULL)
		udp_close(t);
	return NULL;
}

/* The number of datagrams at the front that belong to one flow. */
static unsigned int run_of(const struct transport_datagram *datagram, unsigned int n)
{
	unsigned int same = 1;

	while (same < n && datagram[same].flow == datagram[0].flow)
		same++;
	return same;
}

static int send_run(struct transport *t, const struct transport_datagram *datagram, unsigned int n,
		    uint64_t *unreachable)
{
	struct mmsghdr message[TRANSPORT_BURST] = {0};
	struct iovec vector[TRANSPORT_BURST];

	for (unsigned int i = 0; i < n; i++) {
		vector[i] = (struct iovec){datagram[i].bytes, datagram[i].length};
		message[i].msg_hdr.msg_iov = &vector[i];
		message[i].msg_hdr.msg_iovlen = 1;
	}
	/* A send may report the error of an earlier datagram; it then has to be tried again. */
	for (int attempt = 0; attempt < SEND_ATTEMPTS; attempt++) {
		int sent = sendmmsg(t->fd[datagram[0].flow], message, n, 0);

		if (sent >= 0)
			return sent;
		if (errno == EAGAIN || errno == ENOBUFS)
			return 0;
		if (!is_unreachable(errno) && errno != EINTR)
			return -errno;
		*unreachable += errno != EINTR;
	}
	return 1; /* counted as sent; it is lost when its time is up */
}

static int udp_send(struct transport *t, const struct transport_datagram *datagram, unsigned int n,
		    uint64_t *unreachable)
{
	unsigned int done = 0;

	while (done < n) {
		unsigned int run = run_of(datagram + done, n - done);
		int sent = send_run(t, datagram + done, run, unreachable);

		if (sent < 0)
			return done > 0 ? (int)done : sent;
		done += (unsigned int)sent;
		if (sent < (int)run)
			break;
	}
	return (int)done;
}

/* Receive up to <n> datagrams from one socket. Returns how many, 0 when it has none, or -errno. */
static int receive_from(struct transport *t, uint32_t flow, struct transport_datagram *datagram,
			unsigned int n, uint64_t *unreachable)
{
	struct mmsghdr message[TRANSPORT_BURST] = {0};
	struct iovec vector[TRANSPORT_BURST];
	int got;

	for (unsigned int i = 0; i < n; i++) {
		vector[i] = (struct iovec){t->room + (size_t)i * ROOM, ROOM};
		message[i].msg_hdr.msg_iov = &vector[i];
		message[i].msg_hdr.msg_iovlen = 1;
	}
	got = recvmmsg(t->fd[flow], message, n, 0, NULL);
	if (got < 0 && is_unreachable(errno)) {
		(*unreachable)++;
		return 0;
	}
	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	for (int i = 0; i < got; i++)
		datagram[i] = (struct transport_datagram){flow, message[i].msg_len,
							  t->room + (size_t)i * ROOM};
	return got;
}

/*
 * Receive from the ready sockets. A full burst may leave datagrams in its socket, which is then
 * read again.
 */
static int receive_ready(struct transport *t, struct transport_datagram *datagram, unsigned int n,
			 uint64_t *unreachable)
{
	while (t->at_ready < t->n_ready) {
		int got = receive_from(t, t->ready[t->at_ready].data.u32, datagram, n, unreachable);

		if (got < (int)n)
			t->at_ready++;
		if (got != 0)
			return got;
	}
	return 0;
}

static int udp_receive(struct transport *t, struct transport_datagram *datagram, unsigned int n,
		       uint64_t wait_ns, uint64_t *unreachable)
{
	struct timespec wait = {.tv_sec = (time_t)(wait_ns / 1000000000),
				.tv_nsec = (long)(wait_ns % 1000000000)};
	int got = receive_ready(t, datagram, n, unreachable);

	if (got != 0)
		return got;
	t->at_ready = 0;
	t->n_ready = epoll_pwait2(t->epoll, t->ready, EVENTS, &wait, NULL);
	if (t->n_ready < 0) {
		t->n_ready = 0;
		return errno == EINTR ? 0 : -errno;
	}
	return receive_ready(t, datagram, n, unreachable);
}

const struct transport_ops transport_udp = {
	.open = udp_open,
	.close = udp_close,
	.send = udp_send,
	.receive = udp_receive,
};
