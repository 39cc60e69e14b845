/* SPDX-License-Identifier: BSD-3-Clause */
#include "grpc/wire.h"

#include <string.h>

enum wire_state {
	WIRE_TAG, /* 0; or a value, where values are packed */
	WIRE_VARINT,
	WIRE_FIXED,
	WIRE_LENGTH,
	WIRE_BYTES,
	WIRE_IS_DONE,
	WIRE_IS_BROKEN,
};

/* Bytes of a varint are 7 bits each; ten of them have 64. */
#define VARINT_SHIFT_LAST 63
#define FIELD_MAX         ((1u << 29) - 1)

void grpc_wire_init(struct grpc_wire *w, uint64_t length)
{
	memset(w, 0, sizeof(*w));
	w->left[0] = length;
}

static enum grpc_token wire_break(struct grpc_wire *w)
{
	w->state = WIRE_IS_BROKEN;
	return GRPC_BROKEN;
}

/* A byte of a varint. 1: it was the last; 0; -1: it is too long. */
static int wire_varint(struct grpc_wire *w, uint8_t byte)
{
	if (w->shift == VARINT_SHIFT_LAST && byte > 1)
		return -1;
	w->number |= (uint64_t)(byte & 0x7f) << w->shift;
	w->shift += 7;
	return (byte & 0x80) == 0;
}

static void wire_expect(struct grpc_wire *w, enum wire_state state)
{
	w->state = (uint8_t)state;
	w->number = 0;
	w->shift = 0;
}

static bool wire_open(struct grpc_wire *w, uint8_t packed)
{
	if (w->depth + 1 == GRPC_WIRE_DEPTH)
		return false;
	w->depth++;
	w->left[w->depth] = w->value;
	w->opened[w->depth] = w->field;
	w->packed[w->depth] = packed;
	wire_expect(w, WIRE_TAG);
	return true;
}

bool grpc_wire_enter(struct grpc_wire *w)
{
	return wire_open(w, 0);
}

bool grpc_wire_enter_packed(struct grpc_wire *w, enum grpc_wire_type type)
{
	return wire_open(w, (uint8_t)(1 + type));
}

/* A value of this type follows: behind its tag, or among packed ones. False: no valid type. */
static bool wire_expect_type(struct grpc_wire *w, uint8_t type)
{
	w->type = type;
	if (type == GRPC_WIRE_VARINT)
		wire_expect(w, WIRE_VARINT);
	else if (type == GRPC_WIRE_LENGTH)
		wire_expect(w, WIRE_LENGTH);
	else if (type == GRPC_WIRE_FIXED32 || type == GRPC_WIRE_FIXED64)
		wire_expect(w, WIRE_FIXED);
	else
		return false; /* groups, which no message here has, and types that do not exist */
	return true;
}

static bool wire_tag(struct grpc_wire *w)
{
	uint64_t field = w->number >> 3;

	if (field == 0 || field > FIELD_MAX)
		return false;
	w->field = (uint32_t)field;
	return wire_expect_type(w, w->number & 7);
}

/* A message ends. */
static enum grpc_token wire_close(struct grpc_wire *w)
{
	if (w->depth == 0) {
		w->state = WIRE_IS_DONE;
		return GRPC_DONE;
	}
	w->field = w->opened[w->depth];
	w->depth--;
	return GRPC_END;
}

static enum grpc_token wire_number_ends(struct grpc_wire *w)
{
	uint8_t state = w->state;

	wire_expect(w, WIRE_TAG);
	return state == WIRE_VARINT || state == WIRE_FIXED ? GRPC_VALUE : GRPC_FIELD;
}

/* The last byte of a number came. GRPC_MORE: it was a tag. */
static enum grpc_token wire_number(struct grpc_wire *w)
{
	w->numbers++;
	if (w->state == WIRE_TAG)
		return wire_tag(w) ? GRPC_MORE : wire_break(w);
	w->value = w->number;
	if (w->state != WIRE_LENGTH)
		return wire_number_ends(w);
	if (w->value > w->left[w->depth])
		return wire_break(w);
	w->left[w->depth] -= w->value;
	w->bytes_left = w->value;
	w->state = WIRE_BYTES;
	return GRPC_FIELD;
}

/* One byte that belongs to the innermost message itself. */
static enum grpc_token wire_byte(struct grpc_wire *w, uint8_t byte)
{
	int ends;

	w->left[w->depth]--;
	if (w->state == WIRE_FIXED) {
		w->number |= (uint64_t)byte << w->shift;
		w->shift += 8;
		ends = w->shift == (w->type == GRPC_WIRE_FIXED64 ? 64 : 32);
	} else {
		ends = wire_varint(w, byte);
	}
	if (ends < 0)
		return wire_break(w);
	return ends ? wire_number(w) : GRPC_MORE;
}

/* A slice of a field that is read as bytes. */
static enum grpc_token wire_slice(struct grpc_wire *w, const uint8_t **at, const uint8_t *end)
{
	uint64_t n = (uint64_t)(end - *at);

	if (w->bytes_left == 0) {
		wire_expect(w, WIRE_TAG);
		return GRPC_BYTES_END;
	}
	if (n == 0)
		return GRPC_MORE;
	n = n < w->bytes_left ? n : w->bytes_left;
	n = n < UINT32_MAX ? n : UINT32_MAX;
	w->bytes = *at;
	w->length = (uint32_t)n;
	w->bytes_left -= n;
	*at += n;
	return GRPC_BYTES;
}

enum grpc_token grpc_wire_read(struct grpc_wire *w, const uint8_t **at, const uint8_t *end)
{
	enum grpc_token token = GRPC_MORE;

	if (w->state == WIRE_IS_DONE || w->state == WIRE_IS_BROKEN)
		return w->state == WIRE_IS_DONE ? GRPC_DONE : GRPC_BROKEN;
	while (token == GRPC_MORE) {
		bool fresh = w->state == WIRE_TAG && w->shift == 0;

		if (w->state == WIRE_BYTES)
			return wire_slice(w, at, end);
		if (w->left[w->depth] == 0)
			return fresh ? wire_close(w) : wire_break(w);
		if (fresh && w->packed[w->depth] != 0) {
			w->field = w->opened[w->depth];
			wire_expect_type(w, w->packed[w->depth] - 1);
		}
		if (*at == end)
			return GRPC_MORE;
		token = wire_byte(w, *(*at)++);
	}
	return token;
}
