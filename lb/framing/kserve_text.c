/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A text's length is not known before its end. So a request that is larger than what is kept begins
 * with the size that it may have, and its first four bytes, the length, come last.
 */
#include "framing/kserve_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "framing/kserve_reply.h"
#include "framing/kserve_tensors.h"
#include "json/write.h"
#include "packet/notice.h"

#define TEXT_LENGTH 4u /* bytes in front of an element of BYTES */
#define TEXT_LINE   16 /* of a chunk: its size */
#define TEXT_LAST   "0\r\n\r\n"
#define TEXT_BEAT   ":\n\n"

/* --- requests ----------------------------------------------------------------------------------
 */

/* One element of BYTES. */
static bool text_is_tensor(const struct kserve_tensor *t)
{
	for (uint8_t i = 0; i < t->dims; i++)
		if (t->shape[i] > 1)
			return false;
	return t->type == KSERVE_BYTES;
}

bool kserve_text_begin(struct kserve_call *c, enum kserve_mode mode)
{
	const struct kserve_model *m = &c->room->layout->model;
	struct kserve_asked *a = c->asked;

	if (m->inputs != 1 || m->outputs != 1 || !text_is_tensor(&m->input[0]) ||
	    !text_is_tensor(&m->output[0])) {
		kserve_call_refuse(c, 501,
				   "the model '%s' is not one of text, with one input and one "
				   "output of BYTES",
				   c->room->model);
		return false;
	}
	a->mode = mode;
	a->outputs = 1;
	/* HTTP/1.0 has no chunks: the end of the connection is that of the events. */
	if (mode == KSERVE_ANSWERS_EVENTS)
		a->keep_alive &= a->minor > 0;
	return true;
}

/* Bytes that the request can have, as <bytes> came, and no byte of a text is shorter in JSON. */
static uint64_t text_bound(const struct kserve_call *c, uint64_t bytes)
{
	const struct kserve_body *body = &c->asked->body;
	uint64_t most = c->asked->max_request;

	return body->chunked || body->left > most - bytes ? most : bytes + body->left;
}

uint64_t kserve_text_max(uint64_t max_request)
{
	return max_request > TEXT_LENGTH ? max_request - TEXT_LENGTH : 0;
}

void kserve_text_run(struct kserve_call *c)
{
	struct kserve_reader *r = c->reader;
	uint64_t offset = TEXT_LENGTH + r->run.offset, end = offset + r->run.length;

	if (!r->begun && kserve_tensors_hold(r, offset))
		return;
	if (!r->begun &&
	    (!kserve_call_begin(c, text_bound(c, end)) || !kserve_call_produce_held(c)))
		return;
	kserve_call_produce(c, r->run.at, offset, r->run.length);
}

void kserve_text_end(struct kserve_call *c)
{
	struct kserve_reader *r = c->reader;
	uint32_t length = (uint32_t)r->infer.text_bytes;

	memcpy(c->room->scratch, &length, TEXT_LENGTH);
	r->run.at = c->room->scratch;
	r->run.length = TEXT_LENGTH;
	if (r->begun) {
		kserve_call_produce(c, r->run.at, 0, TEXT_LENGTH);
	} else {
		kserve_tensors_hold(r, 0);
		if (!kserve_call_begin(c, TEXT_LENGTH + length) || !kserve_call_produce_held(c))
			return;
	}
	c->asked->body.size = TEXT_LENGTH + length;
	kserve_body_place(c);
}

/* --- answers -----------------------------------------------------------------------------------
 */

enum text_step {
	TEXT_CHUNK,  /* a piece begins */
	TEXT_OBJECT, /* an object does */
	TEXT_VALUES,
	TEXT_END, /* of the piece */
};

static bool text_has_chunks(const struct kserve_asked *a)
{
	return a->mode == KSERVE_ANSWERS_EVENTS && a->minor > 0;
}

static void text_object(const struct kserve_asked *a, struct json_out *o)
{
	const struct kserve_model *m = &a->layout->model;

	json_put(o, a->mode == KSERVE_ANSWERS_EVENTS ? "data: {" : "{");
	if (a->has_id) {
		json_put(o, "\"id\":");
		json_put_string(o, a->id, a->id_length);
		json_put(o, ",");
	}
	json_put(o, "\"model_name\":");
	json_put_string(o, m->name, (uint32_t)strlen(m->name));
	json_put(o, ",\"model_version\":");
	json_put_string(o, m->version[0], (uint32_t)strlen(m->version[0]));
	json_put(o, ",\"text_output\":\"");
}

/* A piece begins: its event, or the rest of the object. A last one without bytes has no event. */
static void text_chunk(struct kserve_asked *a, const struct stream_reply *reply)
{
	bool is_empty = reply->length == 0 && (reply->more || a->writer.escape.length == 0);

	a->writer.tensor_left = reply->length;
	if (a->mode == KSERVE_ANSWERS_EVENTS)
		a->part = is_empty ? TEXT_END : TEXT_OBJECT;
	else
		a->part = reply->chunk == 0 ? TEXT_OBJECT : TEXT_VALUES;
}

/* The values of the piece are written. */
static void text_values_end(struct kserve_asked *a, const struct stream_reply *reply,
			    struct json_out *o)
{
	a->part = TEXT_END;
	if (!reply->more)
		kserve_answer_text_end(&a->writer, o);
	if (a->mode == KSERVE_ANSWERS_EVENTS)
		json_put(o, "\"}\n\n");
	else if (!reply->more)
		json_put(o, "\"}");
	if (text_has_chunks(a))
		json_put(o, "\r\n");
}

static void text_values(struct kserve_asked *a, struct stream_reply *reply, const uint8_t *bytes,
			uint32_t length, struct json_out *o)
{
	const uint8_t *from = bytes;

	if (length > 0)
		kserve_answer_text(&a->writer, &bytes, bytes + length, o);
	reply->taken += (uint32_t)(bytes - from);
	if (a->writer.failed)
		reply->notice = LB_NOTICE_MODEL_ERROR;
	else if (a->writer.tensor_left == 0 && o->end - o->at >= TEXT_LINE)
		text_values_end(a, reply, o);
}

struct stream_rewritten kserve_text_rewrite(struct kserve_asked *a, struct stream_reply *reply,
					    const uint8_t *bytes, uint32_t length, uint8_t *at,
					    uint32_t room)
{
	struct json_out o = {(char *)at, (char *)at + room, false};
	struct stream_rewritten written = {0};

	switch ((enum text_step)a->part) {
	case TEXT_CHUNK:
		text_chunk(a, reply);
		break;
	case TEXT_OBJECT:
		text_object(a, &o);
		a->part = TEXT_VALUES;
		break;
	case TEXT_VALUES:
		text_values(a, reply, bytes, length, &o);
		break;
	case TEXT_END:
		if (!reply->more && text_has_chunks(a))
			json_put(&o, TEXT_LAST);
		a->part = TEXT_CHUNK;
		written.done = true;
		written.waits = reply->more && a->mode == KSERVE_ANSWERS_TEXT;
		break;
	}
	written.length = (uint32_t)((uint8_t *)o.at - at);
	written.done |= reply->notice != 0;
	return written;
}

/* --- events ------------------------------------------------------------------------------------
 */

/* The head, if it was not sent. Returns its length. */
static uint32_t text_head(struct kserve_asked *a, uint8_t *at)
{
	struct http_response response = {.status = 200,
					 .body = a->minor > 0 ? HTTP_CHUNKED : HTTP_TO_CLOSE,
					 .type = HTTP_EVENTS,
					 .minor = a->minor,
					 .keep_alive = a->keep_alive,
					 .date = a->room->date};

	if (a->streaming)
		return 0;
	a->streaming = true;
	return http_response_write(&response, (char *)at);
}

/* The line in front of a chunk. */
static uint32_t text_line(const struct kserve_asked *a, uint32_t bytes, uint8_t *at)
{
	if (!text_has_chunks(a))
		return 0;
	return (uint32_t)snprintf((char *)at, TEXT_LINE, "%x\r\n", bytes);
}

/* A chunk of few bytes. */
static uint32_t text_put(const struct kserve_asked *a, const char *text, uint32_t n, uint8_t *at)
{
	uint32_t line = text_line(a, n, at);

	memcpy(at + line, text, n);
	if (line == 0)
		return n;
	memcpy(at + line + n, "\r\n", 2);
	return line + n + 2;
}

/* An event with an error, and the end. */
static uint32_t text_put_error(const struct kserve_asked *a, uint8_t notice, uint8_t *at)
{
	char text[STREAM_HEAD_MAX - HTTP_RESPONSE_MAX - 2 * TEXT_LINE] = "data: ";
	uint32_t n = 6, all;

	n += kserve_error_write(kserve_reply_error(a, notice), text + n,
				(uint32_t)sizeof(text) - n - 2);
	memcpy(text + n, "\n\n", 2);
	all = text_put(a, text, n + 2, at);
	if (!text_has_chunks(a))
		return all;
	memcpy(at + all, TEXT_LAST, sizeof(TEXT_LAST) - 1);
	return all + (uint32_t)sizeof(TEXT_LAST) - 1;
}

struct stream_piece kserve_text_reply(struct stream *s, struct kserve_asked *a,
				      struct stream_reply *reply, uint8_t *at)
{
	bool ends = reply->notice != 0 || !reply->more;
	uint32_t tail = ends && text_has_chunks(a) ? sizeof(TEXT_LAST) - 1 : 0;
	struct stream_piece piece = {.last = true, .closes = ends && !a->keep_alive};

	piece.head = text_head(a, at);
	if (reply->notice != 0) {
		piece.head += text_put_error(a, reply->notice, at + piece.head);
	} else {
		piece.bytes = reply->length;
		if (reply->length > tail)
			piece.head += text_line(a, reply->length - tail - 2, at + piece.head);
	}
	reply->taken = reply->length;
	a->said += piece.head + piece.bytes;
	if (ends) {
		kserve_room_tell(s, a, 200, a->said);
		kserve_room_answered(s, a);
	}
	return piece;
}

uint32_t kserve_text_beat(struct stream *s, uint64_t tag, uint8_t *at)
{
	struct kserve_asked *a = (struct kserve_asked *)(uintptr_t)tag;
	uint32_t n;

	if (a->mode != KSERVE_ANSWERS_EVENTS)
		return 0;
	n = text_head(a, at);
	return n + text_put(a, TEXT_BEAT, sizeof(TEXT_BEAT) - 1, at + n);
}
