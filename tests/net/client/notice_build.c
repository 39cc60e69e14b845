/* SPDX-License-Identifier: BSD-3-Clause */
#include "notice_build.h"

#include <string.h>

void notice_build(enum notice_code code, const uint8_t *request, size_t length,
		  uint8_t datagram[NOTICE_SIZE])
{
	static const uint8_t start[] = {0xdb, 'D', 'B', 'N', 1 /* version */};

	memset(datagram, 0, NOTICE_SIZE);
	memcpy(datagram, start, sizeof(start));
	datagram[5] = (uint8_t)code;
	if (length > NOTICE_SIZE - NOTICE_ID_AT)
		length = NOTICE_SIZE - NOTICE_ID_AT;
	if (length != 0)
		memcpy(datagram + NOTICE_ID_AT, request, length);
}
