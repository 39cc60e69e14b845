/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "wire/wire_report.h"

const struct wire_scenario wire_scenarios[WIRE_SCENARIOS] = {
#define WALK(bytes)                                                                                \
	{                                                                                          \
		.frame = (bytes)                                                                   \
	}
#define FORWARD(bytes)                                                                             \
	{                                                                                          \
		.frame = (bytes), .forward = true                                                  \
	}
	[WIRE_UDP_1514] = {"gbps_1514b", "walk, 1514 B", WALK(1514)},
	[WIRE_UDP_1514_FORWARD] = {"forward_gbps_1514b", "5-tuple swap, 1514 B", FORWARD(1514)},
	[WIRE_UDP_1514_NIC] = {"nic_checks_gbps_1514b",
			       "walk, 1514 B, NIC checks",
			       {.frame = 1514, .nic_checks = true}},
	[WIRE_UDP_1024] = {"gbps_1024b", "walk, 1024 B", WALK(1024)},
	[WIRE_UDP_1024_FORWARD] = {"forward_gbps_1024b", "5-tuple swap, 1024 B", FORWARD(1024)},
	[WIRE_UDP_1514_NO_SUM] = {"no_sum_gbps_1514b",
				  "walk, 1514 B, no UDP sum",
				  {.frame = 1514, .no_sum = true}},
	[WIRE_TCP_1MIB] = {"tcp_gbps_1mib", "TCP, 1 MiB", {.tcp = true}},
	[WIRE_TCP_1MIB_FORWARD] = {"tcp_forward_gbps_1mib",
				   "5-tuple swap, TCP, 1 MiB",
				   {.tcp = true, .forward = true}},
	[WIRE_TCP_1MIB_NIC] = {"tcp_nic_checks_gbps_1mib",
			       "TCP, 1 MiB, NIC checks",
			       {.tcp = true, .nic_checks = true}},
	[WIRE_TCP_1MIB_ONE] = {"tcp_one_of_gbps_1mib",
			       "the same, one queue only",
			       {.tcp = true, .nic_checks = true, .one_queue = true},
			       .several = true},
	[WIRE_UDP_64] = {"gbps_64b", "walk, 64 B", WALK(64), .sweep = true},
	[WIRE_UDP_64_FORWARD] = {"forward_gbps_64b", "5-tuple swap, 64 B", FORWARD(64),
				 .sweep = true},
	[WIRE_UDP_256] = {"gbps_256b", "walk, 256 B", WALK(256), .sweep = true},
	[WIRE_UDP_256_FORWARD] = {"forward_gbps_256b", "5-tuple swap, 256 B", FORWARD(256),
				  .sweep = true},
	[WIRE_UDP_512] = {"gbps_512b", "walk, 512 B", WALK(512), .sweep = true},
	[WIRE_UDP_512_FORWARD] = {"forward_gbps_512b", "5-tuple swap, 512 B", FORWARD(512),
				  .sweep = true},
};

/* Is <name> in the list <names>, "a,b"? */
static bool is_listed(const char *names, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = names; at != NULL; at = strchr(at, ',')) {
		at += *at == ',';
		if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0'))
			return true;
	}
	return false;
}

bool wire_report_wants(const struct wire_options *o, unsigned int scenario)
{
	const struct wire_scenario *s = &wire_scenarios[scenario];

	if ((s->sweep && !o->sweep) || (s->several && o->lcores == 1))
		return false;
	return o->only == NULL || is_listed(o->only, s->name);
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

double wire_report_add(struct report *report, const struct wire_options *o, unsigned int scenario,
		       const struct wire_sample *before, const struct wire_sample *after)
{
	const struct wire_load *load = &wire_scenarios[scenario].load;
	const char *name = wire_scenarios[scenario].name;
	char to[REPORT_NAME_MAX];
	struct wire_sums s;
	double gbps;

	wire_sums_take(&s, o, load, before, after);
	gbps = s.requests / s.seconds * wire_sums_frame(load) * 8 / 1e9;
	report_add(report, s.resent, "resent_segments");
#define ADD(unit, value) report_add(report, value, "%s", metric(to, sizeof(to), name, unit, o))
	ADD("gbps", gbps);
	ADD("gbps_per_core", gbps / o->lcores);
	ADD("mpps", s.requests / s.seconds / 1e6);
	ADD("request_cycles", s.lb_busy / s.lb_requests);
	ADD("lb_busy_percent", s.lb_share * 100);
	ADD("lb_cpu_percent", s.lb_cpu * 100);
	ADD("gen_busy_percent", s.gen_share * 100);
	ADD("gen_cpu_percent", s.gen_cpu * 100);
#undef ADD
	if (load->forward)
		return gbps;
	report_add(report, s.replies / s.seconds / 1e6, "%s",
		   metric(to, sizeof(to), name, "reply_mpps", o));
	report_add(report, s.packets_in / s.turns, "%s",
		   metric(to, sizeof(to), name, "packets_per_turn", o));
	add_stages(report, o, name, &s);
	return gbps;
}

static void add_ratio(struct report *report, const struct wire_options *o, double value,
		      double divisor, const char *name)
{
	if (value > 0 && divisor > 0)
		report_add(report, value / divisor, "%s_%u_core%s", name, o->lcores,
			   o->lcores > 1 ? "s" : "");
}

void wire_report_compare(struct report *report, const struct wire_options *o,
			 const double gbps[WIRE_SCENARIOS])
{
	add_ratio(report, o, gbps[WIRE_UDP_1514_NIC], gbps[WIRE_UDP_1514_FORWARD],
		  "udp_1514b_over_forward");
	add_ratio(report, o, gbps[WIRE_UDP_1514], gbps[WIRE_UDP_1514_FORWARD],
		  "udp_1514b_over_forward_software_sums");
	add_ratio(report, o, gbps[WIRE_TCP_1MIB_NIC], gbps[WIRE_TCP_1MIB_FORWARD],
		  "tcp_1mib_over_forward");
	add_ratio(report, o, gbps[WIRE_TCP_1MIB], gbps[WIRE_TCP_1MIB_FORWARD],
		  "tcp_1mib_over_forward_software_sums");
	add_ratio(report, o, gbps[WIRE_TCP_1MIB_NIC], gbps[WIRE_TCP_1MIB_ONE] * o->lcores,
		  "linear_tcp");
}

static void print_ratios(const struct report *report)
{
	for (unsigned int i = 0; i < report->n; i++) {
		const char *name = report->series[i]->name;

		if (strstr(name, "_over_") != NULL || strncmp(name, "linear_", 7) == 0)
			printf("%-46s %6.3f %6.3f %6.3f\n", name, report_median(report, name),
			       report_percentile(report, name, 10),
			       report_percentile(report, name, 90));
	}
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
	printf("%u load balancer core%s, %u generator core%s, %u flows, %u requests or segments "
	       "outstanding per queue, %u connections, replies of %u bytes%s%s\n"
	       "medians (p10, p90) of %u interleaved runs of %u ms; commit %s, %s, %s\n\n",
	       o->lcores, o->lcores > 1 ? "s" : "", o->threads, o->threads > 1 ? "s" : "", o->flows,
	       o->outstanding, o->connections, o->reply, o->zero_copy ? "" : ", memif copies",
	       o->verify ? ", every byte verified" : "", o->runs, o->measure_ms, o->commit,
	       o->machine, pages(o));
	printf("%-26s %6s %6s %6s %6s %7s %11s %11s\n", "", "Gbit/s", "p10", "p90", "Mpps",
	       "cycles", "LB busy/CPU", "gen busy/CPU");
	for (unsigned int i = 0; i < WIRE_SCENARIOS; i++)
		if (wire_report_wants(o, i))
			print_scenario(report, o, &wire_scenarios[i]);
	print_stages(report, o);
	printf("\n%-46s %6s %6s %6s\n", "ratios of a run", "median", "p10", "p90");
	print_ratios(report);
	printf("\nsegments of TCP sent again in a span: %.0f (p90 %.0f)\n",
	       report_median(report, "resent_segments"),
	       report_percentile(report, "resent_segments", 90));
	printf("spans measured again per span: %.0f (p90 %.0f)\nlost %.0f\n",
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
