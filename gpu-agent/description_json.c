/* SPDX-License-Identifier: BSD-3-Clause */
#include "description_json.h"

#include "description.h"

static json_t *description_json_tensor(const struct model_tensor *t)
{
	json_t *shape = json_array();

	for (unsigned int i = 0; i < t->rank; i++)
		json_array_append_new(shape, json_integer(t->shape[i]));
	return json_pack("{s:s, s:s, s:o}", "name", t->name, "datatype",
			 workers_datatype_name(t->datatype), "shape", shape);
}

static json_t *description_json_side(const struct model_tensor *t, unsigned int n)
{
	json_t *side = json_array();

	for (unsigned int i = 0; i < n; i++)
		json_array_append_new(side, description_json_tensor(&t[i]));
	return side;
}

json_t *description_json(const struct model_description *d)
{
	json_t *json = json_pack("{s:s, s:b, s:o, s:o}", "version", d->version, "batch", d->batch,
				 "inputs", description_json_side(d->input, d->n_inputs), "outputs",
				 description_json_side(d->output, d->n_outputs));

	if (json != NULL && d->platform[0] != '\0')
		json_object_set_new(json, "platform", json_string(d->platform));
	return json;
}
