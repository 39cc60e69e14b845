/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stand-in for a ConnectX and its libraries: the calls of libibverbs and libmlx5 that the agent's
 * verbs engine makes, with queues, doorbell records and registers in memory, and a thread that
 * reads them as the NIC does. Linked into tests instead of the libraries, or preloaded before them.
 *
 * It writes and reads the bytes by the structs of rdma-core's mlx5dv.h, not by ours, and its sizes
 * are libmlx5's: a work request takes 192 bytes of the queue unless send_ops_flags says otherwise,
 * a completion queue is a power of two, doorbell records share pages, queue pairs share one
 * register unless their protection domain has a thread domain.
 *
 * Threads: the calls below belong to the test's thread, except where they say otherwise.
 */
#ifndef STANDIN_H
#define STANDIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The device's name. */
#define STANDIN_DEVICE "standin0"
/* WQEBBs of the longest send queue, as a ConnectX has. */
#define STANDIN_WQES_MAX 32768u

/* Things that the device refuses; set before the call that is to fail. */
struct standin_faults {
	bool other_vendor;     /* it is no ConnectX: mlx5dv takes none of it */
	bool no_registers;     /* no register of one's own */
	uint32_t registers;    /* so many at most; 0: no limit */
	bool no_dmabuf;        /* ibv_reg_dmabuf_mr() fails with EOPNOTSUPP */
	bool no_device_memory; /* ibv_reg_mr() of memory that is not the host's: EFAULT */
	uint32_t regions;      /* memory regions at most; 0: no limit */
	bool large_cqes;       /* CQEs of 128 bytes, as MLX5_CQE_SIZE=128 makes them */
	bool late_errors; /* an error is polled only after ibv_query_qp() has shown the state */
};

/* Counters of what happened; any thread may read them. */
struct standin_counters {
	uint64_t doorbells; /* that the NIC's thread has seen */
	uint64_t wqes, cqes;
	uint64_t polls;    /* ibv_poll_cq() */
	uint64_t queries;  /* ibv_query_qp() */
	uint64_t posts;    /* ibv_post_send() */
	uint64_t overruns; /* completion queues that had no room */
	uint64_t wrong;    /* doorbells or WQEs that no right poster writes */
	uint64_t shared;   /* queues whose owner got them by mlx5dv and whose register is shared */
};

extern struct standin_faults standin_faults;
extern struct standin_counters standin_counters;
/* The first wrong doorbell or WQE. */
extern char standin_wrong[128];

/* Objects that the program holds: 0 when everything was destroyed. */
unsigned int standin_objects(void);

/* Put a queue pair into its error state, as a lost peer does. */
void standin_break(uint32_t qpn);
/* The device is removed: every queue pair fails, and its owner gets an event. */
void standin_remove(void);

/* --- the far end, where the network is this process --------------------------------------------
 */

/* How the NIC reads and writes the program's memory; NULL: by memcpy(). On the NIC's thread and on
 * the caller's of standin_far_write(). */
extern void (*standin_copy)(void *to, const void *from, size_t size);

/* A peer's queue pair and the memory that it lets the program write to. */
struct standin_far;

/* A message that arrived: a WRITE with immediate. */
struct standin_message {
	uint64_t address; /* where its bytes are, in the far end's memory */
	uint32_t length, imm;
};

/* Open a far end with <bytes> of memory; NULL when there is none. Connect to its number, at
 * 127.0.0.1. Close it after the queue pairs that are connected to it, or they fail. */
struct standin_far *standin_far_open(size_t bytes);
void standin_far_close(struct standin_far *far);
uint32_t standin_far_qpn(const struct standin_far *far);
uint32_t standin_far_rkey(const struct standin_far *far);
uint8_t *standin_far_memory(const struct standin_far *far);
/* It acknowledges nothing until it is told to listen again. */
void standin_far_listen(struct standin_far *far, bool listens);
/* It takes what comes, but its acknowledgements are held back. */
void standin_far_hold(struct standin_far *far, bool holds);
/* The next message, in order. False: none yet. */
bool standin_far_next(struct standin_far *far, struct standin_message *message);
/* WRITE to memory that queue pair <qpn> may be written to. 0, or the syndrome that a requester gets
 * (0x13: a wrong
 * key, range or permission; 0x15: no such queue pair). */
uint8_t standin_far_write(uint32_t qpn, uint32_t rkey, uint64_t va, const void *bytes,
			  size_t length);

#endif
