/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rdma/roce_wire.h"
#include "rnic/verbs_private.h"

/* Entries of the proxy's completion queue at first; it grows with more queue pairs. */
#define CQ_ENTRIES 8192

/* --- queue pairs ----------------------------------------------------------------------------- */

/*
 * Register memory, without relaxed ordering: descriptors must not overtake payloads. GPU memory is
 * registered by its dma-buf, or by its address where nvidia-peermem is loaded.
 */
static struct ibv_mr *register_memory(struct ibv_pd *pd, const struct rnic_span *span, int access)
{
	struct ibv_mr *mr = NULL;

	if (span->dmabuf_fd >= 0)
		mr = ibv_reg_dmabuf_mr(pd, span->dmabuf_offset, span->length, span->va,
				       span->dmabuf_fd, access);
	return mr != NULL ? mr : ibv_reg_mr(pd, (void *)(uintptr_t)span->va, span->length, access);
}

static int verbs_qp_make_queues(struct verbs_rnic *rnic, struct verbs_qp *qp)
{
	uint32_t count = qp->params.wqe_count;
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = count,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};
	int ret;

	if (rnic->direct) {
		qp->cq = ibv_create_cq(rnic->device.context, count, NULL, NULL, 0);
		if (qp->cq == NULL)
			return -errno;
	} else {
		ret = verbs_cq_reserve(&rnic->device, rnic->cq, &rnic->reserved, count + 1);
		if (ret < 0)
			return ret;
		qp->reserved = count + 1;
	}
	attr.send_cq = attr.recv_cq = rnic->direct ? qp->cq : rnic->cq;
	qp->qp = ibv_create_qp(rnic->device.pd, &attr);
	if (qp->qp == NULL)
		return -errno;
	qp->base.number = qp->qp->qp_num;
	if (rnic->direct)
		return verbs_direct_view(qp->qp, qp->cq, &qp->base.queue);
	ret = send_queue_create(&qp->sq, count);
	if (ret < 0)
		return ret;
	qp->signal = calloc(count, sizeof(*qp->signal));
	if (qp->signal == NULL)
		return -ENOMEM;
	qp->sq.qpn = qp->base.number;
	qp->base.queue = send_queue_view(&qp->sq);
	return 0;
}

static void verbs_qp_destroy(struct rnic_qp *base)
{
	struct verbs_qp *qp = (struct verbs_qp *)base;
	struct verbs_rnic *rnic;

	if (qp == NULL)
		return;
	rnic = (struct verbs_rnic *)base->rnic;
	pthread_mutex_lock(&rnic->lock);
	for (unsigned int i = 0; i < rnic->n_qps; i++)
		if (rnic->qp[i] == qp)
			rnic->qp[i] = rnic->qp[--rnic->n_qps];
	pthread_mutex_unlock(&rnic->lock);
	if (qp->qp != NULL)
		ibv_destroy_qp(qp->qp);
	if (qp->cq != NULL)
		ibv_destroy_cq(qp->cq);
	if (qp->writable != NULL)
		ibv_dereg_mr(qp->writable);
	if (qp->sendable != NULL)
		ibv_dereg_mr(qp->sendable);
	rnic->reserved -= qp->reserved;
	send_queue_destroy(&qp->sq);
	free(qp->signal);
	free(qp);
}

static int verbs_qp_fill(struct verbs_rnic *rnic, struct verbs_qp *qp)
{
	struct ibv_pd *pd = rnic->device.pd;

	if (__atomic_load_n(&rnic->gone, __ATOMIC_ACQUIRE))
		return -ENODEV;
	if (rnic->n_qps == VERBS_RNIC_QPS_MAX || qp->params.wqe_count > rnic->device.wr_max)
		return -ENOSPC;
	qp->writable = register_memory(pd, &qp->params.writable,
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (qp->writable == NULL)
		return -errno;
	qp->sendable = register_memory(pd, &qp->params.sendable, 0);
	if (qp->sendable == NULL)
		return -errno;
	qp->base.rkey = qp->writable->rkey;
	qp->base.lkey = qp->sendable->lkey;
	return verbs_qp_make_queues(rnic, qp);
}

static struct rnic_qp *verbs_qp_create(struct rnic *base, const struct rnic_qp_params *params)
{
	struct verbs_rnic *rnic = (struct verbs_rnic *)base;
	struct verbs_qp *qp = calloc(1, sizeof(*qp));
	int ret;

	if (qp == NULL)
		return NULL;
	qp->base.rnic = base;
	qp->params = *params;
	ret = verbs_qp_fill(rnic, qp);
	if (ret < 0) {
		verbs_qp_destroy(&qp->base);
		errno = -ret;
		return NULL;
	}
	pthread_mutex_lock(&rnic->lock);
	rnic->qp[rnic->n_qps++] = qp;
	pthread_mutex_unlock(&rnic->lock);
	return &qp->base;
}

static int verbs_qp_connect(struct rnic_qp *base, const struct rnic_peer *peer)
{
	struct verbs_qp *qp = (struct verbs_qp *)base;
	struct verbs_rnic *rnic = (struct verbs_rnic *)base->rnic;
	struct verbs_peer to = {
		.address = peer->address.addr,
		.qpn = peer->qpn,
		.psn = peer->psn,
		.path_mtu = peer->path_mtu,
		.udp_source = peer->udp_source,
		.ack_timeout = peer->ack_timeout,
		.retry_limit = peer->retry_limit,
		.rnr_retry = ROCE_RNR_FOREVER, /* the load balancer is always ready */
	};
	int ret;

	if (peer->address.family != rnic->params.address.family)
		return -EAFNOSUPPORT;
	ret = verbs_connect(&rnic->device, qp->qp, qp->params.psn, &to);
	if (ret < 0)
		return ret;
	pthread_mutex_lock(&rnic->lock);
	qp->connected = true;
	pthread_mutex_unlock(&rnic->lock);
	return 0;
}

/* --- create and close the RNIC --------------------------------------------------------------- */

static void verbs_rnic_kick(struct rnic *base)
{
	struct verbs_rnic *rnic = (struct verbs_rnic *)base;

	if (!rnic->direct)
		sleeper_wake(&rnic->sleeper);
}

static void verbs_rnic_close(struct rnic *base)
{
	struct verbs_rnic *rnic = (struct verbs_rnic *)base;

	if (rnic->started) {
		__atomic_store_n(&rnic->stop, 1, __ATOMIC_RELEASE);
		sleeper_wake(&rnic->sleeper);
		pthread_join(rnic->thread, NULL);
	}
	if (rnic->cq != NULL)
		ibv_destroy_cq(rnic->cq);
	if (rnic->channel != NULL)
		ibv_destroy_comp_channel(rnic->channel);
	verbs_close(&rnic->device);
	sleeper_fini(&rnic->sleeper);
	pthread_mutex_destroy(&rnic->lock);
	free(rnic);
}

static const struct rnic_ops verbs_rnic_ops = {
	.create = verbs_qp_create,
	.connect = verbs_qp_connect,
	.destroy = verbs_qp_destroy,
	.kick = verbs_rnic_kick,
	.close = verbs_rnic_close,
};

static int start_proxy(struct verbs_rnic *rnic)
{
	struct verbs_device *d = &rnic->device;
	int ret;

	rnic->channel = verbs_channel_create(d);
	if (rnic->channel == NULL)
		return -errno;
	rnic->cq = ibv_create_cq(d->context, d->cqe_max < CQ_ENTRIES ? d->cqe_max : CQ_ENTRIES,
				 NULL, rnic->channel, 0);
	if (rnic->cq == NULL)
		return -errno;
	ret = sleeper_add(&rnic->sleeper, rnic->channel->fd);
	if (ret == 0)
		ret = sleeper_add(&rnic->sleeper, d->context->async_fd);
	if (ret == 0)
		ret = -pthread_create(&rnic->thread, NULL, verbs_proxy, rnic);
	rnic->started = ret == 0;
	return ret;
}

struct rnic *verbs_rnic_create(const struct verbs_rnic_params *params, char *description,
			       size_t description_size, char *error, size_t size)
{
	struct verbs_params open = {
		.device = params->device,
		.address = params->address.addr,
		.traffic_class = params->traffic_class,
	};
	struct verbs_rnic *rnic = calloc(1, sizeof(*rnic));
	char found[256];
	int ret;

	if (rnic == NULL) {
		snprintf(error, size, "no memory");
		return NULL;
	}
	rnic->base.ops = &verbs_rnic_ops;
	rnic->params = *params;
	pthread_mutex_init(&rnic->lock, NULL);
	ret = sleeper_init(&rnic->sleeper);
	if (ret < 0) {
		snprintf(error, size, "cannot open an event to sleep on: %s", strerror(-ret));
		goto fail;
	}
	if (verbs_open(&rnic->device, &open, error, size) < 0)
		goto fail;
	rnic->direct = !params->always_proxy && verbs_direct_possible(&rnic->device);
	rnic->base.path_mtu = rnic->device.path_mtu;
	ret = start_proxy(rnic);
	if (ret < 0) {
		snprintf(error, size, "cannot create a completion queue on RDMA device '%s': %s",
			 params->device, strerror(-ret));
		goto fail;
	}
	snprintf(description, description_size, "%s post=%s",
		 verbs_describe(&rnic->device, found, sizeof(found)),
		 rnic->direct ? "direct" : "proxy");
	return &rnic->base;
fail:
	verbs_rnic_close(&rnic->base);
	return NULL;
}
