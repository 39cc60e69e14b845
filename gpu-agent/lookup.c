/* SPDX-License-Identifier: BSD-3-Clause */
#include "lookup.h"

#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <event2/event.h>

#include "runtime/detached.h"

/* The caller and the thread each hold a reference; the last one to drop it frees the lookup. */
struct agent_lookup {
	unsigned int users; /* atomic */
	char *host, *port;
	int fd; /* readable when the answer is there */
	int error;
	struct lookup_addresses found;
	/* the caller's */
	struct event *event;
	void (*done)(void *context, const struct lookup_addresses *found, int error);
	void *context;
};

static void lookup_put(struct agent_lookup *l)
{
	if (__atomic_sub_fetch(&l->users, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	if (l->fd >= 0)
		close(l->fd);
	free(l->host);
	free(l->port);
	free(l);
}

/* Look up the addresses. False when <flags> allow only an address, and the name is not one. */
static bool lookup_ask(struct agent_lookup *l, int flags)
{
	struct addrinfo hints = {.ai_flags = flags, .ai_socktype = SOCK_STREAM}, *list = NULL;
	const uint64_t one = 1;

	l->error = getaddrinfo(l->host, l->port, &hints, &list);
	if (l->error != 0 && (flags & AI_NUMERICHOST) != 0)
		return false;
	for (const struct addrinfo *i = l->error == 0 ? list : NULL; i != NULL; i = i->ai_next) {
		struct lookup_address *a = &l->found.address[l->found.n];

		if (l->found.n == LOOKUP_ADDRESSES_MAX || i->ai_addrlen > sizeof(a->at))
			break;
		memcpy(&a->at, i->ai_addr, i->ai_addrlen);
		a->size = i->ai_addrlen;
		l->found.n++;
	}
	if (list != NULL)
		freeaddrinfo(list);
	if (l->error == 0 && l->found.n == 0)
		l->error = EAI_NONAME;
	/* The eventfd's number publishes the result: the caller reads it first. */
	return write(l->fd, &one, sizeof(one)) == sizeof(one);
}

static void *lookup_thread(void *argument)
{
	struct agent_lookup *l = argument;

	lookup_ask(l, AI_ADDRCONFIG | AI_NUMERICSERV);
	lookup_put(l);
	return NULL;
}

static bool lookup_start_thread(struct agent_lookup *l)
{
	int ret;

	__atomic_add_fetch(&l->users, 1, __ATOMIC_RELAXED);
	ret = detached_start(lookup_thread, l);
	if (ret != 0)
		lookup_put(l);
	return ret == 0;
}

static void on_answer(evutil_socket_t fd, short what, void *context)
{
	struct agent_lookup *l = context;
	uint64_t ignored;

	if (read(fd, &ignored, sizeof(ignored)) != sizeof(ignored))
		return;
	event_free(l->event);
	l->event = NULL;
	l->done(l->context, &l->found, l->error);
	lookup_put(l);
}

void agent_lookup_cancel(struct agent_lookup *l)
{
	if (l == NULL)
		return;
	event_free(l->event);
	l->event = NULL;
	lookup_put(l);
}

struct agent_lookup *
agent_lookup_start(struct event_base *base, const char *host, const char *port,
		   void (*done)(void *context, const struct lookup_addresses *found, int error),
		   void *context)
{
	struct agent_lookup *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return NULL;
	l->users = 1;
	l->done = done;
	l->context = context;
	l->host = strdup(host);
	l->port = strdup(port);
	l->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (l->host != NULL && l->port != NULL && l->fd >= 0)
		l->event = event_new(base, l->fd, EV_READ, on_answer, l);
	if (l->event == NULL || event_add(l->event, NULL) < 0)
		goto fail;
	/* An IP address needs no lookup, so no thread. */
	if (!lookup_ask(l, AI_NUMERICHOST | AI_NUMERICSERV) && !lookup_start_thread(l))
		goto fail;
	return l;

fail:
	if (l->event != NULL)
		event_free(l->event);
	lookup_put(l);
	return NULL;
}
