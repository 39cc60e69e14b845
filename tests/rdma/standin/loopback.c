/* SPDX-License-Identifier: BSD-3-Clause */
/* The stand-in's network inside this process: WRITEs go to a far end that the test reads. */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "standin_private.h"

#define MESSAGES 65536u /* that may wait for the test; power of two */
#define HELD     4096u  /* completions held back; power of two */
#define FARS     64

struct standin_far {
	uint32_t qpn, rkey;
	uint8_t *memory;
	size_t bytes;
	bool deaf, holds;
	struct standin_work held[HELD];
	uint32_t held_head, held_tail;
	uint64_t head, tail; /* messages taken, and arrived */
	struct standin_message message[MESSAGES];
};

static struct standin_far *fars[FARS];

/* --- the network --------------------------------------------------------------------------------
 */

static int loopback_open(union ibv_gid *gid, uint32_t *interface)
{
	inet_pton(AF_INET6, "::ffff:127.0.0.1", gid->raw);
	*interface = if_nametoindex("lo");
	return 0;
}

static void loopback_close(void)
{
}

static struct standin_far *find_far(uint32_t qpn)
{
	for (unsigned int i = 0; i < FARS; i++)
		if (fars[i] != NULL && fars[i]->qpn == qpn)
			return fars[i];
	return NULL;
}

static int loopback_connect(struct standin_qp *qp)
{
	qp->net = find_far(qp->peer_qpn);
	return qp->net == NULL ? ETIMEDOUT : 0;
}

static void loopback_disconnect(struct standin_qp *qp)
{
	qp->net = NULL;
}

static bool loopback_send(struct standin_qp *qp, const struct standin_work *w)
{
	struct standin_far *far = qp->net;
	uint64_t at = w->remote - (uintptr_t)far->memory;

	if (far->deaf || far->tail - far->head == MESSAGES ||
	    far->held_tail - far->held_head == HELD)
		return false;
	if (w->length > 0 &&
	    (w->rkey != far->rkey || at > far->bytes || w->length > far->bytes - at)) {
		standin_done(qp, w, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR);
		return true;
	}
	if (w->length > 0)
		standin_copy_bytes((void *)(uintptr_t)w->remote, (const void *)(uintptr_t)w->local,
				   w->length);
	if (w->with_imm) {
		far->message[far->tail % MESSAGES] =
			(struct standin_message){w->remote, w->length, w->imm};
		__atomic_store_n(&far->tail, far->tail + 1, __ATOMIC_RELEASE);
	}
	if (far->holds)
		far->held[far->held_tail++ % HELD] = *w;
	else
		standin_done(qp, w, 0);
	return true;
}

static unsigned int loopback_poll(struct standin_qp *qp)
{
	struct standin_far *far = qp->net;
	unsigned int n = 0;

	for (; !far->holds && far->held_head != far->held_tail; n++)
		standin_done(qp, &far->held[far->held_head++ % HELD], 0);
	return n;
}

const struct standin_net standin_net = {
	.open = loopback_open,
	.close = loopback_close,
	.connect = loopback_connect,
	.disconnect = loopback_disconnect,
	.send = loopback_send,
	.poll = loopback_poll,
};

/* --- the far end --------------------------------------------------------------------------------
 */

struct standin_far *standin_far_open(size_t bytes)
{
	struct standin_far *far = calloc(1, sizeof(*far));
	unsigned int i = 0;

	while (i < FARS && fars[i] != NULL)
		i++;
	if (far == NULL || i == FARS || (far->memory = calloc(1, bytes)) == NULL) {
		free(far);
		return NULL;
	}
	far->bytes = bytes;
	far->qpn = 0xf0000 + i;
	far->rkey = 0xfa00 + i;
	fars[i] = far;
	return far;
}

void standin_far_close(struct standin_far *far)
{
	standin_lock();
	for (unsigned int i = 0; i < FARS; i++)
		if (fars[i] == far)
			fars[i] = NULL;
	for (unsigned int i = 0; i < STANDIN_QPS; i++)
		if (standin.qp[i] != NULL && standin.qp[i]->net == far) {
			standin_fail(standin.qp[i]);
			standin.qp[i]->net = NULL;
		}
	standin_unlock();
	free(far->memory);
	free(far);
}

uint32_t standin_far_qpn(const struct standin_far *far)
{
	return far->qpn;
}

uint32_t standin_far_rkey(const struct standin_far *far)
{
	return far->rkey;
}

uint8_t *standin_far_memory(const struct standin_far *far)
{
	return far->memory;
}

void standin_far_listen(struct standin_far *far, bool listens)
{
	standin_lock();
	far->deaf = !listens;
	standin_unlock();
}

void standin_far_hold(struct standin_far *far, bool holds)
{
	standin_lock();
	far->holds = holds;
	standin_unlock();
}

bool standin_far_next(struct standin_far *far, struct standin_message *message)
{
	if (far->head == __atomic_load_n(&far->tail, __ATOMIC_ACQUIRE))
		return false;
	*message = far->message[far->head % MESSAGES];
	__atomic_store_n(&far->head, far->head + 1, __ATOMIC_RELEASE);
	return true;
}

uint8_t standin_far_write(uint32_t qpn, uint32_t rkey, uint64_t va, const void *bytes,
			  size_t length)
{
	const struct standin_mr *mr;
	const struct standin_qp *qp;
	uint8_t syndrome = 0;

	standin_lock();
	qp = standin_qp_find(qpn);
	mr = standin_mr_find(rkey);
	if (qp == NULL || qp->net == NULL || qp->base.state != IBV_QPS_RTS)
		syndrome = MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR;
	else if (mr == NULL || (mr->access & IBV_ACCESS_REMOTE_WRITE) == 0 || va < mr->iova ||
		 va - mr->iova > mr->base.length || length > mr->base.length - (va - mr->iova))
		syndrome = MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR;
	if (syndrome == 0)
		standin_place((uint8_t *)(uintptr_t)va, bytes, length);
	standin_unlock();
	return syndrome;
}
