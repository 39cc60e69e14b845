/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completions of RDMA devices to replies, as fabric.c does for ports of engine roce. Replies lie
 * in memory of the link and are copied into packets from there. Runs on the lcore.
 */
#include "walk/fabric_verbs.h"

#include "lcore/lcore.h"
#include "ports/verbs_port_private.h"
#include "walk/fabric.h"

/* NULL when the completion belongs to a removed link: some providers keep those. */
static struct link *fabric_verbs_link_of(const struct lcore *lc, const struct ibv_wc *wc)
{
	uint32_t tag = verbs_wc_tag(wc);
	struct link *link = TAG_WORKER(tag) < WORKERS_MAX ? lc->link[TAG_WORKER(tag)] : NULL;

	return link != NULL && link->qp != NULL && link->qp->tag == tag ? link : NULL;
}

/* Fill the empty <m> with <length> bytes, in as many packets as they need. False: no memory. */
static bool fabric_verbs_fill(struct lcore *lc, struct rte_mbuf *m, const uint8_t *from,
			      uint32_t length)
{
	struct rte_mbuf *tail = m;

	for (;;) {
		uint16_t part = RTE_MIN(length, rte_pktmbuf_tailroom(tail));

		memcpy(rte_pktmbuf_mtod(tail, void *), from, part);
		tail->data_len = part;
		m->pkt_len += part;
		from += part;
		length -= part;
		if (length == 0)
			return true;
		tail->next = rte_pktmbuf_alloc(lc->packets);
		if (tail->next == NULL)
			return false;
		m->nb_segs++;
		tail = tail->next;
	}
}

/* Leave of a message its header, which says that it has no bytes. */
static void fabric_verbs_empty(struct rte_mbuf *m)
{
	struct ring_reply *header = rte_pktmbuf_mtod(m, struct ring_reply *);

	rte_pktmbuf_free(m->next);
	m->next = NULL;
	m->nb_segs = 1;
	m->data_len = m->pkt_len = RTE_MIN(m->data_len, sizeof(*header));
	header->length = 0;
}

/*
 * Copy a chunk of a reply out: the worker may overwrite its place as soon as the slot is free. The
 * chunks of a reply come in order, each to a place of its own: more may lie there than this one.
 * Where there is no memory for the copy, <imm> becomes a failure: a reply without its middle would be
 * a wrong one.
 */
static struct rte_mbuf *fabric_verbs_copy(struct lcore *lc, struct verbs_port_lcore *own,
					  struct link *link, const struct ibv_wc *wc, uint32_t *imm)
{
	struct rte_mbuf *m = own->spare[own->n_spare - 1];
	uint32_t number = ring_imm_slot(*imm) & (link->slots - 1);
	uint64_t offset = (uint64_t)link->copied[number] << link->chunk_shift;

	if (offset >> link->reply_shift != 0) {
		lc->stats.drop[LB_DROP_REPLY_MALFORMED]++;
		return NULL;
	}
	offset += (uint64_t)number << link->reply_shift;
	link->copied[number] = *imm & RING_IMM_MORE ? link->copied[number] + 1 : 0;
	if (wc->byte_len > 1u << link->chunk_shift) {
		lc->stats.drop[LB_DROP_REPLY_TOO_LARGE]++;
		return NULL;
	}
	own->n_spare--;
	if (unlikely(!fabric_verbs_fill(lc, m, link->qp->region + offset, wc->byte_len))) {
		lc->stats.drop[LB_DROP_NO_MBUF]++;
		fabric_verbs_empty(m);
		*imm = ring_imm(ring_imm_slot(*imm), RING_ERROR, *imm & RING_IMM_MORE);
	}
	return m;
}

static void fabric_verbs_receive(struct lcore *lc, struct verbs_port_lcore *own, struct link *link,
				 const struct ibv_wc *wc)
{
	uint32_t imm = rte_be_to_cpu_32(wc->imm_data);
	struct rte_mbuf *m;

	verbs_qp_received(link->qp, wc);
	if (unlikely(wc->status != IBV_WC_SUCCESS)) {
		/* A receive fails because of the peer, unless it was flushed. */
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
	if (imm & RING_IMM_HEARTBEAT)
		return fabric_message(lc, link, NULL, imm, &lc->fabric);
	m = fabric_verbs_copy(lc, own, link, wc, &imm);
	if (likely(m != NULL))
		fabric_message(lc, link, m, imm, &lc->fabric);
}

static unsigned int fabric_verbs_refill(struct lcore *lc, struct verbs_port_lcore *own)
{
	unsigned int missing = LB_BURST - own->n_spare;

	if (missing > 0 &&
	    rte_pktmbuf_alloc_bulk(lc->packets, own->spare + own->n_spare, missing) == 0)
		own->n_spare = LB_BURST;
	return own->n_spare;
}

unsigned int fabric_verbs_poll(struct lcore *lc, unsigned int index)
{
	struct verbs_port_lcore *own = &lc->lb->verbs[index]->lcore[lc->index];
	struct ibv_wc wc[LB_BURST];
	struct link *link;
	int n;

	lcore_begin_burst(lc);
	n = ibv_poll_cq(own->completions.cq, fabric_verbs_refill(lc, own), wc);
	for (int i = 0; i < n; i++) {
		link = fabric_verbs_link_of(lc, &wc[i]);
		if (link == NULL)
			continue;
		if (verbs_wc_is_receive(&wc[i]))
			fabric_verbs_receive(lc, own, link, &wc[i]);
		else
			verbs_requester_complete(&link->requester, &wc[i], lc->now);
	}
	for (int i = 0; i < n; i++) {
		link = verbs_wc_is_receive(&wc[i]) ? fabric_verbs_link_of(lc, &wc[i]) : NULL;
		if (link != NULL)
			verbs_qp_refill(link->qp);
	}
	return n > 0 ? n : 0;
}
