/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Load a model plug-in and start its model. Not for use by several threads at a time.
 */
#ifndef LOOP_MODEL_LOAD_H
#define LOOP_MODEL_LOAD_H

#include <stddef.h>
#include <stdint.h>

#include "models/model.h"

struct loaded_model {
	void *library;
	const struct agent_model *model;
	void *state;
	struct agent_model_shape shape;
};

/* <name> is a path, or the name of a plug-in in the models folder. 0, or -errno and <error>. */
int agent_model_load(struct loaded_model *m, const char *name, const char *arguments,
		     uint32_t max_batch, char *error, size_t size);
/* The same with a model that is there already, and outlives <m>. */
int agent_model_adopt(struct loaded_model *m, const struct agent_model *model,
		      const char *arguments, uint32_t max_batch, char *error, size_t size);
void agent_model_unload(struct loaded_model *m);

#endif
