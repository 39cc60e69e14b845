/* SPDX-License-Identifier: BSD-3-Clause */
/* One call of read() for a connection that speaks gRPC, and what its files share. Private to
 * lb/framing. */
#ifndef LB_GRPC_CALL_H
#define LB_GRPC_CALL_H

#include "framing/grpc_session.h"
#include "grpc/message.h"

struct grpc_call {
	struct stream *stream;
	struct grpc_session *session;
	struct kserve_room *room;
	const struct stream_settings *settings;
	struct stream_action *actions;
	unsigned int n;
};

static inline struct stream_action *grpc_call_add(struct grpc_call *c, struct kserve_asked *a,
						  enum stream_action_kind kind)
{
	struct stream_action *action = &c->actions[c->n++];

	a->told = true;
	*action = (struct stream_action){.kind = (uint8_t)kind, .request = a->number};
	return action;
}

/* A message of <s> begins, or is refused before: it is the next request of the connection. */
struct kserve_asked *grpc_call_ask(struct grpc_call *c, struct grpc_stream *s);
/* The message of <s> that is read is refused, with a status of HTTP; <format> as for printf. */
__attribute__((format(printf, 4, 5))) void grpc_call_refuse(struct grpc_call *c,
							    struct grpc_stream *s, uint16_t status,
							    const char *format, ...);
/* Status of a refusal where a client has too much under way: RESOURCE_EXHAUSTED. */
#define GRPC_CALL_BUSY 429
/* A message from <out>, in the room's scratch behind a prefix, is the answer of the call: there is
 * none of a worker. Returns the action. */
struct stream_action *grpc_call_say(struct grpc_call *c, struct grpc_stream *s,
				    const struct grpc_out *out);
/* Nothing more of the message is read. */
void grpc_call_let_go(struct grpc_stream *s);

/*
 * Bytes of a DATA frame: <length> of them have come, and <most>, at least as many, are of the
 * frame. Returns how many need not come again; bytes that were named may be among them that have
 * not come.
 */
uint32_t grpc_call_read(struct grpc_call *c, struct grpc_stream *s, const uint8_t *bytes,
			uint32_t length, uint32_t most);

/* The client sends no more, and all is answered: so ends the call. */
void grpc_stream_settle(struct grpc_stream *s);

#endif
