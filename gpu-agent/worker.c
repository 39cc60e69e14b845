/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One registration: memory, queue pairs and the loop that serves them.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "agent.h"
#include "roce_wire.h"

struct worker_link {
	struct link_memory memory;
	struct rnic_qp *qp;
	uint32_t psn;
};

struct agent_worker {
	struct rnic *rnic;
	const struct loaded_model *model;
	const struct agent_options *options;
	struct agent_hello hello;
	struct sleeper sleeper; /* of the loop */
	uint32_t failed;        /* atomic; set by the RNIC when a queue pair fails */
	struct agent_loop *loop;
	unsigned int n;
	struct worker_link link[AGENT_LINKS_MAX];
	struct agent_link view[AGENT_LINKS_MAX];
};

static int create_link(struct agent_worker *w, struct worker_link *link)
{
	struct rnic_qp_params p;
	int ret = link_memory_create(&link->memory, w->options->slots, w->model->shape.max_request,
				     w->model->shape.max_reply);

	if (ret < 0)
		return ret;
	if (getrandom(&link->psn, sizeof(link->psn), 0) != sizeof(link->psn))
		return -EIO;
	link->psn &= ROCE_PSN_MASK;
	p = (struct rnic_qp_params){
		.writable = link->memory.writable,
		.sendable = link->memory.sendable,
		/* Every slot may have its reply on the way, and heartbeats come between. */
		.wqe_count = 2 * w->options->slots,
		.psn = link->psn,
		.wake = &w->sleeper,
		.failed = &w->failed,
	};
	link->qp = w->rnic->ops->create(w->rnic, &p);
	return link->qp == NULL ? -errno : 0;
}

struct agent_worker *agent_worker_create(struct rnic *rnic, const struct loaded_model *model,
					 const struct agent_options *options,
					 const struct agent_hello *hello)
{
	struct agent_worker *w = calloc(1, sizeof(*w));
	int ret;

	if (w == NULL)
		return NULL;
	w->rnic = rnic;
	w->model = model;
	w->options = options;
	w->hello = *hello;
	ret = sleeper_init(&w->sleeper);
	w->sleeper.blind = !rnic->wakes;
	for (w->n = 0; ret == 0 && w->n < hello->n_lcores; w->n++)
		ret = create_link(w, &w->link[w->n]);
	if (ret < 0) {
		agent_worker_destroy(w);
		errno = -ret;
		return NULL;
	}
	return w;
}

uint32_t agent_worker_max_reply(const struct agent_worker *w)
{
	uint32_t model = w->model->shape.max_reply;

	return model < w->hello.max_reply ? model : w->hello.max_reply;
}

unsigned int agent_worker_links(const struct agent_worker *w)
{
	return w->n;
}

struct agent_link_offer agent_worker_offer(const struct agent_worker *w, unsigned int lcore)
{
	const struct worker_link *link = &w->link[lcore];

	return (struct agent_link_offer){
		.qpn = link->qp->number,
		.psn = link->psn,
		.rkey = link->qp->rkey,
		.stride = link->memory.stride,
		.descriptors = link->memory.descriptors,
		.slots = link->memory.slots,
		.cancels = link->memory.cancels,
	};
}

static void kick(void *context)
{
	struct rnic *rnic = context;

	rnic->ops->kick(rnic);
}

static int connect_link(struct agent_worker *w, const struct agent_link_answer *a,
			uint32_t path_mtu)
{
	const struct worker_link *link = &w->link[a->lcore];
	struct rnic_peer peer = {
		.address = w->hello.address,
		.qpn = a->qpn,
		.psn = a->psn,
		.path_mtu = path_mtu,
		.ack_timeout = w->hello.ack_timeout,
		.retry_limit = w->hello.retry_count,
	};

	w->view[a->lcore] = (struct agent_link){
		.descriptors = (const void *)(uintptr_t)link->memory.descriptors,
		.slots = (const void *)(uintptr_t)link->memory.slots,
		.cancels = (const void *)(uintptr_t)link->memory.cancels,
		.slot_count = w->options->slots,
		.stride = link->memory.stride,
		.replies = (void *)(uintptr_t)link->memory.replies,
		.reply_stride = link->memory.reply_stride,
		.lkey = link->qp->lkey,
		.remote_address = a->reply_address,
		.remote_stride = a->reply_stride,
		.remote_rkey = a->reply_rkey,
		.queue = link->qp->queue,
	};
	return w->rnic->ops->connect(link->qp, &peer);
}

int agent_worker_start(struct agent_worker *w, const struct agent_link_answer *answers,
		       uint32_t path_mtu)
{
	struct agent_loop_params p = {
		.model = w->model->model,
		.model_state = w->model->state,
		.shape = w->model->shape,
		.max_reply = agent_worker_max_reply(w),
		.max_batch = w->model->shape.max_batch,
		.batch_timeout_us = w->options->batch_timeout_us,
		.heartbeat_ms = w->options->heartbeat_ms,
		.idle_sleep = w->options->idle_sleep,
		.n_links = w->n,
		.links = w->view,
		.sleeper = &w->sleeper,
		.kick = kick,
		.kick_context = w->rnic,
	};
	int ret = 0;

	for (unsigned int i = 0; ret == 0 && i < w->n; i++)
		ret = connect_link(w, &answers[i], path_mtu);
	if (ret < 0)
		return ret;
	w->loop = agent_loop_start(&p);
	return w->loop == NULL ? -errno : 0;
}

void agent_worker_destroy(struct agent_worker *w)
{
	if (w == NULL)
		return;
	/* First nobody posts, then nobody writes, then the memory goes. */
	agent_loop_stop(w->loop);
	for (unsigned int i = 0; i < AGENT_LINKS_MAX; i++) {
		w->rnic->ops->destroy(w->link[i].qp);
		link_memory_destroy(&w->link[i].memory);
	}
	sleeper_fini(&w->sleeper);
	free(w);
}

bool agent_worker_failed(const struct agent_worker *w)
{
	return __atomic_load_n(&w->failed, __ATOMIC_ACQUIRE);
}

void agent_worker_stats_read(const struct agent_worker *w, struct agent_loop_stats *out)
{
	*out = (struct agent_loop_stats){0};
	if (w->loop != NULL)
		agent_loop_stats_read(w->loop, out);
}
