/* SPDX-License-Identifier: BSD-3-Clause */
#include "walk/tcp_speech.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRAME_HEADER 9u
#define FRAME_DATA   16384 /* bytes of a DATA frame, as clients cut a message by default */
#define GRPC_PREFIX  5

/* --- length and HTTP ----------------------------------------------------------------------------
 */

static const char kserve_json[] =
	"{\"inputs\":[{\"name\":\"x\",\"shape\":[%u],\"datatype\":\"UINT8\","
	"\"parameters\":{\"binary_data_size\":%u}}],\"parameters\":{\"binary_data_output\":true}}";
/* The fields that tritonclient sends, with curl's. */
static const char kserve_head[] = "POST /v2/models/one/infer HTTP/1.1\r\n"
				  "Host: " RIG_VIP ":%u\r\n"
				  "User-Agent: bench/1\r\n"
				  "Accept: */*\r\n"
				  "Inference-Header-Content-Length: %d\r\n"
				  "Content-Length: %u\r\n"
				  "\r\n%s";

static void speech_kserve(struct tcp_speech *s, uint32_t payload)
{
	char json[TCP_SPEECH_TEXT];
	int n = snprintf(json, sizeof(json), kserve_json, payload, payload);

	n = snprintf((char *)s->text, sizeof(s->text), kserve_head, RIG_SERVICE_UDP + RIG_KSERVE, n,
		     n + payload, json);
	if (n < 0 || n >= TCP_SPEECH_TEXT)
		rig_die("a request's head is too long");
	s->head = (uint32_t)n;
}

static bool speech_is_http(const uint8_t *head, uint32_t length, uint32_t payload)
{
	char text[1024], json[32];
	const char *at;

	if (length >= sizeof(text))
		return false;
	memcpy(text, head, length);
	text[length] = '\0';
	snprintf(json, sizeof(json), "\"binary_data_size\":%u}", payload);
	at = strstr(text, "\r\nContent-Length: ");
	if (strncmp(text, "HTTP/1.1 200 OK\r\n", 17) != 0 || at == NULL ||
	    strstr(text, json) == NULL)
		return false;
	/* JSON and payload are the body. */
	return (uint32_t)atoi(at + 18) == length + payload - (strstr(text, "\r\n\r\n") + 4 - text);
}

bool tcp_speech_is_reply(const struct tcp_speech *s, const uint8_t *head, uint32_t length,
			 uint32_t payload)
{
	uint32_t words[2];

	if (s->framing == TCP_KSERVE)
		return speech_is_http(head, length, payload);
	memcpy(words, head, sizeof(words));
	return words[0] == payload && words[1] == 0;
}

/* --- gRPC ---------------------------------------------------------------------------------------
 */

static void frame_header(uint8_t *at, uint32_t n, uint8_t type, uint8_t flags, uint32_t stream)
{
	const uint8_t header[FRAME_HEADER] = {n >> 16,      n >> 8,       n >> 0,      type,  flags,
					      stream >> 24, stream >> 16, stream >> 8, stream};

	memcpy(at, header, sizeof(header));
}

/* The preface, and SETTINGS with a window of 1 MiB for answers. */
uint32_t tcp_speech_greet(uint8_t *at)
{
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	static const uint8_t window[] = {0, 4, 0, 0x10, 0, 0};
	uint32_t n = sizeof(preface) - 1;

	memcpy(at, preface, n);
	frame_header(at + n, sizeof(window), 4, 0, 0);
	memcpy(at + n + FRAME_HEADER, window, sizeof(window));
	return n + FRAME_HEADER + sizeof(window);
}

uint32_t tcp_speech_accept(uint8_t *at)
{
	frame_header(at, 0, 4, 1, 0);
	return FRAME_HEADER;
}

static void script_put(struct tcp_script *t, const void *bytes, uint32_t n)
{
	memcpy(t->at + t->length, bytes, n);
	t->length += n;
}

static void script_frame(struct tcp_script *t, uint32_t n, uint8_t type, uint8_t flags,
			 uint32_t stream)
{
	frame_header(t->at + t->length, n, type, flags, stream);
	t->length += FRAME_HEADER;
}

/* Names by their numbers in HPACK's table, values as they are. */
static void script_headers(struct tcp_script *t, uint32_t stream)
{
	static const char fields[] = "\x83\x86"
				     "\x04\x2a/inference.GRPCInferenceService/ModelInfer"
				     "\x01\x08"
				     "10.0.0.1"
				     "\x0f\x10\x10"
				     "application/grpc"
				     "\x00\x02te\x08trailers";

	script_frame(t, sizeof(fields) - 1, 1, 4, stream);
	script_put(t, fields, sizeof(fields) - 1);
}

static uint32_t put_varint(uint8_t *at, uint32_t value)
{
	uint32_t n = 0;

	for (; value >= 0x80; value >>= 7)
		at[n++] = (uint8_t)(value | 0x80);
	at[n++] = (uint8_t)value;
	return n;
}

/* Writes the part of a message in front of the tensor, gRPC's prefix included. Returns its length. */
static uint32_t message_head(uint8_t *at, uint32_t payload)
{
	uint8_t shape[5], n_shape = (uint8_t)put_varint(shape, payload);
	uint32_t n = GRPC_PREFIX, length;

	n += (uint32_t)sprintf((char *)at + n, "\x0a\x03one\x2a%c\x0a\x01x\x12\x05UINT8\x1a%c",
			       12 + n_shape, n_shape);
	memcpy(at + n, shape, n_shape);
	n += n_shape;
	at[n++] = 0x3a;
	n += put_varint(at + n, payload);
	length = n - GRPC_PREFIX + payload;
	at[0] = 0;
	for (unsigned int i = 0; i < 4; i++)
		at[1 + i] = (uint8_t)(length >> 8 * (3 - i));
	return n;
}

static void script_grpc(struct tcp_script *t, uint32_t payload, uint32_t number)
{
	uint8_t head[64];
	uint32_t n_head = message_head(head, payload), stream = 2 * number + 1, from = 0;
	uint32_t n = n_head + payload;

	script_headers(t, stream);
	for (uint32_t at = 0; at < n; at += FRAME_DATA) {
		uint32_t length = RTE_MIN(n - at, (uint32_t)FRAME_DATA), of_head = 0;

		script_frame(t, length, 0, at + length == n, stream);
		if (at == 0)
			script_put(t, head, of_head = n_head);
		t->range[t->ranges++] = (struct tcp_part){t->length, from, length - of_head};
		t->length += length - of_head;
		from += length - of_head;
	}
}

/* A call in one segment, its message in one frame. */
static void speech_grpc(struct tcp_speech *s, uint32_t payload)
{
	uint8_t head[64];
	uint32_t n = message_head(head, payload);
	struct tcp_script *t = calloc(1, sizeof(*t));

	if (t == NULL)
		rig_die("no memory for a call");
	script_headers(t, 0);
	s->data_frame = t->length;
	script_frame(t, n + payload, 0, 1, 0);
	script_put(t, head, n);
	s->head = t->length;
	if (s->head > sizeof(s->text))
		rig_die("a call's head is too long");
	memcpy(s->text, t->at, s->head);
	free(t);
}

/* --- all of them --------------------------------------------------------------------------------
 */

void tcp_speech_init(struct tcp_speech *s, enum tcp_framing framing, uint32_t payload)
{
	*s = (struct tcp_speech){.framing = framing, .service = RIG_KSERVE};
	if (framing == TCP_KSERVE)
		return speech_kserve(s, payload);
	if (framing == TCP_GRPC)
		return speech_grpc(s, payload);
	s->service = RIG_STREAM;
	s->head = sizeof(payload);
	memcpy(s->text, &payload, sizeof(payload)); /* little-endian, as x86 is */
	s->reply_head = 2 * sizeof(uint32_t);       /* bytes and status */
}

void tcp_speech_put(const struct tcp_speech *s, uint32_t number, uint8_t *at)
{
	const uint32_t be_stream = htonl(2 * number + 1);

	memcpy(at, s->text, s->head);
	if (s->framing != TCP_GRPC)
		return;
	memcpy(at + FRAME_HEADER - sizeof(be_stream), &be_stream, sizeof(be_stream));
	memcpy(at + s->data_frame + FRAME_HEADER - sizeof(be_stream), &be_stream,
	       sizeof(be_stream));
}

void tcp_speech_write(const struct tcp_speech *s, uint32_t payload, uint32_t number,
		      struct tcp_script *script)
{
	memset(script, 0, sizeof(*script));
	if (s->framing == TCP_GRPC)
		return script_grpc(script, payload, number);
	script_put(script, s->text, s->head);
	script->range[script->ranges++] = (struct tcp_part){s->head, 0, payload};
	script->length += payload;
}

/* --- answers of gRPC ----------------------------------------------------------------------------
 */

/* A frame begins. */
static void frames_begin(struct tcp_frames *f)
{
	f->left = (uint32_t)f->header[0] << 16 | (uint32_t)f->header[1] << 8 | f->header[2];
	if (f->header[3] == 0)
		f->data += f->left;
	if (f->header[3] == 3 || f->header[3] == 7)
		rig_die("a call was reset, or its connection goes away");
}

unsigned int tcp_frames_read(struct tcp_frames *f, const uint8_t *bytes, uint32_t length,
			     uint32_t payload)
{
	unsigned int ended = 0;

	while (length > 0) {
		uint32_t n = f->got < FRAME_HEADER ? FRAME_HEADER - f->got : f->left;

		n = RTE_MIN(n, length);
		if (f->got < FRAME_HEADER) {
			memcpy(f->header + f->got, bytes, n);
			f->got += (uint8_t)n;
			if (f->got == FRAME_HEADER)
				frames_begin(f);
		} else {
			f->left -= n;
		}
		bytes += n;
		length -= n;
		if (f->got < FRAME_HEADER || f->left > 0)
			continue;
		f->got = 0;
		if (f->header[3] != 1 || (f->header[4] & 1) == 0)
			continue;
		/* Trailers: the message was the tensor, and something around it. */
		if (f->data <= payload || f->data > payload + 128)
			rig_die("an answer has %u bytes for a tensor of %u", f->data, payload);
		f->data = 0;
		ended++;
	}
	return ended;
}
