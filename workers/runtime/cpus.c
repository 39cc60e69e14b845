/* SPDX-License-Identifier: BSD-3-Clause */
#include "runtime/cpus.h"

#include <sched.h>
#include <stdio.h>

_Static_assert(CPU_SETSIZE <= 1024, "four digits at most and a comma for each CPU");

const char *cpus_allowed(char text[CPUS_TEXT_MAX])
{
	cpu_set_t set;
	int n = 0;

	CPU_ZERO(&set);
	sched_getaffinity(0, sizeof(set), &set);
	text[0] = '\0';
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &set))
			n += sprintf(text + n, "%s%d", n > 0 ? "," : "", i);
	return text;
}
