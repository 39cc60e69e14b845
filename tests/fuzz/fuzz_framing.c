/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads any datagram as a tagged request or cancel that lies within it, or refuses it with a
 * reason. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "framing/framing.h"
#include "packet/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct framed framed;
	enum lb_drop reason;
	uint8_t reply[LB_REQUEST_LENGTH];
	struct lb_request request;

	if (size == 0 || size > UINT16_MAX)
		return 0;
	reason = framing_tagged_read(data, (uint32_t)size, &framed);
	if (reason != LB_DROP_NONE) {
		require(reason == LB_DROP_FRAMING || reason == LB_DROP_NOTICE_RECEIVED);
		return 0;
	}
	require(framed.offset + framed.length == size && framed.priority <= 4);
	require(!framed.cancel || framed.length == 0);
	/* A reply must not parse as a request, or two load balancers would answer each other for
	 * ever. */
	lb_request_write_reply(reply, framed.tag, 1, 0);
	require(lb_request_parse(reply, sizeof(reply), &request) < 0);
	require(memcmp(reply + 8, &framed.tag, sizeof(framed.tag)) == 0);
	return 0;
}
