/* SPDX-License-Identifier: BSD-3-Clause */
#include <endian.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rig.h"

#define QPN    0x4711
#define LKEY   0x77
#define RKEY   0x1111
#define REMOTE 0x7f0000000000ull
/* Enough for all slots, which is the most that a link gets. */
#define ROOM_MB 4096

static int load(struct loaded_model *m, const struct rig_params *p, char *error, size_t size)
{
	char path[PATH_MAX];

	if (p->own != NULL)
		return agent_model_open(m, p->own, p->arguments, p->max_batch, error, size);
	snprintf(path, sizeof(path), "%s/%s.so", p->models, p->model);
	return agent_model_load(m, path, p->arguments, p->max_batch, error, size);
}

static int make_link(struct rig *rig, uint32_t i, uint32_t wqes)
{
	const struct agent_model_shape *shape = &rig->model.shape;
	struct rig_link *l = &rig->link[i];

	if (link_memory_create(&l->memory, rig->slots, shape->max_request, shape->max_reply,
			       link_memory_room(rig->slots, shape->max_request, ROOM_MB)) < 0 ||
	    send_queue_create(&l->sq, wqes) < 0)
		return -1;
	l->sq.qpn = QPN + i;
	rig->view[i] = (struct agent_link){
		.descriptors = (const void *)(uintptr_t)l->memory.descriptors,
		.payloads = (const void *)(uintptr_t)l->memory.payloads,
		.cancels = (const void *)(uintptr_t)l->memory.cancels,
		.slot_count = rig->slots,
		.stride = l->memory.stride,
		.room_at = l->memory.room_at,
		.room = l->memory.room,
		.replies = (void *)(uintptr_t)l->memory.replies,
		.reply_address = l->memory.replies,
		.reply_stride = l->memory.reply_stride,
		.lkey = LKEY,
		.remote_address = REMOTE,
		.remote_rkey = RKEY,
		.queue = send_queue_view(&l->sq),
	};
	return 0;
}

int rig_start(struct rig *rig, const struct rig_params *p, char *error, size_t size)
{
	struct agent_loop_params loop = {0};

	*rig = (struct rig){
		.ops = p->ops != NULL ? p->ops
		       : p->gpu < 0   ? &agent_loop_cpu
				      : &agent_loop_cuda,
		.n_links = p->links,
		.slots = p->slots,
	};
	if (load(&rig->model, p, error, size) < 0)
		return -1;
	sleeper_init(&rig->sleeper);
	for (uint32_t i = 0; i < p->links; i++)
		if (make_link(rig, i, p->wqes == 0 ? 2 * p->slots : p->wqes) < 0) {
			snprintf(error, size, "no memory for link %u", i);
			return -1;
		}
	loop = (struct agent_loop_params){
		.model = rig->model.model,
		.model_state = rig->model.state,
		.shape = rig->model.shape,
		.max_reply = p->max_reply == 0 ? rig->model.shape.max_reply : p->max_reply,
		.max_batch = rig->model.shape.max_batch,
		.batch_timeout_us = p->batch_timeout_us,
		.heartbeat_ms = p->heartbeat_ms,
		.idle_sleep = true,
		.turns = p->turns,
		.n_links = p->links,
		.links = rig->view,
		.sleeper = &rig->sleeper,
		.gpu = p->gpu,
	};
	rig->loop = rig->ops->start(&loop, error, size);
	return rig->loop == NULL ? -1 : 0;
}

void rig_stop(struct rig *rig)
{
	if (rig->loop != NULL)
		rig->ops->stop(rig->loop);
	for (uint32_t i = 0; i < rig->n_links; i++) {
		link_memory_destroy(&rig->link[i].memory);
		send_queue_destroy(&rig->link[i].sq);
	}
	sleeper_fini(&rig->sleeper);
	agent_model_unload(&rig->model);
	rig->loop = NULL;
	rig->model = (struct loaded_model){0};
}

/* --- the load balancer's side ------------------------------------------------------------------
 */

/* Where the payload of a slot lies: if the model takes requests that fit no tile, in the room,
 * where there are pages for each slot. */
static uint32_t rig_payload(const struct rig *rig, const struct link_memory *m, uint32_t slot)
{
	uint64_t each = m->room / rig->slots;

	if (rig->model.shape.max_request <= m->stride)
		return (uint32_t)((uint64_t)slot * m->stride / RING_ALIGNMENT);
	return (uint32_t)((m->room_at + slot * each) / RING_ALIGNMENT);
}

/* Replies go to their slots' places in reverse, so that a loop that counts by slots is noticed. */
static uint32_t rig_reply_place(const struct rig *rig, const struct link_memory *m, uint32_t slot)
{
	uint64_t from_end = rig->slots - 1 - slot;

	return (uint32_t)(from_end * m->reply_stride / RING_ALIGNMENT);
}

uint8_t *rig_slot(struct rig *rig, uint32_t link, uint32_t slot)
{
	const struct link_memory *m = &rig->link[link].memory;

	return (uint8_t *)(uintptr_t)(m->payloads +
				      (uint64_t)rig_payload(rig, m, slot) * RING_ALIGNMENT);
}

void rig_submit(struct rig *rig, uint32_t link, uint32_t slot, uint32_t length,
		const struct ring_descriptor *with)
{
	struct rig_link *l = &rig->link[link];
	struct ring_descriptor *d = (void *)(uintptr_t)l->memory.descriptors;
	struct ring_descriptor next = with == NULL ? (struct ring_descriptor){0} : *with;

	next.slot = slot;
	next.length = length;
	if (next.payload == 0)
		next.payload = rig_payload(rig, &l->memory, slot);
	next.reply = rig_reply_place(rig, &l->memory, slot);
	d += l->position++ & (rig->slots - 1);
	next.sequence = d->sequence; /* the mark of the last lap, until all else is there */
	*d = next;
	__atomic_store_n(&d->sequence, l->position, __ATOMIC_RELEASE);
	sleeper_wake(&rig->sleeper);
}

void rig_cancel(struct rig *rig, uint32_t link, uint32_t slot, uint64_t sequence)
{
	uint64_t *cancels = (void *)(uintptr_t)rig->link[link].memory.cancels;

	__atomic_store_n(&cancels[slot], sequence, __ATOMIC_RELEASE);
}

/* --- the NIC's side ----------------------------------------------------------------------------
 */

void rig_complete(struct rig *rig, uint32_t link)
{
	struct send_queue *sq = &rig->link[link].sq;

	send_queue_report(sq, sq->next - 1, MLX5_POST_CQE_OK, 0);
}

void rig_break(struct rig *rig, uint32_t link, uint8_t syndrome)
{
	struct send_queue *sq = &rig->link[link].sq;

	send_queue_report(sq, sq->next, MLX5_POST_CQE_ERROR, syndrome);
	sleeper_wake(&rig->sleeper);
}

bool rig_reply(struct rig *rig, uint32_t link, struct rig_reply *out)
{
	struct rig_link *l = &rig->link[link];
	struct send_queue *sq = &l->sq;
	uint8_t syndrome;

	while (send_queue_update(sq)) {
		syndrome = send_queue_read(sq, &l->memory.sendable, LKEY, &out->work);
		if (syndrome != 0 || out->work.rkey != RKEY || !out->work.with_imm) {
			fprintf(stderr, "link %u: WQE %u is bad, syndrome %#x\n", link, sq->next,
				syndrome);
			abort();
		}
		sq->next++;
		if (out->work.signal && !l->mute)
			rig_complete(rig, link);
		if (out->work.imm & RING_IMM_HEARTBEAT) {
			l->heartbeats++;
			l->backlog = ring_imm_backlog(out->work.imm);
			continue;
		}
		out->slot = ring_imm_slot(out->work.imm);
		out->status = ring_imm_status(out->work.imm);
		out->header = (const void *)(uintptr_t)out->work.local;
		out->bytes = (const uint8_t *)(out->header + 1);
		if (out->work.remote !=
			    REMOTE + (uint64_t)rig_reply_place(rig, &l->memory, out->slot) *
					     RING_ALIGNMENT ||
		    out->work.length != sizeof(*out->header) + out->header->length) {
			fprintf(stderr, "link %u: the reply to slot %u is posted wrongly\n", link,
				out->slot);
			abort();
		}
		return true;
	}
	return false;
}
