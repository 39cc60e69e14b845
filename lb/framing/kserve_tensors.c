/* SPDX-License-Identifier: BSD-3-Clause */
#include "framing/kserve_tensors.h"

#include <string.h>

#define PRIORITY_LAST 4

uint32_t kserve_tensors_size(const struct kserve_model *m, uint8_t place)
{
	return kserve_datatype_size(m->input[place].type);
}

void kserve_tensors_know_fixed(struct kserve_reader *r, const struct kserve_model *m)
{
	for (uint8_t i = 0; i < m->inputs; i++) {
		uint64_t bytes = kserve_tensors_size(m, i);

		for (uint8_t k = 0; k < m->input[i].dims && bytes > 0; k++)
			bytes = m->input[i].shape[k] < 0 ? 0
							 : bytes * (uint64_t)m->input[i].shape[k];
		r->bytes_of[i] = bytes;
		r->known |= (uint16_t)((bytes > 0) << i);
	}
}

void kserve_tensors_know(struct kserve_reader *r, uint8_t place, uint64_t bytes)
{
	r->bytes_of[place] = bytes;
	r->known |= (uint16_t)(1u << place);
}

bool kserve_tensors_sum(const struct kserve_reader *r, unsigned int n, uint64_t *sum)
{
	*sum = 0;
	for (unsigned int i = 0; i < n; i++) {
		if ((r->known & 1u << i) == 0)
			return false;
		*sum += r->bytes_of[i];
	}
	return true;
}

bool kserve_tensors_hold(struct kserve_reader *r, uint64_t offset)
{
	uint64_t end = offset + r->run.length;

	if (end > sizeof(r->held))
		return false;
	memcpy(r->held + offset, r->run.at, r->run.length);
	if (r->held_bytes == 0 || offset < r->held_from)
		r->held_from = (uint32_t)offset;
	if (end > r->held_to)
		r->held_to = (uint32_t)end;
	r->held_bytes += r->run.length;
	return true;
}

/* The finalizer of MurmurHash3: all lcores and load balancers have the same for a session. */
uint32_t kserve_tensors_session(const struct kserve_infer *infer)
{
	uint64_t hash = infer->sequence;

	if (hash == 0)
		return 0;
	hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccd;
	hash = (hash ^ hash >> 33) * 0xc4ceb9fe1a85ec53;
	hash ^= hash >> 33;
	return (uint32_t)hash != 0 ? (uint32_t)hash : 1;
}

uint32_t kserve_tensors_deadline(const struct kserve_infer *infer)
{
	return infer->timeout_us > UINT32_MAX ? UINT32_MAX : (uint32_t)infer->timeout_us;
}

uint8_t kserve_tensors_priority(const struct kserve_infer *infer)
{
	return infer->priority > PRIORITY_LAST ? PRIORITY_LAST : (uint8_t)infer->priority;
}

/* --- batches --- */

void kserve_tensors_know_rows(struct kserve_reader *r, const struct kserve_model *m)
{
	for (uint8_t i = 0; i < m->inputs; i++)
		r->bytes_of[i] *= r->rows;
}

bool kserve_tensors_places(const struct kserve_reader *r, const struct kserve_model *m,
			   uint8_t place, struct kserve_places *p)
{
	uint64_t all;

	*p = (struct kserve_places){0};
	if (!kserve_tensors_sum(r, place, &p->within))
		return false;
	if (r->rows <= 1 || m->inputs == 1 || m->rows_differ)
		return true;
	if (!kserve_tensors_sum(r, m->inputs, &all))
		return false;
	p->within /= r->rows;
	p->each = (uint32_t)(r->bytes_of[place] / r->rows);
	p->row = (uint32_t)(all / r->rows);
	return true;
}

uint64_t kserve_places_offset(const struct kserve_places *p, uint64_t at, uint64_t *left)
{
	uint64_t inside;

	if (p->each == 0)
		return p->within + at;
	inside = at % p->each;
	if (p->each - inside < *left)
		*left = p->each - inside;
	return at / p->each * p->row + p->within + inside;
}

bool kserve_tensors_hold_at(struct kserve_reader *r, const struct kserve_places *p, uint64_t at)
{
	struct kserve_run run = r->run;
	bool held = true;

	for (uint64_t n; held && run.length > 0; at += n, run.at += n, run.length -= (uint32_t)n) {
		uint64_t offset;

		n = run.length;
		offset = kserve_places_offset(p, at, &n);
		r->run.at = run.at;
		r->run.length = (uint32_t)n;
		held = kserve_tensors_hold(r, offset);
	}
	return held;
}

/* --- rows that differ in length --- */

/* Bytes that are kept of a tensor, of which the next row is cut. */
struct tensors_rest {
	const uint8_t *at, *end;
	uint8_t input;     /* of the request */
	uint64_t elements; /* of a row, which say how long they are; or: */
	uint64_t bytes;    /* of a row */
};

static void tensors_rest(const struct kserve_reader *r, const struct kserve_model *m,
			 struct tensors_rest rest[KSERVE_TENSORS_MAX])
{
	const uint8_t *at = r->held;

	for (uint8_t p = 0; p < m->inputs; p++) {
		rest[p] = (struct tensors_rest){.at = at, .end = at + r->bytes_of[p]};
		at = rest[p].end;
		if (kserve_tensors_size(m, p) > 0)
			rest[p].bytes = r->bytes_of[p] / r->rows;
	}
	for (uint8_t i = 0; i < r->infer.inputs; i++) {
		struct tensors_rest *t = &rest[r->place[i]];

		t->input = i;
		if (kserve_tensors_size(m, r->place[i]) == 0)
			t->elements = r->infer.input[i].elements / r->rows;
	}
}

/* Where the next row of it ends; NULL: its elements do not. */
static const uint8_t *tensors_row_end(const struct tensors_rest *t)
{
	const uint8_t *at = t->at + t->bytes;
	uint32_t length;

	for (uint64_t k = 0; k < t->elements; k++) {
		if (t->end - at < (ptrdiff_t)sizeof(length))
			return NULL;
		memcpy(&length, at, sizeof(length));
		at += sizeof(length);
		if (t->end - at < (ptrdiff_t)length)
			return NULL;
		at += length;
	}
	return at;
}

static bool tensors_refuse_row(struct kserve_reader *r, const struct tensors_rest *t, uint32_t row)
{
	kserve_infer_refuse(
		&r->infer, 400,
		row < r->rows ? "inputs[%u] ('%s'): an element of row %u ends behind the tensor"
			      : "inputs[%u] ('%s'): bytes follow its last element, of %u rows",
		t->input, r->infer.input[t->input].name, row);
	return false;
}

/* Bytes of text that take as long as a row that has its own length, here and where it is placed. */
#define ROW_COST 8

static uint32_t tensors_work(const struct kserve_reader *r)
{
	return r->held_bytes / 4 + (uint32_t)r->rows * ROW_COST;
}

uint32_t kserve_tensors_cut_work(const struct kserve_reader *r)
{
	return tensors_work(r) + (uint32_t)r->rows * KSERVE_ROW_WORK;
}

bool kserve_tensors_cut(struct kserve_reader *r, const struct kserve_model *m,
			struct kserve_room *room)
{
	struct tensors_rest rest[KSERVE_TENSORS_MAX];
	uint8_t *to = room->scratch, *from;
	uint64_t size;

	/* A tensor may be missing. */
	if (!kserve_tensors_sum(r, m->inputs, &size) || size != r->held_bytes ||
	    size > sizeof(r->held)) {
		kserve_infer_refuse(&r->infer, 400, "the inputs are not complete");
		return false;
	}
	tensors_rest(r, m, rest);
	room->text_left -= (int32_t)tensors_work(r);
	for (uint32_t row = 0; row < r->rows; row++) {
		from = to;
		for (uint8_t p = 0; p < m->inputs; p++) {
			const uint8_t *end = tensors_row_end(&rest[p]);

			if (end == NULL)
				return tensors_refuse_row(r, &rest[p], row);
			memcpy(to, rest[p].at, (size_t)(end - rest[p].at));
			to += end - rest[p].at;
			rest[p].at = end;
		}
		room->row_ends[row] = (uint32_t)(to - room->scratch);
		if (to - from > r->row_most)
			r->row_most = (uint32_t)(to - from);
	}
	for (uint8_t p = 0; p < m->inputs; p++)
		if (rest[p].at != rest[p].end)
			return tensors_refuse_row(r, &rest[p], (uint32_t)r->rows);
	return true;
}
