/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "protocol/worker_state.h"

static const char *const state_names[CONTROL_STATES] = {
	[CONTROL_STATE_GONE] = "gone",       [CONTROL_STATE_JOINING] = "joining",
	[CONTROL_STATE_PROBING] = "probing", [CONTROL_STATE_ACTIVE] = "active",
	[CONTROL_STATE_SUSPECT] = "suspect", [CONTROL_STATE_DRAINING] = "draining",
	[CONTROL_STATE_DRAINED] = "drained",
};

const char *control_state_name(enum control_state state)
{
	return (unsigned int)state < CONTROL_STATES ? state_names[state] : "?";
}

enum control_state control_state_find(const char *name)
{
	enum control_state state = 0;

	while (state < CONTROL_STATES && (name == NULL || strcmp(state_names[state], name) != 0))
		state++;
	return state;
}
