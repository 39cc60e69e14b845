/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of the framing kserve that were read before, and heads of replies that pass as they are.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "framing/kserve_reply.h"
#include "framing/kserve_room.h"

#define LIMIT 4096

static const struct model_description described = {
	.version = "1",
	.n_inputs = 1,
	.n_outputs = 1,
	.input =
		{{.name = "x", .datatype = DATATYPE_UINT8, .rank = 1, .shape = {DESCRIPTION_FREE}}},
	.output =
		{{.name = "y", .datatype = DATATYPE_UINT8, .rank = 1, .shape = {DESCRIPTION_FREE}}},
};

static struct kserve_room *room;
static struct kserve_layout *layout;
static struct stream stream;
static struct stream_settings settings;

static bool find(struct kserve_room *r, const char *model)
{
	r->layout = layout;
	return strcmp(model, "m") == 0;
}

static bool next(struct kserve_room *r)
{
	return false;
}

static void setup(void)
{
	room = malloc(kserve_room_bytes(2, 8, 2));
	kserve_room_init(room, 2, 8, 2);
	room->version = "1";
	room->model = "m";
	room->serving = true;
	room->max_request = LIMIT;
	room->text_left = INT32_MAX;
	room->find = find;
	room->next = next;
	memset(room->date, 'd', sizeof(room->date));
	room->layout = layout = kserve_layout_of(room, "m", &described, 1);
	stream = (struct stream){.position = 1000};
	settings = (struct stream_settings){.max_request = LIMIT, .kserve = room};
}

static void teardown(void)
{
	stream_kserve.release(&stream);
	cr_expect_eq(layout->users, 1, "requests keep no model");
	free(room);
}

TestSuite(lb_kserve_seen, .init = setup, .fini = teardown);

/* A request of <bytes> bytes, as <shape> says; <more> are fields of its head, <json> members of its
 * JSON. */
static uint32_t write_shape(char *at, const char *shape, uint32_t bytes, const char *more,
			    const char *json)
{
	char text[512];
	int n = sprintf(text,
			"{%s\"inputs\":[{\"name\":\"x\",\"shape\":[%s],\"datatype\":\"UINT8\","
			"\"parameters\":{\"binary_data_size\":%u}}],"
			"\"parameters\":{\"binary_data_output\":true}}",
			json, shape, bytes);

	n = sprintf(at,
		    "POST /v2/models/m/infer HTTP/1.1\r\nHost: models.example.org:8000\r\n%s"
		    "Inference-Header-Content-Length: %d\r\nContent-Length: %d\r\n\r\n%s",
		    more, n, n + (int)bytes, text);
	memset(at + n, 'x', bytes);
	return n + bytes;
}

static uint32_t write_request(char *at, uint32_t bytes, const char *more, const char *json)
{
	char shape[16];

	snprintf(shape, sizeof(shape), "%u", bytes);
	return write_shape(at, shape, bytes, more, json);
}

/* Reads it. Returns the tag of the request; <calls> says how many calls of read() it took, <kind>
 * what the first action was. */
static uint64_t read_request(const char *at, uint32_t n, unsigned int *calls, uint8_t *kind)
{
	struct stream_action actions[STREAM_ACTIONS_MIN];
	uint64_t begin = stream.position, end = begin + n, tag = 0, named = 0, size = 0;
	bool first = true;

	*calls = 0;
	while (stream.position < end) {
		const uint8_t *from = (const uint8_t *)at + (stream.position - begin);
		unsigned int done;

		cr_assert_lt(++*calls, 100, "reading ends");
		done = stream_kserve.read(&stream, &settings, from,
					  (uint32_t)(end - stream.position), actions,
					  STREAM_ACTIONS_MIN);
		for (unsigned int i = 0; i < done; i++) {
			const struct stream_action *a = &actions[i];

			if (first)
				*kind = a->kind;
			first = false;
			if (a->kind == STREAM_BEGIN || a->kind == STREAM_REQUEST) {
				tag = a->begin.tag;
				size = a->begin.size;
			}
			if (a->kind == STREAM_REQUEST) {
				cr_expect_eq(a->whole.position + size, end);
				named = size;
			}
			if (a->kind == STREAM_EXTENT)
				named += a->extent.length;
			if (a->kind == STREAM_REFUSE)
				tag = a->refuse.tag;
		}
	}
	cr_expect_eq(named, size, "all its bytes are named");
	return tag;
}

static uint8_t kind_of_shape(const char *shape, uint32_t bytes, const char *more, const char *json)
{
	char text[8192];
	uint32_t n = write_shape(text, shape, bytes, more, json);
	unsigned int calls;
	uint8_t kind;

	read_request(text, n, &calls, &kind);
	cr_expect(kind != STREAM_REQUEST || calls == 1, "one call reads it");
	return kind;
}

static uint8_t kind_of(uint32_t bytes, const char *more, const char *json)
{
	char shape[16];

	snprintf(shape, sizeof(shape), "%u", bytes);
	return kind_of_shape(shape, bytes, more, json);
}

Test(lb_kserve_seen, the_same_again)
{
	cr_expect_eq(kind_of(700, "", ""), STREAM_BEGIN);
	cr_expect_eq(kind_of(700, "", ""), STREAM_REQUEST);
	cr_expect_eq(kind_of(701, "", ""), STREAM_BEGIN);
	cr_expect_eq(kind_of(700, "X: y\r\n", ""), STREAM_BEGIN);
	cr_expect_eq(kind_of(700, "", "\"id\":\"a\","), STREAM_BEGIN);
	cr_expect_eq(kind_of(700, "", "\"id\":\"b\","), STREAM_BEGIN);
	stream_kserve.release(&stream);
	cr_expect_eq(kind_of(701, "", ""), STREAM_REQUEST);
}

Test(lb_kserve_seen, what_must_not_be_remembered)
{
	for (unsigned int i = 0; i < 2; i++) {
		cr_expect_neq(kind_of(700, "Expect: 100-continue\r\n", ""), STREAM_REQUEST);
		stream_kserve.release(&stream);
	}
	for (unsigned int i = 0; i < 2; i++) {
		cr_expect_eq(kind_of(700, "Connection: close\r\n", ""), STREAM_BEGIN);
		stream_kserve.release(&stream);
		stream = (struct stream){.position = 1000};
	}
}

/* A batch is several requests, also when it is the same again. */
Test(lb_kserve_seen, batches_are_read_each_time)
{
	struct model_description rows = described;

	rows.batch = true;
	rows.input[0].rank = rows.output[0].rank = 2;
	rows.input[0].shape[1] = rows.output[0].shape[1] = 10;
	layout = kserve_layout_of(room, "m", &rows, 4);
	for (unsigned int i = 0; i < 2; i++)
		cr_expect_eq(kind_of_shape("2,10", 20, "", ""), STREAM_BEGIN);
	cr_expect_eq(kind_of_shape("1,10", 10, "", ""), STREAM_BEGIN);
	cr_expect_eq(kind_of_shape("1,10", 10, "", ""), STREAM_REQUEST);
}

Test(lb_kserve_seen, deadlines_and_ids_are_those_of_then)
{
	char text[8192];
	uint32_t n = write_request(text, 10, "", "\"id\":\"abc\",");
	const struct kserve_asked *a;
	unsigned int calls;
	uint8_t kind;

	read_request(text, n, &calls, &kind);
	a = (const struct kserve_asked *)(uintptr_t)read_request(text, n, &calls, &kind);
	cr_expect_eq(kind, STREAM_REQUEST);
	cr_expect(a->has_id && a->id_length == 3 && memcmp(a->id, "abc", 3) == 0);
	cr_expect(a->keep_alive && a->minor == 1 && a->binary == 1 && a->outputs == 1);
}

/* Another model, limit or state: it is read anew, and answered as that wants. */
Test(lb_kserve_seen, not_when_things_have_changed)
{
	struct kserve_layout *old = layout;

	cr_expect_eq(kind_of(700, "", ""), STREAM_BEGIN);
	stream_kserve.release(&stream);
	settings.max_request = LIMIT - 1;
	cr_expect_eq(kind_of(700, "", ""), STREAM_BEGIN);
	stream_kserve.release(&stream);
	settings.max_request = LIMIT;
	room->max_request = 600;
	cr_expect_eq(kind_of(700, "", ""), STREAM_REFUSE);
	stream_kserve.release(&stream);
	room->max_request = LIMIT;
	room->serving = false;
	cr_expect_eq(kind_of(700, "", ""), STREAM_REFUSE);
	stream_kserve.release(&stream);
	room->serving = true;
	/* The memory of a model that went is another one's. */
	kserve_layout_leave(room, old);
	layout = kserve_layout_of(room, "m", &described, 1);
	cr_expect_eq(layout, old);
	cr_expect_eq(kind_of(700, "", ""), STREAM_BEGIN);
}

Test(lb_kserve_seen, others_are_forgotten_in_turn)
{
	for (uint32_t bytes = 1; bytes <= 600; bytes++) {
		cr_expect_eq(kind_of(bytes, "", ""), STREAM_BEGIN);
		stream_kserve.release(&stream);
	}
	cr_expect_eq(kind_of(600, "", ""), STREAM_REQUEST);
	stream_kserve.release(&stream);
	cr_expect_eq(kind_of(1, "", ""), STREAM_BEGIN);
}

/* --- replies --- */

/* The head of a reply of <bytes> bytes that passes as it is. */
static struct stream_piece head_that_keeps(uint64_t tag, uint32_t bytes, uint8_t *head)
{
	struct stream_reply reply = {.tag = tag, .length = bytes};

	cr_assert(stream_kserve.keeps(&stream, &reply));
	return stream_kserve.reply(&stream, &reply, head);
}

/* The same by rewriting it: the head, and the text behind it. */
static uint32_t head_by_rewriting(uint64_t tag, uint32_t bytes, uint8_t *at)
{
	struct stream_reply reply = {.tag = tag, .length = bytes};
	struct stream_rewritten done;
	static uint8_t text[4096], row[64];
	struct stream_piece piece;
	uint32_t n = 0;

	do {
		done = stream_kserve.rewrite(&stream, &reply, row, 0, text + n, 2048);
		n += done.length;
	} while (!done.done);
	cr_assert(done.keeps);
	reply.length = n + bytes;
	piece = stream_kserve.reply(&stream, &reply, at);
	memcpy(at + piece.head, text, n);
	return piece.head + n;
}

Test(lb_kserve_seen, heads_of_replies_are_those_that_rewriting_makes)
{
	static const char *const members[] = {"", "\"id\":\"q\","};
	static const uint32_t lengths[] = {1, 700, 700, 99999, 1};
	uint8_t kept[STREAM_HEAD_MAX], rewritten[STREAM_HEAD_MAX + 4096];
	unsigned int calls;
	uint8_t kind;
	char text[8192];

	for (unsigned int m = 0; m < 2; m++) {
		uint32_t n = write_request(text, 700, "", members[m]);

		for (unsigned int i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
			struct stream_piece piece;
			uint32_t length;

			piece = head_that_keeps(read_request(text, n, &calls, &kind), lengths[i],
						kept);
			cr_expect(piece.last && !piece.closes && piece.bytes == lengths[i]);
			length = head_by_rewriting(read_request(text, n, &calls, &kind), lengths[i],
						   rewritten);
			cr_assert_eq(piece.head, length);
			cr_expect_arr_eq(kept, rewritten, length);
		}
	}
	cr_expect_null(stream.open, "all are answered");
}
