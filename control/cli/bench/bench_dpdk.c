/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doorbell-bench: the load generator on a DPDK port. Takes the options of doorbell bench, which
 * becomes this program with --dpdk.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_errno.h>

#include "cli/bench/bench.h"
#include "cli/bench/port_transport.h"
#include "runtime/cpus.h"
#include "runtime/eal_end.h"

#define EXIT_ERROR 2
#define MEMORY_MB  "128"

/*
 * Start the EAL with one lcore that floats over the CPUs we may use, and pages of 4 KiB, so that it
 * starts on any machine.
 */
static int start_eal(const struct bench_options *o)
{
	char cpus[CPUS_TEXT_MAX], lcores[CPUS_TEXT_MAX + 32];
	char *argument[16] = {"doorbell-bench", lcores};
	int argc = 2;

	snprintf(lcores, sizeof(lcores), "--lcores=0@(%s)", cpus_allowed(cpus));
	argument[argc++] = "--no-huge";
	argument[argc++] = "--no-shconf";
	argument[argc++] = "-m";
	argument[argc++] = MEMORY_MB;
	/* A PCI device is named by its address; probe no other. */
	if (strchr(o->dpdk, ':') != NULL && strncmp(o->dpdk, "net_", 4) != 0) {
		argument[argc++] = "--allow";
		argument[argc++] = (char *)(uintptr_t)o->dpdk;
	} else {
		argument[argc++] = "--no-pci";
	}
	argument[argc++] = "--no-telemetry";
	argument[argc++] = "--log-level=lib.*:warning";
	argument[argc++] = "--log-level=pmd.*:warning";
	return rte_eal_init(argc, argument) < 0 ? -rte_errno : 0;
}

int main(int argc, char **argv)
{
	struct bench_options options;
	int ret = bench_options_read(argc, argv, &options);

	if (ret != 0)
		return ret > 0 ? EXIT_SUCCESS : EXIT_ERROR;
	if (options.dpdk == NULL) {
		fprintf(stderr,
			"doorbell-bench: give --dpdk DEVICE; without, use doorbell bench\n");
		return EXIT_ERROR;
	}
	if (start_eal(&options) < 0) {
		fprintf(stderr, "doorbell-bench: the EAL did not start (reason above)\n");
		return EXIT_ERROR;
	}
	ret = bench_run(&options, &transport_port);
	eal_end();
	return ret;
}
