/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "far.h"
#include "rig_verbs.h"
#include "rnic/verbs_rnic.h"

struct link_nic {
	struct rnic_qp *qp;
	struct far *far;
};

/* The RNIC of the rig, and where memory is to lie. */
struct nic {
	struct rnic *rnic;
	struct rnic_address address;
	bool on_gpu;
	char said[384]; /* the last description */
};

static struct nic nic;

/* --- the device --------------------------------------------------------------------------------
 */

static bool loop_can_ring(void *context, const struct mlx5_queue *queue, char *why, size_t size)
{
	const struct rig *rig = context;

	return rig->ops->can_ring == NULL || rig->ops->can_ring(rig->gpu, queue, why, size);
}

static int verbs_open(struct rig *rig, bool proxy, bool on_gpu, char *error, size_t size)
{
	struct verbs_rnic_params p = {
		.idle_sleep = rig->gpu < 0,
		.always_proxy = proxy,
		.can_ring = loop_can_ring,
		.context = rig,
	};
	char found[384];

	nic.rnic = NULL;
	nic.on_gpu = on_gpu;
	far_serve_gpu(on_gpu);
	p.device = far_device(&nic.address, error, size);
	p.address = nic.address;
	if (p.device == NULL)
		return -1;
	nic.rnic = verbs_rnic_create(&p, found, sizeof(found), error, size);
	if (nic.rnic == NULL)
		return -1;
	if (strcmp(found, nic.said) != 0)
		printf("       %s\n", found);
	strcpy(nic.said, found);
	rig->sleeper.blind = true;
	if (strstr(found, proxy ? "post=proxy" : "post=direct") != NULL)
		return 0;
	snprintf(error, size, "%s", found);
	return -1;
}

static int direct_open(struct rig *rig, char *error, size_t size)
{
	return verbs_open(rig, false, false, error, size);
}

static int proxy_open(struct rig *rig, char *error, size_t size)
{
	return verbs_open(rig, true, false, error, size);
}

static int gpu_open(struct rig *rig, char *error, size_t size)
{
	return gpu_memory_is_ordered(rig->gpu, error, size)
		       ? verbs_open(rig, false, true, error, size)
		       : -1;
}

static void verbs_close(struct rig *rig)
{
	if (nic.rnic != NULL)
		nic.rnic->ops->close(nic.rnic);
	nic.rnic = NULL;
}

static void verbs_kick(void *rig)
{
	nic.rnic->ops->kick(nic.rnic);
}

/* --- links -------------------------------------------------------------------------------------
 */

static int make_memory(struct rig *rig, struct link_memory *m)
{
	const struct agent_model_shape *shape = &rig->model.shape;
	char why[160] = "";

	if (!nic.on_gpu)
		return link_memory_create(m, rig->slots, shape->max_request, shape->max_reply,
					  rig_room(rig));
	if (link_memory_create_on_gpu(m, rig->gpu, rig->slots, shape->max_request, shape->max_reply,
				      rig_room(rig), why, sizeof(why)) == 0)
		return 0;
	fprintf(stderr, "%s\n", why);
	return -1;
}

static int verbs_make_link(struct rig *rig, uint32_t i, uint32_t wqes)
{
	struct rig_link *l = &rig->link[i];
	struct link_nic *n = calloc(1, sizeof(*n));
	struct rnic_peer peer = {
		.address = nic.address, .path_mtu = 1024, .ack_timeout = 14, .retry_limit = 5};
	struct rnic_qp_params p;
	char why[320] = "";
	int ret;

	l->nic = n;
	if (n == NULL || make_memory(rig, &l->memory) < 0)
		return -1;
	p = (struct rnic_qp_params){
		.writable = l->memory.writable,
		.sendable = l->memory.sendable,
		.wqe_count = wqes,
		.wake = &rig->sleeper,
		.why = why,
		.why_size = sizeof(why),
	};
	l->shadow = calloc(1, l->memory.writable.length);
	n->far = far_open((size_t)rig->slots * l->memory.reply_stride);
	n->qp = nic.rnic->ops->create(nic.rnic, &p);
	if (n->qp == NULL || n->far == NULL || l->shadow == NULL) {
		fprintf(stderr, "%s: %s\n", why, strerror(errno));
		return -1;
	}
	peer.qpn = far_qpn(n->far);
	peer.path_mtu = nic.rnic->path_mtu;
	l->remote = (uintptr_t)far_memory(n->far);
	rig->view[i].lkey = n->qp->lkey;
	rig->view[i].remote_rkey = far_rkey(n->far);
	rig->view[i].queue = n->qp->queue;
	rig->view[i].doorbell_is_io = n->qp->doorbell_is_io;
	ret = nic.rnic->ops->connect(n->qp, &peer);
	if (ret == 0)
		ret = far_connect(n->far, n->qp->number);
	if (ret < 0)
		fprintf(stderr, "cannot connect: %s\n", strerror(-ret));
	return ret;
}

static void verbs_free_link(struct rig *rig, uint32_t i)
{
	struct link_nic *n = rig->link[i].nic;

	if (n == NULL)
		return;
	nic.rnic->ops->destroy(n->qp);
	far_close(n->far);
	free(rig->link[i].shadow);
	free(n);
	rig->link[i].nic = rig->link[i].shadow = NULL;
}

static void verbs_write(struct rig *rig, uint32_t i, uint64_t va, const void *bytes, size_t length)
{
	const struct link_nic *n = rig->link[i].nic;

	/* A broken queue pair takes nothing, which the test wants to see. */
	far_write(n->far, n->qp->rkey, va, bytes, length);
}

static bool verbs_next(struct rig *rig, uint32_t i, struct rig_reply *out)
{
	const struct link_nic *n = rig->link[i].nic;
	struct far_message m;

	if (!far_next(n->far, &m))
		return false;
	if (m.address == 0)
		m.address = rig_reply_address(rig, i, ring_imm_slot(m.imm));
	out->work = (struct send_work){
		.remote = m.address, .length = m.length, .imm = m.imm, .with_imm = true};
	out->header = (const void *)(uintptr_t)m.address;
	return true;
}

static bool verbs_mute(struct rig *rig, uint32_t i, bool mute)
{
	const struct link_nic *n = rig->link[i].nic;

	return far_hold(n->far, mute);
}

static void verbs_break(struct rig *rig, uint32_t i)
{
	const struct link_nic *n = rig->link[i].nic;

	far_break(n->far);
}

#define VERBS                                                                                      \
	.close = verbs_close, .make_link = verbs_make_link, .free_link = verbs_free_link,          \
	.write = verbs_write, .next = verbs_next, .mute = verbs_mute, .break_link = verbs_break,   \
	.kick = verbs_kick

const struct rig_nic rig_verbs = {.open = direct_open, VERBS};
const struct rig_nic rig_verbs_proxy = {.open = proxy_open, VERBS};
const struct rig_nic rig_verbs_gpu = {.open = gpu_open, VERBS};
