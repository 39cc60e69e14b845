/* SPDX-License-Identifier: BSD-3-Clause */
#include "grpc/contents.h"

#include <inttypes.h>
#include <string.h>

/* Fields of InferTensorContents. */
enum contents_field {
	CONTENTS_BOOL = 1,
	CONTENTS_INT,
	CONTENTS_INT64,
	CONTENTS_UINT,
	CONTENTS_UINT64,
	CONTENTS_FP32,
	CONTENTS_FP64,
	CONTENTS_BYTES,
};

#define ELEMENT_MAX 8

/* The field that has a datatype's values; 0: none has, they come in raw_input_contents. */
static uint32_t contents_field_of(enum kserve_datatype type)
{
	static const uint8_t fields[] = {
		[KSERVE_BOOL] = CONTENTS_BOOL,     [KSERVE_UINT8] = CONTENTS_UINT,
		[KSERVE_UINT16] = CONTENTS_UINT,   [KSERVE_UINT32] = CONTENTS_UINT,
		[KSERVE_UINT64] = CONTENTS_UINT64, [KSERVE_INT8] = CONTENTS_INT,
		[KSERVE_INT16] = CONTENTS_INT,     [KSERVE_INT32] = CONTENTS_INT,
		[KSERVE_INT64] = CONTENTS_INT64,   [KSERVE_FP32] = CONTENTS_FP32,
		[KSERVE_FP64] = CONTENTS_FP64,     [KSERVE_BYTES] = CONTENTS_BYTES,
	};

	return fields[type];
}

static enum grpc_wire_type contents_type_of(uint32_t field)
{
	return field == CONTENTS_FP32   ? GRPC_WIRE_FIXED32
	       : field == CONTENTS_FP64 ? GRPC_WIRE_FIXED64
					: GRPC_WIRE_VARINT;
}

static enum grpc_infer_step contents_refuse(struct kserve_infer *to, uint8_t i, const char *error)
{
	kserve_infer_refuse(to, 400, "inputs[%u] ('%s').contents: %s", i, to->input[i].name, error);
	return GRPC_INFER_REFUSED;
}

/* Is the number one of the datatype? */
static bool contents_has_range(enum kserve_datatype type, uint64_t value)
{
	int64_t number = (int32_t)value;

	switch (type) {
	case KSERVE_UINT8:
		return value <= UINT8_MAX;
	case KSERVE_UINT16:
		return value <= UINT16_MAX;
	case KSERVE_UINT32:
		return value <= UINT32_MAX;
	case KSERVE_INT8:
		return number >= INT8_MIN && number <= INT8_MAX;
	case KSERVE_INT16:
		return number >= INT16_MIN && number <= INT16_MAX;
	default:
		return true;
	}
}

static void contents_write(struct grpc_contents *c, struct kserve_run *run, const uint8_t *bytes,
			   uint32_t n)
{
	memcpy(run->at + run->length, bytes, n);
	run->length += n;
	c->offset += n;
}

/* A number of the datatype's field. */
static enum grpc_infer_step contents_number(struct grpc_contents *c, struct kserve_infer *to,
					    uint8_t i, uint64_t value, struct kserve_run *run)
{
	enum kserve_datatype type = to->input[i].type;
	uint32_t size = kserve_datatype_size(type);

	if (type == KSERVE_BOOL)
		value = value != 0;
	if (!contents_has_range(type, value))
		return contents_refuse(to, i, "a number that its datatype has not");
	/* The lowest bytes first: x86 has them so. */
	memcpy(run->at + run->length, &value, ELEMENT_MAX);
	run->length += size;
	c->offset += size;
	c->count++;
	return GRPC_INFER_MORE;
}

static enum grpc_infer_step contents_value(struct grpc_contents *c, struct kserve_infer *to,
					   uint8_t i, struct kserve_run *run)
{
	if (c->wire.field != contents_field_of(to->input[i].type) ||
	    c->wire.type != contents_type_of(c->wire.field))
		return contents_refuse(to, i, "values of another datatype than the input has");
	return contents_number(c, to, i, c->wire.value, run);
}

/* Packed numbers of a byte, as most are: each datatype has them. Ends before another one, and where
 * the run does. */
static void contents_packed(struct grpc_contents *c, const struct kserve_input *input,
			    const uint8_t **at, const uint8_t *end, struct kserve_run *run)
{
	uint64_t most = grpc_wire_packed_left(&c->wire), elements = input->elements - c->count;
	uint32_t size = kserve_datatype_size(input->type), n = 0;
	uint8_t *to = run->at + run->length;

	most = most < (uint64_t)(end - *at) ? most : (uint64_t)(end - *at);
	most = most < elements ? most : elements;
	if (most == 0)
		return;
	while (n < most && (*at)[n] < 0x80 && run->room - run->length >= ELEMENT_MAX &&
	       !kserve_run_is_over(run)) {
		uint64_t value = input->type == KSERVE_BOOL ? (*at)[n] != 0 : (*at)[n];

		memcpy(to, &value, ELEMENT_MAX);
		to += size;
		run->length += size;
		run->work++;
		n++;
	}
	grpc_wire_take_packed(&c->wire, n);
	c->offset += n * size;
	c->count += n;
	*at += n;
}

/* A field that has a length: packed numbers, or an element of BYTES. */
static enum grpc_infer_step contents_field(struct grpc_contents *c, struct kserve_infer *to,
					   uint8_t i)
{
	uint32_t size = kserve_datatype_size(to->input[i].type);
	uint32_t field = c->wire.field;

	c->as_bytes = 0;
	if (field > CONTENTS_BYTES) /* unknown: skipped */
		return GRPC_INFER_MORE;
	if (field != contents_field_of(to->input[i].type))
		return contents_refuse(to, i, "values of another datatype than the input has");
	if (field == CONTENTS_BYTES) {
		if (c->wire.value > UINT32_MAX)
			return contents_refuse(to, i, "an element is too long");
		for (unsigned int k = 0; k < sizeof(c->word); k++)
			c->word[k] = (uint8_t)(c->wire.value >> 8 * k);
		c->word_left = sizeof(c->word);
		c->as_bytes = field;
		c->count++;
	} else if (contents_type_of(field) == GRPC_WIRE_VARINT) {
		grpc_wire_enter_packed(&c->wire, GRPC_WIRE_VARINT);
	} else {
		if (c->wire.value % size != 0)
			return contents_refuse(to, i, "a part of a number");
		c->as_bytes = field;
		c->count += c->wire.value / size;
	}
	return GRPC_INFER_MORE;
}

/* Bytes that are the tensor's as they are, as far as there is room. */
static void contents_bytes(struct grpc_contents *c, const uint8_t **at, struct kserve_run *run)
{
	uint32_t room = run->room - run->length, n = c->wire.length < room ? c->wire.length : room;

	if (c->as_bytes == 0)
		return;
	contents_write(c, run, c->wire.bytes, n);
	grpc_wire_unread(&c->wire, c->wire.length - n);
	*at -= c->wire.length - n;
}

static enum grpc_infer_step contents_token(struct grpc_contents *c, struct kserve_infer *to,
					   uint8_t i, enum grpc_token token, const uint8_t **at,
					   struct kserve_run *run)
{
	switch (token) {
	case GRPC_VALUE:
		return c->wire.field > CONTENTS_BYTES ? GRPC_INFER_MORE
						      : contents_value(c, to, i, run);
	case GRPC_FIELD:
		return contents_field(c, to, i);
	case GRPC_BYTES:
		contents_bytes(c, at, run);
		return GRPC_INFER_MORE;
	case GRPC_BROKEN:
		return contents_refuse(to, i, "no InferTensorContents");
	default:
		return GRPC_INFER_MORE;
	}
}

/* A token, and what it means. False: there is none. */
static bool contents_step(struct grpc_contents *c, struct kserve_infer *to, uint8_t i,
			  const uint8_t **at, const uint8_t *end, struct kserve_run *run,
			  enum grpc_infer_step *step)
{
	uint32_t numbers = c->wire.numbers;
	const uint8_t *from = *at;
	enum grpc_token token = grpc_wire_read(&c->wire, at, end);

	run->work += (uint32_t)(*at - from) + 1 + GRPC_NUMBER_WORK * (c->wire.numbers - numbers);
	if (token == GRPC_MORE || token == GRPC_DONE)
		return false;
	*step = contents_token(c, to, i, token, at, run);
	return true;
}

enum grpc_infer_step grpc_contents_read(struct grpc_contents *c, struct kserve_infer *to, uint8_t i,
					const uint8_t **at, const uint8_t *end,
					struct kserve_run *run)
{
	enum grpc_infer_step step = GRPC_INFER_MORE;

	run->input = i;
	run->offset = c->offset;
	while (step == GRPC_INFER_MORE && run->room - run->length >= ELEMENT_MAX) {
		if (kserve_run_is_over(run))
			return GRPC_INFER_RUN;
		if (c->word_left > 0) {
			contents_write(c, run, c->word, sizeof(c->word));
			c->word_left = 0;
		}
		if (c->count > to->input[i].elements)
			return contents_refuse(to, i, "more values than the shape says");
		contents_packed(c, &to->input[i], at, end, run);
		if (run->room - run->length >= ELEMENT_MAX &&
		    !contents_step(c, to, i, at, end, run, &step))
			break;
	}
	if (step == GRPC_INFER_MORE && run->length > 0)
		return GRPC_INFER_RUN;
	return step;
}

enum grpc_infer_step grpc_contents_end(struct grpc_contents *c, struct kserve_infer *to, uint8_t i)
{
	if (c->count == to->input[i].elements)
		return GRPC_INFER_MORE;
	kserve_infer_refuse(
		to, 400, "inputs[%u] ('%s').contents: %" PRIu64 " values, the shape says %" PRIu64,
		i, to->input[i].name, c->count, to->input[i].elements);
	return GRPC_INFER_REFUSED;
}
