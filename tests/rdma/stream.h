/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A requester that always has something to send, through a port of a certain speed and a bad link,
 * to a responder, in made-up time. For the unit test and the bench of goodput.
 */
#ifndef TESTS_RDMA_STREAM_H
#define TESTS_RDMA_STREAM_H

#include <rte_mempool.h>

#include "faults.h"

struct stream_params {
	struct faults_params there, home; /* <there> is the port, too: bytes_per_s */
	uint32_t messages;                /* messages that must arrive; more are always under way */
	uint32_t length;                  /* bytes of one, at most 4096 */
	uint32_t ack_every;               /* every so many messages one asks for an ACK */
	uint8_t ack_timeout;
	uint64_t poll_ns;            /* ns between two visits to the timers */
	struct rte_mempool *packets; /* at least 1024 that hold a message and its headers */
	struct rte_mempool *small;
};

struct stream_result {
	uint64_t ns; /* until the last message was in */
	uint64_t packets, resent, naks, timeouts;
	uint64_t wasted; /* packets that came to the responder in vain */
};

/* Returns 0; -EBADMSG when a message came in the wrong place, -EPIPE when the requester gave up. */
int stream_run(const struct stream_params *params, struct stream_result *result);

/* Messages' bits per second. */
static inline double stream_goodput(const struct stream_params *p, const struct stream_result *r)
{
	return (double)p->messages * p->length * 8e9 / (double)r->ns;
}

#endif
