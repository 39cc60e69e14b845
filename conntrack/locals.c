/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers for destinations: a small chained hash, used only when flows begin and end. */
#include <string.h>

#include "internal.h"

/* Our configuration chooses the destinations, so the hash needs no secret. */
static uint16_t *locals_bucket_of(struct locals *locals, const uint64_t end[3])
{
	uint64_t sum = (end[0] ^ end[1] ^ end[2]) * 0x9e3779b97f4a7c15;

	return &locals->bucket[(sum >> 32) % LOCALS_BUCKETS];
}

static bool locals_is_equal(const struct flow_local *local, const uint64_t end[3])
{
	uint64_t words[3];

	memcpy(words, local, sizeof(words));
	return ((words[0] ^ end[0]) | (words[1] ^ end[1]) | (words[2] ^ end[2])) == 0;
}

void locals_init(struct locals *locals)
{
	memset(locals->bucket, 0xff, sizeof(locals->bucket)); /* 0xffff is LOCAL_NONE */
	for (uint16_t i = 0; i < CONNTRACK_LOCALS_MAX; i++)
		locals->local[i].next = i + 1 < CONNTRACK_LOCALS_MAX ? i + 1 : LOCAL_NONE;
	locals->free = 0;
}

uint16_t locals_get(struct locals *locals, const struct flow_key *key)
{
	uint64_t end[3];
	uint16_t *bucket, number;

	key_local_words(key, end);
	bucket = locals_bucket_of(locals, end);
	for (number = *bucket; number != LOCAL_NONE; number = locals->local[number].next)
		if (locals_is_equal(&locals->local[number].end, end))
			break;
	if (number == LOCAL_NONE) {
		number = locals->free;
		if (number == LOCAL_NONE)
			return LOCAL_NONE;
		locals->free = locals->local[number].next;
		memcpy(&locals->local[number].end, end, sizeof(end));
		locals->local[number].next = *bucket;
		*bucket = number;
	}
	locals->local[number].flows++;
	return number;
}

void locals_put(struct locals *locals, uint16_t number)
{
	struct local *local = &locals->local[number];
	uint64_t end[3];
	uint16_t *at;

	if (--local->flows > 0)
		return;
	memcpy(end, &local->end, sizeof(end));
	at = locals_bucket_of(locals, end);
	while (*at != number)
		at = &locals->local[*at].next;
	*at = local->next;
	local->next = locals->free;
	locals->free = number;
}
