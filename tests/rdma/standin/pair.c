/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stand-in's network between queue pairs of the device itself, as a NIC loops packets back to
 * its own address: preloaded into a program that has both ends of each connection, like loop_rdma.
 * It reaches memory of the host only.
 */
#include <arpa/inet.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "standin_private.h"

static int pair_open(union ibv_gid *gid, uint32_t *interface)
{
	const char *faults = getenv("STANDIN_FAULTS");

	standin_faults.no_registers = faults != NULL && strstr(faults, "no_registers") != NULL;
	standin_faults.no_dmabuf = standin_faults.no_device_memory = true;
	inet_pton(AF_INET6, "::ffff:127.0.0.1", gid->raw);
	*interface = if_nametoindex("lo");
	return 0;
}

static int pair_connect(struct standin_qp *qp)
{
	return 0;
}

static void pair_disconnect(struct standin_qp *qp)
{
}

/* The peer's answer to a WRITE: 0, or the syndrome that the sender gets. */
static uint8_t pair_write(struct standin_qp *peer, const struct standin_work *w)
{
	const struct standin_mr *mr = standin_mr_find(w->rkey);

	if (w->length == 0)
		return 0;
	if (mr == NULL || (mr->access & IBV_ACCESS_REMOTE_WRITE) == 0 || w->remote < mr->iova ||
	    w->remote - mr->iova > mr->base.length ||
	    w->length > mr->base.length - (w->remote - mr->iova)) {
		standin_fail(peer);
		return MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR;
	}
	standin_place((uint8_t *)(uintptr_t)w->remote, (const uint8_t *)(uintptr_t)w->local,
		      w->length);
	return 0;
}

static bool pair_send(struct standin_qp *qp, const struct standin_work *w)
{
	struct standin_qp *peer = standin_qp_find(qp->peer_qpn);
	uint8_t syndrome;

	if (peer == NULL || peer->base.state == IBV_QPS_ERR) {
		standin_done(qp, w, MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
		return true;
	}
	/* It is not connected yet, or has no receive: the sender tries again. */
	if (peer->base.state < IBV_QPS_RTR ||
	    (w->with_imm && __atomic_load_n(&peer->receives, __ATOMIC_RELAXED) == 0))
		return false;
	syndrome = pair_write(peer, w);
	if (syndrome == 0 && w->with_imm)
		standin_received(peer, w->imm, w->length);
	standin_done(qp, w, syndrome);
	return true;
}

static unsigned int pair_poll(struct standin_qp *qp)
{
	return 0;
}

const struct standin_net standin_net = {
	.pairs = true,
	.open = pair_open,
	.close = standin_say_counters,
	.connect = pair_connect,
	.disconnect = pair_disconnect,
	.send = pair_send,
	.poll = pair_poll,
};
