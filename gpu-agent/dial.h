/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TLS on the connection to the load balancer, as the options ask for it (private to gpu-agent/).
 * Files are read for every connection, so renewed files take effect with the next one. Main thread.
 */
#ifndef AGENT_DIAL_H
#define AGENT_DIAL_H

#include <stdbool.h>
#include <stddef.h>

struct agent_options;
struct bufferevent;
struct event_base;

bool agent_dial_wants_tls(const struct agent_options *o);

/* True when the certificate, key and token files are usable. False with a sentence in <error>. */
bool agent_dial_check(const struct agent_options *o, char *error, size_t size);

/* True when the certificate ends within a week or is unusable now; <why> says so: "ends ...". */
bool agent_dial_ends_soon(const struct agent_options *o, char *why, size_t size);

/*
 * Start TLS over the connected <plain>, which is consumed. It reports BEV_EVENT_CONNECTED once more
 * when TLS has verified the load balancer. NULL with a sentence in <error>.
 */
struct bufferevent *agent_dial_secure(struct event_base *base, struct bufferevent *plain,
				      const struct agent_options *o, char *error, size_t size);

/* True when TLS has verified the load balancer. The session asks again before it sends the first
 * message. */
bool agent_dial_proven(struct bufferevent *connection);

/* Write why TLS ended the connection; false when TLS does not know. */
bool agent_dial_reason(struct bufferevent *connection, char *reason, size_t size);

#endif
