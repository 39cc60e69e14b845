/* SPDX-License-Identifier: BSD-3-Clause */
#include "grpc/infer.h"

#include <string.h>

#include "grpc/contents.h"

/* The field whose bytes are coming. */
enum infer_state {
	INFER_FIELDS, /* none */
	INFER_SKIP,
	INFER_MODEL,
	INFER_VERSION,
	INFER_ID,
	INFER_KEY,
	INFER_NAME,
	INFER_DATATYPE,
	INFER_OUTPUT_NAME,
	INFER_CONTENTS,
	INFER_RAW,
	INFER_VALUE, /* of a parameter */
};

/* Fields of the messages (open_inference_grpc.proto). */
enum {
	REQUEST_MODEL = 1,
	REQUEST_VERSION,
	REQUEST_ID,
	REQUEST_PARAMETERS,
	REQUEST_INPUTS,
	REQUEST_OUTPUTS,
	REQUEST_RAW
};
enum { TENSOR_NAME = 1, TENSOR_DATATYPE, TENSOR_SHAPE, TENSOR_PARAMETERS, TENSOR_CONTENTS };
enum { OUTPUT_NAME = 1, OUTPUT_PARAMETERS };
enum { ENTRY_KEY = 1, ENTRY_VALUE };
enum { PARAMETER_BOOL = 1, PARAMETER_INT64 = 2, PARAMETER_STRING = 3, PARAMETER_UINT64 = 5 };

void grpc_infer_init(struct grpc_infer *r, struct kserve_infer *to, uint64_t length,
		     uint64_t max_bytes, uint8_t *early, uint32_t early_room)
{
	memset(r, 0, sizeof(*r));
	grpc_wire_init(&r->wire, length);
	r->to = to;
	r->max_bytes = max_bytes;
	r->early = early;
	r->early_room = early_room;
}

static struct kserve_input *infer_tensor(struct grpc_infer *r)
{
	return &r->to->input[r->to->inputs];
}

static enum grpc_infer_step infer_refuse(struct grpc_infer *r, uint16_t status, const char *error)
{
	if (r->to->status == 0)
		kserve_infer_refuse(r->to, status, "%s", error);
	return GRPC_INFER_REFUSED;
}

/* Parameters of tensors that mean something; without them the answer would be another. */
static enum grpc_infer_step infer_tensor_parameter(struct grpc_infer *r)
{
	bool refused = strcmp(r->key, "shared_memory_region") == 0 ||
		       strcmp(r->key, "classification") == 0;

	r->key[0] = '\0';
	return refused ? infer_refuse(r, 501, "shared memory and classification are not there")
		       : GRPC_INFER_MORE;
}

/* --- strings ------------------------------------------------------------------------------------
 */

/* Where the string that is coming goes, and its room, without a NUL. NULL: nowhere. */
static char *infer_text(struct grpc_infer *r, uint32_t *room)
{
	struct kserve_infer *to = r->to;

	switch ((enum infer_state)r->state) {
	case INFER_MODEL:
		*room = sizeof(r->model) - 1;
		return r->model;
	case INFER_VERSION:
		*room = sizeof(r->version) - 1;
		return r->version;
	case INFER_ID:
		*room = sizeof(to->id);
		return to->id;
	case INFER_NAME:
		*room = sizeof(infer_tensor(r)->name) - 1;
		return infer_tensor(r)->name;
	case INFER_OUTPUT_NAME:
		*room = sizeof(to->output[0].name) - 1;
		return to->output[to->outputs].name;
	case INFER_DATATYPE:
	case INFER_KEY:
		*room = sizeof(r->key) - 1;
		return r->key;
	default:
		return NULL;
	}
}

/* Bytes of a string. */
static enum grpc_infer_step infer_add_text(struct grpc_infer *r)
{
	uint32_t room;
	char *text = infer_text(r, &room);

	if (r->state == INFER_VALUE)
		r->number = kserve_infer_sequence(r->number, r->wire.bytes, r->wire.length);
	if (text == NULL)
		return GRPC_INFER_MORE;
	if (r->text_length + r->wire.length > room) {
		if (r->state == INFER_KEY) { /* no parameter that means anything here */
			text[0] = '\0';
			r->state = INFER_SKIP;
			return GRPC_INFER_MORE;
		}
		return infer_refuse(
			r, r->state == INFER_MODEL || r->state == INFER_VERSION ? 404 : 400,
			"a name, version, datatype or id is too long");
	}
	memcpy(text + r->text_length, r->wire.bytes, r->wire.length);
	r->text_length += r->wire.length;
	return GRPC_INFER_MORE;
}

/* The string is whole. */
static enum grpc_infer_step infer_end_text(struct grpc_infer *r)
{
	uint32_t room;
	char *text = infer_text(r, &room);
	uint8_t state = r->state;

	r->state = INFER_FIELDS;
	if (text == NULL)
		return GRPC_INFER_MORE;
	if (memchr(text, '\0', r->text_length) != NULL)
		return infer_refuse(r, 400, "a NUL in a name, version, datatype or id");
	if (state == INFER_ID) {
		r->to->id_length = (uint8_t)r->text_length;
		r->to->has_id = r->text_length > 0;
		return GRPC_INFER_MORE;
	}
	text[r->text_length] = '\0';
	if (state == INFER_NAME)
		r->has_name = true;
	if (state == INFER_KEY && r->wire.depth == 2)
		return infer_tensor_parameter(r);
	if (state != INFER_DATATYPE)
		return GRPC_INFER_MORE;
	infer_tensor(r)->type = kserve_datatype_of(r->key, r->text_length);
	r->key[0] = '\0';
	return infer_tensor(r)->type == KSERVE_NO_TYPE
		       ? infer_refuse(r, 400, "a datatype that does not exist")
		       : GRPC_INFER_MORE;
}

/* --- parameters ---------------------------------------------------------------------------------
 */

static enum grpc_infer_step infer_end_parameter(struct grpc_infer *r)
{
	bool timeout = strcmp(r->key, "timeout") == 0, priority = strcmp(r->key, "priority") == 0;

	if ((timeout || priority) && !r->has_number)
		return infer_refuse(r, 400,
				    timeout ? "parameters.timeout: expected an integer from 0 on"
					    : "parameters.priority: expected an integer from 0 on");
	if (timeout)
		r->to->timeout_us = r->number;
	else if (priority)
		r->to->priority = r->number;
	else if (strcmp(r->key, "sequence_id") == 0)
		r->to->sequence = r->number;
	else if (strcmp(r->key, "triton_enable_empty_final_response") == 0)
		r->to->empty_final = r->number != 0;
	r->key[0] = '\0';
	r->number = 0;
	r->has_number = false;
	return GRPC_INFER_MORE;
}

static bool infer_is_value(const struct grpc_wire *w)
{
	return w->depth == 2 && grpc_wire_inside(w, 1) == REQUEST_PARAMETERS &&
	       (w->field == PARAMETER_BOOL || w->field == PARAMETER_INT64 ||
		w->field == PARAMETER_UINT64) &&
	       w->type == GRPC_WIRE_VARINT;
}

/* --- inputs ------------------------------------------------------------------------------------
 */

static enum grpc_infer_step infer_add_dimension(struct grpc_infer *r)
{
	struct kserve_input *input = infer_tensor(r);

	if (input->dims == KSERVE_DIMS_MAX)
		return infer_refuse(r, 400, "a shape has too many dimensions");
	if (r->wire.value > INT64_MAX)
		return infer_refuse(r, 400, "a shape has a negative dimension");
	input->shape[input->dims++] = r->wire.value;
	r->has_shape = true;
	return GRPC_INFER_MORE;
}

/* All that the values need is known, or the input ends: it is described. */
static enum grpc_infer_step infer_describe(struct grpc_infer *r, struct kserve_run *run)
{
	struct kserve_input *input = infer_tensor(r);

	input->elements = 1;
	for (uint8_t i = 0; i < input->dims; i++)
		if (__builtin_mul_overflow(input->elements, input->shape[i], &input->elements))
			return infer_refuse(r, 413, "a shape has too many elements");
	if (!r->has_name || input->type == KSERVE_NO_TYPE)
		return infer_refuse(r, 400, "an input has no name or no datatype");
	if (input->elements > r->max_bytes)
		return infer_refuse(r, 413, "an input has more elements than the service takes");
	r->described = true;
	run->input = r->to->inputs;
	return GRPC_INFER_INPUT;
}

static void infer_begin_input(struct grpc_infer *r)
{
	memset(infer_tensor(r), 0, sizeof(*infer_tensor(r)));
	memset(&r->contents, 0, sizeof(r->contents));
	r->has_name = r->has_shape = r->described = r->has_contents = r->keeps = false;
	r->early_length = r->replay_at = r->early_raw;
}

/* Keeps bytes that cannot be used yet. */
static bool infer_keep(struct grpc_infer *r)
{
	if (r->wire.length > r->early_room - r->early_length)
		return false;
	memcpy(r->early + r->early_length, r->wire.bytes, r->wire.length);
	r->early_length += r->wire.length;
	return true;
}

/* Bytes of the contents of an input: converted, or kept while it is not described. */
static enum grpc_infer_step infer_contents(struct grpc_infer *r, const uint8_t **at,
					   struct kserve_run *run)
{
	const uint8_t *from = r->wire.bytes, *end = from + r->wire.length;
	enum grpc_infer_step step;

	if (r->keeps) {
		if (!infer_keep(r))
			return infer_refuse(
				r, 501, "contents before name, datatype and shape are too long");
		return GRPC_INFER_MORE;
	}
	step = grpc_contents_read(&r->contents, r->to, r->to->inputs, &from, end, run);
	grpc_wire_unread(&r->wire, (uint32_t)(end - from));
	*at -= end - from;
	if (r->contents.offset > r->max_bytes)
		return infer_refuse(r, 413, "an input is longer than the service takes");
	return step;
}

/* The contents of an input that were kept, if any. */
static enum grpc_infer_step infer_replay(struct grpc_infer *r, struct kserve_run *run)
{
	const uint8_t *from = r->early + r->replay_at, *end = r->early + r->early_length;
	enum grpc_infer_step step =
		grpc_contents_read(&r->contents, r->to, r->to->inputs, &from, end, run);

	r->replay_at = (uint32_t)(from - r->early);
	return step;
}

/* The input's message ended, and is not done until this returns GRPC_INFER_MORE. */
static enum grpc_infer_step infer_end_input(struct grpc_infer *r, struct kserve_run *run)
{
	struct kserve_input *input = infer_tensor(r);
	enum grpc_infer_step step;

	if (!r->described)
		return infer_describe(r, run);
	if (r->has_contents) {
		/* Values that were kept; and those that the last bytes have not given yet. */
		step = infer_replay(r, run);
		if (step != GRPC_INFER_MORE)
			return step;
		step = grpc_contents_end(&r->contents, r->to, r->to->inputs);
		if (step != GRPC_INFER_MORE)
			return step;
	}
	input->bytes = r->contents.offset;
	input->binary = !r->has_contents;
	r->to->inputs++;
	r->state = INFER_FIELDS;
	r->is_done = false;
	return GRPC_INFER_MORE;
}

/* --- raw bytes ----------------------------------------------------------------------------------
 */

static enum grpc_infer_step infer_begin_raw(struct grpc_infer *r, struct kserve_run *run)
{
	if (r->raws == KSERVE_TENSORS_MAX)
		return infer_refuse(r, 400, "too many raw_input_contents");
	if (r->any_contents)
		return infer_refuse(r, 400, "contents and raw_input_contents");
	run->input = r->raws++;
	r->state = INFER_RAW;
	if (r->wire.value > r->max_bytes)
		return infer_refuse(r, 413, "an input is longer than the service takes");
	/* Their tensor is not known yet. */
	r->keeps = run->input >= r->to->inputs;
	if (r->keeps) {
		if (r->wire.value > r->early_room - r->early_raw)
			return infer_refuse(r, 501, "raw_input_contents before their inputs");
		r->early_length = r->early_raw;
		r->raw_input[r->early_raws] = run->input;
		r->raw_length[r->early_raws++] = (uint32_t)r->wire.value;
		return GRPC_INFER_MORE;
	}
	r->raw_bytes = r->wire.value;
	r->to->input[run->input].bytes = r->raw_bytes;
	return GRPC_INFER_RAW;
}

void grpc_infer_take_raw(struct grpc_infer *r, uint64_t n)
{
	r->raw_bytes -= n;
	grpc_wire_skip(&r->wire, n);
}

/* The message ended: every input has bytes, of the one kind or the other. */
static enum grpc_infer_step infer_check(struct grpc_infer *r)
{
	if (r->raws > 0 && r->raws != r->to->inputs)
		return infer_refuse(r, 400, "not as many raw_input_contents as inputs");
	for (uint8_t i = 0; i < r->to->inputs; i++)
		if (r->raws == 0 && r->to->input[i].binary && r->to->input[i].elements > 0)
			return infer_refuse(r, 400, "an input has no contents");
	return r->to->inputs == 0 ? infer_refuse(r, 400, "no inputs") : GRPC_INFER_DONE;
}

/* Those that were kept, one after the other. */
static enum grpc_infer_step infer_replay_raw(struct grpc_infer *r, struct kserve_run *run)
{
	uint32_t left, n;

	if (r->replayed == r->early_raws)
		return infer_check(r);
	run->input = r->raw_input[r->replayed];
	if (run->input >= r->to->inputs)
		return infer_refuse(r, 400, "raw_input_contents that belong to no input");
	if (!r->begins) {
		r->begins = true;
		r->to->input[run->input].bytes = r->raw_length[r->replayed];
		r->contents.offset = 0;
		return GRPC_INFER_RAW;
	}
	left = r->raw_length[r->replayed] - (uint32_t)r->contents.offset;
	n = left < run->room ? left : run->room;
	if (n == 0) {
		r->begins = false;
		r->replayed++;
		return infer_replay_raw(r, run);
	}
	memcpy(run->at, r->early + r->replay_at, n);
	run->length = n;
	run->offset = r->contents.offset;
	r->contents.offset += n;
	r->replay_at += n;
	return GRPC_INFER_RUN;
}

/* --- fields ------------------------------------------------------------------------------------
 */

static enum grpc_infer_step infer_enter(struct grpc_infer *r)
{
	return grpc_wire_enter(&r->wire) ? GRPC_INFER_MORE
					 : infer_refuse(r, 400, "messages in each other");
}

static enum grpc_infer_step infer_enter_packed(struct grpc_infer *r)
{
	r->has_shape = true;
	return grpc_wire_enter_packed(&r->wire, GRPC_WIRE_VARINT)
		       ? GRPC_INFER_MORE
		       : infer_refuse(r, 400, "messages in each other");
}

static enum grpc_infer_step infer_text_field(struct grpc_infer *r, enum infer_state state)
{
	r->state = (uint8_t)state;
	r->text_length = 0;
	return GRPC_INFER_MORE;
}

static enum grpc_infer_step infer_request_field(struct grpc_infer *r, struct kserve_run *run)
{
	switch (r->wire.field) {
	case REQUEST_MODEL:
		return infer_text_field(r, INFER_MODEL);
	case REQUEST_VERSION:
		return infer_text_field(r, INFER_VERSION);
	case REQUEST_ID:
		return infer_text_field(r, INFER_ID);
	case REQUEST_PARAMETERS:
		return infer_enter(r);
	case REQUEST_INPUTS:
		if (r->to->inputs == KSERVE_TENSORS_MAX)
			return infer_refuse(r, 400, "too many inputs");
		infer_begin_input(r);
		return infer_enter(r);
	case REQUEST_OUTPUTS:
		if (r->to->outputs == KSERVE_TENSORS_MAX)
			return infer_refuse(r, 400, "too many outputs");
		r->to->output[r->to->outputs].name[0] = '\0';
		return infer_enter(r);
	case REQUEST_RAW:
		return infer_begin_raw(r, run);
	default:
		return infer_text_field(r, INFER_SKIP);
	}
}

static enum grpc_infer_step infer_input_field(struct grpc_infer *r, struct kserve_run *run)
{
	switch (r->wire.field) {
	case TENSOR_NAME:
	case TENSOR_DATATYPE:
	case TENSOR_SHAPE:
		if (r->described)
			return infer_refuse(r, 400, "an input is described twice");
		if (r->wire.field == TENSOR_SHAPE)
			return infer_enter_packed(r);
		return infer_text_field(r,
					r->wire.field == TENSOR_NAME ? INFER_NAME : INFER_DATATYPE);
	case TENSOR_PARAMETERS:
		return infer_enter(r);
	case TENSOR_CONTENTS:
		if (r->has_contents)
			return infer_refuse(r, 400, "an input has contents twice");
		r->has_contents = r->wire.value > 0;
		r->any_contents |= r->has_contents;
		if (r->has_contents && r->raws > 0)
			return infer_refuse(r, 400, "contents and raw_input_contents");
		grpc_wire_init(&r->contents.wire, r->wire.value);
		infer_text_field(r, INFER_CONTENTS);
		r->keeps = !r->has_name || infer_tensor(r)->type == KSERVE_NO_TYPE || !r->has_shape;
		/* Empty ones may have come before. */
		return r->keeps || r->described ? GRPC_INFER_MORE : infer_describe(r, run);
	default:
		return infer_text_field(r, INFER_SKIP);
	}
}

/* A field that has a length begins. */
static enum grpc_infer_step infer_field(struct grpc_infer *r, struct kserve_run *run)
{
	uint32_t outer = grpc_wire_inside(&r->wire, 1);

	if (r->wire.depth == 0)
		return infer_request_field(r, run);
	if (r->wire.depth == 2 && outer != REQUEST_PARAMETERS)
		return infer_text_field(r, r->wire.field == ENTRY_KEY ? INFER_KEY : INFER_SKIP);
	/* The only name that means anything is a sequence's. An empty one is none. */
	if (r->wire.depth == 2 && r->wire.field == PARAMETER_STRING) {
		r->number = r->wire.value > 0 ? KSERVE_SEQUENCE : 0;
		return infer_text_field(r, INFER_VALUE);
	}
	if (outer == REQUEST_INPUTS)
		return infer_input_field(r, run);
	if (outer == REQUEST_OUTPUTS && r->wire.field == OUTPUT_NAME)
		return infer_text_field(r, INFER_OUTPUT_NAME);
	if (outer == REQUEST_OUTPUTS && r->wire.field == OUTPUT_PARAMETERS)
		return infer_enter(r);
	if (outer == REQUEST_PARAMETERS && r->wire.depth == 1 && r->wire.field == ENTRY_KEY)
		return infer_text_field(r, INFER_KEY);
	if (outer == REQUEST_PARAMETERS && r->wire.depth == 1 && r->wire.field == ENTRY_VALUE)
		return infer_enter(r);
	return infer_text_field(r, INFER_SKIP);
}

static enum grpc_infer_step infer_value(struct grpc_infer *r)
{
	const struct grpc_wire *w = &r->wire;

	if (infer_is_value(w)) {
		r->number = w->value;
		r->has_number = w->field == PARAMETER_UINT64 || w->value <= INT64_MAX;
	} else if (grpc_wire_inside(w, 1) == REQUEST_INPUTS && w->field == TENSOR_SHAPE &&
		   w->type == GRPC_WIRE_VARINT) {
		return r->described ? infer_refuse(r, 400, "an input is described twice")
				    : infer_add_dimension(r);
	}
	return GRPC_INFER_MORE;
}

/* A message inside the request ended. */
static enum grpc_infer_step infer_end(struct grpc_infer *r)
{
	if (r->wire.depth > 0)
		return GRPC_INFER_MORE;
	if (r->wire.field == REQUEST_INPUTS)
		r->is_done = true;
	else if (r->wire.field == REQUEST_OUTPUTS)
		r->to->outputs++;
	else if (r->wire.field == REQUEST_PARAMETERS)
		return infer_end_parameter(r);
	return GRPC_INFER_MORE;
}

static enum grpc_infer_step infer_bytes(struct grpc_infer *r, const uint8_t **at,
					struct kserve_run *run)
{
	if (r->state == INFER_CONTENTS)
		return infer_contents(r, at, run);
	if (r->state != INFER_RAW)
		return infer_add_text(r);
	infer_keep(r); /* there is room: infer_begin_raw() */
	return GRPC_INFER_MORE;
}

static enum grpc_infer_step infer_bytes_end(struct grpc_infer *r)
{
	if (r->state == INFER_RAW && r->keeps)
		r->early_raw = r->early_length;
	if (r->state != INFER_CONTENTS && r->state != INFER_RAW)
		return infer_end_text(r);
	r->state = INFER_FIELDS;
	return GRPC_INFER_MORE;
}

static enum grpc_infer_step infer_token(struct grpc_infer *r, enum grpc_token token,
					const uint8_t **at, struct kserve_run *run)
{
	switch (token) {
	case GRPC_VALUE:
		return infer_value(r);
	case GRPC_FIELD:
		return infer_field(r, run);
	case GRPC_BYTES:
		return infer_bytes(r, at, run);
	case GRPC_BYTES_END:
		return infer_bytes_end(r);
	case GRPC_END:
		return infer_end(r);
	case GRPC_DONE:
		/* Kept bytes lie from the beginning on. */
		if (r->replayed == 0 && !r->begins)
			r->replay_at = 0;
		return infer_replay_raw(r, run);
	default:
		return infer_refuse(r, 400, "the message is no ModelInferRequest");
	}
}

enum grpc_infer_step grpc_infer_read(struct grpc_infer *r, const uint8_t **at, const uint8_t *end,
				     struct kserve_run *run)
{
	enum grpc_infer_step step = GRPC_INFER_MORE;

	run->length = 0;
	run->work = 0;
	if (r->to->status != 0)
		return GRPC_INFER_REFUSED;
	while (step == GRPC_INFER_MORE) {
		uint32_t numbers = r->wire.numbers;
		const uint8_t *from = *at;
		enum grpc_token token;

		if (kserve_run_is_over(run))
			return GRPC_INFER_RUN;

		if (r->is_done) {
			step = infer_end_input(r, run);
			continue;
		}
		/* Raw bytes are taken where they lie. */
		if (r->raw_bytes > 0)
			return GRPC_INFER_MORE;
		token = grpc_wire_read(&r->wire, at, end);
		/* Those of contents count where they are read. */
		if (token != GRPC_BYTES || r->state != INFER_CONTENTS)
			run->work += (uint32_t)(*at - from);
		run->work += 1 + GRPC_NUMBER_WORK * (r->wire.numbers - numbers);
		if (token == GRPC_MORE)
			return GRPC_INFER_MORE;
		step = infer_token(r, token, at, run);
	}
	return step;
}
