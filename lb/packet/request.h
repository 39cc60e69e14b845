/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The header in front of every request and every reply of a service with `framing: tagged`: at the
 * start of a datagram, or in a stream, one behind the other. Numbers are in network byte order.
 *
 *   0  4  magic 0xDB 'D' 'B' 'Q'
 *   4  1  version, 1
 *   5  1  kind, below
 *   6  1  request: priority, 1 (first) to 4 (last); the service's if 0 or more urgent than it
 *         reply: 1 = more chunks follow; notice: its code (notice.h)
 *   7  1  zero
 *   8  8  id, the client's own; comes back in the reply or the notice (notice.h)
 *  16  4  request: deadline in us from arrival, 0 = the service's
 *         reply: number of the chunk
 *  20  4  datagram: zero; stream: length of the bytes that follow; of a cancel or a notice zero
 *  24     the request's or reply's bytes; a cancel has none
 *
 * A cancel ends the sender's request with this id if it still waits or runs; the request is then
 * answered with a notice. A cancel of a request that is over has no answer.
 *
 * Kind 4 occurs only in streams; a datagram's notice has a form of its own (notice.h). If bytes 0
 * to 4 of a stream's header are wrong, the position of the next header is unknown: the answer is a
 * notice with id 0, and then the connection closes. Any other fault is answered by a notice with
 * the id, and the bytes that follow the header are skipped.
 */
#ifndef LB_REQUEST_H
#define LB_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#define LB_REQUEST_LENGTH 24
#define LB_REQUEST_MAGIC  "\xdb\x44\x42\x51"

enum lb_request_kind {
	LB_REQUEST_REQUEST = 1,
	LB_REQUEST_CANCEL = 2,
	LB_REQUEST_REPLY = 3,
	LB_REQUEST_NOTICE = 4,
};

/* A parsed header; host byte order except the id, which is copied as it is. */
struct lb_request {
	uint8_t kind;
	uint8_t priority;
	uint64_t id;
	uint32_t deadline_us;
};

/* Parse the header of a datagram of <length> bytes. 0, or -EINVAL: not a request or cancel of this
 * version. Pure. */
int lb_request_parse(const uint8_t *at, uint32_t length, struct lb_request *request);

/* Write the LB_REQUEST_LENGTH bytes in front of a reply's. */
void lb_request_write_reply(uint8_t *at, uint64_t id, uint32_t chunk, int more);

/* Could these bytes be the beginning of a header of this version? */
bool lb_request_begins(const uint8_t *at, uint32_t length);

/*
 * Parse the LB_REQUEST_LENGTH bytes of a stream's header; <length> bytes follow it. 0; -EINVAL: no
 * request or cancel, but id and <length> are valid; -EBADMSG: no header of this version. Pure.
 */
int lb_request_parse_stream(const uint8_t *at, struct lb_request *request, uint32_t *length);

/*
 * Write LB_REQUEST_LENGTH bytes: the header of a reply's <length> bytes, or a notice that takes the
 * place of a reply.
 */
void lb_request_write_stream_reply(uint8_t *at, uint64_t id, uint32_t chunk, int more,
				   uint32_t length);
void lb_request_write_stream_notice(uint8_t *at, uint64_t id, uint8_t code);

#endif
