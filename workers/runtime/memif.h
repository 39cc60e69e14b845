/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What DPDK's memif leaves to its user: its two ends find each other by a UNIX socket, at which the
 * end with role=server listens. Pure but for the socket's file; any thread.
 *
 * DPDK 22.11's driver has gaps, which make it fail now and then when two processes start or
 * end at about the same time:
 *  - A client connects when its port starts, and only then. If nobody listens yet, the start fails;
 *    if the server is not started yet, or has not noticed that the client before has gone, it
 *    refuses ("ID not found", "Already connected"), and the client has no link from then on. Nor
 *    has it after the server was restarted. So a port that connects is started again until it has a
 *    link (port_connect()).
 *  - A server that was killed leaves the socket's file, and the next one cannot listen. So one at
 *    which nobody listens is removed first (memif_remove_left()).
 */
#ifndef RUNTIME_MEMIF_H
#define RUNTIME_MEMIF_H

#include <stdbool.h>

/* True when <device> is a memif that connects; false for one that listens, and for other devices. */
bool memif_connects(const char *device);
/* Before a memif that listens is opened: remove the file of a socket at which nobody does. */
void memif_remove_left(const char *device);

#endif
