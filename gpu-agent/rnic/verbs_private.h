/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the verbs engine share. */
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
	struct ibv_cq *cq; /* its own, where the poster has the device's queues; else NULL */
	uint32_t reserved; /* completions of the shared one */
	struct ibv_mr *writable, *sendable;
	bool connected;
	bool dead;
	/* the proxy's */
	struct send_queue sq;
	uint16_t done; /* the WQE behind the last that is complete */
	bool *signal;  /* by WQE: the poster wants a CQE */
};

struct verbs_rnic {
	struct rnic base;
	struct verbs_rnic_params params;
	struct verbs_device device;
	bool direct; /* posters get the device's own queues */
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq; /* of all queue pairs that the proxy serves */
	uint32_t reserved; /* completions that those may have at a time */
	struct sleeper sleeper;
	pthread_t thread;
	bool started;
	int stop;          /* atomic */
	int gone;          /* atomic: the device has failed, nothing can be made on it any more */
	unsigned int busy; /* the proxy's: turns with work since it last looked at the clock */
	/* The main thread changes the list, the proxy holds this during a turn. */
	pthread_mutex_t lock;
	unsigned int n_qps;
	struct verbs_qp *qp[VERBS_RNIC_QPS_MAX];
};

/* verbs_proxy.c: the thread. */
void *verbs_proxy(void *rnic);

/* verbs_direct.c: can posters have the queues of this device; those of a queue pair. 0 or -errno.
 */
bool verbs_direct_possible(const struct verbs_device *device);
int verbs_direct_view(struct ibv_qp *qp, struct ibv_cq *cq, struct mlx5_queue *view);

#endif
