/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whose a worker's name is, and for how long: a registration is a lease that its agent renews, and
 * an agent that comes back may take over what it left behind.
 */
#include <stdio.h>

#include "rpc.h"

json_t *control_agent_renew(struct control_call *call)
{
	struct control_connection *c = call->c;

	if (!control_params_read(call, "params", call->params, NULL, 0, NULL))
		return NULL;
	if (!c->worker)
		return control_fail(call, CONTROL_ERROR_STATE,
				    "this connection has no worker; call agent.register first");
	c->renewed = true;
	return json_pack("{s:I}", "lease_ms", (json_int_t)c->lease_ms);
}

void control_lease_end(struct control_connection *c)
{
	char reason[WORKER_REASON_MAX];

	snprintf(reason, sizeof(reason), "its lease ended: the agent did not renew it for %u ms",
		 c->lease_ms);
	lb_worker_remove(c->lb, c->worker, reason);
}

/* <w> makes room for its successor; its connection, if it is still there, is of no more use. */
static void supersede(struct lb *lb, struct worker *w, const char *reason)
{
	struct control_connection *former = w->owner;

	if (former)
		former->over = true;
	lb_worker_remove(lb, w, reason);
	/* nobody listens to events in unit tests */
	if (former)
		former->worker = NULL;
}

bool control_claim_name(struct control_call *call, const struct worker_spec *spec)
{
	struct lb *lb = call->c->lb;
	struct worker *w = workers_find(lb_pool(lb), spec->name);
	const struct control_connection *former;

	if (!w)
		return true;
	if (w->spec.instance == spec->instance) {
		supersede(lb, w, "its agent registers again");
		return true;
	}
	/* Health knows what is missing and what only waits in a queue. */
	if (w->doubt.silent) {
		supersede(lb, w, "another agent takes its name, as its loop is silent");
		return true;
	}
	former = w->owner;
	/* the same words each time, as agents say a reason once */
	control_fail(call, CONTROL_ERROR_REFUSED,
		     "name '%s' is in use by another live agent; use another name or stop that "
		     "agent (%s)",
		     spec->name, former ? former->peer : "at an unknown address");
	return false;
}
