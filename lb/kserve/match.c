/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <string.h>

#include "json/write.h"
#include "kserve/match.h"

#define SHAPE_TEXT_MAX 96

static int match_place(const struct kserve_tensor *tensors, uint8_t n, const char *name)
{
	for (uint8_t i = 0; i < n; i++) {
		if (strcmp(tensors[i].name, name) == 0)
			return i;
	}
	return -1;
}

int kserve_match_output(const struct kserve_model *model, const char *name)
{
	return match_place(model->output, model->outputs, name);
}

/* "[-1,224,224,3]", cut if it is very long */
static const char *match_shape_text(const struct kserve_tensor *tensor, bool batched,
				    char text[SHAPE_TEXT_MAX])
{
	struct json_out out = {text, text + SHAPE_TEXT_MAX - 1, false};

	json_put(&out, batched ? "[-1" : "[");
	for (uint8_t i = 0; i < tensor->dims; i++) {
		if (i > 0 || batched)
			json_put(&out, ",");
		json_put_i64(&out, tensor->shape[i]);
	}
	json_put(&out, "]");
	*out.at = '\0';
	return text;
}

static bool match_shape(const struct kserve_tensor *tensor, bool batched,
			const struct kserve_input *input)
{
	if (input->dims != tensor->dims + batched)
		return false;
	for (uint8_t i = 0; i < tensor->dims; i++) {
		if (tensor->shape[i] >= 0 &&
		    input->shape[i + batched] != (uint64_t)tensor->shape[i])
			return false;
	}
	return true;
}

static int match_refuse_shape(const struct kserve_tensor *tensor, bool batched,
			      struct kserve_infer *r, uint8_t i)
{
	char text[SHAPE_TEXT_MAX];

	kserve_infer_refuse(r, 400, "inputs[%u] ('%s'): the model takes the shape %s", i,
			    tensor->name, match_shape_text(tensor, batched, text));
	return -1;
}

static int match_rows(const struct kserve_model *model, struct kserve_infer *r, uint8_t i,
		      uint64_t *rows)
{
	uint64_t n = model->max_batch > 0 ? r->input[i].shape[0] : 1;
	const char *name = r->input[i].name;

	if (n > 1 && model->rows_alone) {
		kserve_infer_refuse(r, 501,
				    "inputs[%u] ('%s'): %" PRIu64
				    " rows of a model with BYTES among several outputs; send each "
				    "as a request",
				    i, name, n);
		return -1;
	}
	if (n == 0 || (model->max_batch > 0 && n > model->max_batch)) {
		kserve_infer_refuse(r, 400,
				    "inputs[%u] ('%s'): %" PRIu64 " rows, the model takes 1 to %u",
				    i, name, n, model->max_batch);
		return -1;
	}
	if (*rows != 0 && *rows != n) {
		kserve_infer_refuse(r, 400,
				    "inputs[%u] ('%s'): %" PRIu64
				    " rows, the inputs before have %" PRIu64,
				    i, name, n, *rows);
		return -1;
	}
	*rows = n;
	return 0;
}

int kserve_match_input(const struct kserve_model *model, struct kserve_infer *r, uint8_t i,
		       uint64_t *rows)
{
	const struct kserve_input *input = &r->input[i];
	int place = match_place(model->input, model->inputs, input->name);
	const struct kserve_tensor *tensor = &model->input[place < 0 ? 0 : place];

	if (place < 0) {
		kserve_infer_refuse(r, 400, "inputs[%u] ('%s'): the model '%s' has no such input",
				    i, input->name, model->name);
		return -1;
	}
	if (input->type != tensor->type) {
		kserve_infer_refuse(r, 400, "inputs[%u] ('%s'): datatype %s, the model takes %s", i,
				    input->name, kserve_datatype_name(input->type),
				    kserve_datatype_name(tensor->type));
		return -1;
	}
	if (!match_shape(tensor, model->max_batch > 0, input))
		return match_refuse_shape(tensor, model->max_batch > 0, r, i);
	return match_rows(model, r, i, rows) < 0 ? -1 : place;
}

static bool match_has_input(const struct kserve_infer *r, const char *name)
{
	for (uint8_t i = 0; i < r->inputs; i++) {
		if (strcmp(r->input[i].name, name) == 0)
			return true;
	}
	return false;
}

enum kserve_step kserve_match_end(const struct kserve_model *model, struct kserve_infer *r)
{
	for (uint8_t i = 0; i < model->inputs; i++) {
		if (!match_has_input(r, model->input[i].name))
			return kserve_infer_refuse(r, 400,
						   "the input '%s' of the model '%s' is missing",
						   model->input[i].name, model->name);
	}
	for (uint8_t i = 0; i < r->outputs; i++) {
		if (kserve_match_output(model, r->output[i].name) < 0)
			return kserve_infer_refuse(
				r, 400, "outputs[%u] ('%s'): the model '%s' has no such output", i,
				r->output[i].name, model->name);
	}
	return KSERVE_MORE;
}

/* Gives the shape's free dimension, if there is one, the size that makes <elements>. False: none
 * does. */
static bool match_fill_shape(const struct kserve_tensor *tensor, struct kserve_input *input,
			     uint64_t elements)
{
	uint64_t fixed = 1, *free = NULL;

	for (uint8_t i = 0; i < tensor->dims; i++) {
		uint64_t *size = &input->shape[input->dims++];

		*size = (uint64_t)tensor->shape[i];
		if (tensor->shape[i] >= 0 && __builtin_mul_overflow(fixed, *size, &fixed))
			return false;
		if (tensor->shape[i] < 0 && free != NULL)
			return false;
		if (tensor->shape[i] < 0)
			free = size;
	}
	if (free == NULL)
		return fixed == elements;
	if (fixed == 0 || elements % fixed != 0)
		return false;
	*free = elements / fixed;
	return true;
}

enum kserve_step kserve_match_raw(const struct kserve_model *model, struct kserve_infer *r,
				  uint64_t bytes)
{
	const struct kserve_tensor *tensor = &model->input[0];
	uint32_t size = kserve_datatype_size(tensor->type);
	struct kserve_input *input = &r->input[0];

	if (model->inputs != 1 || size == 0)
		return kserve_infer_refuse(
			r, 400,
			"a request without JSON needs a model with one input that is "
			"not BYTES, which '%s' is not",
			model->name);
	*input = (struct kserve_input){.type = tensor->type, .binary = true, .bytes = bytes};
	memcpy(input->name, tensor->name, sizeof(input->name));
	if (model->max_batch > 0)
		input->shape[input->dims++] = 1;
	input->elements = bytes / size;
	if (bytes == 0 || bytes % size != 0 || input->dims + tensor->dims > KSERVE_DIMS_MAX ||
	    !match_fill_shape(tensor, input, input->elements))
		return kserve_infer_refuse(
			r, 400,
			"the input '%s' of the model '%s' has no shape of %" PRIu64 " bytes",
			tensor->name, model->name, bytes);
	r->inputs = 1;
	r->binary_bytes = bytes;
	r->binary_outputs = true;
	return KSERVE_MORE;
}
