/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The proxy of the verbs engine: WQEs that the loop posted leave by ibv_post_send(), completions
 * come back to it as CQEs. It also watches the health of all queue pairs.
 */
#include <endian.h>
#include <errno.h>

#include "rnic/verbs_private.h"

/* Work requests per ibv_post_send(), and completions per look. */
#define BURST 32
/* A queue pair may fail without a word: the peer wrote where it may not, and rxe tells nobody. */
#define CHECK_NS 20000000ull
/* With work in every turn, the time for that is looked at this seldom. */
#define BUSY_TURNS 1024

/* An error ends the queue pair: everything posted later is flushed. */
static void fail(struct verbs_qp *qp, uint16_t index, uint8_t syndrome)
{
	if (qp->dead)
		return;
	qp->dead = true;
	/* With the device's own queues, the device has written the CQE. */
	if (qp->cq == NULL)
		send_queue_report(&qp->sq, index, MLX5_POST_CQE_ERROR, syndrome);
	if (qp->params.failed != NULL)
		__atomic_store_n(qp->params.failed, 1, __ATOMIC_RELEASE);
	if (qp->params.wake != NULL)
		sleeper_wake(qp->params.wake);
}

/* --- WQEs to work requests ------------------------------------------------------------------- */

static void fill(struct ibv_send_wr *wr, struct ibv_sge *sge, const struct verbs_qp *qp,
		 const struct send_work *w)
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

static unsigned int post(struct verbs_qp *qp)
{
	struct send_queue *sq = &qp->sq;
	struct ibv_send_wr wr[BURST], *bad = NULL;
	struct ibv_sge sge[BURST];
	struct send_work w;
	unsigned int n = 0;
	uint8_t syndrome = 0;

	if (qp->dead || !send_queue_look(sq))
		return 0;
	/* The poster has no more than <count> on their way, and the device's queue is no shorter.
	 */
	while (n < BURST && sq->next != sq->producer) {
		syndrome = send_queue_read(sq, &qp->params.sendable, qp->base.lkey, &w);
		if (syndrome != 0)
			break;
		qp->signal[w.index & (sq->count - 1)] = w.signal;
		fill(&wr[n], &sge[n], qp, &w);
		sq->next++;
		n++;
	}
	if (n > 0) {
		wr[n - 1].next = NULL;
		/* Or the device's queue would fill with what nobody asked to hear of. */
		wr[n - 1].send_flags |= IBV_SEND_SIGNALED;
		if (ibv_post_send(qp->qp, wr, &bad) != 0)
			fail(qp, bad == NULL ? wr[0].wr_id : bad->wr_id,
			     MLX5_SYNDROME_LOCAL_OPERATION);
	}
	if (syndrome != 0)
		fail(qp, sq->next, syndrome);
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

static void complete(struct verbs_qp *qp, const struct ibv_wc *wc)
{
	uint16_t index = wc->wr_id;

	if (wc->status != IBV_WC_SUCCESS)
		return fail(qp, index, syndrome_of(wc->status));
	qp->done = index + 1;
	if (qp->signal[index & (qp->sq.count - 1)] && !qp->dead)
		send_queue_report(&qp->sq, index, MLX5_POST_CQE_OK, 0);
}

static struct verbs_qp *find(const struct verbs_rnic *rnic, uint32_t number)
{
	for (unsigned int i = 0; i < rnic->n_qps; i++)
		if (rnic->qp[i]->base.number == number)
			return rnic->qp[i];
	return NULL; /* it was destroyed: some providers keep what was completed before */
}

static unsigned int poll_completions(struct verbs_rnic *rnic)
{
	struct ibv_wc wc[BURST];
	int n = ibv_poll_cq(rnic->cq, BURST, wc);

	for (int i = 0; i < n; i++) {
		struct verbs_qp *qp = find(rnic, wc[i].qp_num);

		if (qp != NULL)
			complete(qp, &wc[i]);
	}
	return n > 0 ? n : 0;
}

/* --- health ---------------------------------------------------------------------------------- */

static void check_state(struct verbs_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int ret = ibv_query_qp(qp->qp, &attr, IBV_QP_STATE, &init);

	/* A device that was taken away answers EIO. */
	if (ret == EIO || ret == ENODEV || (ret == 0 && attr.qp_state == IBV_QPS_ERR))
		fail(qp, qp->done, MLX5_SYNDROME_FLUSHED);
}

static void check(struct verbs_rnic *rnic)
{
	struct ibv_async_event event;

	/* The rest shows in the queue pairs' states; unread they would keep waking us. */
	while (ibv_get_async_event(rnic->device.context, &event) == 0) {
		if (event.event_type == IBV_EVENT_DEVICE_FATAL ||
		    event.event_type == IBV_EVENT_CQ_ERR)
			__atomic_store_n(&rnic->gone, 1, __ATOMIC_RELEASE);
		ibv_ack_async_event(&event);
	}
	for (unsigned int i = 0; i < rnic->n_qps; i++) {
		struct verbs_qp *qp = rnic->qp[i];

		if (rnic->gone)
			fail(qp, qp->done, MLX5_SYNDROME_FLUSHED);
		else if (qp->connected && !qp->dead)
			check_state(qp);
	}
}

/* --- the thread ------------------------------------------------------------------------------ */

static unsigned int turn(struct verbs_rnic *rnic, uint64_t *next_check)
{
	unsigned int work;

	pthread_mutex_lock(&rnic->lock);
	work = poll_completions(rnic);
	for (unsigned int i = 0; i < rnic->n_qps; i++)
		if (rnic->qp[i]->connected && rnic->qp[i]->cq == NULL)
			work += post(rnic->qp[i]);
	if (work == 0 || ++rnic->busy == BUSY_TURNS) {
		rnic->busy = 0;
		if (clock_now_ns() >= *next_check) {
			check(rnic);
			*next_check = clock_now_ns() + CHECK_NS;
		}
	}
	pthread_mutex_unlock(&rnic->lock);
	return work;
}

/* Asked after sleeper_prepare(): did something complete, or a doorbell ring? */
static bool must_stay_awake(struct verbs_rnic *rnic)
{
	bool rings;

	pthread_mutex_lock(&rnic->lock);
	rings = poll_completions(rnic) > 0;
	for (unsigned int i = 0; i < rnic->n_qps; i++)
		rings |= rnic->qp[i]->connected && rnic->qp[i]->cq == NULL &&
			 send_queue_rings(&rnic->qp[i]->sq);
	pthread_mutex_unlock(&rnic->lock);
	return rings;
}

/* Sleep until a doorbell, a completion or an event. */
static void sleep_until_work(struct verbs_rnic *rnic)
{
	sleeper_prepare(&rnic->sleeper);
	/* Armed, then looked at once more: what completes in between raises the channel. */
	if (ibv_req_notify_cq(rnic->cq, 0) != 0 || must_stay_awake(rnic) ||
	    __atomic_load_n(&rnic->stop, __ATOMIC_ACQUIRE))
		sleeper_cancel(&rnic->sleeper);
	else
		sleeper_wait(&rnic->sleeper, CHECK_NS);
	verbs_channel_drain(rnic->channel);
}

static void back_off(struct verbs_rnic *rnic, unsigned int idle)
{
	switch (rnic->params.idle_sleep ? sleeper_step(&rnic->sleeper, idle) : SLEEPER_SPIN) {
	case SLEEPER_SPIN:
		break;
	case SLEEPER_YIELD:
		sleeper_yield(&rnic->sleeper);
		break;
	case SLEEPER_SLEEP:
		sleep_until_work(rnic);
		break;
	}
}

void *verbs_proxy(void *argument)
{
	struct verbs_rnic *rnic = argument;
	uint64_t next_check = 0;
	unsigned int idle = 0;

	while (!__atomic_load_n(&rnic->stop, __ATOMIC_ACQUIRE)) {
		if (turn(rnic, &next_check) > 0)
			idle = 0;
		else
			back_off(rnic, idle++);
	}
	return NULL;
}
