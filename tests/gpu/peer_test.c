/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rings in a GPU's memory, written by another device: a second GPU plays load balancer and NIC
 * (peer_nic.h). Each test runs with rings in the first GPU's memory, and with rings in the host's.
 *
 *   peer_test MODELS_FOLDER [--same] [TEST]
 *
 * --same: one GPU plays both, where there is no second one: that tests these tests, not the order
 * between devices. Exits with 77 where fewer than two GPUs have peer access.
 */
#include <pthread.h>
#include <string.h>

#include "loop/cuda/gpu_pin.h"
#include "loop_tests.h"
#include "rig_peer.h"

#define LONGEST   602112u
#define SLOTS_MAX 64u
#define DEADLINE  1000000u /* us */

int gpu;
unsigned int failures;

static const char *models_folder;
static struct peer_nic *nic;

static const struct ring_place {
	const char *name;
	const struct rig_nic *nic;
} ring_places[] = {{"GPU", &rig_peer_gpu}, {"host", &rig_peer_host}};

/* The loop and the load of a test. */
struct ask {
	const char *arguments;
	uint32_t links, slots, max_batch, batch_timeout_us;
	struct peer_load load;
};

/* Run the load on a new loop. False: the test has failed. */
static bool serves(struct rig *rig, const struct ring_place *place, const struct ask *a,
		   struct peer_result *r)
{
	struct rig_params p = {
		.models = models_folder,
		.model = "echo",
		.arguments = a->arguments,
		.max_batch = a->max_batch,
		.batch_timeout_us = a->batch_timeout_us,
		.heartbeat_ms = 10,
		.links = a->links,
		.slots = a->slots,
		.gpu = gpu,
		.nic = place->nic,
	};
	struct peer_link links[PEER_LINKS_MAX];
	uint64_t start;
	char error[512] = "";
	int ret;

	if (rig_start(rig, &p, error, sizeof(error)) < 0) {
		printf("    the loop does not start: %s\n", error);
		failures++;
		return false;
	}
	for (uint32_t i = 0; i < a->links; i++)
		links[i] = rig_peer_link(rig, i);
	start = clock_now_ns();
	ret = peer_nic_load(nic, links, a->links, &a->load, r, error, sizeof(error));
	start = clock_now_ns() - start;
	rig_stop(rig);
	if (ret < 0) {
		printf("    %s\n", error);
		failures++;
		return false;
	}
	printf("       rings of the %s: %lu replies in %.2f s, %.1f MB, %lu wrong, %lu cancelled\n",
	       place->name, (unsigned long)r->answered, (double)start / 1e9, (double)r->bytes / 1e6,
	       (unsigned long)r->wrong_replies, (unsigned long)r->cancelled);
	if (r->fault == PEER_FINE)
		return true;
	printf("    fault %u on link %u, slot %u: %lu\n", r->fault, r->link, r->slot,
	       (unsigned long)r->got);
	failures++;
	return false;
}

static void serves_all_rightly(struct rig *rig, const struct ask *a)
{
	struct peer_result r;

	for (size_t i = 0; i < sizeof(ring_places) / sizeof(ring_places[0]); i++) {
		if (!serves(rig, &ring_places[i], a, &r))
			return;
		REQUIRE(r.answered == a->links * a->load.requests, "%lu replies are missing",
			(unsigned long)(a->links * a->load.requests - r.answered));
		REQUIRE(r.wrong_replies == 0 && r.cancelled == 0,
			"%lu replies have %lu wrong bytes, %lu are cancelled",
			(unsigned long)r.wrong_replies, (unsigned long)r.wrong_bytes,
			(unsigned long)r.cancelled);
	}
}

/* --- tests -------------------------------------------------------------------------------------
 */

/* Thousands of laps of ring and queue; counters of WQEs have 16 bits and wrap. */
static void sees_payloads_behind_their_marks(struct rig *rig)
{
	const struct ask a = {"max_request=4096",
			      1,
			      16,
			      8,
			      0,
			      {.requests = 70000,
			       .window = 16,
			       .least = 1,
			       .most = 4096,
			       .deadline_us = DEADLINE}};

	serves_all_rightly(rig, &a);
}

/* A request alone is fetched when its mark is seen. */
static void sees_the_payload_of_a_lone_request(struct rig *rig)
{
	const struct ask a = {"max_request=4096,kernel=1",
			      1,
			      16,
			      1,
			      0,
			      {.requests = 20000,
			       .window = 1,
			       .least = 1,
			       .most = 4096,
			       .deadline_us = DEADLINE}};

	serves_all_rightly(rig, &a);
}

static void sees_payloads_of_requests_behind_each_other(struct rig *rig)
{
	const struct ask a = {"max_request=17000,kernel=1",
			      1,
			      64,
			      1,
			      0,
			      {.requests = 20000,
			       .window = 40,
			       .least = 1,
			       .most = 17000,
			       .deadline_us = DEADLINE}};

	serves_all_rightly(rig, &a);
}

static void serves_many_links(struct rig *rig)
{
	const struct ask a = {"max_request=4096,kernel=1",
			      40,
			      16,
			      64,
			      0,
			      {.requests = 3000, .window = 16, .least = 1, .most = 4096}};

	serves_all_rightly(rig, &a);
}

static void moves_large_payloads(struct rig *rig)
{
	const struct ask a = {"max_request=602112,kernel=1",
			      2,
			      4,
			      2,
			      0,
			      {.requests = 200, .window = 4, .least = 300000, .most = LONGEST}};

	serves_all_rightly(rig, &a);
}

/* Requests that come while a batch runs are copied beside the model's input. */
static void takes_large_ones_while_a_batch_runs(struct rig *rig)
{
	const struct ask a = {"max_request=200000,kernel=1,batch_us=100",
			      1,
			      16,
			      4,
			      0,
			      {.requests = 1000, .window = 16, .least = 100000, .most = 200000}};

	serves_all_rightly(rig, &a);
}

static void reads_requests_where_they_lie(struct rig *rig)
{
	const struct ask a = {"max_request=100000,kernel=1,in_place=1",
			      2,
			      8,
			      4,
			      0,
			      {.requests = 2000, .window = 8, .least = 1, .most = 100000}};

	serves_all_rightly(rig, &a);
}

/* Every second request is cancelled before its descriptor is there, and waits behind others, but
 * for the first ones. */
static void drops_what_was_cancelled(struct rig *rig)
{
	const struct ask a = {"max_request=4096,kernel=1,batch_us=300",
			      1,
			      16,
			      1,
			      0,
			      {.requests = 1000,
			       .window = 8,
			       .least = 1,
			       .most = 4096,
			       .cancel_each = 2,
			       .deadline_us = DEADLINE}};
	struct peer_result r;

	for (size_t i = 0; i < sizeof(ring_places) / sizeof(ring_places[0]); i++) {
		if (!serves(rig, &ring_places[i], &a, &r))
			return;
		REQUIRE(r.answered == a.load.requests && r.wrong_replies == 0,
			"%lu replies, %lu wrong", (unsigned long)r.answered,
			(unsigned long)r.wrong_replies);
		REQUIRE(r.missed <= a.load.window && r.cancelled + r.missed == a.load.requests / 2,
			"%lu cancelled, %lu missed", (unsigned long)r.cancelled,
			(unsigned long)r.missed);
	}
}

/* A NIC that goes on while the loop is stopped. */
struct ongoing {
	struct peer_link link;
	struct peer_load load;
	struct peer_result result;
	char error[256];
	int ret;
};

static struct agent_loop_stats stats_of_loop(const struct rig *rig)
{
	struct agent_loop_stats stats;

	rig->ops->stats(rig->loop, &stats);
	return stats;
}

static void *go_on(void *argument)
{
	struct ongoing *o = argument;

	o->ret = peer_nic_load(nic, &o->link, 1, &o->load, &o->result, o->error, sizeof(o->error));
	return NULL;
}

/* The loop unpins memory of the host when it ends, which the NIC's kernel reads on: pin it once more
 * for that, or no longer. */
static void hold(const struct rig *rig, bool pinned)
{
	const struct peer_link l = rig_peer_link(rig, 0);
	const volatile void *const at[] = {
		l.wqes,	   l.cqes,	l.doorbell,
		l.cancels, l.payloads,	l.descriptors,
		(const void *)(uintptr_t)l.replies};
	size_t n = rig->link[0].memory.writable.on_gpu ? 3 : sizeof(at) / sizeof(at[0]);
	void *seen;

	for (size_t i = 0; i < n; i++) {
		if (!pinned)
			gpu_unpin(at[i]);
		else if (gpu_pin(at[i], 1, false, &seen) != cudaSuccess)
			failures++;
	}
}

/* A ring that is never empty, and large requests that are taken beside a running batch, hide no
 * stop. */
static void stops_under_load(struct rig *rig)
{
	for (size_t i = 0; i < sizeof(ring_places) / sizeof(ring_places[0]); i++) {
		struct rig_params p = {.models = models_folder,
				       .model = "echo",
				       .arguments = "max_request=200000,kernel=1,batch_us=100",
				       .max_batch = 4,
				       .heartbeat_ms = 10,
				       .links = 1,
				       .slots = 16,
				       .gpu = gpu,
				       .nic = ring_places[i].nic};
		struct ongoing o = {.load = {.requests = 1u << 30,
					     .window = 16,
					     .least = 100000,
					     .most = 200000,
					     .patience_ms = 500}};
		char error[512] = "";
		pthread_t thread;
		uint64_t took;

		REQUIRE(rig_start(rig, &p, error, sizeof(error)) == 0, "%s", error);
		o.link = rig_peer_link(rig, 0);
		hold(rig, true);
		REQUIRE(pthread_create(&thread, NULL, go_on, &o) == 0, "no thread");
		took = clock_now_ns();
		while (stats_of_loop(rig).requests < 1000 && clock_now_ns() - took < PATIENCE)
			;
		took = clock_now_ns();
		rig->ops->stop(rig->loop);
		took = clock_now_ns() - took;
		rig->loop = NULL;
		pthread_join(thread, NULL);
		hold(rig, false);
		rig_stop(rig);
		printf("       rings of the %s: %lu replies, stopped within %lu us\n",
		       ring_places[i].name, (unsigned long)o.result.answered,
		       (unsigned long)took / 1000);
		REQUIRE(o.ret == 0 && o.result.fault == PEER_SILENT && o.result.answered >= 1000 &&
				o.result.wrong_replies == 0,
			"%s, fault %u, %lu wrong", o.error, o.result.fault,
			(unsigned long)o.result.wrong_replies);
	}
}

/* These tests do find payloads that are late. */
static void notices_a_nic_without_order(struct rig *rig)
{
	const struct ask a = {
		"max_request=4096,kernel=1",
		1,
		16,
		1,
		0,
		{.requests = 300, .window = 1, .least = 64, .most = 4096, .backwards = true}};
	struct peer_result r;

	for (size_t i = 0; i < sizeof(ring_places) / sizeof(ring_places[0]); i++) {
		if (!serves(rig, &ring_places[i], &a, &r))
			return;
		REQUIRE(r.wrong_replies > a.load.requests / 2, "only %lu replies are wrong",
			(unsigned long)r.wrong_replies);
	}
}

static const struct loop_test tests[] = {
	LOOP_TEST(sees_payloads_behind_their_marks),
	LOOP_TEST(sees_the_payload_of_a_lone_request),
	LOOP_TEST(sees_payloads_of_requests_behind_each_other),
	LOOP_TEST(serves_many_links),
	LOOP_TEST(moves_large_payloads),
	LOOP_TEST(takes_large_ones_while_a_batch_runs),
	LOOP_TEST(reads_requests_where_they_lie),
	LOOP_TEST(drops_what_was_cancelled),
	LOOP_TEST(stops_under_load),
	LOOP_TEST(notices_a_nic_without_order),
};
#define TESTS (sizeof(tests) / sizeof(tests[0]))

static unsigned int run_tests(const char *only)
{
	unsigned int failed = 0, run = 0;
	static struct rig rig;

	for (size_t i = 0; i < TESTS; i++) {
		unsigned int before = failures;

		if (only != NULL && strcmp(only, tests[i].name) != 0)
			continue;
		run++;
		tests[i].run(&rig);
		failed += failures != before;
		printf("%s %s\n", failures == before ? "ok    " : "FAILED", tests[i].name);
		fflush(stdout);
	}
	printf("Tested: %u | Passing: %u | Failing: %u\n", run, run - failed, failed);
	return run == 0 ? 2 : failed > 0;
}

int main(int argc, char **argv)
{
	bool same = argc > 2 && strcmp(argv[2], "--same") == 0;
	char how[160], error[256] = "";
	const char *lacks;
	unsigned int status;

	if (argc < 2) {
		fprintf(stderr, "usage: peer_test MODELS_FOLDER [--same] [TEST]\n");
		return 2;
	}
	models_folder = argv[1];
	lacks = peer_nic_lacks(gpu, same ? 0 : 1, how, sizeof(how));
	if (lacks != NULL) {
		printf("skipped: %s\n", lacks);
		return 77;
	}
	printf("       %s\n", how);
	nic = peer_nic_open(gpu, same ? 0 : 1, LONGEST, SLOTS_MAX, error, sizeof(error));
	if (nic == NULL) {
		printf("failed: the NIC does not open: %s\n", error);
		return 1;
	}
	status = run_tests(argv[2 + same]);
	peer_nic_close(nic);
	return (int)status;
}
