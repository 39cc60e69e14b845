/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "../../gpu/rig_peer.h"
#include "gpu/gpu_parts.h"

#define GAP_NS    20000
#define DEADLINE  1000000 /* us, as a load balancer's */
#define N_MAX     2000
#define WARM      70
#define SLOTS_MAX 64

static const struct size {
	const char *name;
	uint32_t bytes, slots, n;
} sizes[] = {
	{"1kib", 1024, 64, 2000},   {"16kib", 16384, 16, 1000}, {"256kib", 262144, 8, 500},
	{"588kib", 602112, 8, 300}, {"4mib", 4u << 20, 4, 100},
};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static const struct {
	const char *name;
	const struct rig_nic *nic;
} places[] = {{"hbm_ring", &rig_peer_gpu}, {"host_ring", &rig_peer_host}};

static const struct {
	const char *infix, *arguments;
} works[] = {{"", "kernel=1"}, {"nothing_", "kernel=0"}};

/* The parts of a request's time. */
enum { RUNG, PLACED, READ, WHOLE, PARTS };

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Put the requests' times into order, part by part: us at <share> of each. */
static void percentiles(const struct peer_took *took, uint32_t n, double share, double us[PARTS])
{
	static uint32_t sorted[N_MAX];

	for (int part = 0; part < PARTS; part++) {
		for (uint32_t i = 0; i < n; i++)
			sorted[i] = part == RUNG     ? took[i].rung
				    : part == PLACED ? took[i].placed
				    : part == READ   ? took[i].read
						     : took[i].whole;
		qsort(sorted, n, sizeof(*sorted), compare);
		us[part] = sorted[(uint32_t)(share * (n - 1))] / 1e3;
	}
}

/* Returns the p50 from mark to doorbell, or -1. */
static double measure(struct report *report, const char *models, struct peer_nic *nic,
		      const struct size *size, unsigned int place, unsigned int work)
{
	static struct peer_took took[N_MAX];
	const struct peer_ask ask = {.length = size->bytes,
				     .warm = WARM,
				     .n = size->n,
				     .gap_ns = GAP_NS,
				     .deadline_us = DEADLINE};
	const char *name = places[place].name, *infix = works[work].infix;
	double us[PARTS], tail[PARTS];
	char arguments[96], error[512] = "";
	struct rig_params p = {.models = models,
			       .model = "echo",
			       .arguments = arguments,
			       .max_batch = 1,
			       .heartbeat_ms = 100,
			       .links = 1,
			       .slots = size->slots,
			       .nic = places[place].nic};
	struct peer_result r = {0};
	struct peer_link link;
	struct rig rig;
	int ret;

	snprintf(arguments, sizeof(arguments), "max_request=%u,%s", size->bytes,
		 works[work].arguments);
	ret = rig_start(&rig, &p, error, sizeof(error));
	if (ret == 0) {
		link = rig_peer_link(&rig, 0);
		ret = peer_nic_ask(nic, &link, &ask, took, &r, error, sizeof(error));
	}
	rig_stop(&rig);
	if (ret < 0 || r.fault != PEER_FINE || r.wrong_bytes > 0 || r.answered != WARM + size->n) {
		fprintf(stderr, "%s, %s: %s, fault %u, %lu of %u answered, %lu bytes wrong\n", name,
			size->name, error, r.fault, (unsigned long)r.answered, WARM + size->n,
			(unsigned long)r.wrong_bytes);
		return -1;
	}
	percentiles(took, size->n, 0.5, us);
	percentiles(took, size->n, 0.99, tail);
	report_add(report, us[RUNG], "%s_%sp50_us_%s", name, infix, size->name);
	report_add(report, tail[RUNG], "%s_%sp99_us_%s", name, infix, size->name);
	report_add(report, us[PLACED], "%s_%splaced_us_%s", name, infix, size->name);
	report_add(report, us[READ], "%s_%sread_us_%s", name, infix, size->name);
	report_add(report, us[WHOLE], "%s_%swhole_us_%s", name, infix, size->name);
	return us[RUNG];
}

int gpu_rings_measure(struct report *report, const char *models)
{
	static struct peer_nic *nic;
	static bool said;
	/* BENCH_ONE_GPU: one GPU plays both, to try the bench; its figures mean nothing. */
	int second = getenv("BENCH_ONE_GPU") != NULL ? 0 : 1;
	char how[160], error[256] = "";
	const char *lacks = peer_nic_lacks(0, second, how, sizeof(how));
	double hbm, host;

	if (!said)
		printf("rings: %s\n", lacks != NULL ? lacks : how);
	said = true;
	if (lacks != NULL)
		return 0;
	if (nic == NULL)
		nic = peer_nic_open(0, second, sizes[SIZES - 1].bytes, SLOTS_MAX, error,
				    sizeof(error));
	if (nic == NULL) {
		fprintf(stderr, "rings: %s\n", error);
		return -1;
	}
	for (unsigned int work = 0; work < sizeof(works) / sizeof(works[0]); work++) {
		for (size_t i = 0; i < SIZES; i++) {
			hbm = measure(report, models, nic, &sizes[i], 0, work);
			host = hbm < 0 ? -1 : measure(report, models, nic, &sizes[i], 1, work);
			if (host < 0)
				return -1;
			report_add(report, hbm / host, "hbm_ring_%sover_host_%s", works[work].infix,
				   sizes[i].name);
		}
	}
	cudaSetDevice(0); /* of the other parts */
	return 0;
}
