/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replies to client packets. The slot gives the flow, which has the client's address, and the path
 * that the request came by, which is the way back. Headers are written in front of the reply's
 * bytes, without a copy. Notices (the error datagrams that clients see) are built here too.
 */
#include "walk/egress.h"

#include <arpa/inet.h>

#include <rte_udp.h>

#include "edge/edge.h"
#include "lcore/lcore.h"
#include "observe/flow_trace.h"
#include "packet/checksum.h"
#include "packet/client_headers.h"
#include "packet/request.h"
#include "walk/cancel.h"
#include "observe/drop_packet.h"
#include "walk/replay.h"

/* Put the client's headers before the payload in <m> and send it. Takes <m>. */
static bool egress_transmit(struct lcore *lc, const struct flow *flow,
			    const struct flow_local *local, const struct client_path *path,
			    struct rte_mbuf *m)
{
	struct txq *tx = &lc->tx[path->port];
	uint16_t length = sizeof(struct rte_udp_hdr) + m->pkt_len, sum;
	uint64_t checksums = tx->checksums[local->family == FLOW_IPV6], total = 0;
	const struct client_ends ends = {
		.client = &flow->client,
		.local = &local->address,
		.family = local->family,
		.protocol = IPPROTO_UDP,
	};
	struct rte_udp_hdr *udp;
	uint8_t *at, *ip;

	if (!(checksums & RTE_MBUF_F_TX_UDP_CKSUM))
		total = client_sum_chain(m);
	at = (uint8_t *)rte_pktmbuf_prepend(
		m, client_headers_length(path, local->family, sizeof(struct rte_udp_hdr)));
	if (unlikely(at == NULL || txq_room(tx) == 0)) {
		lcore_drop(lc, m, LB_DROP_NO_TX);
		return false;
	}
	ip = client_write_ether(at, lc->lb->port[path->port].mac, path, local->family);
	udp = client_write_ip(ip, &ends, length, client_path_hops(path), 0);
	*udp = (struct rte_udp_hdr){
		.src_port = local->port,
		.dst_port = flow->client_port,
		.dgram_len = htons(length),
	};
	total += client_sum_pseudo(ip, &ends, length);
	if (checksums & RTE_MBUF_F_TX_UDP_CKSUM) {
		sum = checksum_fold(total); /* of the pseudo header; the port adds the rest */
	} else {
		sum = ~checksum_fold(total + checksum_add_few((uint8_t *)udp, sizeof(*udp)));
		sum = sum == 0 ? 0xffff : sum; /* 0 would mean "none" (RFC 768) */
	}
	udp->dgram_cksum = sum;
	if (checksums != 0)
		client_offload(m, ip, ip - at, (uint8_t *)udp - ip, checksums);
	txq_push(tx, m);
	return true;
}

/* Make a notice without headers. NULL, and counted: no memory. */
static struct rte_mbuf *egress_make_notice(struct lcore *lc, uint8_t code, uint64_t tag)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(lc->control);
	uint8_t *at = m == NULL ? NULL : (uint8_t *)rte_pktmbuf_append(m, LB_NOTICE_LENGTH);

	if (at == NULL) {
		lc->stats.drop[LB_DROP_NO_MBUF]++;
		return NULL;
	}
	memset(at, 0, LB_NOTICE_LENGTH);
	memcpy(at, LB_NOTICE_MAGIC, 4);
	at[4] = 1;
	at[5] = code;
	memcpy(at + 8, &tag, sizeof(tag));
	return m;
}

static void egress_count_notice(struct lcore *lc, uint16_t service, uint8_t code)
{
	lc->stats.notices++;
	lc->stats.notice[code % LB_NOTICE_CODES]++;
	lc->service[service].stats.notices++;
}

bool egress_notice(struct lcore *lc, const struct flow *flow, const struct client_path *path,
		   uint8_t code, uint64_t tag)
{
	uint16_t service = flow->service;
	struct rte_mbuf *m;

	if (unlikely(lc->trace != NULL))
		trace_notice(lc, flow, code, tag);
	if (flow_state_is_tcp(flow->state)) {
		if (edge_notice(lc, flow, code, tag, &service))
			egress_count_notice(lc, service, code);
		return true;
	}
	m = egress_make_notice(lc, code, tag);
	if (m == NULL || !egress_transmit(lc, flow, conntrack_local(lc->ct, flow), path, m))
		return false;
	egress_count_notice(lc, service, code);
	return true;
}

void egress_notice_stranger(struct lcore *lc, uint16_t service, const struct flow_key *key,
			    const struct client_path *path, uint8_t code, uint64_t tag)
{
	struct rte_mbuf *m = egress_make_notice(lc, code, tag);
	struct flow_local local = {
		.address = key->dst,
		.port = key->dst_port,
		.protocol = key->protocol,
		.family = key->family,
	};
	/* Not in the flow table: only its address and port are used. */
	struct flow sender = {.client = key->src, .client_port = key->src_port};

	if (m != NULL && egress_transmit(lc, &sender, &local, path, m))
		egress_count_notice(lc, service, code);
}

static uint8_t egress_notice_of(uint32_t status)
{
	switch (status) {
	case RING_EXPIRED:
		return LB_NOTICE_EXPIRED;
	case RING_CANCELLED:
		return LB_NOTICE_CANCELLED;
	default:
		return LB_NOTICE_MODEL_ERROR;
	}
}

/* Copy a chain with more segments than the port sends into one mbuf. Counted. NULL: no memory. */
static struct rte_mbuf *egress_join(struct lcore *lc, struct rte_mbuf *m)
{
	/* It fits: max_reply is below the client port's MTU, and the buffers hold that. */
	struct rte_mbuf *whole = client_join(lc->packets, m);

	lc->stats.payload_copies += whole != NULL;
	return whole;
}

/* Tagged framing: put the id of the request in front of its reply. */
static bool egress_add_request_header(struct rte_mbuf *m, uint64_t id, uint32_t chunk, bool more)
{
	uint8_t *at = (uint8_t *)rte_pktmbuf_prepend(m, LB_REQUEST_LENGTH);

	if (unlikely(at == NULL))
		return false;
	lb_request_write_reply(at, id, chunk, more);
	return true;
}

static bool egress_count_chunk(struct lcore *lc, struct flow *flow, uint16_t service,
			       uint32_t length)
{
	conntrack_event(flow, FLOW_EVENT_TO_CLIENT);
	conntrack_touch(flow, lc->now_ms);
	lc->service[service].stats.bytes_out += length;
	return true;
}

/* Send a chunk of the reply to the request of <slot> to the flow's client. Takes <m>, without the
 * reply header. True: sent. */
static bool egress_send_chunk(struct lcore *lc, struct flow *flow, const struct client_path *path,
			      struct rte_mbuf *m, const struct slot *slot, bool more)
{
	uint64_t tag = slot->tag;
	uint32_t length = m->pkt_len, chunk = slot->chunks;

	if (length > lcore_service_config(lc, slot->service)->max_reply) {
		egress_notice(lc, flow, path, LB_NOTICE_MODEL_ERROR, tag);
		lcore_drop(lc, m, LB_DROP_REPLY_TOO_LARGE);
		return false;
	}
	if (flow_state_is_tcp(flow->state)) {
		if (!edge_reply(lc, flow, m, tag, chunk, more))
			return false;
		return egress_count_chunk(lc, flow, slot->service, length);
	}
	if (m->nb_segs > 1 && m->nb_segs > lc->lb->port[path->port].segments_max) {
		m = egress_join(lc, m);
		if (m == NULL) {
			lc->stats.drop[LB_DROP_NO_MBUF]++;
			return false;
		}
	}
	if (lcore_service_config(lc, slot->service)->framing == LB_FRAMING_TAGGED &&
	    !egress_add_request_header(m, tag, chunk, more)) {
		lcore_drop(lc, m, LB_DROP_NO_TX);
		return false;
	}
	if (!egress_transmit(lc, flow, conntrack_local(lc->ct, flow), path, m))
		return false;
	conntrack_count_out(lc->ct, flow, length);
	return egress_count_chunk(lc, flow, slot->service, length);
}

/* Count the parts of the request's time; see latency.h. */
static void egress_measure(struct lcore *lc, struct link *link, const struct slot *slot,
			   const struct ring_reply *header, uint64_t total_ns)
{
	struct latency_sample s = {
		.queue_ns = lb_tsc_to_ns(lc->lb, slot->sent - slot->arrived),
		.total_ns = total_ns,
		.wait_ns = header->start_ns - header->seen_ns,
		.run_ns = header->done_ns - header->start_ns,
		.reply_ns = lc->reply_ns,
		.reply_bucket = lc->reply_bucket,
	};

	/* Modulo 2^64: a clock that went back gives a huge value. */
	s.split = s.wait_ns <= s.total_ns && s.run_ns <= s.total_ns - s.wait_ns;
	latency_add(&lc->latency[slot->service], link->latency, &s);
}

/*
 * ns that the request's batch ran; 0 when the worker's times are inconsistent, or say that it ran
 * for longer than the request was away: deadlines would be refused for a minute because of one such
 * reply. Clocks count differently, and some by steps, so by half only.
 */
static uint64_t egress_run_ns(const struct ring_reply *header, uint64_t total_ns)
{
	uint64_t run_ns = header->done_ns - header->start_ns;

	if (header->done_ns < header->start_ns || header->start_ns < header->seen_ns ||
	    run_ns / 2 > total_ns)
		return 0;
	return run_ns;
}

/* The last chunk has arrived: count it and its times, and free the slot, which is a credit. */
static void egress_finish(struct lcore *lc, struct link *link, uint32_t number, uint32_t status,
			  const struct ring_reply *header)
{
	struct slot *slot = &link->slot[number];
	uint64_t total_ns = lb_tsc_to_ns(lc->lb, lc->now - slot->sent);
	uint64_t run_ns = egress_run_ns(header, total_ns);

	if (likely(slot->state != SLOT_PROBE))
		egress_measure(lc, link, slot, header, total_ns);
	if (run_ns > __atomic_load_n(&link->longest_run_ns, __ATOMIC_RELAXED))
		__atomic_store_n(&link->longest_run_ns, run_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&link->backlog, header->backlog, __ATOMIC_RELAXED);
	link->stats.replies++;
	link->stats.errors += status != RING_OK;
	link->stats.faults += status == RING_ERROR || status == RING_BAD;
	lc->stats.drop[LB_DROP_CANCEL_UNSENT] += slot->cancel_due;
	replay_forget(lc, link, number);
	if (unlikely(link_slot_has_pages(link, number)))
		link_measure_pages(link, number, lc->now, run_ns > 0);
	link_slot_free(link, number);
	workers_load_answered(&lc->load, link->worker, lc->now, status == RING_OK ? run_ns : 0);
	if (unlikely(lc->load.by_deadline[link->worker])) {
		workers_load_told(&lc->load, link->worker, header->backlog);
		if (run_ns > 0)
			workers_load_waited(&lc->load, link->worker,
					    header->start_ns - header->seen_ns);
	}
}

/* Does the reply's header agree with its message and its slot? LB_DROP_NONE, or the reason. */
static enum lb_drop egress_check(const struct link *link, const struct rte_mbuf *m, uint32_t number,
				 const struct ring_reply *header)
{
	if (number >= link->slots || header->length != m->pkt_len - sizeof(*header))
		return LB_DROP_REPLY_MALFORMED;
	if (link->slot[number].state <= SLOT_FILLING ||
	    link->slot[number].sequence != header->sequence)
		return LB_DROP_REPLY_STALE;
	return LB_DROP_NONE;
}

/* A long reply, as connections have them, is freed some packets at a time. */
static void egress_free(struct lcore *lc, struct rte_mbuf *m)
{
	if (lc->edge != NULL && m != NULL)
		edge_free_reply(lc, m);
	else
		rte_pktmbuf_free(m);
}

static void egress_drop(struct lcore *lc, struct rte_mbuf *m, enum lb_drop reason)
{
	struct rte_mbuf *rest = m->next;

	m->next = NULL;
	m->nb_segs = 1;
	m->pkt_len = m->data_len;
	lcore_drop(lc, m, reason);
	egress_free(lc, rest);
}

static void egress_send_reply(struct lcore *lc, struct link *link, struct rte_mbuf *m, uint32_t imm)
{
	uint32_t number = ring_imm_slot(imm), status = ring_imm_status(imm);
	struct ring_reply header;
	enum lb_drop reason;
	const struct client_path *path;
	struct slot slot;
	struct flow *flow;

	if (unlikely(m->data_len < sizeof(header)))
		return lcore_drop(lc, m, LB_DROP_REPLY_MALFORMED);
	memcpy(&header, rte_pktmbuf_mtod(m, void *), sizeof(header));
	reason = egress_check(link, m, number, &header);
	if (unlikely(reason != LB_DROP_NONE))
		return egress_drop(lc, m, reason);
	slot = link->slot[number];
	path = &link->client_path[number];
	link->slot[number].chunks++;
	if (!(imm & RING_IMM_MORE))
		egress_finish(lc, link, number, status, &header);
	if (unlikely(slot.state == SLOT_PROBE)) {
		link_probe_answered(link, status);
		rte_pktmbuf_free(m);
		return;
	}
	if (unlikely(slot.state == SLOT_ABANDONED))
		return egress_drop(lc, m, LB_DROP_REPLY_STALE);
	flow = conntrack_flow_get(lc->ct, slot.flow);
	if (unlikely(flow == NULL))
		return egress_drop(lc, m, LB_DROP_REPLY_NO_FLOW);
	edge_note_worker(lc, flow, &slot);
	/* A late reply is not sent; of a reply in several chunks, the first decides. */
	if (unlikely(slot.deadline != 0 && slot.chunks == 0 && lc->now > slot.deadline)) {
		egress_notice(lc, flow, path, LB_NOTICE_DEADLINE, slot.tag);
		/* The client does not want the chunks that follow: tell the worker to stop. */
		if (imm & RING_IMM_MORE)
			cancel_slot(lc, link, number);
		return egress_drop(lc, m, LB_DROP_DEADLINE);
	}
	if (unlikely(status != RING_OK)) {
		egress_notice(lc, flow, path, egress_notice_of(status), slot.tag);
		/* The chunks that follow belong to no reply any more. */
		if (imm & RING_IMM_MORE)
			cancel_slot(lc, link, number);
		egress_free(lc, m);
		return;
	}
	rte_pktmbuf_adj(m, sizeof(header));
	if (egress_send_chunk(lc, flow, path, m, &slot, imm & RING_IMM_MORE) &&
	    !(imm & RING_IMM_MORE)) {
		lc->stats.replies++;
		lc->service[slot.service].stats.replies++;
	}
}

/* Ask for the memory of the connections that the replies go to. */
static void egress_prefetch_connections(struct lcore *lc, const struct fabric_burst *f)
{
	struct flow *flow[LB_BURST];

	for (unsigned int i = 0; i < f->n_replies; i++) {
		const struct link *link = f->reply[i].link;
		uint32_t number = ring_imm_slot(f->reply[i].imm) & (link->slots - 1);

		flow[i] = conntrack_flow_get(lc->ct, link->slot[number].flow);
	}
	edge_prefetch(lc, flow, f->n_replies);
}

void egress_send(struct lcore *lc, struct fabric_burst *f)
{
	if (lc->edge != NULL)
		egress_prefetch_connections(lc, f);
	lc->reply_ns = lb_tsc_to_ns(lc->lb, lb_tsc(lc->lb) - lc->now);
	lc->reply_bucket = latency_bucket(lc->reply_ns);
	for (unsigned int i = 0; i < f->n_replies; i++)
		egress_send_reply(lc, f->reply[i].link, f->reply[i].message, f->reply[i].imm);
}
