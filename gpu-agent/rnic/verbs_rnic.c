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

/* Remember why create() fails, for its caller. */
static int qp_refuse(const struct verbs_qp *qp, int error, const char *reason)
{
	if (qp->params.why != NULL)
		snprintf(qp->params.why, qp->params.why_size, "%s", reason);
	return -error;
}

/*
 * Register memory, without relaxed ordering: descriptors must not overtake payloads. GPU memory is
 * registered by its dma-buf, or by its address where nvidia-peermem is loaded. <how> gets which.
 */
static int register_memory(const struct verbs_qp *qp, struct ibv_pd *pd,
			   const struct rnic_span *span, int access, struct ibv_mr **mr,
			   const char **how)
{
	char reason[320], without_dmabuf[128] = "no dma-buf";
	int error;

	/* The caller may know already why there is none. */
	if (span->on_gpu && qp->params.why != NULL && qp->params.why[0] != '\0')
		snprintf(without_dmabuf, sizeof(without_dmabuf), "%.100s", qp->params.why);

	if (span->dmabuf_fd >= 0) {
		*how = "dmabuf";
		*mr = ibv_reg_dmabuf_mr(pd, span->dmabuf_offset, span->length, span->va,
					span->dmabuf_fd, access);
		if (*mr != NULL)
			return 0;
		snprintf(without_dmabuf, sizeof(without_dmabuf), "dma-buf: %s", strerror(errno));
	}
	*how = span->on_gpu ? "peermem" : "host";
	*mr = ibv_reg_mr(pd, (void *)(uintptr_t)span->va, span->length, access);
	if (*mr != NULL)
		return 0;
	error = errno;
	if (span->on_gpu)
		snprintf(reason, sizeof(reason),
			 "the RDMA device does not register the GPU's memory: %s; nvidia-peermem: "
			 "%s",
			 without_dmabuf, strerror(error));
	else
		snprintf(reason, sizeof(reason),
			 "the RDMA device does not register %llu bytes of memory: %s; is the "
			 "locked-memory limit (ulimit -l) too low?",
			 (unsigned long long)span->length, strerror(error));
	return qp_refuse(qp, error, reason);
}

/* --- queues ------------------------------------------------------------------------------------
 */

/* A queue pair for everything; where that takes more of the device than it has, one for WRITEs
 * only: on a ConnectX their work requests take a third. */
static struct ibv_qp *create_qp(struct verbs_rnic *rnic, uint32_t count)
{
	const struct ibv_qp_cap cap = {
		.max_send_wr = count, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1};
	struct ibv_qp_init_attr all = {
		.qp_type = IBV_QPT_RC, .send_cq = rnic->cq, .recv_cq = rnic->cq, .cap = cap};
	struct ibv_qp_init_attr_ex writes = {
		.qp_type = IBV_QPT_RC,
		.send_cq = rnic->cq,
		.recv_cq = rnic->cq,
		.cap = cap,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = rnic->device.pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM,
	};
	struct ibv_qp *qp = ibv_create_qp(rnic->device.pd, &all);

	return qp != NULL ? qp : ibv_create_qp_ex(rnic->device.context, &writes);
}

/* The proxy posts: a queue in memory for the poster, one of the device for the proxy. */
static int make_proxied(struct verbs_rnic *rnic, struct verbs_qp *qp)
{
	uint32_t count = qp->params.wqe_count;
	int ret;

	qp->proxied = true;
	__atomic_add_fetch(&rnic->proxied, 1, __ATOMIC_RELEASE);
	ret = verbs_cq_reserve(&rnic->device, rnic->cq, &rnic->reserved, count + 1);
	if (ret < 0)
		return ret;
	qp->reserved = count + 1;
	qp->qp = create_qp(rnic, count);
	if (qp->qp == NULL)
		return -errno;
	ret = send_queue_create(&qp->sq, count);
	if (ret < 0)
		return ret;
	qp->signal = calloc(count, sizeof(*qp->signal));
	if (qp->signal == NULL)
		return -ENOMEM;
	qp->sq.qpn = qp->qp->qp_num;
	qp->base.queue = send_queue_view(&qp->sq);
	return 0;
}

static int verbs_qp_make_queues(struct verbs_rnic *rnic, struct verbs_qp *qp)
{
	int ret = -ENOTSUP;

	if (rnic->direct)
		ret = verbs_direct_create(&rnic->device, qp->params.wqe_count, &qp->direct,
					  qp->base.note, sizeof(qp->base.note));
	if (ret == 0) {
		qp->qp = qp->direct.qp;
		qp->base.queue = qp->direct.view;
		qp->base.doorbell_is_io = true;
	} else {
		ret = make_proxied(rnic, qp);
	}
	if (ret == 0)
		qp->base.number = qp->qp->qp_num;
	return ret;
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
	if (qp->proxied) {
		__atomic_sub_fetch(&rnic->proxied, 1, __ATOMIC_RELEASE);
		if (qp->qp != NULL)
			ibv_destroy_qp(qp->qp);
	} else {
		verbs_direct_destroy(&qp->direct);
	}
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
	const char *how;
	int ret;

	if (__atomic_load_n(&rnic->gone, __ATOMIC_ACQUIRE))
		return -ENODEV;
	if (rnic->n_qps == VERBS_RNIC_QPS_MAX || qp->params.wqe_count > rnic->device.wr_max)
		return -ENOSPC;
	ret = register_memory(qp, pd, &qp->params.writable,
			      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, &qp->writable,
			      &qp->base.registered);
	if (ret == 0)
		ret = register_memory(qp, pd, &qp->params.sendable, 0, &qp->sendable, &how);
	if (ret < 0)
		return ret;
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
	/* If it slept for want of queue pairs, it polls from now on. */
	sleeper_wake(&rnic->sleeper);
	return 0;
}

/* --- create and close the RNIC --------------------------------------------------------------- */

static void verbs_rnic_kick(struct rnic *base)
{
	struct verbs_rnic *rnic = (struct verbs_rnic *)base;

	if (__atomic_load_n(&rnic->proxied, __ATOMIC_ACQUIRE) > 0)
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
	char found[256], why[RNIC_NOTE_MAX] = "";
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
	if (!params->always_proxy && verbs_direct_possible(&rnic->device))
		rnic->direct = verbs_direct_try(&rnic->device, params, why, sizeof(why)) == 0;
	rnic->base.path_mtu = rnic->device.path_mtu;
	ret = start_proxy(rnic);
	if (ret < 0) {
		snprintf(error, size, "cannot create a completion queue on RDMA device '%s': %s",
			 params->device, strerror(-ret));
		goto fail;
	}
	verbs_describe(&rnic->device, found, sizeof(found));
	if (rnic->direct || why[0] == '\0')
		snprintf(description, description_size, "%s post=%s", found,
			 rnic->direct ? "direct" : "proxy");
	else
		snprintf(description, description_size, "%s post=proxy reason=\"%s\"", found, why);
	return &rnic->base;
fail:
	verbs_rnic_close(&rnic->base);
	return NULL;
}
