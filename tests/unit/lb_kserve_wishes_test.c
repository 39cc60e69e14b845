/* SPDX-License-Identifier: BSD-3-Clause */
/* Deadlines and priorities that requests ask for, by HTTP and gRPC, as the owner of the connection
 * is told. The owner takes the later of a request's and the service's priority, and the service's
 * deadline where a request has none. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "framing/grpc_session.h"

static const struct model_description described = {
	.version = "1",
	.n_inputs = 1,
	.n_outputs = 1,
	.input = {{.name = "a", .datatype = DATATYPE_UINT8, .rank = 1, .shape = {-1}}},
	.output = {{.name = "b", .datatype = DATATYPE_UINT8, .rank = 1, .shape = {-1}}},
};

static bool room_find(struct kserve_room *room, const char *model)
{
	return strcmp(model, "m") == 0;
}

static bool room_next(struct kserve_room *room)
{
	return false;
}

static struct kserve_room *make_room(void)
{
	struct kserve_room *room = calloc(1, kserve_room_bytes(2, 8, 2));
	struct grpc_room *grpc = calloc(1, grpc_room_bytes(8, 4));

	cr_assert(room != NULL && grpc != NULL);
	kserve_room_init(room, 2, 8, 2);
	room->find = room_find;
	room->next = room_next;
	room->serving = room->may_open = room->may_begin = true;
	room->streams_max = 4;
	room->max_request = 1000;
	room->model = "m";
	room->layout = kserve_layout_of(room, "m", &described, 1);
	cr_assert_eq(grpc_room_init(grpc, room, 8, 4), 0);
	return room;
}

/* BEGIN of the first request in the client's bytes. */
static struct stream_begin begin_of(const struct stream_framing *framing, const uint8_t *bytes,
				    size_t length)
{
	struct kserve_room *room = make_room();
	struct stream_settings settings = {.max_request = 1000, .kserve = room};
	struct stream_action actions[8];
	struct stream_begin begin = {0};
	struct stream s = {0};
	bool found = false;

	while (!found && s.position < length) {
		uint64_t before = s.position;
		unsigned int n;

		room->text_left = 4096;
		n = framing->read(&s, &settings, bytes + before, (uint32_t)(length - before),
				  actions, 8);
		cr_assert(n > 0 || s.position > before, "it reads on");
		for (unsigned int i = 0; i < n; i++) {
			cr_assert_neq(actions[i].kind, STREAM_REFUSE);
			if (actions[i].kind != STREAM_BEGIN)
				continue;
			begin = actions[i].begin;
			found = true;
		}
	}
	cr_assert(found, "a request begins");
	framing->release(&s);
	grpc_room_fini(room->grpc);
	free(room->grpc);
	free(room);
	return begin;
}

struct row {
	const char *timeout, *priority; /* parameters; NULL: none */
	const char *grpc_timeout;
	uint32_t deadline_us;
	uint8_t asked;
};

static const struct row rows[] = {
	{NULL, NULL, NULL, 0, 0},
	/* 1 is the first; what is later than 4 is 4; 0: the service's */
	{NULL, "0", NULL, 0, 0},
	{NULL, "1", NULL, 0, 1},
	{NULL, "4", NULL, 0, 4},
	{NULL, "5", NULL, 0, 4},
	{NULL, "256", NULL, 0, 4},
	{NULL, "9223372036854775807", NULL, 0, 4},
	/* us; 0: the service's; beyond 71 minutes: 71 minutes */
	{"0", NULL, NULL, 0, 0},
	{"1", NULL, NULL, 1, 0},
	{"250000", "3", NULL, 250000, 3},
	{"4294967295", NULL, NULL, UINT32_MAX, 0},
	{"4294967296", NULL, NULL, UINT32_MAX, 0},
	/* of two the shorter one */
	{NULL, NULL, "100m", 100000, 0},
	{"50000", NULL, "100m", 50000, 0},
	{"500000", NULL, "100m", 100000, 0},
	{"0", NULL, "2S", 2000000, 0},
	{NULL, NULL, "99999999H", UINT32_MAX, 0},
	{NULL, NULL, "1n", 1, 0},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* --- HTTP/1.1 ----------------------------------------------------------------------------------
 */

static size_t http_bytes(const struct row *r, char *at, size_t room)
{
	char parameters[128] = "", body[512];

	snprintf(parameters, sizeof(parameters), "%s%s%s%s%s", r->timeout ? "\"timeout\":" : "",
		 r->timeout ? r->timeout : "", r->timeout && r->priority ? "," : "",
		 r->priority ? "\"priority\":" : "", r->priority ? r->priority : "");
	snprintf(body, sizeof(body),
		 "{\"parameters\":{%s},\"inputs\":[{\"name\":\"a\",\"shape\":[1],\"datatype\":"
		 "\"UINT8\",\"data\":[7]}]}",
		 parameters);
	return (size_t)snprintf(at, room,
				"POST /v2/models/m/infer HTTP/1.1\r\nHost: h\r\n"
				"Content-Length: %zu\r\n\r\n%s",
				strlen(body), body);
}

Test(lb_kserve_wishes, by_http)
{
	for (size_t i = 0; i < ROWS; i++) {
		char text[1024];
		size_t n = http_bytes(&rows[i], text, sizeof(text));
		struct stream_begin begin;

		if (rows[i].grpc_timeout != NULL)
			continue;
		begin = begin_of(&stream_kserve, (uint8_t *)text, n);
		cr_expect_eq(begin.deadline_us, rows[i].deadline_us, "row %zu: %" PRIu32, i,
			     begin.deadline_us);
		cr_expect_eq(begin.priority, rows[i].asked, "row %zu: %u", i, begin.priority);
	}
}

/* --- gRPC --------------------------------------------------------------------------------------
 */

struct bytes {
	uint8_t at[2048];
	size_t n;
};

static void put(struct bytes *b, const void *bytes, size_t n)
{
	cr_assert(n <= sizeof(b->at) - b->n);
	memcpy(b->at + b->n, bytes, n);
	b->n += n;
}

static void put_byte(struct bytes *b, size_t byte)
{
	uint8_t value = (uint8_t)byte;

	put(b, &value, 1);
}

/* A field of less than 128 bytes. */
static void put_field(struct bytes *b, unsigned int field, const void *bytes, size_t n)
{
	put_byte(b, field << 3 | 2);
	put_byte(b, n);
	put(b, bytes, n);
}

/* parameters[<key>] = { <field>: the number } */
static void put_parameter(struct bytes *b, const char *key, const char *text, unsigned int field)
{
	struct bytes entry = {.n = 0}, value = {.n = 0};
	uint64_t number = strtoull(text, NULL, 10);

	put_byte(&value, field << 3);
	for (; number >= 0x80; number >>= 7)
		put_byte(&value, (number & 0x7f) | 0x80);
	put_byte(&value, number);
	put_field(&entry, 1, key, strlen(key));
	put_field(&entry, 2, value.at, value.n);
	put_field(b, 4, entry.at, entry.n);
}

/* A field of a head: a literal that is not indexed (RFC 7541, 6.2.2). */
static void put_head(struct bytes *b, const char *name, const char *value)
{
	put_byte(b, 0);
	put_byte(b, strlen(name));
	put(b, name, strlen(name));
	put_byte(b, strlen(value));
	put(b, value, strlen(value));
}

static void put_frame(struct bytes *b, uint8_t type, uint8_t flags, uint8_t stream,
		      const struct bytes *payload)
{
	const uint8_t header[9] = {
		0, (uint8_t)(payload->n >> 8), (uint8_t)payload->n, type, flags, 0, 0, 0, stream};

	put(b, header, sizeof(header));
	put(b, payload->at, payload->n);
}

static void grpc_bytes(const struct row *r, unsigned int field, struct bytes *b)
{
	struct bytes head = {.n = 0}, input = {.n = 0}, message = {.n = 0}, data = {.n = 0}, none;

	none.n = 0;
	put_head(&head, ":method", "POST");
	put_head(&head, ":scheme", "http");
	put_head(&head, ":authority", "h");
	put_head(&head, ":path", "/inference.GRPCInferenceService/ModelInfer");
	put_head(&head, "content-type", "application/grpc");
	if (r->grpc_timeout != NULL)
		put_head(&head, "grpc-timeout", r->grpc_timeout);
	put_field(&message, 1, "m", 1);
	if (r->timeout != NULL)
		put_parameter(&message, "timeout", r->timeout, field);
	if (r->priority != NULL)
		put_parameter(&message, "priority", r->priority, field);
	put_field(&input, 1, "a", 1);
	put_field(&input, 2, "UINT8", 5);
	put_field(&input, 3, "\1", 1);
	put_field(&message, 5, input.at, input.n);
	put_field(&message, 7, "\7", 1);
	put_byte(&data, 0);
	put(&data, (uint8_t[4]){0, 0, (uint8_t)(message.n >> 8), (uint8_t)message.n}, 4);
	put(&data, message.at, message.n);
	put(b, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
	put_frame(b, 4, 0, 0, &none);
	put_frame(b, 1, 4, 1, &head);
	put_frame(b, 0, 1, 1, &data);
}

/* <field>: of InferParameter, 2 is int64_param, 5 uint64_param. */
static void check_grpc(unsigned int field)
{
	for (size_t i = 0; i < ROWS; i++) {
		struct bytes all = {.n = 0};
		struct stream_begin begin;

		grpc_bytes(&rows[i], field, &all);
		/* stream_kserve_any has seen the first three. */
		begin = begin_of(&stream_grpc, all.at + 3, all.n - 3);
		cr_expect_eq(begin.deadline_us, rows[i].deadline_us, "row %zu: %" PRIu32, i,
			     begin.deadline_us);
		cr_expect_eq(begin.priority, rows[i].asked, "row %zu: %u", i, begin.priority);
	}
}

Test(lb_kserve_wishes, by_grpc)
{
	check_grpc(2);
}

Test(lb_kserve_wishes, by_grpc_unsigned)
{
	check_grpc(5);
}
