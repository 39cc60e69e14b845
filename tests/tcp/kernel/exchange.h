/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The language of client and servers in the TCP tests. A request is a head of 16 bytes, all
 * in the machine's byte order: bytes that follow (4), bytes wanted in return (4), a seed (8). Then
 * the bytes, which the seed gives; the reply is the bytes that the seed's complement gives. So both
 * ends check every byte, and none keeps them.
 */
#ifndef TESTS_TCP_EXCHANGE_H
#define TESTS_TCP_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#define EXCHANGE_HEAD 16
#define EXCHANGE_OPEN 64 /* requests whose replies are not acknowledged, at most */

struct exchange_head {
	uint32_t bytes, wanted;
	uint64_t seed;
};

/* Writes bytes <from> up to <from> + <n> of the seed's stream. */
void exchange_fill(uint64_t seed, uint64_t from, uint8_t *at, uint32_t n);

/* Returns the offset of the first of <n> bytes that is not the seed's; <n> if all are. */
uint32_t exchange_compare(uint64_t seed, uint64_t from, const uint8_t *at, uint32_t n);

/* The server's side of one connection. Zeroed memory is its beginning. */
struct exchange {
	uint8_t head[EXCHANGE_HEAD];
	uint32_t head_have;
	struct exchange_head request;
	uint64_t got; /* bytes of it */
	/* replies, oldest first */
	struct exchange_reply {
		uint64_t from, to; /* in the stream of replies */
		uint64_t seed;
	} reply[EXCHANGE_OPEN];
	uint32_t first, n;
	uint64_t queued; /* bytes of replies so far */
	uint64_t requests;
	bool wrong;
};

/* Takes bytes that are in order. Returns the bytes of replies that they add. */
uint64_t exchange_take(struct exchange *e, const uint8_t *at, uint32_t n);

/* Writes bytes of the stream of replies. */
void exchange_give(const struct exchange *e, uint64_t from, uint8_t *at, uint32_t n);

/* The replies before <acked> are not needed again. */
void exchange_forget(struct exchange *e, uint64_t acked);

#endif
