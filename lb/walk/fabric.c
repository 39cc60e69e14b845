/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RoCE packets from the workers: acknowledgements release packets that were sent, WRITEs carry
 * replies. A reply loses its RoCE headers without a copy and is passed on as a chain of mbufs.
 */
#include "walk/fabric.h"

#include "lcore/lcore.h"
#include "walk/choose.h"
#include "observe/drop_packet.h"

static struct link *fabric_link_of(const struct lcore *lc, uint32_t qpn)
{
	struct link *link = lc->by_qpn[LINK_QPN_PLACE(qpn)];

	return link != NULL && link->qpn == qpn ? link : NULL;
}

/*
 * Did the frame come from its worker's MAC address? Behind a router the MAC address is not the
 * worker's, and a worker's first heartbeat may come before its address is resolved: both pass.
 */
static bool fabric_is_from_worker(const struct link *link, const uint8_t *frame)
{
	return likely(memcmp(frame + 6, link->path.header, 6) == 0) || !link->direct ||
	       !roce_path_is_resolved(&link->path);
}

/* The worker may have moved to another MAC address: the control thread asks for it again. */
static void fabric_drop_stranger(struct lcore *lc, struct link *link, struct rte_mbuf *m)
{
	__atomic_store_n(&link->strangers, link->strangers + 1, __ATOMIC_RELAXED);
	lcore_drop(lc, m, LB_DROP_ROCE_MAC);
}

static void fabric_receive_ack(struct lcore *lc, struct link *link, struct rte_mbuf *m,
			       const struct roce_packet *p)
{
	if (requester_ack(&link->requester, p->psn, p->syndrome, lc->now) == REQUESTER_BEYOND)
		lc->stats.drop[LB_DROP_ROCE_ACK_WINDOW]++;
	rte_pktmbuf_free(m);
}

/* The worker reports congestion on the path of packets that were sent to it. */
static void fabric_receive_notification(struct lcore *lc, struct link *link, struct rte_mbuf *m)
{
	requester_notify(&link->requester, lc->now);
	lcore_mark_active(lc, link); /* the rate recovers with time */
	if (lc->lb->config.dcqcn)
		rte_pktmbuf_free(m);
	else
		lcore_drop(lc, m, LB_DROP_ROCE_CNP);
}

static enum lb_drop fabric_drop_of(enum responder_verdict verdict)
{
	switch (verdict) {
	case RESPONDER_DUPLICATE:
		return LB_DROP_ROCE_PSN_DUPLICATE;
	case RESPONDER_AHEAD:
		return LB_DROP_ROCE_PSN_AHEAD;
	case RESPONDER_INVALID:
		return LB_DROP_ROCE_OPCODE;
	case RESPONDER_ACCESS:
		return LB_DROP_ROCE_ACCESS;
	default:
		return LB_DROP_ROCE_LINK_DOWN;
	}
}

/* Add a packet's payload, already stripped, to the message it belongs to. */
static void fabric_gather(struct link *link, struct rte_mbuf *m)
{
	if (link->reply_head == NULL) {
		link->reply_head = m;
	} else {
		link->reply_tail->next = m;
		link->reply_head->nb_segs++;
		link->reply_head->pkt_len += m->pkt_len;
	}
	link->reply_tail = m;
}

/* Heartbeats from one calculation of the worker's ring depth to the next. */
#define DEPTH_EVERY 8

static __rte_noinline void fabric_heartbeat(struct lcore *lc, struct link *link,
					    struct rte_mbuf *message, uint32_t imm)
{
	rte_pktmbuf_free(message);
	__atomic_store_n(&link->backlog, ring_imm_backlog(imm), __ATOMIC_RELAXED);
	if (ring_imm_by_deadline(imm))
		workers_load_told(&lc->load, link->worker, ring_imm_backlog(imm));
	link->stats.heartbeats++;
	/* The clock starts at 0, which means never. */
	__atomic_store_n(&link->heartbeat_ms, lc->now_ms | 1, __ATOMIC_RELAXED);
	if (link->stats.heartbeats % DEPTH_EVERY == 1)
		choose_set_depth(lc, link);
}

void fabric_message(struct lcore *lc, struct link *link, struct rte_mbuf *message, uint32_t imm,
		    struct fabric_burst *f)
{
	if (imm & RING_IMM_HEARTBEAT)
		return fabric_heartbeat(lc, link, message, imm);
	f->reply[f->n_replies].message = message;
	f->reply[f->n_replies].link = link;
	f->reply[f->n_replies++].imm = imm;
	rte_prefetch0(&link->slot[ring_imm_slot(imm) & (link->slots - 1)]);
}

/* A message is complete: pass on a reply or a heartbeat, drop anything else. */
static void fabric_complete(struct lcore *lc, struct link *link,
			    const struct responder_placement *place, struct fabric_burst *f)
{
	struct rte_mbuf *message = link->reply_head;

	link->reply_head = link->reply_tail = NULL;
	if (!place->has_imm)
		lcore_drop(lc, message, LB_DROP_REPLY_UNANNOUNCED);
	else if (!(place->imm & RING_IMM_HEARTBEAT) &&
		 ring_imm_slot(place->imm) != link->reply_slot)
		lcore_drop(lc, message, LB_DROP_REPLY_MALFORMED);
	else
		fabric_message(lc, link, message, place->imm, f);
}

static void fabric_receive_write(struct lcore *lc, struct link *link, struct rte_mbuf *m,
				 const struct parsed *at, const struct roce_packet *p,
				 struct fabric_burst *f)
{
	struct responder_placement place;
	enum responder_verdict verdict = responder_receive(&link->responder, p, &place);

	if (unlikely(roce_is_marked(rte_pktmbuf_mtod_offset(m, uint8_t *, at->ip_offset))))
		responder_marked(&link->responder, lc->now);
	if (link->responder.ack_due || unlikely(link->responder.notification_due))
		lcore_mark_dirty(lc, link);
	if (verdict != RESPONDER_ACCEPT)
		return lcore_drop(lc, m, fabric_drop_of(verdict));
	rte_pktmbuf_adj(m, at->payload_offset + p->payload_offset);
	m->data_len = m->pkt_len = p->payload_length;
	if (place.first)
		link->reply_slot = place.va >> link->reply_shift;
	fabric_gather(link, m);
	if (place.last)
		fabric_complete(lc, link, &place, f);
}

static void fabric_receive_one(struct lcore *lc, struct rte_mbuf *m, const struct parsed *at,
			       struct fabric_burst *f)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	const uint8_t *ip = frame + at->ip_offset;
	uint32_t ip_length = at->l4_offset - at->ip_offset;
	uint32_t length = at->payload_offset + at->payload_length - at->ip_offset;
	struct roce_packet p;
	enum roce_admission admission;
	struct link *link;
	enum roce_parse_result result =
		roce_parse(frame + at->payload_offset, at->payload_length, &p);

	if (result != ROCE_PARSED)
		return lcore_drop(lc, m,
				  result == ROCE_PARSE_OPCODE ? LB_DROP_ROCE_OPCODE
							      : LB_DROP_ROCE_MALFORMED);
	link = fabric_link_of(lc, p.qpn);
	if (link == NULL)
		return lcore_drop(lc, m, LB_DROP_ROCE_QPN);
	if (unlikely(!fabric_is_from_worker(link, frame)))
		return fabric_drop_stranger(lc, link, m);
	admission = at->vlan != 0 || lc->lb->port_index[m->port] != link->port
			    ? ROCE_NOT_PEER
			    : roce_path_admit(&link->path, ip, ip_length, length);
	if (unlikely(admission != ROCE_ADMITTED))
		return lcore_drop(lc, m,
				  admission == ROCE_NOT_PEER ? LB_DROP_ROCE_SOURCE
							     : LB_DROP_ROCE_ICRC);
	if (p.opcode == ROCE_CNP)
		fabric_receive_notification(lc, link, m);
	else if (p.opcode == ROCE_ACK)
		fabric_receive_ack(lc, link, m, &p);
	else
		fabric_receive_write(lc, link, m, at, &p, f);
}

static void fabric_prefetch_flow(const struct lcore *lc, const struct fabric_burst *f,
				 unsigned int i)
{
	const struct link *link = f->reply[i].link;
	uint32_t number = ring_imm_slot(f->reply[i].imm) & (link->slots - 1);

	rte_prefetch0(&link->client_path[number]);
	conntrack_flow_prefetch(lc->ct, link->slot[number].flow);
}

void fabric_receive(struct lcore *lc, struct fabric_burst *f)
{
	/* A reply's slot was prefetched when the reply came in; this many replies later the slot is
	 * in the cache. */
	const unsigned int behind = 2;
	unsigned int prefetched = 0;

	for (unsigned int i = 0; i < f->n; i++) {
		fabric_receive_one(lc, f->packet[i], &f->parsed[i], f);
		if (f->n_replies > prefetched + behind)
			fabric_prefetch_flow(lc, f, prefetched++);
	}
	while (prefetched < f->n_replies)
		fabric_prefetch_flow(lc, f, prefetched++);
}
