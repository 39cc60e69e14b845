/* SPDX-License-Identifier: BSD-3-Clause */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cuda_runtime_api.h>

#include "gpu/nvml.h"
#include "gpu/gpu_load.h"
#include "gpu/gpu_parts.h"
#include "gpu/gpu_peer.h"

/* NVML's counter goes on some ten times a second. */
#define SECONDS    1.5
#define WINDOW     256
#define LONE       45000
#define GAP_US     20
#define PACKAGES   "/sys/class/powercap/intel-rapl:*/energy_uj"
#define MICROJOULE 1e-6

/* Where the energy of GPU and CPUs is read. */
static struct {
	bool opened;
	bool of_gpu; /* readable, as are <packages> if there are any */
	struct nvml nvml;
	nvml_device device;
	glob_t packages;
} meters;

static const struct {
	const struct agent_loop_ops *ops;
	const char *prefix;
} servers[] = {{&agent_loop_cuda, ""}, {&gpu_peer_gathered, "peer_gathered_"}};

/* --- meters ------------------------------------------------------------------------------------
 */

/* NULL, or why the GPU's energy is not readable. */
static const char *open_gpu_meter(void)
{
	static char error[256];
	unsigned long long mj;
	char bus[32];

	if (nvml_open(&meters.nvml, NVML_LIBRARY, error, sizeof(error)) < 0)
		return error[0] == '\0' ? "not readable (no " NVML_LIBRARY ")" : error;
	if (meters.nvml.energy != NULL &&
	    cudaDeviceGetPCIBusId(bus, sizeof(bus), 0) == cudaSuccess &&
	    meters.nvml.by_bus(bus, &meters.device) == NVML_OK &&
	    meters.nvml.energy(meters.device, &mj) == NVML_OK) {
		meters.of_gpu = true;
		return NULL;
	}
	return "not readable (NVML tells no energy of this GPU)";
}

/* Joules of all packages so far; -1: not readable. */
static double cpu_joules(void)
{
	double sum = 0, uj;

	for (size_t i = 0; i < meters.packages.gl_pathc; i++) {
		FILE *f = fopen(meters.packages.gl_pathv[i], "r");
		int n = f == NULL ? 0 : fscanf(f, "%lf", &uj);

		if (f != NULL)
			fclose(f);
		if (n != 1)
			return -1;
		sum += uj * MICROJOULE;
	}
	return meters.packages.gl_pathc == 0 ? -1 : sum;
}

static void open_meters(void)
{
	const char *why;

	if (meters.opened)
		return;
	meters.opened = true;
	why = open_gpu_meter();
	printf("joules: the GPU's energy: %s\n", why == NULL ? "by NVML" : why);
	if (glob(PACKAGES, 0, NULL, &meters.packages) != 0)
		meters.packages.gl_pathc = 0;
	printf("joules: the CPUs' energy: %s\n",
	       cpu_joules() < 0 ? "not readable (no " PACKAGES ")" : "by RAPL, packages only");
}

struct reading {
	double gpu, cpu, at; /* J; J, -1: not readable; s */
};

static struct reading read_meters(void)
{
	struct reading r = {.cpu = cpu_joules()};
	unsigned long long mj = 0;
	struct timespec now;

	meters.nvml.energy(meters.device, &mj);
	clock_gettime(CLOCK_MONOTONIC, &now);
	r.gpu = (double)mj / 1e3;
	r.at = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
	return r;
}

/* The counters jumped: a RAPL counter wraps within hours. */
static bool sane(double joules)
{
	return joules >= 0;
}

static void report_watts(struct report *report, struct reading from, const char *name)
{
	struct reading to = read_meters();

	report_add(report, (to.gpu - from.gpu) / (to.at - from.at), "gpu_watts_%s", name);
	if (from.cpu >= 0 && sane(to.cpu - from.cpu))
		report_add(report, (to.cpu - from.cpu) / (to.at - from.at), "cpu_watts_%s", name);
}

static void report_each(struct report *report, struct reading from, double n, const char *prefix,
			const char *name)
{
	struct reading to = read_meters();

	report_add(report, 1e6 * (to.gpu - from.gpu) / n, "%sgpu_microjoules_per_%s", prefix, name);
	report_add(report, (to.gpu - from.gpu) / (to.at - from.at), "%sgpu_watts_%s", prefix, name);
	if (from.cpu >= 0 && sane(to.cpu - from.cpu))
		report_add(report, 1e6 * (to.cpu - from.cpu) / n, "%scpu_microjoules_per_%s",
			   prefix, name);
}

/* --- figures -----------------------------------------------------------------------------------
 */

static void sleep_s(double s)
{
	struct timespec t = {.tv_sec = (time_t)s, .tv_nsec = (long)((s - (double)(time_t)s) * 1e9)};

	nanosleep(&t, NULL);
}

static int begin(struct rig *rig, const char *models, const struct agent_loop_ops *ops,
		 uint32_t batch)
{
	const struct rig_params p = {.models = models,
				     .model = "echo",
				     .arguments = "max_request=1024,kernel=1",
				     .max_batch = batch,
				     .heartbeat_ms = 100,
				     .links = 1,
				     .slots = WINDOW,
				     .ops = ops};
	char error[512] = "";

	if (rig_start(rig, &p, error, sizeof(error)) == 0)
		return 0;
	fprintf(stderr, "joules: the loop does not start: %s\n", error);
	return -1;
}

/* A request of a ring that is never empty, and one that comes alone. */
static int measure_server(struct report *report, const char *models, unsigned int server)
{
	const char *prefix = servers[server].prefix;
	uint8_t request[1024] = {1};
	struct gpu_load load = {.request = request,
				.length = sizeof(request),
				.echo = true,
				.n = LONE,
				.gap_us = GAP_US};
	struct gpu_latency latency;
	struct reading from;
	static struct rig rig;
	uint64_t lost;
	double rate;

	if (begin(&rig, models, servers[server].ops, 32) < 0)
		return -1;
	from = read_meters();
	rate = gpu_load_throughput(&rig, &load, WINDOW, SECONDS, &lost);
	report_each(report, from, rate * (read_meters().at - from.at), prefix, "request");
	rig_stop(&rig);
	if (begin(&rig, models, servers[server].ops, 1) < 0)
		return -1;
	from = read_meters();
	gpu_load_latency(&rig, &load, &latency);
	report_each(report, from, load.n, prefix, "lone_request");
	rig_stop(&rig);
	if (lost + latency.lost + latency.wrong == 0)
		return 0;
	fprintf(stderr, "joules: replies are lost or wrong\n");
	return -1;
}

int gpu_joules_measure(struct report *report, const char *models)
{
	static struct rig rig;
	struct reading from;

	open_meters();
	if (!meters.of_gpu)
		return 0;
	sleep_s(0.5); /* clocks come down */
	from = read_meters();
	sleep_s(SECONDS);
	report_watts(report, from, "idle");
	if (begin(&rig, models, &agent_loop_cuda, 1) < 0)
		return -1;
	from = read_meters();
	sleep_s(SECONDS);
	report_watts(report, from, "polling");
	rig_stop(&rig);
	for (unsigned int s = 0; s < sizeof(servers) / sizeof(servers[0]); s++)
		if (measure_server(report, models, s) < 0)
			return -1;
	return 0;
}
