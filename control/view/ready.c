/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/rpc.h"
#include "view/view.h"

static void ready_add_reason(struct text *out, const char *reason)
{
	text_string(out, reason);
	text_string(out, "\n");
}

/* True when every lcore polls; even an idle one does so some twenty times a second. */
static bool lcores_poll(const struct view *view, struct text *out)
{
	unsigned int halted = 0;
	char reason[96];

	for (unsigned int i = 0; i < lb_lcores(view->lb); i++) {
		const struct window_lcore *w = window_lcore(view->window, i);

		if (w == NULL || w->polls > 0)
			continue;
		snprintf(reason, sizeof(reason), "lcore %u has not polled for a second", i);
		ready_add_reason(out, reason);
		halted++;
	}
	return halted == 0;
}

static bool ready_can_serve(const struct view *view, struct text *out)
{
	const struct lb_config *config = lb_config_get(view->lb);

	for (unsigned int i = 0; i < config->n_services; i++)
		if (lb_service_serves(&config->service[i]) &&
		    lb_service_workers(view->lb, i, NULL) > 0)
			return true;
	ready_add_reason(out, "no service has an active worker");
	return false;
}

bool view_ready(const struct view *view, struct text *out)
{
	bool stopping = lb_is_stopping(view->lb), polling, serving;

	if (stopping)
		ready_add_reason(out, "it is stopping");
	polling = lcores_poll(view, out);
	serving = ready_can_serve(view, out);
	return !stopping && polling && serving;
}
