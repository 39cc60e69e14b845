/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long a model's batches take, by their size, as measured. Pure; times are ns of any one clock.
 *
 * A line through the batches, younger ones count more: a part that each batch takes whatever its
 * size, and a part for each request. A model of which all batches were equally large is taken to
 * need as long for smaller ones, and more in proportion for larger ones.
 *
 * Owner: the loop's thread.
 */
#ifndef AGENT_TAKES_H
#define AGENT_TAKES_H

#include <stdbool.h>
#include <stdint.h>

struct takes {
	double weight, n, ns, n_n, n_ns; /* decaying sums over batches */
	double off_ns;                   /* how far a batch was from what was expected, decaying */
	double longest_ns;               /* of a batch, decaying */
	uint64_t last_ns;                /* when the last batch ended; 0: none has */
};

/* A batch of <n> has taken <ns> and ended at <now>. Batches of none are not measured. */
void takes_measure(struct takes *takes, uint32_t n, uint64_t ns, uint64_t now);

/* ns that a batch of <n> is expected to take, and twice what it is usually off by; 0: not known. */
uint64_t takes_expect(const struct takes *takes, uint32_t n);

/*
 * Call before requests are given up. Forgets all, and returns true, if no batch has run for a
 * second: where one that took exceptionally long makes every request look late, nothing would run,
 * and nothing be measured, ever again.
 */
bool takes_relax(struct takes *takes, uint64_t now);

#endif
