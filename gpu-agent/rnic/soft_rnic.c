/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_malloc.h>

#include "rnic/soft_rnic_private.h"
#include "runtime/data_room.h"

/* mbufs for rings, window and transmit queue. */
#define PACKETS(queues) (SOFT_HOLD_MAX + (queues) * (2 * DESCRIPTORS + TXQ_SIZE) + 1024)
#define SMALL       4095
#define SMALL_ROOM  (RTE_PKTMBUF_HEADROOM + 128)
#define POOL_CACHE  256
#define DESCRIPTORS 1024
#define CHECK_US    1000
#define ATTEND_US       5000
#define QPN_FIRST   0x11 /* 0 and 1 are reserved */
/* UDP source ports: ROCE_SOURCE_MIN and 14 bits, which an odd factor spreads. */
#define SOURCE_SPREAD 0x9e37u
#define SOURCE_MASK   0x3fffu

/* --- the thread ------------------------------------------------------------------------------ */

/* Make packets of all queue pairs' WQEs; returns their number. */
static unsigned int soft_rnic_send(struct soft_rnic *rnic)
{
	unsigned int packets = 0, behind = 0, n;

	for (unsigned int i = 0; i < rnic->n_qps; i++) {
		struct soft_qp *qp = soft_rnic_qp(rnic, i);

		n = qp->connected ? soft_send_poll(qp) : 0;
		behind = n > 0 ? i + 1 : behind;
		packets += n;
	}
	if (rnic->n_qps > 0)
		rnic->first = (rnic->first + behind) % rnic->n_qps;
	return packets;
}

/* Packets that wait to be sent are for an end that has gone. */
static void drop_unsent(struct soft_rnic *rnic)
{
	for (uint16_t q = 0; q < rnic->port.queues; q++) {
		rte_pktmbuf_free_bulk(rnic->tx[q].packet, rnic->tx[q].n);
		rnic->tx[q].n = 0;
	}
}

/* Now and then: let the driver of a memif handle what came from its other end. */
static void soft_rnic_attend(struct soft_rnic *rnic, uint64_t now)
{
	uint64_t us = rte_get_tsc_hz() / 1000000;
	bool was_up = !rnic->port.waits && port_up(&rnic->port);

	if (now < rnic->attend_at)
		return;
	rnic->attend_at = now + ATTEND_US * us;
	if (port_wants_attention(&rnic->port, now / us / 1000))
		while (!port_attend(&rnic->port, now / us / 1000) &&
		       !__atomic_load_n(&rnic->stop, __ATOMIC_ACQUIRE))
			;
	if (!was_up && !rnic->port.waits && port_up(&rnic->port))
		drop_unsent(rnic);
}

static unsigned int soft_rnic_poll(struct soft_rnic *rnic, uint64_t *next_check)
{
	unsigned int work = rnic->port.waits ? 0 : soft_receive_poll(rnic);
	uint64_t now = rte_rdtsc();

	work += soft_rnic_send(rnic);
	requester_poll_waiting(&rnic->paced, now);
	if (now >= *next_check) {
		mailbox_run(&rnic->mailbox);
		if (rnic->port.attended)
			soft_rnic_attend(rnic, now);
		soft_resolve_poll(rnic, now);
		for (unsigned int i = 0; i < rnic->n_qps; i++)
			if (soft_rnic_qp(rnic, i)->connected)
				soft_send_check(soft_rnic_qp(rnic, i), now);
		*next_check = now + rte_get_tsc_hz() / 1000000 * CHECK_US;
	}
	if (rnic->port.waits)
		drop_unsent(rnic);
	for (uint16_t q = 0; q < rnic->port.queues; q++)
		if (rnic->tx[q].n > 0)
			work += txq_flush(&rnic->tx[q]);
	return work;
}

/* Called after sleeper_prepare(). True when a doorbell has rung, a message has come or a packet is
 * unsent. */
static bool soft_rnic_has_work(const struct soft_rnic *rnic)
{
	if (!mailbox_empty(&rnic->mailbox) || __atomic_load_n(&rnic->stop, __ATOMIC_ACQUIRE))
		return true;
	for (uint16_t q = 0; q < rnic->port.queues; q++)
		if (rnic->tx[q].n > 0)
			return true;
	for (unsigned int i = 0; i < rnic->n_qps; i++)
		if (send_queue_rings(&rnic->qp[i]->sq))
			return true;
	return false;
}

/* ns until something is due that neither a packet nor a doorbell announces. */
static uint64_t soft_rnic_sleep_ns(const struct soft_rnic *rnic)
{
	uint64_t now = rte_rdtsc(), ms = rte_get_tsc_hz() / 1000;
	uint64_t until = now + 100 * ms;

	for (unsigned int i = 0; i < rnic->n_qps; i++) {
		const struct soft_qp *qp = rnic->qp[i];

		if (!qp->connected)
			continue;
		if (requester_unacked(&qp->requester) > 0 || !qp->resolved || qp->claim.open ||
		    (qp->sq.next != qp->sq.producer && !qp->dead))
			until = RTE_MIN(until, now + 5 * ms);
		until = RTE_MIN(until, requester_deadline(&qp->requester));
	}
	return until <= now ? 1 : (until - now) * 1000000 / ms;
}

static void soft_rnic_back_off(struct soft_rnic *rnic, unsigned int idle, uint64_t *next_check)
{
	switch (rnic->params.idle_sleep ? sleeper_step(&rnic->sleeper, idle) : SLEEPER_SPIN) {
	case SLEEPER_SPIN:
		rte_pause();
		break;
	case SLEEPER_YIELD:
		sleeper_yield(&rnic->sleeper);
		break;
	case SLEEPER_SLEEP:
		sleeper_prepare(&rnic->sleeper);
		if (soft_rnic_has_work(rnic)) {
			sleeper_cancel(&rnic->sleeper);
		} else {
			sleeper_wait(&rnic->sleeper, soft_rnic_sleep_ns(rnic));
		}
		*next_check = 0;
		break;
	}
}

static int soft_rnic_thread(void *argument)
{
	struct soft_rnic *rnic = argument;
	uint64_t next_check = 0;
	unsigned int idle = 0;

	mailbox_open(&rnic->mailbox);
	while (!__atomic_load_n(&rnic->stop, __ATOMIC_ACQUIRE)) {
		uint64_t begin = rte_rdtsc();

		if (soft_rnic_poll(rnic, &next_check) > 0) {
			rnic->stats.busy += rte_rdtsc() - begin;
			idle = 0;
		} else {
			soft_rnic_back_off(rnic, idle++, &next_check);
		}
	}
	mailbox_close(&rnic->mailbox);
	return 0;
}

/* --- port, start and close ---------------------------------------------------------------------
 */

static int soft_rnic_open_port(struct soft_rnic *rnic, char *error, size_t size)
{
	/* The queues share a pool: one thread reads them all. */
	struct rte_mempool *pools[SOFT_RNIC_QUEUES_MAX];
	struct port_params p = {
		.device = rnic->params.device,
		.queues = rnic->params.queues,
		.rx_descriptors = DESCRIPTORS,
		.tx_descriptors = DESCRIPTORS,
		.mtu = rnic->params.mtu,
		.pool = pools,
		.attends = true,
		.may_wait = true,
	};
	int ret = 0;

	for (uint16_t q = 0; q < rnic->params.queues; q++)
		pools[q] = rnic->packets;
	if (!rnic->params.claimed)
		ret = port_claim(&rnic->port, rnic->params.device, error, size);
	if (ret == 0)
		ret = kernel_port_open(&rnic->port, &p, &rnic->params.address.addr, 1, false,
				       rnic->without_xdp, error, size);
	if (ret < 0)
		return ret;
	for (uint16_t q = 0; q < rnic->port.queues; q++) {
		struct port_queue to = port_queue(&rnic->port, q);

		rnic->tx[q].port = to.id;
		rnic->tx[q].queue = to.queue;
	}
	rnic->sleeper.blind = rnic->port.n_fds == 0;
	soft_filter_attach(&rnic->port, &rnic->params.address);
	for (unsigned int i = 0; ret == 0 && i < rnic->port.n_fds; i++)
		ret = sleeper_add(&rnic->sleeper, rnic->port.fds[i]);
	return ret;
}

static int soft_rnic_start(struct soft_rnic *rnic, char *error, size_t size)
{
	int ret = sleeper_init(&rnic->sleeper);

	if (ret < 0)
		return ret;
	rnic->packets = port_pool_create("rnic_packets", PACKETS(rnic->params.queues), POOL_CACHE,
					 port_data_room(rnic->params.mtu));
	rnic->small = rte_pktmbuf_pool_create("rnic_small", SMALL, POOL_CACHE, 0, SMALL_ROOM,
					      SOCKET_ID_ANY);
	if (rnic->packets == NULL || rnic->small == NULL ||
	    mailbox_init(&rnic->mailbox, &rnic->sleeper) < 0) {
		snprintf(error, size, "no memory for packets: %s; raise --memory-mb",
			 rte_strerror(rte_errno));
		return -ENOMEM;
	}
	ret = soft_rnic_open_port(rnic, error, size);
	if (ret < 0)
		return ret;
	rnic->lcore = rte_get_next_lcore(-1, 1, 0);
	if (rnic->lcore >= RTE_MAX_LCORE ||
	    rte_eal_remote_launch(soft_rnic_thread, rnic, rnic->lcore) != 0) {
		snprintf(error, size, "no lcore for the software RNIC");
		return -EBUSY;
	}
	mailbox_wait_open(&rnic->mailbox);
	return 0;
}

static void soft_rnic_close(struct rnic *base)
{
	struct soft_rnic *rnic = (struct soft_rnic *)base;

	__atomic_store_n(&rnic->stop, 1, __ATOMIC_RELEASE);
	sleeper_wake(&rnic->sleeper);
	if (rnic->lcore != 0)
		rte_eal_wait_lcore(rnic->lcore);
	if (rnic->port.queues > 0)
		port_close(&rnic->port);
	for (unsigned int q = 0; q < SOFT_RNIC_QUEUES_MAX; q++)
		rte_pktmbuf_free_bulk(rnic->tx[q].packet, rnic->tx[q].n);
	mailbox_fini(&rnic->mailbox);
	sleeper_fini(&rnic->sleeper);
	rte_mempool_free(rnic->packets);
	rte_mempool_free(rnic->small);
	rte_free(rnic);
}

static void soft_rnic_kick(struct rnic *base)
{
	sleeper_wake(&((struct soft_rnic *)base)->sleeper);
}

const char *soft_rnic_driver(const struct rnic *base, const char **without_xdp)
{
	const struct soft_rnic *rnic = (const struct soft_rnic *)base;

	*without_xdp = rnic->without_xdp;
	return rnic->port.driver;
}

void soft_rnic_stats_read(const struct rnic *base, struct soft_rnic_stats *out)
{
	const struct soft_rnic *rnic = (const struct soft_rnic *)base;

	*out = rnic->stats;
	out->packets_out = 0;
	for (unsigned int q = 0; q < SOFT_RNIC_QUEUES_MAX; q++)
		out->packets_out += rnic->tx[q].packets;
	for (unsigned int i = 0; i < rnic->n_qps; i++) {
		out->resent += rnic->qp[i]->requester.stats.resent;
		out->naks_received += rnic->qp[i]->requester.stats.naks;
		out->naks_sent += rnic->qp[i]->responder.stats.naks;
	}
}

/* --- queue pairs ----------------------------------------------------------------------------- */

static void soft_qp_add(void *owner, void *argument)
{
	struct soft_rnic *rnic = owner;
	struct soft_qp *qp = argument;

	rnic->by_number[qp->base.number % SOFT_RNIC_QPS_MAX] = qp;
	rnic->qp[rnic->n_qps++] = qp;
}

/* Choose a random queue pair number whose place is free. Random, because a congestion notification
 * needs no more than this number. */
static bool choose_random_qpn(const struct soft_rnic *rnic, uint32_t *number)
{
	do {
		if (getrandom(number, sizeof(*number), 0) != sizeof(*number))
			return false;
		*number &= ROCE_PSN_MASK;
	} while (*number < QPN_FIRST || rnic->by_number[*number % SOFT_RNIC_QPS_MAX] != NULL);
	return true;
}

static void soft_qp_free(struct soft_qp *qp)
{
	send_queue_destroy(&qp->sq);
	free(qp->sent);
	rte_free(qp);
}

static struct rnic_qp *soft_qp_create(struct rnic *base, const struct rnic_qp_params *params)
{
	struct soft_rnic *rnic = (struct soft_rnic *)base;
	struct soft_qp *qp;
	uint32_t keys[2], number;

	if (rnic->n_qps == SOFT_RNIC_QPS_MAX) {
		errno = ENOSPC;
		return NULL;
	}
	/* Random keys: an attacker who guesses one still needs QPN, PSN and source address. */
	if (getrandom(keys, sizeof(keys), 0) != sizeof(keys) || !choose_random_qpn(rnic, &number)) {
		errno = EIO;
		return NULL;
	}
	qp = rte_zmalloc("soft_qp", sizeof(*qp), RTE_CACHE_LINE_SIZE);
	if (qp == NULL) {
		errno = ENOMEM;
		return NULL;
	}
	qp->params = *params;
	qp->sent = calloc(params->wqe_count, sizeof(*qp->sent));
	if (qp->sent == NULL || send_queue_create(&qp->sq, params->wqe_count) < 0) {
		soft_qp_free(qp);
		errno = ENOMEM;
		return NULL;
	}
	qp->base =
		(struct rnic_qp){.rnic = base, .number = number, .rkey = keys[0], .lkey = keys[1]};
	qp->sq.qpn = number;
	qp->tx = &rnic->tx[params->spread % rnic->port.queues];
	mailbox_send(&rnic->mailbox, soft_qp_add, rnic, qp);
	qp->base.queue = send_queue_view(&qp->sq);
	return &qp->base;
}

static bool on_link(const struct soft_rnic_params *p, const struct rnic_address *peer)
{
	unsigned int bits = p->address.family == 4 ? 96u + p->prefix : p->prefix;

	for (unsigned int i = 0; i < bits; i++)
		if ((p->address.addr.s6_addr[i / 8] ^ peer->addr.s6_addr[i / 8]) & (0x80 >> i % 8))
			return false;
	return true;
}

struct connection {
	struct soft_qp *qp;
	const struct rnic_peer *peer;
};

static void soft_qp_set_peer(void *owner, void *argument)
{
	struct soft_rnic *rnic = owner;
	const struct connection *c = argument;
	struct soft_qp *qp = c->qp;
	const struct rnic_peer *peer = c->peer;
	struct roce_path_spec path = {
		.family = peer->address.family,
		.source = rnic->params.address.addr,
		.destination = peer->address.addr,
		/* The port that the peer asked for; otherwise one per queue pair, so that ECMP
		   spreads them. */
		.udp_source =
			peer->udp_source != 0
				? peer->udp_source
				: ROCE_SOURCE_MIN | (qp->base.number * SOURCE_SPREAD & SOURCE_MASK),
		.qpn = peer->qpn,
		.tos = rnic->params.dcqcn ? ROCE_TOS_ECT : ROCE_TOS_DEFAULT,
		.migrated = true,
		.mtu = peer->path_mtu,
	};
	struct requester_params rq = {
		.path = &qp->path,
		.tx = qp->tx,
		.pool = rnic->small,
		.held = &rnic->held,
		.waiting = &rnic->paced,
		.drained = &rnic->drained.at,
		.line_rate = rnic->params.dcqcn ? port_line_rate(&rnic->port) : 0,
		.multi_segment = rnic->port.segments_max >= REQUESTER_SEGMENTS,
		.psn = qp->params.psn,
		.ack_timeout = peer->ack_timeout,
		.retry_limit = peer->retry_limit,
		.rnr_retry = ROCE_RNR_FOREVER, /* the load balancer is always ready */
	};

	struct rdma_region writable = {
		.va = qp->params.writable.va,
		.length = qp->params.writable.length,
		.rkey = qp->base.rkey,
	};

	memcpy(path.source_mac, rnic->port.mac, 6);
	roce_path_init(&qp->path, &path);
	requester_init(&qp->requester, &rq);
	responder_init(&qp->responder, &writable, peer->path_mtu, peer->psn);
	if (rnic->params.dcqcn)
		responder_notify_every(&qp->responder,
				       rte_get_tsc_hz() / 1000000 * DCQCN_CNP_NS / 1000);
	qp->direct = on_link(&rnic->params, &peer->address);
	qp->next_hop = qp->direct ? peer->address : rnic->params.gateway;
	qp->connected = true;
}

static int soft_qp_connect(struct rnic_qp *base, const struct rnic_peer *peer)
{
	struct soft_qp *qp = (struct soft_qp *)base;
	struct soft_rnic *rnic = soft_rnic_of(qp);
	struct connection c = {.qp = qp, .peer = peer};

	if (peer->address.family != rnic->params.address.family)
		return -EAFNOSUPPORT;
	if (!on_link(&rnic->params, &peer->address) && rnic->params.gateway.family == 0)
		return -EHOSTUNREACH;
	mailbox_send(&rnic->mailbox, soft_qp_set_peer, rnic, &c);
	return 0;
}

static void soft_qp_remove(void *owner, void *argument)
{
	struct soft_rnic *rnic = owner;
	struct soft_qp *qp = argument;

	rnic->by_number[qp->base.number % SOFT_RNIC_QPS_MAX] = NULL;
	for (unsigned int i = 0; i < rnic->n_qps; i++)
		if (rnic->qp[i] == qp)
			rnic->qp[i] = rnic->qp[--rnic->n_qps];
	rnic->first = 0;
	if (qp->connected)
		requester_fini(&qp->requester);
}

static void soft_qp_destroy(struct rnic_qp *base)
{
	struct soft_qp *qp = (struct soft_qp *)base;

	if (qp == NULL)
		return;
	mailbox_send(&soft_rnic_of(qp)->mailbox, soft_qp_remove, soft_rnic_of(qp), qp);
	soft_qp_free(qp);
}

/* --- create the RNIC --------------------------------------------------------------------------
 */

static const struct rnic_ops soft_rnic_ops = {
	.create = soft_qp_create,
	.connect = soft_qp_connect,
	.destroy = soft_qp_destroy,
	.kick = soft_rnic_kick,
	.close = soft_rnic_close,
};

struct rnic *soft_rnic_create(const struct soft_rnic_params *params, char *error, size_t size)
{
	struct soft_rnic *rnic = rte_zmalloc("soft_rnic", sizeof(*rnic), RTE_CACHE_LINE_SIZE);

	snprintf(error, size, "no memory; raise --memory-mb");
	if (rnic == NULL)
		return NULL;
	rnic->base = (struct rnic){
		.ops = &soft_rnic_ops,
		.path_mtu = roce_path_mtu(params->mtu),
		.wakes = true,
	};
	rnic->params = *params;
	if (params->queues == 0)
		rnic->params.queues = 1;
	if (soft_rnic_start(rnic, error, size) < 0) {
		soft_rnic_close(&rnic->base);
		return NULL;
	}
	return &rnic->base;
}
