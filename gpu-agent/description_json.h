/* SPDX-License-Identifier: BSD-3-Clause */
/* A model's description as agent.register takes it (control/protocol/control.h). Pure. */
#ifndef AGENT_DESCRIPTION_JSON_H
#define AGENT_DESCRIPTION_JSON_H

#include <jansson.h>

struct model_description;

/* The caller owns the result; NULL when out of memory. */
json_t *description_json(const struct model_description *d);

#endif
