/* SPDX-License-Identifier: BSD-3-Clause */
#include "grpc_text.h"

#include <string.h>

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define INPUTS                                                                                     \
	"\x0a\4echo\x1a\1x\x2a\xc\xa\1a\x12\4FP32\x1a\1\2"                                         \
	"\x2a\xd\xa\1b\x12\5UINT8\x1a\1\4\x3a\x8\0\0\x80\x3f\0\0\0\x40\x3a\4wxyz"

struct model_description kserve_described = {
	.version = "1",
	.n_inputs = 2,
	.n_outputs = 2,
	.input = {{.name = "a", .datatype = DATATYPE_FP32, .rank = 1, .shape = {2}},
		  {.name = "b", .datatype = DATATYPE_UINT8, .rank = 1, .shape = {-1}}},
	.output = {{.name = "c", .datatype = DATATYPE_FP32, .rank = 1, .shape = {2}},
		   {.name = "d", .datatype = DATATYPE_UINT8, .rank = 1, .shape = {-1}}},
};

struct walk_worker *kserve_worker_of(struct walk *w, const struct walk_worker_params *params,
				     uint32_t min_request, struct model_description *described)
{
	struct lb_registration r;
	struct walk_worker *v;

	walk_worker_registration(w, params, &r);
	r.worker.min_request = min_request;
	r.worker.description = described;
	v = walk_worker_register_as(w, &r);
	walk_need(v != NULL && walk_worker_start(v), "%s", w->error);
	return v;
}

struct model_description kserve_one_tensor(enum datatype datatype)
{
	return (struct model_description){
		.version = "1",
		.n_inputs = 1,
		.n_outputs = 1,
		.input = {{.name = "a", .datatype = datatype, .rank = 1, .shape = {-1}}},
		.output = {{.name = "b", .datatype = datatype, .rank = 1, .shape = {-1}}},
	};
}

struct walk_worker *kserve_worker(struct walk *w)
{
	static const struct walk_worker_params roomy = {
		.max_request = 65536, .max_reply = 65536, .room = 262144};

	return kserve_worker_of(w, &roomy, 8, &kserve_described);
}

struct walk_worker *kserve_rows_worker(struct walk *w, const char *name, uint32_t rows)
{
	static struct model_description described;
	const struct walk_worker_params many = {
		.name = name, .max_request = 2, .max_reply = 2, .slots = 512, .max_batch = rows};

	described = kserve_one_tensor(DATATYPE_UINT16);
	described.batch = true;
	return kserve_worker_of(w, &many, 2, &described);
}

void text_frame(struct text *t, uint8_t type, uint8_t flags, uint32_t stream, const void *bytes,
		uint32_t n)
{
	const uint8_t head[9] = {n >> 16,      n >> 8,       n >> 0,      type,  flags,
				 stream >> 24, stream >> 16, stream >> 8, stream};

	walk_need(t->n + sizeof(head) + n <= sizeof(t->at), "too long a text");
	memcpy(t->at + t->n, head, sizeof(head));
	if (n > 0)
		memcpy(t->at + t->n + sizeof(head), bytes, n);
	t->n += sizeof(head) + n;
}

void text_preface(struct text *t)
{
	memcpy(t->at, PREFACE, sizeof(PREFACE) - 1);
	t->n = sizeof(PREFACE) - 1;
	text_frame(t, FRAME_SETTINGS, 0, 0, "", 0);
}

void text_call(struct text *t, uint32_t stream)
{
	static const char message[] = "\0\0\0\0\x36" INPUTS;

	text_frame(t, FRAME_HEADERS, FRAME_END_HEADERS, stream, GRPC_HEAD, sizeof(GRPC_HEAD) - 1);
	text_frame(t, FRAME_DATA, 0, stream, message, 30);
	text_frame(t, FRAME_DATA, FRAME_END_STREAM, stream, message + 30, sizeof(message) - 1 - 30);
}

unsigned int text_count(const struct http_client *c, const void *bytes, uint32_t n)
{
	unsigned int times = 0;

	for (uint32_t i = 0; i + n <= c->n; i++)
		times += memcmp(c->got + i, bytes, n) == 0;
	return times;
}

unsigned int text_frames(const struct http_client *c, uint8_t type, uint32_t stream)
{
	unsigned int times = 0;
	uint32_t n;

	for (uint32_t i = 0; i + 9 <= c->n; i += 9 + n) {
		const uint8_t *h = (const uint8_t *)c->got + i;
		uint32_t id =
			(uint32_t)h[5] << 24 | (uint32_t)h[6] << 16 | (uint32_t)h[7] << 8 | h[8];

		n = (uint32_t)h[0] << 16 | (uint32_t)h[1] << 8 | h[2];
		times += h[3] == type && (stream == 0 || id == stream);
	}
	return times;
}
