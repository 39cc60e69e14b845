/* SPDX-License-Identifier: BSD-3-Clause */
/* One call of a framing's read(): takes headers of a known size from its bytes, and collects the
 * actions. For the framings themselves; pure. */
#ifndef LB_STREAM_READER_H
#define LB_STREAM_READER_H

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

/* The next <size> bytes of the stream, at most STREAM_HEADER_MAX, in one piece and valid until the
 * next call. NULL: some have not arrived, and the others are kept; or there is no room for
 * actions. */
const uint8_t *stream_reader_header(struct stream_reader *r, uint32_t size);

/* Add a request whose bytes all follow: BEGIN, EXTENT and END. */
void stream_reader_request(struct stream_reader *r, const struct stream_begin *begin);

/* Refuse an invalid request; its <size> bytes are skipped. */
void stream_reader_refuse(struct stream_reader *r, uint64_t tag, uint64_t size,
			  enum lb_notice notice, enum lb_drop reason);

void stream_reader_cancel(struct stream_reader *r, uint64_t tag);

/* The last action of a stream. */
void stream_reader_close(struct stream_reader *r);

#endif
