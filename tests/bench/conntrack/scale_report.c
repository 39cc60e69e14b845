/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "conntrack/scale_report.h"
#include "wire/wire_cpus.h"

const struct scale_part_info scale_parts[SCALE_PARTS] = {
	[SCALE_1024B] = {"1024b", "1024 B", "", "", {.frame = WIRE_CLIENT_HEADERS + 1024}},
	[SCALE_64B] = {"64b", "64 B", "", "_64b", {.frame = WIRE_CLIENT_HEADERS + 64}},
	[SCALE_NEW] = {"new",
		       "64 B, new flows",
		       "new_",
		       "",
		       {.frame = WIRE_CLIENT_HEADERS + 64, .fresh = true}},
};

bool scale_report_wants(const struct wire_options *o, enum scale_part part)
{
	return o->only == NULL || strcmp(o->only, scale_parts[part].name) == 0;
}

static const char *metric(char to[REPORT_NAME_MAX], enum scale_part part, const char *unit,
			  unsigned int lcores)
{
	const struct scale_part_info *p = &scale_parts[part];

	snprintf(to, REPORT_NAME_MAX, "%s%s%s_%u_lcore%s", p->prefix, unit, p->size, lcores,
		 lcores > 1 ? "s" : "");
	return to;
}

static void add(struct report *report, enum scale_part part, unsigned int lcores, const char *unit,
		double value)
{
	char to[REPORT_NAME_MAX];

	report_add(report, value, "%s", metric(to, part, unit, lcores));
}

static double median(const struct report *report, enum scale_part part, unsigned int lcores,
		     const char *unit)
{
	char to[REPORT_NAME_MAX];

	return report_median(report, metric(to, part, unit, lcores));
}

/* Adds the flows that come and go. */
static void add_flows(struct report *report, const struct wire_options *o,
		      const struct wire_sample *before, const struct wire_sample *after)
{
	double seconds = (double)(after->lb.tsc - before->lb.tsc) / after->lb.tsc_hz;
	uint64_t inserted = 0, expired = 0, live = 0, lag = 0;

	for (unsigned int i = 0; i < o->lcores; i++) {
		const struct conntrack_stats *x = &before->lb.lb[i].flows;
		const struct conntrack_stats *y = &after->lb.lb[i].flows;

		inserted += y->inserted - x->inserted;
		expired += y->expired - x->expired;
		live += y->live;
		lag = y->lag_ms > lag ? y->lag_ms : lag;
	}
	add(report, SCALE_NEW, o->lcores, "flows_per_s", inserted / seconds);
	add(report, SCALE_NEW, o->lcores, "expired_per_s", expired / seconds);
	add(report, SCALE_NEW, o->lcores, "flows_live", live);
	add(report, SCALE_NEW, o->lcores, "expiry_lag_ms", lag);
}

struct scale_rate scale_report_add(struct report *report, const struct wire_options *o,
				   enum scale_part part, const struct wire_sample *before,
				   const struct wire_sample *after)
{
	const struct wire_load *load = &scale_parts[part].load;
	struct scale_rate rate;
	struct wire_sums s;
	char unit[64];

	wire_sums_take(&s, o, load, before, after);
	rate.measured = s.requests / s.seconds;
	rate.capacity = rate.measured / fmin(s.lb_share, 1);
	if (part == SCALE_NEW)
		add_flows(report, o, before, after);
	add(report, part, o->lcores, "gbps", rate.measured * load->frame * 8 / 1e9);
	add(report, part, o->lcores, "mpps", rate.measured / 1e6);
	add(report, part, o->lcores, "capacity_mpps", rate.capacity / 1e6);
	add(report, part, o->lcores, "cycles_per_request", s.lb_busy / s.lb_requests);
	add(report, part, o->lcores, "lb_busy_percent", s.lb_share * 100);
	add(report, part, o->lcores, "lb_cpu_percent", s.lb_cpu * 100);
	add(report, part, o->lcores, "gen_busy_percent", s.gen_share * 100);
	add(report, part, o->lcores, "gen_busiest_percent", s.gen_busiest * 100);
	add(report, part, o->lcores, "gen_cpu_percent", s.gen_cpu * 100);
	add(report, part, o->lcores, "packets_per_turn", s.packets_in / s.turns);
	for (unsigned int k = 0; k < LB_STAGES; k++) {
		snprintf(unit, sizeof(unit), "%s_cycles", lb_stage_name(k));
		add(report, part, o->lcores, unit, s.stage[k] / s.lb_requests);
	}
	return rate;
}

void scale_report_linear(struct report *report, unsigned int lcores, enum scale_part part,
			 const struct scale_rate *one, const struct scale_rate *rate)
{
	add(report, part, lcores, "linear", rate->measured / lcores / one->measured);
	add(report, part, lcores, "linear_capacity", rate->capacity / lcores / one->capacity);
}

/* --- telling -------------------------------------------------------------------------------------
 */

static const char *pages(const struct wire_options *o)
{
	return o->hugepages ? "2 MiB pages" : "4 KiB pages";
}

static void print_cpus(const char *who, const uint16_t *cpu, unsigned int n)
{
	printf("%s", who);
	for (unsigned int i = 0; i < n; i++)
		printf("%s%u", i > 0 ? "," : " ", cpu[i]);
}

static void print_places(const struct wire_options *step)
{
	printf("%2u lcore%s on ", step->lcores, step->lcores > 1 ? "s" : "");
	print_cpus("CPU", step->lb_cpu, step->lcores);
	print_cpus("; generator on", step->gen_cpu, step->threads);
	printf("; lcores that share a core with another thread: %u\n", wire_cpus_shared(step));
}

/* Without one lcore in the list there is no base to compare with. */
static void print_linear(double share)
{
	if (isnan(share))
		printf(" %6s", "-");
	else
		printf(" %6.3f", share);
}

static void print_row(const struct report *report, unsigned int lcores, enum scale_part part)
{
	char to[REPORT_NAME_MAX];
	double lb = median(report, part, lcores, "lb_busy_percent");
	double gen = median(report, part, lcores, "gen_busiest_percent");

	metric(to, part, "mpps", lcores);
	printf("%-16s %6u %7.2f %7.3f %7.3f %7.3f %7.0f", scale_parts[part].text, lcores,
	       median(report, part, lcores, "gbps"), report_median(report, to),
	       report_percentile(report, to, 10), report_percentile(report, to, 90),
	       median(report, part, lcores, "cycles_per_request"));
	print_linear(median(report, part, lcores, "linear"));
	printf(" %7.0f %7.0f %8.3f", lb, gen, median(report, part, lcores, "capacity_mpps"));
	print_linear(median(report, part, lcores, "linear_capacity"));
	printf("%s\n", gen > lb ? "  the generator is the bottleneck" : "");
}

static void print_stages(const struct report *report, const struct wire_options *all,
			 enum scale_part part)
{
	char unit[64];

	for (unsigned int i = 0; i < all->n_steps; i++) {
		printf("%-16s %6u", scale_parts[part].text, all->step[i]);
		for (unsigned int k = 0; k < LB_STAGES; k++) {
			snprintf(unit, sizeof(unit), "%s_cycles", lb_stage_name(k));
			printf(" %9.0f", median(report, part, all->step[i], unit));
		}
		printf(" %13.1f\n", median(report, part, all->step[i], "packets_per_turn"));
	}
}

static void print_flows(const struct report *report, const struct wire_options *all)
{
	printf("\n%-16s %6s %12s %12s %12s %8s\n", "new flows", "lcores", "opened/s", "expired/s",
	       "live", "lag ms");
	for (unsigned int i = 0; i < all->n_steps; i++) {
		unsigned int n = all->step[i];

		printf("%-16s %6u %12.0f %12.0f %12.0f %8.0f\n", "", n,
		       median(report, SCALE_NEW, n, "flows_per_s"),
		       median(report, SCALE_NEW, n, "expired_per_s"),
		       median(report, SCALE_NEW, n, "flows_live"),
		       median(report, SCALE_NEW, n, "expiry_lag_ms"));
	}
}

static void print_head(const struct wire_options *all, const struct wire_options step[])
{
	printf("conntrack-scale: %u flows, or every request the first of one that lives %u ms, in "
	       "a table of %u per lcore;\n"
	       "%u requests outstanding per lcore, replies of %u bytes%s%s\n"
	       "medians of %u interleaved runs of %u ms; commit %s, %s, %s\n",
	       all->flows, all->new_timeout_ms, all->new_capacity_per_lcore, all->outstanding,
	       all->reply, all->zero_copy ? "" : ", memif copies",
	       all->verify ? ", every byte verified" : "", all->runs, all->measure_ms, all->commit,
	       all->machine, pages(all));
	for (unsigned int i = 0; i < all->n_steps; i++)
		print_places(&step[i]);
}

void scale_report_print(const struct report *report, const struct wire_options *all,
			const struct wire_options step[])
{
	print_head(all, step);
	printf("\n%-16s %6s %7s %7s %7s %7s %7s %6s %7s %7s %8s %6s\n", "", "lcores", "Gbit/s",
	       "Mpps", "p10", "p90", "cycles", "linear", "LB busy", "gen b.", "capacity", "linear");
	for (unsigned int part = 0; part < SCALE_PARTS; part++)
		for (unsigned int i = 0; i < all->n_steps; i++)
			if (scale_report_wants(all, part))
				print_row(report, all->step[i], part);
	printf("\n%-16s %6s", "cycles", "lcores");
	for (unsigned int k = 0; k < LB_STAGES; k++)
		printf(" %9.9s", lb_stage_name(k));
	printf("  packets/turn\n");
	for (unsigned int part = 0; part < SCALE_PARTS; part++)
		if (scale_report_wants(all, part))
			print_stages(report, all, part);
	if (scale_report_wants(all, SCALE_NEW))
		print_flows(report, all);
	printf("\nspans measured again per span: %.0f (p90 %.0f)\nlost %.0f\n",
	       report_median(report, "disturbed_spans"),
	       report_percentile(report, "disturbed_spans", 90),
	       report_percentile(report, "lost", 100));
}

int scale_report_write(const struct report *report, const struct wire_options *all)
{
	struct report_origin origin = {
		.bench = "conntrack-scale",
		.commit = all->commit,
		.machine = all->machine,
		.pages = pages(all),
		.runs = all->runs,
	};

	return report_write(report, &origin, all->json);
}
