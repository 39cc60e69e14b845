/* SPDX-License-Identifier: BSD-3-Clause */
/* The stand-in's queues and registers, as libmlx5 lays them out. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "standin_private.h"

/* Bytes of a work request whose operations nobody named: the largest that may come. */
#define WQE_ANY 192u
/* A receive queue of one lies before the send queue. */
#define RQ_BYTES     64u
#define RECORD_BYTES 64u
/* Two registers of a page (the adapter's, 4 KiB) are its user's. */
#define REGISTER_AT   0x800u
#define REGISTER_SIZE 0x200u
#define ADAPTER_PAGE  4096u

static size_t host_page(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static uint32_t power_of_two(uint64_t n)
{
	uint32_t p = 1;

	while (p < n)
		p *= 2;
	return p;
}

static void *pages(size_t size)
{
	size_t page = host_page();
	void *at = aligned_alloc(page, (size + page - 1) / page * page);

	if (at != NULL)
		memset(at, 0, (size + page - 1) / page * page);
	return at;
}

/* --- doorbell records: many to a page -----------------------------------------------------------
 */

static struct {
	uint8_t *page;
	bool used;
} records[2 * STANDIN_QPS];

uint32_t *standin_record(void)
{
	uint32_t each = (uint32_t)(host_page() / RECORD_BYTES), i = 0;

	while (i < 2 * STANDIN_QPS && records[i].used)
		i++;
	if (i == 2 * STANDIN_QPS)
		return NULL;
	if (records[i - i % each].page == NULL)
		records[i - i % each].page = pages(host_page());
	if (records[i - i % each].page == NULL)
		return NULL;
	records[i].used = true;
	memset(records[i - i % each].page + i % each * RECORD_BYTES, 0, RECORD_BYTES);
	return (uint32_t *)(records[i - i % each].page + i % each * RECORD_BYTES);
}

void standin_record_free(uint32_t *record)
{
	uint32_t each = (uint32_t)(host_page() / RECORD_BYTES);

	for (uint32_t i = 0; i < 2 * STANDIN_QPS; i++)
		if (records[i].used &&
		    (uint8_t *)record == records[i - i % each].page + i % each * RECORD_BYTES)
			records[i].used = false;
}

/* --- registers ----------------------------------------------------------------------------------
 */

static struct standin_register registers[STANDIN_QPS];

/* The first one is shared by all that have none of their own. */
static struct standin_register *take_register(unsigned int first)
{
	unsigned int i = first, each = 2 * (unsigned int)(host_page() / ADAPTER_PAGE), in;
	uint8_t *page;

	while (i < STANDIN_QPS && registers[i].used)
		i++;
	if (i == STANDIN_QPS)
		return NULL;
	if (registers[i].at == NULL) {
		page = mmap(NULL, host_page(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
		if (page == MAP_FAILED)
			return NULL;
		for (in = 0; in < each && i - i % each + in < STANDIN_QPS; in++)
			registers[i - i % each + in].at =
				(volatile uint64_t *)(page + in / 2 * ADAPTER_PAGE + REGISTER_AT +
						      in % 2 * REGISTER_SIZE);
	}
	registers[i].used = true;
	*registers[i].at = 0;
	return &registers[i];
}

struct standin_register *standin_shared_register(void)
{
	if (!registers[0].used)
		take_register(0);
	return &registers[0];
}

struct ibv_td *standin_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	struct standin_td *td = calloc(1, sizeof(*td));

	if (td == NULL)
		return NULL;
	td->base.context = context;
	if (standin_faults.no_registers ||
	    (standin_faults.registers != 0 && standin.n_registers == standin_faults.registers) ||
	    (td->reg = take_register(1)) == NULL) {
		free(td);
		errno = ENOMEM;
		return NULL;
	}
	standin.n_registers++;
	standin.objects++;
	return &td->base;
}

int standin_dealloc_td(struct ibv_td *base)
{
	struct standin_td *td = STANDIN_OF(standin_td, base);

	td->reg->used = false;
	standin.n_registers--;
	standin.objects--;
	free(td);
	return 0;
}

/* --- completion channels and queues -------------------------------------------------------------
 */

struct channel {
	struct ibv_comp_channel base;
	int in; /* end of the pipe that the NIC writes to */
};

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct channel *c = calloc(1, sizeof(*c));
	int ends[2];

	if (c == NULL || pipe(ends) < 0) {
		free(c);
		return NULL;
	}
	c->base = (struct ibv_comp_channel){.context = context, .fd = ends[0]};
	c->in = ends[1];
	standin.objects++;
	return &c->base;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *base)
{
	close(base->fd);
	close(STANDIN_OF(channel, base)->in);
	standin.objects--;
	free(base);
	return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	if (read(channel->fd, cq, sizeof(*cq)) != sizeof(*cq))
		return -1;
	*cq_context = (*cq)->cq_context;
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
}

void standin_raise(struct standin_cq *cq)
{
	struct ibv_cq *base = &cq->base;

	if (base->channel != NULL &&
	    write(STANDIN_OF(channel, base->channel)->in, &base, sizeof(base)) < 0)
		abort();
}

static int cq_allocate(struct standin_cq *cq, uint32_t cqe)
{
	uint32_t size = standin_faults.large_cqes ? 128 : 64;

	cq->count = power_of_two((uint64_t)cqe + 1);
	cq->size = size;
	cq->buffer = pages((size_t)cq->count * size);
	if (cq->buffer == NULL)
		return -1;
	for (uint32_t i = 0; i < cq->count; i++)
		cq->buffer[(size_t)(i + 1) * size - 1] = MLX5_CQE_INVALID << 4 | 1;
	cq->base.cqe = (int)cq->count - 1;
	return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int vector)
{
	struct standin_cq *cq = calloc(1, sizeof(*cq));

	if (cq == NULL)
		return NULL;
	pthread_mutex_init(&cq->lock, NULL);
	cq->base.context = context;
	cq->base.channel = channel;
	cq->base.cq_context = cq_context;
	cq->record = standin_record();
	if (cq->record == NULL || cq_allocate(cq, (uint32_t)cqe) < 0) {
		free(cq);
		errno = ENOMEM;
		return NULL;
	}
	standin.objects++;
	return &cq->base;
}

int ibv_resize_cq(struct ibv_cq *base, int cqe)
{
	struct standin_cq *cq = STANDIN_OF(standin_cq, base);
	uint32_t count = cq->count;
	uint8_t *before = cq->buffer;
	int ret;

	pthread_mutex_lock(&cq->lock);
	ret = cq_allocate(cq, (uint32_t)cqe);
	for (uint32_t i = cq->consumer; ret == 0 && i != cq->producer; i++) {
		uint8_t *to = cq->buffer + (size_t)(i & (cq->count - 1)) * cq->size;

		memcpy(to, before + (size_t)(i & (count - 1)) * cq->size, cq->size);
		to[cq->size - 1] =
			(uint8_t)((to[cq->size - 1] & ~1) | ((i & cq->count) != 0 ? 1 : 0));
	}
	pthread_mutex_unlock(&cq->lock);
	if (ret == 0)
		free(before);
	return ret == 0 ? 0 : ENOMEM;
}

int ibv_destroy_cq(struct ibv_cq *base)
{
	struct standin_cq *cq = STANDIN_OF(standin_cq, base);

	standin_lock();
	standin_record_free(cq->record);
	free(cq->buffer);
	free(cq);
	standin.objects--;
	standin_unlock();
	return 0;
}

/* --- queue pairs --------------------------------------------------------------------------------
 */

struct standin_qp *standin_qp_find(uint32_t qpn)
{
	struct standin_qp *qp = standin.qp[qpn % STANDIN_QPS];

	return qp != NULL && qp->base.qp_num == qpn ? qp : NULL;
}

static struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_qp_cap *cap, struct ibv_cq *send_cq,
				struct ibv_cq *recv_cq, uint32_t wqe_size)
{
	struct standin_td *td = STANDIN_OF(standin_pd, pd)->td;
	uint64_t bytes = power_of_two((uint64_t)cap->max_send_wr * wqe_size);
	struct standin_qp *qp;
	int error;

	if (cap->max_send_wr > STANDIN_WQES_MAX) {
		errno = EINVAL;
		return NULL;
	}
	if (bytes / WQEBB > STANDIN_WQES_MAX) {
		errno = ENOMEM;
		return NULL;
	}
	qp = calloc(1, sizeof(*qp));
	if (qp == NULL)
		return NULL;
	qp->count = (uint32_t)(bytes / WQEBB);
	qp->buffer = pages(RQ_BYTES + bytes);
	qp->sq = qp->buffer + RQ_BYTES;
	qp->wr_id = calloc(qp->count, sizeof(*qp->wr_id));
	standin_lock();
	qp->record = standin_record();
	qp->reg = td != NULL ? td->reg : standin_shared_register();
	qp->rung = *qp->reg->at;
	qp->base = (struct ibv_qp){
		.context = pd->context,
		.pd = pd,
		.send_cq = send_cq,
		.recv_cq = recv_cq,
		.qp_type = IBV_QPT_RC,
		.state = IBV_QPS_RESET,
	};
	qp->region = standin.newest;
	for (uint32_t i = 0; i < STANDIN_QPS && qp->base.qp_num == 0; i++) {
		if (standin.qp[++standin.next_qpn % STANDIN_QPS] == NULL)
			qp->base.qp_num = standin.next_qpn;
	}
	error = qp->base.qp_num == 0 || qp->record == NULL ? ENOMEM : 0;
	if (error == 0 && standin_net.create != NULL)
		error = standin_net.create(qp, &qp->base.qp_num);
	if (error != 0) {
		standin_unlock();
		free(qp->buffer);
		free(qp->wr_id);
		free(qp);
		errno = error;
		return NULL;
	}
	standin.qp[qp->base.qp_num % STANDIN_QPS] = qp;
	standin.objects++;
	standin_unlock();
	cap->max_send_wr = (uint32_t)(bytes / wqe_size);
	return &qp->base;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	return create_qp(pd, &attr->cap, attr->send_cq, attr->recv_cq, WQE_ANY);
}

struct ibv_qp *standin_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	const uint64_t writes = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
	bool only_writes = (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0 &&
			   (attr->send_ops_flags & ~writes) == 0;

	if ((attr->comp_mask & IBV_QP_INIT_ATTR_PD) == 0 || attr->cap.max_send_sge > 1) {
		errno = EINVAL;
		return NULL;
	}
	return create_qp(attr->pd, &attr->cap, attr->send_cq, attr->recv_cq,
			 only_writes ? WQEBB : WQE_ANY);
}

int ibv_destroy_qp(struct ibv_qp *base)
{
	struct standin_qp *qp = STANDIN_OF(standin_qp, base);

	standin_lock();
	if (qp->net != NULL)
		standin_net.disconnect(qp);
	standin.qp[base->qp_num % STANDIN_QPS] = NULL;
	standin_record_free(qp->record);
	standin.objects--;
	standin_unlock();
	free(qp->buffer);
	free(qp->wr_id);
	free(qp);
	return 0;
}

int ibv_modify_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int mask)
{
	struct standin_qp *qp = STANDIN_OF(standin_qp, base);
	int ret = 0;

	standin_lock();
	if (attr->qp_state == IBV_QPS_RTR) {
		qp->peer_qpn = attr->dest_qp_num;
		qp->peer_psn = attr->rq_psn;
		qp->path_mtu = 128u << attr->path_mtu;
		qp->peer = attr->ah_attr.grh.dgid;
		qp->udp_source = (uint16_t)(0xc000 | (attr->ah_attr.grh.flow_label & 0x3fff));
	}
	if (attr->qp_state == IBV_QPS_RTS) {
		qp->psn = attr->sq_psn;
		qp->ack_timeout = attr->timeout;
		qp->retry_count = attr->retry_cnt;
		ret = standin_net.connect(qp);
	}
	if (ret == 0)
		base->state = attr->qp_state;
	standin_unlock();
	return ret;
}

int ibv_query_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init)
{
	__atomic_add_fetch(&standin_counters.queries, 1, __ATOMIC_RELAXED);
	if (standin.removed)
		return EIO;
	attr->qp_state = __atomic_load_n(&base->state, __ATOMIC_RELAXED);
	if (attr->qp_state == IBV_QPS_ERR)
		__atomic_store_n(&STANDIN_OF(standin_qp, base)->shown, true, __ATOMIC_RELEASE);
	return 0;
}

int mlx5dv_init_obj(struct mlx5dv_obj *obj, uint64_t type)
{
	if (type & MLX5DV_OBJ_QP) {
		struct standin_qp *qp = STANDIN_OF(standin_qp, obj->qp.in);
		struct mlx5dv_qp *out = obj->qp.out;
		bool own = qp->reg != standin_shared_register();

		qp->by_owner = true;
		standin_counters.shared += !own;
		out->dbrec = (__be32 *)qp->record;
		out->sq.buf = qp->sq;
		out->sq.wqe_cnt = qp->count;
		out->sq.stride = WQEBB;
		out->bf.reg = (void *)qp->reg->at;
		out->bf.size = own ? 256 : 0;
		out->comp_mask = 0;
	}
	if (type & MLX5DV_OBJ_CQ) {
		struct standin_cq *cq = STANDIN_OF(standin_cq, obj->cq.in);

		*obj->cq.out = (struct mlx5dv_cq){
			.buf = cq->buffer,
			.dbrec = (__be32 *)cq->record,
			.cqe_cnt = cq->count,
			.cqe_size = cq->size,
		};
	}
	return 0;
}
