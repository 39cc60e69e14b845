/* SPDX-License-Identifier: BSD-3-Clause */
/* bench: the load generator is in control/bench. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "cli.h"

/* Beside this program, or where programs are found. */
#define DPDK_PROGRAM "doorbell-bench"

/* The options again, for the program that has DPDK; returns only if that is not there. */
static int become_dpdk(char **argv)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - sizeof(DPDK_PROGRAM));
	char *slash;

	path[n > 0 ? n : 0] = '\0';
	slash = strrchr(path, '/');
	if (slash != NULL) {
		strcpy(slash + 1, DPDK_PROGRAM);
		execv(path, argv);
	}
	execvp(DPDK_PROGRAM, argv);
	return cli_usage_error("--dpdk: no program " DPDK_PROGRAM
			       " beside this one or in $PATH: %s; "
			       "install it, or leave --dpdk away to use kernel sockets",
			       strerror(errno));
}

int cli_bench(int argc, char **argv)
{
	struct bench_options options;
	int ret = bench_options_read(argc, argv, &options);

	if (ret != 0)
		return ret > 0 ? EXIT_SUCCESS : EXIT_USAGE;
	if (options.dpdk != NULL)
		return become_dpdk(argv);
	return bench_run(&options, &transport_udp);
}
