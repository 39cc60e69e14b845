/* SPDX-License-Identifier: BSD-3-Clause */
/* The options that every bench has. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <stdbool.h>

#include "common/report.h"

struct bench_options {
	const char *json, *commit, *machine;
	const char *only; /* a part of the bench, by its name in the metrics; NULL = all */
	unsigned int runs;
	bool hugepages;
};

/* Returns false after printing the help or an error. <only>: the values of --only, or NULL if there
 * is no such option. */
bool bench_options_read(struct bench_options *o, int argc, char **argv, const char *bench,
			const char *only, unsigned int runs);
/* Returns where and on what the numbers were measured. */
struct report_origin bench_origin(const struct bench_options *o, const char *bench, bool huge);
/* Writes <report> to --json, if that is given. 0 or -errno. */
int bench_write(const struct bench_options *o, const struct report *report,
		const struct report_origin *origin);

#endif
