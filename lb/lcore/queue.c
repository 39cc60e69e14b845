/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lcore/queue.h"

int queue_init(struct queue *q, uint32_t size, uint32_t replays)
{
	memset(q, 0, sizeof(*q));
	q->size = size;
	q->places = size + replays;
	q->free = q->oldest = q->newest = q->scan = QUEUE_NONE;
	for (unsigned int level = 0; level < QUEUE_LEVELS; level++)
		memset(q->level[level].client, 0xff,
		       sizeof(q->level[level].client)); /* QUEUE_NONE */
	if (q->places == 0)
		return 0;
	q->entry = calloc(q->places, sizeof(*q->entry));
	if (q->entry == NULL)
		return -ENOMEM;
	for (uint32_t i = q->places; i-- > 0;) {
		q->entry[i].next = q->free;
		q->free = i;
	}
	return 0;
}

void queue_fini(struct queue *q)
{
	free(q->entry);
	q->entry = NULL;
}

static uint32_t queue_newcomers(const struct queue *q)
{
	return q->count - q->level[QUEUE_LEVEL_REPLAY].count;
}

static void queue_age_append(struct queue *q, uint32_t place)
{
	struct queue_entry *e = &q->entry[place];

	e->older = q->newest;
	e->newer = QUEUE_NONE;
	if (q->newest == QUEUE_NONE)
		q->oldest = place;
	else
		q->entry[q->newest].newer = place;
	q->newest = place;
}

static void queue_age_unlink(struct queue *q, uint32_t place)
{
	struct queue_entry *e = &q->entry[place];

	if (e->older == QUEUE_NONE)
		q->oldest = e->newer;
	else
		q->entry[e->older].newer = e->newer;
	if (e->newer == QUEUE_NONE)
		q->newest = e->older;
	else
		q->entry[e->newer].older = e->older;
}

static void queue_client_append(struct queue *q, uint32_t place)
{
	struct queue_entry *e = &q->entry[place];
	struct queue_level *level = &q->level[e->request.level];
	struct client_queue *own = &level->client[e->request.client_queue];

	e->next = QUEUE_NONE;
	e->previous = own->last;
	if (own->last == QUEUE_NONE)
		own->first = place;
	else
		q->entry[own->last].next = place;
	own->last = place;
	level->busy |= UINT64_C(1) << e->request.client_queue;
	level->length[e->request.client_queue]++;
	level->count++;
	q->count++;
}

static void queue_client_unlink(struct queue *q, uint32_t place)
{
	struct queue_entry *e = &q->entry[place];
	struct queue_level *level = &q->level[e->request.level];
	struct client_queue *own = &level->client[e->request.client_queue];

	if (e->previous == QUEUE_NONE)
		own->first = e->next;
	else
		q->entry[e->previous].next = e->next;
	if (e->next == QUEUE_NONE)
		own->last = e->previous;
	else
		q->entry[e->next].previous = e->previous;
	if (own->first == QUEUE_NONE)
		level->busy &= ~(UINT64_C(1) << e->request.client_queue);
	level->length[e->request.client_queue]--;
	level->count--;
	q->count--;
}

static struct waiting queue_release(struct queue *q, uint32_t place)
{
	struct waiting request = q->entry[place].request;

	if (q->scan == place)
		q->scan = q->entry[place].newer;
	queue_age_unlink(q, place);
	q->entry[place].next = q->free;
	q->free = place;
	return request;
}

static uint8_t queue_longest_client(const struct queue_level *level)
{
	uint8_t longest = 0;

	for (uint8_t i = 1; i < QUEUE_CLIENTS; i++)
		if (level->length[i] > level->length[longest])
			longest = i;
	return longest;
}

/* The request that makes room for <request>: the first of a client queue; QUEUE_NONE: none does. */
static uint32_t queue_find_displaced(const struct queue *q, const struct waiting *request)
{
	unsigned int lowest = QUEUE_LEVELS - 1;
	const struct queue_level *level;
	uint8_t client_queue;

	while (lowest > QUEUE_LEVEL_REPLAY && q->level[lowest].count == 0)
		lowest--;
	if (lowest == QUEUE_LEVEL_REPLAY || lowest < request->level)
		return QUEUE_NONE;
	level = &q->level[lowest];
	client_queue = queue_longest_client(level);
	if (lowest == request->level &&
	    level->length[client_queue] <= level->length[request->client_queue])
		return QUEUE_NONE;
	return level->client[client_queue].first;
}

enum queue_verdict queue_push(struct queue *q, const struct waiting *request, bool grow,
			      struct waiting *displaced)
{
	bool replay = request->level == QUEUE_LEVEL_REPLAY;
	enum queue_verdict verdict = QUEUE_TAKEN;
	uint32_t place;

	if (!replay && (queue_newcomers(q) >= q->size || !grow)) {
		place = queue_find_displaced(q, request);
		if (place == QUEUE_NONE)
			return QUEUE_REFUSED;
		queue_client_unlink(q, place);
		*displaced = queue_release(q, place);
		verdict = QUEUE_DISPLACED;
	}
	if (q->free == QUEUE_NONE)
		return QUEUE_REFUSED;
	place = q->free;
	q->free = q->entry[place].next;
	q->entry[place].request = *request;
	queue_client_append(q, place);
	queue_age_append(q, place);
	return verdict;
}

uint32_t queue_ahead(const struct queue *q, uint8_t level, uint8_t client_queue)
{
	const uint32_t *length = q->level[level].length;
	uint32_t ahead = 0, own = length[client_queue];

	for (unsigned int i = 0; i < level; i++)
		ahead += q->level[i].count;
	/* Each other client queue has as many turns as this one needs. */
	for (unsigned int i = 0; i < QUEUE_CLIENTS; i++)
		ahead += length[i] < own + 1 ? length[i] : own + 1;
	return ahead;
}

/* The next client queue with requests, round-robin from the level's turn on. */
static uint8_t queue_next_client(const struct queue_level *level)
{
	uint64_t from_turn = level->busy >> level->turn << level->turn;

	return __builtin_ctzll(from_turn != 0 ? from_turn : level->busy);
}

uint32_t queue_first(const struct queue *q, unsigned int level)
{
	for (unsigned int i = level; i < QUEUE_LEVELS; i++)
		if (q->level[i].busy != 0)
			return q->level[i].client[queue_next_client(&q->level[i])].first;
	return QUEUE_NONE;
}

static void queue_end_turn(struct queue *q, const struct waiting *request)
{
	q->level[request->level].turn = (request->client_queue + 1) % QUEUE_CLIENTS;
}

void queue_pass(struct queue *q, uint32_t place)
{
	queue_end_turn(q, &q->entry[place].request);
	queue_client_unlink(q, place);
	queue_client_append(q, place);
}

struct waiting queue_take(struct queue *q, uint32_t place)
{
	queue_end_turn(q, &q->entry[place].request);
	queue_client_unlink(q, place);
	return queue_release(q, place);
}

struct waiting queue_remove(struct queue *q, uint32_t place)
{
	queue_client_unlink(q, place);
	return queue_release(q, place);
}

uint32_t queue_scan(struct queue *q)
{
	uint32_t place = q->scan != QUEUE_NONE ? q->scan : q->oldest;

	q->scan = place != QUEUE_NONE ? q->entry[place].newer : QUEUE_NONE;
	return place;
}

uint32_t queue_find(const struct queue *q, uint8_t client_queue, uint64_t flow, uint64_t tag,
		    uint32_t *budget)
{
	for (unsigned int i = 0; i < QUEUE_LEVELS; i++) {
		uint32_t at = q->level[i].client[i == QUEUE_LEVEL_REPLAY ? 0 : client_queue].first;

		for (; at != QUEUE_NONE && *budget > 0; at = q->entry[at].next, --*budget)
			if (q->entry[at].request.flow == flow && q->entry[at].request.tag == tag)
				return at;
	}
	return QUEUE_NONE;
}
