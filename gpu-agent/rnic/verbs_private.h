/* SPDX-License-Identifier: BSD-3-Clause */
/* Facade of the verbs engine's files, private to them. */
#ifndef AGENT_VERBS_PRIVATE_H
#define AGENT_VERBS_PRIVATE_H

#include <pthread.h>

#include "rnic/send_queue.h"
#include "rdma/verbs.h"
#include "rnic/verbs_rnic.h"

struct verbs_qp {
	struct rnic_qp base;
	struct rnic_qp_params params;
	struct ibv_qp *qp;
	struct ibv_cq *cq; /* its own one with direct posting; else NULL */
	uint32_t reserved; /* entries of the shared completion queue that it has reserved */
	struct ibv_mr *writable, *sendable;
	bool connected;
	bool dead;
	/* owned by the proxy */
	struct send_queue sq;
	uint16_t done; /* the WQE after the last completed one */
	bool *signal;  /* per WQE: the poster wants a CQE */
};

struct verbs_rnic {
	struct rnic base;
	struct verbs_rnic_params params;
	struct verbs_device device;
	bool direct; /* direct posting: posters get the device's own queues */
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq; /* for all queue pairs that the proxy serves */
	uint32_t reserved; /* entries of <cq> that these queue pairs have reserved */
	struct sleeper sleeper;
	pthread_t thread;
	bool started;
	int stop; /* atomic */
	int gone; /* atomic: the device has failed, nothing can be created on it any more */
	unsigned int busy; /* owned by the proxy: polls with work since it last read the clock */
	/* The main thread changes the list under this lock; the proxy holds it during a poll. */
	pthread_mutex_t lock;
	unsigned int n_qps;
	struct verbs_qp *qp[VERBS_RNIC_QPS_MAX];
};

/* verbs_proxy.c: the proxy's thread; <rnic> is the struct verbs_rnic. */
void *verbs_proxy(void *rnic);

/* verbs_direct.c. verbs_direct_possible(): true when posters can have the queues of this device.
 * verbs_direct_view(): fill <view> with the queues of a queue pair; 0 or -errno. */
bool verbs_direct_possible(const struct verbs_device *device);
int verbs_direct_view(struct ibv_qp *qp, struct ibv_cq *cq, struct mlx5_queue *view);

#endif
