/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "common/report.h"

static struct series *find(const struct report *report, const char *name)
{
	for (unsigned int i = 0; i < report->n; i++)
		if (strcmp(report->series[i]->name, name) == 0)
			return report->series[i];
	return NULL;
}

static struct series *create(struct report *report, const char *name)
{
	struct series *s = report->n < REPORT_SERIES_MAX ? calloc(1, sizeof(*s)) : NULL;

	if (s == NULL) {
		fprintf(stderr, "no room for the series %s\n", name);
		exit(EXIT_FAILURE);
	}
	snprintf(s->name, sizeof(s->name), "%s", name);
	report->series[report->n++] = s;
	return s;
}

void report_add(struct report *report, double value, const char *format, ...)
{
	char name[REPORT_NAME_MAX];
	va_list arguments;
	struct series *s;

	va_start(arguments, format);
	vsnprintf(name, sizeof(name), format, arguments);
	va_end(arguments);
	s = find(report, name);
	if (s == NULL)
		s = create(report, name);
	if (s->n < REPORT_RUNS_MAX)
		s->value[s->n++] = value;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double percentile(const struct series *s, double percent)
{
	double sorted[REPORT_RUNS_MAX], at = (s->n - 1) * percent / 100, below = floor(at);
	unsigned int i = (unsigned int)below;

	memcpy(sorted, s->value, s->n * sizeof(sorted[0]));
	qsort(sorted, s->n, sizeof(sorted[0]), compare);
	if (i + 1 >= s->n)
		return sorted[s->n - 1];
	return sorted[i] + (sorted[i + 1] - sorted[i]) * (at - below);
}

double report_percentile(const struct report *report, const char *name, double percent)
{
	const struct series *s = find(report, name);

	return s == NULL ? NAN : percentile(s, percent);
}

/* Rounds to a tenth; ratios to a thousandth. */
static json_t *rounded(double value)
{
	double parts = fabs(value) < 10 ? 1000 : 10;

	return json_real(round(value * parts) / parts);
}

int report_write(const struct report *report, const struct report_origin *o, const char *path)
{
	json_t *metrics = json_object(), *spread = json_object(), *root;
	int ret;

	for (unsigned int i = 0; i < report->n; i++) {
		const struct series *s = report->series[i];

		json_object_set_new(metrics, s->name, rounded(percentile(s, 50)));
		json_object_set_new(spread, s->name,
				    json_pack("[o, o]", rounded(percentile(s, 10)),
					      rounded(percentile(s, 90))));
	}
	root = json_pack("{s:s, s:s, s:s, s:s, s:i, s:o, s:o}", "bench", o->bench, "commit",
			 o->commit, "machine", o->machine, "pages", o->pages, "runs", (int)o->runs,
			 "metrics", metrics, "spread", spread);
	ret = json_dump_file(root, path, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
	json_decref(root);
	return ret == 0 ? 0 : -EIO;
}

void report_fini(struct report *report)
{
	for (unsigned int i = 0; i < report->n; i++)
		free(report->series[i]);
	report->n = 0;
}
