/* SPDX-License-Identifier: BSD-3-Clause */
/* `length`, the simplest framing of a stream; stream.h has its bytes. */
#include <endian.h>
#include <stddef.h>
#include <string.h>

#include "framing/stream_reader.h"

#define STREAM_LENGTH_HEADER 4
#define STREAM_LENGTH_HEAD   8

static uint32_t stream_length_of(const uint8_t *header)
{
	uint32_t length;

	memcpy(&length, header, sizeof(length));
	return le32toh(length);
}

static unsigned int stream_length_read(struct stream *s, const struct stream_settings *settings,
				       const uint8_t *bytes, uint32_t length,
				       struct stream_action *actions, unsigned int max)
{
	struct stream_reader r = stream_reader_of(s, bytes, length, actions, max);
	const uint8_t *header;

	while ((header = stream_reader_header(&r, STREAM_LENGTH_HEADER)) != NULL) {
		struct stream_begin request = {.size = stream_length_of(header)};

		if (request.size == 0)
			stream_reader_refuse(&r, 0, 0, LB_NOTICE_MALFORMED, LB_DROP_EMPTY_REQUEST);
		else if (request.size > settings->max_request)
			stream_reader_refuse(&r, 0, request.size, LB_NOTICE_TOO_LARGE,
					     LB_DROP_REQUEST_TOO_LARGE);
		else
			stream_reader_request(&r, &request);
	}
	return r.n;
}

static uint32_t stream_length_whole(struct stream *s, const struct stream_settings *settings,
				    const uint8_t *bytes, uint32_t length,
				    struct stream_begin *begin)
{
	uint32_t size = length - STREAM_LENGTH_HEADER;

	if (s->got != 0 || length <= STREAM_LENGTH_HEADER || stream_length_of(bytes) != size ||
	    size > settings->max_request)
		return 0;
	*begin = (struct stream_begin){.size = size};
	s->position += length;
	s->requests++;
	return STREAM_LENGTH_HEADER;
}

static struct stream_piece stream_length_reply(struct stream *s, struct stream_reply *reply,
					       uint8_t *at)
{
	uint32_t more = reply->more ? STREAM_LENGTH_MORE : 0;
	uint32_t status = htole32(reply->notice != 0 ? reply->notice : more);
	uint32_t length = htole32(reply->length);

	memcpy(at, &length, sizeof(length));
	memcpy(at + 4, &status, sizeof(status));
	reply->taken = reply->length;
	return (struct stream_piece){
		.head = STREAM_LENGTH_HEAD, .bytes = reply->length, .last = true};
}

_Static_assert(STREAM_LENGTH_HEAD <= STREAM_HEAD_MAX, "callers have room");
const struct stream_framing stream_length = {
	.name = "length",
	.in_order = true,
	.head_max = STREAM_LENGTH_HEAD,
	.read = stream_length_read,
	.whole = stream_length_whole,
	.reply = stream_length_reply,
};
