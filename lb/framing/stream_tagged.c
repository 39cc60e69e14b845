/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `tagged` in a stream (packet/request.h): requests with ids, priorities, deadlines and cancels.
 * When a header begins right, its length tells where the next one is, so any other fault in it
 * costs only one request. When a header begins wrong, the first wrong byte costs the connection: a
 * client of another protocol may never send as many bytes as a header has.
 */
#include <errno.h>
#include <stddef.h>

#include "framing/stream_reader.h"
#include "packet/request.h"

_Static_assert(LB_REQUEST_LENGTH <= STREAM_HEADER_MAX, "a part of it is kept");

static void stream_tagged_close(struct stream_reader *r)
{
	/* The place of the id is not known. */
	stream_reader_refuse(r, 0, 0, LB_NOTICE_MALFORMED, LB_DROP_FRAMING);
	stream_reader_close(r);
}

static struct stream_begin stream_tagged_begin(const struct lb_request *request, uint32_t length)
{
	return (struct stream_begin){.size = length,
				     .tag = request->id,
				     .deadline_us = request->deadline_us,
				     .priority = request->priority};
}

static void stream_tagged_header(struct stream_reader *r, const struct stream_settings *settings,
				 const uint8_t *header)
{
	struct stream_begin begin;
	struct lb_request request;
	uint32_t length;
	int error = lb_request_parse_stream(header, &request, &length);

	if (error == -EBADMSG)
		return stream_tagged_close(r);
	if (error < 0)
		return stream_reader_refuse(r, request.id, length, LB_NOTICE_MALFORMED,
					    LB_DROP_FRAMING);
	if (request.kind == LB_REQUEST_CANCEL)
		return stream_reader_cancel(r, request.id);
	if (length == 0)
		return stream_reader_refuse(r, request.id, 0, LB_NOTICE_MALFORMED,
					    LB_DROP_EMPTY_REQUEST);
	if (length > settings->max_request)
		return stream_reader_refuse(r, request.id, length, LB_NOTICE_TOO_LARGE,
					    LB_DROP_REQUEST_TOO_LARGE);
	begin = stream_tagged_begin(&request, length);
	stream_reader_request(r, &begin);
}

static uint32_t stream_tagged_whole(struct stream *s, const struct stream_settings *settings,
				    const uint8_t *bytes, uint32_t length,
				    struct stream_begin *begin)
{
	struct lb_request request;
	uint32_t size;

	if (s->got != 0 || length <= LB_REQUEST_LENGTH ||
	    lb_request_parse_stream(bytes, &request, &size) < 0 ||
	    request.kind == LB_REQUEST_CANCEL || size != length - LB_REQUEST_LENGTH ||
	    size > settings->max_request)
		return 0;
	*begin = stream_tagged_begin(&request, size);
	s->position += length;
	s->requests++;
	return LB_REQUEST_LENGTH;
}

static unsigned int stream_tagged_read(struct stream *s, const struct stream_settings *settings,
				       const uint8_t *bytes, uint32_t length,
				       struct stream_action *actions, unsigned int max)
{
	struct stream_reader r = stream_reader_of(s, bytes, length, actions, max);
	const uint8_t *header;

	while ((header = stream_reader_header(&r, LB_REQUEST_LENGTH)) != NULL)
		stream_tagged_header(&r, settings, header);
	if (s->got > 0 && !lb_request_begins(s->header, s->got))
		stream_tagged_close(&r);
	return r.n;
}

static struct stream_piece stream_tagged_reply(struct stream *s, struct stream_reply *reply,
					       uint8_t *at)
{
	if (reply->notice != 0)
		lb_request_write_stream_notice(at, reply->tag, reply->notice);
	else
		lb_request_write_stream_reply(at, reply->tag, reply->chunk, reply->more,
					      reply->length);
	reply->taken = reply->length;
	return (struct stream_piece){
		.head = LB_REQUEST_LENGTH, .bytes = reply->length, .last = true};
}

_Static_assert(LB_REQUEST_LENGTH <= STREAM_HEAD_MAX, "callers have room");
const struct stream_framing stream_tagged = {
	.name = "tagged",
	.head_max = LB_REQUEST_LENGTH,
	.read = stream_tagged_read,
	.whole = stream_tagged_whole,
	.reply = stream_tagged_reply,
};
