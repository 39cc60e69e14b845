/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wire-100g: the end-to-end throughput of one load balancer core, over two memif ports, with a
 * million flows and real packets. This is the parent, which decides what to measure and when. See
 * README.md.
 */
#include <stdio.h>

#include "wire/wire_parent.h"
#include "wire/wire_report.h"

static struct report report;

/* Requests by TCP whose bytes are all compared, without and with losses. */
#define CHECK_REQUESTS 24
#define CHECK_LOSE     173 /* segments */

static double measure(struct wire_parent *p, unsigned int scenario)
{
	struct wire_load load = wire_scenarios[scenario].load;
	struct wire_sample before, after;

	load.verify = p->o.verify;
	report_add(&report, wire_parent_measure(p, &load, WIRE_SETTLE_MS, &before, &after),
		   "disturbed_spans");
	return wire_report_add(&report, &p->o, scenario, &before, &after);
}

static void measure_all(struct wire_parent *p)
{
	for (unsigned int run = 0; run < p->o.runs; run++) {
		double gbps[WIRE_SCENARIOS] = {0};

		for (unsigned int i = 0; i < WIRE_SCENARIOS; i++)
			if (wire_report_wants(&p->o, i))
				gbps[i] = measure(p, i);
		wire_report_compare(&report, &p->o, gbps);
		report_add(&report, p->lost, "lost");
	}
}

int main(int argc, char **argv)
{
	static struct wire_parent p;
	int ret = 0;

	wire_name("wire-100g");
	if (!wire_options_parse(argc, argv, WIRE_BENCH_100G, &p.o))
		return 2;
	if (p.o.print_pages)
		return printf("%u\n", wire_options_pages(&p.o)) < 0;
	wire_parent_start(&p);
	wire_parent_open_flows(&p);
	wire_parent_check_tcp(&p, CHECK_REQUESTS, 0);
	wire_parent_check_tcp(&p, CHECK_REQUESTS, CHECK_LOSE);
	measure_all(&p);
	wire_parent_end(&p);
	wire_report_print(&report, &p.o);
	if (p.o.json != NULL)
		ret = wire_report_write(&report, &p.o);
	if (ret < 0)
		fprintf(stderr, "wire-100g: cannot write %s\n", p.o.json);
	report_fini(&report);
	return ret < 0;
}
