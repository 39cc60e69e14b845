/* SPDX-License-Identifier: BSD-3-Clause */
/* Facade of the framings (private to lb/): find the request in a datagram's payload. */
#ifndef LB_FRAMING_H
#define LB_FRAMING_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "packet/drop.h"
#include "packet/notice.h"

/* A request in its datagram. */
struct framed {
	uint32_t offset, length; /* of its bytes in the datagram's payload */
	uint64_t tag;
	uint32_t deadline_us; /* 0: the service's */
	uint8_t priority;     /* 0: the service's */
	bool cancel;          /* not a request: cancels the one with this tag */
};

/* framing/tagged.c: LB_DROP_NONE for a request or a cancel, or why it is neither. Pure. */
enum lb_drop framing_tagged_read(const uint8_t *payload, uint32_t length, struct framed *out);

/* Notices are never answered: two load balancers would go on for ever. */
static inline bool framing_is_notice(const uint8_t *payload, uint32_t length)
{
	return length == LB_NOTICE_LENGTH && memcmp(payload, LB_NOTICE_MAGIC, 4) == 0;
}

static inline uint64_t framing_first_bytes(const uint8_t *payload, uint32_t length)
{
	uint64_t tag = 0;

	if (length >= sizeof(tag))
		memcpy(&tag, payload, sizeof(tag));
	else
		memcpy(&tag, payload, length);
	return tag;
}

/* Every datagram is one request. */
static inline enum lb_drop framing_datagram_read(const uint8_t *payload, uint32_t length,
						 struct framed *out)
{
	if (framing_is_notice(payload, length))
		return LB_DROP_NOTICE_RECEIVED;
	*out = (struct framed){.length = length, .tag = framing_first_bytes(payload, length)};
	return LB_DROP_NONE;
}

#endif
