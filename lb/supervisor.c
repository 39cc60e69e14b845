/* SPDX-License-Identifier: BSD-3-Clause */
#include "supervisor.h"

#include <rte_log.h>

#include "lb.h"
#include "lcore/lcores.h"
#include "runtime/log_sink.h"

#define STATUS_MS 1000u /* between changes of the status line, at least */

void supervisor_open(struct supervisor *s)
{
	int ret;

	*s = (struct supervisor){.active = ~0u};
	ret = notify_open(&s->notify);
	if (ret < 0)
		log_sink_print(RTE_LOG_WARNING, "doorbell-lb: NOTIFY_SOCKET cannot be used error=%d",
			     -ret);
}

void supervisor_close(struct supervisor *s)
{
	notify_close(&s->notify);
}

/* Send the status line if it has changed. */
static void supervisor_send_status(struct supervisor *s, struct lb *lb)
{
	const struct lb_config *config = lb_config_get(lb);
	unsigned int active = workers_count(lb_pool(lb), WORKER_ACTIVE), services = 0;

	for (unsigned int i = 0; i < config->n_services; i++)
		services += lb_service_serves(&config->service[i]);
	if (active == s->active && services == s->services)
		return;
	s->active = active;
	s->services = services;
	notify_send(&s->notify, "STATUS=%u service%s, %u worker%s active", services,
		    services == 1 ? "" : "s", active, active == 1 ? "" : "s");
}

void supervisor_ready(struct supervisor *s, struct lb *lb)
{
	notify_send(&s->notify, "READY=1");
	supervisor_send_status(s, lb);
}

void supervisor_reloading(struct supervisor *s)
{
	notify_reloading(&s->notify);
}

/* The time beyond stop_timeout_ms to send notices, close ports and free memory. */
#define STOP_MORE_MS 10000u

void supervisor_stopping(struct supervisor *s, uint32_t timeout_ms)
{
	s->stopping = true;
	/* The unit's TimeoutStopSec may be shorter than stop_timeout_ms. */
	notify_send(&s->notify,
		    "STOPPING=1\nSTATUS=stopping: finishing requests\nEXTEND_TIMEOUT_USEC=%llu",
		    (timeout_ms + STOP_MORE_MS) * 1000ull);
}

void supervisor_tick(struct supervisor *s, struct lb *lb, uint64_t now_ms)
{
	uint64_t half = s->notify.watchdog_us / 2000;

	if (s->notify.fd < 0 || now_ms < s->next_ms)
		return;
	/* Where no lcore goes on, nobody is served, and a restart takes nothing away. */
	if (s->notify.watchdog_us > 0 && !lb_all_stand(lb))
		notify_send(&s->notify, "WATCHDOG=1");
	if (!s->stopping)
		supervisor_send_status(s, lb);
	s->next_ms = now_ms + (half > 0 && half < STATUS_MS ? half : STATUS_MS);
}
