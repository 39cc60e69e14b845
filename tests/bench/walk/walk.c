/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * walk: TSC cycles per packet of the load balancer's whole walk on one lcore, stage by stage, next
 * to the cost of forwarding, of a table lookup and of the ICRC alone in the same run. See
 * README.md.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>

#include "lb.h"
#include "common/floor.h"
#include "common/options.h"
#include "walk/walk_batch.h"

#define RUNS_DEFAULT 9
/* Batches per scenario and repetition: 512 turns. */
#define BATCHES 4

struct scenario {
	const char *name; /* as in the metrics */
	const char *text;
	struct load load;
};

static const struct scenario scenarios[] = {
	{"1k_flows_256b", "1 k flows, 256 B", {RIG_ONE_WORKER, RIG_FLOWS_FEW, 256}},
	{"1k_flows_1024b", "1 k flows, 1 KiB", {RIG_ONE_WORKER, RIG_FLOWS_FEW, 1024}},
	{"1m_flows_256b", "1 M flows, 256 B", {RIG_ONE_WORKER, RIG_FLOWS, 256}},
	{"1m_flows_1024b", "1 M flows, 1 KiB", {RIG_ONE_WORKER, RIG_FLOWS, 1024}},
	{"1m_flows_1024b_nic_checks",
	 "1 M flows, 1 KiB, NIC checks",
	 {RIG_ONE_WORKER, RIG_FLOWS, 1024, .nic_checks = true}},
	{"1k_flows_1024b_8_workers",
	 "1 k flows, 1 KiB, 8 workers",
	 {RIG_MANY_WORKERS, RIG_FLOWS_MANY, 1024}},
};

/* Stages that packets of a direction pass; acknowledgements pass fabric on the way of requests. */
static const struct direction {
	const char *name;
	bool stage[LB_STAGES];
} directions[] = {
	{"request",
	 {[LB_STAGE_INGRESS] = true,
	  [LB_STAGE_CONNTRACK] = true,
	  [LB_STAGE_ASSIGN] = true,
	  [LB_STAGE_SEND] = true,
	  [LB_STAGE_FABRIC] = true,
	  [LB_STAGE_TRANSMIT] = true,
	  [LB_STAGE_HOUSEKEEPING] = true}},
	{"reply",
	 {[LB_STAGE_INGRESS] = true,
	  [LB_STAGE_FABRIC] = true,
	  [LB_STAGE_EGRESS] = true,
	  [LB_STAGE_TRANSMIT] = true,
	  [LB_STAGE_HOUSEKEEPING] = true}},
};

/* Opens every flow and checks every byte both ways. Not measured. */
static void warm_up(struct bench *b)
{
	struct load all[] = {
		{RIG_ONE_WORKER, RIG_FLOWS, 256, .in_turn = true},
		{RIG_MANY_WORKERS, RIG_FLOWS_MANY, 256, .in_turn = true},
	};

	for (unsigned int i = 0; i < RTE_DIM(all); i++) {
		uint32_t sent = 0;

		/* Twice: a flow is established when its client speaks again. */
		for (; sent < 2 * all[i].flows; sent += RIG_BATCH) {
			batch_run(b, &all[i]);
			b->requests.n = b->replies.n = 0;
		}
	}
	b->peer.verify = true;
	for (unsigned int i = 0; i < RTE_DIM(scenarios); i++) {
		struct load load = scenarios[i].load;

		batch_run(b, &load);
		b->requests.n = b->replies.n = 0;
	}
	b->peer.verify = false;
	if (conntrack_count(b->rig.lc->ct) != RIG_FLOWS + RIG_FLOWS_MANY)
		rig_die("%lu flows are tracked, %u were opened", conntrack_count(b->rig.lc->ct),
			RIG_FLOWS + RIG_FLOWS_MANY);
}

static void add_cost(struct report *report, const struct direction *d, const struct scenario *s,
		     struct cost cost)
{
	report_add(report, cost.total, "%s_cycles_%s", d->name, s->name);
	report_add(report, cost.disturbed, "disturbed_turns");
	for (unsigned int i = 0; i < LB_STAGES; i++)
		if (d->stage[i])
			report_add(report, cost.stage[i], "%s_%s_cycles_%s", d->name,
				   lb_stage_name(i), s->name);
}

static void measure_scenario(struct bench *b, struct report *report, const struct scenario *s)
{
	struct load load = s->load;

	for (unsigned int i = 0; i < BATCHES; i++)
		batch_run(b, &load);
	add_cost(report, &directions[0], s, turns_cost(&b->requests, LB_BURST));
	add_cost(report, &directions[1], s, turns_cost(&b->replies, LB_BURST));
}

static void measure_floors(struct bench *b, struct floors *f, struct report *report)
{
	struct load load = {RIG_ONE_WORKER, RIG_FLOWS, 1024};
	struct turns *t = &b->untimed;

	for (unsigned int i = 0; i < BATCHES; i++)
		floor_forward(&b->clients, &load, t);
	report_add(report, turns_cost(t, LB_BURST).total, "forward_5tswap_cycles");
	floor_hash(f, &b->clients, t);
	report_add(report, turns_cost(t, LB_BURST).total, "rte_hash_bulk_cycles_1m");
	floor_icrc(f, 256, t);
	report_add(report, turns_cost(t, LB_BURST).total, "icrc_cycles_256b");
	floor_icrc(f, 1024, t);
	report_add(report, turns_cost(t, LB_BURST).total, "icrc_cycles_1024b");
	floor_checksum(f, 256, t);
	report_add(report, turns_cost(t, LB_BURST).total, "udp_checksum_cycles_256b");
	floor_checksum(f, 1024, t);
	report_add(report, turns_cost(t, LB_BURST).total, "udp_checksum_cycles_1024b");
	floor_latency(f, &b->clients, t);
	report_add(report, turns_cost(t, LB_BURST).total, "latency_add_cycles");
	floor_lines(f, &b->clients, false, t);
	report_add(report, turns_cost(t, LB_BURST).total, "packed_line_cycles");
	floor_lines(f, &b->clients, true, t);
	report_add(report, turns_cost(t, LB_BURST).total, "scattered_line_cycles");
}

static void print_cost(const struct report *report, const struct direction *d,
		       const struct scenario *s)
{
	char name[REPORT_NAME_MAX];

	snprintf(name, sizeof(name), "%s_cycles_%s", d->name, s->name);
	printf("%-8s %-28s %6.0f %6.0f %6.0f ", d->name, s->text, report_median(report, name),
	       report_percentile(report, name, 10), report_percentile(report, name, 90));
	for (unsigned int i = 0; i < LB_STAGES; i++) {
		snprintf(name, sizeof(name), "%s_%s_cycles_%s", d->name, lb_stage_name(i), s->name);
		if (d->stage[i])
			printf(" %9.0f", report_median(report, name));
		else
			printf(" %9s", "-");
	}
	putchar('\n');
}

static void print_floor(const struct report *report, const char *text, const char *name)
{
	printf("%-37s %6.0f %6.0f %6.0f\n", text, report_median(report, name),
	       report_percentile(report, name, 10), report_percentile(report, name, 90));
}

static void print_report(const struct report *report)
{
	puts("TSC cycles per packet");
	printf("%-37s %6s %6s %6s ", "", "median", "p10", "p90");
	for (unsigned int i = 0; i < LB_STAGES; i++)
		printf(" %9.9s", lb_stage_name(i));
	putchar('\n');
	for (unsigned int d = 0; d < RTE_DIM(directions); d++)
		for (unsigned int s = 0; s < RTE_DIM(scenarios); s++)
			print_cost(report, &directions[d], &scenarios[s]);
	putchar('\n');
	print_floor(report, "5-tuple swap, same packets", "forward_5tswap_cycles");
	print_floor(report, "rte_hash bulk lookup, 1 M keys", "rte_hash_bulk_cycles_1m");
	print_floor(report, "ICRC, 256 B", "icrc_cycles_256b");
	print_floor(report, "ICRC, 1 KiB", "icrc_cycles_1024b");
	print_floor(report, "UDP checksum, 256 B", "udp_checksum_cycles_256b");
	print_floor(report, "UDP checksum, 1 KiB", "udp_checksum_cycles_1024b");
	print_floor(report, "histograms of a reply, 8 links", "latency_add_cycles");
	print_floor(report, "8192 lines, side by side", "packed_line_cycles");
	print_floor(report, "8192 lines in as many pages", "scattered_line_cycles");
	print_floor(report, "turns left out as disturbed", "disturbed_turns");
}

static int measure(struct bench *b, const struct bench_options *o)
{
	static struct report report;
	struct report_origin origin;
	struct floors floors;
	int ret;

	floors_init(&floors);
	warm_up(b);
	for (unsigned int run = 0; run < o->runs; run++) {
		for (unsigned int i = 0; i < RTE_DIM(scenarios); i++)
			if (o->only == NULL || strcmp(o->only, scenarios[i].name) == 0)
				measure_scenario(b, &report, &scenarios[i]);
		measure_floors(b, &floors, &report);
	}
	origin = bench_origin(o, "walk", rte_eal_has_hugepages());
	print_report(&report);
	ret = bench_write(o, &report, &origin);
	floors_fini(&floors);
	report_fini(&report);
	return ret;
}

int main(int argc, char **argv)
{
	static struct bench b; /* too large for a stack */
	struct bench_options o;
	int ret;

	if (!bench_options_read(&o, argc, argv, "walk", "SCENARIO", RUNS_DEFAULT))
		return 2;
	if (rig_create(&b.rig, &(struct rig_options){.hugepages = o.hugepages}) < 0)
		return 1;
	clients_init(&b.clients, &b.rig);
	peer_join(&b.peer, &b.rig, &b.clients);
	ret = measure(&b, &o);
	rig_destroy(&b.rig);
	rte_eal_cleanup();
	return ret < 0;
}
