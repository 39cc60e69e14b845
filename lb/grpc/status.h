/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The words of gRPC in heads and trailers ("gRPC over HTTP2", PROTOCOL-HTTP2.md of gRPC): statuses,
 * messages, deadlines, and the prefix of messages. Pure.
 */
#ifndef LB_GRPC_STATUS_H
#define LB_GRPC_STATUS_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes in front of a message: its flag (1: compressed), and its length, u32 big-endian. */
#define GRPC_PREFIX 5

enum grpc_status {
	GRPC_OK = 0,
	GRPC_CANCELLED = 1,
	GRPC_INVALID_ARGUMENT = 3,
	GRPC_DEADLINE_EXCEEDED = 4,
	GRPC_NOT_FOUND = 5,
	GRPC_RESOURCE_EXHAUSTED = 8,
	GRPC_UNIMPLEMENTED = 12,
	GRPC_INTERNAL = 13,
	GRPC_UNAVAILABLE = 14,
};

/* The status for a refusal that has a status of HTTP. */
enum grpc_status grpc_status_of_http(uint16_t status);

/* The code of enum lb_notice as a status; 0, a reply, is GRPC_OK. */
enum grpc_status grpc_status_of_notice(uint8_t notice);

/*
 * The value of grpc-message: what is not printable ASCII, and '%', is %XX. Returns its length; text
 * that does not fit is left out at the end.
 */
uint32_t grpc_message_write(const char *text, char *at, uint32_t room);

/* The value of grpc-timeout ("100m") in us, at least 1; UINT64_MAX if it is longer. False: it is
 * none. */
bool grpc_timeout_read(const char *text, uint32_t length, uint64_t *us);

static inline void grpc_prefix_write(uint8_t *at, uint32_t length)
{
	at[0] = 0;
	at[1] = (uint8_t)(length >> 24);
	at[2] = (uint8_t)(length >> 16);
	at[3] = (uint8_t)(length >> 8);
	at[4] = (uint8_t)length;
}

/* The length that a prefix says. */
static inline uint32_t grpc_prefix_length(const uint8_t *at)
{
	return (uint32_t)at[1] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 8 | at[4];
}

#endif
