/* SPDX-License-Identifier: BSD-3-Clause */
#include "turns/takes.h"

/* Each batch takes this part off the weight of those before it. */
#define TAKES_DECAY (1.0 / 32)
/* Batches whose sizes vary less are taken for equal: square of the standard deviation. */
#define TAKES_VARIES 0.25
#define TAKES_OFF    2.0
#define TAKES_FORGET UINT64_C(1000000000)

static double takes_line(const struct takes *t, double n)
{
	double mean_n = t->n / t->weight, mean_ns = t->ns / t->weight;
	double variance = t->n_n / t->weight - mean_n * mean_n;
	double each, base;

	if (variance < TAKES_VARIES)
		return n <= mean_n ? mean_ns : mean_ns * n / mean_n;
	each = (t->n_ns / t->weight - mean_n * mean_ns) / variance;
	base = mean_ns - each * mean_n;
	if (each < 0)
		return mean_ns;
	/* Nothing takes less than nothing: then the line goes through zero. */
	return base < 0 ? t->n_ns / t->n_n * n : base + each * n;
}

void takes_measure(struct takes *t, uint32_t n, uint64_t ns, uint64_t now)
{
	double keep = 1 - TAKES_DECAY, off;

	if (n == 0)
		return;
	if (t->weight > 0) {
		off = (double)ns - takes_line(t, n);
		off = off < 0 ? -off : off;
		/* The first guesses are off because little was known. */
		t->off_ns = t->weight < 4 ? off / 4 : t->off_ns * keep + off * TAKES_DECAY;
	}
	t->weight = t->weight * keep + 1;
	t->n = t->n * keep + n;
	t->ns = t->ns * keep + (double)ns;
	t->n_n = t->n_n * keep + (double)n * n;
	t->n_ns = t->n_ns * keep + (double)n * (double)ns;
	t->longest_ns *= keep;
	if ((double)ns > t->longest_ns)
		t->longest_ns = (double)ns;
	t->last_ns = now;
}

uint64_t takes_expect(const struct takes *t, uint32_t n)
{
	return t->weight == 0 ? 0 : (uint64_t)(takes_line(t, n) + TAKES_OFF * t->off_ns);
}

bool takes_relax(struct takes *t, uint64_t now)
{
	if (t->last_ns == 0 || now < t->last_ns + TAKES_FORGET)
		return false;
	*t = (struct takes){0};
	return true;
}
