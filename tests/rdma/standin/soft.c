/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stand-in's network by the software RNIC (gpu-agent/rnic/soft_*.c), on a DPDK port of the
 * program's own EAL: the stand-in, preloaded into doorbell-agent, talks to a real load balancer.
 * Environment variables say what the device serves and refuses:
 *
 *   STANDIN_PORT=net_af_packet0,iface=w0     STANDIN_ADDRESS=10.201.0.11/24
 *   STANDIN_FAULTS=no_registers,large_cqes,no_dmabuf,regions_1
 *
 * The software RNIC lets peers write to one region per queue pair: to the last that was registered
 * for that before the queue pair was made.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rnic/soft_rnic_private.h"
#include "standin_private.h"

/* Behind a queue pair of the stand-in: one of the software RNIC, and what was sent by it. */
struct behind {
	struct rnic_qp *qp;
	struct mlx5_queue queue;
	struct standin_work *sent;
	uint16_t done; /* the oldest that is not */
	uint32_t failed;
};

static struct rnic *rnic;

/* --- the device --------------------------------------------------------------------------------
 */

static bool has_fault(const char *name)
{
	const char *faults = getenv("STANDIN_FAULTS");

	return faults != NULL && strstr(faults, name) != NULL;
}

/* "10.201.0.11/24" */
static bool parse_address(struct rnic_address *address, uint8_t *prefix)
{
	const char *text = getenv("STANDIN_ADDRESS");
	char mapped[64];
	int length = 0;

	if (text == NULL || strchr(text, '/') == NULL)
		return false;
	length = (int)strcspn(text, "/");
	snprintf(mapped, sizeof(mapped), "::ffff:%.*s", length, text);
	address->family = 4;
	*prefix = (uint8_t)atoi(text + length + 1);
	return inet_pton(AF_INET6, mapped, &address->addr) == 1;
}

static uint32_t interface_of(const char *device)
{
	const char *at = strstr(device, "iface=");
	char name[IF_NAMESIZE];

	if (at == NULL)
		return if_nametoindex("lo");
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(at + 6, ","), at + 6);
	return if_nametoindex(name);
}

static int soft_open(union ibv_gid *gid, uint32_t *interface)
{
	struct soft_rnic_params p = {
		.device = getenv("STANDIN_PORT"), .mtu = 1500, .idle_sleep = true};
	char error[512];

	standin_faults.no_registers = has_fault("no_registers");
	standin_faults.large_cqes = has_fault("large_cqes");
	standin_faults.no_dmabuf = has_fault("no_dmabuf");
	standin_faults.regions = has_fault("regions_1") ? 1 : 0;
	if (p.device == NULL || !parse_address(&p.address, &p.prefix)) {
		fprintf(stderr, "standin: STANDIN_PORT and STANDIN_ADDRESS are needed\n");
		return EINVAL;
	}
	rnic = soft_rnic_create(&p, error, sizeof(error));
	if (rnic == NULL) {
		fprintf(stderr, "standin: %s\n", error);
		return EIO;
	}
	memcpy(gid->raw, &p.address.addr, sizeof(gid->raw));
	*interface = interface_of(p.device);
	return 0;
}

static void soft_close(void)
{
	rnic->ops->close(rnic);
	standin_say_counters();
}

/* --- queue pairs -------------------------------------------------------------------------------
 */

static int soft_create(struct standin_qp *qp, uint32_t *qpn)
{
	struct behind *b = calloc(1, sizeof(*b));
	struct rnic_qp_params p = {
		.sendable = {.length = UINT64_MAX, .dmabuf_fd = -1},
		.wqe_count = qp->count,
	};

	if (b == NULL)
		return ENOMEM;
	p.failed = &b->failed;
	b->sent = calloc(qp->count, sizeof(*b->sent));
	b->qp = b->sent == NULL ? NULL : rnic->ops->create(rnic, &p);
	if (b->qp == NULL) {
		free(b->sent);
		free(b);
		return ENOMEM;
	}
	b->queue = b->qp->queue;
	*qpn = b->qp->number;
	qp->net = b;
	return 0;
}

static int soft_connect(struct standin_qp *qp)
{
	struct behind *b = qp->net;
	struct soft_qp *soft = (struct soft_qp *)b->qp;
	struct rnic_peer peer = {
		.address = {.family = 4},
		.qpn = qp->peer_qpn,
		.psn = qp->peer_psn,
		.path_mtu = qp->path_mtu,
		.udp_source = qp->udp_source,
		.ack_timeout = qp->ack_timeout,
		.retry_limit = qp->retry_count,
	};

	memcpy(&peer.address.addr, qp->peer.raw, sizeof(peer.address.addr));
	/* Until it is connected, its thread does not look at these. */
	soft->params.psn = qp->psn;
	if (qp->region != NULL) {
		soft->params.writable = (struct rnic_span){
			.va = qp->region->iova, .length = qp->region->base.length, .dmabuf_fd = -1};
		soft->base.rkey = qp->region->base.rkey;
	}
	return -rnic->ops->connect(b->qp, &peer);
}

static void soft_disconnect(struct standin_qp *qp)
{
	struct behind *b = qp->net;

	rnic->ops->destroy(b->qp);
	free(b->sent);
	free(b);
	qp->net = NULL;
}

static bool soft_send(struct standin_qp *qp, const struct standin_work *w)
{
	struct behind *b = qp->net;
	struct mlx5_write write = {
		.remote_address = w->remote,
		.local_address = w->local,
		.rkey = w->rkey,
		.lkey = b->qp->lkey,
		.length = w->length,
		.imm = w->imm,
		.with_imm = w->with_imm,
		.signal = true,
	};

	if (mlx5_room(&b->queue) == 0)
		return false;
	b->sent[w->index & (qp->count - 1)] = *w;
	mlx5_wqe_build(&b->queue, 0, &write);
	mlx5_ring(&b->queue, 1);
	rnic->ops->kick(rnic);
	return true;
}

static unsigned int soft_poll(struct standin_qp *qp)
{
	struct behind *b = qp->net;
	enum mlx5_poll result;
	unsigned int n = 0;
	uint8_t syndrome = 0;

	while ((result = mlx5_cq_poll(&b->queue, &syndrome)) != MLX5_POLL_EMPTY) {
		/* All up to the one that the CQE names are done; on an error, that one has failed.
		 */
		for (; b->done != b->queue.consumer; b->done++, n++) {
			bool last = (uint16_t)(b->done + 1) == b->queue.consumer;

			standin_done(qp, &b->sent[b->done & (qp->count - 1)],
				     last && result == MLX5_POLL_ERROR ? syndrome : 0);
		}
		if (result == MLX5_POLL_ERROR)
			break;
	}
	if (__atomic_load_n(&b->failed, __ATOMIC_ACQUIRE))
		standin_fail(qp);
	return n;
}

const struct standin_net standin_net = {
	.open = soft_open,
	.close = soft_close,
	.create = soft_create,
	.connect = soft_connect,
	.disconnect = soft_disconnect,
	.send = soft_send,
	.poll = soft_poll,
};
