/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker's state as the protocol names it. For both ends, so that neither compares words. */
#ifndef CONTROL_WORKER_STATE_H
#define CONTROL_WORKER_STATE_H

enum control_state {
	CONTROL_STATE_GONE,
	CONTROL_STATE_JOINING,
	CONTROL_STATE_PROBING,
	CONTROL_STATE_ACTIVE,
	CONTROL_STATE_SUSPECT,
	CONTROL_STATE_DRAINING,
	CONTROL_STATE_DRAINED, /* draining, and nothing is outstanding */
	CONTROL_STATES,
};

const char *control_state_name(enum control_state state);
/* CONTROL_STATES for NULL and for an unknown word, as from another version. */
enum control_state control_state_find(const char *name);

#endif
