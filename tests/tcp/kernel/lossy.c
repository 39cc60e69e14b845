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
}

/* Begins the random numbers of the next packet. */
static void next_fate(struct lossy *l, unsigned int direction)
{
	uint64_t x = (l->params.seed * 2 + direction) * 0x9e3779b97f4a7c15 +
		     l->sent[direction]++ * 0xd1342543de82ef95;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	l->random = (x ^ x >> 31) | 1;
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

static struct lossy_packet *new_packet(struct lossy *l, uint64_t at_us, int to,
				       const uint8_t *bytes, uint32_t length)
{
	struct lossy_packet *p = malloc(sizeof(*p) - LOSSY_PACKET_MAX + length);

	if (p == NULL)
		errx(1, "no memory for packets");
	p->at_us = at_us;
	p->order = l->order++;
	p->to = to;
	p->length = length;
	memcpy(p->bytes, bytes, length);
	return p;
}

void lossy_pass(struct lossy *l, uint64_t now_us, int to, const uint8_t *bytes, uint32_t length)
{
	push(l, new_packet(l, now_us + l->params.delay_us, to, bytes, length));
}

void lossy_send(struct lossy *l, uint64_t now_us, unsigned int direction, int to,
		const uint8_t *bytes, uint32_t length)
{
	const struct lossy_params *params = &l->params;
	unsigned int copies;

	next_fate(l, direction);
	copies = 1 + chance(l, params->copy);
	l->fates.packets++;
	l->fates.copied += copies - 1;
	while (copies-- > 0) {
		uint64_t at_us = now_us + params->delay_us;
		struct lossy_packet *p;

		if (chance(l, params->lose)) {
			l->fates.lost++;
			continue;
		}
		if (chance(l, params->reorder)) {
			at_us += draw(l, params->jitter_us + 1);
			l->fates.late++;
		}
		p = new_packet(l, at_us, to, bytes, length);
		if (length > params->front && chance(l, params->corrupt)) {
			p->bytes[params->front + draw(l, length - params->front)] ^= 1
										     << draw(l, 8);
			l->fates.corrupt++;
		}
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
