/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a service serves, and if not, why; for people. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "server/refusals.h"
#include "server/row.h"

/*
 * The workers of a service's model, counted by state, and one whose reason explains why it does not
 * serve.
 */
struct census {
	unsigned int n, by_state[WORKER_STATES], drained;
	const struct worker *with_reason;
};

static struct census count_workers(struct lb *lb, const char *model)
{
	struct census c = {0};

	for (const struct worker *w = workers_next(lb_pool(lb), NULL); w != NULL;
	     w = workers_next(lb_pool(lb), w)) {
		if (strcmp(w->spec.model, model) != 0)
			continue;
		c.n++;
		if (w->state == WORKER_DRAINING && lb_worker_drained(lb, w))
			c.drained++;
		else
			c.by_state[w->state]++;
		if (w->state != WORKER_ACTIVE && w->reason[0] != '\0' && c.with_reason == NULL)
			c.with_reason = w;
	}
	return c;
}

static void state_add(char *buf, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void state_add(char *buf, size_t size, const char *format, ...)
{
	size_t used = strlen(buf);
	va_list ap;

	va_start(ap, format);
	vsnprintf(buf + used, size - used, format, ap);
	va_end(ap);
}

static void add_refusals(const struct refusals *refusals, const char *model, char *buf, size_t size)
{
	const struct refusal *latest = refusals_latest(refusals, model);

	if (latest != NULL)
		state_add(buf, size, "; one at %s was refused: %s", latest->peer, latest->reason);
}

static void add_states(const struct census *c, char *buf, size_t size)
{
	const char *separator = "";

	for (unsigned int s = WORKER_GONE + 1; s < WORKER_STATES; s++) {
		if (c->by_state[s] == 0)
			continue;
		state_add(buf, size, "%s%u %s", separator, c->by_state[s],
			  worker_state_name((enum worker_state)s));
		if (s == WORKER_ACTIVE)
			state_add(buf, size, " for other services");
		separator = ", ";
	}
	if (c->drained != 0)
		state_add(buf, size, "%s%u drained", separator, c->drained);
}

/* Explain why no worker serves the service. */
static void explain(struct lb *lb, const struct lb_service_config *s,
		    const struct refusals *refusals, char *buf, size_t size)
{
	struct census c = count_workers(lb, s->model);

	buf[0] = '\0';
	if (c.n == 0) {
		state_add(buf, size, "no worker is registered for model '%s'", s->model);
		add_refusals(refusals, s->model, buf, size);
		return;
	}
	if (c.drained == c.n) {
		state_add(buf, size,
			  "all %u workers of model '%s' are drained; doorbell workers resume NAME",
			  c.n, s->model);
		return;
	}
	state_add(buf, size, "of %u workers of model '%s': ", c.n, s->model);
	add_states(&c, buf, size);
	if (c.by_state[WORKER_ACTIVE] != 0)
		state_add(buf, size, "; doorbell workers assign NAME %s", s->name);
	else if (c.with_reason != NULL)
		state_add(buf, size, "; %s: %s", c.with_reason->spec.name, c.with_reason->reason);
}

const char *service_state(struct lb *lb, unsigned int number, const struct refusals *refusals,
			  char *reason, size_t size)
{
	const struct lb_service_config *s = &lb_config_get(lb)->service[number];

	reason[0] = '\0';
	if (s->leaving) {
		snprintf(reason, size, "it is not in the configuration any more");
		return "leaving";
	}
	if (lb_service_workers(lb, number, NULL) != 0)
		return "serving";
	explain(lb, s, refusals, reason, size);
	return "down";
}
