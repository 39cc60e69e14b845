/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A link as a loop on a CPU thread uses it: it takes requests from the ring, and posts replies and
 * heartbeats. Owner: the loop's thread.
 */
#ifndef AGENT_CPU_LINK_H
#define AGENT_CPU_LINK_H

#include "loop/intake.h"
#include "loop/loop.h"

/* The reply buffer of a slot: struct ring_reply, and the bytes of the model behind it. */
static inline uint8_t *cpu_link_reply(const struct agent_link *link, uint32_t slot)
{
	return link->replies + (uint64_t)slot * link->reply_stride;
}

/*
 * WQEs that may be built beyond those of the requests that were taken and not answered. A peer that
 * does not acknowledge leaves none: then its requests stay in its ring, and its heartbeats are left
 * out, until it does or its queue pair fails. So no link waits for another one. A dead link has as
 * many as are asked for: nothing is posted to it.
 */
uint32_t cpu_link_spare(struct agent_link *link, struct agent_loop_stats *stats);

/*
 * Take up to <max> requests from the link's ring into <request>, no more than the queue has room
 * to answer, and count those that cannot be answered. Returns how many were taken.
 */
uint32_t cpu_link_take(const struct agent_loop_params *params, struct agent_link *link,
		       uint64_t now_ns, struct intake *request, uint32_t max,
		       struct agent_loop_stats *stats);

/* Requests that wait in the link's ring. Each mark that is there is read once, however often this
 * is called. */
uint32_t cpu_link_unread(struct agent_link *link);

/* The WRITE of chunk <chunk> of the reply to <request>, whose <length> bytes are in its slot's
 * reply buffer. <more>: others follow; the last one counts the request by its status. */
struct mlx5_write cpu_link_answer(struct agent_link *link, const struct intake *request,
				  uint32_t length, uint32_t chunk, bool more,
				  struct agent_loop_stats *stats);

/* Read completions until none is left: they make room in the queue. A failed queue pair makes the
 * link dead. */
void cpu_link_reap(struct agent_link *link, struct agent_loop_stats *stats);

/* Ring one doorbell for all WQEs that were built, and kick the RNIC. */
void cpu_link_ring(const struct agent_loop_params *params, struct agent_link *link);

#endif
