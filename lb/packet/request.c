/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "packet/request.h"

static const uint8_t magic_and_version[5] = {0xdb, 'D', 'B', 'Q', 1};

int lb_request_parse(const uint8_t *at, uint32_t length, struct lb_request *request)
{
	uint32_t deadline, zero;

	if (length < LB_REQUEST_LENGTH ||
	    memcmp(at, magic_and_version, sizeof(magic_and_version)) != 0)
		return -EINVAL;
	memcpy(&deadline, at + 16, sizeof(deadline));
	memcpy(&zero, at + 20, sizeof(zero));
	request->kind = at[5];
	request->priority = at[6];
	memcpy(&request->id, at + 8, sizeof(request->id));
	request->deadline_us = ntohl(deadline);
	if (zero != 0 || at[7] != 0 || request->priority > 4)
		return -EINVAL;
	if (request->kind == LB_REQUEST_CANCEL)
		return length == LB_REQUEST_LENGTH ? 0 : -EINVAL;
	return request->kind == LB_REQUEST_REQUEST ? 0 : -EINVAL;
}

void lb_request_write_reply(uint8_t *at, uint64_t id, uint32_t chunk, int more)
{
	memset(at, 0, LB_REQUEST_LENGTH);
	memcpy(at, magic_and_version, sizeof(magic_and_version));
	at[5] = LB_REQUEST_REPLY;
	at[6] = more != 0;
	memcpy(at + 8, &id, sizeof(id));
	chunk = htonl(chunk);
	memcpy(at + 16, &chunk, sizeof(chunk));
}
