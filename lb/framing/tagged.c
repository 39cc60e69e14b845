/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tagged framing (request.h): a header in front of every request carries its id, and may carry its
 * priority and deadline. The worker gets the bytes behind it.
 */
#include "packet/request.h"
#include "framing/framing.h"

enum lb_drop framing_tagged_read(const uint8_t *payload, uint32_t length, struct framed *out)
{
	struct lb_request request;

	if (framing_is_notice(payload, length))
		return LB_DROP_NOTICE_RECEIVED;
	*out = (struct framed){.tag = framing_first_bytes(payload, length)};
	if (lb_request_parse(payload, length, &request) < 0)
		return LB_DROP_FRAMING;
	*out = (struct framed){
		.offset = LB_REQUEST_LENGTH,
		.length = length - LB_REQUEST_LENGTH,
		.tag = request.id,
		.deadline_us = request.deadline_us,
		.priority = request.priority,
		.cancel = request.kind == LB_REQUEST_CANCEL,
	};
	return LB_DROP_NONE;
}
