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

/* Connections that speak KServe: by HTTP/1.1, and a few by gRPC. */
#define TCP_WALK_KSERVE 16384u
_Static_assert(TCP_WALK_KSERVE % RIG_BATCH == 0, "they are opened in batches");

/* Those: as many as a client may have. */
#define TCP_WALK_CALLERS 32
/* Requests by KServe at a time: half of those that an lcore remembers, as some are kept for small
 * clients. */
#define TCP_WALK_ASKED 1024

struct tcp_walk {
	struct bench walk; /* the UDP side, and what both share */
	struct tcp_clients *clients; /* whose steps the next ones are */
	unsigned int batch;          /* how many of a batch's flows take them */
	struct tcp_clients length, kserve;
	struct tcp_speech small_length, small_kserve, small_grpc; /* requests of TCP_WALK_PAYLOAD */
	struct tcp_large large;
	struct tcp_speech speech_large, *spoke; /* while large requests are made */
	struct tcp_frames frames[TCP_WALK_CALLERS];
	struct turns untimed;
};

/* A load balancer for <connections> of framing `length`, and those above; options->connections is
 * set here. Its clock <clock> starts at <start_ms> and goes on between turns. */
void tcp_walk_start(struct tcp_walk *t, struct rig_options *options, uint32_t connections,
		    uint64_t *clock, uint32_t start_ms);
void tcp_walk_fini(struct tcp_walk *t);

/* The next steps are those of connections that speak <framing>. Of gRPC there are TCP_WALK_CALLERS
 * from TCP_WALK_KSERVE on, and each batch is all of them. */
void tcp_walk_speak(struct tcp_walk *t, enum tcp_framing framing);

/* Has the NIC verified the checksums of what the clients send from now on? */
void tcp_walk_checksums(struct tcp_walk *t, bool by_nic);

/* Open the first <connections> of framing `length`, and all that speak KServe. */
void tcp_walk_open_length(struct tcp_walk *t, uint32_t connections);
void tcp_walk_open_kserve(struct tcp_walk *t);

/* One turn of the load balancer; <turns> is where its time goes, here and below. */
void tcp_walk_turn(struct tcp_walk *t, struct turns *turns);

/* Steps of the connections of <flow>, those of t->clients. */
void tcp_walk_open(struct tcp_walk *t, const uint32_t flow[RIG_BATCH], struct turns *syn,
		   struct turns *ack);
void tcp_walk_requests(struct tcp_walk *t, const uint32_t flow[RIG_BATCH], struct turns *turns);
void tcp_walk_replies(struct tcp_walk *t, struct turns *turns);
void tcp_walk_acknowledge(struct tcp_walk *t, const uint32_t flow[RIG_BATCH], struct turns *turns);
void tcp_walk_close(struct tcp_walk *t, const uint32_t flow[RIG_BATCH], struct turns *fin,
		    struct turns *end);

/* One request of <size> bytes in <framing> by each of a few connections, of `length` drawn of the
 * first <among>; see tcp_large_deliver() for <late>. tcp_walk_answer_large() must follow. */
void tcp_walk_large(struct tcp_walk *t, enum tcp_framing framing, uint32_t size, uint32_t among,
		    bool late, struct turns *turns);
void tcp_walk_answer_large(struct tcp_walk *t);

/* Ends the bench if anything was lost, copied, or sent twice, in any step. */
void tcp_walk_check(const struct tcp_walk *t);

#endif
