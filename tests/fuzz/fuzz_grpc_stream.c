/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes as a client's stream for the framing kserve, which may begin with HTTP/2's preface, through
 * placement.c as the owner of a connection does it, for a service with two inputs and one with one.
 * Three bytes of options come first: seed of the cuts, the reply, and what the owner has no room
 * for. Each byte of a request is written once, no more of an answer is sent than there is, nothing
 * is sent of a request that is over, messages that were seen before are read and answered in the
 * same way, and all memory comes back.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "framing/grpc_session.h"
#include "framing/placement.h"
#include "packet/notice.h"
#include "elements.h"
#include "pieces.h"
#include "repeat.h"
#include "told.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define READERS     2
#define ASKED       12
#define SESSIONS    2
#define STREAMS     8
#define MAX_REQUEST 5000
#define REQUESTS    64
#define ANSWER_MAX  32768

static void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

static const struct model_description described = {
	.version = "1",
	.n_inputs = 2,
	.n_outputs = 2,
	.input = {{.name = "a", .datatype = DATATYPE_FP32, .rank = 1, .shape = {2}},
		  {.name = "b", .datatype = DATATYPE_BYTES, .rank = 1, .shape = {-1}}},
	.output = {{.name = "c", .datatype = DATATYPE_FP32, .rank = 1, .shape = {2}},
		   {.name = "d", .datatype = DATATYPE_UINT8, .rank = 1, .shape = {-1}}},
};

static const struct model_description described_raw = {
	.version = "1",
	.n_inputs = 1,
	.n_outputs = 1,
	.input = {{.name = "a", .datatype = DATATYPE_UINT16, .rank = 2, .shape = {-1, 3}}},
	.output = {{.name = "c", .datatype = DATATYPE_UINT8, .rank = 1, .shape = {-1}}},
};

static const struct model_description described_rows = {
	.version = "1",
	.batch = true,
	.n_inputs = 2,
	.n_outputs = 2,
	.input = {{.name = "a", .datatype = DATATYPE_FP32, .rank = 2, .shape = {-1, 2}},
		  {.name = "b", .datatype = DATATYPE_UINT8, .rank = 2, .shape = {-1, 4}}},
	.output = {{.name = "c", .datatype = DATATYPE_FP32, .rank = 2, .shape = {-1, 2}},
		   {.name = "d", .datatype = DATATYPE_UINT8, .rank = 2, .shape = {-1, 4}}},
};

/* Services with one address: "m", "n" and others, which take fewer bytes, and of these "b", "v" and
 * "w", which take batches. */
#define SERVICES 5
#define ROWS     4
static const char names[] = "mnbvw";
static const struct model_description *const descriptions[SERVICES] = {
	&described, &described_raw, &described_rows, &described_elements, &described_both};
static struct kserve_layout *layouts[SERVICES];

static void room_select(struct kserve_room *room, uint16_t service)
{
	room->service = service;
	room->layout = layouts[service];
	room->model = layouts[service]->model.name;
	room->max_request = service == 0 ? MAX_REQUEST : MAX_REQUEST / 2;
}

static bool room_find(struct kserve_room *room, const char *model)
{
	const char *at = model[0] == '\0' || model[1] != '\0' ? NULL : strchr(names, model[0]);

	if (at == NULL)
		return false;
	room_select(room, (uint16_t)(at - names));
	return true;
}

static bool room_next(struct kserve_room *room)
{
	room_select(room, (room->service + 1) % SERVICES);
	return room->service != room->service_of_connection;
}

struct asked {
	bool known, begun, named, answered, over, watches;
	uint16_t service;
	uint64_t tag, size, placed;
	uint32_t rows, ends[ROWS];
	uint32_t answer, sent; /* bytes */
	uint8_t bytes[MAX_REQUEST], written[MAX_REQUEST];
};

struct owner {
	const struct kserve_room *room;
	struct placement placement;
	bool told[REQUESTS + 1]; /* by number */
	struct asked *asked;     /* by number: REQUESTS + 1 */
	uint32_t n_asked;        /* those of them that are not zeros */
	uint8_t reply;       /* option */
	bool closed;
	bool busy;    /* something was refused because others had its room */
	uint64_t sum; /* of all that was sent, and of all requests */
};

static void room_tell(struct kserve_room *room, const struct stream *s,
		      const struct kserve_told *told)
{
	struct owner *o = (void *)((char *)(uintptr_t)s - offsetof(struct owner, placement.stream));

	told_note(o->told, told);
}

static void owner_sum(struct owner *o, const void *bytes, size_t n)
{
	const uint8_t *at = bytes;

	for (size_t i = 0; i < n; i++)
		o->sum = (o->sum ^ at[i]) * 0x100000001b3;
}

static const struct stream_framing *framing_of(const struct owner *o)
{
	return o->placement.framing;
}

static uint32_t owner_rewrite(struct owner *o, struct asked *a, struct stream_reply *reply)
{
	static uint8_t text[4096];
	uint32_t n = 0, calls = 0;

	while (reply->notice == 0) {
		uint32_t left = reply->length - reply->taken, row = left < 100 ? left : 100;
		struct stream_rewritten done = framing_of(o)->rewrite(
			&o->placement.stream, reply, a->bytes + reply->taken, row, text, 2048);

		require(reply->taken <= reply->length, "it wants bytes of the reply");
		n += done.length;
		require(done.length <= 2048 && ++calls < 2000 && n < ANSWER_MAX, "an answer ends");
		if (done.done)
			return n + (done.keeps ? reply->length : 0);
	}
	return 0;
}

/* One chunk. Returns true if the request is answered with it. */
static bool owner_say(struct owner *o, struct asked *a, struct stream_reply reply)
{
	static uint8_t head[STREAM_HEAD_MAX];
	struct stream_piece piece;

	require(framing_of(o)->head_max == sizeof(head), "a head has its room");
	if (reply.notice == 0 &&
	    (framing_of(o)->keeps == NULL || !framing_of(o)->keeps(&o->placement.stream, &reply)))
		reply.length = owner_rewrite(o, a, &reply);
	reply.length = reply.notice != 0 ? 0 : reply.length;
	reply.more &= reply.notice == 0;
	piece = framing_of(o)->reply(&o->placement.stream, &reply, head);
	require(piece.last && piece.head <= framing_of(o)->head_max, "one piece");
	owner_sum(o, head, piece.head);
	a->answer += piece.head + (reply.notice == 0 ? reply.length : 0);
	o->closed |= piece.closes;
	return !reply.more;
}

/* Its own bytes; with an option twice, and an end without bytes. */
static void owner_reply(struct owner *o, uint32_t number, uint8_t notice)
{
	struct asked *a = &o->asked[number];
	uint32_t chunks = notice == 0 && a->rows == 0 && o->reply & 0x80 ? 3 : 1;

	a->answered = true;
	for (uint32_t i = 0; i < chunks; i++)
		if (owner_say(o, a,
			      (struct stream_reply){.request = number,
						    .tag = a->tag,
						    .chunk = i,
						    .more = i + 1 < chunks,
						    .length = i == 2 ? 0 : (uint32_t)a->size,
						    .rows = a->rows,
						    .ends = a->ends,
						    .failed = notice != 0 ? a->rows : 0,
						    .notice = notice}))
			break;
	a->over |= framing_of(o)->emit == NULL;
}

static bool owner_is_due(const struct asked *a)
{
	return a->begun && !a->answered && a->named && a->placed == a->size;
}

static void owner_advance(struct owner *o)
{
	for (uint32_t i = 0; i < o->n_asked; i++) {
		const struct asked *a = &o->asked[i];

		if (!owner_is_due(a))
			continue;
		require(elements_are_whole_rows(descriptions[a->service], a->bytes, a->size,
						a->ends, a->rows),
			"elements are as long as they say");
		owner_reply(o, i, (o->reply >> i % 4) & 3);
	}
}

static void owner_end(struct owner *o, const struct stream_emitted *out)
{
	struct asked *a = &o->asked[out->request];

	require(!a->over, "a request is over once");
	a->over = true;
	if (out->cancels && !a->answered) {
		require(out->tag == a->tag, "a cancelled request has its tag");
		a->named = true;
		owner_reply(o, out->request, 6);
	}
}

static void owner_emit(struct owner *o)
{
	struct stream_emitted out;
	uint32_t pieces = 0;

	while (framing_of(o)->emit != NULL && framing_of(o)->emit(&o->placement.stream, &out)) {
		require(++pieces < 100000, "it ends");
		owner_sum(o, out.head_at, out.head);
		owner_sum(o, &out.bytes, sizeof(out.bytes));
		if (out.bytes > 0) {
			struct asked *a = &o->asked[out.request];

			require(a->known && !a->over, "bytes are of an open request");
			a->sent += out.bytes;
			require(a->sent <= a->answer, "no more is sent than there is");
		}
		if (out.ends)
			owner_end(o, &out);
		if (out.closes) {
			o->closed = true;
			o->placement.stream.position = STREAM_CLOSED;
		}
	}
}

static bool owner_ready(void *context)
{
	struct owner *o = context;
	struct kserve_room *room;

	if (o->closed || o->placement.stream.requests >= REQUESTS - 2)
		return false;
	if (framing_of(o)->emit == NULL)
		return true;
	room = ((struct grpc_session *)o->placement.stream.own) == NULL
		       ? NULL
		       : ((struct grpc_session *)o->placement.stream.own)->room->kserve;
	if (room == NULL)
		return true;
	/* A whole turn. */
	if (room->text_waits)
		room->text_left = room->text_turn;
	room->text_waits = false;
	room->text_kept = 0;
	return room->free_asked != NULL;
}

static void owner_write(struct owner *o, uint32_t number, uint64_t offset, const uint8_t *bytes,
			uint32_t n)
{
	struct asked *a = &o->asked[number];

	if (a->answered || a->over)
		return;
	require(a->begun && offset + n <= a->size, "bytes are of a request that began");
	for (uint32_t i = 0; i < n; i++)
		require(a->written[offset + i]++ == 0, "a byte is written once");
	memcpy(a->bytes + offset, bytes, n);
	a->placed += n;
}

/* Bytes of a tensor of a batch go row by row. */
static void owner_produce(struct owner *o, const struct stream_action *action)
{
	uint32_t each = action->bytes.each;
	uint64_t offset = action->bytes.offset;

	if (each == 0)
		return owner_write(o, action->request, offset, action->bytes.at,
				   action->bytes.length);
	for (uint32_t i = 0; i < action->bytes.length; i++, offset++)
		owner_write(o, action->request,
			    offset / each * action->bytes.row + action->bytes.within +
				    offset % each,
			    action->bytes.at + i, 1);
}

/* Where the rows of a request end. */
static void owner_note_rows(struct owner *o, struct asked *a, const struct stream_begin *begin)
{
	uint32_t before = 0;

	a->rows = begin->rows > 1 ? begin->rows : 0;
	require(a->rows <= ROWS, "no more rows than the model takes");
	require(begin->rows_differ || a->rows == 0 || begin->size % a->rows == 0,
		"rows have one length");
	for (uint32_t i = 0; i < a->rows; i++) {
		a->ends[i] = begin->rows_differ ? o->room->row_ends[i]
						: (uint32_t)(begin->size / a->rows) * (i + 1);
		require(a->ends[i] > before, "a row has bytes");
		before = a->ends[i];
	}
	require(a->rows == 0 || before == begin->size, "rows are the request");
}

static void owner_act(void *context, const struct stream_action *action)
{
	struct owner *o = context;
	struct asked *a = &o->asked[action->request];

	require(action->request <= REQUESTS, "requests are counted");
	if (action->request >= o->n_asked)
		o->n_asked = action->request + 1;
	a->known |= action->kind != STREAM_CLOSE;
	switch (action->kind) {
	case STREAM_BEGIN:
		require(!a->begun, "it begins once");
		require(action->begin.service >= 1 && action->begin.service <= SERVICES,
			"of a service");
		require(action->begin.size <=
				(action->begin.service == 1 ? MAX_REQUEST : MAX_REQUEST / 2),
			"it has no more bytes than its service takes");
		owner_note_rows(o, a, &action->begin);
		a->begun = true;
		a->service = action->begin.service - 1;
		a->size = action->begin.size;
		a->tag = action->begin.tag;
		return;
	case STREAM_REQUEST:
		require(!a->begun, "a whole one begins once");
		require(action->whole.begin.service >= 1 && action->whole.begin.service <= SERVICES,
			"a whole one is of a service");
		require(action->whole.begin.size <=
				(action->whole.begin.service == 1 ? MAX_REQUEST : MAX_REQUEST / 2),
			"it has no more bytes than its service takes");
		a->begun = a->named = true;
		a->service = action->whole.begin.service - 1;
		a->size = action->whole.begin.size;
		a->tag = action->whole.begin.tag;
		return;
	case STREAM_PRODUCE:
		return owner_produce(o, action);
	case STREAM_END:
		require(a->begun && action->size == a->size, "it has its size");
		a->named = true;
		return;
	case STREAM_REFUSE:
		require(!a->answered, "it is refused once");
		a->tag = action->refuse.tag;
		a->named = true;
		o->busy |= action->refuse.notice == LB_NOTICE_BUSY;
		return owner_reply(o, action->request, action->refuse.notice);
	case STREAM_SEND:
		a->answered |= action->bytes.ends;
		a->answer += action->bytes.length;
		a->watches |= action->bytes.watches;
		if (a->watches)
			a->tag = action->bytes.tag;
		return;
	default:
		require(action->kind == STREAM_CLOSE, "actions are of a known kind");
		o->closed = true;
	}
}

static void owner_place(void *context, uint32_t request, uint64_t offset,
			const struct placement_piece *piece, const uint8_t *bytes, uint32_t length)
{
	owner_write(context, request, offset, bytes, length);
}

static void owner_release(void *context, struct placement_piece *piece)
{
	pieces_give(piece);
}

/* Calls of Watch are told what is so now, when they have sent what they were told. */
static void owner_watch(struct owner *o, const struct stream_settings *settings, bool ends)
{
	static uint8_t text[STREAM_HEAD_MAX];

	for (uint32_t i = 0; i < o->n_asked; i++) {
		struct asked *a = &o->asked[i];
		uint32_t n;

		if (!a->watches || a->over || (!ends && a->sent < a->answer))
			continue;
		n = framing_of(o)->watch(&o->placement.stream, settings, a->tag, ends, text);
		require(n <= STREAM_HEAD_MAX, "a state is short");
		owner_sum(o, text, n);
		a->answer += n;
	}
}

static const struct placement_ops ops = {owner_ready, owner_act, owner_place, owner_release};

static uint32_t draw(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 16;
}

/* All that was taken came back. */
static void check_room(const struct grpc_room *room)
{
	const struct grpc_streams *free_streams = &room->free_streams;
	const struct grpc_stream *s;
	const struct kserve_asked *a;
	unsigned int streams = 0, asked = 0;

	TAILQ_FOREACH (s, free_streams, entry)
		streams++;
	for (a = room->kserve->free_asked; a != NULL; a = a->next)
		asked++;
	require(streams == STREAMS, "streams come back");
	require(asked == ASKED, "requests come back");
	require(TAILQ_EMPTY(&room->kserve->readers), "readers come back");
	require(room->kserve->share->watches == 0, "watches come back");
	for (unsigned int i = 0; i < SERVICES; i++)
		require(layouts[i]->users == 1, "models come back");
	for (unsigned int i = 0; i < GRPC_MEMORY_CLASSES; i++)
		require(TAILQ_EMPTY(&room->memory.partly[i]), "memory comes back");
}

/* An owner that has seen nothing. */
static struct owner *owner_begin(const struct kserve_room *room, uint8_t reply)
{
	static struct owner o;
	struct asked *asked = o.asked;

	if (asked == NULL)
		asked = calloc(REQUESTS + 1, sizeof(*asked));
	memset(asked, 0, o.n_asked * sizeof(*asked));
	o = (struct owner){.room = room, .reply = reply, .asked = asked};
	pieces_begin();
	return &o;
}

/* Returns a sum of all that was read and sent; 0: some was refused for want of room. */
static uint64_t owner_end_all(struct owner *o)
{
	told_expect_all(o->told, &o->placement.stream);
	placement_fini(&o->placement);
	for (uint32_t i = 0; i < o->n_asked; i++) {
		owner_sum(o, &o->asked[i].size, sizeof(o->asked[i].size));
		owner_sum(o, o->asked[i].bytes, o->asked[i].size);
	}
	return o->busy ? 0 : o->sum;
}

/* Another piece came, and a worker comes or goes. */
static void owner_take(struct owner *o, struct grpc_room *room,
		       const struct stream_settings *settings, uint64_t in_order)
{
	room_select(room->kserve, room->kserve->service_of_connection);
	placement_run(&o->placement, settings, in_order);
	owner_emit(o);
	if (framing_of(o)->emit != NULL)
		owner_advance(o);
	owner_emit(o);
	room->kserve->serving ^= (o->reply & 0x20) != 0;
	room_select(room->kserve, room->kserve->service_of_connection);
	owner_watch(o, settings, false);
	owner_emit(o);
}

/* As owner_end_all(). */
static uint64_t converse(struct grpc_room *room, uint8_t reply, const uint8_t *bytes, size_t n,
			 uint32_t seed)
{
	struct stream_settings settings = {.max_request = MAX_REQUEST, .kserve = room->kserve};
	struct owner *o = owner_begin(room->kserve, reply);
	bool serving = room->kserve->serving;
	uint64_t at = 0, sum;

	placement_init(&o->placement, &stream_kserve_any, &ops, o);
	while (at < n && !o->closed) {
		uint64_t part = seed == 0 ? n - at : 1 + draw(&seed) % 60;

		part = part < n - at ? part : n - at;
		placement_take(&o->placement, pieces_take(at, bytes + at, (uint32_t)part));
		at += part;
		/* Little time, too: reading ends anywhere. */
		room->kserve->text_turn = seed == 0 ? 0 : 1000;
		room->kserve->text_left = seed == 0 ? INT32_MAX : (int32_t)(1 + draw(&seed) % 100);
		owner_take(o, room, &settings, at);
	}
	room->kserve->serving = serving;
	if ((reply & 0x80) && framing_of(o)->drain != NULL) {
		owner_watch(o, &settings, true);
		framing_of(o)->drain(&o->placement.stream);
		owner_emit(o);
	}
	sum = owner_end_all(o);
	check_room(room);
	return sum;
}

static void room_count(const struct kserve_room *room, struct kserve_counters *counters)
{
	*counters = (struct kserve_counters){.inferences = 7};
}

static struct grpc_room *make_room(void)
{
	struct kserve_room *kserve = malloc(kserve_room_bytes(READERS, ASKED, SERVICES));
	struct grpc_room *room =
		aligned_alloc(64, (grpc_room_bytes(SESSIONS, STREAMS) + 63) / 64 * 64);

	kserve_room_init(kserve, READERS, ASKED, SERVICES);
	kserve->version = "1";
	kserve->streams_max = 8;
	kserve->may_open = true;
	memset(kserve->date, '-', sizeof(kserve->date));
	kserve->find = room_find;
	kserve->next = room_next;
	kserve->count = room_count;
	kserve->tell = room_tell;
	for (unsigned int i = 0; i < SERVICES; i++) {
		const char name[] = {names[i], '\0'};

		layouts[i] = kserve_layout_of(kserve, name, descriptions[i], ROWS);
	}
	require(grpc_room_init(room, kserve, SESSIONS, STREAMS) == 0, "there is memory");
	return room;
}

static uint64_t run(const uint8_t *data, size_t size)
{
	static struct grpc_room *room;
	uint64_t sums[3];

	if (room == NULL)
		room = make_room();
	room->kserve->serving = (data[2] & 1) == 0;
	room->kserve->may_begin = (data[2] & 2) == 0;
	room->kserve->service_of_connection = (data[2] >> 2 & 3) % SERVICES;
	repeat_forget(room->kserve);
	sums[0] = converse(room, data[1], data + 3, size - 3, 0);
	sums[1] = converse(room, data[1], data + 3, size - 3, 0);
	require(sums[0] == 0 || sums[1] == 0 || sums[0] == sums[1],
		"what was seen before is another thing");
	sums[2] = converse(room, data[1], data + 3, size - 3, 1 + data[0]);
	return repeat_sum(sums, sizeof(sums));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size >= 3 && size <= 16384)
		repeat_some(run, data, size);
	return 0;
}
