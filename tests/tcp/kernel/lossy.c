/* SPDX-License-Identifier: BSD-3-Clause */
#include "lossy.h"

#include <err.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

uint64_t lossy_now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * UINT64_C(1000000) + t.tv_nsec / 1000;
}

void lossy_init(struct lossy *l, const struct lossy_params *params)
{
	*l = (struct lossy){.params = *params};
	l->random = params->seed * 0x9e3779b97f4a7c15 + 1;
}

static uint64_t draw(struct lossy *l, uint64_t below)
{
	l->random ^= l->random << 13;
	l->random ^= l->random >> 7;
	l->random ^= l->random << 17;
	return (l->random >> 11) % below;
}

static bool chance(struct lossy *l, double per_cent)
{
	return draw(l, 1000000) < per_cent * 10000;
}

static bool earlier(const struct lossy_packet *a, const struct lossy_packet *b)
{
	return a->at_us < b->at_us || (a->at_us == b->at_us && a->order < b->order);
}

static void push(struct lossy *l, struct lossy_packet *p)
{
	uint32_t i = l->n++;

	if (l->n > l->room) {
		l->room = l->room == 0 ? 1024 : 2 * l->room;
		l->heap = realloc(l->heap, l->room * sizeof(*l->heap));
		if (l->heap == NULL)
			errx(1, "no memory for packets");
	}
	for (; i > 0 && earlier(p, l->heap[(i - 1) / 2]); i = (i - 1) / 2)
		l->heap[i] = l->heap[(i - 1) / 2];
	l->heap[i] = p;
}

static void pop(struct lossy *l)
{
	struct lossy_packet *last = l->heap[--l->n];
	uint32_t i = 0, child;

	while ((child = 2 * i + 1) < l->n) {
		if (child + 1 < l->n && earlier(l->heap[child + 1], l->heap[child]))
			child++;
		if (!earlier(l->heap[child], last))
			break;
		l->heap[i] = l->heap[child];
		i = child;
	}
	l->heap[i] = last;
}

void lossy_send(struct lossy *l, uint64_t now_us, int to, const uint8_t *bytes, uint32_t length)
{
	unsigned int copies = 1 + chance(l, l->params.copy);

	while (copies-- > 0) {
		struct lossy_packet *p;

		if (chance(l, l->params.lose))
			continue;
		p = malloc(sizeof(*p) - LOSSY_PACKET_MAX + length);
		if (p == NULL)
			errx(1, "no memory for packets");
		p->at_us = now_us + l->params.delay_us;
		if (chance(l, l->params.reorder))
			p->at_us += draw(l, l->params.jitter_us + 1);
		p->order = l->order++;
		p->to = to;
		p->length = length;
		memcpy(p->bytes, bytes, length);
		if (chance(l, l->params.corrupt))
			p->bytes[draw(l, length)] ^= 1 << draw(l, 8);
		push(l, p);
	}
}

struct lossy_packet *lossy_arrived(struct lossy *l, uint64_t now_us)
{
	struct lossy_packet *first = l->n == 0 ? NULL : l->heap[0];

	if (first == NULL || first->at_us > now_us)
		return NULL;
	pop(l);
	return first;
}

uint64_t lossy_due_us(const struct lossy *l)
{
	return l->n == 0 ? UINT64_MAX : l->heap[0]->at_us;
}

static void enter(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || setns(fd, CLONE_NEWNET) != 0)
		err(1, "%s", path);
	close(fd);
}

int lossy_open_tun(const char *ns, const char *name)
{
	struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
	char path[256];
	int fd, home;

	home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (ns[0] != '\0') {
		snprintf(path, sizeof(path), "/run/netns/%s", ns);
		enter(path);
	}
	fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		err(1, "/dev/net/tun");
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (ioctl(fd, TUNSETIFF, &request) != 0)
		err(1, "%s", name);
	if (ns[0] != '\0' && setns(home, CLONE_NEWNET) != 0)
		err(1, "back to the first namespace");
	close(home);
	return fd;
}
