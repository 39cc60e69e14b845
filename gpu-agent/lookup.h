/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looks up the addresses of a name on a thread of its own (private to gpu-agent/). When a name
 * server does not answer, the system's resolver blocks for many seconds, and leases would end in
 * that time. Main thread.
 */
#ifndef AGENT_LOOKUP_H
#define AGENT_LOOKUP_H

#include <sys/socket.h>

#define LOOKUP_ADDRESSES_MAX 16

struct lookup_addresses {
	unsigned int n;
	struct lookup_address {
		struct sockaddr_storage at;
		socklen_t size;
	} address[LOOKUP_ADDRESSES_MAX];
};

struct agent_lookup;
struct event_base;

/*
 * Start a lookup. Calls <done> once, from the event loop and never from within this call. <error>:
 * 0, or one of gai_strerror(), and then there are no addresses. NULL when out of memory or threads.
 */
struct agent_lookup *
agent_lookup_start(struct event_base *base, const char *host, const char *port,
		   void (*done)(void *context, const struct lookup_addresses *found, int error),
		   void *context);

/* Cancel: <done> will not be called any more. Not allowed after <done> was called. NULL is fine. */
void agent_lookup_cancel(struct agent_lookup *lookup);

#endif
