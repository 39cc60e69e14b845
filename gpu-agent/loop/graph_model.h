/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A model made at run time from a CUDA graph that the process has captured. It runs on that graph's
 * GPU only.
 */
#ifndef AGENT_GRAPH_MODEL_H
#define AGENT_GRAPH_MODEL_H

#include "doorbell_agent.h"
#include "models/model.h"

struct graph_model {
	struct agent_model model;
	/* The text for its open(): the address of this struct. */
	char arguments[24];
	struct doorbell_graph graph;
};

/* Fill <m>. It must not move, and <name> and the memory of <graph> must live, while the model is in
 * use. */
void graph_model_init(struct graph_model *m, const char *name, const struct doorbell_graph *graph);

#endif
