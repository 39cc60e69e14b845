/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * walk-budget: instructions per packet of the load balancer's whole walk, exact. Runs under
 * `valgrind --tool=callgrind`, which counts; walk_budget.py starts it, reads the counts and
 * compares them with walk_budget.json. Seeds and clock are the same in every run. UDP and TCP have
 * a process each, as a load balancer without connections has no endpoint. See README.md.
 */
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include <rte_eal.h>
#include <rte_version.h>
#include <valgrind/callgrind.h>

#include "walk/tcp_walk.h"

/* Requests per scenario, and as many replies. */
#define BATCHES 2
/* Calls by gRPC of a connection; the first is not counted. */
#define CALLS 5
/* Flows of the first service; all but those of the scenario that opens flows are open before the
 * count. */
#define FLOWS 16384u
_Static_assert(FLOWS % RIG_BATCH == 0, "connections are opened in batches");
_Static_assert(FLOWS <= TCP_WALK_KSERVE, "there are as many that speak KServe");
#define TABLE 65536u
/* A minute after the start, when the timers that the start armed have run out. */
#define START_MS 60000u

struct scenario {
	const char *name; /* as in walk_budget.json */
	struct load load;
};

static const struct scenario scenarios[] = {
	{"256b", {RIG_ONE_WORKER, FLOWS, 256}},
	{"1024b", {RIG_ONE_WORKER, FLOWS, 1024}},
	{"1024b_nic_checks", {RIG_ONE_WORKER, FLOWS, 1024, .nic_checks = true}},
	{"1448b_nic_checks", {RIG_ONE_WORKER, FLOWS, LARGE_SEGMENT, .nic_checks = true}},
	{"1024b_8_workers", {RIG_MANY_WORKERS, RIG_FLOWS_MANY, 1024}},
	{"256b_new_flows", {RIG_ONE_WORKER, UINT32_MAX, 256, .in_turn = true, .next = FLOWS}},
};

/* The load balancer's clock; constant during a turn. */
static uint64_t walk_clock;

static uint64_t mix(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/*
 * Replaces libc's: the seeds of the tables decide where keys lie, and so how many instructions a
 * lookup takes.
 */
ssize_t getrandom(void *to, size_t length, unsigned int flags)
{
	static uint64_t state = 0x0123456789abcdef;
	uint8_t *at = to;

	for (size_t i = 0; i < length; i++)
		at[i] = (uint8_t)mix(&state);
	return length;
}

/* Rounded up, so that the turns between two housekeepings are as many at any TSC frequency. */
static void tick(const struct rig *rig)
{
	walk_clock += rig->lb->tsc_per_ms / TCP_WALK_TURNS_PER_MS + 1;
}

/* Valgrind writes what was counted since the last dump into a file, with this title. */
static void dump(const char *direction, const char *scenario, unsigned int packets)
{
	char title[128];

	snprintf(title, sizeof(title), "%s_%s %u", direction, scenario, packets);
	CALLGRIND_DUMP_STATS_AT(title);
}

static void warm_up(struct bench *b)
{
	struct load all[] = {
		{RIG_ONE_WORKER, FLOWS, 256, .in_turn = true},
		{RIG_MANY_WORKERS, RIG_FLOWS_MANY, 256, .in_turn = true},
	};

	b->peer.verify = true;
	for (unsigned int i = 0; i < RTE_DIM(all); i++) {
		/* Twice: a flow is established when its client speaks again. */
		for (uint32_t sent = 0; sent < 2 * all[i].flows; sent += RIG_BATCH) {
			batch_run(b, &all[i]);
			b->requests.n = b->replies.n = 0;
		}
	}
	b->peer.verify = false;
}

static void count(struct bench *b, const struct scenario *s)
{
	struct load load = s->load;

	for (unsigned int i = 0; i < BATCHES; i++) {
		CALLGRIND_START_INSTRUMENTATION;
		CALLGRIND_ZERO_STATS;
		batch_requests(b, &load);
		dump("request", s->name, RIG_BATCH);
		batch_replies(b, &load);
		dump("reply", s->name, RIG_BATCH);
		CALLGRIND_STOP_INSTRUMENTATION;
		b->requests.n = b->replies.n = 0;
	}
}

static int count_udp(void)
{
	static struct bench b; /* too large for a stack */
	const struct rig_options options = {.flows = TABLE};

	if (rig_create(&b.rig, &options) < 0)
		return 1;
	/* Half a millisecond off, so that no rounding matters. */
	walk_clock =
		b.rig.lb->tsc_start + START_MS * b.rig.lb->tsc_per_ms + b.rig.lb->tsc_per_ms / 2;
	b.rig.lb->clock = &walk_clock;
	b.between = tick;
	clients_init(&b.clients, &b.rig);
	peer_join(&b.peer, &b.rig, &b.clients);
	warm_up(&b);
	for (unsigned int i = 0; i < RTE_DIM(scenarios); i++)
		count(&b, &scenarios[i]);
	rig_destroy(&b.rig);
	return 0;
}

/* --- TCP ----------------------------------------------------------------------------------------
 */

static void begin(void)
{
	CALLGRIND_START_INSTRUMENTATION;
	CALLGRIND_ZERO_STATS;
}

/* A request acknowledges the reply before it, but for the first ones, which are not counted. The
 * last reply is acknowledged by a segment of its own. */
static void count_requests(struct tcp_walk *t, const char *scenario)
{
	static uint32_t flow[BATCHES][RIG_BATCH];

	for (unsigned int i = 0; i < BATCHES; i++) {
		tcp_clients_draw(t->clients, FLOWS, flow[i]);
		tcp_walk_requests(t, flow[i], &t->untimed);
		tcp_walk_replies(t, &t->untimed);
	}
	begin();
	for (unsigned int i = 0; i < BATCHES; i++) {
		tcp_walk_requests(t, flow[i], &t->untimed);
		dump("request", scenario, t->batch);
		tcp_walk_replies(t, &t->untimed);
		dump("reply", scenario, t->batch);
	}
	for (unsigned int i = 0; i < BATCHES; i++) {
		tcp_walk_acknowledge(t, flow[i], &t->untimed);
		dump("ack", scenario, t->batch);
	}
	CALLGRIND_STOP_INSTRUMENTATION;
}

/* The same by gRPC, a call on each of a few connections at a time. */
static void count_calls(struct tcp_walk *t)
{
	uint32_t flow[RIG_BATCH];

	for (unsigned int i = 0; i < TCP_WALK_CALLERS; i++)
		flow[i] = TCP_WALK_KSERVE + i;
	tcp_walk_speak(t, TCP_GRPC);
	for (unsigned int i = 0; i < CALLS; i++) {
		if (i == 1)
			begin();
		tcp_walk_requests(t, flow, &t->untimed);
		if (i > 0)
			dump("request", "grpc_1024b", TCP_WALK_CALLERS);
		tcp_walk_replies(t, &t->untimed);
		if (i > 0)
			dump("reply", "grpc_1024b", TCP_WALK_CALLERS);
	}
	CALLGRIND_STOP_INSTRUMENTATION;
}

/* The same of connections at rest. */
static void count_requests_at_rest(struct tcp_walk *t)
{
	static uint32_t flow[RIG_BATCH];

	begin();
	for (unsigned int i = 0; i < BATCHES; i++) {
		tcp_clients_draw(t->clients, FLOWS, flow);
		tcp_walk_requests(t, flow, &t->untimed);
		dump("request", "tcp_1024b_at_rest", RIG_BATCH);
		tcp_walk_replies(t, &t->untimed);
		dump("reply", "tcp_1024b_at_rest", RIG_BATCH);
		tcp_walk_acknowledge(t, flow, &t->untimed);
		dump("ack", "tcp_1024b_at_rest", RIG_BATCH);
	}
	CALLGRIND_STOP_INSTRUMENTATION;
}

static void count_segments(struct tcp_walk *t)
{
	begin();
	tcp_walk_large(t, TCP_LENGTH, RIG_STREAM_MAX, FLOWS, false, &t->untimed);
	dump("segment", "tcp_1448b", LARGE_CLIENTS * t->large.segments);
	CALLGRIND_STOP_INSTRUMENTATION;
	tcp_walk_answer_large(t);
}

static int count_tcp(void)
{
	static struct tcp_walk t; /* too large for a stack */
	struct rig_options options = {
		.flows = TABLE,
		.received = (BATCHES + 3) * RIG_BATCH,
	};

	t.walk.between = tick;
	tcp_walk_start(&t, &options, FLOWS, &walk_clock, START_MS);
	tcp_walk_open_length(&t, FLOWS);
	count_requests(&t, "tcp_1024b");
	count_requests_at_rest(&t);
	count_segments(&t);
	tcp_walk_open_kserve(&t);
	tcp_walk_speak(&t, TCP_KSERVE);
	count_requests(&t, "kserve_1024b");
	count_calls(&t);
	tcp_walk_check(&t);
	tcp_walk_fini(&t);
	return 0;
}

int main(int argc, char **argv)
{
	int ret;

	if (argc == 2 && strcmp(argv[1], "--toolchain") == 0) {
		/* Budgets differ between compilers, and between DPDK's drivers. */
		printf("gcc %d, DPDK %d.%02d\n", __GNUC__, RTE_VER_YEAR, RTE_VER_MONTH);
		return 0;
	}
	if (!RUNNING_ON_VALGRIND || argc != 2) {
		fputs("walk-budget: counts nothing by itself; run tests/bench/run.sh walk-budget\n",
		      stderr);
		return 2;
	}
	ret = strcmp(argv[1], "tcp") == 0 ? count_tcp() : count_udp();
	rte_eal_cleanup();
	return ret;
}
