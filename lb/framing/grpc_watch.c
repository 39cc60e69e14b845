/* SPDX-License-Identifier: BSD-3-Clause */
#include "framing/grpc_watch.h"

#include <stdio.h>

/* A model that is not there may come: the call stays open for that, too. */
static enum grpc_health watch_state(struct kserve_room *room, const char *name)
{
	if (name[0] == '\0')
		return kserve_room_all_serve(room) ? GRPC_SERVING : GRPC_NOT_SERVING;
	if (!room->find(room, name))
		return GRPC_SERVICE_UNKNOWN;
	return room->serving ? GRPC_SERVING : GRPC_NOT_SERVING;
}

void grpc_watch_begin(struct grpc_call *c, struct grpc_stream *s, const char *name)
{
	struct kserve_room *room = c->room;
	struct grpc_out out = {room->scratch + GRPC_PREFIX, room->scratch + sizeof(room->scratch),
			       false};
	struct kserve_watch *w = kserve_room_watch(s->asked);
	struct kserve_asked *a = s->asked;
	struct stream_action *action;

	if (w == NULL)
		return grpc_call_refuse(c, s, GRPC_CALL_BUSY, "too many calls of Watch are open");
	snprintf(w->name, sizeof(w->name), "%s", name);
	w->said = (uint8_t)watch_state(room, w->name);
	grpc_write_health(&out, w->said);
	action = grpc_call_say(c, s, &out);
	action->bytes.watches = true;
	action->bytes.tag = (uintptr_t)a;
}

uint32_t grpc_watch_look(struct stream *s, const struct stream_settings *settings, uint64_t tag,
			 bool ends, uint8_t *at)
{
	struct kserve_asked *a = (struct kserve_asked *)(uintptr_t)tag;
	struct grpc_out out = {at + GRPC_PREFIX, at + STREAM_HEAD_MAX, false};
	struct kserve_watch *w = a->watch;
	struct grpc_stream *g = a->call;
	enum grpc_health health;
	uint32_t n = 0;

	if (w == NULL || g == NULL || g->complete)
		return 0;
	health = ends ? GRPC_NOT_SERVING : watch_state(settings->kserve, w->name);
	if (health != w->said) {
		w->said = (uint8_t)health;
		grpc_write_health(&out, health);
		n = (uint32_t)(out.at - at);
		grpc_prefix_write(at, n - GRPC_PREFIX);
		grpc_stream_respond(g, a, n);
	}
	if (!ends)
		return n;
	kserve_room_end_watch(a);
	grpc_stream_end(g, GRPC_UNAVAILABLE, "the load balancer stops");
	return n;
}
