/* SPDX-License-Identifier: BSD-3-Clause */
#include "observe/pcapng.h"

#include <string.h>

/* Types of blocks, and of options by block. */
#define SECTION    0x0a0d0d0au
#define INTERFACE  1u
#define STATISTICS 5u
#define PACKET     6u

#define END                   0
#define SECTION_PROGRAM       4
#define INTERFACE_NAME        2
#define INTERFACE_DESCRIPTION 3
#define INTERFACE_MAC         6
#define INTERFACE_RESOLUTION  9
#define INTERFACE_FILTER      11
#define PACKET_FLAGS          2
#define PACKET_QUEUE          6
#define STATISTICS_START      2
#define STATISTICS_END        3
#define STATISTICS_RECEIVED   4
#define STATISTICS_DROPPED    5
#define STATISTICS_ACCEPTED   6

#define BYTE_ORDER_MAGIC 0x1a2b3c4du /* the reader sees by it how we write numbers */
#define LINK_ETHERNET    1
#define NANOSECONDS      9 /* 10 to the minus 9 */
#define LENGTH_AT        4 /* of a block's length, which it also ends with */

/* A block that is being written. */
struct block {
	uint8_t *buf;
	size_t size, n;
	int overflow;
};

/* Everything in a block begins at a multiple of four bytes. */
static void add(struct block *b, const void *data, size_t n)
{
	size_t padding = -n & 3;

	if (b->overflow || n > b->size - b->n || padding > b->size - b->n - n) {
		b->overflow = 1;
		return;
	}
	memcpy(b->buf + b->n, data, n);
	memset(b->buf + b->n + n, 0, padding);
	b->n += n + padding;
}

static void add32(struct block *b, uint32_t value)
{
	add(b, &value, sizeof(value));
}

/* Two of 16 bits in the order of this machine. */
static void add16(struct block *b, uint16_t first, uint16_t second)
{
	uint16_t pair[2] = {first, second};

	add(b, pair, sizeof(pair));
}

/* The half that counts more comes first, whatever the order of bytes. */
static void add_time(struct block *b, uint64_t ns)
{
	add32(b, (uint32_t)(ns >> 32));
	add32(b, (uint32_t)ns);
}

static struct block begin(uint8_t *buf, size_t size, uint32_t type)
{
	struct block b = {.buf = buf, .size = size};

	add32(&b, type);
	add32(&b, 0); /* the length */
	return b;
}

static size_t finish(struct block *b)
{
	uint32_t length = (uint32_t)(b->n + sizeof(length));

	add32(b, length);
	if (b->overflow)
		return 0;
	memcpy(b->buf + LENGTH_AT, &length, sizeof(length));
	return b->n;
}

static void option(struct block *b, uint16_t code, const void *data, size_t n)
{
	add16(b, code, (uint16_t)n);
	add(b, data, n);
}

static void option_text(struct block *b, uint16_t code, const char *text)
{
	option(b, code, text, strlen(text));
}

static void option64(struct block *b, uint16_t code, uint64_t value)
{
	option(b, code, &value, sizeof(value));
}

static void option_time(struct block *b, uint16_t code, uint64_t ns)
{
	add16(b, code, sizeof(ns));
	add_time(b, ns);
}

static void options_end(struct block *b)
{
	add16(b, END, 0);
}

/* Its encoding stands before it: 0 is text. */
static void option_filter(struct block *b, const char *filter)
{
	size_t n = strlen(filter) + 1;
	char text[2048] = "";

	if (n > sizeof(text))
		return;
	memcpy(text + 1, filter, n - 1);
	option(b, INTERFACE_FILTER, text, n);
}

size_t pcapng_section(uint8_t *buf, size_t size, const char *program)
{
	struct block b = begin(buf, size, SECTION);

	add32(&b, BYTE_ORDER_MAGIC);
	add16(&b, 1, 0);          /* version */
	add_time(&b, UINT64_MAX); /* its length, not known yet */
	option_text(&b, SECTION_PROGRAM, program);
	options_end(&b);
	return finish(&b);
}

size_t pcapng_interface(uint8_t *buf, size_t size, const struct pcapng_interface *interface)
{
	const uint8_t resolution = NANOSECONDS;
	struct block b = begin(buf, size, INTERFACE);

	add16(&b, LINK_ETHERNET, 0);
	add32(&b, interface->snaplen);
	option_text(&b, INTERFACE_NAME, interface->name);
	option_text(&b, INTERFACE_DESCRIPTION, interface->description);
	option(&b, INTERFACE_MAC, interface->mac, 6);
	option(&b, INTERFACE_RESOLUTION, &resolution, sizeof(resolution));
	if (interface->filter)
		option_filter(&b, interface->filter);
	options_end(&b);
	return finish(&b);
}

size_t pcapng_packet(uint8_t *buf, size_t size, const struct capture_packet *packet)
{
	/* 1: received, 2: sent; as in the lowest two of the option's bits */
	uint32_t flags = packet->direction, queue = packet->queue;
	struct block b = begin(buf, size, PACKET);

	add32(&b, 0); /* of the only interface */
	add_time(&b, packet->ns);
	add32(&b, packet->length);
	add32(&b, packet->original);
	add(&b, capture_packet_data(packet), packet->length);
	option(&b, PACKET_FLAGS, &flags, sizeof(flags));
	option(&b, PACKET_QUEUE, &queue, sizeof(queue));
	options_end(&b);
	return finish(&b);
}

size_t pcapng_statistics(uint8_t *buf, size_t size, const struct pcapng_statistics *statistics)
{
	struct block b = begin(buf, size, STATISTICS);

	add32(&b, 0); /* of the only interface */
	add_time(&b, statistics->end_ns);
	option_time(&b, STATISTICS_START, statistics->start_ns);
	option_time(&b, STATISTICS_END, statistics->end_ns);
	option64(&b, STATISTICS_RECEIVED, statistics->received);
	option64(&b, STATISTICS_DROPPED, statistics->dropped);
	option64(&b, STATISTICS_ACCEPTED, statistics->accepted);
	options_end(&b);
	return finish(&b);
}
