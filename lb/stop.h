/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stopping as a good server does (private to lb/): new requests are refused, those that are here
 * are finished or their clients told, then nothing is left to do.
 */
#ifndef LB_STOP_H
#define LB_STOP_H

#include "lcore/lcore.h"

/* Control thread, each tick. */
void stop_tick(struct lb *lb);
/* After the last turn: until the NICs have sent what they were given, or for a moment. */
void stop_settle(const struct lb *lb);

#endif
