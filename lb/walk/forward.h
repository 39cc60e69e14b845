/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests to workers (private to lb/): choose, write the payload, announce it. A client whose
 * request cannot be served gets a notice. Runs on the lcore.
 */
#ifndef WALK_FORWARD_H
#define WALK_FORWARD_H

#include "lcore/burst.h"
#include "lcore/lcore.h"

/* Choose a worker for each request of the burst. Without a credit a request waits; it is refused
 * when it cannot. */
void forward_assign(struct lcore *lc, struct burst *b);
/* Write the payloads to the slots of the chosen workers. */
void forward_send(struct lcore *lc, struct burst *b);
/* Announce what was written: one descriptor WRITE per link. */
void forward_flush(struct lcore *lc);
/* Find places in workers' memory for requests that are larger than a packet, oldest first; end
 * those that have waited too long. Returns how many it has looked at. */
unsigned int forward_place(struct lcore *lc);
/* The notice that a client gets for a drop reason. */
enum lb_notice forward_notice_of(enum lb_drop reason);
/* Drop a request of the burst and tell its client why. */
void forward_refuse(struct lcore *lc, const struct burst *b, unsigned int i, enum lb_drop reason);

#endif
