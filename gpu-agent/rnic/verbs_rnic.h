/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Engine `verbs`: an RDMA device through rdma-core. The device places what the load balancer
 * WRITEs. How replies leave depends on the device: a ConnectX gives its queues to the poster
 * (mlx5dv_init_obj); for any other device, or where the poster cannot have them, a thread of this
 * process (the proxy) reads the poster's WQEs and posts them by ibv_post_send(). With nothing to
 * post, the proxy sleeps.
 *
 * Threads: as in rnic.h.
 */
#ifndef AGENT_VERBS_RNIC_H
#define AGENT_VERBS_RNIC_H

#include "rnic/rnic.h"

#define VERBS_RNIC_QPS_MAX 1024

struct verbs_rnic_params {
	const char *device; /* "rxe0" */
	struct rnic_address address;
	uint8_t traffic_class;
	bool idle_sleep;   /* false when the poster cannot wake the proxy (a GPU) */
	bool always_proxy; /* use the proxy also where the device would give its queues away */
	/* True when the poster can use this queue of the device, whose doorbell is a register;
	 * <why> gets the reason when not. NULL: the poster is a thread of this process, which can.
	 */
	bool (*can_ring)(void *context, const struct mlx5_queue *queue, char *why, size_t size);
	void *context;
};

/*
 * Open the device. NULL with a sentence in <error>, also where this was built without rdma-core.
 * <description> gets what was found, see verbs_describe().
 */
struct rnic *verbs_rnic_create(const struct verbs_rnic_params *params, char *description,
			       size_t description_size, char *error, size_t size);

#endif
