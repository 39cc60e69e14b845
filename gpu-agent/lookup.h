/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The addresses of a name, asked for on a thread: a name server that does not answer takes the
 * system's resolver many seconds, in which leases would end (private to gpu-agent/). Main thread.
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
 * Calls <done> once, from the event loop and never from within this call. <error>: 0, or one of
 * gai_strerror(), with no addresses. NULL when memory or threads are out.
 */
struct agent_lookup *
agent_lookup_start(struct event_base *base, const char *host, const char *port,
		   void (*done)(void *context, const struct lookup_addresses *found, int error),
		   void *context);

/* <done> will not be called any more; only until then. NULL is fine. */
void agent_lookup_cancel(struct agent_lookup *lookup);

#endif
