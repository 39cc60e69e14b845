/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Facade of status.c, ready.c and metrics.c: the state of a load balancer as text. Status is JSON,
 * for the status page and doorbell top; metrics are for Prometheus. Pure but for reading counters;
 * on the control thread. Private to this folder and its tests.
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
	const struct window *window;     /* may be NULL: no rates then */
	uint64_t start_ms;               /* clock_now_ms() when the server started */
	const struct refusals *refusals; /* may be NULL: none then */
	const time_t *tls_not_after; /* when our certificate ends; NULL, or to 0: there is none */
};

/* One object; doorbell-json(5) lists its members under "top". */
void view_status(const struct view *view, struct text *out);

/*
 * Can it serve? Every lcore polls, and one service at least has an active worker, and it is not
 * being stopped. If not, a line for each reason is added to <out>.
 */
bool view_ready(const struct view *view, struct text *out);

/* How far the metrics are written. Start with all zeroes, but for <plain>. */
struct metrics_walk {
	bool plain; /* Prometheus' text format 0.0.4 instead */
	unsigned int family, item;
	bool begun; /* what is said of the family is written */
	bool done;
};

/*
 * Go on with the metrics in the OpenMetrics text format (version 1.0.0) or the plain one, for
 * <budget_us> or little longer. Workers that come or go in between may be in some families and not
 * in others.
 */
void view_metrics(const struct view *view, struct metrics_walk *walk, uint64_t budget_us,
		  struct text *out);

#endif
