/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker's labels: the operator's, and where it is. Main thread. */
#ifndef AGENT_LABELS_H
#define AGENT_LABELS_H

#include <jansson.h>

#include "agent.h"
#include "gpu/places.h"

/* The places of a worker on <gpu> (-1: on CPUs). The host is that of the label host= or this one.
 */
void agent_places_find(struct places *places, const struct agent_options *o, int gpu);

/*
 * {key: value, ...}: the operator's labels, then each place that is known and that no label of the
 * operator's names; 16 at most, which a load balancer takes. Labels are not checked here: it
 * rejects bad ones with a reason. NULL when out of memory.
 */
json_t *agent_labels_json(const struct agent_options *o, const struct places *places);

#endif
