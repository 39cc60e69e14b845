/* SPDX-License-Identifier: BSD-3-Clause */
/* The CPU's instruction sets and clock. */
#include <stdio.h>
#include <string.h>

#include "cli/doctor/check.h"

#define CLOCK "/sys/devices/system/clocksource/clocksource0"

/* The first CPU's flags in <text>, or NULL when /proc/cpuinfo has none. */
static const char *flags(const struct doctor *d, char *text, size_t size)
{
	const char *line;

	doctor_read(d, text, size, "/proc/cpuinfo");
	line = doctor_line(text, "flags");
	if (line != NULL)
		*strchrnul((char *)line, '\n') = '\0';
	return line;
}

static bool no_flags(struct doctor *d, const char *have)
{
	if (have == NULL)
		doctor_report(d, DOCTOR_NA, "/proc/cpuinfo has no flags of an x86 CPU");
	return have == NULL;
}

/* Write those of <want> that are missing into <text>; returns how many. */
static unsigned int missing(const char *have, const char *const *want, char *text, size_t size)
{
	unsigned int n = 0;
	size_t at = 0;

	text[0] = '\0';
	for (; *want != NULL; want++) {
		if (doctor_has_word(have, *want))
			continue;
		n++;
		if (at < size)
			at += snprintf(text + at, size - at, "%s%s", at ? ", " : "", *want);
	}
	return n;
}

void check_cpu_flags(struct doctor *d)
{
	/* x86-64-v3, the default target of the build */
	static const char *const v3[] = {"avx2", "bmi1",  "bmi2", "fma",
					 "f16c", "movbe", "abm",  NULL};
	char text[16384], lacks[160];
	const char *have = flags(d, text, sizeof(text));

	if (no_flags(d, have))
		return;
	if (missing(have, v3, lacks, sizeof(lacks)) == 0) {
		doctor_report(d, DOCTOR_OK, "AVX2 and what else x86-64-v3 has");
		return;
	}
	doctor_report(d, DOCTOR_PROBLEM, "missing: %s; programs built for x86-64-v3 will not run",
		      lacks);
	doctor_fix(d, "build on this machine with meson setup -Dcpu=native; in a VM give it the "
		      "host's CPU (-cpu host)");
}

void check_cpu_icrc(struct doctor *d)
{
	static const char *const fast[] = {"vpclmulqdq", "avx512f", "avx512bw", "avx512vl", NULL};
	static const char *const fair[] = {"pclmulqdq", NULL};
	char text[16384], lacks[160], ignored[32];
	const char *have = flags(d, text, sizeof(text));

	if (no_flags(d, have))
		return;
	if (missing(have, fast, lacks, sizeof(lacks)) == 0) {
		doctor_report(d, DOCTOR_OK, "VPCLMULQDQ and AVX-512");
	} else if (missing(have, fair, ignored, sizeof(ignored)) == 0) {
		doctor_report(d, DOCTOR_WARNING, "checksums of RoCE packets without: %s", lacks);
		doctor_fix(d,
			   "works, with more cycles per byte: give it one more lcore, a CPU with "
			   "VPCLMULQDQ, or in a VM the host's CPU (-cpu host)");
	} else {
		doctor_report(d, DOCTOR_WARNING, "checksums of RoCE packets without PCLMULQDQ");
		doctor_fix(d, "use a CPU with PCLMULQDQ; in a VM give it the host's (-cpu host)");
	}
}

void check_clock(struct doctor *d)
{
	static const char *const invariant[] = {"constant_tsc", "nonstop_tsc", NULL};
	char text[16384], lacks[64], current[64], available[256];
	const char *have = flags(d, text, sizeof(text));

	doctor_read(d, current, sizeof(current), CLOCK "/current_clocksource");
	doctor_read(d, available, sizeof(available), CLOCK "/available_clocksource");
	if (no_flags(d, have))
		return;
	if (missing(have, invariant, lacks, sizeof(lacks)) > 0) {
		doctor_report(d, DOCTOR_WARNING,
			      "the TSC, which every timeout is counted in, may change its pace: "
			      "missing %s",
			      lacks);
		doctor_fix(d, "in a VM: -cpu host,+invtsc; else a CPU with an invariant TSC");
	} else if (strcmp(current, "tsc") == 0) {
		doctor_report(d, DOCTOR_OK, "invariant TSC, and the kernel uses it");
	} else if (doctor_has_word(available, "tsc")) {
		doctor_report(d, DOCTOR_WARNING, "invariant TSC, but the kernel uses '%s'",
			      current);
		doctor_fix(d, "echo tsc > " CLOCK "/current_clocksource");
	} else {
		doctor_report(d, DOCTOR_WARNING,
			      "the kernel uses '%s' and found the TSC not to be trusted", current);
		doctor_fix(d, "look why: dmesg | grep -i tsc; if it is known to be good, boot with "
			      "tsc=reliable");
	}
}
