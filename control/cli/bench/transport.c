/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/bench/transport.h"

#include <sys/resource.h>

void transport_raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}
