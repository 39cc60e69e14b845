/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes as frames that hold fragments, and as the time between them. Each frame is preceded by its
 * length and by a change of the clock. The counters must be right after every frame, and a datagram
 * that becomes whole must be a frame without fragments.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "packet/fragment.h"
#include "packet/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BYTES 1480

static void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

struct run {
	struct fragment_table *table;
	uint64_t drop[LB_DROPS];
	uint64_t added, taken;
	uint32_t now;
};

static void check_accounts(const struct run *r)
{
	uint64_t sum = r->taken + fragment_held(r->table);

	for (unsigned int i = 0; i < LB_DROPS; i++)
		sum += r->drop[i];
	require(sum == r->added, "fragments are missing");
	require(fragment_waiting(r->table) <= FRAGMENT_SETS * FRAGMENT_WAYS, "too many wait");
}

static void take(struct run *r)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};
	uint32_t length = fragment_frame_length(r->table);
	uint8_t *frame = malloc(length);
	struct flow_key key;
	struct parsed p;

	require(length <= FRAGMENT_HEAD_MAX + BYTES, "a frame too long");
	r->taken += fragment_take(r->table, frame);
	parse_frame(frame, length, mac, 0, &p, &key);
	require(p.kind != PARSE_FRAGMENT, "still a fragment");
	if (p.kind == PARSE_DROP)
		require(p.reason != LB_DROP_IP_HEADER && p.reason != LB_DROP_IP_CHECKSUM &&
				p.reason != LB_DROP_NOT_OUR_MAC && p.reason != LB_DROP_ETHERTYPE,
			"a header that was good is not any more");
	free(frame);
}

/* Adds a frame on a heap block of its exact size. */
static void add(struct run *r, const uint8_t *data, uint32_t length)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};
	uint8_t *frame = malloc(length);
	struct fragment f;
	struct flow_key key;
	struct parsed p;

	memcpy(frame, data, length);
	if (length >= sizeof(mac))
		memcpy(frame, mac, sizeof(mac));
	parse_frame(frame, length, mac, PARSE_IP_CHECKED, &p, &key);
	if (p.kind == PARSE_FRAGMENT) {
		fragment_read(frame, &p, &key, &f);
		require(f.data + f.length <= frame + length, "data outside the frame");
		r->added++;
		if (fragment_add(r->table, &f, r->now, r->drop))
			take(r);
	}
	free(frame);
	check_accounts(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct fragment_params params = {
		.bytes = BYTES, .seed = {0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9}};
	struct run r = {.table = fragment_table_create(&params)};

	require(r.table != NULL, "no memory");
	while (size > 2) {
		uint32_t length = data[0] | (data[1] & 7) << 8;

		r.now += (data[1] >> 3) * 40;
		data += 2;
		size -= 2;
		if (length > size)
			length = size;
		add(&r, data, length);
		fragment_expire(r.table, r.now, r.drop);
		data += length;
		size -= length;
	}
	fragment_expire(r.table, r.now + FRAGMENT_TIMEOUT_MS, r.drop);
	check_accounts(&r);
	require(fragment_waiting(r.table) == 0 && fragment_held(r.table) == 0, "some stayed");
	fragment_table_destroy(r.table);
	return 0;
}
