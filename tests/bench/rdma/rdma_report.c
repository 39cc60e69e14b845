/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "rdma/rdma_report.h"

int rdma_report(const struct report *report, const struct rdma_options *o)
{
	struct report_origin origin = {
		.bench = "rdma",
		.commit = o->commit,
		.machine = o->machine,
		.pages = o->hugepages ? "2 MiB pages" : "4 KiB pages",
		.runs = o->runs,
	};
	int ret = 0;

	printf("rdma: commit %s, %s, %s\n", o->commit, o->machine, origin.pages);
	printf("%u repetitions; requester on CPU %u, receiver on CPU %u\n\n", o->runs,
	       o->sender_cpu, o->receiver_cpu);
	printf("%-44s %9s %9s %9s\n", "", "median", "p10", "p90");
	for (unsigned int i = 0; i < report->n; i++) {
		const char *name = report->series[i]->name;

		printf("%-44s %9.3f %9.3f %9.3f\n", name, report_median(report, name),
		       report_percentile(report, name, 10), report_percentile(report, name, 90));
	}
	if (o->json != NULL)
		ret = report_write(report, &origin, o->json);
	if (ret < 0)
		fprintf(stderr, "rdma: cannot write %s\n", o->json);
	return ret;
}
