/* SPDX-License-Identifier: BSD-3-Clause */
#include "grpc/message.h"

#include <string.h>

#include "grpc/status.h"
#include "grpc/wire.h"

#define RAW_OUTPUT 6 /* field of ModelInferResponse */

/* --- reading ------------------------------------------------------------------------------------
 */

static bool names_take(const struct grpc_wire *w, char *to, size_t room)
{
	if (w->length >= room || memchr(w->bytes, '\0', w->length) != NULL)
		return false;
	memcpy(to, w->bytes, w->length);
	to[w->length] = '\0';
	return true;
}

bool grpc_names_read(struct grpc_names *names, const uint8_t *bytes, uint32_t length)
{
	const uint8_t *end = bytes + length;
	enum grpc_token token = GRPC_MORE;
	uint32_t field = 0;
	struct grpc_wire w;
	bool fits = true;

	memset(names, 0, sizeof(*names));
	grpc_wire_init(&w, length);
	while (fits && token != GRPC_DONE) {
		token = grpc_wire_read(&w, &bytes, end);
		if (token == GRPC_MORE || token == GRPC_BROKEN)
			return false;
		if (token == GRPC_FIELD)
			field = w.field;
		if (token == GRPC_BYTES && field == 1)
			fits = names_take(&w, names->name, sizeof(names->name));
		else if (token == GRPC_BYTES && field == 2)
			fits = names_take(&w, names->version, sizeof(names->version));
		else if (token == GRPC_VALUE && w.field == 2)
			names->ready = w.value != 0;
	}
	return fits;
}

/* --- writing ------------------------------------------------------------------------------------
 */

static void out_byte(struct grpc_out *out, uint8_t byte)
{
	if (out->at == out->end)
		out->full = true;
	else
		*out->at++ = byte;
}

static void out_varint(struct grpc_out *out, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		out_byte(out, (uint8_t)value | 0x80);
	out_byte(out, (uint8_t)value);
}

static void out_tag(struct grpc_out *out, uint32_t field, enum grpc_wire_type type)
{
	out_varint(out, field << 3 | type);
}

/* Zero is what a number is that is not there. */
static void out_number(struct grpc_out *out, uint32_t field, uint64_t value)
{
	if (value == 0)
		return;
	out_tag(out, field, GRPC_WIRE_VARINT);
	out_varint(out, value);
}

static void out_bytes(struct grpc_out *out, uint32_t field, const char *text, size_t n)
{
	out_tag(out, field, GRPC_WIRE_LENGTH);
	out_varint(out, n);
	for (size_t i = 0; i < n; i++)
		out_byte(out, (uint8_t)text[i]);
}

static void out_text(struct grpc_out *out, uint32_t field, const char *text)
{
	if (text[0] != '\0')
		out_bytes(out, field, text, strlen(text));
}

/* A field that is a message, or packed: what is written until out_close() is in it. Returns where
 * it begins. */
static uint8_t *out_open(struct grpc_out *out, uint32_t field)
{
	out_tag(out, field, GRPC_WIRE_LENGTH);
	out_byte(out, 0);
	return out->at;
}

static void out_close(struct grpc_out *out, uint8_t *begin)
{
	size_t n = (size_t)(out->at - begin);
	struct grpc_out length = {begin - 1, out->end, false};
	unsigned int more = (n >= 0x80) + (n >= 0x4000);

	if (out->full)
		return;
	if ((size_t)(out->end - out->at) < more) {
		out->full = true;
		return;
	}
	memmove(begin + more, begin, n);
	out->at += more;
	out_varint(&length, n);
}

static void out_shape(struct grpc_out *out, uint32_t field, const int64_t *shape, uint8_t dims,
		      bool batched)
{
	uint8_t *packed = out_open(out, field);

	if (batched)
		out_varint(out, (uint64_t)-1);
	for (uint8_t i = 0; i < dims; i++)
		out_varint(out, (uint64_t)shape[i]);
	out_close(out, packed);
}

/* --- answers of the load balancer itself -------------------------------------------------------
 */

void grpc_write_bool(struct grpc_out *out, bool value)
{
	out_number(out, 1, value);
}

void grpc_write_health(struct grpc_out *out, enum grpc_health health)
{
	out_number(out, 1, health);
}

void grpc_write_server(struct grpc_out *out, const char *name, const char *version)
{
	out_text(out, 1, name);
	out_text(out, 2, version);
	out_text(out, 3, "model_configuration");
	out_text(out, 3, "schedule_policy");
	out_text(out, 3, "statistics");
}

static void out_tensor(struct grpc_out *out, uint32_t field, const struct kserve_tensor *t,
		       bool batched)
{
	uint8_t *message = out_open(out, field);

	out_text(out, 1, t->name);
	out_text(out, 2, kserve_datatype_name(t->type));
	out_shape(out, 3, t->shape, t->dims, batched);
	out_close(out, message);
}

void grpc_write_model(struct grpc_out *out, const struct kserve_model *model)
{
	out_text(out, 1, model->name);
	for (uint8_t i = 0; i < model->versions; i++)
		out_text(out, 2, model->version[i]);
	out_text(out, 3, model->platform);
	for (uint8_t i = 0; i < model->inputs; i++)
		out_tensor(out, 4, &model->input[i], model->max_batch > 0);
	for (uint8_t i = 0; i < model->outputs; i++)
		out_tensor(out, 5, &model->output[i], model->max_batch > 0);
}

/* inference.DataType of Triton's model_config.proto. */
static uint64_t config_type(enum kserve_datatype type)
{
	static const uint8_t types[] = {
		[KSERVE_BOOL] = 1,   [KSERVE_UINT8] = 2, [KSERVE_UINT16] = 3, [KSERVE_UINT32] = 4,
		[KSERVE_UINT64] = 5, [KSERVE_INT8] = 6,  [KSERVE_INT16] = 7,  [KSERVE_INT32] = 8,
		[KSERVE_INT64] = 9,  [KSERVE_FP16] = 10, [KSERVE_FP32] = 11,  [KSERVE_FP64] = 12,
		[KSERVE_BYTES] = 13, [KSERVE_BF16] = 14,
	};

	return types[type];
}

/* ModelInput has its dims in field 4, ModelOutput in field 3. */
static void config_tensor(struct grpc_out *out, uint32_t field, const struct kserve_tensor *t,
			  uint32_t dims)
{
	uint8_t *message = out_open(out, field);

	out_text(out, 1, t->name);
	out_number(out, 2, config_type(t->type));
	out_shape(out, dims, t->shape, t->dims, false);
	out_close(out, message);
}

void grpc_write_config(struct grpc_out *out, const struct kserve_model *model)
{
	uint8_t *config = out_open(out, 1);

	out_text(out, 1, model->name);
	out_text(out, 2, model->platform);
	out_number(out, 4, model->max_batch);
	for (uint8_t i = 0; i < model->inputs; i++)
		config_tensor(out, 5, &model->input[i], 4);
	for (uint8_t i = 0; i < model->outputs; i++)
		config_tensor(out, 6, &model->output[i], 3);
	out_close(out, config);
}

static void statistics_count(struct grpc_out *out, uint32_t field, const struct kserve_count *count)
{
	uint8_t *message = out_open(out, field);

	out_number(out, 1, count->count);
	out_number(out, 2, count->ns);
	out_close(out, message);
}

void grpc_write_statistics(struct grpc_out *out, const struct kserve_model *model)
{
	const struct kserve_counters *c = &model->counters;
	uint8_t *message = out_open(out, 1), *durations;

	out_text(out, 1, model->name);
	out_text(out, 2, kserve_last_version(model));
	out_number(out, 3, c->last_inference);
	out_number(out, 4, c->inferences);
	out_number(out, 5, c->executions);
	durations = out_open(out, 6);
	statistics_count(out, 1, &c->success);
	statistics_count(out, 2, &c->fail);
	statistics_count(out, 3, &c->queue);
	statistics_count(out, 4, &c->input);
	statistics_count(out, 5, &c->infer);
	statistics_count(out, 6, &c->output);
	out_close(out, durations);
	out_close(out, message);
}

void grpc_write_index(struct grpc_out *out, const struct kserve_model *model)
{
	uint8_t *message = out_open(out, 1);

	out_text(out, 1, model->name);
	out_text(out, 2, kserve_last_version(model));
	out_text(out, 3, kserve_state(model));
	out_text(out, 4, kserve_state_reason(model));
	out_close(out, message);
}

/* --- inference ----------------------------------------------------------------------------------
 */

uint32_t grpc_write_raw(uint64_t bytes, uint8_t *at)
{
	struct grpc_out out = {at, at + GRPC_FIELD_MAX, false};

	out_tag(&out, RAW_OUTPUT, GRPC_WIRE_LENGTH);
	out_varint(&out, bytes);
	return (uint32_t)(out.at - at);
}

static void answer_output(struct grpc_out *out, const struct kserve_answer_output *o)
{
	uint8_t *message = out_open(out, 5), *packed;

	out_text(out, 1, o->name);
	out_text(out, 2, kserve_datatype_name(o->type));
	packed = out_open(out, 3);
	for (uint8_t i = 0; i < o->dims; i++)
		out_varint(out, o->shape[i]);
	out_close(out, packed);
	out_close(out, message);
}

/* Puts "field 2, <length> bytes" in front of the message at <at>. Returns how much longer it is. */
static uint32_t answer_wrap(uint8_t *at, uint32_t bytes, uint64_t length)
{
	uint8_t head[GRPC_FIELD_MAX];
	struct grpc_out out = {head, head + sizeof(head), false};
	uint32_t n;

	out_tag(&out, 2, GRPC_WIRE_LENGTH);
	out_varint(&out, length);
	n = (uint32_t)(out.at - head);
	memmove(at + n, at, bytes);
	memcpy(at, head, n);
	return n;
}

/* An entry of the parameters of a ModelInferResponse. */
static void answer_final(struct grpc_out *out, bool final)
{
	uint8_t *entry = out_open(out, 4), *value;

	out_text(out, 1, "triton_final_response");
	value = out_open(out, 2);
	/* One of several: false is written, too. */
	out_tag(out, 1, GRPC_WIRE_VARINT);
	out_varint(out, final);
	out_close(out, value);
	out_close(out, entry);
}

uint32_t grpc_write_answer(const struct kserve_answer *answer, bool streamed, uint8_t *at)
{
	struct grpc_out out = {at + GRPC_PREFIX, at + GRPC_HEAD_MAX - GRPC_FIELD_MAX, false};
	uint8_t raw[GRPC_FIELD_MAX];
	uint64_t length;
	uint32_t bytes;

	out_text(&out, 1, answer->model);
	out_text(&out, 2, answer->version);
	if (answer->id != NULL)
		out_bytes(&out, 3, answer->id, answer->id_length);
	if (answer->final != KSERVE_FINAL_UNSAID)
		answer_final(&out, answer->final == KSERVE_FINAL);
	for (uint8_t i = 0; i < answer->outputs; i++)
		answer_output(&out, &answer->output[i]);
	length = (uint64_t)(out.at - at) - GRPC_PREFIX;
	bytes = (uint32_t)length;
	for (uint8_t i = 0; i < answer->outputs; i++)
		length += grpc_write_raw(answer->output[i].bytes, raw) + answer->output[i].bytes;
	if (out.full || length > UINT32_MAX - GRPC_FIELD_MAX)
		return 0;
	if (streamed) {
		uint32_t n = answer_wrap(at + GRPC_PREFIX, bytes, length);

		bytes += n;
		length += n;
	}
	grpc_prefix_write(at, (uint32_t)length);
	return bytes + GRPC_PREFIX;
}

uint32_t grpc_write_stream_error(const char *error, uint8_t *at, uint32_t room)
{
	struct grpc_out out = {at + GRPC_PREFIX, at + room, false};
	size_t n = strlen(error), most = room - GRPC_PREFIX - GRPC_FIELD_MAX;

	out_bytes(&out, 1, error, n < most ? n : most);
	grpc_prefix_write(at, (uint32_t)(out.at - at) - GRPC_PREFIX);
	return (uint32_t)(out.at - at);
}
