/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that wait for a credit: one bounded queue per service and lcore. Pure; knows no packets.
 *
 * Higher levels go first, always. Within a level clients take turns: each has a lane by a hash of
 * its address, and lanes are served round-robin, so that who sends much waits for itself. Two
 * clients may share one of the QUEUE_LANES; the hash is seeded, so nobody can choose with whom.
 * When the queue is full the longest lane of the lowest level gives up its oldest request, unless
 * the newcomer's own lane is as long: then the newcomer is refused.
 *
 * Owner: its lcore, or before the lcores run whoever builds it.
 */
#ifndef LB_QUEUE_H
#define LB_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "packet/client_path.h"

struct rte_mbuf;

#define QUEUE_NONE UINT32_MAX
/* Level 0 is for requests that were sent before, to a worker that was lost (replay.c). They are
 * beyond the size that newcomers are held to, never displaced, and all in lane 0: the oldest goes
 * first, whoever's it is. */
#define QUEUE_LEVEL_REPLAY 0
#define QUEUE_LEVELS       5
#define QUEUE_LANES        64

/* A request that waits. The packet is stripped to its payload. */
struct waiting {
	struct rte_mbuf *packet;
	uint64_t flow;     /* conntrack handle */
	uint64_t tag;      /* for a notice: id, or first 8 bytes of the request */
	uint64_t arrived;  /* TSC; when it came from the client */
	uint64_t since;    /* TSC; when it began to wait */
	uint64_t deadline; /* TSC; 0: none */
	struct client_path path;
	uint32_t hash; /* of the flow */
	uint8_t level;
	uint8_t lane;
	uint8_t replays; /* so far */
};

struct queue_entry {
	struct waiting request;
	uint32_t next;         /* behind it in its lane, or in the list of free entries */
	uint32_t previous;     /* in front of it in its lane */
	uint32_t older, newer; /* by arrival in the queue, whatever lane */
};

struct queue_lane {
	uint32_t first, last;
};

struct queue_level {
	uint64_t busy; /* one bit per lane that has requests */
	uint32_t count;
	uint8_t turn; /* the lane to look at next */
	struct queue_lane lane[QUEUE_LANES];
	uint32_t length[QUEUE_LANES];
};

struct queue {
	uint32_t size;   /* that newcomers are held to */
	uint32_t places; /* of <entry>: more, for replays */
	uint32_t count;  /* all levels */
	uint32_t free;
	uint32_t oldest, newest;
	uint32_t look; /* queue_look()'s next */
	struct queue_entry *entry;
	struct queue_level level[QUEUE_LEVELS];
};

/* Room for <size> newcomers and <replays>. 0 or -ENOMEM. Either may be 0. */
int queue_init(struct queue *q, uint32_t size, uint32_t replays);
void queue_fini(struct queue *q);

enum queue_verdict { QUEUE_TAKEN, QUEUE_DISPLACED, QUEUE_REFUSED };

/*
 * Put a request behind the others of its lane. <grow>: there may be one more than now; otherwise it
 * is in only for another that goes. DISPLACED: it is in, and *<displaced> is out and the
 * caller's. REFUSED: it is not in.
 */
enum queue_verdict queue_push(struct queue *q, const struct waiting *request, bool grow,
			      struct waiting *displaced);

/* How many would go before a request that joins this lane now, if all took as long. */
uint32_t queue_ahead(const struct queue *q, uint8_t level, uint8_t lane);

/* Whose turn it is from this level on down; QUEUE_NONE when there is nobody. It stays where it is
 * until taken or passed over. */
uint32_t queue_first(const struct queue *q, unsigned int level);
/* Its turn is over: it goes to the end of its lane, and the next lane is looked at. */
void queue_pass(struct queue *q, uint32_t place);
/* Remove the first of a lane, as queue_first() gave it; the next lane's turn comes. */
struct waiting queue_take(struct queue *q, uint32_t place);
/* Remove any. */
struct waiting queue_remove(struct queue *q, uint32_t place);

static inline const struct waiting *queue_at(const struct queue *q, uint32_t place)
{
	return &q->entry[place].request;
}

/* Who has waited longest, and who came next. QUEUE_NONE at the end. */
static inline uint32_t queue_oldest(const struct queue *q)
{
	return q->oldest;
}
static inline uint32_t queue_newer(const struct queue *q, uint32_t place)
{
	return q->entry[place].newer;
}

/* One after the other, from the oldest to the newest and over again; what is looked at may be
 * removed. QUEUE_NONE when nobody waits. */
uint32_t queue_look(struct queue *q);

/* The request of this flow with this tag in its lane, or in that of those sent before, or
 * QUEUE_NONE. Takes each it looks at from <*budget>. */
uint32_t queue_find(const struct queue *q, uint8_t lane, uint64_t flow, uint64_t tag,
		    uint32_t *budget);

#endif
