/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `kserve` over HTTP/2: gRPC. Frame headers are read here, too, so that the bytes of DATA frames
 * have their place where they lie; nghttp2 gets as many others in their stead, as it only counts
 * them. A call reads a part of one frame, and says the end of one request at most.
 */
#include <string.h>

#include "framing/grpc_call.h"
#include "framing/grpc_reply.h"
#include "framing/grpc_watch.h"
#include "framing/kserve_reply.h"
#include "packet/drop.h"

#define PREFACE_LENGTH (sizeof(STREAM_PREFACE) - 1)
/* Bytes of a frame that is no DATA: each may be a field of a head. */
#define FRAME_SLICE 256
/* A frame takes as long as so many bytes of text, SETTINGS as so many more, but for a connection's
 * first ones, as all open streams may get another window, and a byte of a head as long as some. */
#define FRAME_AS_TEXT    32
#define SETTINGS_AS_TEXT 128
#define HEAD_AS_TEXT     4
/* DATA for nobody of so many bytes is no frame for its own sake. */
#define FRAME_LONG 1024

/* --- connections -------------------------------------------------------------------------------
 */

static const struct stream_framing *grpc_choose(struct stream *s, const uint8_t *bytes,
						uint32_t length)
{
	uint64_t at = s->position, n = 0;

	while (n < length && at + n < PREFACE_LENGTH && bytes[n] == STREAM_PREFACE[at + n])
		n++;
	if (at + n < PREFACE_LENGTH && n < length) {
		s->got = 0;
		return &stream_kserve;
	}
	s->position += n;
	s->got = 1; /* the connection is not at rest */
	return s->position < PREFACE_LENGTH ? &stream_kserve_any : &stream_grpc;
}

/* Nothing is read any more. */
static void grpc_close(struct grpc_call *c, uint8_t reason)
{
	c->actions[c->n++] = (struct stream_action){.kind = STREAM_CLOSE, .reason = reason};
	c->stream->position = STREAM_CLOSED;
}

/* False: there is no memory for another connection. */
static bool grpc_open(struct grpc_call *c)
{
	struct grpc_session *g = NULL;

	if (c->room->may_open)
		g = grpc_session_open(c->room->grpc, c->room->streams_max);
	if (g == NULL)
		return false;
	c->stream->own = c->session = g;
	c->stream->got = 1;
	grpc_session_feed(g, (const uint8_t *)STREAM_PREFACE, PREFACE_LENGTH);
	g->magic -= PREFACE_LENGTH;
	return true;
}

/* Gives back what a stream has; what is open of it is not answered any more. */
static void grpc_forget(struct grpc_stream *s)
{
	if (s->reader != NULL)
		kserve_room_return_reader(s->reader);
	s->reader = NULL;
}

static void grpc_release(struct stream *s)
{
	struct grpc_session *g = s->own;
	struct grpc_stream *stream;

	while (s->open != NULL)
		kserve_room_forget(s, s->open);
	if (g == NULL)
		return;
	TAILQ_FOREACH (stream, &g->streams, entry)
		grpc_forget(stream);
	TAILQ_FOREACH (stream, &g->ended, entry)
		grpc_forget(stream);
	grpc_session_close(g);
	s->own = NULL;
	s->got = 0;
}

static void grpc_drain(struct stream *s)
{
	struct grpc_session *g = s->own;

	if (g == NULL || g->drains || g->dead)
		return;
	g->drains = true;
	if (nghttp2_submit_goaway(g->h2, NGHTTP2_FLAG_NONE,
				  nghttp2_session_get_last_proc_stream_id(g->h2), NGHTTP2_NO_ERROR,
				  NULL, 0) != 0)
		g->dead = true;
}

/* --- heads and ends ----------------------------------------------------------------------------
 */

static void grpc_head(struct grpc_call *c, struct grpc_stream *s)
{
	s->headed = true;
	if (s->http_status == 200 && !s->has_type)
		s->http_status = 415;
	if (s->http_status != 200)
		grpc_call_refuse(c, s, s->http_status, "no call of gRPC");
	else if (s->rpc == GRPC_NO_RPC)
		grpc_call_refuse(c, s, 501, "there is no such method");
	else if (s->bad_timeout)
		grpc_call_refuse(c, s, 400, "grpc-timeout is not valid");
	else
		return;
	s->reads = GRPC_READS_NOTHING;
}

/* The client sends no more. */
static void grpc_ended(struct grpc_call *c, struct grpc_stream *s)
{
	bool cut = s->reads == GRPC_READS_SMALL || s->reads == GRPC_READS_INFER;

	if (s->reads == GRPC_READS_PREFIX)
		cut = s->got > 0 || s->rpc != GRPC_MODEL_STREAM_INFER;
	if (cut && s->reads == GRPC_READS_PREFIX && s->got == 0)
		grpc_call_refuse(c, s, 501, "the call has no message");
	else if (cut)
		grpc_call_refuse(c, s, 400, "the call ends before its message does");
	s->reads = GRPC_READS_NOTHING;
	if (s->rpc == GRPC_MODEL_STREAM_INFER)
		grpc_stream_settle(s);
}

static void grpc_look(struct grpc_call *c)
{
	struct grpc_stream *s = c->session->fresh;

	c->session->fresh = NULL;
	if (!s->headed)
		grpc_head(c, s);
	if (s->ended)
		grpc_ended(c, s);
}

/* --- frames ------------------------------------------------------------------------------------
 */

static void frame_begin(struct grpc_session *g)
{
	const uint8_t *h = g->header;
	int32_t id = (int32_t)((uint32_t)(h[5] & 0x7f) << 24 | (uint32_t)h[6] << 16 |
			       (uint32_t)h[7] << 8 | h[8]);

	g->left = (uint32_t)h[0] << 16 | (uint32_t)h[1] << 8 | h[2];
	g->type = h[3];
	g->flags = h[4];
	g->padding = 0;
	g->padded = g->type == NGHTTP2_DATA && (g->flags & NGHTTP2_FLAG_PADDED) != 0 && g->left > 0;
	g->data = NULL;
	if (g->type == NGHTTP2_DATA && g->left > 0 && !g->dead)
		g->data = nghttp2_session_get_stream_user_data(g->h2, id);
	if (g->left == 0)
		g->got = 0;
}

/*
 * A frame whose header came. All kinds cost about as much (README.md), so all count alike, but for
 * bytes of a message, which may come one by one, and those that were under way when their call
 * ended.
 */
static void frame_count(struct grpc_call *c)
{
	struct grpc_session *g = c->session;
	bool answered = (g->type == NGHTTP2_PING || g->type == NGHTTP2_SETTINGS) &&
			(g->flags & NGHTTP2_FLAG_ACK) == 0;

	c->room->text_left -= FRAME_AS_TEXT;
	if (g->type == NGHTTP2_SETTINGS && answered) {
		c->room->text_left -= g->settled ? SETTINGS_AS_TEXT : 0;
		g->settled = true;
	}
	if (g->data == NULL && (g->type != NGHTTP2_DATA || g->left < FRAME_LONG))
		grpc_session_count_frame(g, answered);
}

static uint32_t frame_read_header(struct grpc_call *c, const uint8_t *bytes, uint32_t length)
{
	struct grpc_session *g = c->session;
	uint32_t n = GRPC_FRAME_HEADER - (uint32_t)g->got;

	n = n < length ? n : length;
	memcpy(g->header + g->got, bytes, n);
	g->got += (uint8_t)n;
	grpc_session_feed(g, bytes, n);
	if (g->got == GRPC_FRAME_HEADER) {
		frame_begin(g);
		frame_count(c);
	}
	return n;
}

/* Bytes of a DATA frame, padding not included. */
static uint32_t frame_read_data(struct grpc_call *c, const uint8_t *bytes, uint32_t length)
{
	struct grpc_session *g = c->session;
	uint32_t most = g->left - g->padding, n;

	n = grpc_call_read(c, g->data, bytes, length < most ? length : most, most);
	grpc_session_feed(g, NULL, n);
	return n;
}

static uint32_t frame_read_payload(struct grpc_call *c, const uint8_t *bytes, uint32_t length)
{
	struct grpc_session *g = c->session;
	uint32_t n = g->left < length ? g->left : length;

	if (g->padded) {
		g->padded = false;
		g->padding = bytes[0];
		if (g->padding >= g->left) { /* nghttp2 ends the connection */
			g->padding = 0;
			g->data = NULL;
		}
		if (g->data != NULL && g->padding + 1 == g->left)
			grpc_session_count_frame(g, false);
		grpc_session_feed(g, bytes, 1);
		return 1;
	}
	if (g->data != NULL && g->left > g->padding)
		return frame_read_data(c, bytes, length);
	n = n < FRAME_SLICE ? n : FRAME_SLICE;
	c->room->text_left -= (int32_t)(HEAD_AS_TEXT * n);
	grpc_session_feed(g, bytes, n);
	return n;
}

/* A part of a frame. Returns how many bytes need not come again. */
static uint32_t frame_read(struct grpc_call *c, const uint8_t *bytes, uint32_t length)
{
	struct grpc_session *g = c->session;
	uint32_t n;

	if (g->magic > 0) {
		n = g->magic < length ? g->magic : length;
		grpc_session_feed(g, bytes, n);
		g->magic -= (uint8_t)n;
		return n;
	}
	if (g->got < GRPC_FRAME_HEADER)
		return frame_read_header(c, bytes, length);
	n = frame_read_payload(c, bytes, length);
	g->left -= n;
	if (g->left > 0)
		return n;
	g->got = 0;
	g->data = NULL;
	return n;
}

static unsigned int grpc_read(struct stream *s, const struct stream_settings *settings,
			      const uint8_t *bytes, uint32_t length, struct stream_action *actions,
			      unsigned int max)
{
	struct grpc_call c = {.stream = s,
			      .session = s->own,
			      .room = settings->kserve,
			      .settings = settings,
			      .actions = actions};

	if (max < STREAM_ACTIONS_MIN || length == 0 || s->position == STREAM_CLOSED)
		return 0;
	if (c.session == NULL && !grpc_open(&c)) {
		grpc_close(&c, LB_DROP_HTTP2_FULL);
		return c.n;
	}
	c.room->text_left--;
	s->position += frame_read(&c, bytes, length);
	if (c.session->fresh != NULL && !c.session->dead)
		grpc_look(&c);
	/* Also when the client takes nothing, so that emit() does not come to say so. */
	if ((c.session->dead || c.session->flood) && c.n < max)
		grpc_close(&c, c.session->fault ? LB_DROP_HTTP2_FAULT : 0);
	return c.n;
}

const struct stream_framing stream_kserve_any = {
	.name = "kserve",
	.in_order = true,
	.head_max = STREAM_HEAD_MAX,
	.rewrite = kserve_rewrite,
	.choose = grpc_choose,
};

const struct stream_framing stream_grpc = {
	.name = "kserve",
	.head_max = STREAM_HEAD_MAX,
	.read = grpc_read,
	.reply = grpc_reply,
	.keeps = grpc_keeps,
	.rewrite = grpc_rewrite,
	.emit = grpc_emit,
	.watch = grpc_watch_look,
	.drain = grpc_drain,
	.release = grpc_release,
};
