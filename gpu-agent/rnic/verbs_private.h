/* SPDX-License-Identifier: BSD-3-Clause */
/* Facade of the verbs engine's files, private to them. */
#ifndef AGENT_VERBS_PRIVATE_H
#define AGENT_VERBS_PRIVATE_H

#include <pthread.h>

#include "rnic/send_queue.h"
#include "rdma/verbs.h"
#include "rnic/verbs_rnic.h"

/* The objects of a queue pair that its poster rings itself. */
struct verbs_direct {
	struct ibv_td *td;     /* its doorbell register */
	struct ibv_pd *domain; /* the device's protection domain with that register */
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct mlx5_queue view;
};

struct verbs_qp {
	struct rnic_qp base;
	struct rnic_qp_params params;
	struct ibv_qp *qp;
	bool proxied;               /* the proxy posts for it; otherwise the poster does */
	struct verbs_direct direct; /* unless it is proxied; direct.qp is <qp> */
	uint32_t reserved; /* entries of the shared completion queue that it has reserved */
	struct ibv_mr *writable, *sendable;
	bool connected;
	bool dead;
	/* owned by the proxy */
	struct send_queue sq;
	uint16_t done; /* the WQE after the last completed one */
	bool broken;   /* the last check found it in its error state */
	bool *signal;  /* per WQE: the poster wants a CQE */
};

struct verbs_rnic {
	struct rnic base;
	struct verbs_rnic_params params;
	struct verbs_device device;
	bool direct; /* posters get the device's own queues, as far as it has them */
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq; /* for all queue pairs that the proxy serves */
	uint32_t reserved; /* entries of <cq> that these queue pairs have reserved */
	struct sleeper sleeper;
	pthread_t thread;
	bool started;
	int stop; /* atomic */
	int gone; /* atomic: the device has failed, nothing can be created on it any more */
	unsigned int proxied; /* atomic: queue pairs that the proxy posts for */
	unsigned int busy; /* owned by the proxy: polls with work since it last read the clock */
	/* The main thread changes the list under this lock; the proxy holds it during a poll. */
	pthread_mutex_t lock;
	unsigned int n_qps;
	struct verbs_qp *qp[VERBS_RNIC_QPS_MAX];
};

/* verbs_proxy.c: the proxy's thread; <rnic> is the struct verbs_rnic. */
void *verbs_proxy(void *rnic);

/* verbs_direct.c. verbs_direct_possible(): true when the device is one whose queues posters know.
 */
bool verbs_direct_possible(const struct verbs_device *device);
/* Make a queue pair of <wqes> WQEs or more, whose view is the poster's. 0, or -errno with a reason
 * in <why>; then there is nothing to destroy. */
int verbs_direct_create(const struct verbs_device *device, uint32_t wqes, struct verbs_direct *v,
			char *why, size_t size);
void verbs_direct_destroy(struct verbs_direct *v);
/* Find out whether posters can have queues of this device, and ring it. 0, or -errno with a reason
 * in <why>. */
int verbs_direct_try(const struct verbs_device *device, const struct verbs_rnic_params *params,
		     char *why, size_t size);

#endif
