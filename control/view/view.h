/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Facade of status.c, ready.c and metrics.c: the state of a load balancer as text. Status is JSON,
 * for the status page and doorbell top; metrics are for Prometheus. Only reads counters; runs on
 * the control thread. Private to this folder and its tests.
 */
#ifndef CONTROL_VIEW_H
#define CONTROL_VIEW_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "lb.h"
#include "protocol/text.h"
#include "server/refusals.h"
#include "server/window.h"

struct view {
	struct lb *lb;
	const struct window *window;     /* NULL: no rates */
	uint64_t start_ms;               /* clock_now_ms() when the server started */
	const struct refusals *refusals; /* NULL: no refusals */
	const time_t *tls_not_after; /* our certificate's end; NULL or 0 in it: no certificate */
};

/* Write the status as one object; doorbell-json(5) lists its members under "top". */
void view_status(const struct view *view, struct text *out);

/*
 * True when the load balancer can serve: every lcore polls, at least one service has an active
 * worker, and it is not being stopped. Otherwise <out> gets a line for each reason.
 */
bool view_ready(const struct view *view, struct text *out);

/* Position in the metrics. Start with all zeroes and set <plain>. */
struct metrics_walk {
	bool plain; /* Prometheus' text format 0.0.4 instead of OpenMetrics */
	unsigned int family, item;
	bool begun; /* the family's TYPE, UNIT and HELP lines are written */
	bool done;
};

/*
 * Go on with the metrics in the OpenMetrics text format (version 1.0.0) or the plain one, for
 * <budget_us> or little longer. A worker that comes or goes meanwhile may be in some families and
 * not in others.
 */
void view_metrics(const struct view *view, struct metrics_walk *walk, uint64_t budget_us,
		  struct text *out);

#endif
