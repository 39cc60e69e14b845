/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cancels (private to lb/): requests that no client waits for any more. Runs on the lcore.
 */
#ifndef WALK_CANCEL_H
#define WALK_CANCEL_H

#include "lcore/lcore.h"

/* End the flow's request with this tag, wherever it is. */
void cancel_request(struct lcore *lc, const struct flow *flow, uint16_t service, uint64_t handle,
		    uint64_t tag);
/* The same for one whose client has been told why it ends, and that was counted for it. */
void cancel_told(struct lcore *lc, const struct flow *flow, uint16_t service, uint64_t handle,
		 uint64_t tag);
/* The client has been told or has gone: tell the worker not to run it. The slot stays taken until
 * then. */
void cancel_slot(struct lcore *lc, struct link *link, uint32_t slot);
/* Once per millisecond: send cancel words that could not go at once; end requests whose flow has
 * gone. */
void cancel_housekeeping(struct lcore *lc);

#endif
