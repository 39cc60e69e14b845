/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registers and removes workers: links on every lcore, pick tables. Control thread only.
 */
#ifndef LB_REGISTRY_H
#define LB_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "lcore/link_spec.h"
#include "pool.h"

struct lb;
struct link;

/* --- requests of agents ------------------------------------------------------------------------
 */

/* The values that an agent needs before it allocates memory. */
struct lb_hello {
	unsigned int n_lcores;
	uint32_t path_mtu;               /* of the fabric port that reaches <address> */
	struct lb_address address;       /* the load balancer's own on that port */
	uint32_t max_request, max_reply; /* largest over the services of the model */
	uint32_t worker_timeout_ms;
	uint8_t ack_timeout, retry_count;
};

/* Fill <hello>. 0, or -errno with a sentence in <error> that names the fix on the agent's side. */
int lb_hello(struct lb *lb, const char *model, const struct lb_address *agent,
	     struct lb_hello *hello, char *error, size_t error_size);

/*
 * Check that every service of the model can carry requests of <min_request> bytes. 0, or -EINVAL
 * with a sentence in <error> that names both sizes. For agents, before they allocate memory.
 */
int lb_request_check(const struct lb *lb, const char *model, uint32_t min_request, char *error,
		     size_t error_size);

/*
 * Check that <registration> could become a worker if its name were free and there was room. 0, or
 * -errno with a sentence in <error>. Changes nothing, so that the caller may make room first.
 */
int lb_registration_check(const struct lb *lb, const struct lb_registration *registration,
			  char *error, size_t error_size);
/*
 * Register a worker and set up its links: state joining. NULL with a sentence in <error>.
 * <info> has room for one entry per lcore; both ends will use <path_mtu>.
 */
struct worker *lb_worker_register(struct lb *lb, const struct lb_registration *registration,
				  struct lb_link_info *info, uint32_t *path_mtu, char *error,
				  size_t error_size);
/* The worker's RoCEv2 address, as registered. Valid as long as the worker. */
const struct lb_address *lb_worker_address(const struct lb *lb, const struct worker *worker);
/* The agent's queue pairs can receive; the worker turns active when its first heartbeat comes. */
void lb_worker_ready(struct lb *lb, struct worker *worker);
/*
 * The agent is about to end: send it no new requests. The event fires when nothing is outstanding.
 */
void lb_worker_drain(struct lb *lb, struct worker *worker);
/* True once a draining worker has answered everything. */
bool lb_worker_drained(struct lb *lb, const struct worker *worker);
/*
 * The connection to the worker's agent is lost: the agent <closed> it, or was silent for too long.
 * A serving worker stays as long as its loop's heartbeats come; a joining, drained or leaving
 * worker is removed.
 */
void lb_worker_control_lost(struct lb *lb, struct worker *worker, bool closed);
/* The agent is connected again. */
void lb_worker_control_back(struct lb *lb, struct worker *worker);
/* Take the links down and free the place; requests in flight are counted as lost. */
void lb_worker_remove(struct lb *lb, struct worker *worker, const char *reason);

/* Called when a worker changed state, inside lb_tick() or an lb_worker_* call. */
typedef void (*lb_worker_event)(struct worker *worker, void *context);
void lb_on_worker_event(struct lb *lb, lb_worker_event event, void *context);

/* --- private to lb/ ----------------------------------------------------------------------------
 */

/* Change a worker's state: log it, publish new pick tables if needed, call the event's callback. */
void registry_set_state(struct lb *lb, struct worker *w, enum worker_state state,
			const char *reason);

/*
 * Publish new pick tables for every service of <model> (NULL: for all), and the table of models.
 * Not now when too many old ones wait for an lcore that stands still: registry_publish_due() does
 * it then.
 */
void registry_publish(struct lb *lb, const char *model);
void registry_publish_due(struct lb *lb);

/*
 * Check that the registered workers can serve the services of <config>. 0, or -EINVAL with a
 * sentence in <error> that names worker, key and fix.
 */
int registry_check_config(const struct lb *lb, const struct lb_config *config, char *error,
			  size_t size);

/* The reason text of a worker that has no other: empty, or that its control connection is lost. */
const char *registry_reason(const struct worker *w);
/* Destroy a link that no lcore knows. NULL is fine. */
void registry_destroy_link(struct lb *lb, struct link *link);

/* Free the links of gone workers whose lcores are done with them. */
void registry_free_links(struct lb *lb);

#endif
