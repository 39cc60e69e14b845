/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "wire/wire_report.h"

const struct wire_scenario wire_scenarios[WIRE_SCENARIOS] = {
	{"gbps_1514b", "walk, 1514 B", {.frame = 1514}},
	{"forward_gbps_1514b", "5-tuple swap, 1514 B", {.frame = 1514, .forward = true}},
	{"gbps_1024b", "walk, 1024 B", {.frame = 1024}},
	{"forward_gbps_1024b", "5-tuple swap, 1024 B", {.frame = 1024, .forward = true}},
	{"no_sum_gbps_1514b", "walk, 1514 B, no UDP sum", {.frame = 1514, .no_sum = true}},
};

bool wire_report_wants(const struct wire_options *o, unsigned int scenario)
{
	return o->only == NULL || strcmp(o->only, wire_scenarios[scenario].name) == 0;
}

/* Returns the name of the scenario that the load belongs to. */
static const char *name_of(const struct wire_load *load)
{
	for (unsigned int i = 0; i < WIRE_SCENARIOS; i++)
		if (wire_scenarios[i].load.frame == load->frame &&
		    wire_scenarios[i].load.forward == load->forward &&
		    wire_scenarios[i].load.no_sum == load->no_sum)
			return wire_scenarios[i].name;
	return "unknown";
}

/* Names a scenario's other metrics: <unit> replaces "gbps", and the cores come last. */
static const char *metric(char *to, size_t size, const char *name, const char *unit,
			  const struct wire_options *o)
{
	const char *at = strstr(name, "gbps");

	snprintf(to, size, "%.*s%s%s_%u_core%s", (int)(at - name), name, unit, at + 4, o->lcores,
		 o->lcores > 1 ? "s" : "");
	return to;
}

static void add_stages(struct report *report, const struct wire_options *o, const char *name,
		       const struct wire_sums *s)
{
	char to[REPORT_NAME_MAX], unit[64];

	for (unsigned int k = 0; k < LB_STAGES; k++) {
		snprintf(unit, sizeof(unit), "%s_cycles", lb_stage_name(k));
		report_add(report, s->stage[k] / s->lb_requests, "%s",
			   metric(to, sizeof(to), name, unit, o));
	}
}

void wire_report_add(struct report *report, const struct wire_options *o,
		     const struct wire_load *load, const struct wire_sample *before,
		     const struct wire_sample *after)
{
	const char *name = name_of(load);
	char to[REPORT_NAME_MAX];
	struct wire_sums s;

	wire_sums_take(&s, o, load, before, after);
#define ADD(unit, value) report_add(report, value, "%s", metric(to, sizeof(to), name, unit, o))
	ADD("gbps", s.requests / s.seconds * load->frame * 8 / 1e9);
	ADD("gbps_per_core", s.requests / s.seconds * load->frame * 8 / 1e9 / o->lcores);
	ADD("mpps", s.requests / s.seconds / 1e6);
	ADD("request_cycles", s.lb_busy / s.lb_requests);
	ADD("lb_busy_percent", s.lb_share * 100);
	ADD("lb_cpu_percent", s.lb_cpu * 100);
	ADD("gen_busy_percent", s.gen_share * 100);
	ADD("gen_cpu_percent", s.gen_cpu * 100);
#undef ADD
	if (load->forward)
		return;
	report_add(report, s.replies / s.seconds / 1e6, "%s",
		   metric(to, sizeof(to), name, "reply_mpps", o));
	report_add(report, s.packets_in / s.turns, "%s",
		   metric(to, sizeof(to), name, "packets_per_turn", o));
	add_stages(report, o, name, &s);
}

static double median(const struct report *report, const struct wire_options *o, const char *name,
		     const char *unit)
{
	char to[REPORT_NAME_MAX];

	return report_median(report, metric(to, sizeof(to), name, unit, o));
}

static void print_scenario(const struct report *report, const struct wire_options *o,
			   const struct wire_scenario *s)
{
	char to[REPORT_NAME_MAX];

	metric(to, sizeof(to), s->name, "gbps", o);
	printf("%-26s %6.1f %6.1f %6.1f %6.2f %7.0f %5.0f %5.0f %5.0f %5.0f\n", s->text,
	       report_median(report, to), report_percentile(report, to, 10),
	       report_percentile(report, to, 90), median(report, o, s->name, "mpps"),
	       median(report, o, s->name, "request_cycles"),
	       median(report, o, s->name, "lb_busy_percent"),
	       median(report, o, s->name, "lb_cpu_percent"),
	       median(report, o, s->name, "gen_busy_percent"),
	       median(report, o, s->name, "gen_cpu_percent"));
}

static void print_stages(const struct report *report, const struct wire_options *o)
{
	char unit[64];

	printf("\n%-26s", "cycles per request");
	for (unsigned int k = 0; k < LB_STAGES; k++)
		printf(" %9.9s", lb_stage_name(k));
	printf("  packets/turn\n");
	for (unsigned int i = 0; i < WIRE_SCENARIOS; i++) {
		if (wire_scenarios[i].load.forward || !wire_report_wants(o, i))
			continue;
		printf("%-26s", wire_scenarios[i].text);
		for (unsigned int k = 0; k < LB_STAGES; k++) {
			snprintf(unit, sizeof(unit), "%s_cycles", lb_stage_name(k));
			printf(" %9.0f", median(report, o, wire_scenarios[i].name, unit));
		}
		printf(" %13.1f\n", median(report, o, wire_scenarios[i].name, "packets_per_turn"));
	}
}

static const char *pages(const struct wire_options *o)
{
	return o->hugepages ? "2 MiB pages" : "4 KiB pages";
}

void wire_report_print(const struct report *report, const struct wire_options *o)
{
	printf("%u load balancer core%s, %u generator core%s, %u flows, %u requests outstanding "
	       "per "
	       "queue, replies of %u bytes%s%s\n"
	       "medians (p10, p90) of %u interleaved runs of %u ms; commit %s, %s, %s\n\n",
	       o->lcores, o->lcores > 1 ? "s" : "", o->threads, o->threads > 1 ? "s" : "", o->flows,
	       o->outstanding, o->reply, o->zero_copy ? "" : ", memif copies",
	       o->verify ? ", every byte verified" : "", o->runs, o->measure_ms, o->commit,
	       o->machine, pages(o));
	printf("%-26s %6s %6s %6s %6s %7s %11s %11s\n", "", "Gbit/s", "p10", "p90", "Mpps",
	       "cycles", "LB busy/CPU", "gen busy/CPU");
	for (unsigned int i = 0; i < WIRE_SCENARIOS; i++)
		if (wire_report_wants(o, i))
			print_scenario(report, o, &wire_scenarios[i]);
	print_stages(report, o);
	printf("\nspans measured again per span: %.0f (p90 %.0f)\nlost %.0f\n",
	       report_median(report, "disturbed_spans"),
	       report_percentile(report, "disturbed_spans", 90),
	       report_percentile(report, "lost", 100));
}

int wire_report_write(const struct report *report, const struct wire_options *o)
{
	struct report_origin origin = {
		.bench = "wire-100g",
		.commit = o->commit,
		.machine = o->machine,
		.pages = pages(o),
		.runs = o->runs,
	};

	return report_write(report, &origin, o->json);
}
