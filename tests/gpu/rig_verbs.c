/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef DOORBELL_CUDA
#include <cuda_runtime_api.h>
#endif

#include "rig_verbs.h"
#include "rnic/verbs_rnic.h"
#include "standin.h"

struct link_nic {
	struct rnic_qp *qp;
	struct standin_far *far;
};

/* The RNIC of the rig, its loop's device, and where memory is to lie. */
struct nic {
	struct rnic *rnic;
	struct rig *rig;
	bool on_gpu;
};

static struct nic nic;

static const struct rnic_address here = {
	.family = 4, .addr.s6_addr = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}};

/* --- the device --------------------------------------------------------------------------------
 */

static void verbs_copy(void *to, const void *from, size_t size)
{
#ifdef DOORBELL_CUDA
	if (nic.on_gpu) {
		cudaError_t ret = cudaMemcpy(to, from, size, cudaMemcpyDefault);

		if (ret == cudaSuccess)
			return;
		fprintf(stderr, "a copy to or from the GPU fails: %s\n", cudaGetErrorString(ret));
		abort();
	}
#endif
	memcpy(to, from, size);
}

static bool loop_can_ring(void *context, const volatile void *doorbell, char *why, size_t size)
{
	const struct rig *rig = context;

	return rig->ops->can_ring == NULL || rig->ops->can_ring(rig->gpu, doorbell, why, size);
}

static int verbs_open(struct rig *rig, bool proxy, bool on_gpu, char *error, size_t size)
{
	struct verbs_rnic_params p = {
		.device = STANDIN_DEVICE,
		.address = here,
		.idle_sleep = rig->gpu < 0,
		.always_proxy = proxy,
		.can_ring = loop_can_ring,
		.context = rig,
	};
	char found[384];

	nic = (struct nic){.rig = rig, .on_gpu = on_gpu};
	/* With a function of its own, the stand-in's memory is the GPU's. */
	standin_copy = on_gpu ? verbs_copy : NULL;
	nic.rnic = verbs_rnic_create(&p, found, sizeof(found), error, size);
	if (nic.rnic == NULL)
		return -1;
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
		.address = here, .path_mtu = 1024, .ack_timeout = 14, .retry_limit = 7};
	struct rnic_qp_params p;
	char why[320] = "";

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
	n->far = standin_far_open((size_t)rig->slots * l->memory.reply_stride);
	n->qp = nic.rnic->ops->create(nic.rnic, &p);
	if (n->qp == NULL || n->far == NULL || l->shadow == NULL) {
		fprintf(stderr, "%s: %s\n", why, strerror(errno));
		return -1;
	}
	peer.qpn = standin_far_qpn(n->far);
	l->remote = (uintptr_t)standin_far_memory(n->far);
	rig->view[i].lkey = n->qp->lkey;
	rig->view[i].remote_rkey = standin_far_rkey(n->far);
	rig->view[i].queue = n->qp->queue;
	rig->view[i].doorbell_is_io = n->qp->doorbell_is_io;
	return nic.rnic->ops->connect(n->qp, &peer);
}

static void verbs_free_link(struct rig *rig, uint32_t i)
{
	struct link_nic *n = rig->link[i].nic;

	if (n == NULL)
		return;
	nic.rnic->ops->destroy(n->qp);
	if (n->far != NULL)
		standin_far_close(n->far);
	free(rig->link[i].shadow);
	free(n);
	rig->link[i].nic = rig->link[i].shadow = NULL;
}

static void verbs_write(struct rig *rig, uint32_t i, uint64_t va, const void *bytes, size_t length)
{
	const struct link_nic *n = rig->link[i].nic;

	/* A broken queue pair takes nothing, which the test wants to see. */
	standin_far_write(n->qp->number, n->qp->rkey, va, bytes, length);
}

static bool verbs_next(struct rig *rig, uint32_t i, struct rig_reply *out)
{
	const struct link_nic *n = rig->link[i].nic;
	struct standin_message m;

	if (!standin_far_next(n->far, &m))
		return false;
	out->work = (struct send_work){
		.remote = m.address, .length = m.length, .imm = m.imm, .with_imm = true};
	out->header = (const void *)(uintptr_t)m.address;
	return true;
}

static void verbs_mute(struct rig *rig, uint32_t i, bool mute)
{
	const struct link_nic *n = rig->link[i].nic;

	standin_far_hold(n->far, mute);
}

static void verbs_break(struct rig *rig, uint32_t i)
{
	const struct link_nic *n = rig->link[i].nic;

	standin_break(n->qp->number);
}

#define VERBS                                                                                      \
	.close = verbs_close, .make_link = verbs_make_link, .free_link = verbs_free_link,          \
	.write = verbs_write, .next = verbs_next, .mute = verbs_mute, .break_link = verbs_break,   \
	.kick = verbs_kick

const struct rig_nic rig_verbs = {.open = direct_open, VERBS};
const struct rig_nic rig_verbs_proxy = {.open = proxy_open, VERBS};
const struct rig_nic rig_verbs_gpu = {.open = gpu_open, VERBS};

bool rig_verbs_clean(void)
{
	if (standin_counters.wrong > 0)
		fprintf(stderr, "the stand-in refuses: %s\n", standin_wrong);
	if (standin_counters.overruns > 0)
		fprintf(stderr, "a completion queue had no room\n");
	if (standin_objects() > 0)
		fprintf(stderr, "%u objects were not given back\n", standin_objects());
	return standin_counters.wrong == 0 && standin_counters.overruns == 0 &&
	       standin_objects() == 0;
}
