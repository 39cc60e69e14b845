/* SPDX-License-Identifier: BSD-3-Clause */
#include "framing/kserve_seen.h"

#include <string.h>

#include "framing/kserve_tensors.h"

/* Comparing so many bytes takes as long as reading one of text. */
#define SEEN_COST 16

static uint64_t seen_mix(uint64_t hash, const uint8_t *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	return (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
}

/* Two sums side by side, as one would wait for its multiplications. */
static struct kserve_seen_set *seen_set(struct kserve_room *room, const uint8_t *bytes,
					uint32_t sample)
{
	uint64_t a = 1, b = 2;

	for (uint32_t i = 0; i < sample; i += 2 * sizeof(uint64_t)) {
		a = seen_mix(a, bytes + i);
		b = seen_mix(b, bytes + i + 8);
	}
	a = (a ^ a >> 32 ^ b ^ b >> 29) * UINT64_C(0x94d049bb133111eb);
	return &room->seen[(a >> 32) % KSERVE_SEEN_SETS];
}

/* Makes the service of its model the current one. */
static bool seen_holds(struct kserve_room *room, uint64_t limit, const struct kserve_seen *seen)
{
	return seen->layout->number == seen->layout_number && seen->limit == limit &&
	       room->find(room, seen->layout->model.name) && room->layout == seen->layout &&
	       room->serving && room->max_request == seen->max_request;
}

/* Services of several addresses may have the same requests, and read them for other models. */
const struct kserve_seen *kserve_seen_find(struct kserve_room *room, uint64_t limit,
					   const uint8_t *bytes, uint32_t length, uint32_t sample)
{
	const struct kserve_seen_set *set;

	if (length < sample)
		return NULL;
	set = seen_set(room, bytes, sample);
	for (unsigned int i = 0; i < KSERVE_SEEN_WAYS; i++) {
		const struct kserve_seen *seen = &set->way[i];

		if (seen->length > 0 && seen->length <= length &&
		    memcmp(seen->text, bytes, seen->length) == 0 && seen_holds(room, limit, seen)) {
			room->text_left -= (int32_t)(seen->length / SEEN_COST + 1);
			return seen;
		}
	}
	kserve_room_rewind(room);
	return NULL;
}

void kserve_seen_apply(const struct kserve_seen *seen, struct kserve_asked *a, uint64_t position,
		       struct stream_action *action)
{
	struct kserve_room *room = a->room;

	a->layout = room->layout;
	a->layout->users++;
	kserve_room_found(a);
	a->bytes_in = seen->bytes_in;
	a->max_request = seen->max_request;
	a->binary = seen->binary;
	a->outputs = seen->outputs;
	memcpy(a->output, seen->output, sizeof(a->output));
	a->has_id = seen->has_id;
	a->id_length = seen->id_length;
	memcpy(a->id, seen->id, seen->id_length);
	action->kind = STREAM_REQUEST;
	action->whole.begin = seen->begin;
	action->whole.begin.tag = (uintptr_t)a;
	action->whole.begin.service = room->service + 1;
	action->whole.position = position + seen->length;
}

void kserve_seen_begin(struct kserve_reader *r, uint64_t position, const uint8_t *bytes,
		       uint32_t length)
{
	r->text_from = position;
	r->text_length = length < sizeof(r->text) ? length : sizeof(r->text);
	memcpy(r->text, bytes, r->text_length);
}

void kserve_seen_keep(const struct kserve_reader *r, const struct kserve_asked *a, uint64_t limit,
		      uint64_t length, uint32_t sample)
{
	struct kserve_seen_set *set;
	struct kserve_seen *seen;

	if (length > r->text_length || length < sample)
		return;
	set = seen_set(r->room, r->text, sample);
	seen = &set->way[set->next++ % KSERVE_SEEN_WAYS];
	seen->length = (uint32_t)length;
	memcpy(seen->text, r->text, length);
	seen->layout = a->layout;
	seen->layout_number = a->layout->number;
	seen->limit = limit;
	seen->max_request = a->max_request;
	seen->bytes_in = a->bytes_in;
	seen->begin = (struct stream_begin){.size = a->body.size,
					    .deadline_us = kserve_tensors_deadline(&r->infer),
					    .priority = kserve_tensors_priority(&r->infer),
					    .session = kserve_tensors_session(&r->infer)};
	seen->binary = a->binary;
	seen->outputs = a->outputs;
	memcpy(seen->output, a->output, sizeof(seen->output));
	seen->has_id = a->has_id;
	seen->id_length = a->id_length;
	memcpy(seen->id, a->id, sizeof(seen->id));
}
