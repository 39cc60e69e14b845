/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "loop_tests.h"
#ifdef RIG_VERBS
#include "far.h"
#include "rig_verbs.h"
#endif

int gpu;
unsigned int failures;
const char *skipped;

static const char *models_folder;
static const struct rig_nic *nic;

bool begin(struct rig *rig, struct rig_params p)
{
	char error[512] = "";

	p.models = models_folder;
	p.gpu = gpu;
	p.nic = nic;
	p.model = p.model == NULL ? "echo" : p.model;
	p.arguments = p.arguments == NULL ? "max_request=4096" : p.arguments;
	p.max_batch = p.max_batch == 0 ? 8 : p.max_batch;
	p.heartbeat_ms = p.heartbeat_ms == 0 ? FOREVER_MS : p.heartbeat_ms;
	p.links = p.links == 0 ? 1 : p.links;
	p.slots = p.slots == 0 ? SLOTS : p.slots;
	if (rig_start(rig, &p, error, sizeof(error)) == 0)
		return true;
	printf("    the loop does not start: %s\n", error);
	failures++;
	return false;
}

bool await(struct rig *rig, uint32_t link, struct rig_reply *r)
{
	uint64_t end = clock_now_ns() + PATIENCE;

	while (!rig_reply(rig, link, r))
		if (clock_now_ns() > end)
			return false;
	return true;
}

bool await_backlog(struct rig *rig, uint32_t link, uint32_t n)
{
	uint64_t end = clock_now_ns() + PATIENCE;
	struct rig_reply r;

	while (rig->link[link].backlog != n)
		if (rig_reply(rig, link, &r) || clock_now_ns() > end)
			return false;
	return true;
}

bool silent(struct rig *rig, uint32_t link, unsigned int ms)
{
	uint64_t end = clock_now_ns() + ms * 1000000ull;
	struct rig_reply r;

	while (clock_now_ns() < end)
		if (rig_reply(rig, link, &r))
			return false;
	return true;
}

void pause_us(uint32_t us)
{
	uint64_t end = clock_now_ns() + us * 1000ull;

	while (clock_now_ns() < end)
		;
}

struct agent_loop_stats stats_of(struct rig *rig)
{
	struct agent_loop_stats stats;

	rig->ops->stats(rig->loop, &stats);
	return stats;
}

bool with_rnic(void)
{
	return nic != NULL;
}

/* A link of the NIC that was asked for can be made. */
static bool nic_works(void)
{
	struct rig_params p = {
		.models = models_folder,
		.model = "echo",
		.arguments = "max_request=64",
		.max_batch = 1,
		.heartbeat_ms = FOREVER_MS,
		.links = 1,
		.slots = SLOTS,
		.gpu = gpu,
		.nic = nic,
	};
	static struct rig rig;
	char error[512] = "";
	bool works = rig_start(&rig, &p, error, sizeof(error)) == 0;

	rig_stop(&rig);
	if (!works)
		printf("skipped: %s\n", error);
	return works;
}

#ifdef RIG_VERBS
static bool choose_nic(const char *name)
{
	nic = name == NULL                   ? NULL
	      : strcmp(name, "-verbs") == 0  ? &rig_verbs
	      : strcmp(name, "-proxy") == 0  ? &rig_verbs_proxy
	      : strcmp(name, "-memory") == 0 ? &rig_verbs_gpu
					     : NULL;
	return name == NULL || nic != NULL;
}

static bool nic_is_clean(void)
{
	return nic == NULL || far_is_content();
}
#else
static bool choose_nic(const char *name)
{
	return name == NULL;
}

static bool nic_is_clean(void)
{
	return true;
}
#endif

int loop_tests_run(const char *device, const char *models, const char *only,
		   const struct loop_test *tests, size_t n)
{
	unsigned int passed = 0, failed = 0, left_out = 0;
	static struct rig rig;
	char why[256] = "";

	gpu = strncmp(device, "cuda", 4) == 0 ? 0 : -1;
	models_folder = models;
	if (!choose_nic(strchr(device, '-'))) {
		fprintf(stderr, "%s: built without rdma-core\n", device);
		return 2;
	}
	if (gpu == 0 && agent_gpus(why, sizeof(why)) == 0) {
		printf("skipped: %s\n", why);
		return 77;
	}
	if (nic != NULL && !nic_works())
		return 77;
	for (size_t i = 0; i < n; i++) {
		unsigned int before = failures;

		if (only != NULL && strcmp(only, tests[i].name) != 0)
			continue;
		skipped = NULL;
		tests[i].run(&rig);
		rig_stop(&rig);
		if (!nic_is_clean())
			failures++;
		if (failures != before) {
			printf("FAILED %s\n", tests[i].name);
			failed++;
		} else if (skipped != NULL) {
			printf("skip   %s: %s\n", tests[i].name, skipped);
			left_out++;
		} else {
			printf("ok     %s\n", tests[i].name);
			passed++;
		}
		fflush(stdout);
	}
	if (passed + failed + left_out == 0) {
		fprintf(stderr, "no test is called %s\n", only);
		return 2;
	}
	printf("Tested: %u | Passing: %u | Failing: %u | Skipped: %u\n", passed + failed, passed,
	       failed, left_out);
	return failed == 0 ? 0 : 1;
}
