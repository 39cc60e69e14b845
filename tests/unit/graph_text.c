/* SPDX-License-Identifier: BSD-3-Clause */
/* A graph as C sees it, as text: for the test of the module that fills one from Python. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "doorbell_agent.h"
#include "models/model.h"

void graph_text(const struct doorbell_graph *g, char *text, size_t size);

static void add(char *text, size_t size, size_t *at, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

static void add(char *text, size_t size, size_t *at, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	if (*at < size)
		*at += (size_t)vsnprintf(text + *at, size - *at, format, arguments);
	va_end(arguments);
}

static void add_tensor(char *text, size_t size, size_t *at, const char *side,
		       const struct agent_model_tensor *t)
{
	add(text, size, at, " %s %s %s", side, t->name, t->datatype);
	for (uint32_t i = 0; i < t->rank; i++)
		add(text, size, at, " %" PRId64, t->shape[i]);
}

__attribute__((visibility("default"))) void graph_text(const struct doorbell_graph *g, char *text,
						       size_t size)
{
	const struct agent_model_description *d = g->description;
	size_t at = 0;

	add(text, size, &at, "graph %p %u %u %u gpu %d", g->graph, g->request_bytes, g->reply_bytes,
	    g->batch, g->gpu);
	for (uint32_t i = 0; i < g->n_smaller; i++)
		add(text, size, &at, " smaller %p %u", g->smaller[i].graph, g->smaller[i].batch);
	if (d == NULL) {
		add(text, size, &at, " undescribed");
		return;
	}
	add(text, size, &at, " version %s platform %s batch %u", d->version, d->platform, d->batch);
	for (uint32_t i = 0; i < d->n_inputs; i++)
		add_tensor(text, size, &at, "in", &d->input[i]);
	for (uint32_t i = 0; i < d->n_outputs; i++)
		add_tensor(text, size, &at, "out", &d->output[i]);
}
