/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>

#include <rte_malloc.h>

#include "conntrack_fixture.h"

TestSuite(conntrack_table, .init = fixture_eal);

Test(conntrack_table, a_mixed_burst_finds_its_flows_and_misses_the_rest)
{
	struct conntrack *ct = fixture_table("t", 1000);
	struct flow_key key[CONNTRACK_BURST_MAX];
	uint32_t hashes[CONNTRACK_BURST_MAX];
	struct flow *inserted[CONNTRACK_BURST_MAX] = {NULL}, *found[CONNTRACK_BURST_MAX];

	for (unsigned int i = 0; i < CONNTRACK_BURST_MAX; i++) {
		key[i] = fixture_key(i);
		hashes[i] = conntrack_hash(ct, &key[i]);
		if (i % 3 != 0)
			inserted[i] = fixture_insert(ct, i, 0);
	}
	for (unsigned int n = 0; n <= CONNTRACK_BURST_MAX; n++) {
		memset(found, 0xa5, sizeof(found));
		conntrack_lookup_burst(ct, key, hashes, n, found);
		for (unsigned int i = 0; i < n; i++)
			cr_assert_eq(found[i], inserted[i], "key %u of %u", i, n);
		if (n < CONNTRACK_BURST_MAX)
			cr_assert_eq((uintptr_t)found[n], 0xa5a5a5a5a5a5a5a5, "wrote past %u", n);
	}
	conntrack_destroy(ct);
}

Test(conntrack_table, a_burst_of_one_family_may_be_full)
{
	struct conntrack *ct = fixture_table("t", 1000);

	for (unsigned int family = 0; family < 2; family++) {
		struct flow_key key[CONNTRACK_BURST_MAX];
		uint32_t hashes[CONNTRACK_BURST_MAX];
		struct flow *found[CONNTRACK_BURST_MAX];

		for (unsigned int i = 0; i < CONNTRACK_BURST_MAX; i++) {
			key[i] = fixture_key(2 * i + family);
			hashes[i] = conntrack_hash(ct, &key[i]);
			cr_assert_not_null(fixture_insert(ct, 2 * i + family, 0));
		}
		conntrack_lookup_burst(ct, key, hashes, CONNTRACK_BURST_MAX, found);
		for (unsigned int i = 0; i < CONNTRACK_BURST_MAX; i++)
			cr_assert_eq(found[i], fixture_find(ct, 2 * i + family));
	}
	conntrack_destroy(ct);
}

Test(conntrack_table, a_new_flow_knows_its_key_state_service_and_birth)
{
	struct conntrack *ct = fixture_table("t", 10);
	struct flow_key key = fixture_key6(7);
	struct flow *flow = conntrack_flow_insert(ct, &key, conntrack_hash(ct, &key),
						  FLOW_UDP_ESTABLISHED, 9, 1234);
	struct flow_info info = fixture_info(ct, flow);

	cr_assert_eq(memcmp(&info.key, &key, sizeof(key)), 0);
	cr_assert_eq(info.state, FLOW_UDP_ESTABLISHED);
	cr_assert_eq(info.service, 9);
	cr_assert_eq(info.created, 1234);
	cr_assert_eq(info.last_seen, 1234);
	cr_assert_eq(info.packets_in + info.bytes_in + info.requests + info.packets_out, 0);
	cr_assert_eq(conntrack_local(ct, flow)->port, key.dst_port);
	conntrack_destroy(ct);
}

Test(conntrack_table, inserting_twice_returns_the_flow_unchanged)
{
	struct conntrack *ct = fixture_table("t", 10);
	struct flow *flow = fixture_insert(ct, 1, 100);

	conntrack_count_request(flow);
	cr_assert_eq(fixture_insert(ct, 1, 200), flow);
	cr_assert_eq(fixture_info(ct, flow).requests, 1);
	cr_assert_eq(fixture_info(ct, flow).created, 100);
	cr_assert_eq(conntrack_count(ct), 1);
	conntrack_destroy(ct);
}

Test(conntrack_table, reused_memory_starts_clean)
{
	struct conntrack *ct = fixture_table("t", 1);
	struct flow *flow = fixture_insert(ct, 1, 0);
	struct flow_info info;

	conntrack_count_request(flow);
	conntrack_count_out(ct, flow, 9);
	flow->worker = 3;
	flow->spare[0] = 7;
	conntrack_flow_remove(ct, flow);
	cr_assert_eq(fixture_insert(ct, 2, 0), flow);
	info = fixture_info(ct, flow);
	cr_assert_eq(info.requests + info.worker + flow->spare[0] + info.bytes_out +
			     info.packets_out,
		     0);
	conntrack_destroy(ct);
}

/* Capacities: the smallest, those that fill rte_hash to 80 % or the last bucket to 90 %, powers of
 * two. */
Test(conntrack_table, capacity_is_exact_and_shared_by_both_families)
{
	static const uint32_t capacities[] = {1,   2,   7,   8,    27,    28,
					      279, 819, 820, 1024, 13107, 16384};

	for (unsigned int i = 0; i < sizeof(capacities) / sizeof(capacities[0]); i++) {
		uint32_t capacity = capacities[i];
		struct conntrack *ct = fixture_table("t", capacity);
		struct conntrack_stats stats;

		for (uint32_t n = 0; n < capacity; n++)
			cr_assert_not_null(fixture_insert(ct, n, 0), "%u of %u", n, capacity);
		for (uint32_t n = capacity; n < capacity + 10; n++) {
			errno = 0;
			cr_assert_null(fixture_insert(ct, n, 0));
			cr_assert_eq(errno, ENOSPC);
		}
		for (uint32_t n = 0; n < capacity; n++)
			cr_assert_not_null(fixture_find(ct, n), "refusals cost flow %u", n);

		conntrack_flow_remove(ct, fixture_find(ct, capacity / 2));
		cr_assert_not_null(fixture_insert(ct, capacity, 0));
		cr_assert_null(fixture_insert(ct, capacity + 1, 0));

		conntrack_stats_read(ct, &stats);
		cr_assert_eq(stats.inserted, capacity + 1);
		cr_assert_eq(stats.refused, 11);
		cr_assert_eq(stats.removed, 1);
		cr_assert_eq(stats.live, capacity);
		conntrack_destroy(ct);
	}
}

/* Flows of one family alone fill its table as far as it may be filled, under many seeds. */
Test(conntrack_table, one_family_may_take_the_whole_capacity)
{
	for (uint64_t seed = 0; seed < 100; seed++) {
		struct conntrack_params params = fixture_params("t", 3276);
		struct conntrack *ct;

		params.seed[0] = seed;
		ct = conntrack_create(&params);
		for (uint32_t n = 0; n < params.capacity; n++)
			cr_assert_not_null(fixture_insert(ct, 2 * n + seed % 2, 0), "seed %lu",
					   seed);
		conntrack_destroy(ct);
	}
}

/* 48 bits in two parts: the carry must arrive. */
Test(conntrack_table, counters_go_beyond_32_bits)
{
	struct conntrack *ct = fixture_table("t", 10);
	struct flow *flow = fixture_insert(ct, 1, 0);
	struct flow_info info;

	flow->packets_in_low = flow->requests_low = UINT32_MAX;
	conntrack_count_in(flow, 100);
	conntrack_count_in(flow, 100);
	conntrack_count_request(flow);
	info = fixture_info(ct, flow);
	cr_assert_eq(info.packets_in, (1ull << 32) + 1);
	cr_assert_eq(info.bytes_in, 200);
	cr_assert_eq(info.requests, 1ull << 32);
	conntrack_destroy(ct);
}

static struct flow_key key_to_port(uint32_t n)
{
	struct flow_key key = fixture_key(n % 100);

	key.dst_port = htons((uint16_t)n);
	return key;
}

static struct flow *insert_key(struct conntrack *ct, struct flow_key key)
{
	return conntrack_flow_insert(ct, &key, conntrack_hash(ct, &key), FLOW_UDP_ONE_WAY, 0, 0);
}

/* Two tenants may have the same addresses: what one sends is never the other's. */
Test(conntrack_table, zones_keep_equal_addresses_apart)
{
	for (enum conntrack_table table = 0; table < CONNTRACK_TABLES; table++) {
		struct conntrack_params params = fixture_params("t", 1000);
		struct flow *flow[2][100], *found;
		struct conntrack *ct;

		params.table = table;
		ct = conntrack_create(&params);
		for (uint16_t n = 0; n < 200; n++) {
			struct flow_key key = fixture_key(7 + n / 100);
			uint32_t hash;

			key.zone = n % 100 * 641;
			hash = conntrack_hash(ct, &key);
			conntrack_lookup_burst(ct, &key, &hash, 1, &found);
			cr_assert_null(found, "zone %u", key.zone);
			flow[n / 100][n % 100] = insert_key(ct, key);
		}
		for (uint16_t n = 0; n < 200; n++) {
			struct flow_key key = fixture_key(7 + n / 100);
			uint32_t hash;

			key.zone = n % 100 * 641;
			hash = conntrack_hash(ct, &key);
			conntrack_lookup_burst(ct, &key, &hash, 1, &found);
			cr_assert_eq(found, flow[n / 100][n % 100], "zone %u", key.zone);
			cr_assert_eq(fixture_info(ct, found).key.zone, key.zone);
			conntrack_flow_remove(ct, found);
			conntrack_lookup_burst(ct, &key, &hash, 1, &found);
			cr_assert_null(found, "zone %u", key.zone);
		}
		cr_assert_eq(conntrack_count(ct), 0);
		conntrack_destroy(ct);
	}
}

/* A sender that can choose VLAN tags must not use up the numbers of destinations. */
Test(conntrack_table, zones_take_no_numbers_of_destinations)
{
	struct conntrack *ct = fixture_table("t", 70000);

	for (uint32_t zone = 0; zone <= UINT16_MAX; zone++) {
		struct flow_key key = fixture_key4(1);

		key.zone = (uint16_t)zone;
		cr_assert_not_null(insert_key(ct, key), "zone %u", zone);
	}
	for (uint32_t n = 0; n < CONNTRACK_LOCALS_MAX - 1; n++)
		cr_assert_not_null(insert_key(ct, key_to_port(n)), "%u", n);
	conntrack_destroy(ct);
}

Test(conntrack_table, destinations_are_counted_and_their_numbers_used_again)
{
	struct conntrack *ct = fixture_table("t", 10000);
	struct flow_key key;
	struct flow *first;

	for (uint32_t n = 0; n < CONNTRACK_LOCALS_MAX; n++)
		cr_assert_not_null(insert_key(ct, key_to_port(n)), "%u", n);
	errno = 0;
	cr_assert_null(insert_key(ct, key_to_port(CONNTRACK_LOCALS_MAX)));
	cr_assert_eq(errno, ENOSPC);

	/* a second flow to a destination that is known; then only it has that destination */
	key = key_to_port(7);
	key.src_port++;
	cr_assert_not_null(insert_key(ct, key));
	first = insert_key(ct, key_to_port(7));
	conntrack_flow_remove(ct, first);
	cr_assert_null(insert_key(ct, key_to_port(CONNTRACK_LOCALS_MAX)));
	conntrack_flow_remove(ct, insert_key(ct, key));
	first = insert_key(ct, key_to_port(CONNTRACK_LOCALS_MAX));
	cr_assert_eq(conntrack_local(ct, first)->port, htons(CONNTRACK_LOCALS_MAX));
	for (uint32_t n = 0; n <= CONNTRACK_LOCALS_MAX; n++) {
		struct flow *flow = n == 7 ? NULL : insert_key(ct, key_to_port(n));

		if (flow != NULL)
			cr_assert_eq(conntrack_local(ct, flow)->port, htons((uint16_t)n));
	}
	cr_assert_eq(conntrack_count(ct), CONNTRACK_LOCALS_MAX);
	conntrack_destroy(ct);
}

Test(conntrack_table, a_handle_outlives_its_flow_without_naming_another)
{
	struct conntrack *ct = fixture_table("t", 1);
	struct flow *flow = fixture_insert(ct, 1, 0);
	uint64_t first = conntrack_handle(ct, flow), second;

	cr_assert_eq(conntrack_flow_get(ct, first), flow);
	conntrack_flow_remove(ct, flow);
	cr_assert_null(conntrack_flow_get(ct, first));
	cr_assert_null(fixture_find(ct, 1));

	cr_assert_eq(fixture_insert(ct, 2, 0), flow, "one place, used again");
	second = conntrack_handle(ct, flow);
	cr_assert_neq(first, second);
	cr_assert_null(conntrack_flow_get(ct, first));
	cr_assert_eq(conntrack_flow_get(ct, second), flow);
	conntrack_destroy(ct);
}

Test(conntrack_table, any_number_may_be_tried_as_a_handle)
{
	struct conntrack *ct = fixture_table("t", 100);
	uint64_t live = conntrack_handle(ct, fixture_insert(ct, 1, 0)), random = 1;
	const uint64_t edges[] = {0,
				  UINT64_MAX,
				  UINT32_MAX,
				  1ull << 32,       /* never used yet, right generation of none */
				  1ull << 32 | 99,  /* last flow */
				  1ull << 32 | 100, /* one past it */
				  live + 1,         /* neighbour */
				  live - (1ull << 32) /* generation before */};

	for (unsigned int i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
		conntrack_flow_prefetch(ct, edges[i]);
		if (edges[i] != live)
			cr_assert_null(conntrack_flow_get(ct, edges[i]), "%lx", edges[i]);
	}
	for (unsigned int i = 0; i < 100000; i++) {
		random = random * 6364136223846793005 + 1442695040888963407;
		conntrack_flow_prefetch(ct, random);
		if (random != live)
			cr_assert_null(conntrack_flow_get(ct, random), "%lx", random);
	}
	conntrack_destroy(ct);
}

Test(conntrack_table, removing_an_ended_flow_changes_nothing)
{
	struct conntrack *ct = fixture_table("t", 2);
	struct flow *flow = fixture_insert(ct, 1, 0);

	conntrack_flow_remove(ct, flow);
	conntrack_flow_remove(ct, flow);
	cr_assert_eq(conntrack_count(ct), 0);
	cr_assert_neq(fixture_insert(ct, 2, 0), fixture_insert(ct, 3, 0));
	conntrack_destroy(ct);
}

Test(conntrack_table, what_is_no_flow_is_refused)
{
	struct conntrack *ct = fixture_table("t", 10);
	struct flow_key key = fixture_key4(1);
	uint32_t hash = conntrack_hash(ct, &key);

	errno = 0;
	cr_assert_null(conntrack_flow_insert(ct, &key, hash, FLOW_FREE, 0, 0));
	cr_assert_eq(errno, EINVAL);
	cr_assert_null(conntrack_flow_insert(ct, &key, hash, FLOW_STATES, 0, 0));
	cr_assert_null(
		conntrack_flow_insert(ct, &key, hash, FLOW_UDP_ONE_WAY, CONNTRACK_SERVICES_MAX, 0));
	key.family = 5;
	errno = 0;
	cr_assert_null(conntrack_flow_insert(ct, &key, hash, FLOW_UDP_ONE_WAY, 0, 0));
	cr_assert_eq(errno, EINVAL);
	cr_assert_eq(conntrack_count(ct), 0);
	conntrack_destroy(ct);
}

static void expect_refused(struct conntrack_params params, int expected, const char *why)
{
	errno = 0;
	cr_assert_null(conntrack_create(&params), "%s", why);
	cr_assert_eq(errno, expected, "%s: errno %d", why, errno);
}

Test(conntrack_table, bad_parameters_make_no_table)
{
	struct conntrack_params good = fixture_params("t", 10), bad;
	struct conntrack *ct;

	expect_refused((bad = good, bad.name = NULL, bad), EINVAL, "no name");
	expect_refused((bad = good, bad.name = "", bad), EINVAL, "empty name");
	expect_refused((bad = good, bad.name = "twenty-four-bytes-long-x", bad), EINVAL, "long");
	expect_refused((bad = good, bad.capacity = 0, bad), EINVAL, "no capacity");
	expect_refused((bad = good, bad.capacity = UINT32_MAX, bad), EINVAL, "huge");
	expect_refused((bad = good, bad.capacity = 1 << 24, bad), ENOMEM, "more than there is");
	bad = good;
	bad.timeout_ms[0][FLOW_UDP_ONE_WAY] = 0;
	expect_refused(bad, EINVAL, "service 0 incomplete");
	bad = good;
	bad.timeout_ms[255][FLOW_UDP_ONE_WAY] = CONNTRACK_TIMEOUT_MAX_MS + 1;
	expect_refused(bad, EINVAL, "timeout beyond the clock");

	good.name = "twenty-three-bytes-long";
	ct = conntrack_create(&good);
	cr_assert_not_null(ct);
	if (good.table == CONNTRACK_TABLE_RTE_HASH)
		expect_refused(good, EEXIST, "name taken");
	bad = good;
	bad.table = CONNTRACK_TABLES;
	expect_refused(bad, EINVAL, "no such table");
	conntrack_destroy(ct);
}

static size_t heap_used(void)
{
	struct rte_malloc_socket_stats stats;

	cr_assert_eq(rte_malloc_get_socket_stats(0, &stats), 0);
	return stats.heap_allocsz_bytes;
}

Test(conntrack_table, memory_is_counted_and_given_back)
{
	static const uint32_t capacities[] = {1000, 10000, 65536, 100000};

	for (unsigned int i = 0; i < sizeof(capacities) / sizeof(capacities[0]); i++) {
		size_t before = heap_used(), taken;
		struct conntrack *ct = fixture_table("t", capacities[i]);

		taken = heap_used() - before;
		cr_assert_leq(conntrack_memory(ct), taken);
		cr_assert_leq(taken - conntrack_memory(ct), 8192, "capacity %u: %zu of %zu",
			      capacities[i], conntrack_memory(ct), taken);
		fixture_insert(ct, 1, 0);
		conntrack_destroy(ct);
		cr_assert_eq(heap_used(), before, "leak");
	}
}

Test(conntrack_table, every_bit_of_a_key_moves_about_half_the_hash)
{
	struct conntrack *ct = fixture_table("t", 10);

	for (unsigned int family = 0; family < 2; family++) {
		for (unsigned int bit = 0; bit < 8 * sizeof(struct flow_key); bit++) {
			unsigned int flipped = 0;

			for (uint32_t n = 0; n < 256; n++) {
				struct flow_key key = fixture_key(2 * n + family);
				uint32_t hash = conntrack_hash(ct, &key);

				((uint8_t *)&key)[bit / 8] ^= 1 << bit % 8;
				flipped += __builtin_popcount(hash ^ conntrack_hash(ct, &key));
			}
			/* 256 x 32 coin tosses: 4096 on average, deviation 45 */
			cr_assert(flipped > 4096 - 300 && flipped < 4096 + 300, "bit %u: %u", bit,
				  flipped);
		}
	}
	conntrack_destroy(ct);
}

/* With CRC32 h(a) ^ h(b) is the same for every seed, so collisions can be made in advance. */
Test(conntrack_table, collisions_under_one_seed_are_none_under_another)
{
	enum { KEYS = 200000 };
	struct conntrack_params params = fixture_params("a", 10);
	struct conntrack *a = conntrack_create(&params), *b;
	uint32_t *first = calloc(1 << 20, sizeof(*first));
	unsigned int collisions = 0, again = 0;

	params.name = "b";
	params.seed[0]++;
	b = conntrack_create(&params);
	for (uint32_t n = 0; n < KEYS; n++) {
		struct flow_key key = fixture_key4(n), other;
		uint32_t low = conntrack_hash(a, &key) & 0xfffff;

		if (first[low] == 0) {
			first[low] = n + 1;
			continue;
		}
		other = fixture_key4(first[low] - 1);
		collisions++;
		again += ((conntrack_hash(b, &key) ^ conntrack_hash(b, &other)) & 0xfffff) == 0;
	}
	/* 200,000 balls in 2^20 bins: 17,900 fall into one that is taken */
	cr_assert(collisions > 17000 && collisions < 18800, "%u", collisions);
	cr_assert_leq(again, 5);
	free(first);
	conntrack_destroy(a);
	conntrack_destroy(b);
}
