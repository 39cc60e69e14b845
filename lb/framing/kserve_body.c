/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bodies of requests behind their JSON. Their state is in struct kserve_asked, so a tensor that
 * takes long to come holds no reader.
 */
#include "framing/kserve_body.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "packet/drop.h"
#include "packet/notice.h"

/* --- the end of a request ----------------------------------------------------------------------
 */

struct stream_action *kserve_call_add(struct kserve_call *c, enum stream_action_kind kind)
{
	struct stream_action *action = &c->actions[c->n++];

	*action = (struct stream_action){.kind = (uint8_t)kind, .request = c->asked->body.request};
	return action;
}

/* Nothing more is read of the stream. */
static void call_close(struct kserve_call *c)
{
	c->actions[c->n++] = (struct stream_action){.kind = STREAM_CLOSE};
	c->s->position = STREAM_CLOSED;
}

static void call_give_reader(struct kserve_call *c)
{
	if (c->reader == NULL)
		return;
	c->s->position += c->reader->ahead;
	kserve_room_give_reader(c->s);
	c->reader = NULL;
}

/* All of the request was read, or is not going to be. */
static void call_finish(struct kserve_call *c)
{
	call_give_reader(c);
	kserve_room_was_read(c->s, c->asked);
	c->asked = NULL;
}

void kserve_call_leave(struct kserve_call *c, bool closes)
{
	struct kserve_body *body = &c->asked->body;

	c->s->position += body->left;
	body->left = 0;
	body->skips = true;
	call_give_reader(c);
	if (!closes && body->chunked && !body->ended)
		return;
	call_finish(c);
	if (closes)
		call_close(c);
}

void kserve_call_refuse(struct kserve_call *c, uint16_t status, const char *format, ...)
{
	struct kserve_asked *a = c->asked;
	struct kserve_body *body = &a->body;
	bool too_large = status == 413;
	struct stream_action *action = kserve_call_add(c, STREAM_REFUSE);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(a->error, sizeof(a->error), format, arguments);
	va_end(arguments);
	a->status = status;
	if (c->reader != NULL && c->reader->reading == KSERVE_READS_JSON)
		kserve_room_keep_id(a, &c->reader->infer);
	action->refuse.tag = (uintptr_t)a;
	action->refuse.notice = status == 503 ? LB_NOTICE_BUSY
				: too_large   ? LB_NOTICE_TOO_LARGE
					      : LB_NOTICE_MALFORMED;
	action->refuse.reason = status == 503 ? LB_DROP_NO_WORKER
				: too_large   ? LB_DROP_REQUEST_TOO_LARGE
					      : LB_DROP_FRAMING;
	/* A client that waits for 100 Continue may leave its body out now, or send it. */
	a->keep_alive &= !body->broken && !body->awaited;
	kserve_call_leave(c, !a->keep_alive);
}

/* --- the beginning of a request ----------------------------------------------------------------
 */

bool kserve_call_begin(struct kserve_call *c, uint64_t size)
{
	struct kserve_reader *r = c->reader;
	uint64_t rows = r->rows > 1 ? r->rows : 1, row = kserve_tensors_row(r, size);
	struct stream_action *action;

	if (!c->room->find(c->room, r->asked->layout->model.name)) {
		kserve_call_refuse(c, 503, "the model '%s' was removed",
				   r->asked->layout->model.name);
		return false;
	}
	if (row > r->asked->max_request) {
		kserve_call_refuse(
			c, 413,
			"the inputs have %" PRIu64 " bytes, the service takes %" PRIu64 "%s", row,
			(uint64_t)r->asked->max_request, rows > 1 ? ", per row" : "");
		return false;
	}
	if (size == 0) {
		kserve_call_refuse(c, 400, "the inputs have no bytes");
		return false;
	}
	r->begun = true;
	r->asked->body.size = size;
	action = kserve_call_add(c, STREAM_BEGIN);
	action->begin.size = size;
	action->begin.rows = (uint16_t)rows;
	action->begin.rows_differ = r->row_most > 0;
	action->begin.tag = (uintptr_t)r->asked;
	action->begin.deadline_us = kserve_tensors_deadline(&r->infer);
	action->begin.session = kserve_tensors_session(&r->infer);
	action->begin.priority = kserve_tensors_priority(&r->infer);
	action->begin.service = c->room->service + 1;
	action->begin.streams = r->asked->mode == KSERVE_ANSWERS_EVENTS;
	return true;
}

void kserve_call_produce_at(struct kserve_call *c, const struct kserve_places *p, uint64_t at)
{
	struct kserve_reader *r = c->reader;
	struct stream_action *action;

	kserve_call_produce(c, r->run.at, p->each == 0 ? p->within + at : at, r->run.length);
	action = &c->actions[c->n - 1];
	action->bytes.each = p->each;
	action->bytes.within = (uint32_t)p->within;
	action->bytes.row = p->row;
}

void kserve_call_produce(struct kserve_call *c, const uint8_t *bytes, uint64_t offset,
			 uint32_t length)
{
	struct stream_action *action = kserve_call_add(c, STREAM_PRODUCE);

	action->bytes.at = bytes;
	action->bytes.offset = offset;
	action->bytes.length = length;
}

bool kserve_call_produce_held(struct kserve_call *c)
{
	struct kserve_reader *r = c->reader;

	if (r->held_bytes == 0)
		return true;
	if (r->held_bytes != r->held_to - r->held_from) {
		kserve_call_refuse(
			c, 501,
			"inputs in JSON around others of the model; send them in the order of "
			"the model, or all binary");
		return false;
	}
	kserve_call_produce(c, r->held + r->held_from, r->held_from, r->held_bytes);
	r->held_bytes = 0;
	return true;
}

/* --- chunks ------------------------------------------------------------------------------------
 */

/* A request that was answered before cannot be refused any more. */
static void body_break(struct kserve_call *c)
{
	struct kserve_body *body = &c->asked->body;
	uint16_t status = body->chunks.status;

	body->broken = true;
	if (body->skips)
		return kserve_call_leave(c, true);
	kserve_call_refuse(c, status, "%s",
			   status == 413   ? "the body is too large"
			   : status == 431 ? "the trailers behind the body are too large"
					   : "the body has a chunk that is not valid");
}

enum http_chunk kserve_body_read_lines(struct kserve_call *c, const uint8_t *bytes, uint32_t length)
{
	const char *at = (const char *)bytes, *start = at;
	uint32_t n = length < KSERVE_SLICE ? length : KSERVE_SLICE;
	struct kserve_body *body = &c->asked->body;
	enum http_chunk result = http_chunked_read(&body->chunks, &at, at + n);

	n = (uint32_t)(at - start);
	c->room->text_left -= (int32_t)(n / 4 + KSERVE_EXTENT_COST);
	c->s->position += n;
	if (c->reader != NULL)
		c->reader->progress += n;
	body->ended = result == HTTP_CHUNK_END;
	if (result == HTTP_CHUNK_DATA) {
		body->left = body->chunks.size;
		c->asked->bytes_in += body->chunks.size;
	}
	if (result == HTTP_CHUNK_REFUSED)
		body_break(c);
	return result;
}

/* --- tensors -----------------------------------------------------------------------------------
 */

/* The request and its body end. */
static void body_end(struct kserve_call *c)
{
	struct kserve_body *body = &c->asked->body;
	bool keep_alive = c->asked->keep_alive;

	kserve_call_add(c, STREAM_END)->size = body->size;
	call_finish(c);
	/* The answer closes the connection. */
	if (!keep_alive)
		c->s->position = STREAM_CLOSED;
}

void kserve_body_last(struct kserve_call *c)
{
	struct kserve_body *body = &c->asked->body;
	uint64_t came = body->size - body->wanted;

	if (body->skips)
		return call_finish(c);
	if (body->grows && came > 0 && came % body->unit == 0) {
		body->size = came;
		return body_end(c);
	}
	if (body->grows)
		return kserve_call_refuse(c, 400, "the input has no shape of %" PRIu64 " bytes",
					  came);
	if (body->wanted > 0)
		return kserve_call_refuse(c, 400,
					  "the body ends %" PRIu64 " bytes before its inputs do",
					  body->wanted);
	body_end(c);
}

/* Of the next <most> bytes of a tensor of BYTES, those that are known to be of its elements. 0: its
 * bytes must be shown first, or have a fault, and the request was refused. */
static uint64_t body_follow(struct kserve_call *c, struct kserve_range *range, uint64_t most,
			    const uint8_t *bytes, uint32_t length)
{
	struct kserve_elements *e = &c->asked->body.elements;
	uint32_t slice = kserve_tensors_slice(c->room), budget = slice;
	uint64_t n;

	if (!range->begun)
		kserve_elements_begin(e, range->elements, range->length);
	range->begun = true;
	n = kserve_elements_follow(e, bytes, length, most, &budget);
	c->room->text_left -= (int32_t)(slice - budget);
	if (!e->broken)
		return n;
	kserve_call_refuse(c, 400, "inputs[%u] ('%s'): %s", range->input,
			   c->asked->layout->model.input[range->place].name,
			   kserve_elements_fault(e));
	return 0;
}

/* The bytes of the body that are next, those of one range at most, of which <length> are shown. */
static void body_name(struct kserve_call *c, const uint8_t *bytes, uint32_t length)
{
	struct kserve_body *body = &c->asked->body;
	struct kserve_range *range = &body->range_of[body->range];
	uint64_t n = range->length < body->left ? range->length : body->left;
	struct stream_action *action;

	if (range->each > 0 && range->left < n)
		n = range->left;
	if (body->of_elements >> body->range & 1)
		n = body_follow(c, range, n, bytes, length);
	if (n == 0)
		return;

	action = kserve_call_add(c, STREAM_EXTENT);
	action->extent.position = c->s->position;
	action->extent.offset = range->offset;
	action->extent.length = n;
	range->offset += n;
	range->length -= n;
	range->left -= range->each > 0 ? n : 0;
	if (range->each > 0 && range->left == 0) {
		range->offset += range->skip;
		range->left = range->each;
	}
	body->range += range->length == 0;
	c->s->position += n;
	body->left -= n;
	body->wanted -= n;
}

/* Names what can be named now; the next <length> bytes of the body are shown. */
static void body_next(struct kserve_call *c, const uint8_t *bytes, uint32_t length)
{
	struct kserve_body *body = &c->asked->body;

	c->room->text_left -= KSERVE_EXTENT_COST;
	if (body->left > body->wanted)
		return kserve_call_refuse(c, body->grows ? 413 : 400,
					  "more bytes follow than the inputs have");
	if (body->left > 0)
		body_name(c, bytes, length);
	if (c->asked != NULL && !body->chunked && body->wanted == 0)
		body_end(c);
}

void kserve_body_place(struct kserve_call *c)
{
	call_give_reader(c);
	body_next(c, NULL, 0);
}

void kserve_body_read(struct kserve_call *c, const uint8_t *bytes, uint32_t length)
{
	struct kserve_body *body = &c->asked->body;
	enum http_chunk result;

	if (body->left > 0)
		return body_next(c, bytes, length);
	result = kserve_body_read_lines(c, bytes, length);
	if (result == HTTP_CHUNK_END)
		return kserve_body_last(c);
	if (result != HTTP_CHUNK_DATA)
		return;
	if (!body->skips)
		return body_next(c, NULL, 0);
	c->s->position += body->left;
	body->left = 0;
}
