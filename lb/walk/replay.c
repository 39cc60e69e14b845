/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replay: a request whose worker is lost or suspect goes to another worker. For services that allow
 * it the packet is kept until the reply arrives; headers are written around its payload, never over
 * it. The slot of the first attempt is abandoned, so that at most one reply reaches the client.
 */
#include "walk/replay.h"

#include "edge/edge.h"
#include "lcore/lcore.h"
#include "walk/cancel.h"
#include "walk/choose.h"
#include "walk/waiting.h"

/* Slots visited per link and ms. */
#define BUDGET 256

/*
 * Half of the limit is divided among the services that replay; they share the other half. So no
 * service can take the places that belong to another.
 */
void replay_share(struct lcore *lc)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < lc->services->n; i++)
		n += lc->services->config[i].replay > 0;
	lc->replay_copies_least = n > 0 ? lc->replay_copies_max / 2 / n : 0;
	lc->replay_copies_shared_max = lc->replay_copies_max - lc->replay_copies_least * n;
	lc->replay_copies_shared = 0;
	for (unsigned int i = 0; i < LB_SERVICES_MAX; i++)
		if (lc->service[i].replay_copies > lc->replay_copies_least)
			lc->replay_copies_shared +=
				lc->service[i].replay_copies - lc->replay_copies_least;
}

static bool replay_has_place(const struct lcore *lc, const struct lcore_service *s)
{
	return s->replay_copies < lc->replay_copies_least ||
	       lc->replay_copies_shared < lc->replay_copies_shared_max;
}

void replay_left(struct lcore *lc, uint16_t service)
{
	if (--lc->service[service].replay_copies >= lc->replay_copies_least)
		lc->replay_copies_shared--;
}

bool replay_keep(struct lcore *lc, struct link *link, const struct burst *b, unsigned int i)
{
	struct rte_mbuf *m = b->packet[i];
	struct replay_copy *copy = &link->replay_copy[link_next_slot(link)];
	struct lcore_service *s = &lc->service[b->service[i]];

	if (!replay_has_place(lc, s))
		return false;
	rte_mbuf_refcnt_update(m, 1);
	lc->replay_copies++;
	if (s->replay_copies++ >= lc->replay_copies_least)
		lc->replay_copies_shared++;
	*copy = (struct replay_copy){
		.packet = m,
		.offset = m->data_off,
		.length = m->data_len,
		.replays = b->priority[i].replays,
		.hash = b->hash[i],
	};
	return true;
}

static void replay_free_copy(struct lcore *lc, struct link *link, uint32_t slot)
{
	rte_pktmbuf_free(link->replay_copy[slot].packet);
	link->replay_copy[slot].packet = NULL;
	lc->replay_copies--;
}

void replay_unkeep(struct lcore *lc, struct link *link, uint32_t slot, uint16_t service)
{
	replay_free_copy(lc, link, slot);
	replay_left(lc, service);
}

/*
 * Take the payload in a packet of its own. The service's count still includes it. NULL: no memory.
 */
static struct rte_mbuf *replay_take_payload(struct lcore *lc, struct link *link, uint32_t slot)
{
	const struct replay_copy *copy = &link->replay_copy[slot];
	struct rte_mbuf *m = copy->packet, *fresh;

	/* This is the last reference: neither the window nor a port still reads the packet. */
	if (rte_mbuf_refcnt_read(m) == 1) {
		rte_pktmbuf_free(m->next);
		m->next = NULL;
		m->nb_segs = 1;
		m->data_off = copy->offset;
		m->data_len = m->pkt_len = copy->length;
		link->replay_copy[slot].packet = NULL;
		lc->replay_copies--;
		return m;
	}
	fresh = rte_pktmbuf_alloc(lc->packets);
	if (fresh == NULL)
		return NULL;
	memcpy(rte_pktmbuf_append(fresh, copy->length), (uint8_t *)m->buf_addr + copy->offset,
	       copy->length);
	lc->stats.payload_copies++;
	replay_free_copy(lc, link, slot);
	return fresh;
}

/* May this request be sent again? With its worker gone it may wait until another one joins. */
static bool replay_is_allowed(const struct lcore *lc, const struct link *link, uint32_t number,
			      bool gone)
{
	const struct slot *slot = &link->slot[number];
	const struct replay_copy *copy = &link->replay_copy[number];

	return slot->chunks == 0 && lc->stop < STOP_NOTIFYING &&
	       copy->replays < lcore_service_config(lc, slot->service)->replay &&
	       (gone || choose_has_workers(lc, slot->service));
}

/* A request whose bytes lie in many packets, which its connection keeps. */
static bool replay_stream(struct lcore *lc, const struct flow *flow, const struct slot *slot,
			  uint16_t worker)
{
	if (!flow_state_is_tcp(flow->state) ||
	    !edge_replay(lc, flow, slot->tag, lcore_service_config(lc, slot->service)->replay,
			 worker))
		return false;
	lc->service[slot->service].stats.replays++;
	return true;
}

bool replay_slot(struct lcore *lc, struct link *link, uint32_t number, bool gone)
{
	const struct slot *slot = &link->slot[number];
	struct waiting w = {
		.flow = slot->flow,
		.tag = slot->tag,
		.path = link->client_path[number],
		.arrived = slot->arrived,
		.since = lc->now,
		.deadline = slot->deadline,
		.hash = link->replay_copy[number].hash,
		.level = QUEUE_LEVEL_REPLAY,
		.client_queue = 0,
		.replays = link->replay_copy[number].replays + 1,
		.lost = link->worker + 1,
	};
	struct lcore_service *s = &lc->service[slot->service];
	struct flow *flow = conntrack_flow_get(lc->ct, slot->flow);

	/* One whose client is gone would wait for nobody. */
	if (flow == NULL || !replay_is_allowed(lc, link, number, gone))
		return false;
	if (link->replay_copy[number].packet == NULL)
		return lc->replay_streams > 0 && replay_stream(lc, flow, slot, link->worker);
	w.packet = replay_take_payload(lc, link, number);
	if (w.packet == NULL)
		return false;
	if (!waiting_push(lc, slot->service, &w)) {
		rte_pktmbuf_free(w.packet);
		replay_left(lc, slot->service);
		return false;
	}
	/* Two attempts may take longer than the flow's timeout allows for one. */
	conntrack_touch(flow, lc->now_ms);
	s->stats.replays++;
	return true;
}

static void replay_move(struct lcore *lc, struct link *link, uint32_t number)
{
	if (replay_slot(lc, link, number, false))
		cancel_slot(lc, link, number);
}

/* Requests are visited oldest first, which keeps their order in the queue. */
void replay_suspects(struct lcore *lc)
{
	if (lc->replay_copies + lc->replay_streams == 0)
		return;
	for (unsigned int i = 0; i < lc->n_active; i++)
		if (lc->active[i]->suspect)
			link_visit_busy(lc, lc->active[i], &lc->active[i]->moved_at, BUDGET,
					replay_move);
}
