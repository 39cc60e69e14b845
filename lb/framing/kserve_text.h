/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Triton's text extension: generate, and generate_stream, whose answer is a stream of events as the
 * WHATWG's HTML has them (9.2.6). A model of text has one input and one output of BYTES, of one
 * element each. Pure; private to the files of the framing kserve.
 */
#ifndef LB_KSERVE_TEXT_H
#define LB_KSERVE_TEXT_H

#include "framing/kserve_body.h"

/* --- requests --- */

/* The head of one came. False: it was refused. */
bool kserve_text_begin(struct kserve_call *c, enum kserve_mode mode);
/* Bytes that the text of a request of <max_request> bytes has at most. */
uint64_t kserve_text_max(uint64_t max_request);
/* A run of its text. */
void kserve_text_run(struct kserve_call *c);
/* Its JSON was read. */
void kserve_text_end(struct kserve_call *c);

/* --- answers: rewrite(), reply() and beat() of stream.h --- */

struct stream_rewritten kserve_text_rewrite(struct kserve_asked *a, struct stream_reply *reply,
					    const uint8_t *bytes, uint32_t length, uint8_t *at,
					    uint32_t room);
/* Of events. */
struct stream_piece kserve_text_reply(struct stream *s, struct kserve_asked *a,
				      struct stream_reply *reply, uint8_t *at);
uint32_t kserve_text_beat(struct stream *s, uint64_t tag, uint8_t *at);

#endif
