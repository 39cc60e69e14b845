/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One batch through the walk: requests from the clients to the workers, then every reply back. The
 * two directions are timed apart.
 */
#ifndef BENCH_WALK_BATCH_H
#define BENCH_WALK_BATCH_H

#include "common/clients.h"
#include "common/peer.h"
#include "common/turns.h"

struct bench {
	struct rig rig;
	struct clients clients;
	struct peer peer;
	struct turns requests, replies;
	struct turns untimed; /* turns in between */
	uint64_t worked;      /* TSC cycles inside lb_poll(), all turns together */
	uint64_t bytes;       /* of the frames of requests */
	void (*between)(const struct rig *rig); /* called before each turn, unless NULL */
};

/* Of the frames of the batch that was prepared last. */
uint64_t batch_bytes(const struct clients *c);

/* Ends the bench when anything is lost, copied, moved or wrong. */
void batch_run(struct bench *b, struct load *load);
/* The same in two halves: the requests, then their replies. */
void batch_requests(struct bench *b, struct load *load);
void batch_replies(struct bench *b, const struct load *load);

#endif
