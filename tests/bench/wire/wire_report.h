/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wire-100g's scenarios, and what becomes of the counters of a measured span.
 */
#ifndef BENCH_WIRE_REPORT_H
#define BENCH_WIRE_REPORT_H

#include "common/report.h"
#include "wire/wire_sums.h"

struct wire_scenario {
	const char *name; /* as in the metrics */
	const char *text;
	struct wire_load load;
};

#define WIRE_SCENARIOS 5
extern const struct wire_scenario wire_scenarios[WIRE_SCENARIOS];

bool wire_report_wants(const struct wire_options *o, unsigned int scenario);

/* One span of one scenario: what <after> has more than <before>. */
void wire_report_add(struct report *report, const struct wire_options *o,
		     const struct wire_load *load, const struct wire_sample *before,
		     const struct wire_sample *after);
void wire_report_print(const struct report *report, const struct wire_options *o);
/* 0 or -errno. */
int wire_report_write(const struct report *report, const struct wire_options *o);

#endif
