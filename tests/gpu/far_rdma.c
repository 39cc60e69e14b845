/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "far.h"
#include "rdma/roce_wire.h"
#include "rdma/verbs.h"
#include "runtime/clock.h"

#define RECEIVES    512 /* messages that may arrive before the rig takes them */
#define STAGING     (1u << 20)
#define PATIENCE_NS 10000000000ull
/* 4.096 us x 2^14, five times: a third of a second until a lost peer is given up. (With 7 rdma_rxe
 * never gives up.) */
#define ACK_TIMEOUT 14
#define RETRIES     5

struct far {
	struct ibv_cq *sent, *received;
	struct ibv_qp *qp;
	struct ibv_mr *region, *staged;
	uint8_t *memory, *staging;
};

static struct verbs_device device;
static unsigned int users; /* far ends on <device> */

const char *far_device(struct rnic_address *address, char *error, size_t size)
{
	const char *name = getenv("RIG_DEVICE"), *text = getenv("RIG_ADDRESS");
	char mapped[64];

	if (name == NULL || text == NULL) {
		snprintf(error, size,
			 "RIG_DEVICE and RIG_ADDRESS must name an RDMA device and one "
			 "of its addresses");
		return NULL;
	}
	address->family = strchr(text, ':') == NULL ? 4 : 6;
	snprintf(mapped, sizeof(mapped), "%s%s", address->family == 4 ? "::ffff:" : "", text);
	if (inet_pton(AF_INET6, mapped, &address->addr) == 1)
		return name;
	snprintf(error, size, "RIG_ADDRESS: '%s' is no address", text);
	return NULL;
}

void far_serve_gpu(bool on_gpu)
{
}

static bool open_device(void)
{
	struct rnic_address address;
	struct verbs_params p = {0};
	char error[512];

	if (users > 0)
		return true;
	p.device = far_device(&address, error, sizeof(error));
	p.address = address.addr;
	if (p.device != NULL && verbs_open(&device, &p, error, sizeof(error)) == 0)
		return true;
	fprintf(stderr, "%s\n", error);
	return false;
}

static int post_receive(struct far *f)
{
	struct ibv_recv_wr wr = {0}, *bad;

	return ibv_post_recv(f->qp, &wr, &bad);
}

static bool make_far(struct far *f, size_t bytes)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4,
			.max_recv_wr = RECEIVES,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};

	f->memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
	f->staging = aligned_alloc(4096, STAGING);
	f->sent = ibv_create_cq(device.context, 4, NULL, NULL, 0);
	f->received = ibv_create_cq(device.context, RECEIVES, NULL, NULL, 0);
	if (f->memory == NULL || f->staging == NULL || f->sent == NULL || f->received == NULL)
		return false;
	memset(f->memory, 0, bytes);
	f->region = ibv_reg_mr(device.pd, f->memory, bytes,
			       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	f->staged = ibv_reg_mr(device.pd, f->staging, STAGING, 0);
	attr.send_cq = f->sent;
	attr.recv_cq = f->received;
	f->qp = ibv_create_qp(device.pd, &attr);
	return f->region != NULL && f->staged != NULL && f->qp != NULL;
}

struct far *far_open(size_t bytes)
{
	struct far *f = calloc(1, sizeof(*f));

	if (f == NULL || !open_device()) {
		free(f);
		return NULL;
	}
	users++;
	if (make_far(f, bytes))
		return f;
	fprintf(stderr, "no far end on the RDMA device: %s\n", strerror(errno));
	far_close(f);
	return NULL;
}

void far_close(struct far *f)
{
	if (f == NULL)
		return;
	if (f->qp != NULL)
		ibv_destroy_qp(f->qp);
	if (f->region != NULL)
		ibv_dereg_mr(f->region);
	if (f->staged != NULL)
		ibv_dereg_mr(f->staged);
	if (f->sent != NULL)
		ibv_destroy_cq(f->sent);
	if (f->received != NULL)
		ibv_destroy_cq(f->received);
	free(f->memory);
	free(f->staging);
	free(f);
	if (--users == 0)
		verbs_close(&device);
}

uint32_t far_qpn(const struct far *f)
{
	return f->qp->qp_num;
}

uint32_t far_rkey(const struct far *f)
{
	return f->region->rkey;
}

uint8_t *far_memory(const struct far *f)
{
	return f->memory;
}

int far_connect(struct far *f, uint32_t qpn)
{
	struct verbs_peer peer = {
		.address = device.address,
		.qpn = qpn,
		.path_mtu = device.path_mtu,
		.ack_timeout = ACK_TIMEOUT,
		.retry_limit = RETRIES,
		.rnr_retry = ROCE_RNR_FOREVER,
	};
	int ret = verbs_connect(&device, f->qp, 0, &peer);

	for (int i = 0; ret == 0 && i < RECEIVES; i++)
		ret = -post_receive(f);
	return ret;
}

static bool write_some(struct far *f, uint32_t rkey, uint64_t va, const void *bytes,
		       uint32_t length)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)f->staging, .length = length, .lkey = f->staged->lkey};
	struct ibv_send_wr wr =
				   {
					   .sg_list = &sge,
					   .num_sge = 1,
					   .opcode = IBV_WR_RDMA_WRITE,
					   .send_flags = IBV_SEND_SIGNALED,
					   .wr.rdma = {.remote_addr = va, .rkey = rkey},
				   },
			   *bad;
	uint64_t end = clock_now_ns() + PATIENCE_NS;
	struct ibv_wc wc;
	int n;

	memcpy(f->staging, bytes, length);
	if (ibv_post_send(f->qp, &wr, &bad) != 0)
		return false;
	while ((n = ibv_poll_cq(f->sent, 1, &wc)) == 0 && clock_now_ns() < end)
		sched_yield();
	return n == 1 && wc.status == IBV_WC_SUCCESS;
}

bool far_write(struct far *f, uint32_t rkey, uint64_t va, const void *bytes, size_t length)
{
	const uint8_t *from = bytes;

	for (uint32_t n; length > 0; from += n, va += n, length -= n) {
		n = length < STAGING ? (uint32_t)length : STAGING;
		if (!write_some(f, rkey, va, from, n))
			return false;
	}
	return true;
}

bool far_next(struct far *f, struct far_message *message)
{
	struct ibv_wc wc;

	if (ibv_poll_cq(f->received, 1, &wc) != 1 || wc.status != IBV_WC_SUCCESS)
		return false;
	*message = (struct far_message){.length = wc.byte_len, .imm = be32toh(wc.imm_data)};
	return post_receive(f) == 0;
}

bool far_hold(struct far *f, bool holds)
{
	return false;
}

void far_break(struct far *f)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	ibv_modify_qp(f->qp, &attr, IBV_QP_STATE);
}

bool far_is_content(void)
{
	return true;
}
