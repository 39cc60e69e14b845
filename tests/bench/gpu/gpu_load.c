/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "rnic/demote.h"
#include "gpu/gpu_load.h"

#define PATIENCE_NS 2000000000ull
/* The deadline that a service has by default, us. */
#define DEADLINE_US 1000000
#define CLASSES     64

/* A load balancer writes a deadline beside each request, and its clock, read once per burst. */
static struct ring_descriptor fields_at(uint64_t now_ns)
{
	return (struct ring_descriptor){.deadline_us = DEADLINE_US,
					.sent_us = (uint32_t)(now_ns / 1000) | 1};
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double at(const double *sorted, uint32_t n, double share)
{
	uint32_t i = share * n;

	return n == 0 ? 0 : sorted[i < n ? i : n - 1];
}

static void pause_us(uint32_t us)
{
	uint64_t end = clock_now_ns() + us * 1000ull;

	while (us > 0 && clock_now_ns() < end)
		;
}

/* Fills a slot as a NIC does, or the software RNIC beside a GPU. */
static void fill(struct rig *rig, uint32_t link, uint32_t slot, const struct gpu_load *load)
{
	memcpy(rig_slot(rig, link, slot), load->request, load->length);
	demote(rig_slot(rig, link, slot), load->length);
}

/* Sends a request and waits for its reply. Returns microseconds, or -1. */
static double ask(struct rig *rig, const struct gpu_load *load, uint32_t slot, struct rig_reply *r)
{
	struct ring_descriptor fields;
	uint64_t start, now;

	fill(rig, 0, slot, load);
	fields = fields_at(clock_now_ns());
	start = clock_now_ns();
	rig_submit(rig, 0, slot, load->length, &fields);
	do {
		if (rig_reply(rig, 0, r))
			return (clock_now_ns() - start) / 1e3;
		now = clock_now_ns();
	} while (now - start < PATIENCE_NS);
	return -1;
}

static bool right(const struct gpu_load *load, const struct rig_reply *r)
{
	return r->status == RING_OK &&
	       (!load->echo || (r->header->length == load->length &&
				memcmp(r->bytes, load->request, load->length) == 0));
}

/* ORDER: as TOOK, but not sorted. */
enum { TOOK, GPU, TAKEN, RUN, OUTSIDE, ORDER, SERIES };

/* Sets the least and the most of the classes' means. Values above the 98th percentile, when a
 * thread was halted, do not count. */
static void find_classes(const double *took, uint32_t n, double most, struct gpu_latency *out)
{
	double sum[CLASSES] = {0}, mean;
	uint32_t count[CLASSES] = {0};

	for (uint32_t i = 0; i < n; i++) {
		if (took[i] > most)
			continue;
		sum[i % CLASSES] += took[i];
		count[i % CLASSES]++;
	}
	for (uint32_t c = 0; c < CLASSES; c++) {
		mean = count[c] > 0 ? sum[c] / count[c] : 0;
		out->class_low_us = c == 0 || mean < out->class_low_us ? mean : out->class_low_us;
		out->class_high_us = mean > out->class_high_us ? mean : out->class_high_us;
	}
}

int gpu_load_latency(struct rig *rig, const struct gpu_load *load, struct gpu_latency *out)
{
	double *all = calloc(SERIES * (size_t)load->n, sizeof(*all)), *of[SERIES], us;
	struct rig_reply r;
	uint32_t n = 0;

	if (all == NULL)
		return -1;
	for (int s = 0; s < SERIES; s++)
		of[s] = all + (size_t)s * load->n;
	*out = (struct gpu_latency){0};
	for (uint32_t i = 0; i < load->warm + load->n; i++) {
		pause_us(load->gap_us);
		us = ask(rig, load, i & (rig->slots - 1), &r);
		if (us < 0)
			out->lost++;
		else
			out->wrong += !right(load, &r);
		if (us < 0 || i < load->warm)
			continue;
		of[TOOK][n] = of[ORDER][n] = us;
		of[TAKEN][n] = (r.header->start_ns - r.header->seen_ns) / 1e3;
		of[RUN][n] = (r.header->done_ns - r.header->start_ns) / 1e3;
		of[GPU][n] = of[TAKEN][n] + of[RUN][n];
		of[OUTSIDE][n] = us - of[GPU][n];
		n++;
	}
	for (int s = 0; s < ORDER; s++)
		qsort(of[s], n, sizeof(*of[s]), compare);
	*out = (struct gpu_latency){
		.p10_us = at(of[TOOK], n, 0.1),
		.p50_us = at(of[TOOK], n, 0.5),
		.p99_us = at(of[TOOK], n, 0.99),
		.p999_us = at(of[TOOK], n, 0.999),
		.gpu_p50_us = at(of[GPU], n, 0.5),
		.gpu_p99_us = at(of[GPU], n, 0.99),
		.taken_us = at(of[TAKEN], n, 0.5),
		.run_us = at(of[RUN], n, 0.5),
		.outside_us = at(of[OUTSIDE], n, 0.5),
		.lost = out->lost,
		.wrong = out->wrong,
	};
	find_classes(of[ORDER], n, at(of[TOOK], n, 0.98), out);
	free(all);
	return 0;
}

double gpu_load_throughput(struct rig *rig, const struct gpu_load *load, uint32_t window,
			   double seconds, uint64_t *lost)
{
	uint64_t start = clock_now_ns(), end = start + seconds * 1e9, last = start, now = start;
	uint64_t sent = 0, answered = 0;
	struct ring_descriptor fields = fields_at(start);
	uint32_t per_link = window / rig->n_links;
	struct rig_reply r;

	if (per_link > rig->slots)
		per_link = rig->slots;
	for (uint32_t i = 0; i < rig->n_links * per_link; i++, sent++) {
		fill(rig, i % rig->n_links, i / rig->n_links, load);
		rig_submit(rig, i % rig->n_links, i / rig->n_links, load->length, &fields);
	}
	while (answered < sent && now - last < PATIENCE_NS) {
		for (uint32_t l = 0; l < rig->n_links; l++) {
			while (rig_reply(rig, l, &r)) {
				answered++;
				last = clock_now_ns();
				if (last >= end)
					continue;
				fields = fields_at(last);
				if (!load->filled_once)
					fill(rig, l, r.slot, load);
				rig_submit(rig, l, r.slot, load->length, &fields);
				sent++;
			}
		}
		now = clock_now_ns();
	}
	*lost = sent - answered;
	return answered / ((last - start) / 1e9);
}
