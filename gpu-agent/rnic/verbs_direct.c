/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Direct posting: a ConnectX gives its send queue, doorbell and completion queue to the poster, so
 * the loop rings the NIC itself, without the proxy. Run in tests on a stand-in for the device
 * (tests/rdma/standin); not yet run on hardware.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "rnic/verbs_private.h"

#ifdef DOORBELL_MLX5DV

#include <infiniband/mlx5dv.h>

/* A send queue to try whether posters can have one. */
#define PROBE_WQES 64

bool verbs_direct_possible(const struct verbs_device *device)
{
	return mlx5dv_is_supported(device->context->device);
}

/* --- one queue pair ----------------------------------------------------------------------------
 */

static int direct_fail(const char *what, int error, char *why, size_t size)
{
	snprintf(why, size, "%s: %s", what, strerror(error));
	return -error;
}

/* A thread domain has a register of its own; without one, libmlx5 lets queue pairs share registers,
 * under a lock that a poster by hand does not take. */
static int make_domain(const struct verbs_device *d, struct verbs_direct *v, char *why, size_t size)
{
	struct ibv_td_init_attr td = {0};
	struct ibv_parent_domain_init_attr parent = {.pd = d->pd};

	v->td = ibv_alloc_td(d->context, &td);
	if (v->td == NULL)
		return direct_fail("the device gives no doorbell register of one's own", errno, why,
				   size);
	parent.td = v->td;
	v->domain = ibv_alloc_parent_domain(d->context, &parent);
	return v->domain != NULL
		       ? 0
		       : direct_fail("the device gives no parent domain", errno, why, size);
}

/*
 * A WRITE takes 64 bytes of a queue that is for WRITEs only. In a queue for everything it takes
 * 192, and 2 x 8,192 slots would not fit the device's 32,768 units of 64.
 */
static int make_queues(const struct verbs_device *d, struct verbs_direct *v, uint32_t wqes,
		       uint32_t cqes, char *why, size_t size)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = wqes,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = v->domain,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM,
	};

	v->cq = ibv_create_cq(d->context, (int)cqes, NULL, NULL, 0);
	if (v->cq == NULL)
		return direct_fail("the device gives no completion queue", errno, why, size);
	attr.send_cq = attr.recv_cq = v->cq;
	v->qp = ibv_create_qp_ex(d->context, &attr);
	return v->qp != NULL
		       ? 0
		       : direct_fail("the device gives no queue for WRITEs", errno, why, size);
}

static void destroy_queues(struct verbs_direct *v)
{
	if (v->qp != NULL)
		ibv_destroy_qp(v->qp);
	if (v->cq != NULL)
		ibv_destroy_cq(v->cq);
	v->qp = NULL;
	v->cq = NULL;
}

static bool is_power_of_two(uint32_t n)
{
	return n != 0 && (n & (n - 1)) == 0;
}

static int look_inside(struct verbs_direct *v, char *why, size_t size)
{
	struct mlx5dv_qp qp = {0};
	struct mlx5dv_cq cq = {0};
	struct mlx5dv_obj objects = {
		.qp = {.in = v->qp, .out = &qp},
		.cq = {.in = v->cq, .out = &cq},
	};
	int ret = mlx5dv_init_obj(&objects, MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ);

	if (ret != 0)
		return direct_fail("the device shows no queues", ret > 0 ? ret : -ret, why, size);
	/* mlx5_post.h assumes these; environment variables of libmlx5 can change them. */
	if (qp.sq.stride != MLX5_WQEBB || cq.cqe_size != sizeof(struct mlx5_cqe) ||
	    !is_power_of_two(qp.sq.wqe_cnt) || !is_power_of_two(cq.cqe_cnt) ||
	    qp.sq.wqe_cnt > MLX5_WQES_MAX) {
		snprintf(why, size, "the device's queues have %u x %u and %u x %u bytes",
			 qp.sq.wqe_cnt, qp.sq.stride, cq.cqe_cnt, cq.cqe_size);
		return -ENOTSUP;
	}
	v->view = (struct mlx5_queue){
		.wqes = qp.sq.buf,
		.record = (volatile uint32_t *)qp.dbrec,
		.doorbell = qp.bf.reg,
		.cqes = cq.buf,
		.cq_record = (volatile uint32_t *)cq.dbrec,
		.wqe_count = qp.sq.wqe_cnt,
		.cqe_count = cq.cqe_cnt,
		.qpn = v->qp->qp_num,
	};
	return 0;
}

int verbs_direct_create(const struct verbs_device *d, uint32_t wqes, struct verbs_direct *v,
			char *why, size_t size)
{
	uint32_t cqes = wqes;
	int ret;

	*v = (struct verbs_direct){0};
	ret = make_domain(d, v, why, size);
	/* The send queue may turn out longer than was asked for. The poster uses all of it, so
	 * there must be room for as many completions. */
	for (int tries = 0; ret == 0 && tries < 2; tries++) {
		destroy_queues(v);
		ret = make_queues(d, v, wqes, cqes, why, size);
		if (ret == 0)
			ret = look_inside(v, why, size);
		if (ret == 0 && v->view.cqe_count >= v->view.wqe_count)
			return 0;
		cqes = v->view.wqe_count;
	}
	if (ret == 0) {
		snprintf(why, size, "the device completes %u of %u WQEs", v->view.cqe_count,
			 v->view.wqe_count);
		ret = -ENOTSUP;
	}
	verbs_direct_destroy(v);
	return ret;
}

void verbs_direct_destroy(struct verbs_direct *v)
{
	destroy_queues(v);
	if (v->domain != NULL)
		ibv_dealloc_pd(v->domain);
	if (v->td != NULL)
		ibv_dealloc_td(v->td);
	*v = (struct verbs_direct){0};
}

int verbs_direct_try(const struct verbs_device *d, const struct verbs_rnic_params *params,
		     char *why, size_t size)
{
	struct verbs_direct v;
	int ret = verbs_direct_create(d, PROBE_WQES, &v, why, size);

	if (ret < 0)
		return ret;
	if (params->can_ring != NULL && !params->can_ring(params->context, &v.view, why, size))
		ret = -EPERM;
	verbs_direct_destroy(&v);
	return ret;
}

#else

bool verbs_direct_possible(const struct verbs_device *device)
{
	return false;
}

int verbs_direct_create(const struct verbs_device *d, uint32_t wqes, struct verbs_direct *v,
			char *why, size_t size)
{
	snprintf(why, size, "built without libmlx5");
	return -ENOTSUP;
}

void verbs_direct_destroy(struct verbs_direct *v)
{
}

int verbs_direct_try(const struct verbs_device *d, const struct verbs_rnic_params *params,
		     char *why, size_t size)
{
	snprintf(why, size, "built without libmlx5");
	return -ENOTSUP;
}

#endif
