/* SPDX-License-Identifier: BSD-3-Clause */
/* The members of an infer request, and where in it the reader is. */
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "kserve/infer_data.h"

enum infer_place {
	INFER_TOP,
	INFER_PARAMETERS,
	INFER_INPUTS,
	INFER_INPUT,
	INFER_INPUT_PARAMETERS,
	INFER_SHAPE,
	INFER_DATA,
	INFER_OUTPUTS,
	INFER_OUTPUT,
	INFER_OUTPUT_PARAMETERS,
	INFER_SKIP,  /* the value of an unknown member */
	INFER_EARLY, /* values that come before their description: kept */
	INFER_START,
};

enum infer_member {
	MEMBER_UNKNOWN,
	MEMBER_ID,
	MEMBER_PARAMETERS,
	MEMBER_INPUTS,
	MEMBER_OUTPUTS,
	MEMBER_TIMEOUT,
	MEMBER_PRIORITY,
	MEMBER_SEQUENCE_ID,
	MEMBER_SEQUENCE_START,
	MEMBER_SEQUENCE_END,
	MEMBER_BINARY_DATA_OUTPUT,
	MEMBER_INPUT_NAME,
	MEMBER_INPUT_SHAPE,
	MEMBER_INPUT_DATATYPE,
	MEMBER_INPUT_PARAMETERS,
	MEMBER_INPUT_DATA,
	MEMBER_BINARY_DATA_SIZE,
	MEMBER_INPUT_SHARED_MEMORY,
	MEMBER_OUTPUT_NAME,
	MEMBER_OUTPUT_PARAMETERS,
	MEMBER_BINARY_DATA,
	MEMBER_CLASSIFICATION,
	MEMBER_OUTPUT_SHARED_MEMORY,
	MEMBER_TEXT_INPUT,
	MEMBERS,
};

#define INFER_PIECE_MORE 4 /* bytes that a piece of a string has more than were read for it */

#define KIND(kind)   (1u << (kind))
#define KINDS_BOOL   (KIND(JSON_TOKEN_TRUE) | KIND(JSON_TOKEN_FALSE))
#define KINDS_STRING KIND(JSON_TOKEN_STRING)
#define KINDS_NUMBER KIND(JSON_TOKEN_NUMBER)
#define KINDS_OBJECT KIND(JSON_TOKEN_OBJECT_BEGIN)
#define KINDS_ARRAY  KIND(JSON_TOKEN_ARRAY_BEGIN)
#define KINDS_NULL   KIND(JSON_TOKEN_NULL) /* some libraries write it for what is not there */

static const struct infer_row {
	const char *name;
	uint8_t place; /* the object that it is a member of */
	uint8_t inner; /* the place inside of an object or array */
	uint16_t kinds;
	const char *expected;
} infer_rows[MEMBERS] = {
	[MEMBER_ID] = {"id", INFER_TOP, 0, KINDS_STRING | KINDS_NULL, "a string"},
	[MEMBER_PARAMETERS] = {"parameters", INFER_TOP, INFER_PARAMETERS, KINDS_OBJECT | KINDS_NULL,
			       "an object"},
	[MEMBER_INPUTS] = {"inputs", INFER_TOP, INFER_INPUTS, KINDS_ARRAY, "an array"},
	[MEMBER_OUTPUTS] = {"outputs", INFER_TOP, INFER_OUTPUTS, KINDS_ARRAY | KINDS_NULL,
			    "an array"},
	[MEMBER_TIMEOUT] = {"timeout", INFER_PARAMETERS, 0, KINDS_NUMBER | KINDS_NULL, "a number"},
	[MEMBER_PRIORITY] = {"priority", INFER_PARAMETERS, 0, KINDS_NUMBER | KINDS_NULL,
			     "a number"},
	[MEMBER_SEQUENCE_ID] = {"sequence_id", INFER_PARAMETERS, 0,
				KINDS_NUMBER | KINDS_STRING | KINDS_NULL, "a number or string"},
	[MEMBER_SEQUENCE_START] = {"sequence_start", INFER_PARAMETERS, 0, KINDS_BOOL | KINDS_NULL,
				   "true or false"},
	[MEMBER_SEQUENCE_END] = {"sequence_end", INFER_PARAMETERS, 0, KINDS_BOOL | KINDS_NULL,
				 "true or false"},
	[MEMBER_BINARY_DATA_OUTPUT] = {"binary_data_output", INFER_PARAMETERS, 0,
				       KINDS_BOOL | KINDS_NULL, "true or false"},
	[MEMBER_INPUT_NAME] = {"name", INFER_INPUT, 0, KINDS_STRING, "a string"},
	[MEMBER_INPUT_SHAPE] = {"shape", INFER_INPUT, INFER_SHAPE, KINDS_ARRAY, "an array"},
	[MEMBER_INPUT_DATATYPE] = {"datatype", INFER_INPUT, 0, KINDS_STRING, "a string"},
	[MEMBER_INPUT_PARAMETERS] = {"parameters", INFER_INPUT, INFER_INPUT_PARAMETERS,
				     KINDS_OBJECT | KINDS_NULL, "an object"},
	[MEMBER_INPUT_DATA] = {"data", INFER_INPUT, INFER_DATA, KINDS_ARRAY, "an array"},
	[MEMBER_BINARY_DATA_SIZE] = {"binary_data_size", INFER_INPUT_PARAMETERS, 0,
				     KINDS_NUMBER | KINDS_NULL, "a number"},
	[MEMBER_INPUT_SHARED_MEMORY] = {"shared_memory_region", INFER_INPUT_PARAMETERS, 0, 0, ""},
	[MEMBER_OUTPUT_NAME] = {"name", INFER_OUTPUT, 0, KINDS_STRING, "a string"},
	[MEMBER_OUTPUT_PARAMETERS] = {"parameters", INFER_OUTPUT, INFER_OUTPUT_PARAMETERS,
				      KINDS_OBJECT | KINDS_NULL, "an object"},
	[MEMBER_BINARY_DATA] = {"binary_data", INFER_OUTPUT_PARAMETERS, 0, KINDS_BOOL | KINDS_NULL,
				"true or false"},
	[MEMBER_CLASSIFICATION] = {"classification", INFER_OUTPUT_PARAMETERS, 0,
				   KINDS_NUMBER | KINDS_NULL, "a number"},
	[MEMBER_OUTPUT_SHARED_MEMORY] = {"shared_memory_region", INFER_OUTPUT_PARAMETERS, 0, 0, ""},
	[MEMBER_TEXT_INPUT] = {"text_input", INFER_TOP, 0, KINDS_STRING, "a string"},
};
_Static_assert(MEMBERS <= 32, "a bit each in <seen>");

/* Where the reader returns to at the end of a place. */
static const uint8_t infer_outer[] = {
	[INFER_TOP] = INFER_START,
	[INFER_PARAMETERS] = INFER_TOP,
	[INFER_INPUTS] = INFER_TOP,
	[INFER_INPUT] = INFER_INPUTS,
	[INFER_INPUT_PARAMETERS] = INFER_INPUT,
	[INFER_SHAPE] = INFER_INPUT,
	[INFER_DATA] = INFER_INPUT,
	[INFER_OUTPUTS] = INFER_TOP,
	[INFER_OUTPUT] = INFER_OUTPUTS,
	[INFER_OUTPUT_PARAMETERS] = INFER_OUTPUT,
	[INFER_EARLY] = INFER_INPUT,
	[INFER_START] = INFER_START,
};

void kserve_infer_init(struct kserve_infer *r, uint64_t max_bytes, char *early, uint32_t early_room)
{
	/* The tensors are zeroed when they begin. */
	memset(r, 0, offsetof(struct kserve_infer, input));
	memset(&r->binary_bytes, 0,
	       offsetof(struct kserve_infer, text) - offsetof(struct kserve_infer, binary_bytes));
	r->place = INFER_START;
	r->max_bytes = max_bytes;
	r->early = early;
	r->early_room = early_room;
}

/* --- refusals --- */

static enum kserve_step infer_vrefuse(struct kserve_infer *r, uint16_t status, uint32_t length,
				      const char *format, va_list arguments)
{
	r->status = status;
	vsnprintf(r->error + length, sizeof(r->error) - length, format, arguments);
	return KSERVE_REFUSED;
}

enum kserve_step kserve_infer_refuse(struct kserve_infer *r, uint16_t status, const char *format,
				     ...)
{
	va_list arguments;

	va_start(arguments, format);
	infer_vrefuse(r, status, 0, format, arguments);
	va_end(arguments);
	return KSERVE_REFUSED;
}

/* "inputs[1] ('x')", "parameters.", "" */
static uint32_t infer_write_place(const struct kserve_infer *r, char *at, uint32_t room)
{
	const char *of = infer_rows[r->member].name, *dot = of == NULL ? "" : ".";
	const char *name = r->inputs < KSERVE_TENSORS_MAX ? r->input[r->inputs].name : "";
	int n;

	of = of == NULL ? "" : of;
	switch ((enum infer_place)r->place) {
	case INFER_PARAMETERS:
		n = snprintf(at, room, "parameters%s%s: ", dot, of);
		break;
	case INFER_INPUT:
	case INFER_INPUT_PARAMETERS:
	case INFER_SHAPE:
	case INFER_DATA:
	case INFER_EARLY:
		n = snprintf(at, room, "inputs[%u]%s%s%s%s%s: ", r->inputs,
			     name[0] != '\0' ? " ('" : "", name, name[0] != '\0' ? "')" : "", dot,
			     of);
		break;
	case INFER_OUTPUT:
	case INFER_OUTPUT_PARAMETERS:
		n = snprintf(at, room, "outputs[%u]%s%s: ", r->outputs, dot, of);
		break;
	case INFER_INPUTS:
		n = snprintf(at, room, "inputs: ");
		break;
	case INFER_OUTPUTS:
		n = snprintf(at, room, "outputs: ");
		break;
	default:
		n = of[0] == '\0' ? 0 : snprintf(at, room, "%s: ", of);
	}
	return (uint32_t)n < room ? (uint32_t)n : room - 1;
}

enum kserve_step kserve_infer_refuse_here(struct kserve_infer *r, uint16_t status,
					  const char *format, ...)
{
	uint32_t length = infer_write_place(r, r->error, sizeof(r->error));
	va_list arguments;

	va_start(arguments, format);
	infer_vrefuse(r, status, length, format, arguments);
	va_end(arguments);
	return KSERVE_REFUSED;
}

enum kserve_step kserve_infer_refuse_syntax(struct kserve_infer *r, const char *error)
{
	return kserve_infer_refuse_here(r, 400, "%s, behind byte %" PRIu64, error, r->behind);
}

/* --- members --- */

/* A piece of a string. One that is too long is cut, and its length says so. */
static void infer_keep(struct kserve_infer *r, const struct json_token *token)
{
	if (r->text_length + token->length > KSERVE_TEXT_MAX) {
		r->text_length = KSERVE_TEXT_MAX + 1;
		return;
	}
	memcpy(r->text + r->text_length, token->text, token->length);
	r->text_length += token->length;
}

/* Means it something in this request? Requests of text have other members at the top. */
static bool infer_has_member(const struct kserve_infer *r, uint8_t m)
{
	if (m == MEMBER_TEXT_INPUT)
		return r->is_text;
	return !r->is_text || (m != MEMBER_INPUTS && m != MEMBER_OUTPUTS);
}

/* A piece of a member's name. */
static enum kserve_step infer_key(struct kserve_infer *r, const struct json_token *token)
{
	infer_keep(r, token);
	if (!token->last)
		return KSERVE_MORE;
	r->member = MEMBER_UNKNOWN;
	for (uint8_t m = MEMBER_UNKNOWN + 1; m < MEMBERS; m++) {
		if (infer_rows[m].place == r->place && infer_has_member(r, m) &&
		    strlen(infer_rows[m].name) == r->text_length &&
		    memcmp(infer_rows[m].name, r->text, r->text_length) == 0)
			r->member = m;
	}
	r->text_length = 0;
	if (r->member == MEMBER_UNKNOWN)
		return KSERVE_MORE;
	if ((r->seen & 1u << r->member) != 0)
		return kserve_infer_refuse_here(r, 400, "is there twice");
	r->seen |= 1u << r->member;
	return KSERVE_MORE;
}

/* Members of an object may be there again in the next one. */
static void infer_forget_members(struct kserve_infer *r, enum infer_place place)
{
	for (uint8_t m = MEMBER_UNKNOWN + 1; m < MEMBERS; m++) {
		if (infer_rows[m].place == place)
			r->seen &= ~(1u << m);
	}
}

/* --- values --- */

static enum kserve_step infer_u64(struct kserve_infer *r, const struct json_number *n,
				  uint64_t *value)
{
	if (json_number_u64(n, value))
		return KSERVE_MORE;
	return kserve_infer_refuse_here(r, 400, "expected an integer from 0 to 2^64 - 1");
}

static enum kserve_step infer_dimension(struct kserve_infer *r, const struct json_number *n)
{
	struct kserve_input *input = &r->input[r->inputs];

	if (input->dims == KSERVE_DIMS_MAX)
		return kserve_infer_refuse_here(r, 400, "more than %u dimensions", KSERVE_DIMS_MAX);
	return infer_u64(r, n, &input->shape[input->dims++]);
}

static enum kserve_step infer_binary_size(struct kserve_infer *r, const struct json_number *n)
{
	struct kserve_input *input = &r->input[r->inputs];

	input->binary = true;
	if (infer_u64(r, n, &input->bytes) == KSERVE_REFUSED)
		return KSERVE_REFUSED;
	if (input->bytes > r->max_bytes)
		return kserve_infer_refuse_here(r, 413, "more than %" PRIu64 " bytes",
						r->max_bytes);
	return KSERVE_MORE;
}

static enum kserve_step infer_number(struct kserve_infer *r, const struct json_number *n)
{
	switch ((enum infer_member)r->member) {
	case MEMBER_TIMEOUT:
		return infer_u64(r, n, &r->timeout_us);
	case MEMBER_PRIORITY:
		return infer_u64(r, n, &r->priority);
	case MEMBER_SEQUENCE_ID:
		return infer_u64(r, n, &r->sequence);
	case MEMBER_CLASSIFICATION: /* classes wanted; 0: the tensor */
		if (n->mantissa != 0)
			return kserve_infer_refuse_here(r, 501, "is not supported");
		return KSERVE_MORE;
	default:
		return infer_binary_size(r, n);
	}
}

static void infer_bool(struct kserve_infer *r, bool value)
{
	struct kserve_output_choice *output = &r->output[r->outputs];

	switch ((enum infer_member)r->member) {
	case MEMBER_SEQUENCE_START:
		r->sequence_start = value;
		break;
	case MEMBER_SEQUENCE_END:
		r->sequence_end = value;
		break;
	case MEMBER_BINARY_DATA:
		output->is_chosen = true;
		output->binary = value;
		break;
	default:
		r->binary_outputs = value;
	}
}

/* The name of a tensor: no 0 in it. */
static enum kserve_step infer_name(struct kserve_infer *r, char name[KSERVE_NAME_MAX])
{
	if (r->text_length == 0 || r->text_length >= KSERVE_NAME_MAX ||
	    memchr(r->text, '\0', r->text_length) != NULL)
		return kserve_infer_refuse_here(r, 400, "expected 1 to %u bytes, none of them 0",
						KSERVE_NAME_MAX - 1);
	memcpy(name, r->text, r->text_length);
	return KSERVE_MORE;
}

static enum kserve_step infer_id(struct kserve_infer *r)
{
	if (r->text_length > KSERVE_ID_MAX)
		return kserve_infer_refuse_here(r, 400, "more than %u bytes", KSERVE_ID_MAX);
	memcpy(r->id, r->text, r->text_length);
	r->id_length = (uint8_t)r->text_length;
	r->has_id = true;
	return KSERVE_MORE;
}

static enum kserve_step infer_string_end(struct kserve_infer *r)
{
	struct kserve_input *input = &r->input[r->inputs];

	switch ((enum infer_member)r->member) {
	case MEMBER_ID:
		return infer_id(r);
	case MEMBER_SEQUENCE_ID:
		r->sequence = r->text_length == 0 ? 0
						  : kserve_infer_sequence(KSERVE_SEQUENCE, r->text,
									  r->text_length);
		return KSERVE_MORE;
	case MEMBER_INPUT_NAME:
		return infer_name(r, input->name);
	case MEMBER_OUTPUT_NAME:
		return infer_name(r, r->output[r->outputs].name);
	default:
		input->type = kserve_datatype_of(r->text, r->text_length);
		if (input->type == KSERVE_NO_TYPE)
			return kserve_infer_refuse_here(r, 400, "unknown");
		return KSERVE_MORE;
	}
}

/* A string that is too long is refused at its end: a fault in it comes first, however it is cut. */
static enum kserve_step infer_string(struct kserve_infer *r, const struct json_token *token)
{
	enum kserve_step step;

	infer_keep(r, token);
	if (!token->last)
		return KSERVE_MORE;
	if (r->text_length > KSERVE_TEXT_MAX)
		return kserve_infer_refuse_here(r, 400, "more than %u bytes", KSERVE_TEXT_MAX);
	step = infer_string_end(r);
	r->text_length = 0;
	return step;
}

/* A piece of the text goes on as it comes, but for what is too much: that is told at its end, too.
 */
static enum kserve_step infer_text(struct kserve_infer *r, const struct json_token *token,
				   struct kserve_run *run)
{
	if (r->text_bytes + token->length > r->max_bytes) {
		r->text_bytes = r->max_bytes + 1;
		return !token->last ? KSERVE_MORE
				    : kserve_infer_refuse_here(
					      r, 413, "more than %" PRIu64 " bytes", r->max_bytes);
	}
	memcpy(run->at, token->text, token->length);
	run->input = 0;
	run->offset = r->text_bytes;
	run->length = token->length;
	r->text_bytes += token->length;
	return run->length > 0 ? KSERVE_RUN : KSERVE_MORE;
}

/* --- inputs --- */

static bool infer_is_described(const struct kserve_infer *r)
{
	const uint32_t all =
		1u << MEMBER_INPUT_NAME | 1u << MEMBER_INPUT_SHAPE | 1u << MEMBER_INPUT_DATATYPE;

	return (r->seen & all) == all;
}

static enum kserve_step infer_check_name(struct kserve_infer *r)
{
	for (uint8_t i = 0; i < r->inputs; i++) {
		if (strcmp(r->input[i].name, r->input[r->inputs].name) == 0)
			return kserve_infer_refuse_here(r, 400, "inputs[%u] has the same name", i);
	}
	return KSERVE_MORE;
}

/* How many elements and bytes its shape says. */
static enum kserve_step infer_check_size(struct kserve_infer *r)
{
	struct kserve_input *input = &r->input[r->inputs];
	uint32_t size = kserve_datatype_size(input->type);
	bool too_large = false;
	uint64_t bytes;

	input->elements = 1;
	for (uint8_t i = 0; i < input->dims; i++)
		too_large |=
			__builtin_mul_overflow(input->elements, input->shape[i], &input->elements);
	/* An element of BYTES has its length at least. */
	too_large |= __builtin_mul_overflow(input->elements, size > 0 ? size : 4, &bytes);
	if (too_large || bytes > r->max_bytes)
		return kserve_infer_refuse_here(
			r, 413, "the shape says more than %" PRIu64 " bytes", r->max_bytes);
	if (!input->binary)
		return KSERVE_MORE;
	if (size > 0 ? input->bytes != bytes : input->bytes < bytes)
		return kserve_infer_refuse_here(
			r, 400, "binary_data_size is %" PRIu64 ", shape and datatype say %" PRIu64,
			input->bytes, bytes);
	return KSERVE_MORE;
}

/* Its description is complete; its values come next. */
static enum kserve_step infer_input(struct kserve_infer *r, struct kserve_run *run)
{
	r->member = MEMBER_UNKNOWN;
	if (infer_check_name(r) == KSERVE_REFUSED || infer_check_size(r) == KSERVE_REFUSED)
		return KSERVE_REFUSED;
	run->input = r->inputs;
	return KSERVE_INPUT;
}

static enum kserve_step infer_values(struct kserve_infer *r, struct kserve_run *run)
{
	const struct kserve_input *input = &r->input[r->inputs];

	if (!kserve_datatype_has_json(input->type))
		return kserve_infer_refuse_here(r, 400, "%s has no JSON form, only a binary one",
						kserve_datatype_name(input->type));
	if (infer_input(r, run) == KSERVE_REFUSED)
		return KSERVE_REFUSED;
	r->place = INFER_DATA;
	r->member = MEMBER_INPUT_DATA;
	kserve_data_begin(r);
	return KSERVE_INPUT;
}

/* Text that does not fit is left out, and the length says so. */
static void infer_keep_early(struct kserve_infer *r, const char *text, uint32_t length)
{
	if (r->early_length <= r->early_room && length <= r->early_room - r->early_length) {
		memcpy(r->early + r->early_length, text, length);
		r->early_length += length;
	} else {
		r->early_length = UINT32_MAX;
	}
}

/* `data` begins. */
static enum kserve_step infer_data_begin(struct kserve_infer *r, struct kserve_run *run)
{
	r->has_data = true;
	if (r->input[r->inputs].binary)
		return kserve_infer_refuse_here(r, 400, "is there, and binary_data_size, too");
	if (infer_is_described(r))
		return infer_values(r, run);
	r->place = INFER_EARLY;
	r->depth = r->json.depth - 1;
	r->early_length = 0;
	infer_keep_early(r, "[", 1);
	return KSERVE_MORE;
}

static enum kserve_step infer_input_begin(struct kserve_infer *r)
{
	if (r->inputs == KSERVE_TENSORS_MAX)
		return kserve_infer_refuse_here(r, 400, "more than %u", KSERVE_TENSORS_MAX);
	memset(&r->input[r->inputs], 0, sizeof(r->input[0]));
	r->has_data = false;
	r->early_length = 0;
	r->place = INFER_INPUT;
	r->member = MEMBER_UNKNOWN;
	infer_forget_members(r, INFER_INPUT);
	infer_forget_members(r, INFER_INPUT_PARAMETERS);
	return KSERVE_MORE;
}

static enum kserve_step infer_next_input(struct kserve_infer *r)
{
	r->place = INFER_INPUTS;
	r->member = MEMBER_UNKNOWN;
	r->inputs++;
	return KSERVE_MORE;
}

/* The values that were kept are read now. */
static enum kserve_step infer_replay(struct kserve_infer *r, struct kserve_run *run)
{
	struct json_token token;

	r->is_replay = true;
	r->early_at = r->early;
	r->early_json = (struct json_reader){0};
	json_read(&r->early_json, &r->early_at, r->early + 1, &token); /* [ */
	return infer_values(r, run);
}

static enum kserve_step infer_input_end(struct kserve_infer *r, struct kserve_run *run)
{
	struct kserve_input *input = &r->input[r->inputs];

	r->place = INFER_INPUT;
	r->member = MEMBER_UNKNOWN;
	if (!infer_is_described(r))
		return kserve_infer_refuse_here(r, 400, "needs name, shape and datatype");
	if (input->binary == r->has_data)
		return kserve_infer_refuse_here(r, 400,
						input->binary ? "has both data and binary_data_size"
							      : "needs data or binary_data_size");
	if (r->early_length > 0)
		return infer_replay(r, run);
	if (!input->binary)
		return infer_next_input(r);
	if (infer_input(r, run) == KSERVE_REFUSED)
		return KSERVE_REFUSED;
	r->binary_bytes += input->bytes;
	infer_next_input(r);
	return KSERVE_INPUT;
}

static enum kserve_step infer_output_begin(struct kserve_infer *r)
{
	if (r->outputs == KSERVE_TENSORS_MAX)
		return kserve_infer_refuse_here(r, 400, "more than %u", KSERVE_TENSORS_MAX);
	memset(&r->output[r->outputs], 0, sizeof(r->output[0]));
	r->place = INFER_OUTPUT;
	r->member = MEMBER_UNKNOWN;
	infer_forget_members(r, INFER_OUTPUT);
	infer_forget_members(r, INFER_OUTPUT_PARAMETERS);
	return KSERVE_MORE;
}

static enum kserve_step infer_output_end(struct kserve_infer *r)
{
	r->member = MEMBER_UNKNOWN;
	if ((r->seen & 1u << MEMBER_OUTPUT_NAME) == 0)
		return kserve_infer_refuse_here(r, 400, "needs a name");
	r->place = INFER_OUTPUTS;
	r->outputs++;
	return KSERVE_MORE;
}

/* --- tokens --- */

/* More of the string follows. */
static bool infer_is_piece(const struct json_token *token)
{
	return token->kind == JSON_TOKEN_STRING && !token->last;
}

/* The value of a member. */
static enum kserve_step infer_value(struct kserve_infer *r, const struct json_token *token,
				    struct kserve_run *run)
{
	const struct infer_row *row = &infer_rows[r->member];
	bool opens =
		token->kind == JSON_TOKEN_OBJECT_BEGIN || token->kind == JSON_TOKEN_ARRAY_BEGIN;

	if (r->member == MEMBER_UNKNOWN) {
		if (opens) {
			r->outside = r->place;
			r->place = INFER_SKIP;
			r->depth = r->json.depth - 1;
		}
		return KSERVE_MORE;
	}
	/* A fault in the string comes first, however it is cut. */
	if (infer_is_piece(token) && (row->kinds & KINDS_STRING) == 0)
		return KSERVE_MORE;
	if (row->kinds == 0)
		return kserve_infer_refuse_here(r, 501, "is not supported");
	if ((row->kinds & KIND(token->kind)) == 0)
		return kserve_infer_refuse_here(r, 400, "expected %s", row->expected);
	if (token->kind == JSON_TOKEN_NULL)
		return KSERVE_MORE;
	if (r->member == MEMBER_INPUT_DATA)
		return infer_data_begin(r, run);
	if (opens) {
		r->place = row->inner;
		r->member = r->place == INFER_SHAPE ? r->member : MEMBER_UNKNOWN;
		return KSERVE_MORE;
	}
	if (token->kind == JSON_TOKEN_NUMBER)
		return infer_number(r, &token->number);
	if (r->member == MEMBER_TEXT_INPUT)
		return infer_text(r, token, run);
	if (token->kind == JSON_TOKEN_STRING)
		return infer_string(r, token);
	infer_bool(r, token->kind == JSON_TOKEN_TRUE);
	return KSERVE_MORE;
}

/* An element of an array that is no object's end: inputs, outputs, a shape. */
static enum kserve_step infer_element(struct kserve_infer *r, const struct json_token *token)
{
	if (infer_is_piece(token))
		return KSERVE_MORE;
	if (r->place == INFER_SHAPE && token->kind == JSON_TOKEN_NUMBER)
		return infer_dimension(r, &token->number);
	if (r->place == INFER_SHAPE)
		return kserve_infer_refuse_here(r, 400, "expected an integer");
	if (token->kind != JSON_TOKEN_OBJECT_BEGIN)
		return kserve_infer_refuse_here(r, 400, "expected an object");
	return r->place == INFER_INPUTS ? infer_input_begin(r) : infer_output_begin(r);
}

/* An object or array ends. */
static enum kserve_step infer_leave(struct kserve_infer *r, struct kserve_run *run)
{
	if (r->place == INFER_INPUT)
		return infer_input_end(r, run);
	if (r->place == INFER_OUTPUT)
		return infer_output_end(r);
	r->place = infer_outer[r->place];
	r->member = MEMBER_UNKNOWN;
	return KSERVE_MORE;
}

/* A value that is not looked at, up to its end. */
static enum kserve_step infer_pass(struct kserve_infer *r)
{
	if (r->place == INFER_EARLY && r->early_length == UINT32_MAX)
		return kserve_infer_refuse_here(
			r, 400,
			"comes before name, shape or datatype, and has more than "
			"%u bytes of text: send it last",
			r->early_room);
	if (r->json.depth > r->depth)
		return KSERVE_MORE;
	r->place = r->place == INFER_EARLY ? INFER_INPUT : r->outside;
	r->member = MEMBER_UNKNOWN;
	return KSERVE_MORE;
}

static enum kserve_step infer_take(struct kserve_infer *r, const struct json_token *token,
				   struct kserve_run *run)
{
	switch (r->place) {
	case INFER_SKIP:
	case INFER_EARLY:
		return infer_is_piece(token) || token->kind == JSON_TOKEN_KEY ? KSERVE_MORE
									      : infer_pass(r);
	case INFER_START:
		if (token->kind != JSON_TOKEN_OBJECT_BEGIN)
			return kserve_infer_refuse_here(r, 400, "expected an object");
		r->place = INFER_TOP;
		return KSERVE_MORE;
	default:
		break;
	}
	if (token->kind == JSON_TOKEN_KEY)
		return infer_key(r, token);
	if (token->kind == JSON_TOKEN_OBJECT_END || token->kind == JSON_TOKEN_ARRAY_END)
		return infer_leave(r, run);
	if (r->place == INFER_INPUTS || r->place == INFER_OUTPUTS || r->place == INFER_SHAPE)
		return infer_element(r, token);
	return infer_value(r, token, run);
}

static enum kserve_step infer_token(struct kserve_infer *r, const char **at, const char *end,
				    struct kserve_run *run)
{
	bool early = r->place == INFER_EARLY;
	const char *start = *at;
	struct json_token token;

	/* A piece of text has room in the run. */
	if (end - *at > run->room - INFER_PIECE_MORE)
		end = *at + run->room - INFER_PIECE_MORE;
	json_read(&r->json, at, end, &token);
	run->work += (uint32_t)(*at - start) + KSERVE_TOKEN_WORK;
	if (early)
		infer_keep_early(r, start, (uint32_t)(*at - start));
	r->position += (uint64_t)(*at - start);
	if (token.kind == JSON_TOKEN_MORE)
		return KSERVE_MORE;
	if (token.kind == JSON_TOKEN_BAD)
		return kserve_infer_refuse_syntax(r, r->json.error);
	if (!infer_is_piece(&token) && (token.kind != JSON_TOKEN_KEY || token.last))
		r->behind = r->position;
	return infer_take(r, &token, run);
}

/* Values, which come from the request, or are those that were kept. */
static enum kserve_step infer_data(struct kserve_infer *r, const char **at, const char *end,
				   struct kserve_run *run)
{
	const char *start = *at;
	bool replay = r->is_replay, ended = false;
	enum kserve_step step;

	run->input = r->inputs;
	if (replay)
		step = kserve_data_read(r, &r->early_json, &r->early_at, r->early + r->early_length,
					run, &ended);
	else
		step = kserve_data_read(r, &r->json, at, end, run, &ended);
	r->position += (uint64_t)(*at - start);
	if (ended && replay) {
		r->is_replay = false;
		infer_next_input(r);
	} else if (ended) {
		r->place = INFER_INPUT;
		r->member = MEMBER_UNKNOWN;
	}
	return step;
}

enum kserve_step kserve_infer_read(struct kserve_infer *r, const char **at, const char *end,
				   struct kserve_run *run)
{
	enum kserve_step step = KSERVE_MORE;

	run->length = 0;
	run->work = 0;
	if (r->status != 0)
		return KSERVE_REFUSED;
	while (step == KSERVE_MORE && (*at < end || r->is_replay)) {
		if (kserve_run_is_over(run))
			return KSERVE_RUN;
		if (r->place == INFER_DATA)
			step = infer_data(r, at, end, run);
		else
			step = infer_token(r, at, end, run);
	}
	return step;
}

enum kserve_step kserve_infer_end(struct kserve_infer *r)
{
	if (r->status != 0)
		return KSERVE_REFUSED;
	if (!json_is_complete(&r->json))
		return kserve_infer_refuse_syntax(r, "the JSON ends too early");
	if (r->is_text && (r->seen & 1u << MEMBER_TEXT_INPUT) == 0)
		return kserve_infer_refuse(r, 400, "no text_input");
	if (!r->is_text && r->inputs == 0)
		return kserve_infer_refuse(r, 400, "no inputs");
	return KSERVE_MORE;
}
