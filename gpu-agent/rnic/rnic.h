/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interface between a worker and its RNIC, which registers memory, places what the peer WRITEs
 * there, and sends what is posted in mlx5 format. Two engines implement it: `soft`, a software RNIC
 * in this process (soft_rnic.h), and `verbs`, an RDMA device through rdma-core (verbs_rnic.h).
 *
 * Threads: all calls belong to the main thread and return when they are done; only kick() is called
 * by the poster's thread.
 */
#ifndef AGENT_RNIC_H
#define AGENT_RNIC_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rdma/mlx5_post.h"
#include "runtime/sleeper.h"

struct rnic_address {
	uint8_t family;       /* 4 or 6 */
	struct in6_addr addr; /* IPv4 as ::ffff:a.b.c.d */
};

/* Memory of this process, or of a GPU that it has mapped. */
struct rnic_span {
	uint64_t va;
	uint64_t length;
	bool on_gpu;
	int dmabuf_fd; /* the driver's dma-buf of a GPU's memory; -1: none */
	uint64_t dmabuf_offset;
};

struct rnic_qp_params {
	struct rnic_span writable; /* memory that the peer may WRITE to */
	struct rnic_span sendable; /* memory that may be sent from */
	uint32_t wqe_count;        /* power of two */
	uint32_t psn;              /* first PSN that we send */
	uint32_t spread; /* the peer's lcore: its packets go by the device's queue of that number */
	struct sleeper *wake;      /* woken by a write or by a failure of the queue pair, or NULL */
	uint32_t *failed;          /* set to 1 (atomic) when the queue pair fails; NULL: none */
	char *why;                 /* NULL, or gets the reason when create() returns NULL */
	size_t why_size;
};

/* Bytes of rnic_qp.note. */
#define RNIC_NOTE_MAX 160

/* A queue pair. Its owner reads these fields; an engine has more behind them. */
struct rnic_qp {
	struct rnic *rnic;
	uint32_t number;
	uint32_t rkey;           /* of <writable> */
	uint32_t lkey;           /* of <sendable> */
	struct mlx5_queue queue; /* as the poster sees it; the poster works on a copy of its own */
	bool doorbell_is_io;     /* queue.doorbell is a register of the device, not memory */
	const char *registered;  /* how <writable> was: "host", "dmabuf", "peermem" */
	char note[RNIC_NOTE_MAX]; /* why the proxy posts for this one, unlike the others; or "" */
};

struct rnic_peer {
	struct rnic_address address;
	uint32_t qpn;
	uint32_t psn; /* first PSN that the peer sends */
	uint32_t path_mtu;
	uint16_t udp_source; /* UDP source port to send from, 0xc000 and up; 0: any */
	uint8_t ack_timeout, retry_limit;
};

struct rnic_ops {
	/* Create a queue pair, which cannot send or receive yet. NULL with errno. */
	struct rnic_qp *(*create)(struct rnic *rnic, const struct rnic_qp_params *params);
	/* Connect: from here on it receives, and sends as soon as the peer's MAC address is known.
	 * 0 or -errno. */
	int (*connect)(struct rnic_qp *qp, const struct rnic_peer *peer);
	/* Destroy it: after this the RNIC neither reads nor writes the caller's memory. NULL is
	 * fine. */
	void (*destroy)(struct rnic_qp *qp);
	/* Wake the RNIC, if it sleeps, after doorbells were rung. */
	void (*kick)(struct rnic *rnic);
	/* Close the RNIC; all queue pairs have been destroyed. */
	void (*close)(struct rnic *rnic);
};

/* Report to the worker that its queue pair has failed. For engines, on their own threads. */
static inline void rnic_qp_report_failure(const struct rnic_qp_params *params)
{
	if (params->failed != NULL)
		__atomic_store_n(params->failed, 1, __ATOMIC_RELEASE);
	if (params->wake != NULL)
		sleeper_wake(params->wake);
}

struct rnic {
	const struct rnic_ops *ops;
	uint32_t path_mtu; /* largest of the port */
	bool wakes; /* it wakes sleepers when something was written; if not, they must poll */
};

#endif
