/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers for destinations: a small chained hash, touched when flows begin and end only. */
#include <string.h>

#include "locals.h"

static struct flow_local local_of(const struct flow_key *key)
{
	struct flow_local end;

	memset(&end, 0, sizeof(end)); /* compared as a whole */
	end.address = key->dst;
	end.port = key->dst_port;
	end.protocol = key->protocol;
	end.family = key->family;
	return end;
}

/* Destinations are ours, nobody else chooses them: any mixing will do. */
static uint16_t *bucket_of(struct locals *locals, const struct flow_local *end)
{
	uint64_t word[2], sum;

	memcpy(word, &end->address, sizeof(word));
	sum = word[0] ^ word[1] ^ ((uint64_t)end->port << 16 | end->protocol);
	return &locals->bucket[(sum * 0x9e3779b97f4a7c15 >> 32) % LOCALS_BUCKETS];
}

void locals_init(struct locals *locals)
{
	memset(locals->bucket, 0xff, sizeof(locals->bucket)); /* LOCAL_NONE */
	for (uint16_t i = 0; i < CONNTRACK_LOCALS_MAX; i++)
		locals->local[i].next = i + 1 < CONNTRACK_LOCALS_MAX ? i + 1 : LOCAL_NONE;
	locals->free = 0;
}

uint16_t locals_get(struct locals *locals, const struct flow_key *key)
{
	struct flow_local end = local_of(key);
	uint16_t *bucket = bucket_of(locals, &end), number;

	for (number = *bucket; number != LOCAL_NONE; number = locals->local[number].next)
		if (memcmp(&locals->local[number].end, &end, sizeof(end)) == 0)
			break;
	if (number == LOCAL_NONE) {
		number = locals->free;
		if (number == LOCAL_NONE)
			return LOCAL_NONE;
		locals->free = locals->local[number].next;
		locals->local[number].end = end;
		locals->local[number].next = *bucket;
		*bucket = number;
	}
	locals->local[number].flows++;
	return number;
}

void locals_put(struct locals *locals, uint16_t number)
{
	struct local *local = &locals->local[number];
	uint16_t *at;

	if (--local->flows > 0)
		return;
	at = bucket_of(locals, &local->end);
	while (*at != number)
		at = &locals->local[*at].next;
	*at = local->next;
	local->next = locals->free;
	locals->free = number;
}
