/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_malloc.h>

#include "ports/verbs_port.h"
#include "rdma/verbs_send.h"

/* Queue pairs that a completion queue is sized for; more share it, the device permitting. */
#define LINKS_USUAL 64
/* Receives beyond the slots: heartbeats, and chunks of replies. */
#define RECEIVES_MORE 64

/* What one lcore has of it. */
struct lane {
	struct verbs_lane lane;
	/* Taken before completions are: a reply that found no packet would be lost. */
	unsigned int n_spare;
	struct rte_mbuf *spare[LB_BURST];
} __rte_cache_aligned;

struct verbs_port {
	struct verbs_device device;
	struct verbs_memory *memory;
	uint32_t serial; /* of links: tells a completion of a former one */
	struct lane lane[];
};

/* --- the device
 * ----------------------------------------------------------------------------------- */

static int open_device(struct lb *lb, unsigned int index, struct verbs_port *port, char *error,
		       size_t size)
{
	const struct lb_port_config *config = &lb->config.port[index];
	struct verbs_params params = {
		.device = config->device,
		.address = config->address.addr,
		.traffic_class = ROCE_TOS_DEFAULT,
	};
	int ret = verbs_open(&port->device, &params, error, size);

	if (ret < 0)
		return ret;
	if (port->device.wr_max < REQUESTER_WINDOW) {
		snprintf(error, size, "RDMA device '%s' takes %u work requests, %u are needed",
			 config->device, port->device.wr_max, REQUESTER_WINDOW);
		return -ENOSPC;
	}
	port->memory = verbs_memory_create(&port->device, error, size);
	if (port->memory == NULL)
		return -ENOMEM;
	for (unsigned int i = 0; ret == 0 && i < lb->n_lcores; i++) {
		struct lcore *lc = lb->lcore[i];

		lc->queue[index] = LCORE_NO_QUEUE;
		ret = verbs_lane_init(&port->lane[i].lane, &port->device, port->memory, LINKS_USUAL,
				      error, size);
		if (ret == 0)
			ret = sleeper_add(&lc->sleeper, port->lane[i].lane.channel->fd);
	}
	return ret;
}

int verbs_port_open(struct lb *lb, unsigned int index)
{
	const struct lb_port_config *config = &lb->config.port[index];
	struct verbs_port *port =
		rte_zmalloc("verbs_port", sizeof(*port) + lb->n_lcores * sizeof(port->lane[0]),
			    RTE_CACHE_LINE_SIZE);
	char text[512] = "no memory; raise memory.mb";
	int ret = -ENOMEM;

	lb->verbs[index] = port;
	if (port != NULL)
		ret = open_device(lb, index, port, text, sizeof(text));
	if (ret < 0) {
		LB_LOG(ERR, "port=%s %s", config->name, text);
		return ret;
	}
	LB_LOG(INFO, "port=%s engine=verbs %s", config->name,
	       verbs_describe(&port->device, text, sizeof(text)));
	return 0;
}

void verbs_port_close(struct lb *lb, unsigned int index)
{
	struct verbs_port *port = lb->verbs[index];

	if (port == NULL)
		return;
	for (unsigned int i = 0; i < lb->n_lcores; i++) {
		rte_pktmbuf_free_bulk(port->lane[i].spare, port->lane[i].n_spare);
		verbs_lane_fini(&port->lane[i].lane);
	}
	verbs_memory_destroy(port->memory);
	verbs_close(&port->device);
	rte_free(port);
	lb->verbs[index] = NULL;
}

uint32_t verbs_port_path_mtu(const struct lb *lb, unsigned int port)
{
	return lb->verbs[port]->device.path_mtu;
}

/* What ends links shows there; this is why, or what nobody else would say. */
static void tell(const struct lb_port_config *config, enum ibv_event_type event)
{
	switch (event) {
	case IBV_EVENT_PORT_ERR:
		LB_LOG(ERR,
		       "port=%s rdma_device=%s is down; its workers are lost until its network "
		       "interface is up",
		       config->name, config->device);
		break;
	case IBV_EVENT_PORT_ACTIVE:
		LB_LOG(NOTICE, "port=%s rdma_device=%s is up", config->name, config->device);
		break;
	case IBV_EVENT_CQ_ERR:
	case IBV_EVENT_DEVICE_FATAL:
		LB_LOG(ERR,
		       "port=%s rdma_device=%s failed (%s); start doorbell-lb again when it works",
		       config->name, config->device, ibv_event_type_str(event));
		break;
	default:
		break;
	}
}

void verbs_ports_tick(struct lb *lb)
{
	struct ibv_async_event event;

	for (unsigned int i = 0; i < lb->config.n_ports; i++) {
		struct verbs_port *port = lb->verbs[i];

		while (port != NULL && ibv_get_async_event(port->device.context, &event) == 0) {
			tell(&lb->config.port[i], event.event_type);
			ibv_ack_async_event(&event);
		}
	}
}

/* --- links
 * ----------------------------------------------------------------------------------------- */

/* As many serial numbers as there is room for: one comes again after four million links. */
#define TAG(serial, worker) ((uint32_t)(serial) << 10 | (worker))
#define TAG_WORKER(tag)     ((tag)&0x3ff)
_Static_assert(WORKERS_MAX <= 1024, "tags");

int verbs_link_create(struct lb *lb, const struct verbs_link_params *p, struct verbs_link *out)
{
	struct verbs_port *port = lb->verbs[p->port];
	struct verbs_qp_params qp = {
		.tag = TAG(++port->serial, p->worker),
		.length = p->slots * p->reply_stride,
		.receive = RTE_MIN(p->slots + RECEIVES_MORE, port->device.wr_max),
	};

	out->qp = verbs_qp_create(&port->lane[p->lcore].lane, &qp);
	if (out->qp == NULL)
		return -errno;
	out->qpn = out->qp->qp->qp_num;
	out->reply_rkey = out->qp->mr->rkey;
	out->reply_address = (uintptr_t)out->qp->region;
	return 0;
}

int verbs_link_connect(struct lb *lb, struct link *link, const struct verbs_link *made,
		       const struct lb_registration *peer, const struct lb_link_spec *remote,
		       uint32_t psn, uint32_t path_mtu)
{
	struct verbs_peer to = {
		.address = peer->address.addr,
		.qpn = remote->qpn,
		.psn = remote->psn,
		.path_mtu = path_mtu,
		.ack_timeout = lb->config.ack_timeout,
		.retry_limit = lb->config.retry_count,
		.rnr_retry = lb->config.rnr_retry,
	};
	int ret;

	link->qp = made->qp;
	verbs_requester_attach(&link->requester, link->qp);
	ret = verbs_connect(&lb->verbs[link->port]->device, link->qp->qp, psn, &to);
	if (ret == 0)
		verbs_qp_refill(link->qp);
	return ret;
}

void verbs_link_stop(struct link *link)
{
	struct verbs_qp *qp = link->qp;

	if (qp == NULL)
		return;
	verbs_qp_destroy(qp);
	__atomic_store_n(&link->qp, NULL, __ATOMIC_RELEASE);
}

void verbs_link_discard(struct verbs_link *made)
{
	verbs_qp_destroy(made->qp);
}

/* --- completions
 * ------------------------------------------------------------------------------------ */

/* NULL when it is of a link that has gone: some providers keep those. */
static struct link *link_of(const struct lcore *lc, const struct ibv_wc *wc)
{
	uint32_t tag = verbs_wc_tag(wc);
	struct link *link = TAG_WORKER(tag) < WORKERS_MAX ? lc->link[TAG_WORKER(tag)] : NULL;

	return link != NULL && link->qp != NULL && link->qp->tag == tag ? link : NULL;
}

/* The slot's place is the worker's to write again as soon as the slot is free. */
static struct rte_mbuf *copy_message(struct lcore *lc, struct lane *lane, const struct link *link,
				     const struct ibv_wc *wc, uint32_t imm)
{
	struct rte_mbuf *m = lane->spare[lane->n_spare - 1];
	uint64_t offset = (uint64_t)(ring_imm_slot(imm) & (link->slots - 1)) << link->reply_shift;

	if (verbs_qp_read(link->qp, offset, wc->byte_len, 1u << link->reply_shift, m) < 0)
		return NULL;
	lane->n_spare--;
	return m;
}

static void receive(struct lcore *lc, struct lane *lane, struct link *link, const struct ibv_wc *wc)
{
	uint32_t imm = rte_be_to_cpu_32(wc->imm_data);
	struct rte_mbuf *m;

	verbs_qp_received(link->qp, wc);
	if (unlikely(wc->status != IBV_WC_SUCCESS)) {
		/* A receive fails for what the peer did, or is flushed for whatever reason. */
		link->responder.error |= wc->status != IBV_WC_WR_FLUSH_ERR;
		return verbs_requester_complete(&link->requester, wc, lc->now);
	}
	link->responder.stats.packets++;
	lc->stats.packets_in++;
	lc->stats.bytes_in += wc->byte_len;
	if (wc->opcode != IBV_WC_RECV_RDMA_WITH_IMM) {
		lc->stats.drop[LB_DROP_ROCE_OPCODE]++;
		return;
	}
	m = copy_message(lc, lane, link, wc, imm);
	if (unlikely(m == NULL)) {
		lc->stats.drop[LB_DROP_REPLY_TOO_LARGE]++;
		return;
	}
	fabric_message(lc, link, m, imm, &lc->fabric);
}

static unsigned int refill_spares(struct lcore *lc, struct lane *lane)
{
	unsigned int missing = LB_BURST - lane->n_spare;

	if (missing > 0 &&
	    rte_pktmbuf_alloc_bulk(lc->packets, lane->spare + lane->n_spare, missing) == 0)
		lane->n_spare = LB_BURST;
	return lane->n_spare;
}

unsigned int verbs_port_poll(struct lcore *lc, unsigned int index)
{
	struct lane *lane = &lc->lb->verbs[index]->lane[lc->index];
	struct ibv_wc wc[LB_BURST];
	struct link *link;
	int n;

	lc->burst.n = 0;
	lc->fabric.n = 0;
	lc->fabric.n_replies = 0;
	n = ibv_poll_cq(lane->lane.cq, refill_spares(lc, lane), wc);
	for (int i = 0; i < n; i++) {
		link = link_of(lc, &wc[i]);
		if (link == NULL)
			continue;
		if (verbs_wc_is_receive(&wc[i]))
			receive(lc, lane, link, &wc[i]);
		else
			verbs_requester_complete(&link->requester, &wc[i], lc->now);
	}
	for (int i = 0; i < n; i++) {
		link = verbs_wc_is_receive(&wc[i]) ? link_of(lc, &wc[i]) : NULL;
		if (link != NULL)
			verbs_qp_refill(link->qp);
	}
	return n > 0 ? n : 0;
}

bool verbs_port_arm(const struct lcore *lc, unsigned int index)
{
	return verbs_lane_arm(&lc->lb->verbs[index]->lane[lc->index].lane);
}

void verbs_ports_awake(struct lcore *lc)
{
	for (unsigned int i = 0; i < lc->lb->config.n_ports; i++)
		if (lc->lb->verbs[i] != NULL)
			verbs_lane_awake(&lc->lb->verbs[i]->lane[lc->index].lane);
}
