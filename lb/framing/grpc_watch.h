/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * grpc.health.v1.Health/Watch: a call that is told at once whether a model, or all of the address,
 * has workers, and again whenever that changes. Private to lb/framing.
 */
#ifndef LB_GRPC_WATCH_H
#define LB_GRPC_WATCH_H

#include "framing/grpc_call.h"

/* The message of the call has come; <name>: of a model, "": all. */
void grpc_watch_begin(struct grpc_call *c, struct grpc_stream *s, const char *name);

/* watch() of stream.h */
uint32_t grpc_watch_look(struct stream *s, const struct stream_settings *settings, uint64_t tag,
			 bool ends, uint8_t *at);

#endif
