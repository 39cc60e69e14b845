/* SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>
#include <string.h>

#include "framing/stream_reader.h"

static bool stream_reader_has_room(const struct stream_reader *r)
{
	return r->max - r->n >= STREAM_ACTIONS_MIN;
}

const uint8_t *stream_reader_header(struct stream_reader *r, uint32_t size)
{
	struct stream *s = r->stream;
	uint32_t take = size - s->got;
	const uint8_t *at;

	/* The position is beyond these bytes when a request ends behind them, or the stream is
	 * closed. */
	if (s->position >= r->end || !stream_reader_has_room(r))
		return NULL;
	at = r->bytes + (s->position - r->start);
	if (take > r->end - s->position)
		take = (uint32_t)(r->end - s->position);
	s->position += take;
	if (take == size)
		return at;
	memcpy(s->header + s->got, at, take);
	s->got += take;
	if (s->got < size)
		return NULL;
	s->got = 0;
	return s->header;
}

static struct stream_action *stream_reader_add(struct stream_reader *r,
					       enum stream_action_kind kind, uint32_t request)
{
	struct stream_action *action = &r->actions[r->n++];

	action->kind = (uint8_t)kind;
	action->request = request;
	return action;
}

void stream_reader_request(struct stream_reader *r, const struct stream_begin *begin)
{
	uint32_t request = r->stream->requests++;
	struct stream_action *extent;

	stream_reader_add(r, STREAM_BEGIN, request)->begin = *begin;
	extent = stream_reader_add(r, STREAM_EXTENT, request);
	extent->extent.position = r->stream->position;
	extent->extent.offset = 0;
	extent->extent.length = begin->size;
	stream_reader_add(r, STREAM_END, request)->size = begin->size;
	r->stream->position += begin->size;
}

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
