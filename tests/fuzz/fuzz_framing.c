/* SPDX-License-Identifier: BSD-3-Clause */
/* Any datagram is a tagged request or cancel that lies within it, or has a reason why it is not. */
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
	/* What answers it is no request itself: two load balancers never talk for ever. */
	lb_request_write_reply(reply, framed.tag, 1, 0);
	require(lb_request_parse(reply, sizeof(reply), &request) < 0);
	require(memcmp(reply + 8, &framed.tag, sizeof(framed.tag)) == 0);
	return 0;
}
