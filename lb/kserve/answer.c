/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "json/number_write.h"
#include "kserve/answer.h"

enum answer_step {
	ANSWER_HEAD,
	ANSWER_OUTPUT, /* the description of an output */
	ANSWER_VALUES,
	ANSWER_OUTPUT_END,
	ANSWER_TAIL,
	ANSWER_DONE,
};

#define ELEMENT_ROOM (JSON_NUMBER_ROOM + 1) /* of a number, with its comma */

static void answer_head(const struct kserve_answer *a, struct json_out *o)
{
	json_put(o, "{\"model_name\":");
	json_put_string(o, a->model, (uint32_t)strlen(a->model));
	if (a->version[0] != '\0') {
		json_put(o, ",\"model_version\":");
		json_put_string(o, a->version, (uint32_t)strlen(a->version));
	}
	if (a->id != NULL) {
		json_put(o, ",\"id\":");
		json_put_string(o, a->id, a->id_length);
	}
	json_put(o, ",\"outputs\":[");
}

static void answer_output(const struct kserve_answer_output *output, bool first, struct json_out *o)
{
	json_put(o, first ? "{\"name\":" : ",{\"name\":");
	json_put_string(o, output->name, (uint32_t)strlen(output->name));
	json_put(o, ",\"datatype\":\"");
	json_put(o, kserve_datatype_name(output->type));
	json_put(o, "\",\"shape\":[");
	for (uint8_t i = 0; i < output->dims; i++) {
		if (i > 0)
			json_put(o, ",");
		json_put_u64(o, output->shape[i]);
	}
	if (output->binary) {
		json_put(o, "],\"parameters\":{\"binary_data_size\":");
		json_put_u64(o, output->bytes);
		json_put(o, "}");
	} else {
		json_put(o, "],\"data\":[");
	}
}

/* --- values --- */

/* The <size> bytes of an element, the lowest first, in a word. */
static inline uint64_t answer_load(const uint8_t *bytes, uint32_t size)
{
	uint64_t u64 = 0;
	uint32_t u32;
	uint16_t u16;

	switch (size) {
	case 1:
		return *bytes;
	case 2:
		memcpy(&u16, bytes, sizeof(u16));
		return u16;
	case 4:
		memcpy(&u32, bytes, sizeof(u32));
		return u32;
	default:
		memcpy(&u64, bytes, sizeof(u64));
		return u64;
	}
}

static inline uint32_t answer_f32(uint64_t bits, char *at)
{
	uint32_t low = (uint32_t)bits;
	float value;

	memcpy(&value, &low, sizeof(value));
	return json_number_write_f32(at, value);
}

static inline uint32_t answer_f64(uint64_t bits, char *at)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	return json_number_write_f64(at, value);
}

static inline uint32_t answer_number(enum kserve_datatype type, uint64_t bits, char *at)
{
	switch (type) {
	case KSERVE_BOOL:
		memcpy(at, bits != 0 ? "true" : "false", 5);
		return bits != 0 ? 4 : 5;
	case KSERVE_INT8:
		return json_number_write_i64(at, (int8_t)bits);
	case KSERVE_INT16:
		return json_number_write_i64(at, (int16_t)bits);
	case KSERVE_INT32:
		return json_number_write_i64(at, (int32_t)bits);
	case KSERVE_INT64:
		return json_number_write_i64(at, (int64_t)bits);
	case KSERVE_FP32:
		return answer_f32(bits, at);
	case KSERVE_FP64:
		return answer_f64(bits, at);
	default:
		return json_number_write_u64(at, bits);
	}
}

static inline void answer_element(struct kserve_writer *w, enum kserve_datatype type, uint64_t bits,
				  struct json_out *o)
{
	if (w->follows)
		*o->at++ = ',';
	w->follows = true;
	o->at += answer_number(type, bits, o->at);
}

/* Collects <size> bytes that came in parts. False: some are missing. */
static bool answer_collect(struct kserve_writer *w, uint32_t size, const uint8_t **bytes,
			   const uint8_t *end)
{
	while (w->held_length < size && *bytes < end && w->tensor_left > 0) {
		w->held[w->held_length++] = *(*bytes)++;
		w->tensor_left--;
	}
	if (w->held_length < size)
		return false;
	w->held_length = 0;
	return true;
}

static void answer_numbers(const struct kserve_answer_output *output, struct kserve_writer *w,
			   const uint8_t **bytes, const uint8_t *end, struct json_out *o)
{
	uint32_t size = kserve_datatype_size(output->type);

	while (w->tensor_left > 0 && *bytes < end && o->end - o->at >= ELEMENT_ROOM) {
		if (w->held_length == 0 && (uint64_t)(end - *bytes) >= size &&
		    w->tensor_left >= size) {
			answer_element(w, output->type, answer_load(*bytes, size), o);
			*bytes += size;
			w->tensor_left -= size;
		} else if (answer_collect(w, size, bytes, end)) {
			answer_element(w, output->type, answer_load(w->held, size), o);
		}
	}
	if (w->tensor_left == 0 && w->held_length > 0)
		w->failed = true;
}

static void answer_string_end(struct kserve_writer *w, struct json_out *o)
{
	json_escape_end(&w->escape, o);
	json_put(o, "\"");
	w->in_string = false;
}

static void answer_string_begin(struct kserve_writer *w, struct json_out *o)
{
	memcpy(&w->string_left, w->held, sizeof(w->string_left));
	w->failed = w->string_left > w->tensor_left;
	json_put(o, w->follows ? ",\"" : "\"");
	w->follows = true;
	w->in_string = true;
	if (w->string_left == 0)
		answer_string_end(w, o);
}

/* Elements of BYTES: a length of four bytes, and that many. */
static void answer_strings(struct kserve_writer *w, const uint8_t **bytes, const uint8_t *end,
			   struct json_out *o)
{
	while (w->tensor_left > 0 && *bytes < end && !w->failed &&
	       o->end - o->at >= 2 * JSON_ESCAPED_MAX) {
		if (!w->in_string) {
			if (answer_collect(w, sizeof(w->string_left), bytes, end))
				answer_string_begin(w, o);
			continue;
		}
		json_escape_put(&w->escape, o, *(*bytes)++);
		w->tensor_left--;
		if (--w->string_left == 0)
			answer_string_end(w, o);
	}
	if (w->tensor_left == 0 && w->held_length > 0)
		w->failed = true;
}

void kserve_answer_text(struct kserve_writer *w, const uint8_t **bytes, const uint8_t *end,
			struct json_out *o)
{
	while (w->tensor_left > 0 && *bytes < end && !w->failed &&
	       o->end - o->at >= 2 * JSON_ESCAPED_MAX) {
		if (w->string_left > 0) {
			json_escape_put(&w->escape, o, *(*bytes)++);
			w->tensor_left--;
			w->string_left--;
		} else if (answer_collect(w, sizeof(w->string_left), bytes, end)) {
			memcpy(&w->string_left, w->held, sizeof(w->string_left));
			w->failed = w->string_left > w->tensor_left;
		}
	}
	if (w->tensor_left == 0 && w->held_length > 0)
		w->failed = true;
}

void kserve_answer_text_end(struct kserve_writer *w, struct json_out *o)
{
	json_escape_end(&w->escape, o);
}

/* --- the whole --- */

static void answer_next(const struct kserve_answer *a, struct kserve_writer *w)
{
	const struct kserve_answer_output *output = &a->output[w->output];

	w->tensor_left = output->bytes;
	w->follows = false;
	w->step = output->binary ? ANSWER_OUTPUT_END : ANSWER_VALUES;
	w->failed = !output->binary && !kserve_datatype_has_json(output->type);
}

/* One step. False: it is not over. */
static bool answer_step(const struct kserve_answer *a, struct kserve_writer *w,
			const uint8_t **bytes, const uint8_t *end, struct json_out *o)
{
	const struct kserve_answer_output *output = &a->output[w->output];

	switch ((enum answer_step)w->step) {
	case ANSWER_HEAD:
		answer_head(a, o);
		w->step = a->outputs > 0 ? ANSWER_OUTPUT : ANSWER_TAIL;
		return true;
	case ANSWER_OUTPUT:
		answer_output(output, w->output == 0, o);
		answer_next(a, w);
		return true;
	case ANSWER_VALUES:
		if (output->type == KSERVE_BYTES)
			answer_strings(w, bytes, end, o);
		else
			answer_numbers(output, w, bytes, end, o);
		if (w->tensor_left > 0 || w->failed)
			return false;
		w->step = ANSWER_OUTPUT_END;
		return true;
	case ANSWER_OUTPUT_END:
		json_put(o, output->binary ? "}" : "]}");
		w->step = ++w->output < a->outputs ? ANSWER_OUTPUT : ANSWER_TAIL;
		return true;
	case ANSWER_TAIL:
		json_put(o, "]}");
		w->step = ANSWER_DONE;
		w->done = true;
		return false;
	default:
		return false;
	}
}

/* Text that a step may write, values aside: names and the id have six characters per byte at most.
 */
static uint32_t answer_room(const struct kserve_writer *w)
{
	return w->step == ANSWER_VALUES ? 0 : KSERVE_ANSWER_ROOM;
}

uint32_t kserve_answer_write(const struct kserve_answer *answer, struct kserve_writer *w,
			     const uint8_t **bytes, const uint8_t *end, char *at, uint32_t room)
{
	struct json_out o = {at, at + room, false};

	while (!w->failed && o.end - o.at >= answer_room(w) &&
	       answer_step(answer, w, bytes, end, &o))
		;
	return (uint32_t)(o.at - at);
}

uint32_t kserve_error_write(const char *message, char *at, uint32_t room)
{
	struct json_out o = {at, at + room - 2, false};
	struct json_escape e = {0};

	json_put(&o, "{\"error\":\"");
	for (; *message != '\0' && !o.full; message++)
		json_escape_put(&e, &o, (uint8_t)*message);
	if (!o.full)
		json_escape_end(&e, &o);
	memcpy(o.at, "\"}", 2);
	return (uint32_t)(o.at - at) + 2;
}
