/* SPDX-License-Identifier: BSD-3-Clause */
/* The CPUs of this process as text. */
#include <criterion/criterion.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/cpus.h"

Test(runtime_cpus, names_each_cpu_that_the_thread_may_run_on_once)
{
	char text[CPUS_TEXT_MAX], *at = text;
	cpu_set_t allowed, named;

	CPU_ZERO(&named);
	sched_getaffinity(0, sizeof(allowed), &allowed);
	cr_assert_eq(cpus_allowed(text), text);
	for (;;) {
		unsigned long cpu = strtoul(at, &at, 10);

		cr_assert_not(CPU_ISSET(cpu, &named), "CPU %lu twice in %s", cpu, text);
		CPU_SET(cpu, &named);
		if (*at == '\0')
			break;
		cr_assert_eq(*at++, ',', "%s", text);
	}
	cr_assert(CPU_EQUAL(&named, &allowed), "%s", text);
}

Test(runtime_cpus, names_one_cpu_without_a_comma)
{
	char text[CPUS_TEXT_MAX], expected[16];
	cpu_set_t allowed, one;
	int first = 0;

	sched_getaffinity(0, sizeof(allowed), &allowed);
	while (!CPU_ISSET(first, &allowed))
		first++;
	CPU_ZERO(&one);
	CPU_SET(first, &one);
	cr_assert_eq(sched_setaffinity(0, sizeof(one), &one), 0);
	snprintf(expected, sizeof(expected), "%d", first);
	cr_assert_str_eq(cpus_allowed(text), expected);
}
