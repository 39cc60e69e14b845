/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/bench/notice.h"

#include <string.h>

#define NOTICE_VERSION 1

static const uint8_t magic[4] = {0xdb, 'D', 'B', 'N'};

static const char *const names[NOTICE_CODES] = {
	[NOTICE_NONE] = "none",
	[NOTICE_BUSY] = "busy",
	[NOTICE_TIMEOUT] = "timeout",
	[NOTICE_WORKER_LOST] = "worker_lost",
	[NOTICE_MODEL_ERROR] = "model_error",
	[NOTICE_EXPIRED] = "expired",
	[NOTICE_CANCELLED] = "cancelled",
	[NOTICE_DEADLINE] = "deadline",
	[NOTICE_MALFORMED] = "malformed",
	[NOTICE_STOPPING] = "stopping",
	[NOTICE_TOO_LARGE] = "too_large",
};

enum notice_code notice_parse(const uint8_t *datagram, size_t length)
{
	static const uint8_t zeroes[2];

	if (length != NOTICE_SIZE || memcmp(datagram, magic, sizeof(magic)) != 0 ||
	    datagram[4] != NOTICE_VERSION || datagram[5] == NOTICE_NONE ||
	    datagram[5] >= NOTICE_CODES || memcmp(datagram + 6, zeroes, sizeof(zeroes)) != 0)
		return NOTICE_NONE;
	return datagram[5];
}

const char *notice_name(enum notice_code code)
{
	return names[code];
}
