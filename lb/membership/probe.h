/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Probes a new worker before its first request: it must answer a request of zero bytes, as long as
 * its services' probe_bytes, on every link (private to lb/). Control thread.
 */
#ifndef LB_PROBE_H
#define LB_PROBE_H

#include "lcore/lcore.h"

/* Send a probe on every link. False: no service of its model asks for one. */
bool probe_start(struct lb *lb, struct worker *w);

/*
 * PROBE_BAD as soon as one link's probe is bad, PROBE_GOOD when all are good, else PROBE_WAITING.
 */
enum probe_state probe_result(const struct lb *lb, const struct worker *w);

#endif
