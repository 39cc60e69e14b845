/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends requests over many UDP sockets, keeps a window of them outstanding on each, and records
 * how each one ended. One thread; nothing is sent twice.
 *
 * A request of LOAD_ID_MIN bytes or more starts with its id, which its reply must start with, too.
 * A shorter one has no id: nothing else is outstanding on its socket while it is.
 */
#ifndef CLIENT_LOAD_H
#define CLIENT_LOAD_H

#include "runtime/endpoint.h"
#include "tally.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOAD_ID_MIN       12
#define LOAD_DATAGRAM_MAX 65507
#define LOAD_SOCKETS_MAX  65536
#define LOAD_WINDOW_MAX   4096

struct load_options {
	struct endpoint_address to;
	uint64_t sockets;
	uint64_t window;   /* requests outstanding per socket */
	uint64_t requests; /* of the whole run; 0: as many as duration_s allows */
	double duration_s; /* 0: until requests are sent */
	uint64_t rate;     /* requests per second over all sockets, 0: as fast as replies come */
	uint64_t timeout_ms;
	bool progress;
};

/* The payload of requests and replies. <id> holds the index of the request in its low 32 bits and
 * the run's tag, the same for all its requests, above. */
struct load_work {
	void *context;
	size_t (*length)(void *context, uint32_t index);
	/* Writes length() bytes; load.c then writes the id, little-endian, if there is room. */
	void (*build)(void *context, uint64_t id, uint8_t *request);
	/* Returns whether <reply> is right, to the last byte. */
	bool (*check)(void *context, uint64_t id, const uint8_t *reply, size_t length);
};

/* A random tag for the ids of one run. */
uint32_t load_tag(void);

/*
 * Runs to the end, or until SIGINT or SIGTERM, after which it sends no more and waits for the
 * outstanding requests. Fills <tally>, which the caller finishes with tally_fini() after success.
 * -errno, said on stderr, if the run could not be made; lost and wrong replies are not errors.
 */
int load_run(const struct load_options *options, const struct load_work *work, uint32_t tag,
	     struct tally *tally);

#endif
