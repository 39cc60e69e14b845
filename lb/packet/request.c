/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "packet/request.h"

static const uint8_t magic_and_version[5] = {0xdb, 'D', 'B', 'Q', 1};

bool lb_request_begins(const uint8_t *at, uint32_t length)
{
	if (length > sizeof(magic_and_version))
		length = sizeof(magic_and_version);
	return memcmp(at, magic_and_version, length) == 0;
}

/* Read the fields behind magic and version; the last word is a length in streams. True: valid. */
static inline bool request_read_fields(const uint8_t *at, struct lb_request *request,
				       uint32_t *last)
{
	uint32_t deadline, word;

	memcpy(&deadline, at + 16, sizeof(deadline));
	memcpy(&word, at + 20, sizeof(word));
	request->kind = at[5];
	request->priority = at[6];
	memcpy(&request->id, at + 8, sizeof(request->id));
	request->deadline_us = ntohl(deadline);
	*last = ntohl(word);
	return at[7] == 0 && request->priority <= 4 &&
	       (request->kind == LB_REQUEST_REQUEST || request->kind == LB_REQUEST_CANCEL);
}

int lb_request_parse(const uint8_t *at, uint32_t length, struct lb_request *request)
{
	uint32_t zero;

	if (length < LB_REQUEST_LENGTH || !lb_request_begins(at, LB_REQUEST_LENGTH) ||
	    !request_read_fields(at, request, &zero) || zero != 0)
		return -EINVAL;
	return request->kind == LB_REQUEST_CANCEL && length != LB_REQUEST_LENGTH ? -EINVAL : 0;
}

int lb_request_parse_stream(const uint8_t *at, struct lb_request *request, uint32_t *length)
{
	if (!lb_request_begins(at, LB_REQUEST_LENGTH))
		return -EBADMSG;
	if (!request_read_fields(at, request, length))
		return -EINVAL;
	return request->kind == LB_REQUEST_CANCEL && *length != 0 ? -EINVAL : 0;
}

void lb_request_write_reply(uint8_t *at, uint64_t id, uint32_t chunk, int more)
{
	lb_request_write_stream_reply(at, id, chunk, more, 0);
}

static void request_write(uint8_t *at, uint8_t kind, uint8_t six, uint64_t id)
{
	memset(at, 0, LB_REQUEST_LENGTH);
	memcpy(at, magic_and_version, sizeof(magic_and_version));
	at[5] = kind;
	at[6] = six;
	memcpy(at + 8, &id, sizeof(id));
}

void lb_request_write_stream_reply(uint8_t *at, uint64_t id, uint32_t chunk, int more,
				   uint32_t length)
{
	request_write(at, LB_REQUEST_REPLY, more != 0, id);
	chunk = htonl(chunk);
	memcpy(at + 16, &chunk, sizeof(chunk));
	length = htonl(length);
	memcpy(at + 20, &length, sizeof(length));
}

void lb_request_write_stream_notice(uint8_t *at, uint64_t id, uint8_t code)
{
	request_write(at, LB_REQUEST_NOTICE, code, id);
}
