/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdma/dcqcn.h"

#define NS_PER_S 1000000000ull

static uint64_t dcqcn_cycles(const struct dcqcn *d, uint64_t ns)
{
	return ns * (d->hz / 1000) / (NS_PER_S / 1000);
}

void dcqcn_init(struct dcqcn *d, uint64_t line_rate, uint64_t tsc_hz)
{
	*d = (struct dcqcn){
		.rate = line_rate,
		.target = line_rate,
		.alpha = 1,
		.line_rate = line_rate,
		.hz = tsc_hz,
	};
}

static void dcqcn_set_rate(struct dcqcn *d, double rate)
{
	d->rate = rate < DCQCN_RATE_MIN ? DCQCN_RATE_MIN : rate;
	if (d->rate > d->line_rate)
		d->rate = d->line_rate;
	d->cycles_per_byte = (double)d->hz / d->rate;
}

static void dcqcn_begin(struct dcqcn *d, uint64_t now)
{
	/* Forget earlier congestion once its limit has ended, as NICs do. */
	d->rate = d->target = d->line_rate;
	d->alpha = 1;
	d->next = now;
	d->limited = true;
}

/* Equation 1 of the paper; recovery starts anew. */
void dcqcn_notify(struct dcqcn *d, uint64_t now)
{
	if (d->line_rate == 0)
		return;
	if (!d->limited)
		dcqcn_begin(d, now);
	else if (now - d->last_cut < dcqcn_cycles(d, DCQCN_CUT_NS))
		return;
	else
		dcqcn_advance(d, now);
	d->limited = true;
	d->last_cut = now;
	d->target = d->rate;
	dcqcn_set_rate(d, d->rate * (1 - d->alpha / 2));
	d->alpha = (1 - DCQCN_G) * d->alpha + DCQCN_G;
	d->time_steps = d->byte_steps = 0;
	d->step_bytes = 0;
	d->alpha_due = now + dcqcn_cycles(d, DCQCN_ALPHA_NS);
	d->timer_due = now + dcqcn_cycles(d, DCQCN_TIMER_NS);
}

/* One step of recovery, by time or by bytes: equations 3 and 4. */
static void dcqcn_step(struct dcqcn *d)
{
	uint32_t most = d->time_steps > d->byte_steps ? d->time_steps : d->byte_steps;
	uint32_t least = d->time_steps > d->byte_steps ? d->byte_steps : d->time_steps;

	if (least > DCQCN_FAST_STEPS)
		d->target += DCQCN_HYPER;
	else if (most >= DCQCN_FAST_STEPS)
		d->target += DCQCN_ADDITIVE;
	if (d->target > d->line_rate)
		d->target = d->line_rate;
	dcqcn_set_rate(d, (d->target + d->rate) / 2);
	/* Halving the distance never reaches the line rate. */
	if (d->rate > 0.999 * d->line_rate)
		d->limited = false;
}

void dcqcn_advance(struct dcqcn *d, uint64_t now)
{
	/* Signed: <now> may have been read before the last event. */
	while (d->limited && (int64_t)(now - d->timer_due) >= 0) {
		d->timer_due += dcqcn_cycles(d, DCQCN_TIMER_NS);
		d->time_steps++;
		dcqcn_step(d);
	}
	while (d->limited && (int64_t)(now - d->alpha_due) >= 0) {
		d->alpha_due += dcqcn_cycles(d, DCQCN_ALPHA_NS);
		d->alpha *= 1 - DCQCN_G;
	}
}

void dcqcn_sent(struct dcqcn *d, uint32_t bytes, uint64_t now)
{
	uint64_t earliest = now - dcqcn_cycles(d, DCQCN_BURST_NS);

	if ((int64_t)(earliest - d->next) > 0)
		d->next = earliest;
	d->next += (uint64_t)(bytes * d->cycles_per_byte);
	d->step_bytes += bytes;
	if (d->step_bytes < DCQCN_STEP_BYTES)
		return;
	d->step_bytes -= DCQCN_STEP_BYTES;
	d->byte_steps++;
	dcqcn_step(d);
}
