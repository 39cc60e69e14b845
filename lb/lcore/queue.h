/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that wait for a credit: one bounded queue per service and lcore. Pure; knows no packets.
 *
 * Level 0 goes first, then level 1 and so on. Within a level each client has a queue of its own,
 * found by a hash of its address, and these client queues are served round-robin, so that a heavy
 * sender delays only itself. Two clients may share one of the QUEUE_CLIENTS queues; the hash is
 * seeded, so a client cannot choose with which. When the queue is full, the longest client queue of
 * the last level gives up its oldest request, unless the newcomer's client queue is as long: then
 * the newcomer is refused.
 *
 * Owner: its lcore; the control thread builds it before the lcore gets it.
 */
#ifndef LB_QUEUE_H
#define LB_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "packet/client_path.h"

struct rte_mbuf;

#define QUEUE_NONE UINT32_MAX
/* Level 0 is for requests that were sent before, to a worker that was lost (replay.c). They do not
 * count against the limit of newcomers, are never displaced, and share client queue 0: the oldest
 * goes first, of any client. */
#define QUEUE_LEVEL_REPLAY 0
#define QUEUE_LEVELS       5
#define QUEUE_CLIENTS      64

/* A request that waits. The packet is stripped to its payload. */
struct waiting {
	struct rte_mbuf *packet;
	uint64_t flow;     /* conntrack handle */
	uint64_t tag;      /* for a notice: the request's id, or its first 8 bytes */
	uint64_t arrived;  /* TSC; when it came from the client */
	uint64_t since;    /* TSC; when it began to wait */
	uint64_t deadline; /* TSC; 0: none */
	struct client_path path;
	uint32_t hash; /* of the flow */
	uint8_t level;
	uint8_t client_queue; /* below QUEUE_CLIENTS */
	uint8_t replays;      /* so far */
	uint16_t lost;        /* of a replay: 1 + number of the worker that had it; else 0 */
};

struct queue_entry {
	struct waiting request;
	uint32_t next;         /* behind it in its client queue, or in the list of free entries */
	uint32_t previous;     /* in front of it in its client queue */
	uint32_t older, newer; /* by arrival in the queue, of any client */
};

struct client_queue {
	uint32_t first, last;
};

struct queue_level {
	uint64_t busy; /* one bit per client queue that has requests */
	uint32_t count;
	uint8_t turn; /* the client queue to serve next */
	struct client_queue client[QUEUE_CLIENTS];
	uint32_t length[QUEUE_CLIENTS];
};

struct queue {
	uint32_t size;   /* limit of newcomers: requests that are no replays */
	uint32_t places; /* length of <entry>: <size> and the replays */
	uint32_t count;  /* of all levels */
	uint32_t free;
	uint32_t oldest, newest;
	uint32_t scan; /* the next that queue_scan() returns */
	struct queue_entry *entry;
	struct queue_level level[QUEUE_LEVELS];
};

/* Allocate room for <size> newcomers and <replays>; either may be 0. 0 or -ENOMEM. */
int queue_init(struct queue *q, uint32_t size, uint32_t replays);
void queue_fini(struct queue *q);

enum queue_verdict { QUEUE_TAKEN, QUEUE_DISPLACED, QUEUE_REFUSED };

/*
 * Put a request at the end of its client queue. With <grow> false a newcomer gets in only in place
 * of another. QUEUE_TAKEN: it is in. QUEUE_DISPLACED: it is in, and <*displaced> is out and belongs
 * to the caller. QUEUE_REFUSED: it is not in.
 */
enum queue_verdict queue_push(struct queue *q, const struct waiting *request, bool grow,
			      struct waiting *displaced);

/* How many requests go before one that joins this client queue now, if all take equally long. */
uint32_t queue_ahead(const struct queue *q, uint8_t level, uint8_t client_queue);

/* The request to serve next, of <level> or a later one; QUEUE_NONE: there is none. It stays the
 * next until it is taken or passed over. */
uint32_t queue_first(const struct queue *q, unsigned int level);
/* Pass over the request that queue_first() gave: it goes to the end of its client queue, and the
 * next client queue has its turn. */
void queue_pass(struct queue *q, uint32_t place);
/* Remove the request that queue_first() gave; the next client queue has its turn. */
struct waiting queue_take(struct queue *q, uint32_t place);
/* Remove any request. */
struct waiting queue_remove(struct queue *q, uint32_t place);

static inline const struct waiting *queue_at(const struct queue *q, uint32_t place)
{
	return &q->entry[place].request;
}

/* The request that has waited longest, and the one that came after <place>. QUEUE_NONE: none. */
static inline uint32_t queue_oldest(const struct queue *q)
{
	return q->oldest;
}
static inline uint32_t queue_newer(const struct queue *q, uint32_t place)
{
	return q->entry[place].newer;
}

/* The next request of a scan from the oldest to the newest and around again. The caller may remove
 * it. QUEUE_NONE: the queue is empty. */
uint32_t queue_scan(struct queue *q);

/* Find the flow's request with this tag, in its client queue or among the replays, or QUEUE_NONE.
 * Each request visited takes one of <*budget>. */
uint32_t queue_find(const struct queue *q, uint8_t client_queue, uint64_t flow, uint64_t tag,
		    uint32_t *budget);

#endif
