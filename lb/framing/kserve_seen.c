/* SPDX-License-Identifier: BSD-3-Clause */
#include "framing/kserve_seen.h"

#include <string.h>

#include "framing/kserve_tensors.h"

/* The bytes that choose a set: request line, host, and more. Shorter heads are not remembered. */
#define SEEN_SAMPLE 128
/* Comparing so many bytes takes as long as reading one of text. */
#define SEEN_COST 16

static uint64_t seen_mix(uint64_t hash, const uint8_t *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	return (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
}

/* Four sums side by side, as one would wait for its multiplications. */
static struct kserve_seen_set *seen_set(struct kserve_room *room, const uint8_t *bytes)
{
	uint64_t a = 1, b = 2, c = 3, d = 4;

	for (unsigned int i = 0; i < SEEN_SAMPLE; i += 4 * sizeof(uint64_t)) {
		a = seen_mix(a, bytes + i);
		b = seen_mix(b, bytes + i + 8);
		c = seen_mix(c, bytes + i + 16);
		d = seen_mix(d, bytes + i + 24);
	}
	a = (a ^ a >> 32 ^ b ^ c >> 17 ^ d >> 29) * UINT64_C(0x94d049bb133111eb);
	return &room->seen[(a >> 32) % KSERVE_SEEN_SETS];
}

/* Would it be read as it was then? Makes the service of its model the current one. */
static bool seen_holds(const struct kserve_call *c, const struct kserve_seen *seen)
{
	struct kserve_room *room = c->room;

	return seen->layout->number == seen->layout_number &&
	       seen->limit == c->settings->max_request &&
	       room->find(room, seen->layout->model.name) && room->layout == seen->layout &&
	       room->serving && room->max_request == seen->max_request;
}

/* Services of several addresses may have the same requests, and read them for other models. */
static const struct kserve_seen *seen_find(const struct kserve_call *c, const uint8_t *bytes,
					   uint32_t length)
{
	const struct kserve_seen_set *set;

	if (length < SEEN_SAMPLE)
		return NULL;
	set = seen_set(c->room, bytes);
	for (unsigned int i = 0; i < KSERVE_SEEN_WAYS; i++) {
		const struct kserve_seen *seen = &set->way[i];

		if (seen->length > 0 && seen->length <= length &&
		    memcmp(seen->text, bytes, seen->length) == 0 && seen_holds(c, seen))
			return seen;
	}
	kserve_room_rewind(c->room);
	return NULL;
}

static struct kserve_asked *seen_ask(struct kserve_call *c, const struct kserve_seen *seen)
{
	struct kserve_asked *a = kserve_room_ask(c->room, c->s);

	a->body.request = c->s->requests++;
	a->layout = c->room->layout;
	a->layout->users++;
	a->max_request = seen->max_request;
	a->minor = 1;
	a->keep_alive = true;
	a->binary = seen->binary;
	a->outputs = seen->outputs;
	memcpy(a->output, seen->output, sizeof(a->output));
	a->has_id = seen->has_id;
	a->id_length = seen->id_length;
	memcpy(a->id, seen->id, seen->id_length);
	return a;
}

bool kserve_seen_take(struct kserve_call *c, const uint8_t *bytes, uint32_t length)
{
	const struct kserve_seen *seen = seen_find(c, bytes, length);
	struct stream_action *action = &c->actions[c->n];
	struct kserve_asked *a;

	if (seen == NULL)
		return false;
	a = seen_ask(c, seen);
	action->kind = STREAM_REQUEST;
	action->request = a->body.request;
	action->whole.begin = seen->begin;
	action->whole.begin.tag = (uintptr_t)a;
	action->whole.begin.service = c->room->service + 1;
	action->whole.position = c->s->position + seen->length;
	c->n++;
	c->s->position += seen->length + seen->begin.size;
	c->room->text_left -= (int32_t)(seen->length / SEEN_COST + 1);
	kserve_room_was_read(c->s, a);
	return true;
}

void kserve_seen_begin(struct kserve_call *c, const uint8_t *bytes, uint32_t length)
{
	struct kserve_reader *r = c->reader;

	r->text_from = c->s->position;
	r->text_length = length < sizeof(r->text) ? length : sizeof(r->text);
	memcpy(r->text, bytes, r->text_length);
}

/* Does one row of bytes, all of which follow, make the request? */
static bool seen_is_simple(const struct kserve_reader *r)
{
	const struct kserve_body *body = &r->asked->body;

	return body->wanted > 0 && !r->head.chunked && !r->head.expects_100 && r->head.minor == 1 &&
	       r->head.keep_alive && body->wanted == body->size && body->left == body->size &&
	       body->range_of[0].offset == 0 && body->range_of[0].length == body->size;
}

void kserve_seen_keep(const struct kserve_call *c)
{
	const struct kserve_reader *r = c->reader;
	const struct kserve_asked *a = r->asked;
	uint64_t length = c->s->position + r->ahead - r->text_from;
	struct kserve_seen_set *set;
	struct kserve_seen *seen;

	if (length > r->text_length || length < SEEN_SAMPLE || !seen_is_simple(r))
		return;
	set = seen_set(c->room, r->text);
	seen = &set->way[set->next++ % KSERVE_SEEN_WAYS];
	seen->length = (uint32_t)length;
	memcpy(seen->text, r->text, length);
	seen->layout = a->layout;
	seen->layout_number = a->layout->number;
	seen->limit = c->settings->max_request;
	seen->max_request = a->max_request;
	seen->begin = (struct stream_begin){.size = a->body.size,
					    .deadline_us = kserve_tensors_deadline(&r->infer),
					    .priority = kserve_tensors_priority(&r->infer)};
	seen->binary = a->binary;
	seen->outputs = a->outputs;
	memcpy(seen->output, a->output, sizeof(seen->output));
	seen->has_id = a->has_id;
	seen->id_length = a->id_length;
	memcpy(seen->id, a->id, sizeof(seen->id));
}
