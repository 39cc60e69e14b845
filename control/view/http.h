/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The HTTP server: the status page, its data and metrics, for reading only. On the control thread,
 * where no request works for longer than a millisecond at a time.
 *
 *   GET /                 the status page, self-contained
 *   GET /api/status.json  what it shows; doorbell-json(5) lists the members under "top"
 *   GET /metrics          OpenMetrics if the Accept header prefers it, else Prometheus' text
 *   GET /livez            "ok", as long as the control thread runs; also as /healthz
 *   GET /readyz           "ready", or 503 and a line per reason why requests are not for here
 *
 * HEAD works for all. There are no files and no parameters; a query is ignored. On a loopback
 * address the Host must be one, too, so that no web page can have a browser read this one by a name
 * of its own (DNS rebinding).
 */
#ifndef CONTROL_HTTP_H
#define CONTROL_HTTP_H

#include <stdint.h>
#include <time.h>

#include "server/window.h"

struct control_http;
struct event_base;
struct refusals;

/*
 * Start to listen on the configured address. NULL when that is off, or after logging why it failed:
 * the load balancer works without. The caller owns the result and keeps the arguments alive for
 * longer.
 */
struct control_http *control_http_create(struct lb *lb, const struct window *window,
					 struct event_base *base, uint64_t start_ms,
					 const time_t *tls_not_after,
					 const struct refusals *refusals);
void control_http_destroy(struct control_http *http);

/* The TCP port of the server; 0 for NULL. */
uint16_t control_http_port(const struct control_http *http);

#endif
