/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers of the framing `kserve`: reply() and rewrite() of stream.h. */
#ifndef LB_KSERVE_REPLY_H
#define LB_KSERVE_REPLY_H

#include "framing/kserve_room.h"

/* The outputs of a reply: where each is in it, and its shape. */
struct reply_outputs {
	uint32_t rows;
	/* 1: the only output lies as it is, of all rows; or <rows>: each of them has one length, */
	uint32_t cuts;
	uint32_t row;                        /* which is this */
	uint32_t offset[KSERVE_TENSORS_MAX]; /* in a row */
	uint32_t bytes[KSERVE_TENSORS_MAX];  /* of a row */
	int64_t free; /* size of the last output's free dimension */
};

/*
 * Looks at the length of each element of BYTES, of each row: whether each row has as many as the
 * shape says and ends with the last one, and where the outputs behind them are. rewrite() calls
 * this with its bytes until a->found; false: the reply is not one of the model's.
 */
bool kserve_reply_scan(struct kserve_asked *a, struct stream_reply *reply, const uint8_t *bytes,
		       uint32_t length);
/* Then: where they are. False: likewise. */
bool kserve_reply_find(struct kserve_asked *a, const struct stream_reply *reply,
		       struct reply_outputs *out);
/* Bytes of an output, those of all rows. */
static inline uint32_t kserve_reply_bytes(const struct reply_outputs *outputs, uint8_t place)
{
	return outputs->cuts * outputs->bytes[place];
}
/* Where byte <at> of an output lies in the reply; *left: so many bytes from there on, at most what
 * it was. */
uint32_t kserve_reply_place(const struct reply_outputs *outputs, uint8_t place, uint32_t at,
			    uint32_t *left);
/* Describes the outputs asked for, in the order of the request. */
void kserve_reply_answer(const struct kserve_asked *a, const struct reply_outputs *outputs,
			 struct kserve_answer *answer);
/* The request is answered by an error, as its reply comes in pieces: which calls take these? */
void kserve_reply_refuse_pieces(struct kserve_asked *a, const char *by);
/* A row failed: the message says which. */
void kserve_reply_note_row(struct kserve_asked *a, const struct stream_reply *reply);
/* The message of a request that was refused, or ends with enum lb_notice. */
const char *kserve_reply_error(const struct kserve_asked *a, uint8_t notice);

/* Has it one row, in one piece, whose outputs are where the description places them? */
bool kserve_reply_is_usual(const struct kserve_asked *a, const struct stream_reply *reply);

bool kserve_keeps(struct stream *s, const struct stream_reply *reply);

struct stream_piece kserve_reply(struct stream *s, struct stream_reply *reply, uint8_t *at);

struct stream_rewritten kserve_rewrite(struct stream *s, struct stream_reply *reply,
				       const uint8_t *bytes, uint32_t length, uint8_t *at,
				       uint32_t room);

#endif
