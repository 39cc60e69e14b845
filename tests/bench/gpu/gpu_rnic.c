/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/gpu_load.h"
#include "gpu/gpu_parts.h"

#ifdef RIG_VERBS
#include "../../gpu/rig_verbs.h"

#define SECONDS 0.7
#define WINDOW  256

static const struct {
	const char *suffix;
	const struct rig_nic *nic;
} engines[] = {{"", &rig_verbs}, {"_proxy", &rig_verbs_proxy}};

static double seconds_of(clockid_t clock)
{
	struct timespec t = {0};

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* CPU time, s, of the thread that is the stand-in's silicon: no part of an agent. The kernel's
 * number of a thread makes its clock's (man 3 pthread_getcpuclockid, for threads of others). */
static double cpu_of_silicon(void)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *entry;
	double cpu = 0;

	while (tasks != NULL && (entry = readdir(tasks)) != NULL) {
		char path[300], name[32] = "";
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		f = fopen(path, "r");
		if (f == NULL)
			continue;
		if (fgets(name, sizeof(name), f) != NULL && strncmp(name, "standin-nic", 11) == 0)
			cpu += seconds_of((clockid_t)(~atoi(entry->d_name) << 3 | 6));
		fclose(f);
	}
	if (tasks != NULL)
		closedir(tasks);
	return cpu;
}

/* CPU time, s, of an agent's threads: all but this one, which is the load, and the silicon's. */
static double cpu_of_agent(void)
{
	return seconds_of(CLOCK_PROCESS_CPUTIME_ID) - seconds_of(CLOCK_THREAD_CPUTIME_ID) -
	       cpu_of_silicon();
}

int gpu_rnic_measure(struct report *report, const char *models)
{
	const struct timespec second = {.tv_sec = 1};
	uint8_t request[1024] = {1};
	struct gpu_load load = {.request = request, .length = sizeof(request), .echo = true};
	static struct rig rig;

	for (size_t i = 0; i < sizeof(engines) / sizeof(engines[0]); i++) {
		const char *suffix = engines[i].suffix;
		struct rig_params p = {.models = models,
				       .model = "echo",
				       .arguments = "max_request=1024,kernel=1",
				       .max_batch = 32,
				       .heartbeat_ms = 100,
				       .links = 1,
				       .slots = WINDOW,
				       .nic = engines[i].nic};
		double cpu, start, rate;
		char error[512] = "";
		uint64_t lost;

		if (rig_start(&rig, &p, error, sizeof(error)) < 0) {
			rig_stop(&rig);
			fprintf(stderr, "rnic: the loop does not start: %s\n", error);
			return -1;
		}
		cpu = cpu_of_agent();
		start = seconds_of(CLOCK_MONOTONIC);
		nanosleep(&second, NULL);
		report_add(report,
			   100 * (cpu_of_agent() - cpu) / (seconds_of(CLOCK_MONOTONIC) - start),
			   "agent_cpu_percent_with_rnic%s_idle", suffix);
		cpu = cpu_of_agent();
		start = seconds_of(CLOCK_MONOTONIC);
		rate = gpu_load_throughput(&rig, &load, WINDOW, SECONDS, &lost);
		report_add(report,
			   100 * (cpu_of_agent() - cpu) / (seconds_of(CLOCK_MONOTONIC) - start),
			   "agent_cpu_percent_with_rnic%s", suffix);
		report_add(report, rate / 1e3, "agent_with_rnic%s_krps", suffix);
		rig_stop(&rig);
		if (lost > 0) {
			fprintf(stderr, "rnic: %lu replies are lost\n", (unsigned long)lost);
			return -1;
		}
	}
	return 0;
}
#else
int gpu_rnic_measure(struct report *report, const char *models)
{
	static bool said;

	(void)report;
	(void)models;
	if (!said)
		printf("rnic: built without rdma-core\n");
	said = true;
	return 0;
}
#endif
