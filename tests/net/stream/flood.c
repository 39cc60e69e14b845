/* SPDX-License-Identifier: BSD-3-Clause */
/* SYNs from many addresses that are not ours, so that nothing answers what comes back. */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "stream.h"

#define BURST    32
#define PAUSE_NS 100000 /* between bursts: the rate is even at this scale */

/* As Linux sends them: MSS, SACK, timestamps and a scale of 7. */
static const uint8_t flood_options[20] = {2, 4, 0x05, 0xb4, 4, 2, 8, 10, 0, 0,
					  0, 1, 0,    0,    0, 0, 1, 3,  3, 7};

struct flood_frame {
	struct ether_header ether;
	struct iphdr ip;
	struct tcphdr tcp;
	uint8_t options[sizeof(flood_options)];
} __attribute__((packed));

struct flood {
	const struct stream_flood *o;
	int fd;
	uint32_t first; /* address, in the machine's order */
	uint64_t random, sent;
	struct flood_frame frame[BURST];
	struct mmsghdr message[BURST];
	struct iovec part[BURST];
};

static volatile sig_atomic_t flood_ending;

static void flood_on_signal(int signal)
{
	flood_ending = 1;
}

static uint64_t flood_random(struct flood *f)
{
	f->random ^= f->random << 13;
	f->random ^= f->random >> 7;
	f->random ^= f->random << 17;
	return f->random;
}

static uint32_t flood_sum(const void *at, size_t n, uint32_t sum)
{
	const uint8_t *bytes = at;

	for (size_t i = 0; i + 1 < n; i += 2)
		sum += (uint32_t)bytes[i] << 8 | bytes[i + 1];
	return sum;
}

static uint16_t flood_fold(uint32_t sum)
{
	while (sum >> 16 != 0)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

static void flood_build(struct flood *f, struct flood_frame *frame)
{
	const size_t segment = sizeof(frame->tcp) + sizeof(frame->options);
	uint64_t random = flood_random(f);

	frame->ip.saddr = htonl(f->first + (uint32_t)(random >> 40) % f->o->senders);
	frame->ip.check = 0;
	frame->ip.check = flood_fold(flood_sum(&frame->ip, sizeof(frame->ip), 0));
	frame->tcp.source = htons(1024 + (uint16_t)(random >> 8) % 60000);
	frame->tcp.seq = (uint32_t)random;
	frame->tcp.check = 0;
	frame->tcp.check = flood_fold(
		flood_sum(&frame->tcp, segment,
			  flood_sum(&frame->ip.saddr, 8, IPPROTO_TCP + (uint32_t)segment)));
}

static void flood_prepare_frame(const struct stream_flood *o, struct flood_frame *frame)
{
	static const uint8_t router[6] = {2, 0, 0, 0, 0, 0x66}; /* replies to it reach no socket */
	uint8_t *mac = frame->ether.ether_dhost;

	if (sscanf(o->mac, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &mac[0], &mac[1], &mac[2], &mac[3],
		   &mac[4], &mac[5]) != 6)
		errx(2, "%s: no MAC address", o->mac);
	memcpy(frame->ether.ether_shost, router, sizeof(router));
	frame->ether.ether_type = htons(ETHERTYPE_IP);
	frame->ip = (struct iphdr){
		.version = 4,
		.ihl = 5,
		.tot_len = htons(sizeof(*frame) - sizeof(frame->ether)),
		.ttl = 64,
		.protocol = IPPROTO_TCP,
		.daddr = inet_addr(o->address),
	};
	frame->tcp = (struct tcphdr){
		.dest = htons(o->port),
		.doff = (sizeof(frame->tcp) + sizeof(frame->options)) / 4,
		.syn = 1,
		.window = htons(64240),
	};
	memcpy(frame->options, flood_options, sizeof(flood_options));
}

static void flood_open(struct flood *f)
{
	struct sockaddr_ll at = {.sll_family = AF_PACKET,
				 .sll_ifindex = (int)if_nametoindex(f->o->device)};
	int on = 1;

	f->fd = socket(AF_PACKET, SOCK_RAW, 0);
	if (f->fd < 0 || at.sll_ifindex == 0 ||
	    bind(f->fd, (struct sockaddr *)&at, sizeof(at)) != 0 ||
	    setsockopt(f->fd, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof(on)) != 0)
		err(1, "%s", f->o->device);
	f->first = ntohl(inet_addr(f->o->from));
	f->random = f->o->seed * 0x9e3779b97f4a7c15 | 1;
	for (unsigned int i = 0; i < BURST; i++) {
		flood_prepare_frame(f->o, &f->frame[i]);
		f->part[i] = (struct iovec){&f->frame[i], sizeof(f->frame[i])};
		f->message[i].msg_hdr = (struct msghdr){.msg_iov = &f->part[i], .msg_iovlen = 1};
	}
}

static void flood_send(struct flood *f, unsigned int n)
{
	int sent;

	for (unsigned int i = 0; i < n; i++)
		flood_build(f, &f->frame[i]);
	sent = sendmmsg(f->fd, f->message, n, 0);
	if (sent < 0 && errno != ENOBUFS && errno != EINTR)
		err(1, "%s", f->o->device);
	f->sent += sent < 0 ? 0 : (unsigned int)sent;
}

static void flood_pause(void)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};

	nanosleep(&pause, NULL);
}

int stream_flood(const struct stream_flood *o)
{
	static struct flood f;
	uint64_t began = stream_now_us(), now = began, due;

	if (o->device == NULL || o->mac == NULL || o->address == NULL || o->from == NULL)
		errx(2, "flood needs --device, --mac, --address and --from");
	signal(SIGTERM, flood_on_signal);
	f.o = o;
	flood_open(&f);
	while (!flood_ending && (o->seconds == 0 || (double)(now - began) < o->seconds * 1e6)) {
		due = o->rate == 0 ? UINT64_MAX : (now - began) * o->rate / 1000000;
		if (due > f.sent)
			flood_send(&f, due - f.sent < BURST ? (unsigned int)(due - f.sent) : BURST);
		if (due < f.sent + BURST / 4)
			flood_pause();
		now = stream_now_us();
	}
	printf("{\"sent\": %lu, \"seconds\": %.3f, \"rate\": %.0f}\n", (unsigned long)f.sent,
	       (double)(now - began) / 1e6, (double)f.sent * 1e6 / (double)(now - began));
	return 0;
}
