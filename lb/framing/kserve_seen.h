/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Infer requests that were read before: the head and the JSON behind it, byte for byte, and what
 * reading them led to. Clients send the same ones again and again, and other tensors behind them.
 * Only requests all of whose inputs are binary, and follow in the order of the model. A bounded
 * number per lcore; those that are not asked for are forgotten. Private to the framing; pure.
 */
#ifndef LB_KSERVE_SEEN_H
#define LB_KSERVE_SEEN_H

#include "framing/kserve_body.h"

/* The bytes of a stream begin with a request that was seen: says all of it, and moves the position
 * behind it. False: they do not, or the model or a limit is another one now. */
bool kserve_seen_take(struct kserve_call *c, const uint8_t *bytes, uint32_t length);

/* A request begins with these bytes, all of which the reader may see again at its end. */
void kserve_seen_begin(struct kserve_call *c, const uint8_t *bytes, uint32_t length);

/* Head and JSON of the request were read, and the places of its tensors are known: remembers it,
 * if that may be. */
void kserve_seen_keep(const struct kserve_call *c);

#endif
