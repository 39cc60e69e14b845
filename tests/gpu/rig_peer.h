/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Links of a rig for a NIC that is a GPU (peer_nic.h): rings, payloads and replies in the GPU's
 * memory, as a worker with --memory gpu has them, or in the host's. Queues are the host's, as a
 * ConnectX's are. The caller's thread neither writes requests nor reads replies.
 */
#ifndef GPU_RIG_PEER_H
#define GPU_RIG_PEER_H

#include "peer_nic.h"
#include "rig.h"

extern const struct rig_nic rig_peer_gpu;
extern const struct rig_nic rig_peer_host;

/* The link as the NIC sees it, after rig_start(). */
struct peer_link rig_peer_link(const struct rig *rig, uint32_t link);

#endif
