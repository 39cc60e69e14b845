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
	bool sweep;   /* only with --sweep */
	bool several; /* only with several lcores */
};

enum wire_scenario_index {
	WIRE_UDP_1514,
	WIRE_UDP_1514_FORWARD,
	WIRE_UDP_1514_NIC,
	WIRE_UDP_1024,
	WIRE_UDP_1024_FORWARD,
	WIRE_UDP_1514_NO_SUM,
	WIRE_TCP_1MIB,
	WIRE_TCP_1MIB_FORWARD,
	WIRE_TCP_1MIB_NIC,
	WIRE_TCP_1MIB_ONE,
	WIRE_UDP_64,
	WIRE_UDP_64_FORWARD,
	WIRE_UDP_256,
	WIRE_UDP_256_FORWARD,
	WIRE_UDP_512,
	WIRE_UDP_512_FORWARD,
	WIRE_SCENARIOS,
};
extern const struct wire_scenario wire_scenarios[WIRE_SCENARIOS];

bool wire_report_wants(const struct wire_options *o, unsigned int scenario);

/* One span of one scenario: what <after> has more than <before>. Returns Gbit/s. */
double wire_report_add(struct report *report, const struct wire_options *o, unsigned int scenario,
		       const struct wire_sample *before, const struct wire_sample *after);
/* Ratios of one run, from the <gbps> of its scenarios; 0: not measured. */
void wire_report_compare(struct report *report, const struct wire_options *o,
			 const double gbps[WIRE_SCENARIOS]);
void wire_report_print(const struct report *report, const struct wire_options *o);
/* 0 or -errno. */
int wire_report_write(const struct report *report, const struct wire_options *o);

#endif
