/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conntrack-scale's parts, and the metrics made from their counters: one row for each part and
 * number of lcores.
 */
#ifndef BENCH_SCALE_REPORT_H
#define BENCH_SCALE_REPORT_H

#include "common/report.h"
#include "wire/wire_sums.h"

enum scale_part { SCALE_1024B, SCALE_64B, SCALE_NEW, SCALE_PARTS };

struct scale_part_info {
	const char *name; /* for --only */
	const char *text;
	/* A metric is <prefix>UNIT<size>_N_lcores. */
	const char *prefix, *size;
	struct wire_load load;
};

extern const struct scale_part_info scale_parts[SCALE_PARTS];

bool scale_report_wants(const struct wire_options *o, enum scale_part part);

/* Requests per second: as measured, and as they would be with all lcores busy all the time. */
struct scale_rate {
	double measured, capacity;
};

/* One span of a step with the options <o>. */
struct scale_rate scale_report_add(struct report *report, const struct wire_options *o,
				   enum scale_part part, const struct wire_sample *before,
				   const struct wire_sample *after);
/* Report <rate> with <lcores> as a fraction of <lcores> times the rate of one, in one run. */
void scale_report_linear(struct report *report, unsigned int lcores, enum scale_part part,
			 const struct scale_rate *one, const struct scale_rate *rate);

/* <step>: the options of each step of <all>. */
void scale_report_print(const struct report *report, const struct wire_options *all,
			const struct wire_options step[]);
/* 0 or -errno. */
int scale_report_write(const struct report *report, const struct wire_options *all);

#endif
