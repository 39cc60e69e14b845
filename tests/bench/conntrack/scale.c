/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conntrack-scale: wire-100g with more and more load balancer cores. Requests of a million flows,
 * and requests that each open a flow. See README.md.
 */
#include <poll.h>
#include <stdio.h>

#include <rte_common.h>

#include "conntrack/scale_report.h"
#include "wire/wire_parent.h"

/* ms; longer than a flow's lifetime: as many flows end as begin, and the tables' memory has been
 * touched. */
#define NEW_SETTLE_MS 200
/* ms; a timer on a busy machine may be as late as this, and later means a fault. */
#define EXPIRY_MS      5000
#define EXPIRY_POLL_MS 10

struct scale {
	struct wire_options all;
	struct wire_options steady[WIRE_STEPS_MAX], fresh[WIRE_STEPS_MAX];
	struct report report;
	struct scale_rate rate[SCALE_PARTS][WIRE_STEPS_MAX]; /* of this run */
};

static struct conntrack_stats count_flows(const struct wire_sample *s, unsigned int lcores)
{
	struct conntrack_stats sum = {0};

	for (unsigned int i = 0; i < lcores; i++) {
		const struct conntrack_stats *f = &s->lb.lb[i].flows;

		sum.inserted += f->inserted;
		sum.expired += f->expired;
		sum.removed += f->removed;
		sum.reclaimed += f->reclaimed;
		sum.refused += f->refused + f->refused_source;
		sum.live += f->live;
	}
	return sum;
}

/* All silent flows must end when their time is over. */
static void await_expiry(const struct wire_parent *p, struct wire_sample *s)
{
	unsigned int most = (p->o.timeout_ms + EXPIRY_MS) / EXPIRY_POLL_MS;

	wire_parent_sample(p, s);
	for (unsigned int i = 0; count_flows(s, p->o.lcores).live > 0 && i < most; i++) {
		poll(NULL, 0, EXPIRY_POLL_MS);
		wire_parent_sample(p, s);
	}
}

/* After all replies: every flow that was to be opened was opened once, and none was refused. */
static void check_flows(const struct wire_parent *p, bool fresh)
{
	uint64_t opened = fresh ? 0 : p->o.flows;
	struct conntrack_stats flows;
	struct wire_sample s;

	if (fresh)
		await_expiry(p, &s);
	else
		wire_parent_sample(p, &s);
	flows = count_flows(&s, p->o.lcores);
	for (unsigned int q = 0; fresh && q < p->o.lcores; q++)
		opened += s.gen.gen.queue[q].sent;
	if (flows.inserted != opened || flows.refused + flows.reclaimed + flows.removed > 0)
		wire_die("%lu flows were opened, %lu inserted, %lu refused, %lu reclaimed, "
			 "%lu removed",
			 opened, flows.inserted, flows.refused, flows.reclaimed, flows.removed);
	if (flows.live != (fresh ? 0 : opened) || flows.expired != opened - flows.live)
		wire_die("%lu flows were inserted, %lu live, %lu expired", flows.inserted,
			 flows.live, flows.expired);
}

static void measure(struct scale *b, struct wire_parent *p, enum scale_part part, unsigned int step)
{
	uint32_t settle = part == SCALE_NEW ? p->o.timeout_ms + NEW_SETTLE_MS : WIRE_SETTLE_MS;
	struct wire_sample before, after;
	unsigned int again;

	if (!scale_report_wants(&b->all, part))
		return;
	again = wire_parent_measure(p, &scale_parts[part].load, settle, &before, &after);
	report_add(&b->report, again, "disturbed_spans");
	b->rate[part][step] = scale_report_add(&b->report, &p->o, part, &before, &after);
}

static void measure_steady(struct scale *b, unsigned int step)
{
	struct wire_parent p = {.o = b->steady[step]};

	if (!scale_report_wants(&b->all, SCALE_1024B) && !scale_report_wants(&b->all, SCALE_64B))
		return;
	wire_parent_start(&p);
	wire_parent_open_flows(&p);
	measure(b, &p, SCALE_1024B, step);
	measure(b, &p, SCALE_64B, step);
	check_flows(&p, false);
	wire_parent_end(&p);
	report_add(&b->report, p.lost, "lost");
}

static void measure_fresh(struct scale *b, unsigned int step)
{
	struct wire_parent p = {.o = b->fresh[step]};

	if (!scale_report_wants(&b->all, SCALE_NEW))
		return;
	wire_parent_start(&p);
	measure(b, &p, SCALE_NEW, step);
	check_flows(&p, true);
	wire_parent_end(&p);
	report_add(&b->report, p.lost, "lost");
}

static void compare(struct scale *b, enum scale_part part)
{
	unsigned int one = 0;

	while (one < b->all.n_steps && b->all.step[one] != 1)
		one++;
	for (unsigned int i = 0; one < b->all.n_steps && i < b->all.n_steps; i++)
		scale_report_linear(&b->report, b->all.step[i], part, &b->rate[part][one],
				    &b->rate[part][i]);
}

static void measure_all(struct scale *b)
{
	for (unsigned int run = 0; run < b->all.runs; run++) {
		for (unsigned int i = 0; i < b->all.n_steps; i++) {
			measure_steady(b, i);
			measure_fresh(b, i);
		}
		for (unsigned int part = 0; part < SCALE_PARTS; part++)
			if (scale_report_wants(&b->all, part))
				compare(b, part);
	}
}

/* Hugepages of the step that needs most. */
static unsigned int pages(const struct scale *b)
{
	unsigned int most = 0;

	for (unsigned int i = 0; i < b->all.n_steps; i++) {
		most = RTE_MAX(most, wire_options_pages(&b->steady[i]));
		if (scale_report_wants(&b->all, SCALE_NEW))
			most = RTE_MAX(most, wire_options_pages(&b->fresh[i]));
	}
	return most;
}

int main(int argc, char **argv)
{
	static struct scale b; /* too large for a stack */
	int ret = 0;

	wire_name("conntrack-scale");
	if (!wire_options_parse(argc, argv, WIRE_BENCH_SCALE, &b.all))
		return 2;
	for (unsigned int i = 0; i < b.all.n_steps; i++) {
		wire_options_step(&b.all, b.all.step[i], false, &b.steady[i]);
		wire_options_step(&b.all, b.all.step[i], true, &b.fresh[i]);
	}
	if (b.all.print_pages)
		return printf("%u\n", pages(&b)) < 0;
	measure_all(&b);
	scale_report_print(&b.report, &b.all, b.steady);
	if (b.all.json != NULL)
		ret = scale_report_write(&b.report, &b.all);
	if (ret < 0)
		fprintf(stderr, "conntrack-scale: cannot write %s\n", b.all.json);
	report_fini(&b.report);
	return ret < 0;
}
