/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A worker's reply is the model's outputs, one behind the other; the client gets a JSON that has
 * the values of some, and the bytes of the others behind it. What it asked for is in struct
 * kserve_asked.
 */
#include "framing/kserve_reply.h"

#include <stdio.h>
#include <string.h>

#include "framing/kserve_front.h"
#include "framing/kserve_text.h"
#include "packet/notice.h"

/* Bytes that the shape says, a free dimension taken as 1. */
static uint64_t reply_bytes_of(const struct kserve_tensor *t)
{
	uint64_t bytes = kserve_datatype_size(t->type);

	for (uint8_t i = 0; i < t->dims; i++)
		bytes *= t->shape[i] < 0 ? 1 : (uint64_t)t->shape[i];
	return bytes;
}

static bool reply_has_free(const struct kserve_tensor *t)
{
	for (uint8_t i = 0; i < t->dims; i++)
		if (t->shape[i] < 0)
			return true;
	return false;
}

/* --- where outputs are --- */

/* Work of looking at the length of an element. */
#define SCAN_WORK 3

/* Is it an output of BYTES whose shape says how many elements it has? */
static bool scan_has_lengths(const struct kserve_tensor *t)
{
	return kserve_datatype_size(t->type) == 0 && !reply_has_free(t);
}

static uint32_t scan_elements(const struct kserve_tensor *t)
{
	uint32_t elements = 1;

	for (uint8_t i = 0; i < t->dims; i++)
		elements *= (uint32_t)t->shape[i];
	return elements;
}

/* Where the row that is looked at ends. */
static uint32_t scan_end(const struct kserve_asked *a, const struct stream_reply *reply)
{
	return reply->rows > 1 ? reply->ends[a->scan_row] : reply->length;
}

/* Goes on to the next output of the row whose elements are to be looked at. False: there is none.
 */
static bool scan_next_output(struct kserve_asked *a, const struct stream_reply *reply)
{
	const struct kserve_model *m = &a->layout->model;

	for (; a->scan_output < m->outputs; a->scan_output++) {
		const struct kserve_tensor *t = &m->output[a->scan_output];

		a->scan_bytes = 0;
		a->scan_left = scan_has_lengths(t) ? scan_elements(t) : 0;
		if (a->scan_left > 0)
			return true;
		/* The last one has what is left of the row. */
		if (a->scan_output + 1 < m->outputs)
			a->scan_at += (uint32_t)reply_bytes_of(t);
		else if (a->scan_at < scan_end(a, reply))
			a->scan_at = scan_end(a, reply);
	}
	return false;
}

/* The same, also of the rows that follow. False: a row ends elsewhere than its last output. */
static bool scan_next(struct kserve_asked *a, const struct stream_reply *reply)
{
	if (scan_next_output(a, reply))
		return true;
	if (a->scan_at != scan_end(a, reply))
		return false;
	if (++a->scan_row < reply->rows) {
		a->scan_output = 0;
		return scan_next_output(a, reply);
	}
	a->found = true;
	return true;
}

/* All elements of an output were looked at. False: as above. The outputs of a row are in the same
 * place in all of them: several rows have BYTES only if that is the only output. */
static bool scan_output_end(struct kserve_asked *a, const struct stream_reply *reply)
{
	a->scanned[a->scan_output++] = a->scan_bytes;
	return scan_next(a, reply);
}

/* A length was read. False: the row is shorter. */
static bool scan_element(struct kserve_asked *a, const struct stream_reply *reply)
{
	uint64_t size = sizeof(uint32_t);
	uint32_t length;

	memcpy(&length, a->scan_word, sizeof(length));
	a->scan_got = 0;
	size += length;
	if (a->scan_at + size > scan_end(a, reply))
		return false;
	a->scan_at += (uint32_t)size;
	a->scan_bytes += (uint32_t)size;
	return --a->scan_left > 0 || scan_output_end(a, reply);
}

/* False: there is nothing to look for. */
static bool scan_begin(struct kserve_asked *a, const struct stream_reply *reply)
{
	const struct kserve_model *m = &a->layout->model;
	bool any = false;

	for (uint8_t i = 0; i < m->outputs; i++)
		any |= scan_has_lengths(&m->output[i]);
	a->scanning = true;
	a->scan_at = a->scan_row = 0;
	a->scan_output = a->scan_got = 0;
	memset(a->scanned, 0, sizeof(a->scanned));
	return any && scan_next_output(a, reply);
}

/* Takes of the next <n> bytes those of a length; one at a time, where it does not lie there whole.
 */
static void scan_take(struct kserve_asked *a, const uint8_t *bytes, uint32_t n)
{
	if (a->scan_got == 0 && n >= sizeof(a->scan_word)) {
		memcpy(a->scan_word, bytes, sizeof(a->scan_word));
		a->scan_got = sizeof(a->scan_word);
	} else {
		a->scan_word[a->scan_got++] = bytes[0];
	}
}

bool kserve_reply_scan(struct kserve_asked *a, struct stream_reply *reply, const uint8_t *bytes,
		       uint32_t length)
{
	uint32_t from = reply->taken;

	if (!a->scanning)
		a->found = !scan_begin(a, reply);
	while (!a->found && a->scan_at + a->scan_got >= from &&
	       a->scan_at + a->scan_got < from + length) {
		uint32_t at = a->scan_at + a->scan_got - from;

		scan_take(a, bytes + at, length - at);
		if (a->scan_got < sizeof(a->scan_word))
			continue;
		a->room->text_left -= SCAN_WORK;
		if (!scan_element(a, reply))
			return false;
	}
	if (!a->found)
		reply->taken = a->scan_at + a->scan_got;
	a->scanning = !a->found;
	return a->found || reply->taken < reply->length;
}

/* Of several rows each has as many bytes, if the only output is not BYTES. */
static bool reply_has_rows(struct kserve_asked *a, const struct stream_reply *reply,
			   struct reply_outputs *out)
{
	const struct kserve_model *m = &a->layout->model;

	out->rows = out->cuts = reply->rows > 1 ? reply->rows : 1;
	if (m->outputs == 1 && kserve_datatype_size(m->output[0].type) == 0)
		out->cuts = 1;
	out->row = reply->length / out->cuts;
	if (out->cuts < out->rows)
		return true;
	for (uint32_t i = 0; !a->rows_fit && i < reply->rows; i++)
		if (reply->ends[i] != (i + 1) * out->row)
			return false;
	a->rows_fit = reply->rows > 0;
	return true;
}

/* The outputs of a row. */
static bool reply_find_row(const struct kserve_asked *a, struct reply_outputs *out)
{
	const struct kserve_model *m = &a->layout->model;
	uint8_t last = m->outputs - 1;
	uint64_t unit = reply_bytes_of(&m->output[last]), offset = 0;
	uint32_t length = out->row;

	for (uint8_t i = 0; i < last; i++) {
		out->offset[i] = (uint32_t)offset;
		out->bytes[i] = a->scanned[i];
		if (kserve_datatype_size(m->output[i].type) > 0)
			out->bytes[i] = (uint32_t)reply_bytes_of(&m->output[i]);
		offset += out->bytes[i];
	}
	if (offset > length)
		return false;
	out->offset[last] = (uint32_t)offset;
	out->bytes[last] = length - (uint32_t)offset;
	out->free = 1;
	if (unit == 0) /* BYTES: its elements say how long they are */
		return !reply_has_free(&m->output[last]);
	if (!reply_has_free(&m->output[last]))
		return out->bytes[last] == unit;
	out->free = (int64_t)(out->bytes[last] / unit);
	return out->bytes[last] % unit == 0;
}

bool kserve_reply_find(struct kserve_asked *a, const struct stream_reply *reply,
		       struct reply_outputs *out)
{
	return reply_has_rows(a, reply, out) && reply_find_row(a, out);
}

uint32_t kserve_reply_place(const struct reply_outputs *outputs, uint8_t place, uint32_t at,
			    uint32_t *left)
{
	uint32_t bytes = outputs->bytes[place], within;

	if (outputs->cuts == 1 || bytes == 0)
		return outputs->offset[place] + at;
	within = at % bytes;
	if (bytes - within < *left)
		*left = bytes - within;
	return at / bytes * outputs->row + outputs->offset[place] + within;
}

void kserve_reply_note_row(struct kserve_asked *a, const struct stream_reply *reply)
{
	const char *error = kserve_reply_error(a, reply->notice);

	if (reply->failed > 0 && a->error[0] == '\0')
		snprintf(a->error, sizeof(a->error), "row %u: %s", reply->failed - 1, error);
}

void kserve_reply_refuse_pieces(struct kserve_asked *a, const char *by)
{
	a->status = 501;
	snprintf(a->error, sizeof(a->error), "replies of the model '%s' come in pieces; ask by %s",
		 a->layout->model.name, by);
}

static void reply_describe(const struct kserve_asked *a, const struct reply_outputs *outputs,
			   uint8_t i, struct kserve_answer_output *to)
{
	const struct kserve_model *m = &a->layout->model;
	const struct kserve_tensor *t = &m->output[a->output[i]];

	to->name = t->name;
	to->type = t->type;
	to->dims = 0;
	to->binary = (a->binary & 1u << i) != 0;
	to->bytes = kserve_reply_bytes(outputs, a->output[i]);
	if (m->max_batch > 0)
		to->shape[to->dims++] = outputs->rows;
	for (uint8_t k = 0; k < t->dims; k++)
		to->shape[to->dims++] = (uint64_t)(t->shape[k] < 0 ? outputs->free : t->shape[k]);
}

void kserve_reply_answer(const struct kserve_asked *a, const struct reply_outputs *outputs,
			 struct kserve_answer *answer)
{
	const struct kserve_model *m = &a->layout->model;

	answer->final = KSERVE_FINAL_UNSAID;
	answer->model = m->name;
	answer->version = m->version[0];
	answer->id = a->has_id ? a->id : NULL;
	answer->id_length = a->id_length;
	answer->outputs = a->outputs;
	for (uint8_t i = 0; i < a->outputs; i++)
		reply_describe(a, outputs, i, &answer->output[i]);
}

/* Are the bytes that follow the JSON the reply as it is? */
static bool reply_stays(const struct kserve_asked *a, const struct reply_outputs *outputs)
{
	if (a->outputs != a->layout->model.outputs || (outputs->cuts > 1 && a->outputs > 1))
		return false;
	for (uint8_t i = 0; i < a->outputs; i++)
		if (a->output[i] != i || (a->binary & 1u << i) == 0)
			return false;
	return true;
}

/* The load balancer drains, and reads no further request: the answer of the last one says so. */
static void reply_note_drain(const struct stream *s, struct kserve_asked *a)
{
	if (s->position == STREAM_CLOSED && a->body.request + 1 == s->requests)
		a->keep_alive = false;
}

bool kserve_reply_is_usual(const struct kserve_asked *a, const struct stream_reply *reply)
{
	const struct kserve_model *m = &a->layout->model;

	if (reply->more || reply->chunk > 0 || reply->rows > 1 || a->room->text_left <= 0)
		return false;
	/* The lengths of its elements are to be looked at. */
	for (uint8_t i = 0; i < m->outputs; i++)
		if (kserve_datatype_size(m->output[i].type) == 0)
			return false;
	return true;
}

/* Bytes of text that take as long as the head of such an answer. */
#define KEEPS_COST 48

bool kserve_keeps(struct stream *s, const struct stream_reply *reply)
{
	struct kserve_asked *a = (struct kserve_asked *)(uintptr_t)reply->tag;
	struct reply_outputs outputs = {.rows = 1, .cuts = 1};
	struct kserve_answer answer;

	reply_note_drain(s, a);
	if (a->mode != KSERVE_ANSWERS_TENSORS || a->minor != 1 || !a->keep_alive ||
	    !kserve_reply_is_usual(a, reply) || !reply_stays(a, &outputs))
		return false;
	a->room->text_left -= KEEPS_COST;
	a->front = kserve_front_find(a->room->front, a, reply->length);
	if (a->front == NULL && kserve_reply_find(a, reply, &outputs)) {
		kserve_reply_answer(a, &outputs, &answer);
		a->front = kserve_front_http(a, reply->length, &answer);
	}
	return a->front != NULL;
}

/* Goes on to the next output that is <binary>, or is not, and asks for its bytes. False: there is
 * none. */
static bool reply_seek(struct kserve_asked *a, const struct reply_outputs *outputs, bool binary,
		       struct stream_reply *reply)
{
	while (a->part < a->outputs) {
		uint8_t place = a->output[a->part];
		uint32_t left = UINT32_MAX;

		if (((a->binary & 1u << a->part) != 0) == binary &&
		    a->part_taken < kserve_reply_bytes(outputs, place)) {
			reply->taken = kserve_reply_place(outputs, place, a->part_taken, &left);
			return true;
		}
		a->part++;
		a->part_taken = 0;
	}
	return false;
}

/* The <length> bytes that lie at reply->taken: how many of them are of the output that is written?
 * None, if it is written. */
static uint32_t reply_span(const struct kserve_asked *a, const struct reply_outputs *outputs,
			   uint32_t length)
{
	uint8_t place = a->output[a->part];
	uint32_t left;

	if (a->part == a->outputs)
		return 0;
	left = kserve_reply_bytes(outputs, place) - a->part_taken;
	kserve_reply_place(outputs, place, a->part_taken, &left);
	return length < left ? length : left;
}

static struct stream_rewritten reply_write_json(struct kserve_asked *a,
						const struct reply_outputs *outputs,
						struct stream_reply *reply, const uint8_t *bytes,
						uint32_t length, char *at, uint32_t room)
{
	struct stream_rewritten written = {0};
	const uint8_t *from = bytes;
	struct kserve_answer answer;

	kserve_reply_answer(a, outputs, &answer);
	written.length = kserve_answer_write(&answer, &a->writer, &bytes,
					     bytes + reply_span(a, outputs, length), at, room);
	a->part_taken += (uint32_t)(bytes - from);
	a->json_length += written.length;
	if (a->writer.failed) {
		reply->notice = LB_NOTICE_MODEL_ERROR;
		written.done = true;
	}
	if (!a->writer.done)
		return written;
	if (a->binary == 0 || reply_stays(a, outputs)) {
		written.done = true;
		written.keeps = a->binary != 0;
	}
	a->part = 0;
	a->part_taken = 0;
	return written;
}

static struct stream_rewritten reply_copy_binary(struct kserve_asked *a,
						 const struct reply_outputs *outputs,
						 const uint8_t *bytes, uint32_t length, char *at,
						 uint32_t room)
{
	uint32_t n = reply_span(a, outputs, length);

	n = n < room ? n : room;
	memcpy(at, bytes, n);
	a->part_taken += n;
	return (struct stream_rewritten){.length = n};
}

struct stream_rewritten kserve_rewrite(struct stream *s, struct stream_reply *reply,
				       const uint8_t *bytes, uint32_t length, uint8_t *at,
				       uint32_t room)
{
	struct kserve_asked *a = (struct kserve_asked *)(uintptr_t)reply->tag;
	struct stream_rewritten written = {.done = true};
	uint32_t lies = reply->taken;
	struct reply_outputs outputs;
	bool json = !a->writer.done;

	if (a->mode != KSERVE_ANSWERS_TENSORS)
		return kserve_text_rewrite(a, reply, bytes, length, at, room);
	if (reply->more || reply->chunk > 0)
		kserve_reply_refuse_pieces(a, "generate_stream or gRPC's ModelStreamInfer");
	if (reply->more || reply->chunk > 0 ||
	    (!a->found && !kserve_reply_scan(a, reply, bytes, length)) ||
	    (a->found && !kserve_reply_find(a, reply, &outputs))) {
		reply->notice = LB_NOTICE_MODEL_ERROR;
		return written;
	}
	if (!a->found)
		return (struct stream_rewritten){0};
	/* Its first bytes may not be those that lie there. */
	reply_seek(a, &outputs, !json, reply);
	if (reply->taken != lies)
		length = 0;
	if (json)
		written = reply_write_json(a, &outputs, reply, bytes, length, (char *)at, room);
	else
		written = reply_copy_binary(a, &outputs, bytes, length, (char *)at, room);
	if (written.done)
		return written;
	if (!reply_seek(a, &outputs, a->writer.done, reply) && a->writer.done)
		written.done = true;
	return written;
}

/* --- heads -------------------------------------------------------------------------------------
 */

static uint16_t reply_status(const struct kserve_asked *a, uint8_t notice)
{
	static const uint16_t statuses[LB_NOTICE_CODES] = {
		[0] = 200,
		[LB_NOTICE_BUSY] = 503,
		[LB_NOTICE_TIMEOUT] = 504,
		[LB_NOTICE_WORKER_LOST] = 503,
		[LB_NOTICE_MODEL_ERROR] = 500,
		[LB_NOTICE_EXPIRED] = 504,
		[LB_NOTICE_CANCELLED] = KSERVE_CLIENT_GONE,
		[LB_NOTICE_DEADLINE] = 504,
		[LB_NOTICE_MALFORMED] = 400,
		[LB_NOTICE_STOPPING] = 503,
		[LB_NOTICE_TOO_LARGE] = 413,
	};

	return a->status != 0 ? a->status : statuses[notice % LB_NOTICE_CODES];
}

const char *kserve_reply_error(const struct kserve_asked *a, uint8_t notice)
{
	static const char *const errors[LB_NOTICE_CODES] = {
		[LB_NOTICE_BUSY] = "no worker has room for the request",
		[LB_NOTICE_TIMEOUT] = "the worker did not answer in time",
		[LB_NOTICE_WORKER_LOST] = "the worker that had the request was lost",
		[LB_NOTICE_MODEL_ERROR] = "the model failed, or its reply does not fit its outputs",
		[LB_NOTICE_EXPIRED] = "the deadline passed before the model ran",
		[LB_NOTICE_CANCELLED] = "cancelled",
		[LB_NOTICE_DEADLINE] = "cannot be answered within the deadline",
		[LB_NOTICE_MALFORMED] = "not valid",
		[LB_NOTICE_STOPPING] = "the load balancer stops",
		[LB_NOTICE_TOO_LARGE] = "too large",
	};
	const char *text = errors[notice % LB_NOTICE_CODES];

	return a->error[0] != '\0' ? a->error : text != NULL ? text : "failed";
}

/* The head of an error, and its JSON. */
static uint32_t reply_write_error(struct http_response *response, const struct kserve_asked *a,
				  uint8_t notice, char *at)
{
	char text[STREAM_HEAD_MAX - HTTP_RESPONSE_MAX];
	uint32_t length, n;

	length = kserve_error_write(kserve_reply_error(a, notice), text, sizeof(text));
	response->length = length;
	response->allow = a->allow;
	response->retry_after_s = response->status == 503;
	n = http_response_write(response, at);
	if (a->is_head)
		return n;
	memcpy(at + n, text, length);
	return n + length;
}

struct stream_piece kserve_reply(struct stream *s, struct stream_reply *reply, uint8_t *at)
{
	struct kserve_asked *a = (struct kserve_asked *)(uintptr_t)reply->tag;

	struct http_response response = {.status = reply_status(a, reply->notice),
					 .body = HTTP_LENGTH,
					 .type = HTTP_JSON,
					 .minor = a->minor,
					 .date = a->room->date};
	struct stream_piece piece = {.last = true};

	reply_note_drain(s, a);
	kserve_reply_note_row(a, reply);
	response.keep_alive = a->keep_alive;
	piece.closes = !a->keep_alive;
	if (a->mode == KSERVE_ANSWERS_EVENTS && (response.status == 200 || a->streaming))
		return kserve_text_reply(s, a, reply, at);
	if (response.status != 200) {
		piece.head = reply_write_error(&response, a, reply->notice, (char *)at);
	} else if (a->front != NULL) {
		piece.head = kserve_front_write(a->front, a->room->date, at);
		piece.bytes = reply->length;
		response.length =
			(uint64_t)a->front->text_length - a->front->head_length + reply->length;
	} else {
		response.length = reply->length;
		response.has_json_length = a->binary != 0;
		response.json_length = a->json_length;
		response.type = a->binary != 0 ? HTTP_OCTETS : HTTP_JSON;
		piece.head = http_response_write(&response, (char *)at);
		piece.bytes = reply->length;
	}
	reply->taken = reply->length;
	kserve_room_tell(s, a, response.status, a->is_head ? 0 : response.length);
	kserve_room_answered(s, a);
	return piece;
}
