/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include <rte_common.h>

#include "wire/wire_sums.h"

/* Share of CPU time; the kernel's own work, timers above all, takes less than the rest. */
#define CPU_SHARE_MIN 0.97

static void add_lb(struct wire_sums *s, const struct wire_options *o, const struct wire_load *load,
		   const struct wire_answer *before, const struct wire_answer *after)
{
	double tsc = (double)(after->tsc - before->tsc) * o->lcores;
	double ns = tsc / after->tsc_hz * 1e9;

	for (unsigned int i = 0; i < o->lcores; i++) {
		const struct wire_lb_counters *x = &before->lb[i], *y = &after->lb[i];

		s->lb_requests +=
			load->forward ? y->forwarded - x->forwarded : y->requests - x->requests;
		s->replies += y->replies - x->replies;
		s->lb_busy += y->time.busy - x->time.busy;
		s->turns += y->turns - x->turns;
		s->packets_in += y->packets_in - x->packets_in;
		s->lb_cpu += (y->time.cpu_ns - x->time.cpu_ns) / ns;
		for (unsigned int k = 0; k < LB_STAGES; k++)
			s->stage[k] += y->stage_cycles[k] - x->stage_cycles[k];
	}
	s->lb_share = s->lb_busy / tsc;
}

static void add_gen(struct wire_sums *s, const struct wire_options *o, const struct wire_load *load,
		    const struct wire_answer *before, const struct wire_answer *after)
{
	double tsc = after->tsc - before->tsc;

	s->seconds = tsc / after->tsc_hz;
	for (unsigned int q = 0; q < o->lcores; q++) {
		const struct wire_queue_counters *x = &before->gen.queue[q];
		const struct wire_queue_counters *y = &after->gen.queue[q];

		s->resent += y->resent - x->resent;
		s->requests += load->tcp && load->forward ? y->forwarded_bytes - x->forwarded_bytes
			       : load->tcp                ? y->tcp_bytes - x->tcp_bytes
			       : load->forward            ? y->answered - x->answered
							  : y->announced - x->announced;
	}
	for (unsigned int i = 0; i < o->threads; i++) {
		const struct wire_time *x = &before->gen.thread[i], *y = &after->gen.thread[i];

		double share = (y->busy - x->busy) / tsc;

		s->gen_share += share / o->threads;
		s->gen_busiest = RTE_MAX(s->gen_busiest, share);
		s->gen_cpu += (y->cpu_ns - x->cpu_ns) / (s->seconds * 1e9) / o->threads;
	}
}

static bool starved(const struct wire_answer *before, const struct wire_answer *after,
		    const struct wire_time *x, const struct wire_time *y)
{
	double ns = (double)(after->tsc - before->tsc) / after->tsc_hz * 1e9;

	return y->cpu_ns - x->cpu_ns < CPU_SHARE_MIN * ns;
}

bool wire_sums_disturbed(const struct wire_options *o, const struct wire_sample *before,
			 const struct wire_sample *after)
{
	bool disturbed = false;

	for (unsigned int i = 0; i < o->lcores; i++)
		disturbed |= starved(&before->lb, &after->lb, &before->lb.lb[i].time,
				     &after->lb.lb[i].time);
	for (unsigned int i = 0; i < o->threads; i++)
		disturbed |= starved(&before->gen, &after->gen, &before->gen.gen.thread[i],
				     &after->gen.gen.thread[i]);
	return disturbed;
}

void wire_sums_take(struct wire_sums *s, const struct wire_options *o, const struct wire_load *load,
		    const struct wire_sample *before, const struct wire_sample *after)
{
	memset(s, 0, sizeof(*s));
	add_gen(s, o, load, &before->gen, &after->gen);
	add_lb(s, o, load, &before->lb, &after->lb);
	if (!load->tcp)
		return;
	/* Bytes are counted: in units of a mean segment. */
	s->requests /= load->forward ? (double)WIRE_TCP_FRAMES / WIRE_SEGMENTS
				     : (double)WIRE_TCP_BYTES / WIRE_SEGMENTS;
	s->lb_requests = s->requests;
}

double wire_sums_frame(const struct wire_load *load)
{
	return load->tcp ? (double)WIRE_TCP_FRAMES / WIRE_SEGMENTS : load->frame;
}
