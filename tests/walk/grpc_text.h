/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams of clients of the framing kserve, byte by byte; and a worker whose model is described. */
#ifndef WALK_GRPC_TEXT_H
#define WALK_GRPC_TEXT_H

#include "http_client.h"
#include "worker.h"

struct text {
	uint32_t n;
	char at[32768];
};

/* A field of a head as a literal that is not kept. Its name has its length in front. */
#define GRPC_FIELD(name, length, value) "\0" name length value
#define GRPC_PATH                       "/inference.GRPCInferenceService/ModelInfer"
#define GRPC_HEAD                                                                                  \
	GRPC_FIELD("\7:method", "\4", "POST")                                                      \
	GRPC_FIELD("\7:scheme", "\4", "http")                                                      \
	GRPC_FIELD("\12:authority", "\1", "h")                                                     \
	GRPC_FIELD("\5:path", "\x2a", GRPC_PATH)                                                   \
	GRPC_FIELD("\xc"                                                                           \
		   "content-type",                                                                 \
		   "\x10", "application/grpc")

/* Types of frames. */
enum {
	FRAME_DATA,
	FRAME_HEADERS,
	FRAME_RST = 3,
	FRAME_SETTINGS,
	FRAME_PING = 6,
	FRAME_GOAWAY,
	FRAME_WINDOW,
	FRAME_CONTINUATION
};
#define FRAME_END_STREAM  1
#define FRAME_END_HEADERS 4

/* How a connection begins, in place of what is there. */
void text_preface(struct text *t);
void text_frame(struct text *t, uint8_t type, uint8_t flags, uint32_t stream, const void *bytes,
		uint32_t n);
/* A call to ModelInfer on <stream>; its message in two frames. */
void text_call(struct text *t, uint32_t stream);

/* How often these bytes came. */
unsigned int text_count(const struct http_client *c, const void *bytes, uint32_t n);
/* Frames of this type that came; of one stream, or of any with 0. */
unsigned int text_frames(const struct http_client *c, uint8_t type, uint32_t stream);

/* A worker with these requests and replies, whose model is described so. */
struct walk_worker *kserve_worker_of(struct walk *w, const struct walk_worker_params *params,
				     uint32_t min_request, struct model_description *described);
/* An input a and an output b, of any length. */
struct model_description kserve_one_tensor(enum datatype datatype);
/* Inputs a, FP32 of 2, and b, UINT8 of any; outputs c and d, likewise. It echoes. */
extern struct model_description kserve_described;
struct walk_worker *kserve_worker(struct walk *w);
/* One that takes batches of up to <rows> rows, of two bytes each. <name>: NULL: any. */
struct walk_worker *kserve_rows_worker(struct walk *w, const char *name, uint32_t rows);

#endif
