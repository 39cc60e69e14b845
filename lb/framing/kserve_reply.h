/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers of the framing `kserve`: reply() and rewrite() of stream.h. */
#ifndef LB_KSERVE_REPLY_H
#define LB_KSERVE_REPLY_H

#include "framing/kserve_room.h"

/* Does the length of a reply tell where its outputs are? */
bool kserve_reply_is_possible(const struct kserve_model *model);

struct stream_piece kserve_reply(struct stream *s, struct stream_reply *reply, uint8_t *at);

struct stream_rewritten kserve_rewrite(struct stream *s, struct stream_reply *reply,
				       const uint8_t *bytes, uint32_t length, uint8_t *at,
				       uint32_t room);

#endif
