/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes the synchronisation inside DPDK's libraries visible to ThreadSanitizer. They are built
 * without it, so it does not see that packets pass from one thread to another through their rings
 * and pools, nor that a thread has waited for others.
 */
#ifndef RACE_SEEN_H
#define RACE_SEEN_H

#include "walk.h"

/* Call it before the first load balancer: pools keep their packets behind a mutex. */
void seen_pools(void);
/* Ports of <w> take packets from their rings by code of this program. */
void seen_ports(struct walk *w);

/* A thread per lcore runs its loop, until all are told to stop. */
void seen_start(struct walk *w);
void seen_stop(struct walk *w);

#endif
