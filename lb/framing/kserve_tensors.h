/* SPDX-License-Identifier: BSD-3-Clause */
/* The bytes of a request to the framing `kserve` by place: how many each input of the model has,
 * as far as that is known, and those that are kept until the request begins. */
#ifndef LB_KSERVE_TENSORS_H
#define LB_KSERVE_TENSORS_H

#include "framing/kserve_room.h"

/* Bytes of an element of the input at <place>; 0: they say so themselves. */
uint32_t kserve_tensors_size(const struct kserve_model *m, uint8_t place);
/* Inputs whose shape is the model's have known sizes. */
void kserve_tensors_know_fixed(struct kserve_reader *r, const struct kserve_model *m);
void kserve_tensors_know(struct kserve_reader *r, uint8_t place, uint64_t bytes);
/* Bytes of the model's first <n> inputs. False: some are not known yet. */
bool kserve_tensors_sum(const struct kserve_reader *r, unsigned int n, uint64_t *sum);
/* Keeps the bytes of r->run, which belong at <offset>. False: there is no room. */
bool kserve_tensors_hold(struct kserve_reader *r, uint64_t offset);
/* us that the request says, 0 if it says nothing; and its priority. */
uint32_t kserve_tensors_deadline(const struct kserve_infer *infer);
uint8_t kserve_tensors_priority(const struct kserve_infer *infer);
/* The hash of its session; 0: it has none. */
uint32_t kserve_tensors_session(const struct kserve_infer *infer);

/* The rows of the request are known: what the model fixes of a row is multiplied. */
void kserve_tensors_know_rows(struct kserve_reader *r, const struct kserve_model *m);

/* Where bytes of a tensor go, of a request of one row or of a model with one input: <each> is 0,
 * and the tensor begins at <within>. Else row by row, as stream.h has it for PRODUCE. */
struct kserve_places {
	uint64_t within;
	uint32_t each, row;
};
/* False: that is not known yet. */
bool kserve_tensors_places(const struct kserve_reader *r, const struct kserve_model *m,
			   uint8_t place, struct kserve_places *p);
/* Where byte <at> of the tensor goes; <left>: so many bytes from there on lie in a row, at most
 * what it was. */
uint64_t kserve_places_offset(const struct kserve_places *p, uint64_t at, uint64_t *left);
/* kserve_tensors_hold() for r->run, from byte <at> of the tensor on. */
bool kserve_tensors_hold_at(struct kserve_reader *r, const struct kserve_places *p, uint64_t at);

/* Has the request several rows that may differ in length? Then all of it is kept, tensor by tensor,
 * and cut when it is complete. */
static inline bool kserve_tensors_differ(const struct kserve_reader *r,
					 const struct kserve_model *m)
{
	return r->rows > 1 && m->rows_differ;
}

#define KSERVE_ROWS_TOO_LONG "more than %u bytes of rows with BYTES; send each row as a request"

/* The work of that, and of its rows' beginning, which follows at once. */
uint32_t kserve_tensors_cut_work(const struct kserve_reader *r);
/* Lays all that is kept of such a request out row by row, in the room's <scratch>, with its
 * <row_ends>. False: lengths of elements do not fit the tensors, and it was refused. */
bool kserve_tensors_cut(struct kserve_reader *r, const struct kserve_model *m,
			struct kserve_room *room);

/* Bytes of the longest row of a request of <size> bytes. */
static inline uint64_t kserve_tensors_row(const struct kserve_reader *r, uint64_t size)
{
	if (r->row_most > 0)
		return r->row_most;
	return r->rows > 1 ? size / r->rows : size;
}

/* Bytes of text that take as long as to begin a chunk, or to name bytes that came and place them:
 * some 0.1 us. */
#define KSERVE_EXTENT_COST 16

/* The work of a call that reads text: as much as is left of the turn, but some, so that it goes on.
 */
#define KSERVE_SLICE_MIN 64
static inline uint32_t kserve_tensors_slice(const struct kserve_room *room)
{
	int32_t left = room->text_left;

	if (left < KSERVE_SLICE_MIN)
		return KSERVE_SLICE_MIN;
	return left > KSERVE_SLICE ? KSERVE_SLICE : (uint32_t)left;
}

#endif
