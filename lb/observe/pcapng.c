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

#define BYTE_ORDER_MAGIC 0x1a2b3c4du /* tells the reader our byte order */
#define LINK_ETHERNET    1
#define NANOSECONDS      9 /* 10 to the minus 9 */
#define LENGTH_AT        4 /* offset of a block's length, which also ends the block */

/* A block that is being written. */
struct block {
	uint8_t *buf;
	size_t size, n;
	int overflow;
};

/* Append bytes, padded to a multiple of four. */
static void block_add(struct block *b, const void *data, size_t n)
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

static void block_add32(struct block *b, uint32_t value)
{
	block_add(b, &value, sizeof(value));
}

/* Append two 16-bit numbers in host byte order. */
static void block_add16(struct block *b, uint16_t first, uint16_t second)
{
	uint16_t pair[2] = {first, second};

	block_add(b, pair, sizeof(pair));
}

/* Append a time: the upper half first, in either byte order. */
static void block_add_time(struct block *b, uint64_t ns)
{
	block_add32(b, (uint32_t)(ns >> 32));
	block_add32(b, (uint32_t)ns);
}

static struct block block_begin(uint8_t *buf, size_t size, uint32_t type)
{
	struct block b = {.buf = buf, .size = size};

	block_add32(&b, type);
	block_add32(&b, 0); /* the length */
	return b;
}

static size_t block_finish(struct block *b)
{
	uint32_t length = (uint32_t)(b->n + sizeof(length));

	block_add32(b, length);
	if (b->overflow)
		return 0;
	memcpy(b->buf + LENGTH_AT, &length, sizeof(length));
	return b->n;
}

static void block_option(struct block *b, uint16_t code, const void *data, size_t n)
{
	block_add16(b, code, (uint16_t)n);
	block_add(b, data, n);
}

static void block_option_text(struct block *b, uint16_t code, const char *text)
{
	block_option(b, code, text, strlen(text));
}

static void block_option64(struct block *b, uint16_t code, uint64_t value)
{
	block_option(b, code, &value, sizeof(value));
}

static void block_option_time(struct block *b, uint16_t code, uint64_t ns)
{
	block_add16(b, code, sizeof(ns));
	block_add_time(b, ns);
}

static void block_options_end(struct block *b)
{
	block_add16(b, END, 0);
}

/* Append the filter behind a byte for its kind: 0 is text. */
static void block_option_filter(struct block *b, const char *filter)
{
	size_t n = strlen(filter) + 1;
	char text[2048] = "";

	if (n > sizeof(text))
		return;
	memcpy(text + 1, filter, n - 1);
	block_option(b, INTERFACE_FILTER, text, n);
}

size_t pcapng_section(uint8_t *buf, size_t size, const char *program)
{
	struct block b = block_begin(buf, size, SECTION);

	block_add32(&b, BYTE_ORDER_MAGIC);
	block_add16(&b, 1, 0);          /* version */
	block_add_time(&b, UINT64_MAX); /* its length, not known yet */
	block_option_text(&b, SECTION_PROGRAM, program);
	block_options_end(&b);
	return block_finish(&b);
}

size_t pcapng_interface(uint8_t *buf, size_t size, const struct pcapng_interface *interface)
{
	const uint8_t resolution = NANOSECONDS;
	struct block b = block_begin(buf, size, INTERFACE);

	block_add16(&b, LINK_ETHERNET, 0);
	block_add32(&b, interface->snaplen);
	block_option_text(&b, INTERFACE_NAME, interface->name);
	block_option_text(&b, INTERFACE_DESCRIPTION, interface->description);
	block_option(&b, INTERFACE_MAC, interface->mac, 6);
	block_option(&b, INTERFACE_RESOLUTION, &resolution, sizeof(resolution));
	if (interface->filter != NULL)
		block_option_filter(&b, interface->filter);
	block_options_end(&b);
	return block_finish(&b);
}

size_t pcapng_packet(uint8_t *buf, size_t size, const struct capture_packet *packet)
{
	/* 1: received, 2: sent, as in the option's lowest two bits */
	uint32_t flags = packet->direction, queue = packet->queue;
	struct block b = block_begin(buf, size, PACKET);

	block_add32(&b, 0); /* of the only interface */
	block_add_time(&b, packet->ns);
	block_add32(&b, packet->length);
	block_add32(&b, packet->original);
	block_add(&b, capture_packet_data(packet), packet->length);
	block_option(&b, PACKET_FLAGS, &flags, sizeof(flags));
	block_option(&b, PACKET_QUEUE, &queue, sizeof(queue));
	block_options_end(&b);
	return block_finish(&b);
}

size_t pcapng_statistics(uint8_t *buf, size_t size, const struct pcapng_statistics *statistics)
{
	struct block b = block_begin(buf, size, STATISTICS);

	block_add32(&b, 0); /* of the only interface */
	block_add_time(&b, statistics->end_ns);
	block_option_time(&b, STATISTICS_START, statistics->start_ns);
	block_option_time(&b, STATISTICS_END, statistics->end_ns);
	block_option64(&b, STATISTICS_RECEIVED, statistics->received);
	block_option64(&b, STATISTICS_DROPPED, statistics->dropped);
	block_option64(&b, STATISTICS_ACCEPTED, statistics->accepted);
	block_options_end(&b);
	return block_finish(&b);
}
