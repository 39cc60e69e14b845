/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs every row against rdma_rxe over each way, and counts.
 *
 * usage: rxe-rows DEVICE PEER-ADDRESS PEER-PORT [PATTERN]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_malloc.h>

#include "rig.h"

static const struct rig_way ways[] = {
	{"IPv4, 1024", 4, 1024, 1, "::ffff:10.77.0.9", "::ffff:10.77.0.2"},
	{"IPv6, 1024", 6, 1024, 2, "fd00:77::9", "fd00:77::2"},
	{"IPv4, 4096", 4, 4096, 1, "::ffff:10.77.0.9", "::ffff:10.77.0.2"},
	{"IPv6, 4096", 6, 4096, 2, "fd00:77::9", "fd00:77::2"},
	{"link local, 1024", 6, 1024, 0, "fe80::9", "fe80::ff:fe01:1"},
};

static const struct {
	const char *name;
	const struct row *rows;
	uint32_t mtu_max; /* larger ones would show nothing new */
} suites[] = {
	{"neighbour", neighbour_rows, 1024},
	{"requester", requester_rows, 4096},
	{"wire", wire_rows, 1024},
	{"responder", responder_rows, 4096},
};

static unsigned int passed, failed;

/* True if the row runs over this way. ROW_ONCE: over the first way of each family. */
static bool applies(const struct row *row, const struct rig_way *way)
{
	if (row->only & ROW_V4 && way->family != 4)
		return false;
	if (row->only & ROW_V6 && way->family != 6)
		return false;
	return !(row->only & ROW_ONCE) || way == &ways[0] || way == &ways[1];
}

static void run(struct rig *rig, const char *suite, const struct row *row, const char *pattern)
{
	char name[200];
	uint64_t start = rte_rdtsc();

	snprintf(name, sizeof(name), "%s: %s: %s", rig->way->name, suite, row->name);
	if (strstr(name, pattern) == NULL)
		return;
	if (setjmp(rig->failed) == 0) {
		row->run(rig);
		passed++;
		printf("ok      %s (%lu ms)\n", name,
		       (rte_rdtsc() - start) / (rte_get_tsc_hz() / 1000));
	} else {
		failed++;
		printf("FAILED  %s\n", name);
	}
	fflush(stdout);
	if (setjmp(rig->failed) == 0)
		rig_reset(rig);
}

static void run_suite(struct rig *rig, const struct rig_way *way, size_t i, const char *pattern)
{
	rig->way = way;
	for (const struct row *row = suites[i].rows; row->name != NULL; row++)
		if (applies(row, way))
			run(rig, suites[i].name, row, pattern);
}

static int eal(void)
{
	char *argv[] = {"rxe-rows",       "--no-huge", "--no-shconf", "--no-pci",
			"--no-telemetry", "-m",        "256",         NULL};

	return rte_eal_init(7, argv);
}

int main(int argc, char **argv)
{
	unsigned int leaked;
	struct rig *rig;

	if (argc < 4) {
		fprintf(stderr, "usage: rxe-rows DEVICE PEER-ADDRESS PEER-PORT [PATTERN]\n");
		return 2;
	}
	rig = calloc(1, sizeof(*rig));
	if (rig == NULL || eal() < 0 || rig_open(rig, argv[1], argv[2], atoi(argv[3])) < 0)
		return 1;
	for (size_t w = 0; w < RTE_DIM(ways); w++)
		for (size_t i = 0; i < RTE_DIM(suites); i++)
			if (ways[w].mtu <= suites[i].mtu_max)
				run_suite(rig, &ways[w], i, argc > 4 ? argv[4] : "");
	leaked = rig_close(rig);
	free(rig);
	if (leaked > 0)
		printf("FAILED  %u mbufs leaked\n", leaked);
	printf("%u rows passed, %u failed\n", passed, failed);
	return failed > 0 || leaked > 0;
}
