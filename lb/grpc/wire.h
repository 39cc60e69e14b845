/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Protocol Buffers' wire format (protobuf.dev, "Encoding"), read from bytes that come in parts, cut
 * anywhere. Allocates nothing, and goes no deeper than GRPC_WIRE_DEPTH. What a field means is the
 * caller's: it says of each field that has a length whether it is a message, packed values, or
 * bytes, which it is if nothing is said.
 */
#ifndef LB_GRPC_WIRE_H
#define LB_GRPC_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#define GRPC_WIRE_DEPTH 4 /* messages in each other, packed values included */

enum grpc_wire_type {
	GRPC_WIRE_VARINT = 0,
	GRPC_WIRE_FIXED64 = 1,
	GRPC_WIRE_LENGTH = 2,
	GRPC_WIRE_FIXED32 = 5,
};

enum grpc_token {
	GRPC_MORE,      /* all bytes were read */
	GRPC_VALUE,     /* a number: <field>, <type>, <value> */
	GRPC_FIELD,     /* <field> has <value> bytes; now is the time to say what it is */
	GRPC_BYTES,     /* <length> of them lie at <bytes> */
	GRPC_BYTES_END, /* all of them came */
	GRPC_END,       /* the message of <field> ended */
	GRPC_DONE,      /* the outermost message ended; all later calls return it, too */
	GRPC_BROKEN,    /* no valid encoding; likewise */
};

struct grpc_wire {
	uint64_t value;
	const uint8_t *bytes;
	uint32_t length;
	uint32_t field;
	uint8_t type; /* enum grpc_wire_type */
	uint32_t numbers; /* that were read, tags and lengths included; modulo 2^32 */
	/* private */
	uint8_t depth, state, shift;
	uint64_t number;                  /* a varint or fixed value so far */
	uint64_t bytes_left;              /* of the field that is read as bytes */
	uint64_t left[GRPC_WIRE_DEPTH];   /* of each open message, without the ones in it */
	uint32_t opened[GRPC_WIRE_DEPTH]; /* the field that it is */
	uint8_t packed[GRPC_WIRE_DEPTH];  /* 0: a message; else 1 + type of its values */
};

/* The outermost message has <length> bytes. */
void grpc_wire_init(struct grpc_wire *w, uint64_t length);

/* Reads from *at on, and moves *at behind what was read. */
enum grpc_token grpc_wire_read(struct grpc_wire *w, const uint8_t **at, const uint8_t *end);

/* Among packed varints, between two of them: bytes that are left of them; else 0. */
static inline uint64_t grpc_wire_packed_left(const struct grpc_wire *w)
{
	bool between =
		w->state == 0 && w->shift == 0 && w->packed[w->depth] == 1 + GRPC_WIRE_VARINT;

	return between ? w->left[w->depth] : 0;
}

/* The caller has read <n> of these bytes, whole values. */
static inline void grpc_wire_take_packed(struct grpc_wire *w, uint32_t n)
{
	w->left[w->depth] -= n;
}

/* After GRPC_FIELD: it is a message, or packed values of <type>. False: it is too deep. */
bool grpc_wire_enter(struct grpc_wire *w);
bool grpc_wire_enter_packed(struct grpc_wire *w, enum grpc_wire_type type);

/* After GRPC_BYTES: the last <n> of them were not used; the caller moves *at back by as much. */
static inline void grpc_wire_unread(struct grpc_wire *w, uint32_t n)
{
	w->bytes_left += n;
}

/* The next <n> bytes of a field that is read as bytes count as read; there are as many. */
static inline void grpc_wire_skip(struct grpc_wire *w, uint64_t n)
{
	w->bytes_left -= n;
}

/* The numbers of the fields around the present one: from 1 on, that of the message at a depth. */
static inline uint32_t grpc_wire_inside(const struct grpc_wire *w, uint8_t depth)
{
	return depth <= w->depth ? w->opened[depth] : 0;
}

#endif
