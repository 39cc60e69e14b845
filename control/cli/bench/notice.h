/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The datagram that a load balancer sends instead of a reply (lb/packet/notice.h): DB 'D' 'B' 'N',
 * version, code, two zero bytes, and the first eight bytes of the request that it answers.
 */
#ifndef BENCH_NOTICE_H
#define BENCH_NOTICE_H

#include <stddef.h>
#include <stdint.h>

#define NOTICE_SIZE  16
#define NOTICE_ID_AT 8 /* offset of the request's first bytes */

enum notice_code {
	NOTICE_NONE, /* not a notice */
	NOTICE_BUSY,
	NOTICE_TIMEOUT,
	NOTICE_WORKER_LOST,
	NOTICE_MODEL_ERROR,
	NOTICE_EXPIRED,
	NOTICE_CANCELLED,
	NOTICE_DEADLINE,
	NOTICE_MALFORMED,
	NOTICE_STOPPING,
	NOTICE_TOO_LARGE,
	NOTICE_CODES,
};

enum notice_code notice_parse(const uint8_t *datagram, size_t length);
/* "busy", "worker_lost" and so on. */
const char *notice_name(enum notice_code code);
#endif
