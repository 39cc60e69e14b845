/* SPDX-License-Identifier: BSD-3-Clause */
#include "tcp/header.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

enum tcp_option {
	OPTION_END,
	OPTION_NOP,
	OPTION_MSS,
	OPTION_SCALE,
	OPTION_SACK_PERMITTED,
	OPTION_SACK,
	OPTION_TIMESTAMP = 8,
};

static uint16_t header_get16(const uint8_t *at)
{
	return at[0] << 8 | at[1];
}

static uint32_t header_get32(const uint8_t *at)
{
	return (uint32_t)header_get16(at) << 16 | header_get16(at + 2);
}

static void header_read_sacks(const uint8_t *at, uint32_t bytes, struct tcp_header *out)
{
	uint32_t n = bytes / 8;

	if (bytes % 8 != 0 || n > TCP_SACKS_MAX)
		return;
	for (uint32_t i = 0; i < n; i++) {
		out->sack[i].from = header_get32(at + 8 * i);
		out->sack[i].to = header_get32(at + 8 * i + 4);
	}
	out->n_sacks = n;
}

/* <value> and <bytes>: what follows the option's kind and length. */
static void header_read_option(uint8_t kind, const uint8_t *value, uint32_t bytes,
			       struct tcp_header *out)
{
	bool syn = out->flags & TCP_BIT_SYN;

	switch (kind) {
	case OPTION_MSS:
		if (syn && bytes == 2)
			out->mss = header_get16(value);
		break;
	case OPTION_SCALE:
		if (syn && bytes == 1)
			out->scale = value[0] < TCP_SCALE_MAX ? value[0] : TCP_SCALE_MAX;
		break;
	case OPTION_SACK_PERMITTED:
		if (syn && bytes == 0)
			out->sack_permitted = true;
		break;
	case OPTION_SACK:
		header_read_sacks(value, bytes, out);
		break;
	case OPTION_TIMESTAMP:
		if (bytes != 8)
			break;
		out->has_timestamp = true;
		out->ts_value = header_get32(value);
		out->ts_echo = header_get32(value + 4);
		break;
	}
}

static void header_read_options(const uint8_t *at, uint32_t left, struct tcp_header *out)
{
	uint32_t size;

	for (; left > 0 && at[0] != OPTION_END; at += size, left -= size) {
		size = 1;
		if (at[0] == OPTION_NOP)
			continue;
		if (left < 2 || at[1] < 2 || at[1] > left)
			return;
		size = at[1];
		header_read_option(at[0], at + 2, size - 2, out);
	}
}

/* Nearly every segment has a timestamp and nothing else, laid out as RFC 7323, appendix A,
 * recommends. True: they were read. */
static inline bool header_read_usual(const uint8_t *at, uint32_t bytes, struct tcp_header *out)
{
	if (bytes != TCP_TIMESTAMP ||
	    header_get32(at) != (OPTION_NOP << 24 | OPTION_NOP << 16 | OPTION_TIMESTAMP << 8 | 10))
		return false;
	out->has_timestamp = true;
	out->ts_value = header_get32(at + 4);
	out->ts_echo = header_get32(at + 8);
	return true;
}

int tcp_header_read(const uint8_t *tcp, uint32_t length, struct tcp_header *out)
{
	uint32_t size;

	if (length < TCP_HEADER_MIN)
		return -EINVAL;
	size = (tcp[12] >> 4) * 4u;
	if (size < TCP_HEADER_MIN || size > length)
		return -EINVAL;
	*out = (struct tcp_header){
		.seq = header_get32(tcp + 4),
		.ack = header_get32(tcp + 8),
		.length = length - size,
		.window = header_get16(tcp + 14),
		.flags = tcp[13],
		.size = (uint8_t)size,
		.scale = TCP_SCALE_NONE,
	};
	if (!header_read_usual(tcp + TCP_HEADER_MIN, size - TCP_HEADER_MIN, out))
		header_read_options(tcp + TCP_HEADER_MIN, size - TCP_HEADER_MIN, out);
	return 0;
}

uint32_t tcp_header_size(const struct tcp_header *h)
{
	uint32_t size = TCP_HEADER_MIN;

	if (h->mss != 0)
		size += 4;
	if (h->scale != TCP_SCALE_NONE)
		size += 4;
	if (h->sack_permitted)
		size += 4;
	if (h->has_timestamp)
		size += TCP_TIMESTAMP;
	if (h->n_sacks > 0)
		size += 4 + 8 * h->n_sacks;
	return size;
}

static void header_put16(uint8_t *at, uint16_t value)
{
	value = htons(value);
	memcpy(at, &value, sizeof(value));
}

static void header_put32(uint8_t *at, uint32_t value)
{
	value = htonl(value);
	memcpy(at, &value, sizeof(value));
}

/* Every option begins on a word: NOPs go in front of the short ones. */
static uint8_t *header_write_options(const struct tcp_header *h, uint8_t *at)
{
	if (h->mss != 0) {
		header_put16(at, OPTION_MSS << 8 | 4);
		header_put16(at + 2, h->mss);
		at += 4;
	}
	if (h->scale != TCP_SCALE_NONE) {
		header_put32(at, OPTION_NOP << 24 | OPTION_SCALE << 16 | 3 << 8 | h->scale);
		at += 4;
	}
	if (h->sack_permitted) {
		header_put32(at,
			     OPTION_NOP << 24 | OPTION_NOP << 16 | OPTION_SACK_PERMITTED << 8 | 2);
		at += 4;
	}
	if (h->has_timestamp) {
		header_put32(at, OPTION_NOP << 24 | OPTION_NOP << 16 | OPTION_TIMESTAMP << 8 | 10);
		header_put32(at + 4, h->ts_value);
		header_put32(at + 8, h->ts_echo);
		at += TCP_TIMESTAMP;
	}
	if (h->n_sacks == 0)
		return at;
	header_put32(at, OPTION_NOP << 24 | OPTION_NOP << 16 | OPTION_SACK << 8 |
				 (2 + 8u * h->n_sacks));
	at += 4;
	for (unsigned int i = 0; i < h->n_sacks; i++, at += 8) {
		header_put32(at, h->sack[i].from);
		header_put32(at + 4, h->sack[i].to);
	}
	return at;
}

uint32_t tcp_header_write(const struct tcp_header *h, uint16_t source, uint16_t destination,
			  uint8_t *tcp)
{
	uint32_t size = header_write_options(h, tcp + TCP_HEADER_MIN) - tcp;

	memcpy(tcp, &source, 2);
	memcpy(tcp + 2, &destination, 2);
	header_put32(tcp + 4, h->seq);
	header_put32(tcp + 8, h->ack);
	tcp[12] = size / 4 << 4;
	tcp[13] = h->flags;
	header_put16(tcp + 14, h->window);
	memset(tcp + 16, 0, 4); /* checksum, urgent pointer */
	return size;
}
