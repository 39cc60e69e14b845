/* SPDX-License-Identifier: BSD-3-Clause */
#include "framing/kserve_documents.h"

#include <string.h>

#include "kserve/documents.h"

/* Answers with what <out> wrote behind the room of a head. */
static void document_send(struct kserve_call *c, struct json_out *out, uint16_t status)
{
	const struct http_head *head = &c->reader->head;
	uint8_t *body = c->room->scratch + HTTP_RESPONSE_MAX;
	uint32_t length = (uint32_t)((uint8_t *)out->at - body), n;
	/* A client that waits for 100 Continue may leave its body out now, or send it. */
	bool keep_alive = head->keep_alive && !c->asked->body.awaited;
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

	c->room->text_left -= (int32_t)length;
	n = http_response_write(&response, text);
	memcpy(body - n, text, n);
	action = kserve_call_add(c, STREAM_SEND);
	action->bytes.at = body - n;
	length = head->method == HTTP_HEAD ? 0 : length;
	action->bytes.length = n + length;
	action->bytes.of_request = true;
	action->bytes.ends = true;
	kserve_room_tell(c->s, c->asked, status, length);
	kserve_room_answered(c->s, c->asked);
	kserve_call_leave(c, !keep_alive);
}

static void document_of_model(struct kserve_call *c, const struct kserve_route *route,
			      struct json_out *out)
{
	struct kserve_layout *layout = c->room->layout;

	if (layout == NULL && c->room->serving)
		return kserve_call_refuse(
			c, 501, "the workers of the model '%s' do not describe it", route->model);
	if (layout == NULL)
		return kserve_call_refuse(c, 503, "the model '%s' has no workers", route->model);
	if (route->endpoint == KSERVE_MODEL)
		kserve_write_model(out, &layout->model);
	else
		kserve_write_config(out, &layout->model);
	document_send(c, out, 200);
}

/* Statistics of one model, or of all. */
static void document_stats(struct kserve_call *c, bool all, struct json_out *out)
{
	struct kserve_room *room = c->room;
	struct kserve_model *m;
	bool first = true;

	if (all)
		kserve_room_rewind(room);
	kserve_write_stats_begin(out);
	do {
		m = kserve_room_known(room);
		room->count(room, &m->counters);
		kserve_write_stats(out, m, first);
		first = false;
	} while (all && room->next(room));
	kserve_write_stats_end(out);
	document_send(c, out, 200);
}

static void document_index(struct kserve_call *c, struct json_out *out)
{
	struct kserve_room *room = c->room;
	bool first = true;

	kserve_room_rewind(room);
	kserve_write_index_begin(out);
	do {
		kserve_write_index(out, kserve_room_known(room), first);
		first = false;
	} while (room->next(room));
	kserve_write_index_end(out);
	document_send(c, out, 200);
}

void kserve_document_answer(struct kserve_call *c, const struct kserve_route *route)
{
	char *body = (char *)c->room->scratch + HTTP_RESPONSE_MAX;
	struct json_out out = {body, body + KSERVE_DOCUMENT, false};
	bool ready;

	switch (route->endpoint) {
	case KSERVE_SERVER:
		kserve_write_server(&out, "doorbell", c->room->version);
		return document_send(c, &out, 200);
	case KSERVE_LIVE:
		kserve_write_health(&out, "live", true);
		return document_send(c, &out, 200);
	case KSERVE_READY:
		ready = kserve_room_all_serve(c->room);
		kserve_write_health(&out, "ready", ready);
		return document_send(c, &out, ready ? 200 : 503);
	case KSERVE_MODEL_READY:
		kserve_write_model_ready(&out, c->room->model, c->room->serving);
		return document_send(c, &out, c->room->serving ? 200 : 503);
	case KSERVE_MODEL:
	case KSERVE_MODEL_CONFIG:
		return document_of_model(c, route, &out);
	case KSERVE_STATS:
	case KSERVE_MODEL_STATS:
		return document_stats(c, route->endpoint == KSERVE_STATS, &out);
	case KSERVE_REPOSITORY:
		return document_index(c, &out);
	default:
		return kserve_call_refuse(c, 501, "this endpoint is not there yet");
	}
}
