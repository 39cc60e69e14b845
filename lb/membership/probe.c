/* SPDX-License-Identifier: BSD-3-Clause */
#include "membership/probe.h"

#include "lcore/lcore.h"

static uint32_t bytes_wanted(const struct lb *lb, const struct worker *w, uint16_t *service)
{
	uint32_t bytes = 0;

	for (unsigned int i = 0; i < lb->config.n_services; i++) {
		const struct lb_service_config *s = &lb->config.service[i];

		if (!lb_service_serves(s) || strcmp(s->model, w->spec.model) != 0 ||
		    s->probe_bytes <= bytes)
			continue;
		bytes = s->probe_bytes;
		*service = i;
	}
	return bytes;
}

struct order {
	struct link *link;
	uint32_t bytes;
	uint16_t service;
};

static void probe_set(struct link *link, enum probe_state state)
{
	__atomic_store_n(&link->probe, state, __ATOMIC_RELEASE);
}

static struct rte_mbuf *probe_packet(struct lcore *lc, uint32_t bytes)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(lc->packets);
	char *at = m == NULL ? NULL : rte_pktmbuf_append(m, bytes);

	if (at == NULL) {
		rte_pktmbuf_free(m);
		return NULL;
	}
	memset(at, 0, bytes);
	return m;
}

static void send_probe(void *lcore, void *argument)
{
	struct lcore *lc = lcore;
	const struct order *order = argument;
	struct link *link = order->link;
	const struct lb_service_config *config = lcore_service_config(lc, order->service);
	struct ring_descriptor request = {
		.length = order->bytes,
		.service = order->service,
		.deadline_us = config->request_timeout_ms * 1000,
		.sent_us = lcore_sent_us(lc),
	};
	uint32_t slot = link_next_slot(link);
	struct rte_mbuf *m = probe_packet(lc, order->bytes);

	if (m == NULL ||
	    !link_reserve(link, requester_packets(&link->requester, order->bytes), 0,
			  REQUESTER_WINDOW) ||
	    link_send(link, m, &request, 0, lc->now, lc->now, lc->packets) < 0) {
		rte_pktmbuf_free(m);
		return probe_set(link, PROBE_BAD);
	}
	workers_load_sent(&lc->load, link->worker, lc->now);
	/* No client waits for it. */
	link_slot_abandon(link, slot);
	link->slot[slot].state = SLOT_PROBE;
	probe_set(link, PROBE_WAITING);
	lcore_mark_dirty(lc, link);
}

bool probe_start(struct lb *lb, struct worker *w)
{
	struct order order = {0};

	order.bytes = bytes_wanted(lb, w, &order.service);
	if (order.bytes == 0)
		return false;
	for (unsigned int i = 0; i < lb->n_lcores; i++) {
		order.link = lb->link[i][w->number];
		if (order.link != NULL)
			lcores_post(lb, i, send_probe, &order, sizeof(order));
	}
	return true;
}

enum probe_state probe_result(const struct lb *lb, const struct worker *w)
{
	enum probe_state result = PROBE_GOOD;

	for (unsigned int i = 0; i < lb->n_lcores; i++) {
		const struct link *link = lb->link[i][w->number];
		enum probe_state state =
			link == NULL ? PROBE_BAD : __atomic_load_n(&link->probe, __ATOMIC_ACQUIRE);

		if (state == PROBE_BAD)
			return PROBE_BAD;
		if (state != PROBE_GOOD)
			result = PROBE_WAITING;
	}
	return result;
}
