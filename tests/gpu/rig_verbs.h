/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The NIC of a rig: the agent's verbs engine over far.h's device, a ConnectX's stand-in
 * (tests/rdma/standin) or a real one. Requests are WRITEs of a peer.
 */
#ifndef GPU_RIG_VERBS_H
#define GPU_RIG_VERBS_H

#include "rig.h"

/* The loop rings. */
extern const struct rig_nic rig_verbs;
/* The proxy posts. */
extern const struct rig_nic rig_verbs_proxy;
/* The loop rings, and rings, payloads and replies lie in the GPU's memory. */
extern const struct rig_nic rig_verbs_gpu;

#endif
