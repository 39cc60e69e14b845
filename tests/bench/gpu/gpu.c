/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loop on a GPU beside the same work mediated by a CPU: posting, echo by size, the perceptron,
 * throughput, latency beside neighbours that hog the memory, and the parts of gpu_parts.h. Needs a
 * GPU; no NIC and no DPDK.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gpu/gpu_alone.h"
#include "gpu/gpu_hogs.h"
#include "gpu/gpu_load.h"
#include "gpu/gpu_parts.h"
#include "gpu/gpu_peer.h"
#include "gpu/floor/floor.h"
#include "gpu/gpu_post.h"
#include "loop/cuda/gpu_list.h"
#include "common/options.h"

#define GAP_US           20
#define LARGE_BATCH      32    /* at which CPU time is reported, and an agent's by default */
#define LONE_MAX         16384 /* bytes */

static char models[4096], weights[4096 + 64];

static const struct size {
	const char *name;
	uint32_t bytes, slots, n;
} sizes[] = {
	{"64b", 64, 64, 2000},      {"1kib", 1024, 64, 2000},   {"16kib", 16384, 16, 1000},
	{"256kib", 262144, 8, 500}, {"588kib", 602112, 8, 300}, {"1mib", 1u << 20, 8, 200},
	{"4mib", 4u << 20, 4, 100},
};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static void die(const char *what, const char *why)
{
	fprintf(stderr, "bench-gpu: %s: %s\n", what, why);
	exit(1);
}

static void begin(struct rig *rig, struct rig_params p)
{
	char error[512] = "";

	p.models = models;
	p.links = p.links == 0 ? 1 : p.links;
	p.heartbeat_ms = 100;
	if (rig_start(rig, &p, error, sizeof(error)) < 0)
		die("the loop does not start", error);
}

/* The loop comes first, then its peers. */
enum server { LOOP, GATHERED, COPIED, PIPELINED, IN_PLACE, SERVERS };

static const struct {
	const struct agent_loop_ops *ops;
	const char *prefix;
} servers[SERVERS] = {
	[LOOP] = {&agent_loop_cuda, ""},
	[GATHERED] = {&gpu_peer_gathered, "peer_gathered_"},
	[COPIED] = {&gpu_peer_copied, "peer_copied_"},
	[PIPELINED] = {&gpu_peer_pipelined, "peer_pipelined_"},
	[IN_PLACE] = {&gpu_peer_in_place, "peer_in_place_"},
};

static void check(const struct gpu_latency *l, const char *what)
{
	char why[96];

	snprintf(why, sizeof(why), "%lu replies lost, %lu wrong", (unsigned long)l->lost,
		 (unsigned long)l->wrong);
	if (l->lost + l->wrong > 0)
		die(what, why);
}

/* --- parts -------------------------------------------------------------------------------------
 */

static void measure_post(struct report *report)
{
	report_add(report, gpu_post_us(1), "post_single_us");
	report_add(report, gpu_post_us(16), "post_batched16_us");
	report_add(report, gpu_copy_gbytes(1), "pcie_gbytes_per_s");
	report_add(report, gpu_copy_gbytes(0), "pcie_back_gbytes_per_s");
}

/* Ways to answer without the loop, up to how many bytes; the names of their metrics. */
static const struct {
	enum floor_way way;
	uint32_t most;
	const char *name;
} ways[] = {
	{FLOOR_BELL, 64, "floor_bell_us"},
	{FLOOR_SPECULATIVE, 1024, "floor_speculative_us"},
	{FLOOR_RESIDENT, 16384, "floor_resident_us"},
	{FLOOR_STAGGERED, 1024, "floor_staggered_us"},
	{FLOOR_L2, 16384, "floor_l2_us"},
	{FLOOR_KERNELS, 4u << 20, "floor_p50_us"},
	{FLOOR_TAIL, 16384, "floor_tail_us"},
	{FLOOR_BOTH, 16384, "floor_programmatic_us"},
	{FLOOR_IN_PLACE, 4u << 20, "floor_in_place_p50_us"},
};

static const struct {
	enum floor_copy copy;
	const char *name;
} crossings[] = {
	{FLOOR_IN, "floor_in_us"},
	{FLOOR_IN_BULK, "floor_in_bulk_us"},
	{FLOOR_OUT, "floor_out_us"},
	{FLOOR_OUT_BULK, "floor_out_bulk_us"},
};
#define FLOOR_BLOCKS 64
/* Bytes of gpu_models.py's super-resolution: 224 x 224 to 672 x 672, float32. */
#define SUPERRES_REQUEST (224 * 224 * 4)
#define SUPERRES_REPLY   (672 * 672 * 4)
#define SUPERRES_N       200

static void measure_crossing(struct report *report, size_t crossing, uint32_t bytes,
			     const char *name)
{
	char error[256] = "";
	double us =
		floor_copy_us(crossings[crossing].copy, bytes, FLOOR_BLOCKS, error, sizeof(error));

	if (us < 0)
		die(crossings[crossing].name, error);
	report_add(report, us, "%s_%s", crossings[crossing].name, name);
}

static void measure_floor(struct report *report, const struct size *size)
{
	char error[256] = "";
	double us;

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (size->bytes > ways[i].most)
			continue;
		us = floor_us(ways[i].way, size->bytes, size->bytes, size->n, error, sizeof(error));
		if (us < 0)
			die(ways[i].name, error);
		report_add(report, us, "%s_%s", ways[i].name, size->name);
	}
	for (size_t i = 0; i < sizeof(crossings) / sizeof(crossings[0]); i++)
		if (size->bytes >= 262144)
			measure_crossing(report, i, size->bytes, size->name);
}

/* Time of requests and replies as long as super-resolution's; the model is one kernel here
 * that copies as many bytes as a reply has. */
static void measure_superres_floor(struct report *report)
{
	char error[256] = "";
	double us = floor_us(FLOOR_KERNELS, SUPERRES_REQUEST, SUPERRES_REPLY, SUPERRES_N, error,
			     sizeof(error));

	if (us < 0)
		die("floor of super-resolution", error);
	report_add(report, us, "floor_p50_us_superres");
	measure_crossing(report, 0, SUPERRES_REQUEST, "superres");
	measure_crossing(report, 2, SUPERRES_REPLY, "superres");
}

/* The model's work on a request. */
enum work { NOTHING, ECHO, WORK_IN_PLACE };

static const struct {
	const char *name, *arguments;
} works[] = {
	[NOTHING] = {"nothing", "kernel=0"},
	[ECHO] = {"echo", "kernel=1"},
	[WORK_IN_PLACE] = {"in_place", "kernel=1,in_place=1"},
};

static void report_parts(struct report *report, const char *work, const struct size *size,
			 const struct gpu_latency *l)
{
	report_add(report, l->taken_us, "%s_taken_us_%s", work, size->name);
	report_add(report, l->run_us, "%s_run_us_%s", work, size->name);
	report_add(report, l->outside_us, "%s_outside_us_%s", work, size->name);
}

/* Returns the p50 with a gap between requests. */
static double measure_size(struct report *report, const struct size *size, enum server server,
			   enum work work, uint32_t batch)
{
	const char *prefix = servers[server].prefix;
	uint8_t *request = malloc(size->bytes);
	char arguments[96], name[32];
	/* Peers make a graph for each slot when they see it first. */
	struct gpu_load load = {.request = request,
				.length = size->bytes,
				.echo = true,
				.warm = 20 + size->slots,
				.n = size->n};
	struct gpu_latency gap, none;
	struct rig rig;

	snprintf(arguments, sizeof(arguments), "max_request=%u,%s", size->bytes,
		 works[work].arguments);
	snprintf(name, sizeof(name), batch > 1 ? "%s_of_%u" : "%s", works[work].name, batch);
	for (uint32_t i = 0; i < size->bytes; i++)
		request[i] = i * 31 + (i >> 9);
	begin(&rig, (struct rig_params){.model = "echo",
					.arguments = arguments,
					.max_batch = batch,
					.slots = size->slots,
					.ops = servers[server].ops});
	load.gap_us = GAP_US;
	gpu_load_latency(&rig, &load, &gap);
	load.gap_us = 0;
	gpu_load_latency(&rig, &load, &none);
	rig_stop(&rig);
	free(request);
	check(&gap, size->name);
	check(&none, size->name);
	report_add(report, gap.p50_us, "%s%s_p50_us_%s", prefix, name, size->name);
	report_add(report, gap.p99_us, "%s%s_p99_us_%s", prefix, name, size->name);
	report_add(report, none.p50_us, "%s%s_back_to_back_p50_us_%s", prefix, name, size->name);
	if (server == LOOP)
		report_parts(report, name, size, &gap);
	if (server == LOOP && work == ECHO && batch == 1 && size->bytes == 1024)
		report_add(report, none.class_high_us - none.class_low_us, "turn_us");
	if (server == LOOP && work == NOTHING && batch == 1)
		report_add(report, size->bytes / gap.gpu_p50_us / 1e3, "gather_gbytes_per_s_%s",
			   size->name);
	return gap.p50_us;
}

/* The loop beside the strongest peer of the same shape: gather, a kernel, scatter; and one kernel
 * in place. */
static void measure_shapes(struct report *report, const struct size *size)
{
	double loop, strongest, peer;

	measure_size(report, size, LOOP, NOTHING, 1);
	loop = measure_size(report, size, LOOP, ECHO, 1);
	strongest = measure_size(report, size, GATHERED, ECHO, 1);
	for (enum server s = COPIED; s <= PIPELINED; s++) {
		peer = measure_size(report, size, s, ECHO, 1);
		strongest = peer < strongest ? peer : strongest;
	}
	report_add(report, strongest, "strongest_peer_p50_us_%s", size->name);
	report_add(report, loop / strongest, "over_strongest_%s", size->name);
	if (size->bytes <= LONE_MAX) {
		loop = measure_size(report, size, LOOP, ECHO, LARGE_BATCH);
		report_add(report, loop / strongest, "of_32_over_strongest_%s", size->name);
	}
	loop = measure_size(report, size, LOOP, WORK_IN_PLACE, 1);
	peer = measure_size(report, size, IN_PLACE, WORK_IN_PLACE, 1);
	report_add(report, loop / peer, "in_place_over_strongest_%s", size->name);
}

/* Requests that come alone where a batch may have 32, as an agent has it by default. */
static void measure_lone(struct report *report, const struct size *size)
{
	for (enum work work = NOTHING; work <= WORK_IN_PLACE; work++)
		measure_size(report, size, LOOP, work, LARGE_BATCH);
}

/* Returns the CPU time, s, of all threads but this one, which plays load balancer and NIC: the
 * server's and CUDA's. */
static double cpu_of_others(void)
{
	struct timespec all, own;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &all);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &own);
	return (double)(all.tv_sec - own.tv_sec) + (double)(all.tv_nsec - own.tv_nsec) / 1e9;
}

/* Measures requests per second and the CPU time that they take from the server, for a ring that is
 * never empty. */
static void measure_throughput(struct report *report, uint32_t batch, enum server server)
{
	uint8_t request[1024];
	struct gpu_load load = {.request = request, .length = sizeof(request), .echo = true};
	double rate, cpu, seconds;
	struct rig rig;
	uint64_t lost;

	memset(request, 0x5a, sizeof(request));
	begin(&rig, (struct rig_params){.model = "echo",
					.arguments = "max_request=1024,kernel=1",
					.max_batch = batch,
					.slots = 256,
					.ops = servers[server].ops});
	cpu = cpu_of_others();
	seconds = (double)clock_now_ns() / 1e9;
	rate = gpu_load_throughput(&rig, &load, 256, 0.5, &lost);
	seconds = (double)clock_now_ns() / 1e9 - seconds;
	cpu = cpu_of_others() - cpu;
	if (lost > 0)
		die("throughput", "replies are lost");
	rig_stop(&rig);
	report_add(report, rate / 1e3, "%secho_krps_1kib_batch%u", servers[server].prefix, batch);
	if (batch < LARGE_BATCH)
		return;
	report_add(report, 100 * cpu / seconds, "%sagent_cpu_percent", servers[server].prefix);
	report_add(report, 1e6 * cpu / (rate * seconds / 1e3), "%scpu_us_per_1000_requests",
		   servers[server].prefix);
}

/* The loop alone, to compare builds of it. */
static void measure_loops(struct report *report)
{
	for (size_t i = 0; i < SIZES; i++)
		for (enum work work = NOTHING; work <= WORK_IN_PLACE; work++)
			measure_size(report, &sizes[i], LOOP, work, 1);
	for (size_t i = 0; i < SIZES && sizes[i].bytes <= LONE_MAX; i++)
		measure_lone(report, &sizes[i]);
	measure_throughput(report, 1, LOOP);
	measure_throughput(report, LARGE_BATCH, LOOP);
}

static void measure_mlp(struct report *report, enum server server)
{
	static uint8_t request[72];
	struct gpu_load load = {
		.request = request, .length = sizeof(request), .warm = 50, .n = 2000};
	char arguments[5000], error[256];
	struct gpu_latency gap, none;
	struct rig rig;
	double alone;

	for (unsigned int i = 8; i < sizeof(request); i++)
		request[i] = i % 17;
	snprintf(arguments, sizeof(arguments), "weights=%s", weights);
	begin(&rig, (struct rig_params){.model = "mlp",
					.arguments = arguments,
					.max_batch = 1,
					.slots = 64,
					.ops = servers[server].ops});
	load.gap_us = GAP_US;
	gpu_load_latency(&rig, &load, &gap);
	load.gap_us = 0;
	gpu_load_latency(&rig, &load, &none);
	check(&gap, "mlp");
	check(&none, "mlp");
	report_add(report, gap.p50_us, "%sdigits_p50_us", servers[server].prefix);
	report_add(report, gap.p99_us, "%sdigits_p99_us", servers[server].prefix);
	report_add(report, none.p50_us, "%sdigits_back_to_back_p50_us", servers[server].prefix);
	rig.ops->stop(rig.loop);
	rig.loop = NULL;
	if (server == LOOP) {
		alone = gpu_alone_us(rig.model.model, arguments, 1, 0, error, sizeof(error));
		if (alone < 0)
			die("digits alone", error);
		report_add(report, alone, "digits_alone_us");
	}
	rig_stop(&rig);
}

/* Requests beside neighbours that hog memory and caches on every core but this thread's, over those
 * beside idle cores. */
static void measure_hogged(struct report *report, enum server server)
{
	uint8_t request[1024] = {1};
	struct gpu_load load = {.request = request,
				.length = sizeof(request),
				.echo = true,
				.warm = 100,
				.n = 5000,
				.gap_us = GAP_US};
	const char *prefix = server == LOOP ? "" : "peer_";
	struct gpu_latency idle, hogged;
	struct gpu_hogs *hogs;
	struct rig rig;

	begin(&rig, (struct rig_params){.model = "echo",
					.arguments = "max_request=1024,kernel=1",
					.max_batch = 1,
					.slots = 64,
					.ops = servers[server].ops});
	gpu_load_latency(&rig, &load, &idle);
	hogs = gpu_hogs_start();
	if (hogs == NULL)
		die("hogs", "no memory");
	gpu_load_latency(&rig, &load, &hogged);
	gpu_hogs_stop(hogs);
	rig_stop(&rig);
	check(&idle, "idle");
	check(&hogged, "hogged");
	report_add(report, idle.p99_us, "%sp99_us_idle", prefix);
	report_add(report, hogged.p50_us, "%sp50_us_hogged", prefix);
	report_add(report, hogged.p99_us, "%sp99_us_hogged", prefix);
	report_add(report, hogged.p99_us / idle.p99_us, "%sp99_hogged_over_idle", prefix);
}

/* --- */

/* --only has one part or several, with commas between. */
static bool wanted(const struct bench_options *o, const char *part)
{
	size_t n = strlen(part);

	for (const char *at = o->only; at != NULL; at = strchr(at, ',')) {
		at += *at == ',';
		if (strncmp(at, part, n) == 0 && (at[n] == '\0' || at[n] == ','))
			return true;
	}
	return o->only == NULL;
}

/* The parts of files of their own. */
static void measure_parts(struct report *report, const struct bench_options *o)
{
	int ret = 0;

	if (wanted(o, "bell"))
		ret |= gpu_bell_measure(report, models);
	if (wanted(o, "posted"))
		ret |= gpu_posted_measure(report);
	if (wanted(o, "rings"))
		ret |= gpu_rings_measure(report, models);
	if (wanted(o, "rnic"))
		ret |= gpu_rnic_measure(report, models);
	if (wanted(o, "joules"))
		ret |= gpu_joules_measure(report, models);
	if (ret < 0)
		exit(1);
}

static void print(const struct report *report)
{
	for (unsigned int i = 0; i < report->n; i++)
		printf("%-44s %10.2f  (%.2f, %.2f)\n", report->series[i]->name,
		       report_median(report, report->series[i]->name),
		       report_percentile(report, report->series[i]->name, 10),
		       report_percentile(report, report->series[i]->name, 90));
}

/* Plug-ins and weights lie beside the bench, or where the build puts them. */
static void find_models(void)
{
	char self[4000];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n < 0 ? 0 : n] = '\0';
	*strrchr(self, '/') = '\0';
	snprintf(models, sizeof(models), "%s/models", self);
	snprintf(weights, sizeof(weights), "%s/digits/digits.safetensors", self);
	if (access(models, R_OK) != 0)
		snprintf(models, sizeof(models), "%s/../../gpu-agent/models", self);
	if (access(weights, R_OK) != 0)
		snprintf(weights, sizeof(weights), "%s/digits.safetensors", DIGITS_FOLDER);
}

int main(int argc, char **argv)
{
	struct report report = {0};
	struct report_origin origin;
	struct bench_options o;
	char why[256] = "";

	if (!bench_options_read(
		    &o, argc, argv, "gpu",
		    "some of post,floor,echo,throughput,mlp,hogged,bell,rings,posted,rnic,joules, "
		    "or "
		    "loops",
		    5))
		return 2;
	if (agent_gpus(why, sizeof(why)) == 0) {
		printf("skipped: %s\n", why);
		return 77;
	}
	find_models();
	origin = bench_origin(&o, "gpu", false);
	for (unsigned int run = 0; run < o.runs; run++) {
		if (wanted(&o, "post"))
			measure_post(&report);
		for (size_t i = 0; wanted(&o, "floor") && i < SIZES; i++)
			measure_floor(&report, &sizes[i]);
		if (wanted(&o, "floor"))
			measure_superres_floor(&report);
		if (o.only != NULL && wanted(&o, "loops"))
			measure_loops(&report);
		for (size_t i = 0; wanted(&o, "echo") && i < SIZES; i++)
			measure_shapes(&report, &sizes[i]);
		for (enum server s = LOOP; wanted(&o, "mlp") && s <= COPIED; s++)
			measure_mlp(&report, s);
		for (enum server s = LOOP; wanted(&o, "throughput") && s <= PIPELINED; s++) {
			measure_throughput(&report, 1, s);
			measure_throughput(&report, LARGE_BATCH, s);
		}
		for (enum server s = LOOP; wanted(&o, "hogged") && s <= GATHERED; s++)
			measure_hogged(&report, s);
		measure_parts(&report, &o);
	}
	agent_gpu_name(0, why, sizeof(why));
	printf("gpu: medians (p10, p90) of %u runs on %s\n", o.runs, why);
	print(&report);
	return bench_write(&o, &report, &origin) < 0;
}
