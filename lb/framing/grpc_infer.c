/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages to ModelInfer as requests: where each byte of a tensor goes. A request begins when the
 * sizes of all its tensors are known; raw ones then have their place before they come. Others are
 * kept until then, as far as there is room.
 */
#include <inttypes.h>
#include <string.h>

#include "framing/grpc_infer.h"
#include "framing/kserve_reply.h"
#include "framing/kserve_seen.h"
#include "framing/kserve_tensors.h"
#include "kserve/match.h"

/* Why the current service cannot take it now; false: it can. */
static bool tensors_is_refused(struct grpc_call *c, struct grpc_stream *s)
{
	const struct kserve_room *room = c->room;

	if (!room->serving)
		grpc_call_refuse(c, s, 503, "the model '%s' has no workers", room->model);
	else if (room->layout == NULL)
		grpc_call_refuse(c, s, 501, "the workers of the model '%s' do not describe it",
				 room->model);
	else
		return false;
	return true;
}

void grpc_infer_message(struct grpc_call *c, struct grpc_stream *s)
{
	struct kserve_reader *r = s->reader;

	/* The most that a service of this address takes. */
	if (s->left > kserve_room_body_max(2 * KSERVE_ROWS_MAX * c->settings->max_request))
		return grpc_call_refuse(
			c, s, 413, "the message has %" PRIu64 " bytes, the service takes %" PRIu64,
			s->left, c->settings->max_request);
	s->reads = GRPC_READS_INFER;
	s->raw = false;
	s->ahead = 0;
	r->asked = s->asked;
	r->raw_at = 0;
	r->text_length = 0;
	memset(&r->infer, 0, sizeof(r->infer));
	grpc_infer_init(&r->grpc, &r->infer, s->left,
			2 * KSERVE_ROWS_MAX * c->settings->max_request, (uint8_t *)r->early,
			sizeof(r->early));
}

/* The service of the model that the message names; if it did not yet, the only one of the address.
 * False: there is none that takes it, and it was refused. */
static bool tensors_find_service(struct grpc_call *c, struct grpc_stream *s)
{
	struct kserve_room *room = c->room;
	const char *model = s->reader->grpc.model;

	if (s->asked->layout != NULL)
		return true;
	kserve_room_rewind(room);
	if (model[0] == '\0' && room->next(room)) {
		grpc_call_refuse(c, s, 501, "the message does not name its model first");
		return false;
	}
	if (model[0] != '\0' && !room->find(room, model)) {
		grpc_call_refuse(c, s, 404, "there is no model '%s' here", model);
		return false;
	}
	kserve_room_found(s->asked);
	if (tensors_is_refused(c, s))
		return false;
	s->asked->layout = room->layout;
	s->asked->max_request = room->max_request;
	room->layout->users++;
	kserve_tensors_know_fixed(s->reader, &room->layout->model);
	return true;
}

/* Is the model that the message names this one? False: it was refused. */
static bool tensors_check_model(struct grpc_call *c, struct grpc_stream *s)
{
	const struct kserve_model *m = &s->asked->layout->model;
	const struct grpc_infer *g = &s->reader->grpc;

	if (strcmp(g->model, m->name) == 0 &&
	    (g->version[0] == '\0' || strcmp(g->version, m->version[0]) == 0))
		return true;
	grpc_call_refuse(c, s, 404, "there is no model '%s'%s%s here", g->model,
			 g->version[0] != '\0' ? " of version " : "", g->version);
	return false;
}

/* us that the message or the head of the call says, whichever is less. */
static uint32_t tensors_deadline(const struct grpc_stream *s, uint64_t us)
{
	if (s->timeout_us != 0 && (us == 0 || s->timeout_us < us))
		us = s->timeout_us;
	return us > UINT32_MAX ? UINT32_MAX : (uint32_t)us;
}

/* False: it was refused. */
static bool tensors_begin(struct grpc_call *c, struct grpc_stream *s, uint64_t size)
{
	struct kserve_reader *r = s->reader;
	uint64_t rows = r->rows > 1 ? r->rows : 1, row = kserve_tensors_row(r, size);
	struct stream_action *action;

	if (!c->room->find(c->room, s->asked->layout->model.name)) {
		grpc_call_refuse(c, s, 503, "the model '%s' was removed",
				 s->asked->layout->model.name);
		return false;
	}
	if (row > s->asked->max_request || size == 0) {
		grpc_call_refuse(c, s, size == 0 ? 400 : 413,
				 "the inputs have %" PRIu64 " bytes, the service takes %" PRIu64
				 "%s",
				 row, (uint64_t)s->asked->max_request, rows > 1 ? ", per row" : "");
		return false;
	}
	r->begun = true;
	s->asked->body.size = size;
	action = grpc_call_add(c, s->asked, STREAM_BEGIN);
	action->begin.size = size;
	action->begin.rows = (uint16_t)rows;
	action->begin.rows_differ = r->row_most > 0;
	action->begin.tag = (uintptr_t)s->asked;
	action->begin.deadline_us = tensors_deadline(s, kserve_tensors_deadline(&r->infer));
	action->begin.session = kserve_tensors_session(&r->infer);
	action->begin.priority = kserve_tensors_priority(&r->infer);
	action->begin.service = c->room->service + 1;
	action->begin.streams = s->rpc == GRPC_MODEL_STREAM_INFER;
	return true;
}

static void tensors_produce(struct grpc_call *c, struct grpc_stream *s, const uint8_t *bytes,
			    uint64_t offset, uint32_t length)
{
	struct stream_action *action = grpc_call_add(c, s->asked, STREAM_PRODUCE);

	action->bytes.at = bytes;
	action->bytes.offset = offset;
	action->bytes.length = length;
}

/* False: what is kept is not in one piece, and the request was refused. */
static bool tensors_produce_held(struct grpc_call *c, struct grpc_stream *s)
{
	struct kserve_reader *r = s->reader;

	if (r->held_bytes == 0)
		return true;
	if (r->held_bytes != r->held_to - r->held_from) {
		/* One that is missing leaves a gap, too. */
		if (kserve_match_end(&s->asked->layout->model, &r->infer) == KSERVE_REFUSED) {
			grpc_call_refuse(c, s, r->infer.status, "%s", r->infer.error);
			return false;
		}
		grpc_call_refuse(c, s, 501,
				 "inputs around others of the model; send them in its order");
		return false;
	}
	tensors_produce(c, s, r->held + r->held_from, r->held_from, r->held_bytes);
	r->held_bytes = 0;
	return true;
}

/* Begins the request if all that is needed for it is known; with <few>, also if it could be kept.
 * False: it was refused. */
static bool tensors_try_begin(struct grpc_call *c, struct grpc_stream *s, bool few)
{
	struct kserve_reader *r = s->reader;
	uint64_t size;

	if (r->begun || r->grpc.model[0] == '\0' || r->grpc.replayed < r->grpc.early_raws ||
	    kserve_tensors_differ(r, &s->asked->layout->model) ||
	    !kserve_tensors_sum(r, s->asked->layout->model.inputs, &size) ||
	    (!few && size <= sizeof(r->held)))
		return true;
	return tensors_begin(c, s, size) && tensors_produce_held(c, s);
}

/* All of a request is kept whose rows differ in length. False: it was refused. */
static bool tensors_begin_rows(struct grpc_call *c, struct grpc_stream *s)
{
	struct kserve_reader *r = s->reader;
	uint32_t size = r->held_bytes;

	if (!kserve_tensors_cut(r, &s->asked->layout->model, c->room)) {
		grpc_call_refuse(c, s, r->infer.status, "%s", r->infer.error);
		return false;
	}
	if (!tensors_begin(c, s, size))
		return false;
	tensors_produce(c, s, c->room->scratch, 0, size);
	return true;
}

/* Where the bytes of input <i> go. False: that is not known, and the request was refused. */
static bool tensors_places(struct grpc_call *c, struct grpc_stream *s, uint8_t i,
			   struct kserve_places *p)
{
	struct kserve_reader *r = s->reader;
	bool several;

	if (kserve_tensors_places(r, &s->asked->layout->model, r->place[i], p))
		return true;
	several = r->rows > 1 && !s->asked->layout->model.rows_differ;
	grpc_call_refuse(c, s, several ? 501 : 400,
			 "inputs[%u] ('%s'): inputs whose size is not in the model must be in the "
			 "order of the model%s",
			 i, r->infer.input[i].name, several ? ", and in one row" : "");
	return false;
}

/* --- steps -------------------------------------------------------------------------------------
 */

static void tensors_input(struct grpc_call *c, struct grpc_stream *s, uint8_t i)
{
	const struct kserve_model *m = &s->asked->layout->model;
	struct kserve_reader *r = s->reader;
	bool first = r->rows == 0;
	int place = kserve_match_input(m, &r->infer, i, &r->rows);

	if (place < 0)
		return grpc_call_refuse(c, s, r->infer.status, "%s", r->infer.error);
	if (r->seen & 1u << place)
		return grpc_call_refuse(c, s, 400, "inputs[%u] ('%s') is there twice", i,
					m->input[place].name);
	if (first)
		kserve_tensors_know_rows(r, m);
	r->seen |= (uint16_t)(1u << place);
	r->place[i] = (uint8_t)place;
	if (i > 0 && !r->infer.input[i - 1].binary)
		kserve_tensors_know(r, r->place[i - 1], r->infer.input[i - 1].bytes);
	if (kserve_tensors_size(m, (uint8_t)place) > 0)
		kserve_tensors_know(r, (uint8_t)place,
				    r->infer.input[i].elements *
					    kserve_tensors_size(m, (uint8_t)place));
}

/* The bytes of r->run are those of a tensor from byte <at> on. */
static void tensors_take(struct grpc_call *c, struct grpc_stream *s, const struct kserve_places *p,
			 uint64_t at)
{
	struct kserve_reader *r = s->reader;
	struct stream_action *action;

	if (r->begun) {
		tensors_produce(c, s, r->run.at, p->each == 0 ? p->within + at : at, r->run.length);
		action = &c->actions[c->n - 1];
		action->bytes.each = p->each;
		action->bytes.within = (uint32_t)p->within;
		action->bytes.row = p->row;
	} else if (!kserve_tensors_hold_at(r, p, at)) {
		grpc_call_refuse(
			c, s, 501,
			kserve_tensors_differ(r, &s->asked->layout->model)
				? KSERVE_ROWS_TOO_LONG
				: "more than %u bytes of inputs before the sizes of all are known",
			KSERVE_HELD_MAX);
	}
}

/* Have the elements of raw bytes of this input lengths that are looked at here? */
static bool tensors_follows(const struct grpc_stream *s, uint8_t i)
{
	const struct kserve_reader *r = s->reader;

	return r->infer.input[i].type == KSERVE_BYTES &&
	       !kserve_tensors_differ(r, &s->asked->layout->model);
}

static bool tensors_refuse_elements(struct grpc_call *c, struct grpc_stream *s)
{
	uint8_t i = s->reader->raw_input;

	grpc_call_refuse(c, s, 400, "raw_input_contents[%u] ('%s'): %s", i,
			 s->reader->infer.input[i].name,
			 kserve_elements_fault(&s->reader->elements));
	return false;
}

/* Of the next <most> raw bytes of BYTES, those that are known to be of its elements, in *n. False:
 * they have a fault, and the request was refused. */
static bool tensors_follow(struct grpc_call *c, struct grpc_stream *s, const uint8_t *bytes,
			   uint32_t length, uint64_t most, uint64_t *n)
{
	uint32_t slice = kserve_tensors_slice(c->room), budget = slice;

	*n = kserve_elements_follow(&s->reader->elements, bytes, length, most, &budget);
	/* A frame may have many extents: one for each packet in which a length lies. */
	c->room->text_left -= (int32_t)(slice - budget) + KSERVE_EXTENT_COST;
	return !s->reader->elements.broken || tensors_refuse_elements(c, s);
}

/* The bytes of r->run are raw ones, and kept. False: they have a fault. */
static bool tensors_follow_kept(struct grpc_call *c, struct grpc_stream *s)
{
	const struct kserve_run *run = &s->reader->run;
	uint64_t n;

	if (!tensors_follows(s, s->reader->raw_input))
		return true;
	for (uint32_t at = 0; at < run->length; at += (uint32_t)n)
		if (!tensors_follow(c, s, run->at + at, run->length - at, run->length - at, &n))
			return false;
	return true;
}

static void tensors_run(struct grpc_call *c, struct grpc_stream *s)
{
	struct kserve_places p;

	/* Raw ones that came before their input was described. */
	if (s->reader->grpc.raws > 0 && !tensors_follow_kept(c, s))
		return;
	if (tensors_places(c, s, s->reader->run.input, &p) && tensors_try_begin(c, s, false))
		tensors_take(c, s, &p, s->reader->run.offset);
}

/* raw_input_contents of input <i> begin. */
static void tensors_raw(struct grpc_call *c, struct grpc_stream *s, uint8_t i)
{
	const struct kserve_model *m = &s->asked->layout->model;
	struct kserve_reader *r = s->reader;
	const struct kserve_input *input = &r->infer.input[i];
	uint32_t size = kserve_tensors_size(m, r->place[i]);

	if (size > 0 && input->bytes != input->elements * size)
		return grpc_call_refuse(c, s, 400,
					"raw_input_contents[%u] ('%s'): %" PRIu64
					" bytes, the shape says %" PRIu64,
					i, input->name, input->bytes, input->elements * size);
	s->reader->raw_input = i;
	kserve_elements_begin(&s->reader->elements, input->elements, input->bytes);
	if (tensors_follows(s, i) && !kserve_elements_fit(input->elements, input->bytes)) {
		tensors_refuse_elements(c, s);
		return;
	}
	kserve_tensors_know(r, r->place[i], input->bytes);
	s->raw_at = 0;
	if (!tensors_places(c, s, i, &s->raw_places) || !tensors_try_begin(c, s, true))
		return;
	s->raw = r->begun && r->grpc.early_raws == 0;
}

/* All outputs of the model, if none was named. */
static void tensors_choose_outputs(struct grpc_stream *s)
{
	const struct kserve_infer *infer = &s->reader->infer;
	const struct kserve_model *m = &s->asked->layout->model;
	struct kserve_asked *a = s->asked;

	a->outputs = infer->outputs > 0 ? infer->outputs : m->outputs;
	for (uint8_t i = 0; i < a->outputs; i++)
		a->output[i] = infer->outputs > 0
				       ? (uint8_t)kserve_match_output(m, infer->output[i].name)
				       : i;
	kserve_room_keep_id(a, infer);
	a->says_final = infer->empty_final && s->rpc == GRPC_MODEL_STREAM_INFER;
}

/* Is the tensor of a model with one input the end of the message, and all of that in one frame? */
static bool tensors_is_one_row(const struct grpc_stream *s)
{
	const struct kserve_reader *r = s->reader;

	return s->rpc == GRPC_MODEL_INFER && r->raw_at > 0 && r->rows <= 1 &&
	       r->infer.inputs == 1 && s->asked->layout->model.inputs == 1 &&
	       r->infer.input[0].type != KSERVE_BYTES &&
	       r->raw_at - r->text_from + s->asked->body.size ==
		       GRPC_PREFIX + (uint64_t)grpc_prefix_length(s->prefix);
}

/* The message ended. */
static void tensors_done(struct grpc_call *c, struct grpc_stream *s)
{
	struct kserve_reader *r = s->reader;
	const struct kserve_model *m = &s->asked->layout->model;

	if (!tensors_check_model(c, s))
		return;
	if (kserve_match_end(m, &r->infer) == KSERVE_REFUSED)
		return grpc_call_refuse(c, s, r->infer.status, "%s", r->infer.error);
	for (uint8_t i = 0; i < r->infer.inputs; i++)
		kserve_tensors_know(r, r->place[i], r->infer.input[i].bytes);
	s->rows_wait = kserve_tensors_differ(r, m) &&
		       !kserve_room_may_work(c->room, kserve_tensors_cut_work(r));
	if (s->rows_wait)
		return;
	if (kserve_tensors_differ(r, m) ? !tensors_begin_rows(c, s)
					: !tensors_try_begin(c, s, true))
		return;
	tensors_choose_outputs(s);
	if (tensors_is_one_row(s))
		kserve_seen_keep(r, s->asked, c->settings->max_request, r->raw_at - r->text_from,
				 KSERVE_SEEN_GRPC);
	grpc_call_add(c, s->asked, STREAM_END)->size = s->asked->body.size;
	s->asked->reading = false;
	grpc_call_let_go(s);
}

static void tensors_step(struct grpc_call *c, struct grpc_stream *s, enum grpc_infer_step step)
{
	struct kserve_reader *r = s->reader;

	bool named = r->grpc.model[0] != '\0';

	if (step == GRPC_INFER_MORE || (step == GRPC_INFER_RUN && r->run.length == 0))
		return;
	/* Of a request for another model nothing else is wrong. */
	if ((named || step != GRPC_INFER_REFUSED) && !tensors_find_service(c, s))
		return;
	if (named && !tensors_check_model(c, s))
		return;
	if (step == GRPC_INFER_REFUSED)
		grpc_call_refuse(c, s, r->infer.status, "%s", r->infer.error);
	else if (step == GRPC_INFER_INPUT)
		tensors_input(c, s, r->run.input);
	else if (step == GRPC_INFER_RUN)
		tensors_run(c, s);
	else if (step == GRPC_INFER_RAW)
		tensors_raw(c, s, r->run.input);
	else if (step == GRPC_INFER_DONE)
		tensors_done(c, s);
}

/* --- bytes -------------------------------------------------------------------------------------
 */

uint32_t grpc_infer_known(struct grpc_call *c, struct grpc_stream *s, const uint8_t *bytes,
			  uint32_t length, uint32_t most)
{
	const struct kserve_seen *seen;
	struct stream_action *action;
	struct kserve_asked *a;
	uint64_t n;

	if (s->got > 0 || s->rpc != GRPC_MODEL_INFER || !c->room->may_begin)
		return 0;
	seen = kserve_seen_find(c->room, c->settings->max_request, bytes, length, KSERVE_SEEN_GRPC);
	if (seen == NULL)
		return 0;
	n = seen->length + seen->begin.size;
	if (n > most) {
		kserve_room_rewind(c->room);
		return 0;
	}
	a = grpc_call_ask(c, s);
	action = grpc_call_add(c, a, STREAM_REQUEST);
	kserve_seen_apply(seen, a, c->stream->position, action);
	action->whole.begin.deadline_us = tensors_deadline(s, seen->begin.deadline_us);
	a->reading = false;
	grpc_call_let_go(s);
	return (uint32_t)n;
}

static bool tensors_is_over(const struct grpc_stream *s)
{
	return s->reads != GRPC_READS_INFER || s->reader == NULL;
}

/*
 * Reads on until one thing was found. The last byte that led to it stays unread until all was said
 * that follows from it: the owner calls only while there are bytes.
 */
static uint32_t tensors_read_fields(struct grpc_call *c, struct grpc_stream *s,
				    const uint8_t *bytes, uint32_t length)
{
	struct kserve_reader *r = s->reader;
	const uint8_t *at = bytes + s->ahead, *end = bytes + length;
	enum grpc_infer_step step;
	uint32_t used;

	r->run.at = c->room->scratch;
	r->run.room = KSERVE_SLICE;
	r->run.budget = kserve_tensors_slice(c->room);
	step = grpc_infer_read(&r->grpc, &at, end, &r->run);
	used = (uint32_t)(at - bytes);
	r->progress += used - s->ahead;
	c->room->text_left -= (int32_t)r->run.work + 1;
	s->ahead = 0;
	tensors_step(c, s, step);
	if (tensors_is_over(s) || step == GRPC_INFER_MORE || grpc_infer_raw_left(&r->grpc) > 0)
		return used;
	s->ahead = used > 0;
	return used - s->ahead;
}

/* Names the place of raw bytes, whether or not they have come; <length> are shown. */
static uint32_t tensors_place_raw(struct grpc_call *c, struct grpc_stream *s, const uint8_t *bytes,
				  uint32_t length, uint32_t most)
{
	uint64_t n = grpc_infer_raw_left(&s->reader->grpc);
	struct stream_action *action;

	n = n < most ? n : most;
	if (tensors_follows(s, s->reader->raw_input) && !tensors_follow(c, s, bytes, length, n, &n))
		return n > 0 ? (uint32_t)n : 1;
	action = grpc_call_add(c, s->asked, STREAM_EXTENT);
	if (s->raw_at == 0)
		s->reader->raw_at = c->stream->position;
	action->extent.position = c->stream->position;
	action->extent.offset = kserve_places_offset(&s->raw_places, s->raw_at, &n);
	action->extent.length = n;
	s->raw_at += n;
	s->reader->progress += (uint32_t)n;
	grpc_infer_take_raw(&s->reader->grpc, n);
	return (uint32_t)n;
}

/* Keeps raw bytes whose place is not known yet. */
static uint32_t tensors_keep_raw(struct grpc_call *c, struct grpc_stream *s, const uint8_t *bytes,
				 uint32_t length)
{
	struct kserve_reader *r = s->reader;
	uint64_t left = grpc_infer_raw_left(&r->grpc);
	uint32_t n = left < length ? (uint32_t)left : length;

	n = n < KSERVE_SLICE ? n : KSERVE_SLICE;
	memcpy(c->room->scratch, bytes, n);
	r->run.at = c->room->scratch;
	r->run.length = n;
	c->room->text_left -= (int32_t)n + 1;
	if (!tensors_follow_kept(c, s))
		return n;
	tensors_take(c, s, &s->raw_places, s->raw_at);
	if (tensors_is_over(s))
		return n;
	s->raw_at += n;
	grpc_infer_take_raw(&r->grpc, n);
	return n;
}

uint32_t grpc_infer_message_read(struct grpc_call *c, struct grpc_stream *s, const uint8_t *bytes,
				 uint32_t length, uint32_t most)
{
	struct kserve_reader *r = s->reader;
	uint32_t n;

	if (s->rows_wait) {
		tensors_done(c, s);
		s->ahead &= s->rows_wait;
		return s->rows_wait ? 0 : 1;
	}
	if (grpc_infer_raw_left(&r->grpc) == 0)
		return tensors_read_fields(c, s, bytes, length);
	/* Bytes that are kept may be the last of the message: what follows from them is said first.
	 */
	n = s->raw ? tensors_place_raw(c, s, bytes, length, most)
		   : tensors_keep_raw(c, s, bytes, length);
	while (!tensors_is_over(s) && n == s->left && !s->rows_wait)
		tensors_read_fields(c, s, bytes, 0);
	return n - s->rows_wait;
}
