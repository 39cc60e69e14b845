/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP connections on the walk: each of their steps for a whole batch, in turns of a burst. A step
 * ends the bench when anything is missing, moved or answered that should not be. Shared by the
 * benches that measure its time and that count its instructions.
 */
#ifndef BENCH_TCP_WALK_H
#define BENCH_TCP_WALK_H

#include "walk/tcp_clients.h"
#include "walk/tcp_large.h"
#include "walk/walk_batch.h"

/* Bytes of a small request, and of its reply. */
#define TCP_WALK_PAYLOAD 1024
/* Time between two turns, about that of a turn with 32 packets. */
#define TCP_WALK_TURNS_PER_MS 100

struct tcp_walk {
	struct bench walk; /* the UDP side, and what both share */
	struct tcp_clients clients;
	struct tcp_large large;
	struct turns untimed;
};

/* A load balancer for <connections>, its clock <clock>, which starts at <start_ms> and goes on
 * between turns. */
void tcp_walk_start(struct tcp_walk *t, const struct rig_options *options, uint32_t connections,
		    uint64_t *clock, uint32_t start_ms);
void tcp_walk_fini(struct tcp_walk *t);

/* Has the NIC verified the checksums of what the clients send from now on? */
void tcp_walk_checksums(struct tcp_walk *t, bool by_nic);

/* One turn of the load balancer; <turns> is where its time goes, here and below. */
void tcp_walk_turn(struct tcp_walk *t, struct turns *turns);

/* Steps of the connections of <flow>. */
void tcp_walk_open(struct tcp_walk *t, const uint32_t flow[RIG_BATCH], struct turns *syn,
		   struct turns *ack);
void tcp_walk_requests(struct tcp_walk *t, const uint32_t flow[RIG_BATCH], struct turns *turns);
void tcp_walk_replies(struct tcp_walk *t, struct turns *turns);
void tcp_walk_acknowledge(struct tcp_walk *t, const uint32_t flow[RIG_BATCH], struct turns *turns);
void tcp_walk_close(struct tcp_walk *t, const uint32_t flow[RIG_BATCH], struct turns *fin,
		    struct turns *end);

/* One request of 1 MiB by each of a few connections, drawn of the first <among>; see
 * tcp_large_deliver() for <late>. tcp_walk_answer_large() must follow. */
void tcp_walk_large(struct tcp_walk *t, uint32_t among, bool late, struct turns *turns);
void tcp_walk_answer_large(struct tcp_walk *t);

/* Ends the bench if anything was lost, copied, or sent twice, in any step. */
void tcp_walk_check(const struct tcp_walk *t);

#endif
