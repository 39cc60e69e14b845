/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "server/row.h"
#include "server/rpc.h"

#define DATATYPE_MAX 16

struct description_query {
	char version[DESCRIPTION_VERSION_MAX], platform[DESCRIPTION_PLATFORM_MAX];
	bool batch;
	const json_t *inputs, *outputs;
};

static const struct control_param description_params[] = {
	{CONTROL_PARAM(description_query, version), CONTROL_TEXT, true},
	{CONTROL_PARAM(description_query, platform), CONTROL_TEXT, false},
	{CONTROL_PARAM(description_query, batch), CONTROL_BOOLEAN, true},
	{CONTROL_PARAM(description_query, inputs), CONTROL_LIST, true, 1, DESCRIPTION_TENSORS_MAX},
	{CONTROL_PARAM(description_query, outputs), CONTROL_LIST, true, 1, DESCRIPTION_TENSORS_MAX},
};

struct tensor_query {
	char name[DESCRIPTION_NAME_MAX], datatype[DATATYPE_MAX];
	const json_t *shape;
};

static const struct control_param tensor_params[] = {
	{CONTROL_PARAM(tensor_query, name), CONTROL_TEXT, true},
	{CONTROL_PARAM(tensor_query, datatype), CONTROL_TEXT, true},
	{CONTROL_PARAM(tensor_query, shape), CONTROL_SHAPE, true, 0, DESCRIPTION_RANK_MAX},
};

static bool tensors_read_one(struct control_call *call, const char *where, const json_t *object,
			     struct model_tensor *t)
{
	struct tensor_query q = {0};

	if (!control_params_read(call, where, object, tensor_params,
				 CONTROL_COUNT_OF(tensor_params), &q))
		return false;
	memcpy(t->name, q.name, sizeof(t->name));
	t->datatype = workers_datatype_find(q.datatype);
	t->rank = (unsigned int)json_array_size(q.shape);
	for (unsigned int i = 0; i < t->rank; i++)
		t->shape[i] = (int32_t)json_integer_value(json_array_get(q.shape, i));
	return true;
}

static bool tensors_read_side(struct control_call *call, const char *side, const json_t *list,
			      struct model_tensor *t, unsigned int *n)
{
	*n = (unsigned int)json_array_size(list);
	for (unsigned int i = 0; i < *n; i++) {
		char where[48];

		snprintf(where, sizeof(where), "params.description.%s[%u]", side, i);
		if (!tensors_read_one(call, where, json_array_get(list, i), &t[i]))
			return false;
	}
	return true;
}

bool tensors_read(struct control_call *call, const json_t *object, struct model_description *d)
{
	struct description_query q = {0};

	memset(d, 0, sizeof(*d));
	if (!control_params_read(call, "params.description", object, description_params,
				 CONTROL_COUNT_OF(description_params), &q))
		return false;
	memcpy(d->version, q.version, sizeof(d->version));
	memcpy(d->platform, q.platform, sizeof(d->platform));
	d->batch = q.batch;
	return tensors_read_side(call, "inputs", q.inputs, d->input, &d->n_inputs) &&
	       tensors_read_side(call, "outputs", q.outputs, d->output, &d->n_outputs);
}

static void tensors_write_side(struct json_writer *w, const char *key,
			       const struct model_description *d, const struct model_tensor *t,
			       unsigned int n)
{
	char shape[DESCRIPTION_SHAPE_TEXT];

	writer_open_array(w, key);
	for (unsigned int i = 0; i < n; i++) {
		struct description_bytes bytes = workers_tensor_bytes(&t[i], d->batch);

		writer_open_object(w, NULL);
		writer_string(w, "name", t[i].name);
		writer_string(w, "datatype", workers_datatype_name(t[i].datatype));
		workers_tensor_shape(&t[i], shape);
		writer_written(w, "shape", shape, strlen(shape));
		if (bytes.fixed)
			writer_integer(w, "bytes", bytes.least);
		else
			writer_null(w, "bytes");
		writer_close_object(w);
	}
	writer_close_array(w);
}

void tensors_write(struct json_writer *w, const struct model_description *d)
{
	if (d == NULL) {
		writer_null(w, "inputs");
		writer_null(w, "outputs");
		return;
	}
	tensors_write_side(w, "inputs", d, d->input, d->n_inputs);
	tensors_write_side(w, "outputs", d, d->output, d->n_outputs);
}
