/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of the EAL. Its interrupt thread outlives rte_eal_cleanup(), which frees what that thread
 * reads whenever a driver has taken a handler back, as memif does when its ports close.
 */
#ifndef RUNTIME_EAL_END_H
#define RUNTIME_EAL_END_H

/* Halt the interrupt thread for good, then clean up the EAL. On the main thread, after all ports
 * were closed; the process is about to end. */
void eal_end(void);

#endif
