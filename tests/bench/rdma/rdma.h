/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma: what the RoCEv2 endpoint costs. The parent forks a process for each part, which measures
 * and tells it values; over the wire that process is the requester and forks the receiver.
 */
#ifndef BENCH_RDMA_H
#define BENCH_RDMA_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "common/payload.h"
#include "common/report.h"
#include "common/writer.h"

#define RDMA_BURST 32
/* IP bytes of the ports: for a RoCE MTU of 4096. */
#define RDMA_MTU      4200
#define RDMA_PATH_MTU 4096
_Static_assert(RDMA_PATH_MTU <= PAYLOAD_MAX, "messages are payloads");

#define RDMA_SENDER       "10.9.0.1"
#define RDMA_RECEIVER     "10.9.0.2"
#define RDMA_SENDER_QPN   0x200u
#define RDMA_SENDER_PSN   0xfff000u
#define RDMA_RECEIVER_PSN 0x100u

extern const uint8_t rdma_sender_mac[6], rdma_receiver_mac[6];

struct rdma_options {
	const char *json, *commit, *machine;
	const char *only; /* "cycles", "wire" or "loss"; NULL = all */
	unsigned int runs;
	unsigned int tries; /* spans measured, to get one undisturbed */
	uint32_t measure_ms;
	uint32_t outstanding; /* WRITEs without an acknowledgement, at most */
	bool hugepages, print_pages;
	bool verify; /* every byte that arrives is looked at, in time that is measured */
	bool smoke;
	uint16_t sender_cpu, receiver_cpu;
	char socket[64];
};

/* The parent gets one more value of a metric. */
void rdma_tell(int socket, double value, const char *format, ...)
	__attribute__((format(printf, 2 + 1, 4)));

/*
 * Start the EAL with this thread as lcore 0; on <cpu>, or wherever it likes when there is a
 * <worker_cpu>, which lcore 1 gets. Either may be RDMA_NO_CPU.
 */
#define RDMA_NO_CPU UINT16_MAX
void rdma_start_eal(const struct rdma_options *o, const char *name, uint16_t cpu,
		    uint16_t worker_cpu, unsigned int mb);
struct rte_mempool *rdma_pool(const char *name, unsigned int n, uint16_t room);

/* Each part's process. */
void rdma_cycles_main(const void *options, int socket);
void rdma_loss_main(const void *options, int socket);
struct rdma_wire {
	const struct rdma_options *o;
	bool acks_only; /* the receiver only acknowledges */
};
void rdma_wire_main(const void *wire, int socket);

/* --- over the wire -------------------------------------------------------------------------------
 */

/* Messages go to one slot after the other. */
#define RDMA_SLOTS  1024u
#define RDMA_DEVICE "socket=%s,rsize=10,bsize=4224"

enum rdma_order_kind { RDMA_SNAPSHOT, RDMA_VERIFY, RDMA_END };

struct rdma_order {
	enum rdma_order_kind kind;
	/* RDMA_VERIFY: these messages lie in their slots */
	uint64_t first, count;
	uint32_t length;
};

struct rdma_answer {
	int status; /* 0 or -errno */
	uint32_t qpn, rkey;
	uint64_t va; /* of the slots */
	uint64_t tsc, busy, cpu_ns;
	uint64_t writes; /* taken in order */
	uint64_t unwanted;
};

/* The receiver's process: answers once when it is set up, then each order. */
void rdma_receiver_main(const void *wire, int socket);

#endif
