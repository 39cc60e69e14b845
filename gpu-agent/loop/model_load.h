/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loads and opens models: plug-ins, or one that is in the process already. Main thread.
 */
#ifndef AGENT_MODEL_LOAD_H
#define AGENT_MODEL_LOAD_H

#include <stdbool.h>

#include "description.h"
#include "models/buckets.h"
#include "models/model.h"

struct loaded_model {
	void *library; /* NULL: not a plug-in */
	const struct agent_model *model;
	void *state;
	struct agent_model_shape shape;
	struct agent_buckets buckets; /* sizes of its batches */
	bool described; /* the model says what its tensors are */
	struct model_description description;
};

/* The first ABI that has step(), and the first one that has it on a GPU. */
#define MODEL_STEP_ABI 4
#define MODEL_ROWS_ABI 5
/* The first ABI that has run_bucket(). */
#define MODEL_BUCKETS_ABI 6

/* Do its replies come in pieces? */
static inline bool agent_model_steps(const struct agent_model *m)
{
	return m->abi >= MODEL_STEP_ABI && m->step != NULL;
}

/* Does it run on a GPU? A capture() that knows nothing of rows' words cannot make pieces. */
static inline bool agent_model_has_cuda_side(const struct agent_model *m)
{
	return m->capture != NULL && (!agent_model_steps(m) || m->abi >= MODEL_ROWS_ABI);
}

/* Does it run on a CPU? A plug-in may be for GPUs only. */
static inline bool agent_model_has_cpu_side(const struct agent_model *m)
{
	return m->run != NULL || agent_model_steps(m);
}

/* Does it tell batches of different sizes apart on a CPU? */
static inline bool agent_model_has_buckets(const struct agent_model *m)
{
	return m->abi >= MODEL_BUCKETS_ABI && m->run_bucket != NULL;
}

/* Load the plug-in <name>, a path or a name in the models folder, and open it. 0, or -errno and
 * <error>. */
int agent_model_load(struct loaded_model *m, const char *name, const char *arguments,
		     uint32_t max_batch, char *error, size_t size);
/* Open <model>, which is loaded already and outlives <m>. 0, or -errno and <error>. */
int agent_model_open(struct loaded_model *m, const struct agent_model *model, const char *arguments,
		     uint32_t max_batch, char *error, size_t size);
/* Batches have <max_batch> rows at most from now on. */
void agent_model_limit(struct loaded_model *m, uint32_t max_batch);
/* All batches run at the size of the largest one, whatever the model offers. */
void agent_model_keep_one_size(struct loaded_model *m);
/* Close the model and unload its plug-in. */
void agent_model_unload(struct loaded_model *m);

#endif
