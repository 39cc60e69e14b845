/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An owner of one stream: shows a framing the client's bytes, cut as the test wants, and writes
 * down what it says, an action per line. It aborts when the framing breaks a promise of
 * framing/stream.h. Every buffer has its exact size, for the sanitizers.
 */
#ifndef STREAM_OWNER_H
#define STREAM_OWNER_H

#include <stddef.h>

#include "framing/stream.h"

struct owned_request {
	uint64_t size, named; /* <named>: bytes by extents and produced, so far */
	bool begun, over;
};

struct stream_owner {
	const struct stream_framing *framing;
	struct stream_settings settings;
	struct stream stream;
	uint64_t came;        /* bytes of the client so far */
	uint64_t extents_end; /* position behind the last extent */
	struct owned_request *request;
	uint32_t requests; /* numbers that were named */
	bool closed;
	char *log;
	size_t log_length;
};

/* <stream>'s state is zero at first. */
void stream_owner_init(struct stream_owner *o, const struct stream_framing *framing,
		       uint64_t max_request);
void stream_owner_fini(struct stream_owner *o);

/* The next <n> bytes of the client, in one segment; <max> actions per call. */
void stream_owner_take(struct stream_owner *o, const uint8_t *bytes, size_t n, unsigned int max);

/* Takes bytes of headers without the payload between them, as if that had come. */
void stream_owner_take_headers(struct stream_owner *o, const uint8_t *bytes, size_t n,
			       unsigned int max);

#endif
