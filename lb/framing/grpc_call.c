/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of gRPC calls: their prefix, those that the load balancer answers itself, refusals. */
#include "framing/grpc_call.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "framing/grpc_infer.h"
#include "framing/grpc_watch.h"
#include "framing/kserve_seen.h"
#include "packet/drop.h"
#include "packet/notice.h"

struct kserve_asked *grpc_call_ask(struct grpc_call *c, struct grpc_stream *s)
{
	struct kserve_asked *a = kserve_room_ask(c->room, c->stream);

	a->call = s;
	a->number = c->stream->requests++;
	a->is_grpc = true;
	a->endpoint = grpc_rpc_name(s->rpc);
	s->asked = a;
	s->open++;
	return a;
}

void grpc_call_let_go(struct grpc_stream *s)
{
	if (s->reader != NULL)
		kserve_room_return_reader(s->reader);
	s->reader = NULL;
	s->asked = NULL;
	s->ahead = 0;
	s->reads = s->rpc == GRPC_MODEL_STREAM_INFER ? GRPC_READS_REST : GRPC_READS_NOTHING;
}

static void call_set_refusal(struct stream_action *action, uint16_t status)
{
	bool busy = status == 503 || status == GRPC_CALL_BUSY;

	action->refuse.notice = busy            ? LB_NOTICE_BUSY
				: status == 413 ? LB_NOTICE_TOO_LARGE
						: LB_NOTICE_MALFORMED;
	action->refuse.reason = status == 503              ? LB_DROP_NO_WORKER
				: status == GRPC_CALL_BUSY ? LB_DROP_TCP_CLIENT
				: status == 413            ? LB_DROP_REQUEST_TOO_LARGE
							   : LB_DROP_FRAMING;
}

void grpc_call_refuse(struct grpc_call *c, struct grpc_stream *s, uint16_t status,
		      const char *format, ...)
{
	struct kserve_asked *a = s->asked != NULL ? s->asked : grpc_call_ask(c, s);
	struct stream_action *action = grpc_call_add(c, a, STREAM_REFUSE);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(a->error, sizeof(a->error), format, arguments);
	va_end(arguments);
	a->status = status;
	a->reading = false;
	if (s->reads == GRPC_READS_INFER && s->reader != NULL)
		kserve_room_keep_id(a, &s->reader->infer);
	action->refuse.tag = (uintptr_t)a;
	call_set_refusal(action, status);
	grpc_call_let_go(s);
}

/* --- answers of the load balancer itself -------------------------------------------------------
 */

struct stream_action *grpc_call_say(struct grpc_call *c, struct grpc_stream *s,
				    const struct grpc_out *out)
{
	struct kserve_asked *a = s->asked;
	struct stream_action *action = grpc_call_add(c, a, STREAM_SEND);
	uint32_t length = (uint32_t)(out->at - c->room->scratch);

	grpc_prefix_write(c->room->scratch, length - GRPC_PREFIX);
	kserve_room_tell(c->stream, a, GRPC_OK, length - GRPC_PREFIX);
	action->bytes.at = c->room->scratch;
	action->bytes.length = length;
	action->bytes.of_request = true;
	action->bytes.ends = true;
	a->reading = false;
	a->answered = true;
	s->open--;
	grpc_call_let_go(s);
	grpc_stream_respond(s, a, length);
	return action;
}

static void call_send(struct grpc_call *c, struct grpc_stream *s, const struct grpc_out *out)
{
	grpc_call_say(c, s, out);
	grpc_stream_end(s, GRPC_OK, NULL);
}

/* Makes the service of the model current that a call is about. False: there is none. */
static bool call_find_model(const struct grpc_call *c, const struct grpc_names *names)
{
	struct kserve_room *room = c->room;

	return names->name[0] != '\0' && room->find(room, names->name) &&
	       (names->version[0] == '\0' || room->layout == NULL ||
		strcmp(names->version, room->layout->model.version[0]) == 0);
}

/* Is the call about a model, not about all? */
static bool call_is_of_model(const struct grpc_stream *s, const struct grpc_names *names)
{
	if (s->rpc == GRPC_HEALTH_CHECK || s->rpc == GRPC_MODEL_STATISTICS)
		return names->name[0] != '\0';
	return s->rpc >= GRPC_MODEL_READY && s->rpc != GRPC_REPOSITORY_INDEX;
}

static void call_describe(struct grpc_call *c, struct grpc_stream *s, struct grpc_out *out)
{
	const struct kserve_layout *layout = c->room->layout;

	if (layout == NULL)
		return grpc_call_refuse(c, s, c->room->serving ? 501 : 503,
					c->room->serving
						? "the workers of the model '%s' do not describe it"
						: "the model '%s' has no workers",
					c->room->model);
	if (s->rpc == GRPC_MODEL_METADATA)
		grpc_write_model(out, &layout->model);
	else
		grpc_write_config(out, &layout->model);
	call_send(c, s, out);
}

/* Statistics of the current model, or of all. */
static void call_count(struct grpc_call *c, struct grpc_stream *s, bool all, struct grpc_out *out)
{
	struct kserve_room *room = c->room;
	struct kserve_model *m;

	if (all)
		kserve_room_rewind(room);
	do {
		m = kserve_room_known(room);
		room->count(room, &m->counters);
		grpc_write_statistics(out, m);
	} while (all && room->next(room));
	call_send(c, s, out);
}

/* The models of the address; with <ready> those that have workers. */
static void call_list(struct grpc_call *c, struct grpc_stream *s, bool ready, struct grpc_out *out)
{
	struct kserve_room *room = c->room;

	kserve_room_rewind(room);
	do {
		if (!ready || room->serving)
			grpc_write_index(out, kserve_room_known(room));
	} while (room->next(room));
	call_send(c, s, out);
}

/* The message of a call that the load balancer answers has come. */
static void call_answer(struct grpc_call *c, struct grpc_stream *s)
{
	uint8_t *at = c->room->scratch;
	struct grpc_out out = {at + GRPC_PREFIX, at + sizeof(c->room->scratch), false};
	struct grpc_names names;
	bool of_model, ready;

	if (!grpc_names_read(&names, s->reader->held, s->reader->held_bytes))
		return grpc_call_refuse(c, s, 400,
					"the message is not valid, or a name in it is too long");
	if (s->rpc == GRPC_HEALTH_WATCH)
		return grpc_watch_begin(c, s, names.name);
	of_model = call_is_of_model(s, &names);
	if (of_model && !call_find_model(c, &names))
		return grpc_call_refuse(c, s, 404, "there is no model '%s'%s%s here", names.name,
					names.version[0] != '\0' ? " of version " : "",
					names.version);
	if (of_model)
		kserve_room_found(s->asked);
	if (s->rpc == GRPC_MODEL_METADATA || s->rpc == GRPC_MODEL_CONFIG)
		return call_describe(c, s, &out);
	if (s->rpc == GRPC_MODEL_STATISTICS)
		return call_count(c, s, !of_model, &out);
	if (s->rpc == GRPC_REPOSITORY_INDEX)
		return call_list(c, s, names.ready, &out);
	ready = of_model ? c->room->serving : kserve_room_all_serve(c->room);
	if (s->rpc == GRPC_SERVER_METADATA)
		grpc_write_server(&out, "doorbell", c->room->version);
	else if (s->rpc == GRPC_HEALTH_CHECK)
		grpc_write_health(&out, ready ? GRPC_SERVING : GRPC_NOT_SERVING);
	else
		grpc_write_bool(&out, s->rpc == GRPC_SERVER_LIVE || ready);
	call_send(c, s, &out);
}

/* --- messages ----------------------------------------------------------------------------------
 */

/* The prefix came: a message of that length begins. */
static void call_begin(struct grpc_call *c, struct grpc_stream *s)
{
	bool compressed = s->prefix[0] == 1;

	s->got = 0;
	s->left = grpc_prefix_length(s->prefix);
	grpc_call_ask(c, s)->bytes_in = s->left;
	if (s->prefix[0] > 1 || (compressed && !s->has_encoding))
		return grpc_call_refuse(c, s, 500, "the prefix of a message is not valid");
	if (compressed)
		return grpc_call_refuse(c, s, 501, "compressed messages are not taken");
	if (!c->room->may_begin)
		return grpc_call_refuse(c, s, GRPC_CALL_BUSY,
					"too many requests or replies are under way");
	s->reader = kserve_room_take_reader(c->room);
	if (s->reader == NULL)
		return grpc_call_refuse(c, s, GRPC_CALL_BUSY, "too many requests are being read");
	if (s->rpc == GRPC_MODEL_INFER || s->rpc == GRPC_MODEL_STREAM_INFER)
		return grpc_infer_message(c, s);
	s->reads = GRPC_READS_SMALL;
	if (s->left > GRPC_SMALL_MAX)
		return grpc_call_refuse(c, s, 413, "the message is too long");
}

static uint32_t call_read_prefix(struct grpc_call *c, struct grpc_stream *s, const uint8_t *bytes,
				 uint32_t length)
{
	uint32_t n = GRPC_PREFIX - (uint32_t)s->got;

	n = n < length ? n : length;
	memcpy(s->prefix + s->got, bytes, n);
	s->got += (uint8_t)n;
	if (s->got < GRPC_PREFIX)
		return n;
	call_begin(c, s);
	if (s->reads == GRPC_READS_INFER && n == GRPC_PREFIX)
		kserve_seen_begin(s->reader, c->stream->position, bytes, length);
	return n;
}

static uint32_t call_read_small(struct grpc_stream *s, const uint8_t *bytes, uint32_t length)
{
	struct kserve_reader *r = s->reader;

	memcpy(r->held + r->held_bytes, bytes, length);
	r->held_bytes += length;
	return length;
}

/* All of a message was read. */
static void call_end(struct grpc_call *c, struct grpc_stream *s)
{
	static const uint8_t none[1];

	if (s->reads == GRPC_READS_INFER)
		grpc_infer_message_read(c, s, none, 0, 0); /* it had no bytes */
	else if (s->reads == GRPC_READS_SMALL)
		call_answer(c, s);
	if (s->reads == GRPC_READS_REST)
		s->reads = GRPC_READS_PREFIX;
}

static uint32_t call_read_message(struct grpc_call *c, struct grpc_stream *s, const uint8_t *bytes,
				  uint32_t length, uint32_t most)
{
	most = most < s->left ? most : (uint32_t)s->left;
	length = length < most ? length : most;
	if (s->reads == GRPC_READS_INFER) {
		kserve_room_keep_reader(c->room, s->reader);
		return grpc_infer_message_read(c, s, bytes, length, most);
	}
	return s->reads == GRPC_READS_SMALL ? call_read_small(s, bytes, length) : most;
}

/* Bytes came behind the only message of a call, whose answer is not complete: it ends ("request
 * cardinality violation" in gRPC's table of status codes). */
static void call_end_early(struct grpc_call *c, struct grpc_stream *s)
{
	struct kserve_asked *a = c->stream->open;

	while (a != NULL && a->call != s)
		a = a->next;
	if (a == NULL || s->complete)
		return;
	a->status = 501;
	snprintf(a->error, sizeof(a->error), "the call takes one message");
	grpc_stream_end(s, GRPC_UNIMPLEMENTED, a->error);
}

uint32_t grpc_call_read(struct grpc_call *c, struct grpc_stream *s, const uint8_t *bytes,
			uint32_t length, uint32_t most)
{
	uint32_t n;

	/* A head that is not valid ends the call, as soon as nghttp2 may say so. */
	if (s->reads == GRPC_READS_NOTHING)
		call_end_early(c, s);
	if (s->reads == GRPC_READS_NOTHING || s->reads == GRPC_READS_HEAD)
		return most;
	if (s->reads == GRPC_READS_PREFIX) {
		n = grpc_infer_known(c, s, bytes, length, most);
		if (n > 0)
			return n;
		n = call_read_prefix(c, s, bytes, length);
		if (s->reads == GRPC_READS_PREFIX || s->left > 0)
			return n;
	} else {
		n = call_read_message(c, s, bytes, length, most);
		s->left -= n;
	}
	if (s->left == 0)
		call_end(c, s);
	return n;
}

void grpc_stream_settle(struct grpc_stream *s)
{
	if (s->ended && s->open == 0 && !s->complete)
		grpc_stream_end(s, GRPC_OK, NULL);
}
