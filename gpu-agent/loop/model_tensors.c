/* SPDX-License-Identifier: BSD-3-Clause */
#include "loop/model_tensors.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "loop/model_load.h"

/* The first ABI that has describe(). */
#define DESCRIBE_ABI 3

/* A text that does not fit is stored without its NUL, which the check refuses. */
static void model_tensors_text(char *to, size_t size, const char *from)
{
	strncpy(to, from != NULL ? from : "", size);
}

static int32_t model_tensors_dimension(int64_t n)
{
	return n > INT32_MAX ? INT32_MAX : n < INT32_MIN ? INT32_MIN : (int32_t)n;
}

static void model_tensors_copy(struct model_tensor *to, const struct agent_model_tensor *from,
			       uint32_t n)
{
	for (uint32_t i = 0; i < n && i < DESCRIPTION_TENSORS_MAX; i++) {
		model_tensors_text(to[i].name, sizeof(to[i].name), from[i].name);
		to[i].datatype =
			workers_datatype_find(from[i].datatype != NULL ? from[i].datatype : "");
		to[i].rank = from[i].rank;
		for (unsigned int k = 0; k < DESCRIPTION_RANK_MAX && k < from[i].rank; k++)
			to[i].shape[k] = model_tensors_dimension(from[i].shape[k]);
	}
}

int model_tensors_read(struct loaded_model *m, char *error, size_t size)
{
	_Static_assert(AGENT_MODEL_TENSORS_MAX == DESCRIPTION_TENSORS_MAX, "both have as many");
	_Static_assert(AGENT_MODEL_RANK_MAX == DESCRIPTION_RANK_MAX, "both have as many");
	struct agent_model_description from = {0};
	struct model_description *d = &m->description;
	char why[256];

	m->described = false;
	if (m->model->abi < DESCRIBE_ABI || m->model->describe == NULL)
		return 0;
	m->model->describe(m->state, &from);
	memset(d, 0, sizeof(*d));
	model_tensors_text(d->version, sizeof(d->version),
			   from.version != NULL ? from.version : "1");
	model_tensors_text(d->platform, sizeof(d->platform), from.platform);
	d->batch = from.batch != 0;
	d->n_inputs = from.n_inputs;
	d->n_outputs = from.n_outputs;
	model_tensors_copy(d->input, from.input, from.n_inputs);
	model_tensors_copy(d->output, from.output, from.n_outputs);
	if (!workers_description_is_valid(d, why, sizeof(why)) ||
	    !workers_description_fits(d, m->shape.min_request, m->shape.max_request,
				      m->shape.max_reply, false, why, sizeof(why))) {
		snprintf(error, size, "its description: %s", why);
		return -EINVAL;
	}
	m->described = true;
	return 0;
}
