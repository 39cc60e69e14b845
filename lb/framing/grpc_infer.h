/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages to ModelInfer, as requests. Private to lb/framing. */
#ifndef LB_GRPC_INFER_MESSAGE_H
#define LB_GRPC_INFER_MESSAGE_H

#include "framing/grpc_call.h"

/* A message begins, with a reader; it may be refused at once. */
/* A message that was read before, all of which is in this frame, is said at once. Arguments and
 * result as of grpc_call_read(). 0: it is to be read. */
uint32_t grpc_infer_known(struct grpc_call *c, struct grpc_stream *s, const uint8_t *bytes,
			  uint32_t length, uint32_t most);
void grpc_infer_message(struct grpc_call *c, struct grpc_stream *s);
/* Bytes of it: as grpc_call_read(), and no more than the message has. */
uint32_t grpc_infer_message_read(struct grpc_call *c, struct grpc_stream *s, const uint8_t *bytes,
				 uint32_t length, uint32_t most);

#endif
