/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The owner of a flow table inserts, touches, counts, removes and expires while another thread
 * dumps it all the time. ThreadSanitizer watches; the dumping thread checks what it gets: no flow
 * mixes two, and those that live all the time are in every dump exactly once.
 */
#include <pthread.h>
#include <stdio.h>

#include "../unit/conntrack_fixture.h"

#define CAPACITY     256
#define STEADY       16 /* flows 0 to 15 never end */
#define LIVES_MS     300
#define TURNS        150000
#define DUMPS        2000
#define BYTES        100 /* of every packet */
#define SERVICES     3
#define SERVICE_LONG 1 /* of the steady ones */

struct watch {
	const struct conntrack *ct;
	bool stop;
	uint64_t dumps, copies, wrong;
};

static uint16_t service_of(uint32_t n)
{
	return n < STEADY ? SERVICE_LONG : n % 2 ? 0 : 2;
}

/* Flow n is born at n, so a copy that mixes two flows shows. */
static bool is_whole(const struct flow_info *flow)
{
	struct flow_key key = fixture_key(flow->created);

	return memcmp(&flow->key, &key, sizeof(key)) == 0 &&
	       flow->service == service_of(flow->created) && flow->handle >> 32 & 1 &&
	       flow->state > FLOW_FREE && flow->state < FLOW_STATES &&
	       (int32_t)(flow->last_seen - flow->created) >= 0 && flow->bytes_in % BYTES == 0 &&
	       flow->bytes_out % BYTES == 0;
}

static void dump(struct watch *watch)
{
	unsigned int seen[STEADY] = {0};
	struct flow_info flow[32];
	struct conntrack_stats stats;
	uint32_t cursor = 0;

	while (cursor != CONNTRACK_DUMP_END) {
		unsigned int n = conntrack_dump(watch->ct, &cursor, flow, 32);

		for (unsigned int i = 0; i < n; i++) {
			watch->wrong += !is_whole(&flow[i]);
			if (flow[i].created < STEADY)
				seen[flow[i].created]++;
		}
		watch->copies += n;
	}
	for (unsigned int i = 0; i < STEADY; i++)
		watch->wrong += seen[i] != 1;
	conntrack_stats_read(watch->ct, &stats);
	watch->wrong += conntrack_count(watch->ct) > CAPACITY || stats.live > CAPACITY;
}

static void *watch_run(void *context)
{
	struct watch *watch = context;

	while (!__atomic_load_n(&watch->stop, __ATOMIC_ACQUIRE)) {
		dump(watch);
		__atomic_store_n(&watch->dumps, watch->dumps + 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

static struct flow *insert(struct conntrack *ct, uint32_t n)
{
	struct flow_key key = fixture_key(n);

	return conntrack_flow_insert(ct, &key, conntrack_hash(ct, &key), FLOW_UDP_ONE_WAY,
				     service_of(n), n);
}

/* One packet of the client and one for it. */
static void talk(struct conntrack *ct, struct flow *flow, uint32_t now_ms)
{
	conntrack_touch(flow, now_ms);
	conntrack_event(flow, FLOW_EVENT_FROM_CLIENT);
	conntrack_count_in(flow, BYTES);
	conntrack_count_request(flow);
	flow->worker = (uint16_t)now_ms;
	flow->worker_generation++;
	conntrack_event(flow, FLOW_EVENT_TO_CLIENT);
	conntrack_count_out(ct, flow, BYTES);
}

/* One turn of the owner: a new flow, an old one speaks, another leaves, timers. */
static void turn(struct conntrack *ct, uint32_t n)
{
	struct flow *flow = insert(ct, n);

	if (flow && n % 5 == 0)
		conntrack_flow_remove(ct, flow);
	flow = fixture_find(ct, n - n % 100);
	if (flow)
		talk(ct, flow, n);
	flow = fixture_find(ct, n % STEADY);
	talk(ct, flow, n);
	if (n % 32 == 0)
		conntrack_expire(ct, n, 64);
}

static int race(enum conntrack_table table, const char *name)
{
	struct conntrack_params params = fixture_params(name, CAPACITY);
	struct watch watch = {0};
	pthread_t thread;
	uint32_t n = 0;

	params.table = table;
	params.reclaim_after_ms = LIVES_MS / 2;
	for (unsigned int service = 0; service < SERVICES; service++)
		for (unsigned int state = FLOW_FREE + 1; state < FLOW_STATES; state++)
			params.timeout_ms[service][state] =
				service == SERVICE_LONG ? CONNTRACK_TIMEOUT_MAX_MS : LIVES_MS;
	watch.ct = conntrack_create(&params);
	if (!watch.ct)
		return 1;
	for (; n < STEADY; n++)
		talk((struct conntrack *)watch.ct, insert((struct conntrack *)watch.ct, n), n);
	for (uint32_t i = 0; i < STEADY; i++) /* established flows cannot be reclaimed */
		talk((struct conntrack *)watch.ct, fixture_find((struct conntrack *)watch.ct, i),
		     n);
	if (pthread_create(&thread, NULL, watch_run, &watch) != 0)
		return 1;
	while (n < TURNS || __atomic_load_n(&watch.dumps, __ATOMIC_ACQUIRE) < DUMPS)
		turn((struct conntrack *)watch.ct, n++);
	__atomic_store_n(&watch.stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	printf("%s: %u turns against %lu dumps, %lu of %lu copies wrong\n", name, n,
	       (unsigned long)watch.dumps, (unsigned long)watch.wrong, (unsigned long)watch.copies);
	conntrack_destroy((struct conntrack *)watch.ct);
	return watch.wrong == 0 && watch.copies > watch.dumps * STEADY ? 0 : 1;
}

int main(void)
{
	int failed;

	fixture_eal();
	failed = race(CONNTRACK_TABLE_TAGS, "tags");
	failed |= race(CONNTRACK_TABLE_RTE_HASH, "rte_hash");
	return failed;
}
