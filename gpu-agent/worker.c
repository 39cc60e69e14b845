/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One registration: its memory, its queue pairs and the loop that serves them. Main thread.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <rte_log.h>

#include "agent.h"
#include "loop/link_memory.h"
#include "rdma/roce_wire.h"

struct worker_link {
	struct link_memory memory;
	struct rnic_qp *qp;
	uint32_t psn;
	uint32_t failed; /* atomic; set by the RNIC when the queue pair fails */
};

struct agent_worker {
	const struct agent_setup *setup;
	struct agent_hello hello;
	struct sleeper sleeper; /* where the loop sleeps */
	struct agent_loop *loop;
	bool memory_on_gpu; /* of the links made from now on */
	char memory_why[160];
	unsigned int n;
	struct worker_link link[AGENT_LINKS_MAX];
	struct agent_link loop_link[AGENT_LINKS_MAX];
};

/* WQEs of a link: every slot may have a reply in flight, and heartbeats come on top. */
static uint32_t link_wqes(uint32_t slots)
{
	return 2 * slots < MLX5_WQES_MAX ? 2 * slots : MLX5_WQES_MAX;
}

static int create_memory(struct agent_worker *w, struct worker_link *link, char *why, size_t size)
{
	const struct agent_model_shape *shape = &w->setup->model.shape;
	uint32_t slots = w->setup->options->slots;
	uint64_t room = link_memory_room(slots, shape->max_request, w->setup->options->payload_mb);

	if (w->memory_on_gpu)
		return link_memory_create_on_gpu(&link->memory, w->setup->gpu, slots,
						 shape->max_request, shape->max_reply, room, why,
						 size);
	return link_memory_create(&link->memory, slots, shape->max_request, shape->max_reply, room);
}

/* <why> gets a reason, if there is one beyond the error, or why there is no dma-buf. */
static int create_link(struct agent_worker *w, struct worker_link *link, char *why, size_t size)
{
	struct rnic *rnic = w->setup->rnic;
	struct rnic_qp_params p;
	int ret = create_memory(w, link, why, size);

	if (ret < 0)
		return ret;
	if (getrandom(&link->psn, sizeof(link->psn), 0) != sizeof(link->psn))
		return -EIO;
	link->psn &= ROCE_PSN_MASK;
	p = (struct rnic_qp_params){
		.writable = link->memory.writable,
		.sendable = link->memory.sendable,
		.wqe_count = link_wqes(w->setup->options->slots),
		.psn = link->psn,
		.spread = (uint32_t)(link - w->link),
		.wake = &w->sleeper,
		.failed = &link->failed,
		.why = why,
		.why_size = size,
	};
	link->qp = rnic->ops->create(rnic, &p);
	return link->qp == NULL ? -errno : 0;
}

/* Where the memory of a link cannot be the GPU's, it is the host's, unless the operator wants the
 * other. */
static int create_link_somewhere(struct agent_worker *w, struct worker_link *link, char *why,
				 size_t size)
{
	int ret = create_link(w, link, why, size);

	if (ret == 0 || !w->memory_on_gpu || w->setup->options->memory == AGENT_MEMORY_GPU)
		return ret;
	link_memory_destroy(&link->memory);
	snprintf(w->memory_why, sizeof(w->memory_why), "%s", why[0] != '\0' ? why : strerror(-ret));
	w->memory_on_gpu = false;
	why[0] = '\0';
	return create_link(w, link, why, size);
}

/* One line: where requests lie, who posts replies, and why not otherwise. */
static void log_links(const struct agent_worker *w)
{
	const struct rnic_qp *first = w->link[0].qp;
	const char *note = "";
	unsigned int noted = 0;
	char more[RNIC_NOTE_MAX + 64] = "", reason[192] = "";

	for (unsigned int i = 0; i < w->n; i++)
		if (w->link[i].qp->note[0] != '\0') {
			note = w->link[i].qp->note;
			noted++;
		}
	if (w->memory_why[0] != '\0')
		snprintf(reason, sizeof(reason), " reason=\"%s\"", w->memory_why);
	if (noted > 0)
		snprintf(more, sizeof(more), " proxied=%u post_reason=\"%s\"", noted, note);
	rte_log(RTE_LOG_NOTICE, agent_logtype,
		"agent: worker=%s links=%u memory=%s registered=%s%s%s\n", w->setup->name, w->n,
		w->memory_on_gpu ? "gpu" : "host", first->registered, reason, more);
}

struct agent_worker *agent_worker_create(const struct agent_setup *setup,
					 const struct agent_hello *hello, char *why, size_t size)
{
	struct agent_worker *w = calloc(1, sizeof(*w));
	int ret;

	why[0] = '\0';
	if (w == NULL)
		return NULL;
	w->setup = setup;
	w->hello = *hello;
	w->memory_on_gpu = setup->memory_on_gpu;
	memcpy(w->memory_why, setup->memory_why, sizeof(w->memory_why));
	ret = sleeper_init(&w->sleeper);
	w->sleeper.blind = !setup->rnic->wakes;
	for (w->n = 0; ret == 0 && w->n < hello->n_lcores; w->n++)
		ret = create_link_somewhere(w, &w->link[w->n], why, size);
	if (ret < 0) {
		agent_worker_destroy(w);
		errno = -ret;
		return NULL;
	}
	why[0] = '\0';
	if (setup->options->verbs && w->n > 0)
		log_links(w);
	return w;
}

uint32_t agent_worker_max_reply(const struct agent_worker *w)
{
	uint32_t model = w->setup->model.shape.max_reply;

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
		.payloads = link->memory.payloads,
		.room = link->memory.room,
		.cancels = link->memory.cancels,
	};
}

static void worker_kick(void *context)
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
		.udp_source = a->udp_source,
		.ack_timeout = w->hello.ack_timeout,
		.retry_limit = w->hello.retry_count,
	};

	w->loop_link[a->lcore] = (struct agent_link){
		.descriptors = (const void *)(uintptr_t)link->memory.descriptors,
		.payloads = (const void *)(uintptr_t)link->memory.payloads,
		.cancels = (const void *)(uintptr_t)link->memory.cancels,
		.slot_count = w->setup->options->slots,
		.stride = link->memory.stride,
		.room_at = link->memory.room_at,
		.room = link->memory.room,
		.replies = (void *)(uintptr_t)link->memory.replies,
		.reply_address = link->memory.replies,
		.reply_stride = link->memory.reply_stride,
		.lkey = link->qp->lkey,
		.remote_address = a->reply_address,
		.remote_rkey = a->reply_rkey,
		.chunk = a->chunk,
		.queue = link->qp->queue,
		.doorbell_is_io = link->qp->doorbell_is_io,
		.memory_on_gpu = link->memory.writable.on_gpu,
	};
	return w->setup->rnic->ops->connect(link->qp, &peer);
}

int agent_worker_start(struct agent_worker *w, const struct agent_link_answer *answers,
		       uint32_t path_mtu, char *error, size_t size)
{
	const struct agent_setup *setup = w->setup;
	struct agent_loop_params p = {
		.model = setup->model.model,
		.model_state = setup->model.state,
		.shape = setup->model.shape,
		.max_reply = agent_worker_max_reply(w),
		.max_batch = setup->model.shape.max_batch,
		.buckets = setup->model.buckets,
		.max_pieces = setup->model.shape.max_pieces,
		.batch_timeout_us = setup->options->batch_timeout_us,
		.heartbeat_ms = setup->options->heartbeat_ms,
		.hang_ms = setup->options->hang_ms + setup->options->max_run_ms,
		.idle_sleep = setup->options->idle_sleep,
		.turns = setup->options->turns,
		.n_links = w->n,
		.links = w->loop_link,
		.sleeper = &w->sleeper,
		.kick = worker_kick,
		.kick_context = setup->rnic,
		.gpu = setup->gpu,
	};
	int ret = 0;

	for (unsigned int i = 0; ret == 0 && i < w->n; i++)
		ret = connect_link(w, &answers[i], path_mtu);
	if (ret < 0) {
		snprintf(error, size, "%s%s", strerror(-ret),
			 ret == -EHOSTUNREACH ? "; the load balancer is outside the subnet: "
						"give --gateway"
			 : ret == -EADDRNOTAVAIL
				 ? "; the RDMA device has lost its address: give it "
				   "to its network interface again"
				 : "");
		return ret;
	}
	w->loop = setup->loop->start(&p, error, size);
	if (w->loop == NULL)
		return -EIO;
	return gpu_budget_keeps(&setup->budget, error, size) ? 0 : -EDQUOT;
}

void agent_worker_destroy(struct agent_worker *w)
{
	if (w == NULL)
		return;
	/* In this order: the loop stops posting, the RNIC stops writing, the memory is freed. */
	w->setup->loop->stop(w->loop);
	for (unsigned int i = 0; i < AGENT_LINKS_MAX; i++) {
		w->setup->rnic->ops->destroy(w->link[i].qp);
		link_memory_destroy(&w->link[i].memory);
	}
	sleeper_fini(&w->sleeper);
	free(w);
}

bool agent_worker_failed(const struct agent_worker *w, bool *final, char *why, size_t size)
{
	*final = w->loop != NULL && w->setup->loop->failed(w->loop, why, size);
	if (*final)
		return true;
	snprintf(why, size, "a queue pair failed; registering again");
	return agent_worker_failed_links(w) > 0;
}

unsigned int agent_worker_failed_links(const struct agent_worker *w)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < w->n; i++)
		n += __atomic_load_n(&w->link[i].failed, __ATOMIC_ACQUIRE) != 0;
	return n;
}

void agent_worker_stats_read(const struct agent_worker *w, struct agent_loop_stats *out)
{
	*out = (struct agent_loop_stats){0};
	if (w->loop != NULL)
		w->setup->loop->stats(w->loop, out);
}
