/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wire-100g: a generator process and a load balancer process, joined by two memif ports. The parent
 * forks both and gives them orders, each over a socket of its own; they answer every order. What
 * the two tell each other otherwise goes over the wire.
 */
#ifndef BENCH_WIRE_H
#define BENCH_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "conntrack.h"
#include "lb.h"
#include "common/wire_child.h"

#define WIRE_QUEUES_MAX      16 /* one per lcore of the load balancer */
#define WIRE_THREADS_MAX     (2 * WIRE_QUEUES_MAX)
#define WIRE_STEPS_MAX       WIRE_QUEUES_MAX
#define WIRE_CONNECTIONS_MAX 32

#define WIRE_VIP         "10.0.0.100"
#define WIRE_SERVICE_UDP 8500
#define WIRE_SERVICE_TCP 8600
#define WIRE_LB_FABRIC   "10.9.0.1"
#define WIRE_HOST        "10.9.0.2" /* the worker's */
/* IP bytes on the fabric: the smallest for a RoCE MTU of 2048, so that a request is one packet. */
#define WIRE_FABRIC_MTU 2128
#define WIRE_PATH_MTU   2048
/* Of both ports on both sides; in one buffer goes a whole frame of the fabric. */
#define WIRE_DEVICE "socket=%s-%s,rsize=%u,bsize=2176"

/* Of the worker's ring on one link. */
#define WIRE_SLOTS     1024
#define WIRE_STRIDE    16384 /* what an agent with large requests has */
#define WIRE_BYTES_MAX 1472  /* of a request */
#define WIRE_FIRST_PSN 0xfffff0u
#define WIRE_ROOM      (64u << 20) /* for requests by TCP */
/*
 * How often the worker's loop beats on each queue, as an agent's does by default; what it
 * announces, after twice which it is suspect; and how long it may be silent before it is removed.
 * Silence is what a busy machine makes of beats, so these are longer than a daemon's, but a run
 * with --smoke outlasts them all.
 */
#define WIRE_BEAT_MS      20
#define WIRE_HEARTBEAT_MS 1000
#define WIRE_DEAD_MS      4000
/* The worker's queue pair, rkey and memory for one lcore of the load balancer. */
#define WIRE_QPN(lcore)         (0x100u + (lcore))
#define WIRE_RKEY(lcore)        (0x1000u + (lcore))
#define WIRE_DESCRIPTORS(lcore) ((uint64_t)((lcore) + 1) << 40)
#define WIRE_REQUESTS(lcore)    (WIRE_DESCRIPTORS(lcore) + (1ull << 32))
#define WIRE_CANCELS(lcore)     (WIRE_DESCRIPTORS(lcore) + (1ull << 36))

/* Ethernet, IPv4 and UDP before a client's bytes. A frame counts without its FCS. */
#define WIRE_CLIENT_HEADERS (14 + 20 + 8)
#define WIRE_FRAME_MAX      (WIRE_CLIENT_HEADERS + WIRE_BYTES_MAX)
/* A request's number, which its reply repeats. */
#define WIRE_NUMBER_LENGTH 8

/*
 * A request by TCP: its length in four bytes, then 1 MiB, in segments as a kernel with timestamps
 * sends them. Each segment begins with WIRE_MARK bytes: the four of the length, which are the same
 * in each, and the request's number and the segment's.
 */
#define WIRE_TCP_BYTES    (1u << 20)
#define WIRE_TCP_LENGTH   4
#define WIRE_TCP_HEADERS  (14 + 20 + 32)
#define WIRE_MSS          1448
#define WIRE_SEGMENTS     ((WIRE_TCP_LENGTH + WIRE_TCP_BYTES + WIRE_MSS - 1) / WIRE_MSS)
#define WIRE_SEGMENT_LAST (WIRE_TCP_LENGTH + WIRE_TCP_BYTES - (WIRE_SEGMENTS - 1) * WIRE_MSS)
#define WIRE_MARK         (WIRE_TCP_LENGTH + 8)
/* The frames of a request, together. */
#define WIRE_TCP_FRAMES (WIRE_TCP_LENGTH + WIRE_TCP_BYTES + WIRE_SEGMENTS * WIRE_TCP_HEADERS)

struct wire_options {
	const char *json, *commit, *machine;
	const char *only; /* the first metric of a scenario, for profilers; NULL = all */
	unsigned int lcores, threads; /* of the load balancer, of the generator */
	uint16_t lb_cpu[WIRE_QUEUES_MAX], gen_cpu[WIRE_THREADS_MAX];
	unsigned int runs,
		tries; /* spans measured per scenario; how often, to get each undisturbed */
	uint32_t measure_ms, smoke_ms;
	uint32_t flows;
	uint32_t outstanding; /* requests per queue without a reply: the window that is kept full */
	unsigned int ring;    /* log2 of the slots of a memif ring */
	uint32_t reply;       /* bytes of a reply's payload */
	uint32_t connections; /* of clients by TCP, per queue; 0: no service for them */
	bool hugepages, zero_copy, print_pages;
	bool verify; /* the generator checks every byte, in time that is measured */
	bool sweep;  /* small frames, too */
	char socket[64];
	/* Of the flow table: flows it takes, and how long a silent one lives; 0 = all <flows>, for
	 * longer than a run. */
	uint32_t capacity, timeout_ms;
	/* conntrack-scale: numbers of lcores, and for each its <threads>; its flow table while
	 * every request opens a flow. */
	uint16_t step[WIRE_STEPS_MAX];
	unsigned int n_steps, threads_per_lcore;
	uint32_t new_capacity_per_lcore, new_timeout_ms;
};

/* The load: the frames that the generator sends, and how the load balancer treats them. */
struct wire_load {
	uint32_t frame;  /* bytes, without FCS; of UDP */
	bool tcp;        /* requests of 1 MiB instead of datagrams */
	bool nic_checks; /* the load balancer's NIC has verified all checksums */
	bool one_queue;  /* only the first */
	bool verify;     /* every byte in the worker's memory; costs time */
	uint32_t lose;   /* of TCP: every so many segments one is not sent; 0: none */
	bool forward;    /* the load balancer only swaps addresses and sends back */
	bool no_sum;     /* clients leave the UDP checksum out, as UDP over IPv4 may */
	bool in_turn;    /* every flow in turn, instead of at random */
	bool fresh;      /* every request is the first of a flow that never was before */
	uint64_t limit;  /* requests per queue; 0 = until WIRE_DRAIN */
};

enum wire_order_kind {
	WIRE_JOIN,     /* generator: the load balancer is there. Load balancer: get going */
	WIRE_START,    /* begin a load; the load balancer is told first */
	WIRE_DRAIN,    /* generator: send no more, answer when all is back or nothing moves */
	WIRE_SNAPSHOT, /* say the counters */
	WIRE_STOP,     /* no thread uses a port any more: they vanish with the other side */
	WIRE_END,
};

/* How to reach the load balancer; its process says it once. */
struct wire_address {
	uint8_t client_mac[6], fabric_mac[6];
	uint32_t path_mtu;
	struct lb_link_info link[WIRE_QUEUES_MAX];
};

struct wire_order {
	enum wire_order_kind kind;
	struct wire_load load;
	struct wire_address address; /* WIRE_JOIN to the generator */
};

/* One thread's time: TSC cycles with work in hand, CPU time. */
struct wire_time {
	uint64_t busy, cpu_ns;
};

struct wire_lb_counters {
	uint64_t requests, replies, forwarded;
	uint64_t unwanted; /* drops, copies, notices, packets sent again: all must stay 0 */
	uint64_t refused;  /* segments: only what clients sent twice may be */
	uint64_t turns;    /* with work */
	uint64_t packets_in;
	uint64_t stage_cycles[LB_STAGES];
	struct conntrack_stats flows;
	struct wire_time time;
};

struct wire_queue_counters {
	uint64_t sent, answered;  /* as the clients see it */
	uint64_t writes;          /* as the worker sees it: payloads */
	uint64_t announced;       /* and descriptors of datagrams */
	uint64_t tcp_bytes;       /* and payload of requests by TCP */
	uint64_t forwarded_bytes; /* of frames of TCP that came back */
	uint64_t resent, unsent;  /* segments sent again; made and not sent, see wire_load.lose */
	uint64_t acks_sent, acks_received;
};

struct wire_answer {
	int status; /* 0 or -errno */
	uint64_t tsc, tsc_hz;
	struct wire_address address; /* the load balancer's first answer */
	char unwanted[512];          /* which of them, if any */
	union {
		struct wire_lb_counters lb[WIRE_QUEUES_MAX];
		struct {
			struct wire_queue_counters queue[WIRE_QUEUES_MAX];
			struct wire_time thread[WIRE_THREADS_MAX];
		} gen;
	};
};

enum wire_bench { WIRE_BENCH_100G, WIRE_BENCH_SCALE };

/*
 * False after telling how it is used. For wire-100g <o> is complete then; conntrack-scale makes
 * one of it for each step, see wire_options_step().
 */
bool wire_options_parse(int argc, char **argv, enum wire_bench bench, struct wire_options *o);
/* The options of a run with <lcores>: what is common comes from <all>. */
void wire_options_step(const struct wire_options *all, unsigned int lcores, bool fresh,
		       struct wire_options *step);
/* Flows that the load balancer's table takes. */
uint32_t wire_options_capacity(const struct wire_options *o);
/* MiB of memory that each process asks its EAL for. */
unsigned int wire_lb_memory_mb(const struct wire_options *o);
unsigned int wire_gen_memory_mb(const struct wire_options *o);
/* Pages of 2 MiB that both processes take together. */
unsigned int wire_options_pages(const struct wire_options *o);

/* The generator's threads for a queue. With more threads than queues the first ones are clients and
 * the others the worker. */
static inline unsigned int wire_clients_thread(const struct wire_options *o, unsigned int queue)
{
	return o->threads > o->lcores ? queue : queue % o->threads;
}

static inline unsigned int wire_worker_thread(const struct wire_options *o, unsigned int queue)
{
	return o->threads > o->lcores ? o->lcores + queue % (o->threads - o->lcores)
				      : queue % o->threads;
}

/* The next order; WIRE_END when the parent is gone. */
void wire_take_order(int socket, struct wire_order *order);
void wire_answer(int socket, const struct wire_answer *answer);

/* The two processes; both answer once when they are set up, and return at WIRE_END. */
void wire_lb_main(const struct wire_options *o, int socket);
void wire_gen_main(const struct wire_options *o, int socket);

#endif
