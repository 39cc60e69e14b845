/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool: the cost of choosing a worker, the flows that move under maglev, and the effect of the
 * policies on latency where one worker is slow. See README.md.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/options.h"
#include "pool/pool_bench.h"
#include "../../unit/pick_table.h"

#define RUNS_DEFAULT 9

static void die(const char *reason)
{
	fprintf(stderr, "pool: %s\n", reason);
	exit(EXIT_FAILURE);
}

struct worker_pool *pool_create(unsigned int n)
{
	struct worker_pool *pool = workers_pool_create();
	struct worker_spec spec = {.model = POOL_MODEL,
				   .instance = 1,
				   .slots = 1024,
				   .max_request = 1472,
				   .max_reply = 1472,
				   .max_batch = 1,
				   .weight = 1,
				   .heartbeat_ms = 100};
	char error[160] = "no memory";

	for (unsigned int i = 0; i < n; i++) {
		struct worker *worker;

		snprintf(spec.name, sizeof(spec.name), "gpu-%u", i);
		worker = pool == NULL ? NULL : workers_register(pool, &spec, error, sizeof(error));
		if (worker == NULL)
			die(error);
		worker->state = WORKER_ACTIVE;
	}
	return pool;
}

struct pick_table *pool_table(struct worker_pool *pool, enum pick_policy policy)
{
	struct pick_table *table = pick_table_of_model(pool, POOL_MODEL, policy);

	if (table == NULL)
		die("no memory for a table");
	return table;
}

static void print(const struct report *report)
{
	for (unsigned int i = 0; i < report->n; i++) {
		const char *name = report->series[i]->name;

		printf("%-38s %9.3f (%.3f, %.3f)\n", name, report_median(report, name),
		       report_percentile(report, name, 10), report_percentile(report, name, 90));
	}
}

static bool wanted(const struct bench_options *o, const char *part)
{
	return o->only == NULL || strcmp(o->only, part) == 0;
}

int main(int argc, char **argv)
{
	static struct report report;
	struct report_origin origin;
	struct bench_options o;
	int ret;

	if (!bench_options_read(&o, argc, argv, "pool", "pick|maglev|sim", RUNS_DEFAULT))
		return 2;
	for (unsigned int run = 0; run < o.runs; run++) {
		if (wanted(&o, "pick"))
			pool_pick(&report);
		if (wanted(&o, "maglev"))
			pool_maglev(&report);
		if (wanted(&o, "sim"))
			pool_sim(&report, run);
	}
	origin = bench_origin(&o, "pool", false);
	print(&report);
	ret = bench_write(&o, &report, &origin);
	report_fini(&report);
	return ret < 0;
}
