/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TLS on the connection to the load balancer, as the options want it (private to gpu-agent/). Files
 * are read for every connection, so renewed ones are used from the next on. Main thread.
 */
#ifndef AGENT_DIAL_H
#define AGENT_DIAL_H

#include <stdbool.h>
#include <stddef.h>

struct agent_options;
struct bufferevent;
struct event_base;

bool agent_dial_wants_tls(const struct agent_options *o);

/* Can the files be used? False with a sentence in <error>. */
bool agent_dial_check(const struct agent_options *o, char *error, size_t size);

/* Does the certificate end within a week, or is it of no use now? Then <why> says so: "ends ...".
 */
bool agent_dial_ends_soon(const struct agent_options *o, char *why, size_t size);

/*
 * TLS over the connected <plain>, which is consumed. It reports BEV_EVENT_CONNECTED once more when
 * the load balancer has proven who it is to TLS. NULL with a sentence in <error>.
 */
struct bufferevent *agent_dial_secure(struct event_base *base, struct bufferevent *plain,
				      const struct agent_options *o, char *error, size_t size);

/* Whether it has, asked once more: before anything is said. */
bool agent_dial_proven(struct bufferevent *connection);

/* What TLS knows of a connection's end; false when it knows nothing. */
bool agent_dial_reason(struct bufferevent *connection, char *reason, size_t size);

#endif
