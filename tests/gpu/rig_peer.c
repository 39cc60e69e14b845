/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "rig_peer.h"

#define QPN    0x5100
#define LKEY   0x99
#define RKEY   0x2222
#define REMOTE 0x7e0000000000ull

static int peer_open(struct rig *rig, char *error, size_t size)
{
	(void)rig;
	(void)error;
	(void)size;
	return 0;
}

static void peer_close(struct rig *rig)
{
	(void)rig;
}

static int make_queue(struct rig *rig, uint32_t i, uint32_t wqes)
{
	struct rig_link *l = &rig->link[i];

	if (send_queue_create(&l->sq, wqes) < 0)
		return -1;
	l->sq.qpn = QPN + i;
	l->remote = REMOTE;
	rig->view[i].lkey = LKEY;
	rig->view[i].remote_rkey = RKEY + i;
	rig->view[i].queue = send_queue_view(&l->sq);
	return 0;
}

static int make_link_on_gpu(struct rig *rig, uint32_t i, uint32_t wqes)
{
	const struct agent_model_shape *shape = &rig->model.shape;
	struct rig_link *l = &rig->link[i];
	char why[160] = "";

	*l = (struct rig_link){0};
	if (link_memory_create_on_gpu(&l->memory, rig->gpu, rig->slots, shape->max_request,
				      shape->max_reply, rig_room(rig), why, sizeof(why)) < 0) {
		fprintf(stderr, "%s\n", why);
		return -1;
	}
	return make_queue(rig, i, wqes);
}

static int make_link_on_host(struct rig *rig, uint32_t i, uint32_t wqes)
{
	const struct agent_model_shape *shape = &rig->model.shape;
	struct rig_link *l = &rig->link[i];

	*l = (struct rig_link){0};
	if (link_memory_create(&l->memory, rig->slots, shape->max_request, shape->max_reply,
			       rig_room(rig)) < 0)
		return -1;
	return make_queue(rig, i, wqes);
}

static void free_link(struct rig *rig, uint32_t link)
{
	(void)rig;
	(void)link;
}

const struct rig_nic rig_peer_gpu = {
	.open = peer_open,
	.close = peer_close,
	.make_link = make_link_on_gpu,
	.free_link = free_link,
};
const struct rig_nic rig_peer_host = {
	.open = peer_open,
	.close = peer_close,
	.make_link = make_link_on_host,
	.free_link = free_link,
};

struct peer_link rig_peer_link(const struct rig *rig, uint32_t link)
{
	const struct rig_link *l = &rig->link[link];
	const struct link_memory *m = &l->memory;
	bool tiles = rig->model.shape.max_request <= m->stride;

	return (struct peer_link){
		.descriptors = (void *)(uintptr_t)m->descriptors,
		.payloads = (void *)(uintptr_t)m->payloads,
		.cancels = (void *)(uintptr_t)m->cancels,
		.slots = rig->slots,
		.tile = tiles ? m->stride : m->room / rig->slots & ~(uint64_t)(RING_ALIGNMENT - 1),
		.first = tiles ? 0 : m->room_at,
		.replies = m->replies,
		.reply_stride = m->reply_stride,
		.lkey = rig->view[link].lkey,
		.rkey = rig->view[link].remote_rkey,
		.qpn = l->sq.qpn,
		.remote = l->remote,
		.place = m->reply_stride,
		.wqes = l->sq.wqes,
		.cqes = l->sq.cqes,
		.doorbell = l->sq.doorbell,
		.wqe_count = l->sq.count,
	};
}
