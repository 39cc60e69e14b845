/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "loop_tests.h"

int gpu;
unsigned int failures;
const char *skipped;

static const char *models_folder;

bool begin(struct rig *rig, struct rig_params p)
{
	char error[512] = "";

	p.models = models_folder;
	p.gpu = gpu;
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

int loop_tests_run(const char *device, const char *models, const char *only,
		   const struct loop_test *tests, size_t n)
{
	unsigned int passed = 0, failed = 0, left_out = 0;
	static struct rig rig;
	char why[256] = "";

	gpu = strcmp(device, "cuda") == 0 ? 0 : -1;
	models_folder = models;
	if (gpu == 0 && agent_gpus(why, sizeof(why)) == 0) {
		printf("skipped: %s\n", why);
		return 77;
	}
	for (size_t i = 0; i < n; i++) {
		unsigned int before = failures;

		if (only != NULL && strcmp(only, tests[i].name) != 0)
			continue;
		skipped = NULL;
		tests[i].run(&rig);
		rig_stop(&rig);
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
