/* SPDX-License-Identifier: BSD-3-Clause */
/* The values of a tensor: JSON to bytes. */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "kserve/infer_data.h"

#define DATA_ELEMENT_MAX 8

static inline struct kserve_input *data_input(struct kserve_infer *r)
{
	return &r->input[r->inputs];
}

void kserve_data_begin(struct kserve_infer *r)
{
	const struct kserve_input *input = data_input(r);
	struct kserve_data *d = &r->data;
	uint64_t inside = 1;

	*d = (struct kserve_data){.level = 1};
	for (uint32_t level = input->dims; level > 0; level--) {
		inside *= input->shape[level - 1];
		d->inside[level] = inside;
	}
	d->inside[1] = input->elements; /* of no dimension: one */
}

static enum kserve_step data_refuse(struct kserve_infer *r, const char *what)
{
	return kserve_infer_refuse_here(r, 400, "element %" PRIu64 ": %s", r->data.count, what);
}

static enum kserve_step data_refuse_number(struct kserve_infer *r, const struct json_number *n,
					   bool in_range)
{
	const char *type = kserve_datatype_name(data_input(r)->type);

	return kserve_infer_refuse_here(r, 400, "element %" PRIu64 ": %.*s%s is %s %s",
					r->data.count, n->length < 24 ? n->length : 24, n->text,
					n->length > 24 ? "..." : "",
					in_range ? "no" : "out of range of", type);
}

/* --- elements --- */

static inline uint8_t *data_room(struct kserve_infer *r, struct kserve_run *run)
{
	if (run->length == 0)
		run->offset = r->data.offset;
	return run->at + run->length;
}

static inline void data_wrote(struct kserve_infer *r, struct kserve_run *run, uint32_t n)
{
	run->length += n;
	r->data.offset += n;
}

/* An element may stand here: KSERVE_MORE. */
static inline enum kserve_step data_element(struct kserve_infer *r)
{
	struct kserve_data *d = &r->data;

	if (d->leaf == 0)
		d->leaf = d->level;
	if (d->level != d->leaf)
		return data_refuse(r, "values are nested to different depths");
	if (d->count == data_input(r)->elements)
		return kserve_infer_refuse_here(
			r, 400, "more elements than the %" PRIu64 " of the shape", d->count);
	return KSERVE_MORE;
}

/* The value as an integer of <bits>, in a word. False: it does not fit. */
static inline bool data_unsigned(const struct json_number *n, int bits, uint64_t *value)
{
	return json_number_u64(n, value) && *value >> (bits - 1) <= 1;
}

static inline bool data_signed(const struct json_number *n, int bits, uint64_t *value)
{
	int64_t number;
	bool fits = json_number_i64(n, &number);
	int64_t high = number >> (bits - 1);

	*value = (uint64_t)number;
	return fits && (high == 0 || high == -1);
}

static inline bool data_f32(const struct json_number *n, uint64_t *value)
{
	float number;
	uint32_t bits;

	if (!json_number_f32(n, &number))
		return false;
	memcpy(&bits, &number, sizeof(bits));
	*value = bits;
	return true;
}

static inline bool data_f64(const struct json_number *n, uint64_t *value)
{
	double number;

	if (!json_number_f64(n, &number))
		return false;
	memcpy(value, &number, sizeof(*value));
	return true;
}

/* The first bytes of <value> are the element's. */
static inline bool data_convert(enum kserve_datatype type, const struct json_number *n,
				uint64_t *value)
{
	switch (type) {
	case KSERVE_FP32:
		return data_f32(n, value);
	case KSERVE_FP64:
		return data_f64(n, value);
	case KSERVE_UINT8:
		return data_unsigned(n, 8, value);
	case KSERVE_UINT16:
		return data_unsigned(n, 16, value);
	case KSERVE_UINT32:
		return data_unsigned(n, 32, value);
	case KSERVE_UINT64:
		return data_unsigned(n, 64, value);
	case KSERVE_INT8:
		return data_signed(n, 8, value);
	case KSERVE_INT16:
		return data_signed(n, 16, value);
	case KSERVE_INT32:
		return data_signed(n, 32, value);
	case KSERVE_INT64:
		return data_signed(n, 64, value);
	default:
		return false;
	}
}

/* The lowest bytes first: x86 has them so. */
static inline void data_put(struct kserve_infer *r, struct kserve_run *run, uint64_t value,
			    uint32_t size)
{
	memcpy(data_room(r, run), &value, DATA_ELEMENT_MAX);
	data_wrote(r, run, size);
	r->data.count++;
}

static inline enum kserve_step data_number(struct kserve_infer *r, const struct json_number *n,
					   struct kserve_run *run)
{
	enum kserve_datatype type = data_input(r)->type;
	uint64_t value;

	if (data_element(r) == KSERVE_REFUSED)
		return KSERVE_REFUSED;
	if (type == KSERVE_BOOL || type == KSERVE_BYTES)
		return data_refuse_number(r, n, true);
	if (!data_convert(type, n, &value))
		return data_refuse_number(r, n,
					  !n->whole && type != KSERVE_FP32 && type != KSERVE_FP64);
	data_put(r, run, value, kserve_datatype_size(type));
	return KSERVE_MORE;
}

static enum kserve_step data_bool(struct kserve_infer *r, bool value, struct kserve_run *run)
{
	if (data_element(r) == KSERVE_REFUSED)
		return KSERVE_REFUSED;
	if (data_input(r)->type != KSERVE_BOOL)
		return data_refuse(r, "true and false are for BOOL");
	data_put(r, run, value, 1);
	return KSERVE_MORE;
}

/* --- strings --- */

static void data_copy(struct kserve_infer *r, struct kserve_run *run, const char *bytes, uint32_t n)
{
	memcpy(data_room(r, run), bytes, n);
	data_wrote(r, run, n);
}

/* The string is complete, and its length is known. */
static void data_string_end(struct kserve_infer *r, struct kserve_run *run)
{
	struct kserve_data *d = &r->data;

	d->open = false;
	d->count++;
	if (d->is_long) {
		d->length_due = true;
		return;
	}
	d->string_length = r->text_length;
	data_copy(r, run, (const char *)&d->string_length, sizeof(d->string_length));
	data_copy(r, run, r->text, r->text_length);
	r->text_length = 0;
}

/* Its first piece came. One that may not stand here is refused at its end: a fault in it comes
 * first, however it is cut. */
static void data_string_begin(struct kserve_infer *r)
{
	struct kserve_data *d = &r->data;

	d->open = true;
	d->is_long = false;
	d->is_too_large = false;
	d->is_dropped = data_input(r)->type != KSERVE_BYTES ||
			d->count == data_input(r)->elements ||
			(d->leaf != 0 && d->leaf != d->level);
	r->text_length = 0;
}

static enum kserve_step data_string_refuse(struct kserve_infer *r)
{
	if (r->data.is_too_large)
		return kserve_infer_refuse_here(
			r, 413, "element %" PRIu64 ": more than %" PRIu64 " bytes in all",
			r->data.count, r->max_bytes);
	if (data_element(r) == KSERVE_REFUSED)
		return KSERVE_REFUSED;
	return data_refuse(r, "strings are for BYTES");
}

static void data_string_piece(struct kserve_infer *r, const struct json_token *token,
			      struct kserve_run *run)
{
	struct kserve_data *d = &r->data;

	if (d->is_long) {
		d->string_length += token->length;
		data_copy(r, run, token->text, token->length);
	} else {
		memcpy(r->text + r->text_length, token->text, token->length);
		r->text_length += token->length;
	}
}

/* Have <more> bytes of a string room beside those that it has so far? */
static bool data_string_fits(const struct kserve_infer *r, uint32_t more)
{
	const struct kserve_data *d = &r->data;
	uint64_t kept = d->is_long ? 0 : sizeof(d->string_length) + r->text_length;

	return d->offset + kept + more <= r->max_bytes;
}

static enum kserve_step data_string(struct kserve_infer *r, const struct json_token *token,
				    struct kserve_run *run)
{
	struct kserve_data *d = &r->data;

	if (!d->open)
		data_string_begin(r);
	if (!d->is_dropped && !data_string_fits(r, token->length))
		d->is_dropped = d->is_too_large = true;
	if (!d->is_dropped)
		data_string_piece(r, token, run);
	if (!token->last)
		return KSERVE_MORE;
	if (d->is_dropped || data_element(r) == KSERVE_REFUSED)
		return data_string_refuse(r);
	data_string_end(r, run);
	return KSERVE_MORE;
}

/* The string is too long to be kept: it leaves, with a gap in front for its length. */
static void data_string_leaves(struct kserve_infer *r, struct kserve_run *run)
{
	r->data.is_long = true;
	r->data.string_length = r->text_length;
	r->data.offset += sizeof(r->data.string_length);
	data_copy(r, run, r->text, r->text_length);
	r->text_length = 0;
}

/* The length of a long string, as a run of its own. */
static void data_string_length(struct kserve_infer *r, struct kserve_run *run)
{
	struct kserve_data *d = &r->data;

	d->length_due = false;
	memcpy(run->at, &d->string_length, sizeof(d->string_length));
	run->length = sizeof(d->string_length);
	run->offset = d->offset - d->string_length - sizeof(d->string_length);
}

/*
 * Makes room for the next token of strings. KSERVE_RUN: the run has to leave first. <most>: bytes
 * that may be read for the token, so that its text has room.
 */
static enum kserve_step data_strings_room(struct kserve_infer *r, struct kserve_run *run,
					  ptrdiff_t *most)
{
	struct kserve_data *d = &r->data;
	uint32_t room = run->room - run->length;

	if (d->length_due) {
		if (run->length == 0)
			data_string_length(r, run);
		return KSERVE_RUN;
	}
	if (d->open && !d->is_long && r->text_length > KSERVE_TEXT_MAX - 8) {
		if (run->length > 0)
			return KSERVE_RUN;
		data_string_leaves(r, run);
		room = run->room - run->length;
	}
	if (room < (d->open && d->is_long ? 8 : sizeof(d->string_length) + KSERVE_TEXT_MAX))
		return KSERVE_RUN;
	if (!d->open)
		*most = KSERVE_TEXT_MAX - 4;
	else
		*most = (d->is_long ? room : KSERVE_TEXT_MAX - r->text_length) - 4;
	return KSERVE_MORE;
}

/* --- arrays --- */

static enum kserve_step data_open(struct kserve_infer *r)
{
	struct kserve_data *d = &r->data;

	if (d->level >= data_input(r)->dims || (d->leaf != 0 && d->level >= d->leaf))
		return data_refuse(
			r, "values are nested deeper than the shape, or to different depths");
	d->level++;
	d->opened[d->level] = d->count;
	return KSERVE_MORE;
}

static enum kserve_step data_close(struct kserve_infer *r)
{
	struct kserve_data *d = &r->data;
	uint64_t count = d->count - d->opened[d->level], inside = d->inside[d->level];

	if (count != inside)
		return kserve_infer_refuse_here(r, 400,
						"element %" PRIu64 ": the array has %" PRIu64
						" elements, the shape says %" PRIu64,
						d->count, count, inside);
	d->level--;
	return KSERVE_MORE;
}

static inline enum kserve_step data_token(struct kserve_infer *r, const struct json_token *token,
					  struct kserve_run *run)
{
	switch (token->kind) {
	case JSON_TOKEN_NUMBER:
		return data_number(r, &token->number, run);
	case JSON_TOKEN_TRUE:
	case JSON_TOKEN_FALSE:
		return data_bool(r, token->kind == JSON_TOKEN_TRUE, run);
	case JSON_TOKEN_STRING:
		return data_string(r, token, run);
	case JSON_TOKEN_ARRAY_BEGIN:
		return data_open(r);
	case JSON_TOKEN_ARRAY_END:
		return data_close(r);
	default:
		return data_refuse(r, token->kind == JSON_TOKEN_NULL ? "null is no value"
								     : "an object is no value");
	}
}

enum kserve_step kserve_data_read(struct kserve_infer *r, struct json_reader *json, const char **at,
				  const char *end, struct kserve_run *run, bool *ended)
{
	bool strings = data_input(r)->type == KSERVE_BYTES;
	const char *start = *at;
	struct json_token token;

	while (r->data.level > 0) {
		ptrdiff_t most = end - *at;
		const char *from = *at;

		if (run->room - run->length < DATA_ELEMENT_MAX || kserve_run_is_over(run))
			return KSERVE_RUN;
		if (strings && data_strings_room(r, run, &most) == KSERVE_RUN)
			return KSERVE_RUN;
		json_read(json, at, end - *at > most ? *at + most : end, &token);
		run->work += (uint32_t)(*at - from) + KSERVE_TOKEN_WORK;
		if (token.kind == JSON_TOKEN_MORE) {
			if (*at < end)
				continue;
			return run->length > 0 ? KSERVE_RUN : KSERVE_MORE;
		}
		if (token.kind == JSON_TOKEN_BAD)
			return kserve_infer_refuse_syntax(r, json->error);
		if (!r->is_replay && (token.kind != JSON_TOKEN_STRING || token.last))
			r->behind = r->position + (uint64_t)(*at - start);
		if (data_token(r, &token, run) == KSERVE_REFUSED)
			return KSERVE_REFUSED;
	}
	data_input(r)->bytes = r->data.offset;
	*ended = true;
	return run->length > 0 ? KSERVE_RUN : KSERVE_MORE;
}
