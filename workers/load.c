/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "load.h"

/* Answers per measurement of a gap, so that one edge of a batch more or less does not matter. */
#define GAP_RUNS 8
/* Answers that are a run over this apart are of two batches. */
#define BATCH_APART 4
/* Each relaxation takes 1/RELAX off an idle worker's times. They fall to a fifth in 10 s, which is
 * exp(-10 s / LOAD_RELAX_MS / RELAX). */
#define RELAX 62.0f

_Static_assert(WORKERS_MAX % WORKER_BLOCK == 0 && WORKER_BLOCKS <= 32, "one bit per block");
_Static_assert((LOAD_RECENT & (LOAD_RECENT - 1)) == 0, "found by masking");

static float load_max(float a, float b)
{
	return a > b ? a : b;
}

void workers_load_init(struct pick_load *load, uint64_t ticks)
{
	memset(load, 0, sizeof(*load));
	load->ns_per_tick = 1e9f / (float)ticks;
}

static void load_reset(struct pick_load *load, uint16_t worker, uint16_t credits)
{
	uint32_t bit = 1u << worker % WORKER_BLOCK;

	load->credits[worker] = credits;
	load->outstanding[worker] = load->placed[worker] = load->later[worker] = 0;
	if (credits != 0)
		load->open[worker / WORKER_BLOCK] |= bit;
	else
		load->open[worker / WORKER_BLOCK] &= ~bit;
	load->run_ns[worker] = load->gap_ns[worker] = load->turn_ns[worker] = 0;
	load->alone_ns[worker] = 0;
	load->told[worker] = 0;
	load->by_deadline[worker] = false;
	load->wait_ns[worker] = 0;
	load->meter[worker] = (struct load_meter){0};
	load_note(load, worker, 0);
}

void workers_load_open(struct pick_load *load, uint16_t worker, uint16_t credits)
{
	load_reset(load, worker, credits);
}

void workers_load_close(struct pick_load *load, uint16_t worker)
{
	load_reset(load, worker, 0);
}

/*
 * The gap is the time in which the worker owed answers, divided by the answers in it. So it covers
 * batches, parallel runs and the requests of other lcores, which lengthen this lcore's gaps as they
 * lengthen its waits.
 */
void load_measure(struct pick_load *load, uint16_t worker, uint64_t now, uint64_t run_ns)
{
	struct load_meter *meter = &load->meter[worker];
	float run = load->run_ns[worker], gap, turn;
	float busy = (float)(now - meter->mark) * load->ns_per_tick;
	bool alone = meter->alone;

	meter->mark = now;
	meter->alone = false;
	if (run_ns == 0)
		return;
	if (alone && load->alone_ns[worker] != 0)
		load->alone_ns[worker] += ((float)run_ns - load->alone_ns[worker]) / GAP_RUNS;
	else if (alone)
		load->alone_ns[worker] = (float)run_ns;
	if (!meter->measured) {
		meter->measured = true;
		load->run_ns[worker] = load->gap_ns[worker] = run = (float)run_ns;
		load->turn_ns[worker] = run;
	}
	run += ((float)run_ns - run) / GAP_RUNS;
	load->run_ns[worker] = run;
	meter->busy_ns += busy;
	meter->answers++;
	meter->batches += busy * BATCH_APART > run;
	if (meter->answers < GAP_RUNS ||
	    (meter->busy_ns < GAP_RUNS * run && meter->answers < UINT16_MAX))
		return;
	gap = meter->busy_ns / (float)meter->answers;
	load->gap_ns[worker] = (load->gap_ns[worker] + gap) / 2;
	turn = meter->busy_ns / load_max(meter->batches, 1);
	load->turn_ns[worker] = (load->turn_ns[worker] + turn) / 2;
	meter->busy_ns = 0;
	meter->answers = meter->batches = 0;
}

/*
 * A worker that runs batches runs now what it had at its last answer, and all that was sent later
 * in the batch that follows, with one more request. Both take a run at least, and the first began
 * with that answer. When there are more than a batch has, they end by whole batches, and full ones
 * take longer than those that were measured: but not as much longer as they have more requests.
 */
uint64_t workers_expected_finish_ns(const struct pick_load *load, uint16_t worker, uint64_t now,
				    uint32_t batch)
{
	uint32_t later = load->later[worker];
	uint32_t before = load->outstanding[worker] - load->placed[worker] - later;
	uint32_t all = before + later + 1;
	float run = load->run_ns[worker], gap = load->gap_ns[worker];
	float since = (float)(now - load->meter[worker].mark) * load->ns_per_tick;
	float ns = load_max(run, gap * (float)(later + 1));
	float turn = (load->turn_ns[worker] + gap * (float)batch) / 2;

	if (all == 1 && load->alone_ns[worker] != 0)
		return (uint64_t)load->alone_ns[worker];
	if (before > 0)
		ns += load_max(load_max(run, gap * (float)before) - since, 0);
	if (all > batch)
		ns = load_max(ns, turn * (float)((all + batch - 1) / batch) - since);
	return (uint64_t)ns;
}

/* Would it run a request at once? Others may be running where it would: a device that is shared. */
static bool load_is_idle(const struct pick_load *load, uint16_t worker)
{
	return load->outstanding[worker] == 0 && load->wait_ns[worker] < load->run_ns[worker] / 2;
}

bool workers_load_gathers_before(const struct pick_load *load, uint16_t a, uint16_t b, uint64_t now,
				 uint32_t batch)
{
	uint32_t waits_a = workers_load_waiting(load, a), waits_b = workers_load_waiting(load, b);
	bool gathers_a = waits_a % batch != 0, gathers_b = waits_b % batch != 0;
	bool idle_a = load_is_idle(load, a), idle_b = load_is_idle(load, b);

	if (idle_a != idle_b)
		return idle_a;
	if (gathers_a != gathers_b)
		return gathers_a;
	if (waits_a != waits_b)
		return waits_a < waits_b;
	if (load->outstanding[a] != load->outstanding[b])
		return load->outstanding[a] < load->outstanding[b];
	return workers_expected_finish_ns(load, a, now, batch) <
	       workers_expected_finish_ns(load, b, now, batch);
}

uint64_t workers_soonest_finish_ns(const struct pick_load *load, uint16_t worker, uint32_t batch)
{
	uint32_t batches = workers_load_waiting(load, worker) / batch + 1;

	return (uint64_t)(load->run_ns[worker] * (float)batches);
}

void workers_load_relax(struct pick_load *load)
{
	/* An idle worker has credits, so only the blocks' open bits need a visit. */
	for (unsigned int block = 0; block < WORKER_BLOCKS; block++) {
		for (uint32_t lanes = load->open[block]; lanes != 0; lanes &= lanes - 1) {
			uint32_t i = block * WORKER_BLOCK + (uint32_t)__builtin_ctz(lanes);

			if (!load->meter[i].measured || load->outstanding[i] != load->placed[i])
				continue;
			load->run_ns[i] -= load->run_ns[i] / RELAX;
			load->gap_ns[i] -= load->gap_ns[i] / RELAX;
			load->turn_ns[i] -= load->turn_ns[i] / RELAX;
			load->alone_ns[i] -= load->alone_ns[i] / RELAX;
			load->changed[block] = (uint32_t)(load->changes + LOAD_RECENT + 1);
		}
	}
	/* Count more changes than <recent> holds, so that policies read <changed>. */
	load->changes += LOAD_RECENT + 1;
}
