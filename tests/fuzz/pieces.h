/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pieces of a stream for the stream fuzzers, each followed by bytes that AddressSanitizer knows as
 * nobody's, and so is one that was released: as malloc() has it, which took longer than what is
 * tested.
 */
#ifndef FUZZ_PIECES_H
#define FUZZ_PIECES_H

#include <sanitizer/asan_interface.h>
#include <stdlib.h>
#include <string.h>

#include "framing/placement.h"

#define PIECES_INPUT_MAX 16384 /* bytes of an input, each of which may be a piece */
#define PIECES_UNIT      8     /* a piece begins at a multiple of it */
#define PIECES_REDZONE   16

static struct {
	uint32_t used, out; /* <out>: pieces that were not released */
	_Alignas(16) uint8_t bytes[PIECES_INPUT_MAX *
				   (sizeof(struct placement_piece) + PIECES_UNIT + PIECES_REDZONE)];
} taken_pieces;

/* Nothing of earlier pieces is left. */
static inline void pieces_begin(void)
{
	if (taken_pieces.out != 0)
		abort();
	if (taken_pieces.used == 0)
		__asan_poison_memory_region(taken_pieces.bytes, sizeof(taken_pieces.bytes));
	taken_pieces.used = 0;
}

/* A piece with a copy of these bytes. */
static inline struct placement_piece *pieces_take(uint64_t position, const uint8_t *bytes,
						  uint32_t length)
{
	struct placement_piece *piece =
		(struct placement_piece *)(taken_pieces.bytes + taken_pieces.used);
	uint32_t n = (uint32_t)sizeof(*piece) + length;

	if (taken_pieces.used + n + PIECES_REDZONE > sizeof(taken_pieces.bytes))
		abort();
	__asan_unpoison_memory_region(piece, n);
	memcpy(piece + 1, bytes, length);
	*piece = (struct placement_piece){
		.position = position, .bytes = (uint8_t *)(piece + 1), .length = length};
	taken_pieces.used += (n + PIECES_REDZONE + PIECES_UNIT - 1) / PIECES_UNIT * PIECES_UNIT;
	taken_pieces.out++;
	return piece;
}

/* It was released. */
static inline void pieces_give(struct placement_piece *piece)
{
	__asan_poison_memory_region(piece, sizeof(*piece) + piece->length);
	taken_pieces.out--;
}

#endif
