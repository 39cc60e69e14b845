/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doorbell doctor: looks at a machine before or after the start, and says what is wrong and how to
 * mend it. It changes nothing. No check can end the program or keep it waiting, as each runs in a
 * process of its own with a time limit.
 */
#ifndef DOCTOR_H
#define DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum doctor_status { DOCTOR_OK, DOCTOR_NA, DOCTOR_WARNING, DOCTOR_PROBLEM };

/*
 * Bits: the program that is to run here. DOCTOR_MACHINE, when none was named, examines the machine.
 */
enum doctor_side { DOCTOR_LB = 1, DOCTOR_AGENT = 2, DOCTOR_MACHINE = 3 };

/* The operator's options; NULL or 0 when not given. */
struct doctor_question {
	enum doctor_side side;
	const char *root; /* folder that has /sys and /proc, or "" */
	/* lb */
	const char *config, *socket;
	/* options of the agent */
	const char *lb, *device, *address, *engine, *lb_fabric_address;
	uint32_t mtu, memory_mb, gpu_memory_mb;
	bool no_hugepages;
};

#define DOCTOR_FOUND_MAX    320
#define DOCTOR_FIX_MAX      400
#define DOCTOR_FINDINGS_MAX 32 /* per check */

struct doctor_finding {
	enum doctor_status status;
	char found[DOCTOR_FOUND_MAX];
	char fix[DOCTOR_FIX_MAX]; /* a command or a key; never empty in a warning or a problem */
};

/* Called with one finding of the check <name>. */
typedef void doctor_say(const char *name, const struct doctor_finding *finding, void *context);

/* Run every check that fits the question, in order. Returns 0, or -errno when none can be run. */
int doctor_run(const struct doctor_question *question, doctor_say *say, void *context);

#endif
