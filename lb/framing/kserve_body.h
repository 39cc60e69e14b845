/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One call of the framing kserve's read(), and the body of the request that it reads: where it
 * ends, which of its bytes are tensors, and what is left of it when the request was answered early.
 * Private to the files of that framing; pure.
 */
#ifndef LB_KSERVE_BODY_H
#define LB_KSERVE_BODY_H

#include "framing/kserve_room.h"
#include "framing/kserve_tensors.h"

struct kserve_call {
	struct stream *s;
	struct kserve_room *room;
	struct kserve_reader *reader; /* NULL: behind its head and JSON */
	struct kserve_asked *asked;   /* NULL: the head is not read yet */
	const struct stream_settings *settings;
	struct stream_action *actions;
	unsigned int n;
};

struct stream_action *kserve_call_add(struct kserve_call *c, enum stream_action_kind kind);

/* The request is refused with a status of HTTP, and what is left of its body skipped. */
__attribute__((format(printf, 3, 4))) void
kserve_call_refuse(struct kserve_call *c, uint16_t status, const char *format, ...);

/* The request begins, with <size> bytes at most. False: it was refused. */
bool kserve_call_begin(struct kserve_call *c, uint64_t size);
/* Bytes of it that are not in the stream. */
void kserve_call_produce(struct kserve_call *c, const uint8_t *bytes, uint64_t offset,
			 uint32_t length);
/* Bytes of a tensor, those of the reader's run, from byte <at> of it on. */
void kserve_call_produce_at(struct kserve_call *c, const struct kserve_places *p, uint64_t at);
/* Produces what is kept. False: it is not in one piece, and the request was refused. */
bool kserve_call_produce_held(struct kserve_call *c);

/* The request was answered before its body was read, which is skipped. <closes>: nothing more is
 * read of the stream, also not that. */
void kserve_call_leave(struct kserve_call *c, bool closes);

/* The lines in front of the next chunk, where none is open. The result is http_chunked_read()'s;
 * where it is HTTP_CHUNK_REFUSED the request was refused. */
enum http_chunk kserve_body_read_lines(struct kserve_call *c, const uint8_t *bytes,
				       uint32_t length);

/* The next bytes of the body belong at these places of the request, range by range, in the order of
 * body.range_of; the reader goes. */
void kserve_body_place(struct kserve_call *c);

/* The last chunk was read, and all else: the request ends. */
void kserve_body_last(struct kserve_call *c);

/* A call behind the JSON. */
void kserve_body_read(struct kserve_call *c, const uint8_t *bytes, uint32_t length);

#endif
