/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Before its first request a new worker must answer a probe: a request of zeros, as long as its
 * services say (probe_bytes), on every link (private to lb/). Control thread.
 */
#ifndef LB_PROBE_H
#define LB_PROBE_H

#include "lcore/lcore.h"

/* Send one on every link. False: no service of its model wants that. */
bool probe_start(struct lb *lb, struct worker *w);

/* BAD as soon as one link's is, GOOD when all are, WAITING until then. */
enum probe_state probe_result(const struct lb *lb, const struct worker *w);

#endif
