/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests without a credit (private to lb/): one bounded queue per service and lcore
 * (lcore/queue.h). Runs on the lcore, but for waiting_init().
 */
#ifndef WALK_WAITING_H
#define WALK_WAITING_H

#include "lcore/burst.h"
#include "lcore/lcore.h"

/* Make the queue that a service with this configuration has on this lcore. 0 or -ENOMEM. Control
 * thread. */
int waiting_init(const struct lcore *lc, const struct lb_service_config *config,
		 struct queue *queue);
/* Work out the shares again, after services have come or gone or their queues have changed. */
void waiting_share(struct lcore *lc);
/* Let request <i> of the burst wait, or refuse it. */
void waiting_add(struct lcore *lc, struct burst *b, unsigned int i);
/* Send waiting requests to workers that have credits. Returns how many were sent. */
unsigned int waiting_send(struct lcore *lc);
/* Queue a request. False: no room, and the packet stays the caller's. */
bool waiting_push(struct lcore *lc, uint16_t service, const struct waiting *w);
/* End requests that have waited too long. */
void waiting_expire(struct lcore *lc);
/* End the flow's request with this tag, if it waits here. Each request looked at costs one of
 * <budget>. <told>: it was counted, and its client has been told. */
bool waiting_cancel(struct lcore *lc, const struct flow *flow, uint16_t service, uint64_t handle,
		    uint64_t tag, bool told, uint32_t *budget);
/* Move the service's requests to <*queue>, which then is the old queue, empty. */
void waiting_move(struct lcore *lc, uint16_t service, struct queue *queue);
/* The load balancer stops: end up to <budget> requests of each service whose clients can be told.
 */
void waiting_end(struct lcore *lc, unsigned int budget);

/* Does a request of the service wait that came before <since> (TSC)? */
bool waiting_is_older(const struct lcore *lc, uint16_t service, uint64_t since);

#endif
