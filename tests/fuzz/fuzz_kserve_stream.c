/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes as a client's stream for the framing kserve, through placement.c as the owner of a
 * connection does it, for a service with two inputs, one that takes raw bodies, one of text
 * whose replies come in pieces, one with strings in front of other outputs, and one that takes
 * batches. Three bytes of options come first: seed of the cuts, the reply and
 * its pieces, whether workers are there and whose connection it is. However the rest is cut, and
 * if it was seen before, the same requests have the same bytes, each byte is written once, the
 * answers are the same, and all memory comes back.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "framing/kserve_room.h"
#include "framing/placement.h"
#include "elements.h"
#include "pieces.h"
#include "repeat.h"
#include "told.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define READERS     1
#define ASKED       4
#define MAX_REQUEST 5000
#define REQUESTS    16
#define LOG_MAX     (1u << 19)

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

static const struct model_description described_text = {
	.version = "1",
	.n_inputs = 1,
	.n_outputs = 1,
	.input = {{.name = "a", .datatype = DATATYPE_BYTES, .rank = 1, .shape = {1}}},
	.output = {{.name = "c", .datatype = DATATYPE_BYTES, .rank = 1, .shape = {1}}},
};

static const struct model_description described_strings = {
	.version = "1",
	.n_inputs = 3,
	.n_outputs = 3,
	.input = {{.name = "a", .datatype = DATATYPE_BYTES, .rank = 1, .shape = {2}},
		  {.name = "b", .datatype = DATATYPE_UINT16, .rank = 1, .shape = {2}},
		  {.name = "c", .datatype = DATATYPE_BYTES, .rank = 1, .shape = {1}}},
	.output = {{.name = "d", .datatype = DATATYPE_BYTES, .rank = 1, .shape = {2}},
		   {.name = "e", .datatype = DATATYPE_UINT16, .rank = 1, .shape = {2}},
		   {.name = "f", .datatype = DATATYPE_BYTES, .rank = 1, .shape = {1}}},
};

static const struct model_description described_rows = {
	.version = "1",
	.batch = true,
	.n_inputs = 2,
	.n_outputs = 2,
	.input = {{.name = "a", .datatype = DATATYPE_UINT16, .rank = 2, .shape = {-1, 3}},
		  {.name = "b", .datatype = DATATYPE_UINT8, .rank = 2, .shape = {-1, 2}}},
	.output = {{.name = "c", .datatype = DATATYPE_UINT16, .rank = 2, .shape = {-1, 3}},
		   {.name = "d", .datatype = DATATYPE_UINT8, .rank = 2, .shape = {-1, 2}}},
};

#define ROWS 4

struct asked {
	uint32_t rows, ends[ROWS];
	uint16_t service;
	bool begun, named, answered, text, streams;
	uint64_t tag, size, placed;
	uint8_t bytes[MAX_REQUEST], written[MAX_REQUEST];
};

struct owner {
	struct kserve_room *room;
	struct placement placement;
	bool told[REQUESTS + 1]; /* by number */
	struct asked *asked;     /* by number: REQUESTS + 1 */
	uint32_t n_asked;        /* those of them that are not zeros */
	uint32_t first;      /* the oldest that is not answered */
	uint8_t reply;       /* option */
	bool closed;
	bool rewrites; /* also replies that could pass as they are */
	char *log;     /* all that is sent to the client */
	uint32_t n_log;
};

/* Services with one address: "m", "n", "t", "s", "b", "v" and "w". */
#define SERVICES 7
static const char names[] = "mntsbvw";
static const struct model_description *const descriptions[SERVICES] = {
	&described,      &described_raw,      &described_text, &described_strings,
	&described_rows, &described_elements, &described_both};
static struct kserve_layout *layouts[SERVICES];

static void room_select(struct kserve_room *room, uint16_t service)
{
	room->service = service;
	room->layout = layouts[service];
	room->model = layouts[service]->model.name;
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

static void room_tell(struct kserve_room *room, const struct stream *s,
		      const struct kserve_told *told)
{
	struct owner *o = (void *)((char *)(uintptr_t)s - offsetof(struct owner, placement.stream));

	told_note(o->told, told);
}

static void owner_say(struct owner *o, const void *bytes, uint32_t n)
{
	require(n <= LOG_MAX - o->n_log, "answers are short");
	memcpy(o->log + o->n_log, bytes, n);
	o->n_log += n;
}

/* Writes a chunk to <text>, behind the <n> bytes of those before. Returns the bytes. */
static uint32_t owner_rewrite(struct owner *o, struct stream_reply *reply, const uint8_t *bytes,
			      uint8_t *text, uint32_t n, bool *waits)
{
	uint32_t calls = 0;

	if (reply->notice == 0 && n == 0 && !o->rewrites &&
	    o->placement.framing->keeps(&o->placement.stream, reply)) {
		memcpy(text, bytes, reply->length);
		return reply->length;
	}
	while (reply->notice == 0) {
		/* A few bytes lie in a row, as in packets. */
		uint32_t left = reply->length - reply->taken, row = left < 100 ? left : 100;
		struct stream_rewritten done;

		require(reply->taken <= reply->length, "it wants bytes of the reply");
		done = o->placement.framing->rewrite(&o->placement.stream, reply,
						     bytes + reply->taken, row, text + n, 2048);
		n += done.length;
		require(done.length <= 2048 && ++calls < 2000, "an answer ends");
		if (done.done && done.keeps) {
			memcpy(text + n, bytes, reply->length);
			n += reply->length;
		}
		*waits = done.waits;
		if (done.done)
			break;
	}
	return n;
}

/* The next piece of a text, as one element of BYTES. Returns its length. */
static uint32_t owner_cut(const struct asked *a, uint32_t piece, uint32_t pieces, uint8_t *to)
{
	uint32_t all = (uint32_t)a->size - 4, from = all / pieces * piece,
		 n = piece == pieces - 1 ? all - from : all / pieces;

	memcpy(to, &n, 4);
	memcpy(to + 4, a->bytes + 4 + from, n);
	return n + 4;
}

/* As the owner does it: not before all of the request has come. */
static void owner_beat(struct owner *o, const struct asked *a, uint8_t *at)
{
	if (a->streams && a->named && a->placed == a->size)
		owner_say(o, at, o->placement.framing->beat(&o->placement.stream, a->tag, at));
}

static void owner_reply(struct owner *o, uint32_t number, struct stream_reply reply)
{
	const struct stream_framing *framing = o->placement.framing;
	struct asked *a = &o->asked[number];
	uint32_t pieces = a->text && reply.notice == 0 ? 1 + (o->reply >> 2 & 3) : 1, n = 0;
	static uint8_t text[1u << 18], chunk[MAX_REQUEST], head[STREAM_HEAD_MAX];

	require(framing->head_max == sizeof(head), "a head has its room");

	for (uint32_t i = 0; i < pieces && !a->answered; i++) {
		struct stream_reply r = {.request = number,
					 .tag = a->tag,
					 .chunk = i,
					 .more = i < pieces - 1,
					 .length = reply.length,
					 .rows = a->rows,
					 .ends = a->ends,
					 .failed = reply.notice != 0 ? a->rows : 0,
					 .notice = reply.notice};
		bool waits = false;

		if (pieces > 1)
			r.length = owner_cut(a, i, pieces, chunk);
		if (o->reply & 16 && i == pieces - 1 && i > 0)
			r.notice = 5;
		if (o->reply & 32)
			owner_beat(o, a, head);
		n = owner_rewrite(o, &r, pieces > 1 ? chunk : a->bytes, text, n, &waits);
		if (waits)
			continue;
		r.length = r.notice != 0 ? 0 : n;
		r.more &= r.notice == 0;

		struct stream_piece piece = framing->reply(&o->placement.stream, &r, head);

		require(piece.last && piece.head <= framing->head_max, "one piece");
		owner_say(o, head, piece.head);
		if (r.notice == 0)
			owner_say(o, text, n);
		n = 0;
		a->answered = !r.more;
		o->closed |= piece.closes;
	}
	require(a->answered, "the last piece is the end");
}

/* Requests that are complete are answered in their order, with their own bytes. */
static void owner_advance(struct owner *o)
{
	while (o->first < REQUESTS) {
		struct asked *a = &o->asked[o->first];

		if (!a->answered && (!a->begun || !a->named || a->placed < a->size))
			return;
		require(a->answered || elements_are_whole_rows(descriptions[a->service], a->bytes,
							       a->size, a->ends, a->rows),
			"elements are as long as they say");
		if (!a->answered)
			owner_reply(o, o->first,
				    (struct stream_reply){.length = (uint32_t)a->size,
							  .notice = o->reply & 3});
		o->first++;
	}
}

static bool owner_ready(void *context)
{
	struct owner *o = context;

	owner_advance(o);
	/* A whole turn. */
	if (o->room->text_waits)
		o->room->text_left = o->room->text_turn;
	o->room->text_waits = false;
	o->room->text_kept = 0;
	/* However it is cut, it ends behind the same request. */
	return !o->closed && (o->placement.stream.requests < REQUESTS - 1 ||
			      kserve_room_is_inside(&o->placement.stream));
}

static void owner_write(struct owner *o, uint32_t number, uint64_t offset, const uint8_t *bytes,
			uint32_t n)
{
	struct asked *a = &o->asked[number];

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
	switch (action->kind) {
	case STREAM_BEGIN:
		require(!a->begun && action->begin.size <= MAX_REQUEST, "it begins once");
		require(action->begin.service >= 1 && action->begin.service <= SERVICES,
			"it has a service");
		a->begun = true;
		owner_note_rows(o, a, &action->begin);
		a->service = action->begin.service - 1;
		a->text = a->service == 2;
		a->streams = action->begin.streams;
		a->size = action->begin.size;
		a->tag = action->begin.tag;
		return;
	case STREAM_REQUEST: {
		const struct stream_begin *begin = &action->whole.begin;

		require(!a->begun && begin->size > 0 && begin->size <= MAX_REQUEST,
			"a whole one begins once");
		require(begin->service != 3, "lengths of elements are looked at");
		require(begin->service >= 1 && begin->service <= SERVICES, "it has a service");
		a->begun = a->named = true;
		a->service = begin->service - 1;
		a->size = begin->size;
		a->tag = begin->tag;
		return;
	}
	case STREAM_PRODUCE:
		return owner_produce(o, action);
	case STREAM_END:
		require(a->begun && action->size > 0 && action->size <= a->size, "it has its size");
		a->size = action->size;
		a->named = true;
		return;
	case STREAM_REFUSE:
		a->tag = action->refuse.tag;
		owner_advance(o);
		return owner_reply(o, action->request,
				   (struct stream_reply){.notice = action->refuse.notice});
	case STREAM_SEND:
		owner_advance(o);
		owner_say(o, action->bytes.at, action->bytes.length);
		a->answered |= action->bytes.ends;
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

static const struct placement_ops ops = {owner_ready, owner_act, owner_place, owner_release};

static uint32_t draw(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 16;
}

/* An owner that has seen nothing. */
static void owner_begin(struct owner *o, struct kserve_room *room, uint8_t reply, bool rewrites)
{
	struct asked *asked = o->asked;
	char *log = o->log;

	if (asked == NULL) {
		asked = calloc(REQUESTS + 1, sizeof(*asked));
		log = malloc(LOG_MAX);
	}
	memset(asked, 0, o->n_asked * sizeof(*asked));
	*o = (struct owner){
		.room = room, .reply = reply, .rewrites = rewrites, .asked = asked, .log = log};
	pieces_begin();
}

/* <o> has what was sent to the client. <seed> 0: in one piece. */
static void converse(struct owner *o, struct kserve_room *room, uint8_t reply, const uint8_t *bytes,
		     size_t n, uint32_t seed)
{
	struct stream_settings settings = {.max_request = MAX_REQUEST, .kserve = room};
	uint64_t at = 0;

	owner_begin(o, room, reply, seed != 0);
	placement_init(&o->placement, &stream_kserve, &ops, o);
	while (at < n && !o->closed) {
		uint64_t part = seed == 0 ? n - at : 1 + draw(&seed) % 40;

		part = part < n - at ? part : n - at;
		placement_take(&o->placement, pieces_take(at, bytes + at, (uint32_t)part));
		at += part;
		/* Little time, too: reading ends anywhere. */
		room->text_turn = seed == 0 ? 0 : 1000;
		room->text_left = seed == 0 ? INT32_MAX : (int32_t)(1 + draw(&seed) % 100);
		room_select(room, room->service_of_connection);
		placement_run(&o->placement, &settings, at);
	}
	owner_advance(o);
	told_expect_all(o->told, &o->placement.stream);
	placement_fini(&o->placement);
	require(TAILQ_EMPTY(&room->readers), "readers come back");
	for (unsigned int i = 0; i < SERVICES; i++)
		require(layouts[i]->users == 1, "models come back");
}

static void room_count(const struct kserve_room *room, struct kserve_counters *counters)
{
	*counters = (struct kserve_counters){.inferences = 7};
}

static struct kserve_room *make_room(void)
{
	struct kserve_room *room = malloc(kserve_room_bytes(READERS, ASKED, SERVICES));

	kserve_room_init(room, READERS, ASKED, SERVICES);
	room->version = "1";
	room->max_request = MAX_REQUEST;
	room->find = room_find;
	room->next = room_next;
	room->count = room_count;
	room->tell = room_tell;
	memset(room->date, '-', sizeof(room->date));
	for (unsigned int i = 0; i < SERVICES; i++) {
		const char name[] = {names[i], '\0'};

		layouts[i] = kserve_layout_of(room, name, descriptions[i], ROWS);
	}
	return room;
}

static void require_same(const struct owner *a, const struct owner *b, const char *what)
{
	require(a->n_log == b->n_log && memcmp(a->log, b->log, a->n_log) == 0, what);
}

static uint64_t run(const uint8_t *data, size_t size)
{
	static struct kserve_room *room;
	static struct owner whole, again, cut;

	if (room == NULL)
		room = make_room();
	room->service_of_connection = (data[2] >> 1 & 7) % SERVICES;
	room->serving = (data[2] & 1) == 0;
	repeat_forget(room);
	converse(&whole, room, data[1], data + 3, size - 3, 0);
	converse(&again, room, data[1], data + 3, size - 3, 0);
	require_same(&whole, &again, "what was seen before is answered in another way");
	converse(&cut, room, data[1], data + 3, size - 3, 1 + data[0]);
	require_same(&whole, &cut, "the cuts change the answers");
	return repeat_sum(whole.log, whole.n_log);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size >= 3 && size <= 8192)
		repeat_some(run, data, size);
	return 0;
}
