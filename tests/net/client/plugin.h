/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads a model plug-in, the same shared object that an agent loads, and runs it here. */
#ifndef CLIENT_PLUGIN_H
#define CLIENT_PLUGIN_H

#include "models/model.h"

struct plugin {
	void *library;
	const struct agent_model *model;
	void *state;
	struct agent_model_shape shape;
};

/* -errno, said on stderr. */
int plugin_open(struct plugin *plugin, const char *path, const char *arguments, uint32_t max_batch);
void plugin_close(struct plugin *plugin);

#endif
