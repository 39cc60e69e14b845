/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A bad wire: raw frames of one device go out of the other. TCP packets are lost, copied, delayed
 * and corrupted, by their number in each direction; the rest is only delayed.
 */
#include <err.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "lossy.h"
#include "stream.h"

#define BURST    64
#define BUFFER_B (64 << 20) /* of each socket: what comes while this process has no CPU */

struct relay {
	struct lossy lossy;
	int fd[2];
	uint64_t unsent; /* frames that a device did not take */
	struct mmsghdr in[BURST], out[2][BURST];
	struct iovec in_part[BURST], out_part[2][BURST];
	struct lossy_packet *out_packet[2][BURST];
	unsigned int n_out[2];
	uint8_t bytes[BURST][LOSSY_PACKET_MAX];
};

static volatile sig_atomic_t relay_ending;

static void relay_on_signal(int signal)
{
	relay_ending = 1;
}

static int relay_open(const char *device)
{
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, htons(ETH_P_ALL)), on = 1;
	int room = BUFFER_B;
	struct sockaddr_ll at = {.sll_family = AF_PACKET,
				 .sll_protocol = htons(ETH_P_ALL),
				 .sll_ifindex = (int)if_nametoindex(device)};

	if (fd < 0 || at.sll_ifindex == 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) != 0 ||
	    setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on)) != 0 ||
	    setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof(on)) != 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) != 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)) != 0)
		err(1, "%s", device);
	return fd;
}

static bool relay_is_tcp(const uint8_t *frame, uint32_t length)
{
	uint16_t type;

	if (length < 14 + 20)
		return false;
	memcpy(&type, frame + 12, sizeof(type));
	if (type == htons(ETH_P_IP))
		return frame[14 + 9] == IPPROTO_TCP;
	return type == htons(ETH_P_IPV6) && frame[14 + 6] == IPPROTO_TCP;
}

/* Returns true when there may be more. */
static bool relay_receive(struct relay *r, unsigned int from)
{
	uint64_t now = stream_now_us();
	int n = recvmmsg(r->fd[from], r->in, BURST, 0, NULL);

	for (int i = 0; i < n; i++) {
		uint32_t length = r->in[i].msg_len;

		if (relay_is_tcp(r->bytes[i], length))
			lossy_send(&r->lossy, now, from, (int)!from, r->bytes[i], length);
		else
			lossy_pass(&r->lossy, now, (int)!from, r->bytes[i], length);
	}
	return n == BURST;
}

static void relay_flush(struct relay *r, unsigned int to)
{
	unsigned int sent = 0;

	while (sent < r->n_out[to]) {
		int n = sendmmsg(r->fd[to], r->out[to] + sent, r->n_out[to] - sent, 0);

		if (n <= 0) {
			r->unsent++;
			n = 1;
		}
		sent += (unsigned int)n;
	}
	for (unsigned int i = 0; i < r->n_out[to]; i++)
		free(r->out_packet[to][i]);
	r->n_out[to] = 0;
}

static void relay_deliver(struct relay *r)
{
	uint64_t now = stream_now_us();
	struct lossy_packet *p;

	while ((p = lossy_arrived(&r->lossy, now)) != NULL) {
		unsigned int n = r->n_out[p->to]++;

		r->out_packet[p->to][n] = p;
		r->out_part[p->to][n] = (struct iovec){p->bytes, p->length};
		if (n + 1 == BURST)
			relay_flush(r, (unsigned int)p->to);
	}
	relay_flush(r, 0);
	relay_flush(r, 1);
}

static void relay_wait(struct relay *r)
{
	struct pollfd fds[2] = {{r->fd[0], POLLIN, 0}, {r->fd[1], POLLIN, 0}};
	uint64_t due = lossy_due_us(&r->lossy), now = stream_now_us(), us;
	struct timespec t = {.tv_sec = 1};

	if (due != UINT64_MAX) {
		us = due > now ? due - now : 0;
		t = (struct timespec){(time_t)(us / 1000000), (long)(us % 1000000) * 1000};
	}
	ppoll(fds, 2, &t, NULL);
}

/* Frames that came while the socket had no room: losses that the seed did not ask for. */
static unsigned int relay_overflow(int fd)
{
	struct tpacket_stats stats = {0};
	socklen_t length = sizeof(stats);

	getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &stats, &length);
	return stats.tp_drops;
}

static void relay_print(const struct relay *r)
{
	const struct lossy_fates *f = &r->lossy.fates;

	printf("{\"packets\": %lu, \"lost\": %lu, \"late\": %lu, \"copied\": %lu, \"corrupt\": "
	       "%lu, \"overflow\": %lu}\n",
	       (unsigned long)f->packets, (unsigned long)f->lost, (unsigned long)f->late,
	       (unsigned long)f->copied, (unsigned long)f->corrupt,
	       (unsigned long)(r->unsent + relay_overflow(r->fd[0]) + relay_overflow(r->fd[1])));
}

static struct relay *relay_create(const struct stream_relay *o)
{
	struct relay *r = calloc(1, sizeof(*r));
	const struct lossy_params params = {
		o->lose,     o->reorder,   o->copy, o->corrupt,
		o->delay_us, o->jitter_us, o->seed, sizeof(struct ether_header)};

	if (r == NULL)
		err(1, "memory");
	lossy_init(&r->lossy, &params);
	for (unsigned int i = 0; i < BURST; i++) {
		r->in_part[i] = (struct iovec){r->bytes[i], LOSSY_PACKET_MAX};
		r->in[i].msg_hdr = (struct msghdr){.msg_iov = &r->in_part[i], .msg_iovlen = 1};
		for (unsigned int to = 0; to < 2; to++)
			r->out[to][i].msg_hdr =
				(struct msghdr){.msg_iov = &r->out_part[to][i], .msg_iovlen = 1};
	}
	for (unsigned int i = 0; i < 2; i++)
		r->fd[i] = relay_open(o->device[i]);
	return r;
}

int stream_relay(const struct stream_relay *o)
{
	struct sigaction action = {.sa_handler = relay_on_signal};
	struct relay *r = relay_create(o);

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	puts("ready");
	fflush(stdout);
	while (!relay_ending) {
		bool more = relay_receive(r, 0);

		more |= relay_receive(r, 1);
		relay_deliver(r);
		if (!more)
			relay_wait(r);
	}
	relay_print(r);
	return 0;
}
