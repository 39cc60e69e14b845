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
	q->free = q->oldest = q->newest = q->look = QUEUE_NONE;
	for (unsigned int level = 0; level < QUEUE_LEVELS; level++)
		memset(q->level[level].lane, 0xff, sizeof(q->level[level].lane)); /* QUEUE_NONE */
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

static uint32_t newcomers(const struct queue *q)
{
	return q->count - q->level[QUEUE_LEVEL_REPLAY].count;
}

static void age_append(struct queue *q, uint32_t place)
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

static void age_unlink(struct queue *q, uint32_t place)
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

static void lane_append(struct queue *q, uint32_t place)
{
	struct queue_entry *e = &q->entry[place];
	struct queue_level *level = &q->level[e->request.level];
	struct queue_lane *lane = &level->lane[e->request.lane];

	e->next = QUEUE_NONE;
	e->previous = lane->last;
	if (lane->last == QUEUE_NONE)
		lane->first = place;
	else
		q->entry[lane->last].next = place;
	lane->last = place;
	level->busy |= UINT64_C(1) << e->request.lane;
	level->length[e->request.lane]++;
	level->count++;
	q->count++;
}

static void lane_unlink(struct queue *q, uint32_t place)
{
	struct queue_entry *e = &q->entry[place];
	struct queue_level *level = &q->level[e->request.level];
	struct queue_lane *lane = &level->lane[e->request.lane];

	if (e->previous == QUEUE_NONE)
		lane->first = e->next;
	else
		q->entry[e->previous].next = e->next;
	if (e->next == QUEUE_NONE)
		lane->last = e->previous;
	else
		q->entry[e->next].previous = e->previous;
	if (lane->first == QUEUE_NONE)
		level->busy &= ~(UINT64_C(1) << e->request.lane);
	level->length[e->request.lane]--;
	level->count--;
	q->count--;
}

static struct waiting release(struct queue *q, uint32_t place)
{
	struct waiting request = q->entry[place].request;

	if (q->look == place)
		q->look = q->entry[place].newer;
	age_unlink(q, place);
	q->entry[place].next = q->free;
	q->free = place;
	return request;
}

static uint8_t longest_lane(const struct queue_level *level)
{
	uint8_t longest = 0;

	for (uint8_t i = 1; i < QUEUE_LANES; i++)
		if (level->length[i] > level->length[longest])
			longest = i;
	return longest;
}

/* Who makes room for <request>: the first of a lane, or QUEUE_NONE when nobody does. */
static uint32_t find_displaced(const struct queue *q, const struct waiting *request)
{
	unsigned int lowest = QUEUE_LEVELS - 1;
	const struct queue_level *level;
	uint8_t lane;

	while (lowest > QUEUE_LEVEL_REPLAY && q->level[lowest].count == 0)
		lowest--;
	if (lowest == QUEUE_LEVEL_REPLAY || lowest < request->level)
		return QUEUE_NONE;
	level = &q->level[lowest];
	lane = longest_lane(level);
	if (lowest == request->level && level->length[lane] <= level->length[request->lane])
		return QUEUE_NONE;
	return level->lane[lane].first;
}

enum queue_verdict queue_push(struct queue *q, const struct waiting *request, bool grow,
			      struct waiting *displaced)
{
	bool replay = request->level == QUEUE_LEVEL_REPLAY;
	enum queue_verdict verdict = QUEUE_TAKEN;
	uint32_t place;

	if (!replay && (newcomers(q) >= q->size || !grow)) {
		place = find_displaced(q, request);
		if (place == QUEUE_NONE)
			return QUEUE_REFUSED;
		lane_unlink(q, place);
		*displaced = release(q, place);
		verdict = QUEUE_DISPLACED;
	}
	if (q->free == QUEUE_NONE)
		return QUEUE_REFUSED;
	place = q->free;
	q->free = q->entry[place].next;
	q->entry[place].request = *request;
	lane_append(q, place);
	age_append(q, place);
	return verdict;
}

uint32_t queue_ahead(const struct queue *q, uint8_t level, uint8_t lane)
{
	const uint32_t *length = q->level[level].length;
	uint32_t ahead = 0, own = length[lane];

	for (unsigned int i = 0; i < level; i++)
		ahead += q->level[i].count;
	/* Each other lane has as many turns as this one needs. */
	for (unsigned int i = 0; i < QUEUE_LANES; i++)
		ahead += length[i] < own + 1 ? length[i] : own + 1;
	return ahead;
}

/* The next lane with requests, from the level's turn on, around. */
static uint8_t next_lane(const struct queue_level *level)
{
	uint64_t from_turn = level->busy >> level->turn << level->turn;

	return __builtin_ctzll(from_turn != 0 ? from_turn : level->busy);
}

uint32_t queue_first(const struct queue *q, unsigned int level)
{
	for (unsigned int i = level; i < QUEUE_LEVELS; i++)
		if (q->level[i].busy != 0)
			return q->level[i].lane[next_lane(&q->level[i])].first;
	return QUEUE_NONE;
}

static void end_turn(struct queue *q, const struct waiting *request)
{
	q->level[request->level].turn = (request->lane + 1) % QUEUE_LANES;
}

void queue_pass(struct queue *q, uint32_t place)
{
	end_turn(q, &q->entry[place].request);
	lane_unlink(q, place);
	lane_append(q, place);
}

struct waiting queue_take(struct queue *q, uint32_t place)
{
	end_turn(q, &q->entry[place].request);
	lane_unlink(q, place);
	return release(q, place);
}

struct waiting queue_remove(struct queue *q, uint32_t place)
{
	lane_unlink(q, place);
	return release(q, place);
}

uint32_t queue_look(struct queue *q)
{
	uint32_t place = q->look != QUEUE_NONE ? q->look : q->oldest;

	q->look = place != QUEUE_NONE ? q->entry[place].newer : QUEUE_NONE;
	return place;
}

uint32_t queue_find(const struct queue *q, uint8_t lane, uint64_t flow, uint64_t tag,
		    uint32_t *budget)
{
	for (unsigned int i = 0; i < QUEUE_LEVELS; i++) {
		uint32_t at = q->level[i].lane[i == QUEUE_LEVEL_REPLAY ? 0 : lane].first;

		for (; at != QUEUE_NONE && *budget > 0; at = q->entry[at].next, --*budget)
			if (q->entry[at].request.flow == flow && q->entry[at].request.tag == tag)
				return at;
	}
	return QUEUE_NONE;
}
