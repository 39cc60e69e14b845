/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fixture of the rows against rdma_rxe: our endpoint (workers/rdma on a DPDK port), the program
 * that drives the other end by TCP (rxe_peer.c), and ways to lose packets. One thread; everything
 * moves in rig_poll(), which every wait calls.
 */
#ifndef RXE_RIG_H
#define RXE_RIG_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <rte_cycles.h>
#include <rte_mbuf.h>

#include "rdma/path.h"
#include "runtime/port.h"
#include "rdma/requester.h"
#include "rdma/responder.h"
#include "rdma/roce_wire.h"
#include "runtime/txq.h"

/* Memory that the peer may write here: addresses on the wire start at RIG_VA. */
#define RIG_VA     0x700000001000ull
#define RIG_RKEY   0x1234abcdu
#define RIG_MEMORY 65536
#define RIG_SEEN   4096
#define RIG_QPS    2
/* ms; long enough for emulation on a busy machine. A row that passes does not wait for it. */
#define RIG_PATIENCE_MS 5000

/* A way for packets to go: addresses and path MTU. */
struct rig_way {
	const char *name;
	uint8_t family;
	uint32_t mtu;
	unsigned int gid_index; /* the peer's */
	const char *ours, *peers;
};

/* A packet from the peer, as it came. */
struct rig_seen {
	struct roce_packet packet;
	uint64_t time;  /* TSC */
	uint64_t tries; /* retries that our requester's clocks had made before */
	uint8_t flags;  /* of the BTH */
};

/* A queue pair of ours and the one it is connected to. */
struct rig_qp {
	uint32_t number;
	unsigned int peer; /* as rxe_peer calls it */
	uint32_t peer_qpn;
	uint32_t first_psn, peer_psn; /* ours, the peer's */
	uint64_t va;                  /* the peer's memory */
	uint32_t lkey, rkey;
	struct roce_path path;
	struct requester requester;
	struct responder responder;
	bool mute;           /* the responder's acknowledgements are not sent */
	bool hands_off;      /* packets are recorded and nothing else */
	unsigned int writes; /* accepted, complete messages */
	uint32_t imm;        /* of the last that had one */
	unsigned int imms;
	unsigned int n_seen;
	struct rig_seen seen[RIG_SEEN];
};

struct rig {
	struct port port;
	struct txq tx;
	struct rte_mempool *packets, *small;
	uint32_t held;
	const struct rig_way *way;
	int control;
	bool ignore_neighbours; /* leave ARP and neighbour solicitations unanswered */
	unsigned int asked;     /* number of questions for our address */
	/* packets to lose, counted from when they were set: bit n is the n-th */
	uint64_t lose_sent, lose_received;
	unsigned int n_sent, n_received;
	uint32_t sent_psn[64]; /* of the same packets, lost or not */
	bool lose_acks;        /* all that come */
	bool lose_all;         /* all that are sent */
	struct rig_qp qp[RIG_QPS];
	unsigned int n_qps;
	uint8_t memory[RIG_MEMORY];
	jmp_buf failed;
	char reply[1 << 17];
};

int rig_open(struct rig *rig, const char *device, const char *peer_address, uint16_t peer_port);
/* Returns how many packet buffers were never freed. */
unsigned int rig_close(struct rig *rig);

struct rig_qp_options {
	const char *access; /* to the peer's memory: "w" */
	uint32_t psn, peer_psn;
	uint32_t bytes; /* of the peer's memory */
	uint32_t mtu;   /* 0: the way's */
	uint8_t retries, timeout;
	uint8_t peer_retries, peer_timeout, rnr_code;
};
extern const struct rig_qp_options rig_defaults;

/* A connected pair; lives until the row ends. */
struct rig_qp *rig_connect(struct rig *rig, const struct rig_qp_options *options);
/* Starts rig_connect(): no queue pair of the peer's is in RTR yet. */
struct rig_qp *rig_create(struct rig *rig, const struct rig_qp_options *options);
/* Destroys what the row has made. */
void rig_reset(struct rig *rig);

/* One turn: receive, acknowledge, timers, send. Sleeps up to a millisecond when nothing comes. */
void rig_poll(struct rig *rig);
void rig_poll_ms(struct rig *rig, unsigned int ms);

#define RIG_AWAIT(rig, condition)                                                                  \
	({                                                                                         \
		uint64_t end_ = rte_rdtsc() + rte_get_tsc_hz() / 1000 * RIG_PATIENCE_MS;           \
		bool met_;                                                                         \
		while (!(met_ = (condition)) && rte_rdtsc() < end_)                                \
			rig_poll(rig);                                                             \
		met_;                                                                              \
	})

/* Fails the row with a sentence; the next one begins. */
void rig_fail(struct rig *rig, const char *format, ...)
	__attribute__((format(printf, 2, 3), noreturn));

#define RIG_EXPECT(rig, condition, ...)                                                            \
	do {                                                                                       \
		if (!(condition))                                                                  \
			rig_fail(rig, __VA_ARGS__);                                                \
	} while (0)

/* peer.c: sends rxe_peer a command; returns its answer behind "ok", without the line's end. */
const char *peer_ask(struct rig *rig, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The same when an error is expected: returns it, 0 for none. */
int peer_try(struct rig *rig, const char *format, ...) __attribute__((format(printf, 2, 3)));

struct peer_completion {
	bool any;
	int status, opcode;
	uint32_t flags, imm, bytes;
};
struct peer_completion peer_poll(struct rig *rig, struct rig_qp *qp, unsigned int ms);
/* Expects this status of the next completion. */
void peer_expect(struct rig *rig, struct rig_qp *qp, int status);
bool peer_has(struct rig *rig, uint64_t va, uint32_t bytes, unsigned int seed);
int peer_state(struct rig *rig, struct rig_qp *qp);
int peer_connect(const char *address, uint16_t port);

/* Byte <i> of any message, as "fill" of rxe_peer makes it. */
static inline uint8_t rig_byte(unsigned int seed, uint32_t i)
{
	return (seed + i * 7) % 251;
}

/* WRITE <bytes> to the peer's memory at <offset> with our requester. */
void rig_write(struct rig *rig, struct rig_qp *qp, uint32_t offset, uint32_t bytes,
	       unsigned int seed, uint32_t imm, uint32_t flags);
/* Expects that everything is acknowledged. */
void rig_expect_acked(struct rig *rig, struct rig_qp *qp);
/* True if our memory has what the peer wrote. */
bool rig_has(const struct rig *rig, uint32_t offset, uint32_t bytes, unsigned int seed);
/* Returns the <n>-th packet that came for the queue pair, from 0; waits for it. */
const struct rig_seen *rig_seen_at(struct rig *rig, struct rig_qp *qp, unsigned int n);
/* Hands a frame to the port. */
void rig_send(struct rig *rig, const void *frame, uint32_t length);
/* Sends an ACK or NAK of our own. */
void rig_ack(struct rig *rig, struct rig_qp *qp, uint32_t psn, uint8_t syndrome, uint32_t msn);

/* The rows. */
#define ROW_V4   1u /* only over IPv4 */
#define ROW_V6   2u
#define ROW_ONCE 4u /* only on the first way of its family */
struct row {
	const char *name;
	void (*run)(struct rig *rig);
	unsigned int only;
};
extern const struct row requester_rows[], responder_rows[], wire_rows[], neighbour_rows[];

#endif
