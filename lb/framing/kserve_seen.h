/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Infer requests that were read before: the bytes in front of their tensors, and the result of
 * reading them. Clients send the same ones again and again, and other tensors behind them. Only
 * requests all of whose inputs are binary, and follow in the order of the model. A bounded number
 * per lcore; those that are not asked for are forgotten. Private to the framing; pure.
 */
#ifndef LB_KSERVE_SEEN_H
#define LB_KSERVE_SEEN_H

#include "framing/kserve_room.h"

/* Bytes that find them: of a head of HTTP, and of a message of gRPC. Shorter ones are not kept.
 * Both are multiples of 16. */
#define KSERVE_SEEN_HTTP 128
#define KSERVE_SEEN_GRPC 16

/*
 * The request that <bytes> begin with, if it would be read now as it was then: the service of its
 * model is the current one then. <limit>: of the connection's requests. NULL: it is to be read.
 */
const struct kserve_seen *kserve_seen_find(struct kserve_room *room, uint64_t limit,
					   const uint8_t *bytes, uint32_t length, uint32_t sample);
/* Fills in what is known of <a>, a request that was found, and begins it: all its bytes follow its
 * text, which is at <position> of the stream. */
void kserve_seen_apply(const struct kserve_seen *seen, struct kserve_asked *a, uint64_t position,
		       struct stream_action *action);

/* A request begins with these bytes at <position>; the reader keeps them until it was read. */
void kserve_seen_begin(struct kserve_reader *r, uint64_t position, const uint8_t *bytes,
		       uint32_t length);
/* It was read, and all of <a> follows its first <length> bytes: remembers it, if the reader has
 * them. */
void kserve_seen_keep(const struct kserve_reader *r, const struct kserve_asked *a, uint64_t limit,
		      uint64_t length, uint32_t sample);

#endif
