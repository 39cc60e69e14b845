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

/* Bytes from piece to piece of a reply. */
static uint32_t chunk_of(const struct link_memory *m)
{
	return m->reply_stride;
}

uint64_t rig_room(const struct rig *rig)
{
	return link_memory_room(rig->slots, rig->model.shape.max_request, ROOM_MB);
}

/* Memory and a send queue of this process. */
static int make_link_here(struct rig *rig, uint32_t i, uint32_t wqes)
{
	const struct agent_model_shape *shape = &rig->model.shape;
	struct rig_link *l = &rig->link[i];

	*l = (struct rig_link){0};
	if (link_memory_create(&l->memory, rig->slots, shape->max_request, shape->max_reply,
			       rig_room(rig)) < 0 ||
	    send_queue_create(&l->sq, wqes) < 0)
		return -1;
	l->sq.qpn = QPN + i;
	l->remote = REMOTE;
	rig->view[i].lkey = LKEY;
	rig->view[i].remote_rkey = RKEY;
	rig->view[i].queue = send_queue_view(&l->sq);
	return 0;
}

static int make_link(struct rig *rig, uint32_t i, uint32_t wqes)
{
	struct rig_link *l = &rig->link[i];
	struct agent_link made;

	rig->view[i] = (struct agent_link){0};
	if ((rig->nic != NULL ? rig->nic->make_link : make_link_here)(rig, i, wqes) < 0)
		return -1;
	made = rig->view[i];
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
		.lkey = made.lkey,
		.remote_address = l->remote,
		.remote_rkey = made.remote_rkey,
		.chunk = chunk_of(&l->memory),
		.queue = made.queue,
		.doorbell_is_io = made.doorbell_is_io,
		.memory_on_gpu = l->memory.writable.on_gpu,
	};
	return 0;
}

/* Links as they are new, and a loop on them. */
static int start_loop(struct rig *rig, char *error, size_t size)
{
	const struct rig_params *p = &rig->params;
	const struct agent_model_shape *shape = &rig->model.shape;
	struct agent_loop_params loop;

	for (uint32_t i = 0; i < p->links; i++)
		if (make_link(rig, i, p->wqes == 0 ? 2 * p->slots : p->wqes) < 0) {
			snprintf(error, size, "no memory for link %u", i);
			return -1;
		}
	loop = (struct agent_loop_params){
		.model = rig->model.model,
		.model_state = rig->model.state,
		.shape = *shape,
		.max_reply = p->max_reply == 0 ? shape->max_reply : p->max_reply,
		.max_batch = shape->max_batch,
		.buckets = rig->model.buckets,
		.max_pieces = shape->max_pieces,
		.batch_timeout_us = p->batch_timeout_us,
		.heartbeat_ms = p->heartbeat_ms,
		.idle_sleep = true,
		.turns = p->turns,
		.n_links = p->links,
		.links = rig->view,
		.sleeper = &rig->sleeper,
		.kick = rig->nic != NULL ? rig->nic->kick : NULL,
		.kick_context = rig,
		.gpu = p->gpu,
	};
	rig->loop = rig->ops->start(&loop, error, size);
	return rig->loop == NULL ? -1 : 0;
}

static void stop_loop(struct rig *rig)
{
	if (rig->loop != NULL)
		rig->ops->stop(rig->loop);
	for (uint32_t i = 0; i < rig->n_links; i++) {
		if (rig->nic != NULL)
			rig->nic->free_link(rig, i);
		link_memory_destroy(&rig->link[i].memory);
		send_queue_destroy(&rig->link[i].sq);
	}
	rig->loop = NULL;
}

int rig_start(struct rig *rig, const struct rig_params *p, char *error, size_t size)
{
	*rig = (struct rig){
		.params = *p,
		.ops = p->ops != NULL ? p->ops
		       : p->gpu < 0   ? &agent_loop_cpu
				      : &agent_loop_cuda,
		.n_links = p->links,
		.slots = p->slots,
		.nic = p->nic,
		.gpu = p->gpu,
	};
	sleeper_init(&rig->sleeper);
	if (rig->nic != NULL && rig->nic->open(rig, error, size) < 0)
		return -1;
	if (load(&rig->model, p, error, size) < 0)
		return -1;
	return start_loop(rig, error, size);
}

int rig_restart(struct rig *rig, char *error, size_t size)
{
	stop_loop(rig);
	return start_loop(rig, error, size);
}

void rig_stop(struct rig *rig)
{
	stop_loop(rig);
	if (rig->nic != NULL)
		rig->nic->close(rig);
	rig->nic = NULL;
	sleeper_fini(&rig->sleeper);
	agent_model_unload(&rig->model);
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

	return (uint32_t)(from_end * rig->model.shape.max_pieces * chunk_of(m) / RING_ALIGNMENT);
}

/* The load balancer's view of an address in a link's memory: the memory, or its copy. */
static void *rig_at(const struct rig_link *l, uint64_t va)
{
	return l->shadow == NULL ? (void *)(uintptr_t)va : l->shadow + (va - l->memory.writable.va);
}

static uint64_t slot_address(const struct rig *rig, const struct link_memory *m, uint32_t slot)
{
	return m->payloads + (uint64_t)rig_payload(rig, m, slot) * RING_ALIGNMENT;
}

uint64_t rig_reply_address(const struct rig *rig, uint32_t link, uint32_t slot)
{
	const struct rig_link *l = &rig->link[link];

	return l->remote + (uint64_t)rig_reply_place(rig, &l->memory, slot) * RING_ALIGNMENT;
}

uint8_t *rig_slot(struct rig *rig, uint32_t link, uint32_t slot)
{
	const struct rig_link *l = &rig->link[link];

	return rig_at(l, slot_address(rig, &l->memory, slot));
}

/* The caller has put <length> bytes into the slot's copy. */
static void write_payload(struct rig *rig, uint32_t link, uint32_t slot, uint32_t length)
{
	const struct link_memory *m = &rig->link[link].memory;
	uint64_t at = slot_address(rig, m, slot), end = m->cancels;

	if (slot < rig->slots && length > 0 && length <= end - at)
		rig->nic->write(rig, link, at, rig_slot(rig, link, slot), length);
}

/* Write a descriptor, whose sequence says where. */
static void show(struct rig *rig, uint32_t link, struct ring_descriptor next)
{
	struct rig_link *l = &rig->link[link];
	struct ring_descriptor *d = rig_at(l, l->memory.descriptors);
	uint64_t sequence = next.sequence;

	d += (sequence - 1) & (rig->slots - 1);
	if (rig->nic != NULL) {
		rig->nic->write(rig, link,
				l->memory.descriptors + (uint64_t)((uint8_t *)d - l->shadow), &next,
				sizeof(next));
	} else {
		next.sequence = d->sequence; /* the mark of the last lap, until all else is there */
		*d = next;
		__atomic_store_n(&d->sequence, sequence, __ATOMIC_RELEASE);
	}
	sleeper_wake(&rig->sleeper);
}

void rig_submit(struct rig *rig, uint32_t link, uint32_t slot, uint32_t length,
		const struct ring_descriptor *with)
{
	struct rig_link *l = &rig->link[link];
	struct ring_descriptor next = with == NULL ? (struct ring_descriptor){0} : *with;

	next.slot = slot;
	next.length = length;
	if (next.payload == 0)
		next.payload = rig_payload(rig, &l->memory, slot);
	next.reply = rig_reply_place(rig, &l->memory, slot);
	next.sequence = ++l->position;
	if (rig->nic != NULL)
		write_payload(rig, link, slot, length);
	if (l->holds && l->held.sequence == 0)
		l->held = next;
	else
		show(rig, link, next);
}

void rig_hold(struct rig *rig, uint32_t link)
{
	rig->link[link].holds = true;
	rig->link[link].held.sequence = 0;
}

/* The ring is read in order, so the first one holds back the others. */
void rig_release(struct rig *rig, uint32_t link)
{
	struct rig_link *l = &rig->link[link];

	l->holds = false;
	if (l->held.sequence != 0)
		show(rig, link, l->held);
}

void rig_cancel(struct rig *rig, uint32_t link, uint32_t slot, uint64_t sequence)
{
	uint64_t *cancels = (void *)(uintptr_t)rig->link[link].memory.cancels;

	if (rig->nic != NULL)
		return rig->nic->write(rig, link, (uintptr_t)&cancels[slot], &sequence,
				       sizeof(sequence));
	__atomic_store_n(&cancels[slot], sequence, __ATOMIC_RELEASE);
}

/* --- the NIC's side ----------------------------------------------------------------------------
 */

static void complete(struct send_queue *sq)
{
	send_queue_report(sq, sq->next - 1, MLX5_POST_CQE_OK, 0);
}

bool rig_mute(struct rig *rig, uint32_t link, bool mute)
{
	if (rig->nic != NULL)
		return rig->nic->mute(rig, link, mute);
	rig->link[link].mute = mute;
	if (!mute)
		complete(&rig->link[link].sq);
	return true;
}

void rig_break(struct rig *rig, uint32_t link, uint8_t syndrome)
{
	struct send_queue *sq = &rig->link[link].sq;

	if (rig->nic != NULL)
		rig->nic->break_link(rig, link);
	else
		send_queue_report(sq, sq->next, MLX5_POST_CQE_ERROR, syndrome);
	sleeper_wake(&rig->sleeper);
}

/* The next WQE of the send queue, completed unless the link is mute. */
static bool next_here(struct rig *rig, uint32_t link, struct rig_reply *out)
{
	struct rig_link *l = &rig->link[link];
	struct send_queue *sq = &l->sq;
	uint8_t syndrome;

	if (l->owes && !l->mute)
		complete(sq);
	l->owes = false;
	if (!send_queue_update(sq))
		return false;
	syndrome = send_queue_read(sq, &l->memory.sendable, LKEY, &out->work);
	if (syndrome != 0 || out->work.rkey != RKEY || !out->work.with_imm) {
		fprintf(stderr, "link %u: WQE %u is bad, syndrome %#x\n", link, sq->next, syndrome);
		abort();
	}
	sq->next++;
	if (out->work.imm & RING_IMM_MORE)
		l->owes = out->work.signal;
	else if (out->work.signal && !l->mute)
		complete(sq);
	out->header = (const void *)(uintptr_t)out->work.local;
	return true;
}

bool rig_reply(struct rig *rig, uint32_t link, struct rig_reply *out)
{
	struct rig_link *l = &rig->link[link];
	uint64_t place;

	while ((rig->nic != NULL ? rig->nic->next : next_here)(rig, link, out)) {
		if (out->work.imm & RING_IMM_HEARTBEAT) {
			l->heartbeats++;
			l->backlog = ring_imm_backlog(out->work.imm);
			continue;
		}
		out->slot = ring_imm_slot(out->work.imm);
		out->status = ring_imm_status(out->work.imm);
		out->more = out->work.imm & RING_IMM_MORE;
		out->bytes = (const uint8_t *)(out->header + 1);
		place = rig_reply_address(rig, link, out->slot) +
			(uint64_t)out->header->chunk * chunk_of(&l->memory);
		if (out->work.remote != place ||
		    out->work.length != sizeof(*out->header) + out->header->length) {
			fprintf(stderr, "link %u: the reply to slot %u is posted wrongly\n", link,
				out->slot);
			abort();
		}
		return true;
	}
	return false;
}
