/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two lcores copy packets into their rings while the thread of a capture writes them and another
 * reads its file: every packet arrives unchanged, or is counted as dropped for want of room.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "observe/capture_writer.h"

#define LCORES    2
#define PACKETS   50000
#define RING      (64u << 10)
#define BLOCK_MAX 2048

static void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s\n", what);
	exit(1);
}

/* Plays an lcore: packets begin with their number, and their bytes follow from it. */
static void *produce(void *argument)
{
	struct capture_tap *tap = argument;

	for (uint32_t i = 0; i < PACKETS; i++) {
		uint32_t length = 4 + i % 1000;
		struct capture_packet *packet;

		/* Lcores never wait; here they mostly do, so that the ring wraps often. */
		while ((packet = capture_ring_take(&tap->ring, length)) == NULL && i % 64 != 0) {
			capture_ring_publish(&tap->ring);
			sched_yield();
		}
		if (packet == NULL) {
			__atomic_store_n(&tap->dropped, tap->dropped + 1, __ATOMIC_RELAXED);
			continue;
		}
		packet->tsc = rte_rdtsc();
		packet->ns = i;
		packet->original = length;
		packet->queue = tap->queue;
		packet->direction = CAPTURE_IN;
		memset(capture_packet_data(packet), (int)i, length);
		memcpy(capture_packet_data(packet), &i, sizeof(i));
		if (i % 8 == 7)
			capture_ring_publish(&tap->ring);
	}
	capture_ring_publish(&tap->ring);
	return NULL;
}

static bool read_exactly(int fd, void *buf, size_t n)
{
	return recv(fd, buf, n, MSG_WAITALL) == (ssize_t)n;
}

static void check_packet(const uint8_t *block, uint32_t last[LCORES])
{
	uint32_t length, number, queue;

	memcpy(&length, block + 20, sizeof(length));
	memcpy(&number, block + 28, sizeof(number));
	/* behind the flags' option, and the head of its own */
	memcpy(&queue, block + 28 + (length + 3) / 4 * 4 + 12, sizeof(queue));
	require(queue < LCORES, "a packet of no lcore");
	require(length == 4 + number % 1000, "a packet of another length");
	require(last[queue] == UINT32_MAX || number > last[queue], "out of order");
	last[queue] = number;
	for (uint32_t i = 4; i < length; i++)
		require(block[28 + i] == (uint8_t)number, "a packet with other bytes");
}

/* Reads the file as the client of the capture. Returns the number of packets. */
static void *consume(void *argument)
{
	uint32_t head[2], last[LCORES] = {UINT32_MAX, UINT32_MAX};
	uint8_t block[BLOCK_MAX];
	uintptr_t n = 0;
	int fd = *(int *)argument;

	while (read_exactly(fd, head, sizeof(head))) {
		require(head[1] >= 12 && head[1] <= sizeof(block), "a block of no such length");
		memcpy(block, head, sizeof(head));
		require(read_exactly(fd, block + 8, head[1] - 8), "half a block");
		if (head[0] != 6)
			continue;
		check_packet(block, last);
		n++;
	}
	return (void *)n;
}

int main(void)
{
	static const uint8_t mac[6];
	static struct capture_tap tap[LCORES];
	static struct capture_writer w;
	pthread_t lcore[LCORES], reader;
	uint64_t dropped = 0;
	void *n;
	int pair[2];

	require(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "no sockets");
	for (uint16_t i = 0; i < LCORES; i++) {
		require(capture_ring_init(&tap[i].ring, RING) == 0, "no memory");
		tap[i].queue = i;
	}
	w.fd = pair[0];
	w.tap = tap;
	w.n_taps = LCORES;
	w.tsc_per_ms = 1000; /* hardly any packet is too young */
	w.interface = (struct pcapng_interface){.name = "p", .description = "", .mac = mac};
	require(capture_writer_start(&w) == 0, "no thread");
	pthread_create(&reader, NULL, consume, &pair[1]);
	for (unsigned int i = 0; i < LCORES; i++)
		pthread_create(&lcore[i], NULL, produce, &tap[i]);
	for (unsigned int i = 0; i < LCORES; i++) {
		pthread_join(lcore[i], NULL);
		dropped += tap[i].dropped;
	}
	capture_writer_end(&w);
	pthread_join(reader, &n);
	capture_writer_join(&w);
	require((uintptr_t)n + dropped == LCORES * PACKETS, "a packet vanished");
	require((uintptr_t)n == w.packets, "another number of packets");
	for (unsigned int i = 0; i < LCORES; i++)
		capture_ring_fini(&tap[i].ring);
	close(pair[1]);
	printf("%zu packets, %zu dropped\n", (size_t)(uintptr_t)n, (size_t)dropped);
	return 0;
}
