/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replay: a request whose worker is lost, or suspect, goes to another. For services that allow it
 * the packet is kept until the reply is there; the payload lies in it untouched, whatever headers
 * were put around it. The slot of the first attempt is abandoned, so that only one reply can ever
 * reach the client.
 */
#include "walk/replay.h"

#include "lcore/lcore.h"
#include "walk/cancel.h"
#include "walk/choose.h"
#include "walk/waiting.h"

/* Slots looked at per link and ms. */
#define BUDGET 256

/*
 * Half of the packets that may be kept is divided among the services that want it; the other half
 * is for all. So no service's requests go without because of another's.
 */
void replay_share(struct lcore *lc)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < lc->services->n; i++)
		n += lc->services->config[i].replay > 0;
	lc->kept_least = n > 0 ? lc->kept_max / 2 / n : 0;
	lc->kept_shared_max = lc->kept_max - lc->kept_least * n;
	lc->kept_shared = 0;
	for (unsigned int i = 0; i < LB_SERVICES_MAX; i++)
		if (lc->service[i].kept > lc->kept_least)
			lc->kept_shared += lc->service[i].kept - lc->kept_least;
}

static bool has_place(const struct lcore *lc, const struct lcore_service *s)
{
	return s->kept < lc->kept_least || lc->kept_shared < lc->kept_shared_max;
}

void replay_left(struct lcore *lc, uint16_t service)
{
	if (--lc->service[service].kept >= lc->kept_least)
		lc->kept_shared--;
}

bool replay_keep(struct lcore *lc, struct link *link, const struct burst *b, unsigned int i)
{
	struct rte_mbuf *m = b->packet[i];
	struct kept *kept = &link->kept[link_next_slot(link)];
	struct lcore_service *s = &lc->service[b->flow[i]->service];

	if (!has_place(lc, s))
		return false;
	rte_mbuf_refcnt_update(m, 1);
	lc->kept++;
	if (s->kept++ >= lc->kept_least)
		lc->kept_shared++;
	*kept = (struct kept){
		.packet = m,
		.offset = m->data_off,
		.length = m->data_len,
		.replays = b->standing[i].replays,
		.hash = b->hash[i],
	};
	return true;
}

static void let_go(struct lcore *lc, struct link *link, uint32_t slot)
{
	rte_pktmbuf_free(link->kept[slot].packet);
	link->kept[slot].packet = NULL;
	lc->kept--;
}

void replay_unkeep(struct lcore *lc, struct link *link, uint32_t slot, uint16_t service)
{
	let_go(lc, link, slot);
	replay_left(lc, service);
}

/* The payload in a packet of its own again, which its service has kept still. NULL: no memory. */
static struct rte_mbuf *take_payload(struct lcore *lc, struct link *link, uint32_t slot)
{
	const struct kept *kept = &link->kept[slot];
	struct rte_mbuf *m = kept->packet, *copy;

	/* Nobody else has it: neither the window nor a port that is still reading it. */
	if (rte_mbuf_refcnt_read(m) == 1) {
		rte_pktmbuf_free(m->next);
		m->next = NULL;
		m->nb_segs = 1;
		m->data_off = kept->offset;
		m->data_len = m->pkt_len = kept->length;
		link->kept[slot].packet = NULL;
		lc->kept--;
		return m;
	}
	copy = rte_pktmbuf_alloc(lc->packets);
	if (copy == NULL)
		return NULL;
	memcpy(rte_pktmbuf_append(copy, kept->length), (uint8_t *)m->buf_addr + kept->offset,
	       kept->length);
	lc->stats.payload_copies++;
	let_go(lc, link, slot);
	return copy;
}

/* May this request be sent again? Where its worker is gone it waits for another to come. */
static bool may_replay(const struct lcore *lc, const struct link *link, uint32_t number, bool gone)
{
	const struct slot *slot = &link->slot[number];
	const struct kept *kept = &link->kept[number];

	return kept->packet != NULL && slot->chunks == 0 && lc->stop < STOP_TELLING &&
	       kept->replays < lcore_service_config(lc, slot->service)->replay &&
	       (gone || choose_has_workers(lc, slot->service));
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
		.hash = link->kept[number].hash,
		.level = QUEUE_LEVEL_REPLAY,
		.lane = 0,
		.replays = link->kept[number].replays + 1,
	};
	struct lcore_service *s = &lc->service[slot->service];
	struct flow *flow;

	if (!may_replay(lc, link, number, gone))
		return false;
	w.packet = take_payload(lc, link, number);
	if (w.packet == NULL)
		return false;
	if (!waiting_push(lc, slot->service, &w)) {
		rte_pktmbuf_free(w.packet);
		replay_left(lc, slot->service);
		return false;
	}
	/* It takes longer than flows are told to wait for their answers. */
	flow = conntrack_flow_get(lc->ct, slot->flow);
	if (flow != NULL)
		conntrack_touch(flow, lc->now_ms);
	s->stats.replays++;
	return true;
}

/* The oldest first, so that they are in front. Where the budget ended it goes on the next time. */
static void move(struct lcore *lc, struct link *link)
{
	uint32_t number = link->moved_at, newer;

	if (number == SLOT_NONE || link->slot[number].state != SLOT_BUSY)
		number = link->busy.oldest;
	for (int k = 0; k < BUDGET && number != SLOT_NONE; k++, number = newer) {
		newer = link->slot[number].newer;
		if (replay_slot(lc, link, number, false))
			cancel_slot(lc, link, number);
	}
	link->moved_at = number;
}

void replay_suspects(struct lcore *lc)
{
	if (lc->kept == 0)
		return;
	for (unsigned int i = 0; i < lc->n_active; i++)
		if (lc->active[i]->suspect)
			move(lc, lc->active[i]);
}
