/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bytes that the clients of the TCP bench send around those of a request, by framing, and those
 * that they take around a reply. KServe's requests have one input of bytes, in binary, as its
 * clients that care for speed send it.
 */
#ifndef BENCH_TCP_SPEECH_H
#define BENCH_TCP_SPEECH_H

#include <stdbool.h>

#include "common/rig.h"

#define TCP_SPEECH_TEXT 512 /* bytes in front of a request at most */
/* DATA frames of a request of RIG_STREAM_MAX bytes by gRPC, and one for what is in front of them.
 */
#define TCP_SPEECH_RANGES (RIG_STREAM_MAX / 16384 + 2)

enum tcp_framing { TCP_LENGTH, TCP_KSERVE, TCP_GRPC };

struct tcp_speech {
	enum tcp_framing framing;
	enum rig_service service;
	uint32_t head; /* bytes of <text>, which are in front of a request in one segment */
	uint8_t text[TCP_SPEECH_TEXT];
	uint32_t data_frame; /* of gRPC: where in <text> the DATA frame's header is */
	/* Bytes in front of a reply; 0: the first one tells. Not of gRPC. */
	uint32_t reply_head;
};

/* For requests of <payload> bytes. */
void tcp_speech_init(struct tcp_speech *s, enum tcp_framing framing, uint32_t payload);

/* Writes <text> to <at>, for the <number>th call of a connection, from 0 on. */
void tcp_speech_put(const struct tcp_speech *s, uint32_t number, uint8_t *at);

/* Is this what must be in front of a reply of <payload> bytes? */
bool tcp_speech_is_reply(const struct tcp_speech *s, const uint8_t *head, uint32_t length,
			 uint32_t payload);

/* Bytes of a stream that are those of the request from <offset> on. */
struct tcp_part {
	uint32_t position, offset, length;
};

/* A request as it lies in the stream. */
struct tcp_script {
	uint32_t length, ranges;
	struct tcp_part range[TCP_SPEECH_RANGES];
	uint8_t at[RIG_STREAM_MAX + 2048]; /* zeros where the request's bytes go */
};

/* Writes the <number>th request, from 0 on, of a connection: <payload> bytes. */
void tcp_speech_write(const struct tcp_speech *s, uint32_t payload, uint32_t number,
		      struct tcp_script *script);

/* Of gRPC: the bytes that a connection begins with, up to 64, and those by which it accepts the load
 * balancer's settings. Return how many. */
uint32_t tcp_speech_greet(uint8_t *at);
uint32_t tcp_speech_accept(uint8_t *at);

/* Frames of HTTP/2 that come over one connection. Zeroed at its beginning. */
struct tcp_frames {
	uint8_t header[9];
	uint8_t got;
	uint32_t left;
	uint32_t data;  /* bytes of DATA frames of the answer that is read */
	uint32_t calls; /* made so far */
};

/* Reads the next bytes. Returns how many answers ended; dies if one has not as many bytes of
 * message as the answer of <payload> bytes must. */
unsigned int tcp_frames_read(struct tcp_frames *f, const uint8_t *bytes, uint32_t length,
			     uint32_t payload);

#endif
