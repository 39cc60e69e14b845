/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A model in place that echoes, whose kernel does not end before it is allowed to: what leaves
 * until then was sent by the model. Arguments: "POSTS,BLOCKS": 1 or 0, does it send the reply to a
 * request that came alone (models/model_post.h); blocks of its grid for each row.
 *
 * Owner: one thread of the host.
 */
#ifndef GPU_RINGING_H
#define GPU_RINGING_H

#include "models/model.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const struct agent_model ringing_model;

/* From now on a run ends when it is released, or after RINGING_LIMIT_MS. */
void ringing_hold(void);
void ringing_release(void);
/* Runs that have ended. */
uint64_t ringing_ended(void);

#define RINGING_LIMIT_MS 5000

#ifdef __cplusplus
}
#endif

#endif
