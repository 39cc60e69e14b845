/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The proxy of the verbs engine: it sends the WQEs that the loop posted by ibv_post_send(), and
 * writes their completions back as CQEs. It also watches the state of all queue pairs.
 */
#include <endian.h>
#include <errno.h>

#include "rnic/verbs_private.h"

/* Work requests per ibv_post_send(), and completions per ibv_poll_cq(). */
#define BURST 32
/* ns between checks of the queue pairs' states: one may fail without an event (rxe sends none when
 * the peer wrote outside its region). */
#define CHECK_NS 20000000ull
/* Polls between two reads of the clock, while every poll finds work. */
#define BUSY_TURNS 1024

/* An error ends the queue pair: everything posted later is flushed. */
static void proxy_fail(struct verbs_qp *qp, uint16_t index, uint8_t syndrome)
{
	if (qp->dead)
		return;
	qp->dead = true;
	/* With direct posting the device has written the CQE. */
	if (qp->proxied)
		send_queue_report(&qp->sq, index, MLX5_POST_CQE_ERROR, syndrome);
	rnic_qp_report_failure(&qp->params);
}

/* --- WQEs to work requests ------------------------------------------------------------------- */

static void fill_work_request(struct ibv_send_wr *wr, struct ibv_sge *sge,
			      const struct verbs_qp *qp, const struct send_work *w)
{
	*sge = (struct ibv_sge){.addr = w->local, .length = w->length, .lkey = qp->base.lkey};
	*wr = (struct ibv_send_wr){
		.wr_id = w->index,
		.next = wr + 1,
		.sg_list = sge,
		.num_sge = w->length > 0,
		.opcode = w->with_imm ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE,
		.send_flags = w->signal ? IBV_SEND_SIGNALED : 0,
		.imm_data = htobe32(w->imm),
		.wr.rdma = {.remote_addr = w->remote, .rkey = w->rkey},
	};
}

static unsigned int proxy_post(struct verbs_qp *qp)
{
	struct send_queue *sq = &qp->sq;
	struct ibv_send_wr wr[BURST], *bad = NULL;
	struct ibv_sge sge[BURST];
	struct send_work w;
	unsigned int n = 0;
	uint8_t syndrome = 0;

	if (qp->dead || !send_queue_update(sq))
		return 0;
	/* The poster has at most <count> WQEs in flight, and the device's queue is no shorter. */
	while (n < BURST && sq->next != sq->producer) {
		syndrome = send_queue_read(sq, &qp->params.sendable, qp->base.lkey, &w);
		if (syndrome != 0)
			break;
		qp->signal[w.index & (sq->count - 1)] = w.signal;
		fill_work_request(&wr[n], &sge[n], qp, &w);
		sq->next++;
		n++;
	}
	if (n > 0) {
		wr[n - 1].next = NULL;
		/* Always signal the last one, or the device's queue would fill up. */
		wr[n - 1].send_flags |= IBV_SEND_SIGNALED;
		if (ibv_post_send(qp->qp, wr, &bad) != 0)
			proxy_fail(qp, bad == NULL ? wr[0].wr_id : bad->wr_id,
				   MLX5_SYNDROME_LOCAL_OPERATION);
	}
	if (syndrome != 0)
		proxy_fail(qp, sq->next, syndrome);
	return n;
}

/* --- completions to CQEs --------------------------------------------------------------------- */

static uint8_t syndrome_of(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_LOC_PROT_ERR:
		return MLX5_SYNDROME_LOCAL_PROTECTION;
	case IBV_WC_WR_FLUSH_ERR:
		return MLX5_SYNDROME_FLUSHED;
	case IBV_WC_REM_INV_REQ_ERR:
		return MLX5_SYNDROME_REMOTE_INVALID;
	case IBV_WC_REM_ACCESS_ERR:
		return MLX5_SYNDROME_REMOTE_ACCESS;
	case IBV_WC_REM_OP_ERR:
		return MLX5_SYNDROME_REMOTE_OPERATION;
	case IBV_WC_RETRY_EXC_ERR:
		return MLX5_SYNDROME_RETRY_EXCEEDED;
	case IBV_WC_RNR_RETRY_EXC_ERR:
		return MLX5_SYNDROME_RNR_EXCEEDED;
	default:
		return MLX5_SYNDROME_LOCAL_OPERATION;
	}
}

static void proxy_complete(struct verbs_qp *qp, const struct ibv_wc *wc)
{
	uint16_t index = wc->wr_id;

	if (wc->status != IBV_WC_SUCCESS)
		return proxy_fail(qp, index, syndrome_of(wc->status));
	qp->done = index + 1;
	if (qp->signal[index & (qp->sq.count - 1)] && !qp->dead)
		send_queue_report(&qp->sq, index, MLX5_POST_CQE_OK, 0);
}

static struct verbs_qp *proxy_find_qp(const struct verbs_rnic *rnic, uint32_t number)
{
	for (unsigned int i = 0; i < rnic->n_qps; i++)
		if (rnic->qp[i]->base.number == number)
			return rnic->qp[i];
	return NULL; /* it was destroyed; some providers still report what completed before */
}

static unsigned int poll_completions(struct verbs_rnic *rnic)
{
	struct ibv_wc wc[BURST];
	int n = ibv_poll_cq(rnic->cq, BURST, wc);

	for (int i = 0; i < n; i++) {
		struct verbs_qp *qp = proxy_find_qp(rnic, wc[i].qp_num);

		if (qp != NULL)
			proxy_complete(qp, &wc[i]);
	}
	return n > 0 ? n : 0;
}

/* --- health ---------------------------------------------------------------------------------- */

/*
 * A WQE that failed may show in the state before its completion can be polled, and only the completion
 * says why. So the state alone ends the queue pair at the second check in a row.
 */
static void check_state(struct verbs_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int ret = ibv_query_qp(qp->qp, &attr, IBV_QP_STATE, &init);
	bool was_broken = qp->broken;

	qp->broken = ret == 0 && attr.qp_state == IBV_QPS_ERR;
	/* A device that was removed answers EIO. */
	if (ret == EIO || ret == ENODEV || (qp->broken && was_broken))
		proxy_fail(qp, qp->done, MLX5_SYNDROME_FLUSHED);
}

static void proxy_check(struct verbs_rnic *rnic)
{
	struct ibv_async_event event;

	/* Other events show in the queue pairs' states; unread they would keep waking this thread.
	 */
	while (ibv_get_async_event(rnic->device.context, &event) == 0) {
		if (event.event_type == IBV_EVENT_DEVICE_FATAL ||
		    event.event_type == IBV_EVENT_CQ_ERR)
			__atomic_store_n(&rnic->gone, 1, __ATOMIC_RELEASE);
		ibv_ack_async_event(&event);
	}
	for (unsigned int i = 0; i < rnic->n_qps; i++) {
		struct verbs_qp *qp = rnic->qp[i];

		if (rnic->gone)
			proxy_fail(qp, qp->done, MLX5_SYNDROME_FLUSHED);
		else if (qp->connected && !qp->dead)
			check_state(qp);
	}
}

/* --- the thread ------------------------------------------------------------------------------ */

static unsigned int proxy_poll(struct verbs_rnic *rnic, uint64_t *next_check)
{
	unsigned int work;

	pthread_mutex_lock(&rnic->lock);
	work = poll_completions(rnic);
	for (unsigned int i = 0; i < rnic->n_qps; i++)
		if (rnic->qp[i]->connected && rnic->qp[i]->proxied)
			work += proxy_post(rnic->qp[i]);
	if (work == 0 || ++rnic->busy == BUSY_TURNS) {
		rnic->busy = 0;
		if (clock_now_ns() >= *next_check) {
			proxy_check(rnic);
			*next_check = clock_now_ns() + CHECK_NS;
		}
	}
	pthread_mutex_unlock(&rnic->lock);
	return work;
}

/* Called after sleeper_prepare(). True when something has completed or a doorbell has rung. */
static bool proxy_has_work(struct verbs_rnic *rnic)
{
	bool rings;

	pthread_mutex_lock(&rnic->lock);
	rings = poll_completions(rnic) > 0;
	for (unsigned int i = 0; i < rnic->n_qps; i++)
		rings |= rnic->qp[i]->connected && rnic->qp[i]->proxied &&
			 send_queue_rings(&rnic->qp[i]->sq);
	pthread_mutex_unlock(&rnic->lock);
	return rings;
}

/* Sleep until a doorbell, a completion or an event wakes it. */
static void proxy_sleep(struct verbs_rnic *rnic)
{
	sleeper_prepare(&rnic->sleeper);
	/* Arm the channel, then check once more: what completes in between raises the channel. */
	if (ibv_req_notify_cq(rnic->cq, 0) != 0 || proxy_has_work(rnic) ||
	    __atomic_load_n(&rnic->stop, __ATOMIC_ACQUIRE))
		sleeper_cancel(&rnic->sleeper);
	else
		sleeper_wait(&rnic->sleeper, CHECK_NS);
	verbs_channel_drain(rnic->channel);
}

/* A poster that cannot wake the proxy makes it poll, but only for queues that the proxy posts to.
 */
static bool proxy_may_sleep(const struct verbs_rnic *rnic)
{
	return rnic->params.idle_sleep || __atomic_load_n(&rnic->proxied, __ATOMIC_ACQUIRE) == 0;
}

static void proxy_back_off(struct verbs_rnic *rnic, unsigned int idle)
{
	switch (proxy_may_sleep(rnic) ? sleeper_step(&rnic->sleeper, idle) : SLEEPER_SPIN) {
	case SLEEPER_SPIN:
		break;
	case SLEEPER_YIELD:
		sleeper_yield(&rnic->sleeper);
		break;
	case SLEEPER_SLEEP:
		proxy_sleep(rnic);
		break;
	}
}

void *verbs_proxy(void *argument)
{
	struct verbs_rnic *rnic = argument;
	uint64_t next_check = 0;
	unsigned int idle = 0;

	while (!__atomic_load_n(&rnic->stop, __ATOMIC_ACQUIRE)) {
		if (proxy_poll(rnic, &next_check) > 0)
			idle = 0;
		else
			proxy_back_off(rnic, idle++);
	}
	return NULL;
}
