/* SPDX-License-Identifier: BSD-3-Clause */
#include "framing/stream_reader.h"

void stream_reader_refuse(struct stream_reader *r, uint64_t tag, uint64_t size,
			  enum lb_notice notice, enum lb_drop reason)
{
	struct stream_action *action = stream_reader_add(r, STREAM_REFUSE, r->stream->requests++);

	action->refuse.tag = tag;
	action->refuse.notice = (uint8_t)notice;
	action->refuse.reason = (uint8_t)reason;
	r->stream->position += size;
}

void stream_reader_cancel(struct stream_reader *r, uint64_t tag)
{
	stream_reader_add(r, STREAM_CANCEL, 0)->tag = tag;
}

void stream_reader_close(struct stream_reader *r)
{
	stream_reader_add(r, STREAM_CLOSE, 0);
	r->stream->position = STREAM_CLOSED;
	r->stream->got = 0;
}
