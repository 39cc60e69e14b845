/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The part of a NIC that cuts a packet into TCP segments (TSO). It is strict: it takes only what
 * every driver takes, and the row fails otherwise.
 */
#ifndef WALK_CUT_H
#define WALK_CUT_H

#include "walk.h"

/*
 * Writes segment <number> of <m> to <frame>, which has WALK_FRAME_MAX bytes, and returns its
 * length: with a number, an IPv4 identification and flags of its own, the IPv4 checksum, and in the
 * TCP checksum the sum of the pseudo header, as in packets that the port does not cut. <last>:
 * there are no more.
 */
uint32_t cut_segment(const struct port *port, const struct rte_mbuf *m, unsigned int number,
		     uint8_t *frame, bool *last);

#endif
