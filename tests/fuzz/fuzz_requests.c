/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes as a client's stream of requests. Four bytes of options come first: framing and way,
 * largest request, seed of the cuts, room for actions. For any cuts of the rest, a framing gives
 * the same actions and keeps the promises of framing/stream.h (stream_owner.c checks them). The
 * other way leaves payload out, so that requests of gigabytes fit into a small input.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "packet/request.h"
#include "stream_owner.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TAGGED       0x01u
#define HEADERS_ONLY 0x02u

static void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

static uint32_t draw(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 16;
}

/* Segments of 1 to 32 bytes, or of up to 1,024; a call has room for 4 to 11 actions. */
static void take_in_pieces(struct stream_owner *o, const uint8_t *bytes, size_t n, uint32_t seed)
{
	while (n > 0) {
		uint32_t most = draw(&seed) % 4 == 0 ? 1024 : 32;
		size_t length = 1 + draw(&seed) % most;

		if (length > n)
			length = n;
		stream_owner_take(o, bytes, length, STREAM_ACTIONS_MIN + draw(&seed) % 8);
		bytes += length;
		n -= length;
	}
}

static void compare(const struct stream_owner *a, const struct stream_owner *b)
{
	if (strcmp(a->log, b->log) != 0)
		fprintf(stderr, "in one piece:\n%sin several:\n%s", a->log, b->log);
	require(strcmp(a->log, b->log) == 0, "the cuts change the requests");
	require(a->stream.position == b->stream.position && a->stream.got == b->stream.got,
		"the cuts change the state");
}

/* The head fits, covers the chunk, and is no request: otherwise two load balancers could answer
 * each other for ever. */
static void check_answers(const struct stream_framing *framing, struct stream_reply reply)
{
	struct stream s = {0};
	uint8_t *head = malloc(framing->head_max);
	struct stream_piece piece = framing->reply(&s, &reply, head);
	struct lb_request request;
	uint32_t length;

	require(piece.head <= framing->head_max && piece.last, "one piece with its head");
	require(piece.bytes == reply.length && reply.taken == reply.length, "all of the chunk");
	if (framing == &stream_tagged) {
		require(lb_request_parse_stream(head, &request, &length) < 0, "a reply asks");
		require(request.id == reply.tag && length == reply.length, "a reply is read back");
	}
	free(head);
}

static void take_both_ways(const struct stream_framing *framing, uint64_t max_request,
			   const uint8_t *options, const uint8_t *bytes, size_t n)
{
	struct stream_owner whole, cut;

	stream_owner_init(&whole, framing, max_request);
	stream_owner_init(&cut, framing, max_request);
	stream_owner_take(&whole, bytes, n, STREAM_ACTIONS_MIN + options[3] % 64u);
	take_in_pieces(&cut, bytes, n, options[2]);
	compare(&whole, &cut);
	stream_owner_fini(&whole);
	stream_owner_fini(&cut);
}

static void take_headers(const struct stream_framing *framing, uint64_t max_request,
			 const uint8_t *options, const uint8_t *bytes, size_t n)
{
	struct stream_owner o;

	stream_owner_init(&o, framing, max_request);
	stream_owner_take_headers(&o, bytes, n, STREAM_ACTIONS_MIN + options[3] % 64u);
	/* A header is at least 4 bytes, and no request is longer than its u32. */
	require(o.closed || o.stream.position <= n + n / 4 * (uint64_t)UINT32_MAX,
		"the position is beyond all requests");
	require(o.stream.requests <= n, "more requests than bytes");
	stream_owner_fini(&o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t max_request[] = {1,   2,     16,         100,
					       255, 65536, UINT32_MAX, UINT64_MAX - 1};
	const struct stream_framing *framing;
	uint64_t max;
	struct stream_reply reply = {0};

	if (size < 4)
		return 0;
	framing = data[0] & TAGGED ? &stream_tagged : &stream_length;
	max = max_request[data[1] % 8];
	if (data[0] & HEADERS_ONLY)
		take_headers(framing, max, data, data + 4, size - 4);
	else
		take_both_ways(framing, max, data, data + 4, size - 4);
	if (size >= 16) {
		memcpy(&reply.tag, data + 4, 8);
		memcpy(&reply.length, data + 12, 4);
		reply.more = data[2] & 1;
		check_answers(framing, reply);
	}
	return 0;
}
