/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A first inference before a worker registers: its loop runs on a link of this process, so the
 * canary goes the way of all requests. Main thread.
 */
#ifndef AGENT_CANARY_H
#define AGENT_CANARY_H

#include "agent.h"

/*
 * Ask the model of <setup> for each size of batch that it has. The request is the model's sample, or
 * zeros. 0, or -EIO with a sentence in <why>: it does not answer, fails, or answers NaN or something
 * else than it should. Of zeros that a model may refuse, as their length is free, an error is only
 * noted in <why>, and 0 returned.
 */
int agent_canary(const struct agent_setup *setup, char *why, size_t size);

/* Check a reply of <length> bytes: no number is NaN. Returns the name of the output that has one, or
 * NULL. Outputs behind a free dimension are not looked at. */
const char *canary_nan(const struct model_description *d, const uint8_t *bytes, uint32_t length);

#endif
