/* SPDX-License-Identifier: BSD-3-Clause */
#include "grpc/status.h"

#include "packet/notice.h"

#define TIMEOUT_DIGITS 8 /* at most, as the protocol has it */

enum grpc_status grpc_status_of_http(uint16_t status)
{
	switch (status) {
	case 200:
		return GRPC_OK;
	case 404:
		return GRPC_NOT_FOUND;
	case 413:
	case 429:
		return GRPC_RESOURCE_EXHAUSTED;
	case 499:
		return GRPC_CANCELLED;
	case 501:
		return GRPC_UNIMPLEMENTED;
	case 503:
		return GRPC_UNAVAILABLE;
	case 504:
		return GRPC_DEADLINE_EXCEEDED;
	default:
		return status >= 500 ? GRPC_INTERNAL : GRPC_INVALID_ARGUMENT;
	}
}

enum grpc_status grpc_status_of_notice(uint8_t notice)
{
	static const uint8_t statuses[LB_NOTICE_CODES] = {
		[0] = GRPC_OK,
		[LB_NOTICE_BUSY] = GRPC_UNAVAILABLE,
		[LB_NOTICE_TIMEOUT] = GRPC_DEADLINE_EXCEEDED,
		[LB_NOTICE_WORKER_LOST] = GRPC_UNAVAILABLE,
		[LB_NOTICE_MODEL_ERROR] = GRPC_INTERNAL,
		[LB_NOTICE_EXPIRED] = GRPC_DEADLINE_EXCEEDED,
		[LB_NOTICE_CANCELLED] = GRPC_CANCELLED,
		[LB_NOTICE_DEADLINE] = GRPC_DEADLINE_EXCEEDED,
		[LB_NOTICE_MALFORMED] = GRPC_INVALID_ARGUMENT,
		[LB_NOTICE_STOPPING] = GRPC_UNAVAILABLE,
		[LB_NOTICE_TOO_LARGE] = GRPC_RESOURCE_EXHAUSTED,
	};

	return (enum grpc_status)statuses[notice % LB_NOTICE_CODES];
}

uint32_t grpc_message_write(const char *text, char *at, uint32_t room)
{
	static const char digits[] = "0123456789ABCDEF";
	uint32_t n = 0;

	for (; *text != '\0'; text++) {
		uint8_t c = (uint8_t)*text;
		bool plain = c >= ' ' && c <= '~' && c != '%';

		if (n + (plain ? 1 : 3) > room)
			break;
		if (plain) {
			at[n++] = (char)c;
			continue;
		}
		at[n++] = '%';
		at[n++] = digits[c >> 4];
		at[n++] = digits[c & 15];
	}
	return n;
}

/* ns of a unit; 0: it is none. */
static uint64_t timeout_unit(char unit)
{
	switch (unit) {
	case 'H':
		return UINT64_C(3600000000000);
	case 'M':
		return UINT64_C(60000000000);
	case 'S':
		return UINT64_C(1000000000);
	case 'm':
		return 1000000;
	case 'u':
		return 1000;
	case 'n':
		return 1;
	default:
		return 0;
	}
}

bool grpc_timeout_read(const char *text, uint32_t length, uint64_t *us)
{
	uint64_t n = 0, unit;

	if (length < 2 || length > TIMEOUT_DIGITS + 1)
		return false;
	for (uint32_t i = 0; i < length - 1; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		n = n * 10 + (uint64_t)(text[i] - '0');
	}
	unit = timeout_unit(text[length - 1]);
	if (unit == 0)
		return false;
	if (__builtin_mul_overflow(n, unit, us))
		*us = UINT64_MAX;
	else
		*us = *us < 1000 ? 1 : *us / 1000;
	return true;
}
