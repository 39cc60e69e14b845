/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conntrack: cycles of what the packet path does to the flow table, from 64 k to 30 M flows, next
 * to the same on bare rte_hash with the same keys and hashes. See README.md.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_malloc.h>

#include "conntrack/draw.h"
#include "conntrack/hash_peer.h"
#include "common/options.h"
#include "common/turns.h"

#define RUNS_DEFAULT 7
#define BURST        32
#define ROUNDS       1024
/* Share of the places that are taken while measuring. */
#define LOAD_PERCENT 80
/* Flows; it keeps hashes for both families, and more would take too much memory for a bench. */
#define ON_RTE_HASH_MAX 10000000
/* Fill level that every table accepts before it refuses, in percent of its places. */
#define CAPACITY_PERCENT 90

static const struct size {
	const char *name;
	uint32_t flows;
} sizes[] = {
	{"64k", 65536},
	{"1m", 1000000},
	{"8m", 8000000},
	{"30m", 30000000},
};

/*
 * Tables with the same flows: ours, bare rte_hash, and ours on rte_hash, which shows the cost of
 * writes: bare rte_hash has no timers, limits and counters to keep.
 */
struct pair {
	enum flow_family family;
	uint32_t flows;
	uint32_t oldest;                    /* flows from this number on live, <flows> of them */
	struct conntrack *ct, *on_rte_hash; /* the second may be NULL: too large */
	struct hash_peer *peer;
	struct turns own, bare, rte;
};

/* A burst of keys in both forms: they lie in the cache, as a parser leaves them. */
struct keys {
	struct flow_key key[BURST];
	uint32_t hash[BURST];
	struct hash_peer_keys bare;
};

static void keys_make(const struct pair *p, const uint32_t number[BURST], struct keys *k)
{
	for (unsigned int i = 0; i < BURST; i++) {
		k->key[i] = draw_key(number[i], p->family);
		k->hash[i] = conntrack_hash(p->ct, &k->key[i]);
	}
	hash_peer_keys(p->peer, k->key, BURST, &k->bare);
}

static void keys_draw(const struct pair *p, struct draw *draw, uint32_t from, struct keys *k)
{
	uint32_t number[BURST];

	for (unsigned int i = 0; i < BURST; i++)
		number[i] = from + draw_next(draw);
	keys_make(p, number, k);
}

static void keys_in_turn(const struct pair *p, uint32_t from, struct keys *k)
{
	uint32_t number[BURST];

	for (unsigned int i = 0; i < BURST; i++)
		number[i] = from + i;
	keys_make(p, number, k);
}

/* All flows of a burst are born at the same time. */
static uint32_t born_ms(uint32_t number)
{
	return number / BURST;
}

/* In this time as many flows are born as the table holds. */
static uint32_t timeout_ms(const struct pair *p)
{
	return p->flows / BURST;
}

/* --- the operations -------------------------------------------------------------------------- */

static void expect(struct flow *const flows[], bool there)
{
	for (unsigned int i = 0; i < BURST; i++)
		if ((flows[i] != NULL) != there)
			rig_die("a flow is %s", there ? "missing" : "there that should not be");
}

static void look_up(struct pair *p, struct draw *draw, uint32_t from, bool there)
{
	struct flow *flows[BURST];
	struct keys k;
	uint64_t begin;

	keys_draw(p, draw, from, &k);
	begin = turns_begin();
	conntrack_lookup_burst(p->ct, k.key, k.hash, BURST, flows);
	turns_end(&p->own, begin);
	expect(flows, there);

	keys_draw(p, draw, from, &k);
	begin = turns_begin();
	hash_peer_lookup(p->peer, &k.bare, k.hash, BURST, flows);
	turns_end(&p->bare, begin);
	expect(flows, there);
}

static void hit(struct pair *p, struct draw *draw)
{
	look_up(p, draw, p->oldest, true);
}

static void miss(struct pair *p, struct draw *draw)
{
	look_up(p, draw, p->oldest + p->flows, false);
}

/* Update the flow as a request does after the lookup (lb/walk/track.c). */
static inline void use(struct flow *flow, uint32_t now_ms)
{
	conntrack_event(flow, FLOW_EVENT_FROM_CLIENT);
	conntrack_touch(flow, now_ms);
	conntrack_count_in(flow, 1024);
	conntrack_count_request(flow);
	flow->worker = 1;
}

static void step(struct pair *p, struct draw *draw)
{
	struct flow *flows[BURST];
	struct keys k;
	uint64_t begin;

	keys_draw(p, draw, p->oldest, &k);
	begin = turns_begin();
	conntrack_lookup_burst(p->ct, k.key, k.hash, BURST, flows);
	for (unsigned int i = 0; i < BURST; i++)
		use(flows[i], flows[i]->last_seen);
	turns_end(&p->own, begin);

	keys_draw(p, draw, p->oldest, &k);
	begin = turns_begin();
	hash_peer_lookup(p->peer, &k.bare, k.hash, BURST, flows);
	for (unsigned int i = 0; i < BURST; i++)
		use(flows[i], flows[i]->last_seen);
	turns_end(&p->bare, begin);
}

/* Inserts after the lookup that finds nothing. */
static void insert_own(struct conntrack *ct, const struct keys *k, uint32_t now_ms,
		       struct turns *turns)
{
	struct flow *flows[BURST];
	uint64_t begin = turns_begin();

	conntrack_lookup_burst(ct, k->key, k->hash, BURST, flows);
	for (unsigned int i = 0; i < BURST; i++)
		conntrack_insert_prefetch(ct, k->hash[i]);
	for (unsigned int i = 0; i < BURST; i++)
		flows[i] = conntrack_flow_insert(ct, &k->key[i], k->hash[i], FLOW_UDP_ONE_WAY, 0,
						 now_ms);
	turns_end(turns, begin);
	expect(flows, true);
}

static void insert_burst(struct pair *p, struct keys *k, uint32_t now_ms)
{
	struct flow *flows[BURST];
	uint64_t begin;

	insert_own(p->ct, k, now_ms, &p->own);
	if (p->on_rte_hash != NULL)
		insert_own(p->on_rte_hash, k, now_ms, &p->rte);
	begin = turns_begin();
	hash_peer_lookup(p->peer, &k->bare, k->hash, BURST, flows);
	for (unsigned int i = 0; i < BURST; i++)
		if (!hash_peer_insert(p->peer, &k->bare, i, k->hash[i]))
			rig_die("rte_hash is full");
	turns_end(&p->bare, begin);
}

/* The timers' work: the oldest flows are due. Bare rte_hash is told which flows to remove. */
static void expire_own(struct conntrack *ct, uint32_t now_ms, struct turns *turns)
{
	uint64_t begin = turns_begin();
	unsigned int expired = conntrack_expire(ct, now_ms, BURST);

	turns_end(turns, begin);
	if (expired != BURST)
		rig_die("%u flows expired instead of %u", expired, BURST);
}

static void expire_burst(struct pair *p, struct keys *k, uint32_t now_ms)
{
	struct flow *flows[BURST];
	uint64_t begin;

	expire_own(p->ct, now_ms, &p->own);
	if (p->on_rte_hash != NULL)
		expire_own(p->on_rte_hash, now_ms, &p->rte);
	begin = turns_begin();
	hash_peer_lookup(p->peer, &k->bare, k->hash, BURST, flows);
	for (unsigned int i = 0; i < BURST; i++)
		if (!hash_peer_remove(p->peer, &k->bare, i, k->hash[i], flows[i]))
			rig_die("rte_hash lost a flow");
	turns_end(&p->bare, begin);
}

/* --- measuring ------------------------------------------------------------------------------- */

static void add(struct report *report, struct pair *p, const char *what, const char *where)
{
	report_add(report, turns_cost(&p->own, BURST).total, "%s_cycles_%s", what, where);
	report_add(report, turns_cost(&p->bare, BURST).total, "rte_hash_%s_cycles_%s", what, where);
	if (p->rte.n > 0)
		report_add(report, turns_cost(&p->rte, BURST).total,
			   "flows_on_rte_hash_%s_cycles_%s", what, where);
}

static void measure_reads(struct pair *p, struct report *report, const char *size)
{
	static const struct {
		const char *name;
		void (*run)(struct pair *p, struct draw *draw);
	} reads[] = {{"hit", hit}, {"miss", miss}, {"step", step}};
	const char *v6 = p->family == FLOW_IPV6 ? "_v6" : "";
	char where[REPORT_NAME_MAX];

	for (unsigned int zipf = 0; zipf < 2; zipf++) {
		struct draw draw;

		draw_init(&draw, p->flows, zipf ? 1.1 : 0);
		snprintf(where, sizeof(where), "%s%s%s", size, v6, zipf ? "_zipf" : "");
		for (unsigned int r = 0; r < RTE_DIM(reads); r++) {
			for (unsigned int i = 0; i < ROUNDS; i++)
				reads[r].run(p, &draw);
			add(report, p, reads[r].name, where);
		}
	}
}

/* The oldest flows go and new ones come; the load stays. */
static void measure_writes(struct pair *p, struct report *report, const char *size)
{
	const char *v6 = p->family == FLOW_IPV6 ? "_v6" : "";
	char where[REPORT_NAME_MAX];
	struct keys k;

	snprintf(where, sizeof(where), "%s%s", size, v6);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		keys_in_turn(p, p->oldest + i * BURST, &k);
		expire_burst(p, &k, born_ms(p->oldest + (i + 1) * BURST - 1) + timeout_ms(p));
	}
	add(report, p, "expire", where);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		keys_in_turn(p, p->oldest + p->flows + i * BURST, &k);
		insert_burst(p, &k, born_ms(p->oldest + p->flows + i * BURST));
	}
	add(report, p, "insert", where);
	p->oldest += ROUNDS * BURST;
}

/* Touches flows that are in the cache, as after a lookup. */
static void measure_touch(struct pair *p, struct report *report)
{
	struct flow *flows[BURST];
	struct draw draw;
	struct keys k;

	draw_init(&draw, p->flows, 0);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		uint64_t begin;

		keys_draw(p, &draw, p->oldest, &k);
		conntrack_lookup_burst(p->ct, k.key, k.hash, BURST, flows);
		begin = turns_begin();
		for (unsigned int f = 0; f < BURST; f++)
			conntrack_touch(flows[f], flows[f]->last_seen);
		turns_end(&p->own, begin);
	}
	report_add(report, turns_cost(&p->own, BURST).total, "touch_cycles");
}

static void pair_fill(struct pair *p)
{
	struct flow *flows[BURST];
	struct keys k;

	for (uint32_t n = 0; n < p->flows; n += BURST) {
		keys_in_turn(p, n, &k);
		for (unsigned int i = 0; i < BURST && n + i < p->flows; i++) {
			flows[i] = conntrack_flow_insert(p->ct, &k.key[i], k.hash[i],
							 FLOW_UDP_ONE_WAY, 0, born_ms(n + i));
			if (p->on_rte_hash != NULL &&
			    conntrack_flow_insert(p->on_rte_hash, &k.key[i], k.hash[i],
						  FLOW_UDP_ONE_WAY, 0, born_ms(n + i)) == NULL)
				rig_die("rte_hash has no room for flow %u", n + i);
			if (flows[i] == NULL || !hash_peer_insert(p->peer, &k.bare, i, k.hash[i]))
				rig_die("no room for flow %u of %u", n + i, p->flows);
		}
	}
}

static void pair_create(struct pair *p, uint32_t flows, enum flow_family family)
{
	struct conntrack_params *params = calloc(1, sizeof(*params));
	uint32_t places = (uint32_t)(flows * 100ull / LOAD_PERCENT);

	if (params == NULL)
		rig_die("no memory");
	p->flows = flows;
	p->family = family;
	p->oldest = 0;
	params->name = "own";
	params->capacity = (uint32_t)(places * (uint64_t)CAPACITY_PERCENT / 100);
	params->socket = SOCKET_ID_ANY;
	params->seed[0] = rte_rdtsc();
	for (unsigned int state = FLOW_FREE + 1; state < FLOW_STATES; state++)
		params->timeout_ms[0][state] = timeout_ms(p);
	p->ct = conntrack_create(params);
	params->name = "on rte_hash";
	params->table = CONNTRACK_TABLE_RTE_HASH;
	p->on_rte_hash = flows > ON_RTE_HASH_MAX ? NULL : conntrack_create(params);
	free(params);
	p->peer = hash_peer_create(places, family);
	if (p->ct == NULL || p->peer == NULL ||
	    (p->on_rte_hash == NULL && flows <= ON_RTE_HASH_MAX))
		rig_die("no memory for %u flows", flows);
	pair_fill(p);
}

static void pair_destroy(struct pair *p)
{
	conntrack_destroy(p->ct);
	conntrack_destroy(p->on_rte_hash);
	hash_peer_destroy(p->peer);
}

static void measure(struct report *report, const struct size *size, enum flow_family family,
		    unsigned int runs)
{
	static struct pair p; /* too large for a stack */

	pair_create(&p, size->flows, family);
	report_add(report, (double)conntrack_memory(p.ct) / size->flows, "bytes_per_flow_%s_%s",
		   family == FLOW_IPV4 ? "v4" : "v6", size->name);
	if (strcmp(size->name, "1m") == 0)
		report_add(report, (double)conntrack_memory(p.ct) / size->flows,
			   "bytes_per_flow_%s", family == FLOW_IPV4 ? "v4" : "v6");
	for (unsigned int run = 0; run < runs; run++) {
		measure_reads(&p, report, size->name);
		measure_writes(&p, report, size->name);
		if (family == FLOW_IPV4 && size->flows == sizes[0].flows)
			measure_touch(&p, report);
	}
	pair_destroy(&p);
}

/* --- telling --------------------------------------------------------------------------------- */

static void print_row(const struct report *report, const char *what, const char *where)
{
	static const char *const sides[] = {"", "rte_hash_", "flows_on_rte_hash_"};
	double median[RTE_DIM(sides)];
	char name[REPORT_NAME_MAX];

	printf("%-7s %-14s", what, where);
	for (unsigned int i = 0; i < RTE_DIM(sides); i++) {
		snprintf(name, sizeof(name), "%s%s_cycles_%s", sides[i], what, where);
		median[i] = report_median(report, name);
		if (median[i] != median[i])
			continue; /* not measured */
		printf(" %8.1f (%.1f, %.1f)", median[i], report_percentile(report, name, 10),
		       report_percentile(report, name, 90));
		if (i > 0)
			printf(" %5.2f", median[0] / median[i]);
	}
	putchar('\n');
}

static void print_size(const struct report *report, const char *size, const char *v6)
{
	static const char *const reads[] = {"hit", "miss", "step"};
	char where[REPORT_NAME_MAX];

	for (unsigned int r = 0; r < RTE_DIM(reads); r++)
		for (unsigned int zipf = 0; zipf < 2; zipf++) {
			snprintf(where, sizeof(where), "%s%s%s", size, v6, zipf ? "_zipf" : "");
			print_row(report, reads[r], where);
		}
	snprintf(where, sizeof(where), "%s%s", size, v6);
	print_row(report, "insert", where);
	print_row(report, "expire", where);
	snprintf(where, sizeof(where), "bytes_per_flow_%s_%s", v6[0] == '\0' ? "v4" : "v6", size);
	printf("memory  %s%s %.1f bytes per flow at %u %% load\n\n", size, v6,
	       report_median(report, where), LOAD_PERCENT);
}

int main(int argc, char **argv)
{
	char *eal[] = {argv[0], "--in-memory", "--no-pci", "--no-telemetry", "-l", "0",
		       NULL,    NULL,          NULL};
	static struct report report;
	struct report_origin origin;
	struct bench_options o;
	int n_eal = 6, ret;

	if (!bench_options_read(&o, argc, argv, "conntrack", "64k|1m|8m|30m", RUNS_DEFAULT))
		return 2;
	if (!o.hugepages) {
		eal[1] = "--no-huge";
		eal[n_eal++] = "-m";
		eal[n_eal++] = "12288";
	}
	if (rte_eal_init(n_eal, eal) < 0)
		return 1;
	for (unsigned int s = 0; s < RTE_DIM(sizes); s++) {
		if (o.only != NULL && strcmp(o.only, sizes[s].name) != 0)
			continue;
		measure(&report, &sizes[s], FLOW_IPV4, o.runs);
		measure(&report, &sizes[s], FLOW_IPV6, o.runs);
	}
	origin = bench_origin(&o, "conntrack", rte_eal_has_hugepages());
	puts("cycles in bursts of 32: the flow table; bare rte_hash and the ratio to it; for "
	     "inserting "
	     "and\ndeleting also the flow table on rte_hash and the ratio to it\n");
	for (unsigned int s = 0; s < RTE_DIM(sizes); s++) {
		if (o.only != NULL && strcmp(o.only, sizes[s].name) != 0)
			continue;
		print_size(&report, sizes[s].name, "");
		print_size(&report, sizes[s].name, "_v6");
	}
	ret = bench_write(&o, &report, &origin);
	report_fini(&report);
	rte_eal_cleanup();
	return ret < 0;
}
