/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `kserve`, the requests: heads, the JSON of infer requests, and where the bytes of binary tensors
 * are. A call reads one slice and says at most one request's end, so the owner can stop after each.
 * Answers are written by stream_kserve_reply.c.
 *
 * A request of up to KSERVE_HELD_MAX bytes with values in JSON begins when its JSON was read; of a
 * larger one the bytes leave as they are converted, so its size must be known before.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "framing/kserve_reply.h"
#include "framing/kserve_tensors.h"
#include "kserve/documents.h"
#include "kserve/match.h"
#include "kserve/route.h"
#include "packet/drop.h"
#include "packet/notice.h"

/* A body may be longer than the request that it becomes: text takes more bytes than numbers. */
#define TEXT_PER_BYTE 16
#define TEXT_MORE     65536
/* Bytes of a refused body that are skipped at most; behind a longer one nothing is read. */
#define SKIP_MAX (UINT64_C(1) << 40)

/* One call of read(). */
struct kserve_call {
	struct stream *s;
	struct kserve_room *room;
	struct kserve_reader *reader;
	const struct stream_settings *settings;
	struct stream_action *actions;
	unsigned int n;
};

static struct stream_action *call_add(struct kserve_call *c, enum stream_action_kind kind)
{
	struct stream_action *action = &c->actions[c->n++];

	*action = (struct stream_action){.kind = (uint8_t)kind, .request = c->reader->request};
	return action;
}

/* Nothing more is read of the stream. */
static void call_close(struct kserve_call *c)
{
	call_add(c, STREAM_CLOSE)->request = 0;
	c->s->position = STREAM_CLOSED;
}

/* All of the request was read, or is not going to be. The rest of its body is skipped. */
static void call_finish(struct kserve_call *c, bool keep_alive, bool broken)
{
	struct kserve_reader *r = c->reader;

	c->s->position += r->ahead + r->body_left;
	kserve_room_give_reader(c->s);
	if (broken || !keep_alive)
		call_close(c);
}

static __attribute__((format(printf, 3, 4))) void
call_refuse(struct kserve_call *c, uint16_t status, const char *format, ...)
{
	struct kserve_reader *r = c->reader;
	struct kserve_asked *a = r->asked;
	bool too_large = status == 413, keep_alive = a->keep_alive, closes;
	struct stream_action *action = call_add(c, STREAM_REFUSE);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(a->error, sizeof(a->error), format, arguments);
	va_end(arguments);
	a->status = status;
	action->refuse.tag = (uintptr_t)a;
	action->refuse.notice = status == 503 ? LB_NOTICE_BUSY
				: too_large   ? LB_NOTICE_TOO_LARGE
					      : LB_NOTICE_MALFORMED;
	action->refuse.reason = status == 503 ? LB_DROP_NO_WORKER
				: too_large   ? LB_DROP_REQUEST_TOO_LARGE
					      : LB_DROP_FRAMING;
	/* A client that waits for 100 Continue may leave its body out now, or send it. */
	closes = r->head.broken || r->head.chunked || (r->head.expects_100 && !r->begun);
	a->keep_alive = keep_alive && !closes;
	call_finish(c, a->keep_alive, closes);
}

/* --- values ------------------------------------------------------------------------------------
 */

/* Input <i> is described; those before it are complete. False: refused. */
static bool infer_input(struct kserve_reader *r, const struct kserve_model *m, uint8_t i)
{
	const struct kserve_input *input = &r->infer.input[i];
	int place = kserve_match_input(m, &r->infer, i, &r->rows);

	if (place < 0)
		return false;
	r->place[i] = (uint8_t)place;
	if (i > 0)
		kserve_tensors_know(r, r->place[i - 1], r->infer.input[i - 1].bytes);
	if (input->binary)
		kserve_tensors_know(r, (uint8_t)place, input->bytes);
	else if (kserve_tensors_size(m, (uint8_t)place) > 0)
		kserve_tensors_know(r, (uint8_t)place,
				    input->elements * kserve_tensors_size(m, (uint8_t)place));
	return true;
}

/* False: it was refused, for its size. */
static bool infer_begin(struct kserve_call *c, uint64_t size)
{
	struct kserve_reader *r = c->reader;
	struct stream_action *action;

	if (size > c->settings->max_request) {
		call_refuse(c, 413, "the inputs have %" PRIu64 " bytes, the service takes %" PRIu64,
			    size, c->settings->max_request);
		return false;
	}
	if (size == 0) {
		call_refuse(c, 400, "the inputs have no bytes");
		return false;
	}
	r->begun = true;
	r->size = size;
	action = call_add(c, STREAM_BEGIN);
	action->begin.size = size;
	action->begin.tag = (uintptr_t)r->asked;
	action->begin.deadline_us = kserve_tensors_deadline(&r->infer);
	action->begin.priority = kserve_tensors_priority(&r->infer);
	return true;
}

static void infer_produce(struct kserve_call *c, const uint8_t *bytes, uint64_t offset,
			  uint32_t length)
{
	struct stream_action *action = call_add(c, STREAM_PRODUCE);

	action->bytes.at = bytes;
	action->bytes.offset = offset;
	action->bytes.length = length;
}

/* Produces what is kept. False: it is not in one piece, and the request was refused. */
static bool infer_produce_held(struct kserve_call *c)
{
	struct kserve_reader *r = c->reader;

	if (r->held_bytes == 0)
		return true;
	if (r->held_bytes != r->held_to - r->held_from) {
		call_refuse(c, 501,
			    "inputs in JSON around others of the model; send them in the order of "
			    "the model, or all binary");
		return false;
	}
	infer_produce(c, r->held + r->held_from, r->held_from, r->held_bytes);
	r->held_bytes = 0;
	return true;
}

/* Converted bytes. */
static void infer_run(struct kserve_call *c)
{
	struct kserve_reader *r = c->reader;
	const struct kserve_model *m = &r->asked->layout->model;
	uint64_t offset, size;

	if (!kserve_tensors_sum(r, r->place[r->run.input], &offset))
		return call_refuse(c, 400,
				   "inputs[%u] ('%s'): inputs whose size is not in the model must "
				   "be in the order of the model",
				   r->run.input, r->infer.input[r->run.input].name);
	offset += r->run.offset;
	if (!r->begun && kserve_tensors_sum(r, m->inputs, &size) && size > sizeof(r->held) &&
	    (!infer_begin(c, size) || !infer_produce_held(c)))
		return;
	if (r->begun)
		infer_produce(c, r->run.at, offset, r->run.length);
	else if (!kserve_tensors_hold(r, offset))
		call_refuse(c, 501,
			    "more than %u bytes of inputs whose size is not known before their "
			    "values; send them binary",
			    KSERVE_HELD_MAX);
}

/* --- the end of the JSON -----------------------------------------------------------------------
 */

/* The outputs that the client asked for, all of the model's if it named none. False: refused. */
static bool infer_choose_outputs(struct kserve_call *c)
{
	const struct kserve_infer *infer = &c->reader->infer;
	struct kserve_asked *a = c->reader->asked;
	const struct kserve_model *m = &a->layout->model;

	a->outputs = infer->outputs > 0 ? infer->outputs : m->outputs;
	for (uint8_t i = 0; i < a->outputs; i++) {
		const struct kserve_output_choice *o = &infer->output[i];
		bool named = infer->outputs > 0;
		bool binary = named && o->is_chosen ? o->binary : infer->binary_outputs;

		a->output[i] = named ? (uint8_t)kserve_match_output(m, o->name) : i;
		a->binary |= (uint16_t)(binary << i);
		if (binary || kserve_datatype_has_json(m->output[a->output[i]].type))
			continue;
		call_refuse(c, 400, "output '%s': %s has no JSON form; ask for binary_data",
			    m->output[a->output[i]].name,
			    kserve_datatype_name(m->output[a->output[i]].type));
		return false;
	}
	return true;
}

/* Where the binary tensors are; those that lie side by side at both ends are one range. */
static void infer_find_ranges(struct kserve_reader *r)
{
	for (uint8_t i = 0; i < r->infer.inputs; i++) {
		const struct kserve_input *input = &r->infer.input[i];
		struct kserve_range *last = &r->binary[r->ranges > 0 ? r->ranges - 1 : 0];
		uint64_t offset;

		kserve_tensors_sum(r, r->place[i], &offset);
		if (!input->binary || input->bytes == 0)
			continue;
		if (r->ranges > 0 && last->offset + last->length == offset)
			last->length += input->bytes;
		else
			r->binary[r->ranges++] = (struct kserve_range){offset, input->bytes};
	}
}

/* Names the next range; behind the last one the request ends. */
static void infer_next_range(struct kserve_call *c)
{
	struct kserve_reader *r = c->reader;
	bool keep_alive = r->asked->keep_alive;

	if (r->range < r->ranges) {
		const struct kserve_range *range = &r->binary[r->range++];
		struct stream_action *action = call_add(c, STREAM_EXTENT);

		action->extent.position = c->s->position;
		action->extent.offset = range->offset;
		action->extent.length = range->length;
		c->s->position += range->length;
		r->body_left -= range->length;
	}
	if (r->range < r->ranges)
		return;
	call_add(c, STREAM_END)->size = r->size;
	call_finish(c, true, false);
	/* The answer closes the connection. */
	if (!keep_alive)
		c->s->position = STREAM_CLOSED;
}

/* All of the JSON was read: the request begins, if it has not; its binary tensors follow. */
static void infer_complete(struct kserve_call *c)
{
	struct kserve_reader *r = c->reader;
	const struct kserve_model *m = &r->asked->layout->model;
	uint64_t size;

	for (uint8_t i = 0; i < r->infer.inputs; i++)
		kserve_tensors_know(r, r->place[i], r->infer.input[i].bytes);
	kserve_tensors_sum(r, m->inputs, &size);
	if (!infer_choose_outputs(c) || (!r->begun && !infer_begin(c, size)) ||
	    !infer_produce_held(c))
		return;
	infer_find_ranges(r);
	r->reading = KSERVE_READS_BINARY;
	infer_next_range(c);
}

static void infer_end(struct kserve_call *c)
{
	struct kserve_reader *r = c->reader;
	struct kserve_infer *infer = &r->infer;

	if (kserve_infer_end(infer) == KSERVE_REFUSED ||
	    kserve_match_end(&r->asked->layout->model, infer) == KSERVE_REFUSED)
		return call_refuse(c, infer->status, "%s", infer->error);
	if (infer->binary_bytes != r->body_left)
		return call_refuse(c, 400,
				   "%" PRIu64 " bytes follow the JSON, its inputs have %" PRIu64,
				   r->body_left, infer->binary_bytes);
	memcpy(r->asked->id, infer->id, infer->id_length);
	r->asked->id_length = infer->id_length;
	r->asked->has_id = infer->has_id;
	infer_complete(c);
}

/* --- the JSON ----------------------------------------------------------------------------------
 */

/* <used> bytes behind the stream's position were read; the last one stays until all that follows
 * from it was said. */
static void json_advance(struct kserve_call *c, uint32_t used, bool more)
{
	struct kserve_reader *r = c->reader;
	uint32_t fresh = used - r->ahead;

	r->json_left -= fresh;
	r->body_left -= fresh;
	r->progress += fresh;
	c->room->text_left -= (int32_t)fresh + 1;
	r->ahead = !more && used > 0;
	c->s->position += used - r->ahead;
}

static void json_step(struct kserve_call *c, enum kserve_step step)
{
	struct kserve_reader *r = c->reader;

	if (step == KSERVE_INPUT && !infer_input(r, &r->asked->layout->model, r->run.input))
		step = KSERVE_REFUSED;
	if (step == KSERVE_REFUSED)
		call_refuse(c, r->infer.status, "%s", r->infer.error);
	else if (step == KSERVE_RUN && r->run.length > 0)
		infer_run(c);
	else if (step == KSERVE_MORE && r->json_left == 0)
		infer_end(c);
}

static void json_read_slice(struct kserve_call *c, const uint8_t *bytes, uint32_t length)
{
	struct kserve_reader *r = c->reader;
	const char *start = (const char *)bytes, *at = start + r->ahead, *end = start + length;
	enum kserve_step step;

	if ((uint64_t)(end - at) > r->json_left)
		end = at + r->json_left;
	if (end - at > KSERVE_SLICE)
		end = at + KSERVE_SLICE;
	r->run.at = c->room->scratch;
	r->run.room = KSERVE_SLICE;
	step = kserve_infer_read(&r->infer, &at, end, &r->run);
	json_advance(c, (uint32_t)(at - start), step == KSERVE_MORE);
	json_step(c, step);
}

/* --- answers of the load balancer itself -------------------------------------------------------
 */

/* Answers with what <out> wrote behind the room of a head. */
static void document_send(struct kserve_call *c, struct json_out *out, uint16_t status)
{
	const struct http_head *head = &c->reader->head;
	uint8_t *body = c->room->scratch + HTTP_RESPONSE_MAX;
	uint32_t length = (uint32_t)((uint8_t *)out->at - body), n;
	bool keep_alive = head->keep_alive;
	struct http_response response = {.status = status,
					 .body = HTTP_LENGTH,
					 .type = length > 0 ? HTTP_JSON : HTTP_NO_TYPE,
					 .minor = head->minor,
					 .keep_alive = keep_alive,
					 .length = length,
					 .retry_after_s = status == 503,
					 .date = c->room->date};
	char text[HTTP_RESPONSE_MAX];
	struct stream_action *action;

	n = http_response_write(&response, text);
	memcpy(body - n, text, n);
	action = call_add(c, STREAM_SEND);
	action->bytes.at = body - n;
	action->bytes.length = n + (head->method == HTTP_HEAD ? 0 : length);
	action->bytes.of_request = true;
	action->bytes.ends = true;
	kserve_room_answered(c->s, c->reader->asked);
	call_finish(c, keep_alive, false);
}

static void document_of_model(struct kserve_call *c, const struct kserve_route *route,
			      struct json_out *out)
{
	struct kserve_layout *layout = c->room->layout;

	if (layout == NULL && c->room->serving)
		return call_refuse(c, 501, "the workers of the model '%s' do not describe it",
				   route->model);
	if (layout == NULL)
		return call_refuse(c, 503, "the model '%s' has no workers", route->model);
	if (route->endpoint == KSERVE_MODEL)
		kserve_write_model(out, &layout->model);
	else
		kserve_write_config(out, &layout->model);
	document_send(c, out, 200);
}

/* A GET of an endpoint that exists. */
static void document_answer(struct kserve_call *c, const struct kserve_route *route)
{
	char *body = (char *)c->room->scratch + HTTP_RESPONSE_MAX;
	struct json_out out = {body, body + KSERVE_DOCUMENT, false};
	uint16_t status = c->room->serving ? 200 : 503;

	switch (route->endpoint) {
	case KSERVE_SERVER:
		kserve_write_server(&out, "doorbell", c->room->version);
		return document_send(c, &out, 200);
	case KSERVE_LIVE:
		kserve_write_health(&out, "live", true);
		return document_send(c, &out, 200);
	case KSERVE_READY:
	case KSERVE_MODEL_READY:
		kserve_write_health(&out, "ready", c->room->serving);
		return document_send(c, &out, status);
	case KSERVE_MODEL:
	case KSERVE_MODEL_CONFIG:
		return document_of_model(c, route, &out);
	default:
		return call_refuse(c, 501, "this endpoint is not there yet");
	}
}

/* --- heads -------------------------------------------------------------------------------------
 */

static void infer_prepare(struct kserve_call *c)
{
	struct kserve_reader *r = c->reader;
	struct kserve_layout *layout = c->room->layout;

	r->asked->layout = layout;
	layout->users++;
	kserve_infer_init(&r->infer, c->settings->max_request, r->early, sizeof(r->early));
	kserve_tensors_know_fixed(r, &layout->model);
	r->json_left = r->head.has_json_length ? r->head.json_length : r->body_left;
	r->reading = KSERVE_READS_JSON;
}

/* The body is the only input. */
static void infer_raw(struct kserve_call *c)
{
	struct kserve_reader *r = c->reader;
	const struct kserve_model *m = &r->asked->layout->model;

	if (kserve_match_raw(m, &r->infer, r->body_left) == KSERVE_REFUSED)
		return call_refuse(c, r->infer.status, "%s", r->infer.error);
	r->place[0] = 0;
	infer_complete(c);
}

/* Why the load balancer cannot take this infer request now; false: it can. */
static bool infer_is_refused(struct kserve_call *c)
{
	struct kserve_reader *r = c->reader;
	const char *model = c->room->model;

	if (r->head.chunked)
		call_refuse(c, 411, "chunked bodies are not taken; send Content-Length");
	else if (!r->head.has_length)
		call_refuse(c, 411, "send Content-Length");
	else if (r->body_left == 0 ||
		 (r->head.has_json_length && r->head.json_length > r->body_left))
		call_refuse(c, 400, "the body is shorter than its JSON");
	else if (!c->room->serving)
		call_refuse(c, 503, "the model '%s' has no workers", model);
	else if (c->room->layout == NULL)
		call_refuse(c, 501, "the workers of the model '%s' do not describe it", model);
	else if (!kserve_reply_is_possible(&c->room->layout->model))
		call_refuse(c, 501, "an output of the model '%s' that is not its last has BYTES",
			    model);
	else
		return false;
	return true;
}

static void head_infer(struct kserve_call *c)
{
	struct kserve_reader *r = c->reader;

	if (infer_is_refused(c))
		return;
	if (r->head.expects_100) {
		struct stream_action *action = call_add(c, STREAM_SEND);

		action->bytes.at = (const uint8_t *)HTTP_CONTINUE;
		action->bytes.length = sizeof(HTTP_CONTINUE) - 1;
		action->bytes.of_request = true;
		r->head.expects_100 = false;
	}
	infer_prepare(c);
	if (r->json_left == 0)
		infer_raw(c);
}

static bool head_is_elsewhere(const struct kserve_call *c, const struct kserve_route *route)
{
	const struct kserve_layout *layout = c->room->layout;

	if (route->model[0] == '\0')
		return false;
	return strcmp(route->model, c->room->model) != 0 ||
	       (route->version[0] != '\0' && layout != NULL &&
		strcmp(route->version, layout->model.version[0]) != 0);
}

/* A valid head: the request goes to its endpoint. */
static void head_route(struct kserve_call *c)
{
	const struct http_head *head = &c->reader->head;
	struct kserve_route route;
	uint16_t status = kserve_route(head->path, head->path_length, &route);

	if (status != 0)
		return call_refuse(c, status, "%s",
				   status == 404   ? "there is no such endpoint"
				   : status == 501 ? "this endpoint is not there"
						   : "the name in the path is not valid");
	if (!(head->method == HTTP_POST ? route.is_post : route.is_get)) {
		c->reader->asked->allow = kserve_route_allow(&route);
		return call_refuse(c, 405, "this endpoint takes %s", kserve_route_allow(&route));
	}
	if (head_is_elsewhere(c, &route))
		return call_refuse(c, 404, "there is no model '%s'%s%s here", route.model,
				   route.version[0] != '\0' ? " of version " : "", route.version);
	if (route.endpoint == KSERVE_MODEL_INFER)
		return head_infer(c);
	if (head->chunked)
		return call_refuse(c, 411, "chunked bodies are not taken; send Content-Length");
	document_answer(c, &route);
}

static void head_done(struct kserve_call *c)
{
	struct kserve_reader *r = c->reader;
	const struct http_head *head = &r->head;

	r->asked = kserve_room_ask(c->room, c->s);
	r->asked->minor = head->minor;
	r->head.broken |= head->status != 0 && head->length > SKIP_MAX;
	r->asked->keep_alive = head->keep_alive && !head->broken;
	r->asked->is_head = head->method == HTTP_HEAD;
	r->body_left = head->broken || head->chunked ? 0 : head->length;
	r->request = c->s->requests++;
	if (head->status == 405)
		r->asked->allow = "GET, HEAD, POST";
	if (head->status != 0)
		return call_refuse(c, head->status, "%s", http_reason(head->status));
	head_route(c);
}

static void head_read_slice(struct kserve_call *c, const uint8_t *bytes, uint32_t length)
{
	struct kserve_reader *r = c->reader;
	uint32_t n = length < KSERVE_SLICE ? length : KSERVE_SLICE;

	n = http_head_read(&r->head, (const char *)bytes, n);
	r->progress += n;
	c->room->text_left -= (int32_t)(n / 4 + 1);
	c->s->position += n;
	if (r->head.done)
		head_done(c);
}

/* -----------------------------------------------------------------------------------------------
 */

static unsigned int stream_kserve_read(struct stream *s, const struct stream_settings *settings,
				       const uint8_t *bytes, uint32_t length,
				       struct stream_action *actions, unsigned int max)
{
	struct kserve_call c = {
		.s = s, .room = settings->kserve, .settings = settings, .actions = actions};
	bool fresh = s->own == NULL;

	if (max < STREAM_ACTIONS_MIN || length == 0 || s->position == STREAM_CLOSED)
		return 0;
	c.reader = kserve_room_reader(settings->kserve, s);
	if (c.reader == NULL)
		return 0;
	if (fresh) {
		http_head_init(&c.reader->head, settings->max_request * TEXT_PER_BYTE + TEXT_MORE);
		/* Bytes in which stream_kserve_any saw the beginning of a preface. */
		if (s->position < sizeof(STREAM_PREFACE) - 1)
			http_head_read(&c.reader->head, STREAM_PREFACE, (uint32_t)s->position);
	}
	if (c.reader->reading == KSERVE_READS_HEAD)
		head_read_slice(&c, bytes, length);
	else if (c.reader->reading == KSERVE_READS_JSON)
		json_read_slice(&c, bytes, length);
	else
		infer_next_range(&c);
	return c.n;
}

const struct stream_framing stream_kserve = {
	.name = "kserve",
	.in_order = true,
	.head_max = STREAM_HEAD_MAX,
	.read = stream_kserve_read,
	.reply = kserve_reply,
	.rewrite = kserve_rewrite,
	.release = kserve_room_release,
};
