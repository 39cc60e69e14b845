/* SPDX-License-Identifier: BSD-3-Clause */
#include "framing/grpc_session.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

/* Bytes of all pieces of a session at most. It takes 10 KiB at rest, an open stream up to 1 KiB
 * with its answer, a head some 500 bytes. */
#define SESSION_BUDGET 131072
#define STREAM_WINDOW  (4u << 20)
#define HEAD_MAX       8192 /* bytes of a head, as told to clients */
/* Bytes of text that take as long as to begin a stream and to end it. */
#define STREAM_AS_TEXT 160
/* nghttp2 checks so many bytes of a field in the time of one of text. */
#define FIELD_AS_TEXT 4
#define FIELD_EXTRA   32 /* RFC 7541, 4.1 */
/* Floods that end the connection: answers that wait to be sent, entries of SETTINGS, resets by
 * either side; */
#define ACKS_MAX        128
#define SETTINGS_MAX    16
#define RESETS_BURST    1000
#define RESETS_A_SECOND 100
/* frames that want an answer: clients of gRPC ask by PING whether the connection lives, every 10 s
 * say, and once per burst of DATA how far its end is; */
#define ANSWERS_BURST    100
#define ANSWERS_A_SECOND 10
/* and frames that bring nothing. Each call and each frame of an answer pay for as many as proxies
 * let clients send WINDOW_UPDATE for a frame of DATA, two of which are usual. */
#define FRAMES_BURST    1000
#define FRAMES_A_SECOND 100
#define FRAMES_PAID     10
#define FRAMES_SAVED    10000 /* of those that were paid for, at most */

static const uint8_t zeros[16384];

/* --- heads of requests -------------------------------------------------------------------------
 */

static const struct {
	const char *path;
	uint8_t rpc;
} session_rpcs[] = {
	{"/inference.GRPCInferenceService/ModelInfer", GRPC_MODEL_INFER},
	{"/inference.GRPCInferenceService/ModelStreamInfer", GRPC_MODEL_STREAM_INFER},
	{"/inference.GRPCInferenceService/ModelReady", GRPC_MODEL_READY},
	{"/inference.GRPCInferenceService/ModelMetadata", GRPC_MODEL_METADATA},
	{"/inference.GRPCInferenceService/ModelConfig", GRPC_MODEL_CONFIG},
	{"/inference.GRPCInferenceService/ServerLive", GRPC_SERVER_LIVE},
	{"/inference.GRPCInferenceService/ServerReady", GRPC_SERVER_READY},
	{"/inference.GRPCInferenceService/ServerMetadata", GRPC_SERVER_METADATA},
	{"/inference.GRPCInferenceService/ModelStatistics", GRPC_MODEL_STATISTICS},
	{"/inference.GRPCInferenceService/RepositoryIndex", GRPC_REPOSITORY_INDEX},
	{"/grpc.health.v1.Health/Check", GRPC_HEALTH_CHECK},
	{"/grpc.health.v1.Health/Watch", GRPC_HEALTH_WATCH},
};

const char *grpc_rpc_name(uint8_t rpc)
{
	for (size_t i = 0; i < sizeof(session_rpcs) / sizeof(session_rpcs[0]); i++)
		if (session_rpcs[i].rpc == rpc)
			return strrchr(session_rpcs[i].path, '/') + 1;
	return NULL;
}

static bool session_is(const uint8_t *bytes, size_t n, const char *text)
{
	return n == strlen(text) && memcmp(bytes, text, n) == 0;
}

static void session_path(struct grpc_stream *s, const uint8_t *value, size_t n)
{
	for (size_t i = 0; i < sizeof(session_rpcs) / sizeof(session_rpcs[0]); i++)
		if (session_is(value, n, session_rpcs[i].path))
			s->rpc = session_rpcs[i].rpc;
}

/* application/grpc, with +proto or parameters behind it. Media types have no case (RFC
 * 9110, 8.3.1).
 */
static bool session_is_grpc(const uint8_t *value, size_t n)
{
	static const char type[] = "application/grpc";
	const size_t length = sizeof(type) - 1;

	return n >= length && strncasecmp((const char *)value, type, length) == 0 &&
	       (n == length || value[length] == ';' ||
		(n >= length + 6 && strncasecmp((const char *)value + length, "+proto", 6) == 0));
}

/* A byte of a head can stand for a field of 4 KiB, which was sent once: nghttp2 looks at all of it
 * each time. False: it is too much. */
static bool session_count_field(struct grpc_session *g, struct grpc_stream *s, size_t bytes)
{
	g->room->kserve->text_left -= (int32_t)(bytes / FIELD_AS_TEXT + 1);
	s->head_bytes += (uint32_t)bytes + FIELD_EXTRA;
	return s->head_bytes <= HEAD_MAX;
}

static int session_on_header(nghttp2_session *h2, const nghttp2_frame *frame, const uint8_t *name,
			     size_t name_length, const uint8_t *value, size_t n, uint8_t flags,
			     void *user)
{
	struct grpc_stream *s = nghttp2_session_get_stream_user_data(h2, frame->hd.stream_id);

	if (s == NULL)
		return 0;
	/* The stream is reset, and the rest of the head only read for what it says of later ones.
	 */
	if (!session_count_field(user, s, name_length + n))
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	if (s->reads != GRPC_READS_HEAD)
		return 0;
	if (session_is(name, name_length, ":path"))
		session_path(s, value, n);
	else if (session_is(name, name_length, ":method") && !session_is(value, n, "POST"))
		s->http_status = 405;
	else if (session_is(name, name_length, "content-type"))
		s->has_type = session_is_grpc(value, n);
	else if (session_is(name, name_length, "grpc-encoding"))
		s->has_encoding = !session_is(value, n, "identity");
	else if (session_is(name, name_length, "grpc-timeout"))
		s->bad_timeout = n > 16 || !grpc_timeout_read((const char *)value, (uint32_t)n,
							      &s->timeout_us);
	return 0;
}

/* --- floods ------------------------------------------------------------------------------------
 */

/* Takes one, beside what time has given since: <a_second>, <burst> in all. False: there is none. */
static bool meter_take(struct grpc_meter *m, uint32_t now_ms, uint32_t burst, uint32_t a_second)
{
	uint64_t more = (uint64_t)(now_ms - m->since_ms) * a_second / 1000;

	if (more > 0) {
		m->since_ms = now_ms;
		if (m->left < burst)
			m->left = more < burst - m->left ? m->left + (uint32_t)more : burst;
	}
	if (m->left == 0)
		return false;
	m->left--;
	return true;
}

static void meter_pay(struct grpc_meter *m, uint32_t n, uint32_t most)
{
	m->left = m->left + n < most ? m->left + n : most;
}

/* A call, or a frame of an answer. */
static void session_pay(struct grpc_session *g)
{
	meter_pay(&g->answers, 1, ANSWERS_BURST);
	meter_pay(&g->frames, FRAMES_PAID, FRAMES_SAVED);
}

/* The client is told why, if it takes that. */
static void session_flooded(struct grpc_session *g, const char *what)
{
	g->flood = g->fault = true;
	if (nghttp2_submit_goaway(
		    g->h2, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(g->h2),
		    NGHTTP2_ENHANCE_YOUR_CALM, (const uint8_t *)what, strlen(what)) != 0)
		g->dead = true;
}

void grpc_session_count_frame(struct grpc_session *g, bool answered)
{
	uint32_t now = g->room->kserve->now_ms;

	if (g->flood || g->dead)
		return;
	/* gRPC's clients know this text. */
	if (answered && !meter_take(&g->answers, now, ANSWERS_BURST, ANSWERS_A_SECOND))
		session_flooded(g, "too_many_pings");
	else if (!meter_take(&g->frames, now, FRAMES_BURST, FRAMES_A_SECOND))
		session_flooded(g, "too_many_frames");
}

/*
 * A stream was reset because of what the client sent. That ends a call as the client's own reset
 * does, and is bounded as that is: else a client has ever more calls under way than streams
 * (CVE-2025-8671).
 */
static void session_count_reset(struct grpc_session *g)
{
	if (!meter_take(&g->resets, g->room->kserve->now_ms, RESETS_BURST, RESETS_A_SECOND))
		g->dead = g->fault = true;
}

/* --- streams -----------------------------------------------------------------------------------
 */

static int session_on_begin(nghttp2_session *h2, const nghttp2_frame *frame, void *user)
{
	struct grpc_session *g = user;
	struct grpc_stream *s = TAILQ_FIRST(&g->room->free_streams);

	if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	g->room->kserve->text_left -= STREAM_AS_TEXT;
	session_pay(g);
	/* A client that reads nothing learns of no end, and may not have all streams by ending
	 * them.
	 */
	if (s == NULL || g->drains || g->n_streams == GRPC_STREAMS_HELD)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	TAILQ_REMOVE(&g->room->free_streams, s, entry);
	g->n_streams++;
	memset(s, 0, sizeof(*s));
	s->session = g;
	s->id = frame->hd.stream_id;
	s->http_status = 200;
	s->last = &s->first;
	TAILQ_INSERT_TAIL(&g->streams, s, entry);
	nghttp2_session_set_stream_user_data(h2, s->id, s);
	return 0;
}

static int session_on_frame(nghttp2_session *h2, const nghttp2_frame *frame, void *user)
{
	struct grpc_session *g = user;
	struct grpc_stream *s;

	if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
		return 0;
	s = nghttp2_session_get_stream_user_data(h2, frame->hd.stream_id);
	if (s == NULL)
		return 0;
	s->ended |= (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
	if (s->reads == GRPC_READS_HEAD)
		s->reads = GRPC_READS_PREFIX;
	g->fresh = s;
	return 0;
}

/* The bytes were read, or have their place: the client may send as many more. */
static int session_on_data(nghttp2_session *h2, uint8_t flags, int32_t id, const uint8_t *bytes,
			   size_t n, void *user)
{
	int rc = nghttp2_session_consume(h2, id, n);

	return rc == NGHTTP2_ERR_NOMEM ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int session_on_close(nghttp2_session *h2, int32_t id, uint32_t error, void *user)
{
	struct grpc_stream *s = nghttp2_session_get_stream_user_data(h2, id);
	struct grpc_session *g = user;

	if (s == NULL)
		return 0;
	if (g->data == s)
		g->data = NULL;
	if (g->fresh == s)
		g->fresh = NULL;
	TAILQ_REMOVE(&g->streams, s, entry);
	TAILQ_INSERT_TAIL(&g->ended, s, entry);
	return 0;
}

/* --- answers -----------------------------------------------------------------------------------
 */

#define NV(name, value, n)                                                                         \
	{                                                                                          \
		(uint8_t *)(name), (uint8_t *)(value), sizeof(name) - 1, (n),                      \
			NGHTTP2_NV_FLAG_NO_COPY_NAME                                               \
	}

/* Writes the fields of an end to <nv>, which has room for two; <message> is the text's room. */
static size_t session_end_fields(enum grpc_status status, const char *text, char number[4],
				 char *message, uint32_t room, nghttp2_nv *nv)
{
	uint32_t n = text == NULL ? 0 : grpc_message_write(text, message, room);
	uint32_t digits = status >= 10 ? 2 : 1;

	number[0] = (char)('0' + (status >= 10 ? status / 10 : status));
	number[1] = (char)('0' + status % 10);
	nv[0] = (nghttp2_nv)NV("grpc-status", number, digits);
	nv[1] = (nghttp2_nv)NV("grpc-message", message, n);
	return n > 0 ? 2 : 1;
}

static void session_fatal(struct grpc_session *g, int rc)
{
	if (nghttp2_is_fatal(rc))
		g->dead = true;
}

/* nghttp2 asks how much of the answer may go into the next frame. */
static ssize_t session_read_answer(nghttp2_session *h2, int32_t id, uint8_t *bytes, size_t room,
				   uint32_t *flags, nghttp2_data_source *source, void *user)
{
	struct grpc_stream *s = nghttp2_session_get_stream_user_data(h2, id);
	struct grpc_session *g = user;
	char number[4], message[4];
	nghttp2_nv nv[2];
	uint64_t n;

	if (s == NULL)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	if (s->first == NULL && !s->complete)
		return NGHTTP2_ERR_DEFERRED;
	*flags |= NGHTTP2_DATA_FLAG_NO_COPY;
	g->sends = s->first;
	n = s->first == NULL ? 0 : s->first->to_send;
	n = n < room ? n : room;
	if (s->first != NULL) {
		s->first->to_send -= n;
		if (s->first->to_send == 0) {
			s->first = s->first->queued;
			s->last = s->first == NULL ? &s->first : s->last;
		}
	}
	if (s->first != NULL || !s->complete)
		return (ssize_t)n;
	*flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
	session_end_fields(s->status, NULL, number, message, 0, nv);
	if (nghttp2_submit_trailer(h2, id, nv, 1) != 0)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	return (ssize_t)n;
}

/* A frame of it is next: the caller of nghttp2_session_mem_send() puts the bytes behind the header.
 */
static int session_send_answer(nghttp2_session *h2, nghttp2_frame *frame, const uint8_t *header,
			       size_t length, nghttp2_data_source *source, void *user)
{
	struct grpc_session *g = user;

	memcpy(g->sent_header, header, GRPC_FRAME_HEADER);
	g->sent = true;
	g->sent_length = (uint32_t)length;
	return NGHTTP2_ERR_PAUSE;
}

static int session_on_sent(nghttp2_session *h2, const nghttp2_frame *frame, void *user)
{
	struct grpc_session *g = user;
	struct grpc_stream *s;

	if (frame->hd.type == NGHTTP2_RST_STREAM &&
	    frame->rst_stream.error_code != NGHTTP2_NO_ERROR)
		session_count_reset(g);
	if (frame->hd.type == NGHTTP2_GOAWAY && frame->goaway.error_code != NGHTTP2_NO_ERROR) {
		g->fault = true;
		g->dead |= g->flood;
	}
	if (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA)
		session_pay(g);
	/* The answer ended before the client did: it need not send the rest (RFC 9113, 8.1). */
	if (frame->hd.type != NGHTTP2_HEADERS || (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0)
		return 0;
	s = nghttp2_session_get_stream_user_data(h2, frame->hd.stream_id);
	if (s != NULL && !s->ended)
		nghttp2_submit_rst_stream(h2, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_NO_ERROR);
	return 0;
}

void grpc_stream_respond(struct grpc_stream *s, struct kserve_asked *a, uint32_t length)
{
	static const nghttp2_nv nv[] = {
		NV(":status", "200", 3),
		NV("content-type", "application/grpc", 16),
		NV("grpc-accept-encoding", "identity", 8),
	};
	nghttp2_data_provider provider = {.read_callback = session_read_answer};
	nghttp2_session *h2 = s->session->h2;

	if (a->to_send == 0) {
		a->queued = NULL;
		*s->last = a;
		s->last = &a->queued;
	}
	a->to_send += length;
	if (s->responded) {
		session_fatal(s->session, nghttp2_session_resume_data(h2, s->id));
		return;
	}
	s->responded = true;
	session_fatal(s->session, nghttp2_submit_response(h2, s->id, nv, 3, &provider));
}

void grpc_stream_end(struct grpc_stream *s, enum grpc_status status, const char *text)
{
	char number[4], message[512], http[4] = "200";
	nghttp2_session *h2 = s->session->h2;
	nghttp2_nv nv[5] = {
		NV(":status", http, 3),
		NV("content-type", "application/grpc", 16),
		NV("grpc-accept-encoding", "identity", 8),
	};
	size_t n;

	s->complete = true;
	s->status = (uint8_t)status;
	if (s->responded) { /* trailers are behind the messages */
		session_fatal(s->session, nghttp2_session_resume_data(h2, s->id));
		return;
	}
	s->responded = true;
	http[0] = (char)('0' + s->http_status / 100);
	http[1] = (char)('0' + s->http_status / 10 % 10);
	http[2] = (char)('0' + s->http_status % 10);
	n = 3 + session_end_fields(status, text, number, message, sizeof(message), nv + 3);
	session_fatal(s->session,
		      nghttp2_submit_response(h2, s->id, nv, s->http_status == 200 ? n : 1, NULL));
}

/* --- sessions ----------------------------------------------------------------------------------
 */

struct grpc_session *grpc_session_open(struct grpc_room *room, uint32_t streams)
{
	struct grpc_account account = {&room->memory, 0, &room->kserve->share->session_bytes};
	struct grpc_session *g = grpc_memory_take_zeroed(1, sizeof(*g), &account);
	const nghttp2_settings_entry settings[] = {
		{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, streams},
		{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW},
		{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HEAD_MAX},
	};
	nghttp2_mem mem = {.malloc = grpc_memory_take,
			   .free = grpc_memory_give,
			   .calloc = grpc_memory_take_zeroed,
			   .realloc = grpc_memory_change};

	if (g == NULL)
		return NULL;
	g->account = account;
	g->room = room;
	g->magic = NGHTTP2_CLIENT_MAGIC_LEN;
	g->resets = (struct grpc_meter){RESETS_BURST, room->kserve->now_ms};
	g->answers = (struct grpc_meter){ANSWERS_BURST, room->kserve->now_ms};
	g->frames = (struct grpc_meter){FRAMES_BURST, room->kserve->now_ms};
	TAILQ_INIT(&g->streams);
	TAILQ_INIT(&g->ended);
	mem.mem_user_data = &g->account;
	if (nghttp2_session_server_new3(&g->h2, room->callbacks, g, room->options, &mem) != 0) {
		grpc_memory_give(g, &account);
		return NULL;
	}
	if (nghttp2_submit_settings(g->h2, NGHTTP2_FLAG_NONE, settings, 3) != 0 ||
	    nghttp2_session_set_local_window_size(g->h2, NGHTTP2_FLAG_NONE, 0, STREAM_WINDOW) != 0)
		g->dead = true;
	return g;
}

void grpc_stream_free(struct grpc_stream *s)
{
	struct grpc_session *g = s->session;

	TAILQ_REMOVE(&g->ended, s, entry);
	TAILQ_INSERT_HEAD(&g->room->free_streams, s, entry);
	g->n_streams--;
}

void grpc_session_close(struct grpc_session *g)
{
	struct grpc_account account;

	nghttp2_session_del(g->h2);
	TAILQ_CONCAT(&g->ended, &g->streams, entry);
	while (!TAILQ_EMPTY(&g->ended))
		grpc_stream_free(TAILQ_FIRST(&g->ended));
	account = g->account;
	grpc_memory_give(g, &account);
}

void grpc_session_feed(struct grpc_session *g, const uint8_t *bytes, uint32_t length)
{
	while (length > 0 && !g->dead) {
		uint32_t n = length < sizeof(zeros) ? length : (uint32_t)sizeof(zeros);

		if (nghttp2_session_mem_recv(g->h2, bytes == NULL ? zeros : bytes, n) < 0)
			g->dead = g->fault = true;
		length -= n;
		bytes = bytes == NULL ? NULL : bytes + n;
	}
}

/* --- the room ----------------------------------------------------------------------------------
 */

static size_t room_memory(void)
{
	return (sizeof(struct grpc_room) + 63) / 64 * 64;
}

size_t grpc_room_bytes(uint32_t sessions, uint32_t streams)
{
	return room_memory() + grpc_memory_bytes(sessions, GRPC_SESSION_USUAL) +
	       streams * sizeof(struct grpc_stream);
}

static int room_options(struct grpc_room *room)
{
	if (nghttp2_option_new(&room->options) != 0 ||
	    nghttp2_session_callbacks_new(&room->callbacks) != 0)
		return -ENOMEM;
	nghttp2_option_set_no_auto_window_update(room->options, 1);
	nghttp2_option_set_no_closed_streams(room->options, 1);
	nghttp2_option_set_max_outbound_ack(room->options, ACKS_MAX);
	nghttp2_option_set_max_settings(room->options, SETTINGS_MAX);
	nghttp2_option_set_max_reserved_remote_streams(room->options, 0);
	nghttp2_option_set_stream_reset_rate_limit(room->options, RESETS_BURST, RESETS_A_SECOND);
	nghttp2_session_callbacks_set_on_begin_headers_callback(room->callbacks, session_on_begin);
	nghttp2_session_callbacks_set_on_header_callback(room->callbacks, session_on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(room->callbacks, session_on_frame);
	nghttp2_session_callbacks_set_on_frame_send_callback(room->callbacks, session_on_sent);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(room->callbacks, session_on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(room->callbacks, session_on_close);
	nghttp2_session_callbacks_set_send_data_callback(room->callbacks, session_send_answer);
	return 0;
}

int grpc_room_init(struct grpc_room *room, struct kserve_room *kserve, uint32_t sessions,
		   uint32_t streams)
{
	uint8_t *at = (uint8_t *)room + room_memory();
	struct grpc_stream *stream;

	memset(room, 0, sizeof(*room));
	grpc_memory_init(&room->memory, sessions, GRPC_SESSION_USUAL, SESSION_BUDGET, at);
	stream = (void *)(at + grpc_memory_bytes(sessions, GRPC_SESSION_USUAL));
	TAILQ_INIT(&room->free_streams);
	for (uint32_t i = 0; i < streams; i++)
		TAILQ_INSERT_TAIL(&room->free_streams, &stream[i], entry);
	room->kserve = kserve;
	kserve->grpc = room;
	return room_options(room);
}

void grpc_room_fini(struct grpc_room *room)
{
	nghttp2_session_callbacks_del(room->callbacks);
	nghttp2_option_del(room->options);
}
