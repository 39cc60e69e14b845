/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `kserve`, the requests: heads, the JSON of infer requests, and where the bytes of binary tensors
 * are. A call reads one slice and says at most one request's end, so the owner can stop after each.
 * kserve_body.c has chunks and what is behind the JSON, kserve_documents.c the answers of the load
 * balancer itself, kserve_reply.c those of workers.
 *
 * A request of up to KSERVE_HELD_MAX bytes with values in JSON begins when its JSON was read; of a
 * larger one the bytes leave as they are converted, so its size must be known before.
 */
#include <inttypes.h>
#include <string.h>

#include "framing/kserve_body.h"
#include "framing/kserve_documents.h"
#include "framing/kserve_reply.h"
#include "framing/kserve_seen.h"
#include "framing/kserve_tensors.h"
#include "framing/kserve_text.h"
#include "kserve/match.h"
#include "kserve/route.h"

/* Bytes of a refused body that are skipped at most; behind a longer one nothing is read. */
#define SKIP_MAX (UINT64_C(1) << 40)

/* --- values ------------------------------------------------------------------------------------
 */

/* Input <i> is described; those before it are complete. False: refused. */
static bool infer_input(struct kserve_reader *r, const struct kserve_model *m, uint8_t i)
{
	const struct kserve_input *input = &r->infer.input[i];
	bool first = r->rows == 0;
	int place = kserve_match_input(m, &r->infer, i, &r->rows);

	if (place < 0)
		return false;
	if (first)
		kserve_tensors_know_rows(r, m);
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

/* Converted bytes. */
static void infer_run(struct kserve_call *c)
{
	struct kserve_reader *r = c->reader;
	const struct kserve_model *m = &r->asked->layout->model;
	bool differ = kserve_tensors_differ(r, m), several = r->rows > 1 && !differ;
	struct kserve_places places;
	uint64_t size;

	if (!kserve_tensors_places(r, m, r->place[r->run.input], &places))
		return kserve_call_refuse(
			c, several ? 501 : 400,
			several ? "inputs[%u] ('%s'): several rows, and inputs behind it whose "
				  "size is not in the model; send them binary"
				: "inputs[%u] ('%s'): inputs whose size is not in the model must "
				  "be in the order of the model",
			r->run.input, r->infer.input[r->run.input].name);
	if (!r->begun && !differ && kserve_tensors_sum(r, m->inputs, &size) &&
	    size > sizeof(r->held) && (!kserve_call_begin(c, size) || !kserve_call_produce_held(c)))
		return;
	if (r->begun)
		kserve_call_produce_at(c, &places, r->run.offset);
	else if (!kserve_tensors_hold_at(r, &places, r->run.offset))
		kserve_call_refuse(c, 501,
				   differ ? KSERVE_ROWS_TOO_LONG
					  : "more than %u bytes of inputs whose size is not known "
					    "before their "
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
		kserve_call_refuse(c, 400, "output '%s': %s has no JSON form; ask for binary_data",
				   m->output[a->output[i]].name,
				   kserve_datatype_name(m->output[a->output[i]].type));
		return false;
	}
	return true;
}

/* Where the binary tensors are; those that lie side by side at both ends are one range. */
static void infer_find_ranges(struct kserve_reader *r)
{
	struct kserve_body *body = &r->asked->body;
	struct kserve_range *next = body->range_of;

	for (uint8_t i = 0; i < r->infer.inputs; i++) {
		const struct kserve_input *input = &r->infer.input[i];
		struct kserve_places p;

		kserve_tensors_places(r, &r->asked->layout->model, r->place[i], &p);
		if (!input->binary || input->bytes == 0)
			continue;
		body->wanted += input->bytes;
		if (input->type == KSERVE_BYTES) {
			body->of_elements |= (uint16_t)(1u << (next - body->range_of));
			*next++ = (struct kserve_range){.offset = p.within,
							.length = input->bytes,
							.input = i,
							.place = r->place[i],
							.elements = input->elements};
			continue;
		}
		if (next > body->range_of && p.each == 0 &&
		    (body->of_elements >> (next - 1 - body->range_of) & 1) == 0 &&
		    next[-1].offset + next[-1].length == p.within)
			next[-1].length += input->bytes;
		else
			*next++ = (struct kserve_range){.offset = p.within,
							.length = input->bytes,
							.each = p.each,
							.left = p.each,
							.skip = p.row - p.each};
	}
}

/* Does one row of bytes, all of which follow, make the request? Of one that is usual else. */
static bool infer_is_one_row(const struct kserve_reader *r)
{
	const struct kserve_body *body = &r->asked->body;

	return r->rows <= 1 && body->wanted > 0 && !r->head.chunked && !r->head.expects_100 &&
	       r->head.minor == 1 && r->head.keep_alive && body->wanted == body->size &&
	       body->left == body->size && body->range_of[0].offset == 0 &&
	       body->range_of[0].length == body->size && body->of_elements == 0;
}

/* All of a request is kept whose rows differ in length. If this turn is too short for them, the
 * last byte waits for another one: the owner calls only while there are bytes. */
static void rows_complete(struct kserve_call *c)
{
	struct kserve_reader *r = c->reader;
	uint32_t size = r->held_bytes;

	if (!kserve_room_may_work(c->room, kserve_tensors_cut_work(r))) {
		c->s->position -= 1u - r->ahead;
		r->ahead = 1;
		return;
	}
	if (!kserve_tensors_cut(r, &r->asked->layout->model, c->room))
		return kserve_call_refuse(c, r->infer.status, "%s", r->infer.error);
	if (!kserve_call_begin(c, size))
		return;
	kserve_call_produce(c, c->room->scratch, 0, size);
	kserve_body_place(c);
}

/* Its JSON was read: binary tensors follow, or none. */
static void rows_begin(struct kserve_call *c, uint64_t size)
{
	struct kserve_reader *r = c->reader;

	if (size > sizeof(r->held))
		return kserve_call_refuse(c, 501, KSERVE_ROWS_TOO_LONG, KSERVE_HELD_MAX);
	if (!infer_choose_outputs(c))
		return;
	infer_find_ranges(r);
	r->reading = KSERVE_READS_ROWS;
	if (r->asked->body.wanted == 0)
		rows_complete(c);
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
	if (kserve_tensors_differ(r, m))
		return rows_begin(c, size);
	if (!infer_choose_outputs(c) || (!r->begun && !kserve_call_begin(c, size)) ||
	    !kserve_call_produce_held(c))
		return;
	infer_find_ranges(r);
	if (infer_is_one_row(r))
		kserve_seen_keep(r, r->asked, c->settings->max_request,
				 c->s->position + r->ahead - r->text_from, KSERVE_SEEN_HTTP);
	kserve_body_place(c);
}

static void infer_end(struct kserve_call *c)
{
	struct kserve_reader *r = c->reader;
	struct kserve_infer *infer = &r->infer;
	const struct kserve_body *body = &r->asked->body;

	if (kserve_infer_end(infer) == KSERVE_REFUSED ||
	    (!infer->is_text &&
	     kserve_match_end(&r->asked->layout->model, infer) == KSERVE_REFUSED))
		return kserve_call_refuse(c, infer->status, "%s", infer->error);
	if (!body->chunked && infer->binary_bytes != body->left)
		return kserve_call_refuse(
			c, 400, "%" PRIu64 " bytes follow the JSON, its inputs have %" PRIu64,
			body->left, infer->binary_bytes);
	kserve_room_keep_id(r->asked, infer);
	if (infer->is_text)
		return kserve_text_end(c);
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

	if (r->json_left != UINT64_MAX)
		r->json_left -= fresh;
	r->asked->body.left -= fresh;
	r->progress += fresh;
	c->room->text_left -= (int32_t)r->run.work + 1;
	r->ahead = !more && used > 0;
	c->s->position += used - r->ahead;
}

static void json_step(struct kserve_call *c, enum kserve_step step)
{
	struct kserve_reader *r = c->reader;

	if (step == KSERVE_INPUT && !infer_input(r, &r->asked->layout->model, r->run.input))
		step = KSERVE_REFUSED;
	if (step == KSERVE_REFUSED)
		kserve_call_refuse(c, r->infer.status, "%s", r->infer.error);
	else if (step == KSERVE_RUN && r->run.length == 0)
		return;
	else if (step == KSERVE_RUN && r->asked->mode != KSERVE_ANSWERS_TENSORS)
		kserve_text_run(c);
	else if (step == KSERVE_RUN)
		infer_run(c);
	else if (step == KSERVE_MORE && r->json_left == 0)
		infer_end(c);
}

/* Between two chunks. */
static void json_read_lines(struct kserve_call *c, const uint8_t *bytes, uint32_t length)
{
	if (kserve_body_read_lines(c, bytes, length) != HTTP_CHUNK_END)
		return;
	if (c->reader->json_left != UINT64_MAX)
		return kserve_call_refuse(c, 400, "the body is shorter than its JSON");
	infer_end(c);
	if (c->asked != NULL && !c->room->text_waits)
		kserve_body_last(c);
}

static void json_read_slice(struct kserve_call *c, const uint8_t *bytes, uint32_t length)
{
	struct kserve_reader *r = c->reader;
	const char *start = (const char *)bytes, *at = start + r->ahead, *end = start + length;
	const struct kserve_body *body = &r->asked->body;
	enum kserve_step step;

	if (body->left == 0 && r->ahead == 0)
		return json_read_lines(c, bytes, length);
	if ((uint64_t)(end - at) > r->json_left)
		end = at + r->json_left;
	if ((uint64_t)(end - at) > body->left)
		end = at + body->left;
	r->run.at = c->room->scratch;
	r->run.budget = kserve_tensors_slice(c->room);
	r->run.room = KSERVE_SLICE + KSERVE_RUN_MIN;
	step = kserve_infer_read(&r->infer, &at, end, &r->run);
	json_advance(c, (uint32_t)(at - start), step == KSERVE_MORE);
	json_step(c, step);
}

/* --- heads -------------------------------------------------------------------------------------
 */

static void infer_prepare(struct kserve_call *c)
{
	struct kserve_reader *r = c->reader;
	struct kserve_layout *layout = c->room->layout;

	r->asked->layout = layout;
	r->asked->max_request = c->room->max_request;
	layout->users++;
	kserve_infer_init(&r->infer,
			  r->asked->mode != KSERVE_ANSWERS_TENSORS
				  ? kserve_text_max(c->room->max_request)
				  : kserve_room_batch_max(&layout->model, c->room->max_request),
			  r->early, sizeof(r->early));
	kserve_tensors_know_fixed(r, &layout->model);
	if (r->head.has_json_length && r->asked->mode == KSERVE_ANSWERS_TENSORS)
		r->json_left = r->head.json_length;
	else
		r->json_left = r->head.chunked ? UINT64_MAX : r->asked->body.left;
	r->reading = KSERVE_READS_JSON;
}

/* The body is the only input, of <bytes>. False: refused. */
static bool raw_match(struct kserve_call *c, uint64_t bytes)
{
	struct kserve_reader *r = c->reader;

	if (kserve_match_raw(&r->asked->layout->model, &r->infer, bytes) != KSERVE_REFUSED)
		return true;
	kserve_call_refuse(c, r->infer.status, "%s", r->infer.error);
	return false;
}

/* Bytes of a raw input whose free dimension is 1. */
static uint64_t raw_unit(const struct kserve_model *m)
{
	uint64_t bytes = kserve_tensors_size(m, 0);

	for (uint8_t k = 0; k < m->input[0].dims; k++)
		bytes *= m->input[0].shape[k] < 0 ? 1 : (uint64_t)m->input[0].shape[k];
	return bytes;
}

static void infer_raw(struct kserve_call *c)
{
	struct kserve_reader *r = c->reader;
	struct kserve_body *body = &r->asked->body;

	body->unit = raw_unit(&r->asked->layout->model);
	if (!raw_match(c, body->chunked ? body->unit : body->left))
		return;
	r->place[0] = 0;
	if (body->chunked && (r->known & 1) == 0)
		r->reading = KSERVE_READS_RAW;
	else
		infer_complete(c);
}

/* More came than is kept: the request takes all the room that it may need. */
static void raw_grow(struct kserve_call *c)
{
	struct kserve_reader *r = c->reader;
	struct kserve_body *body = &r->asked->body;
	uint64_t most = r->asked->max_request;

	if (!infer_choose_outputs(c) || !kserve_call_begin(c, most) || !kserve_call_produce_held(c))
		return;
	body->grows = true;
	body->wanted = most - r->held_to;
	body->range_of[0] = (struct kserve_range){.offset = r->held_to, .length = body->wanted};
	kserve_body_place(c);
}

/* All of it is kept. */
static void raw_end(struct kserve_call *c)
{
	struct kserve_reader *r = c->reader;

	if (raw_match(c, r->held_bytes) && infer_choose_outputs(c) &&
	    kserve_call_begin(c, r->held_bytes) && kserve_call_produce_held(c))
		kserve_body_last(c);
}

/* Keeps <n> bytes of the body, which belong at <offset>. */
static void held_take(struct kserve_call *c, uint32_t offset, const uint8_t *bytes, uint32_t n)
{
	struct kserve_reader *r = c->reader;

	memcpy(r->held + offset, bytes, n);
	r->held_bytes += n;
	r->progress += n;
	c->room->text_left -= (int32_t)(n / 4 + 1);
	c->s->position += n;
	r->asked->body.left -= n;
}

/* Of all that is kept the last byte was not said to be read. */
static void rows_resume(struct kserve_call *c)
{
	const struct kserve_body *body = &c->reader->asked->body;

	rows_complete(c);
	if (body->ended && c->asked != NULL && !c->room->text_waits)
		kserve_body_last(c);
}

/* Binary tensors of rows that differ in length. */
static void rows_read_slice(struct kserve_call *c, const uint8_t *bytes, uint32_t length)
{
	struct kserve_body *body = &c->reader->asked->body;
	struct kserve_range *range = &body->range_of[body->range];
	uint32_t n = length < range->length ? length : (uint32_t)range->length;

	if (body->wanted == 0)
		return rows_resume(c);
	if (body->left == 0) {
		if (kserve_body_read_lines(c, bytes, length) == HTTP_CHUNK_END)
			kserve_body_last(c);
		return;
	}
	n = n < body->left ? n : (uint32_t)body->left;
	held_take(c, (uint32_t)range->offset, bytes, n);
	range->offset += n;
	range->length -= n;
	body->range += range->length == 0;
	body->wanted -= n;
	if (body->wanted == 0)
		rows_complete(c);
}

static void raw_read_slice(struct kserve_call *c, const uint8_t *bytes, uint32_t length)
{
	struct kserve_reader *r = c->reader;
	struct kserve_body *body = &r->asked->body;
	uint32_t n = length < body->left ? length : (uint32_t)body->left;
	enum http_chunk result;

	if (n == 0) {
		result = kserve_body_read_lines(c, bytes, length);
		if (result == HTTP_CHUNK_END)
			raw_end(c);
		else if (result == HTTP_CHUNK_DATA && body->left > sizeof(r->held) - r->held_bytes)
			raw_grow(c);
		return;
	}
	held_take(c, r->held_to, bytes, n);
	r->held_to += n;
}

/* Why the load balancer cannot take this infer request now; false: it can. */
static bool infer_is_refused(struct kserve_call *c)
{
	struct kserve_reader *r = c->reader;
	const char *model = c->room->model;
	const struct kserve_layout *layout = c->room->layout;
	uint64_t most = c->room->max_request;

	if (layout != NULL)
		most = kserve_room_batch_max(&layout->model, most);
	most = kserve_room_body_max(most);
	r->asked->body.chunks.max = most;
	if (!r->head.chunked && !r->head.has_length)
		kserve_call_refuse(c, 411, "send Content-Length, or chunks");
	else if (r->head.length > most || (r->head.has_json_length && r->head.json_length > most))
		kserve_call_refuse(c, 413, "the body is too large");
	else if (!r->head.chunked &&
		 (r->asked->body.left == 0 ||
		  (r->head.has_json_length && r->head.json_length > r->asked->body.left)))
		kserve_call_refuse(c, 400, "the body is shorter than its JSON");
	else if (!c->room->serving)
		kserve_call_refuse(c, 503, "the model '%s' has no workers", model);
	else if (c->room->layout == NULL)
		kserve_call_refuse(c, 501, "the workers of the model '%s' do not describe it",
				   model);
	else
		return false;
	return true;
}

static void head_infer(struct kserve_call *c, enum kserve_mode mode)
{
	struct kserve_reader *r = c->reader;

	if (infer_is_refused(c) || (mode != KSERVE_ANSWERS_TENSORS && !kserve_text_begin(c, mode)))
		return;
	if (r->asked->body.awaited) {
		struct stream_action *action = kserve_call_add(c, STREAM_SEND);

		action->bytes.at = (const uint8_t *)HTTP_CONTINUE;
		action->bytes.length = sizeof(HTTP_CONTINUE) - 1;
		action->bytes.of_request = true;
		r->asked->body.awaited = false;
	}
	infer_prepare(c);
	r->infer.is_text = mode != KSERVE_ANSWERS_TENSORS;
	if (r->json_left == 0)
		infer_raw(c);
}

/* Makes the service of the route's model the current one, if there is one. */
static bool head_is_elsewhere(const struct kserve_call *c, const struct kserve_route *route)
{
	if (route->model[0] == '\0')
		return false;
	if (!c->room->find(c->room, route->model))
		return true;
	return route->version[0] != '\0' && c->room->layout != NULL &&
	       strcmp(route->version, c->room->layout->model.version[0]) != 0;
}

/* A valid head: the request goes to its endpoint. */
static void head_route(struct kserve_call *c)
{
	const struct http_head *head = &c->reader->head;
	struct kserve_route route;
	uint16_t status = kserve_route(head->path, head->path_length, &route);

	c->asked->endpoint = kserve_endpoint_name(route.endpoint);
	if (status != 0)
		return kserve_call_refuse(c, status, "%s",
					  status == 404   ? "there is no such endpoint"
					  : status == 501 ? "this endpoint is not there"
							  : "the name in the path is not valid");
	if (!(head->method == HTTP_POST ? route.is_post : route.is_get)) {
		c->reader->asked->allow = kserve_route_allow(&route);
		return kserve_call_refuse(c, 405, "this endpoint takes %s",
					  kserve_route_allow(&route));
	}
	if (head_is_elsewhere(c, &route))
		return kserve_call_refuse(c, 404, "there is no model '%s'%s%s here", route.model,
					  route.version[0] != '\0' ? " of version " : "",
					  route.version);
	if (route.model[0] != '\0')
		kserve_room_found(c->asked);
	if (route.endpoint == KSERVE_MODEL_INFER)
		return head_infer(c, KSERVE_ANSWERS_TENSORS);
	if (route.endpoint == KSERVE_MODEL_GENERATE)
		return head_infer(c, KSERVE_ANSWERS_TEXT);
	if (route.endpoint == KSERVE_MODEL_GENERATE_STREAM)
		return head_infer(c, KSERVE_ANSWERS_EVENTS);
	kserve_document_answer(c, &route);
}

static void head_done(struct kserve_call *c)
{
	const struct http_head *head = &c->reader->head;
	struct kserve_asked *a = kserve_room_ask(c->room, c->s);
	struct kserve_body *body = &a->body;

	c->asked = c->reader->asked = a;
	a->number = body->request = c->s->requests++;
	body->broken = head->broken || (head->status != 0 && head->length > SKIP_MAX);
	body->awaited = head->expects_100;
	body->chunked = head->chunked && !body->broken;
	body->chunks.max = head->max_body;
	body->left = body->broken || body->chunked ? 0 : head->length;
	a->bytes_in = body->left;
	a->minor = head->minor;
	a->keep_alive = head->keep_alive && !body->broken;
	a->is_head = head->method == HTTP_HEAD;
	if (head->status == 405)
		a->allow = "GET, HEAD, POST";
	if (head->status != 0)
		return kserve_call_refuse(c, head->status, "%s", http_reason(head->status));
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

/* A request that was read before is said at once. False: it is to be read. */
static bool head_is_known(struct kserve_call *c, const uint8_t *bytes, uint32_t length)
{
	const struct kserve_seen *seen = kserve_seen_find(c->room, c->settings->max_request, bytes,
							  length, KSERVE_SEEN_HTTP);
	struct stream_action *action = &c->actions[c->n];
	struct kserve_asked *a;

	if (seen == NULL)
		return false;
	a = kserve_room_ask(c->room, c->s);
	a->number = a->body.request = action->request = c->s->requests++;
	a->endpoint = kserve_endpoint_name(KSERVE_MODEL_INFER);
	a->minor = 1;
	a->keep_alive = true;
	kserve_seen_apply(seen, a, c->s->position, action);
	c->n++;
	c->s->position += seen->length + seen->begin.size;
	kserve_room_was_read(c->s, a);
	return true;
}

static unsigned int stream_kserve_read(struct stream *s, const struct stream_settings *settings,
				       const uint8_t *bytes, uint32_t length,
				       struct stream_action *actions, unsigned int max)
{
	struct kserve_call c = {
		.s = s, .room = settings->kserve, .settings = settings, .actions = actions};
	bool fresh = s->own == NULL;

	if (max < STREAM_ACTIONS_MIN || length == 0 || s->position == STREAM_CLOSED)
		return 0;
	c.asked = kserve_room_asked(s);
	if (c.asked != NULL && fresh) {
		kserve_body_read(&c, bytes, length);
		return c.n;
	}
	/* Of a connection's first request a byte may have been read. */
	if (fresh && (s->position == 0 || s->position >= sizeof(STREAM_PREFACE)) &&
	    head_is_known(&c, bytes, length))
		return c.n;
	c.reader = kserve_room_reader(settings->kserve, s);
	if (c.reader == NULL)
		return 0;
	if (fresh) {
		kserve_seen_begin(c.reader, s->position, bytes, length);
		http_head_init(&c.reader->head,
			       kserve_room_body_max(2 * KSERVE_ROWS_MAX * settings->max_request));
		/* Bytes in which stream_kserve_any saw the beginning of a preface. */
		if (s->position < sizeof(STREAM_PREFACE) - 1)
			http_head_read(&c.reader->head, STREAM_PREFACE, (uint32_t)s->position);
	}
	if (c.reader->reading == KSERVE_READS_HEAD)
		head_read_slice(&c, bytes, length);
	else if (c.reader->reading == KSERVE_READS_JSON)
		json_read_slice(&c, bytes, length);
	else if (c.reader->reading == KSERVE_READS_ROWS)
		rows_read_slice(&c, bytes, length);
	else
		raw_read_slice(&c, bytes, length);
	return c.n;
}

const struct stream_framing stream_kserve = {
	.name = "kserve",
	.in_order = true,
	.head_max = STREAM_HEAD_MAX,
	.read = stream_kserve_read,
	.reply = kserve_reply,
	.keeps = kserve_keeps,
	.rewrite = kserve_rewrite,
	.beat = kserve_text_beat,
	.release = kserve_room_release,
};
