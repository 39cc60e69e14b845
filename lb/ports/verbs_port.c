/* SPDX-License-Identifier: BSD-3-Clause */
#include "ports/verbs_port.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_malloc.h>

#include "lcore/lcore.h"
#include "ports/verbs_port_private.h"

/* Queue pairs that a completion queue is sized for; it grows for more where the device can. */
#define LINKS_USUAL 64
/* Receives beyond the slots: heartbeats, and chunks of replies. */
#define RECEIVES_MORE 64

/* --- the device ------------------------------------------------------------------------------- */

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
		ret = verbs_cq_init(&port->lcore[i].completions, &port->device, port->memory,
				    LINKS_USUAL, error, size);
		if (ret == 0)
			ret = sleeper_add(&lc->sleeper, port->lcore[i].completions.channel->fd);
	}
	return ret;
}

int verbs_port_open(struct lb *lb, unsigned int index)
{
	const struct lb_port_config *config = &lb->config.port[index];
	struct verbs_port *port =
		rte_zmalloc("verbs_port", sizeof(*port) + lb->n_lcores * sizeof(port->lcore[0]),
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
		rte_pktmbuf_free_bulk(port->lcore[i].spare, port->lcore[i].n_spare);
		verbs_cq_fini(&port->lcore[i].completions);
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

/* Log a device event. Links report their own failures; this names the cause. */
static void verbs_port_log_event(const struct lb_port_config *config, enum ibv_event_type event)
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
			verbs_port_log_event(&lb->config.port[i], event.event_type);
			ibv_ack_async_event(&event);
		}
	}
}

/* --- links ------------------------------------------------------------------------------------ */

int verbs_link_create(struct lb *lb, const struct verbs_link_params *p, struct verbs_link *out)
{
	struct verbs_port *port = lb->verbs[p->port];
	struct verbs_qp_params qp = {
		.tag = TAG(++port->serial, p->worker),
		.length = p->replies,
		.receive = RTE_MIN(p->slots + RECEIVES_MORE, port->device.wr_max),
	};

	out->qp = verbs_qp_create(&port->lcore[p->lcore].completions, &qp);
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
	link->copied = rte_zmalloc("copied", link->slots * sizeof(*link->copied), 0);
	if (link->copied == NULL)
		return -ENOMEM;
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

/* --- completions ----------------------------------------------------------------------------- */

bool verbs_port_arm(const struct lcore *lc, unsigned int index)
{
	return verbs_cq_arm(&lc->lb->verbs[index]->lcore[lc->index].completions);
}

void verbs_ports_awake(struct lcore *lc)
{
	for (unsigned int i = 0; i < lc->lb->config.n_ports; i++)
		if (lc->lb->verbs[i] != NULL)
			verbs_cq_awake(&lc->lb->verbs[i]->lcore[lc->index].completions);
}
