/* SPDX-License-Identifier: BSD-3-Clause */
/* One call of a framing's read(): takes headers of a known size from its bytes, and collects the
 * actions. For the framings themselves; pure. Inlined, so that it
 * stays in registers. */
#ifndef LB_STREAM_READER_H
#define LB_STREAM_READER_H

#include <stddef.h>
#include <string.h>

#include "framing/stream.h"
#include "packet/drop.h"
#include "packet/notice.h"

struct stream_reader {
	struct stream *stream;
	const uint8_t *bytes;
	uint64_t start, end; /* positions of <bytes> */
	struct stream_action *actions;
	unsigned int n, max;
};

static inline struct stream_reader stream_reader_of(struct stream *s, const uint8_t *bytes,
						    uint32_t length, struct stream_action *actions,
						    unsigned int max)
{
	return (struct stream_reader){.stream = s,
				      .bytes = bytes,
				      .start = s->position,
				      .end = s->position + length,
				      .actions = actions,
				      .max = max};
}

static inline bool stream_reader_has_room(const struct stream_reader *r)
{
	return r->max - r->n >= STREAM_ACTIONS_MIN;
}

/* The next <size> bytes of the stream, at most STREAM_HEADER_MAX, in one piece and valid until the
 * next call. NULL: some have not arrived, and the others are kept; or there is no room for
 * actions. */
static inline const uint8_t *stream_reader_header(struct stream_reader *r, uint32_t size)
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

/* For the calls below. */
static inline struct stream_action *
stream_reader_add(struct stream_reader *r, enum stream_action_kind kind, uint32_t request)
{
	struct stream_action *action = &r->actions[r->n++];

	action->kind = (uint8_t)kind;
	action->request = request;
	return action;
}

/* Add a request whose bytes all follow. */
static inline void stream_reader_request(struct stream_reader *r, const struct stream_begin *begin)
{
	struct stream_action *action = stream_reader_add(r, STREAM_REQUEST, r->stream->requests++);

	action->whole.begin = *begin;
	action->whole.position = r->stream->position;
	r->stream->position += begin->size;
}

/* Refuse an invalid request; its <size> bytes are skipped. */
static inline void stream_reader_refuse(struct stream_reader *r, uint64_t tag, uint64_t size,
					enum lb_notice notice, enum lb_drop reason)
{
	struct stream_action *action = stream_reader_add(r, STREAM_REFUSE, r->stream->requests++);

	action->refuse.tag = tag;
	action->refuse.notice = (uint8_t)notice;
	action->refuse.reason = (uint8_t)reason;
	r->stream->position += size;
}

static inline void stream_reader_cancel(struct stream_reader *r, uint64_t tag)
{
	stream_reader_add(r, STREAM_CANCEL, 0)->tag = tag;
}

/* The last action of a stream. */
static inline void stream_reader_close(struct stream_reader *r)
{
	stream_reader_add(r, STREAM_CLOSE, 0);
	r->stream->position = STREAM_CLOSED;
	r->stream->got = 0;
}

#endif
