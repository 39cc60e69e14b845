/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers of gRPC calls: reply(), rewrite() and emit() of stream.h. */
#ifndef LB_GRPC_REPLY_H
#define LB_GRPC_REPLY_H

#include "framing/stream.h"

struct stream_piece grpc_reply(struct stream *s, struct stream_reply *reply, uint8_t *at);
bool grpc_keeps(struct stream *s, const struct stream_reply *reply);
struct stream_rewritten grpc_rewrite(struct stream *s, struct stream_reply *reply,
				     const uint8_t *bytes, uint32_t length, uint8_t *at,
				     uint32_t room);
bool grpc_emit(struct stream *s, struct stream_emitted *out);

#endif
