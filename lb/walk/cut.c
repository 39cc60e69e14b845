/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams to requests. Each packet is trimmed to the request's bytes, which stay where the NIC
 * put them.
 */
#include "walk/cut.h"

#include "framing/framing.h"
#include "lcore/lcore.h"
#include "packet/parse.h"
#include "walk/cancel.h"
#include "observe/drop_packet.h"
#include "walk/egress.h"
#include "walk/refuse.h"

/* Read a datagram. Returns LB_DROP_NONE, or the reason why it is no valid request. */
static inline enum lb_drop cut_read(const struct lb_service_config *config, const uint8_t *payload,
				    uint32_t length, struct framed *out)
{
	enum lb_drop reason;

	if (length == 0)
		return LB_DROP_EMPTY_REQUEST;
	reason = likely(config->framing == LB_FRAMING_DATAGRAM)
			 ? framing_datagram_read(payload, length, out)
			 : framing_tagged_read(payload, length, out);
	if (unlikely(reason != LB_DROP_NONE) || out->cancel)
		return reason;
	if (unlikely(out->length == 0))
		return LB_DROP_EMPTY_REQUEST;
	return out->length > config->max_request ? LB_DROP_REQUEST_TOO_LARGE : LB_DROP_NONE;
}

static void cut_refuse(struct lcore *lc, const struct burst *b, unsigned int i,
		       const struct framed *framed, enum lb_drop reason)
{
	const struct flow *flow = b->flow[i];

	lc->service[flow->service].stats.drops++;
	if (reason == LB_DROP_FRAMING && refuse_may_notify(lc, &flow->client, flow->zone))
		egress_notice(lc, flow, &b->path[i], LB_NOTICE_MALFORMED, framed->tag);
	if (reason == LB_DROP_REQUEST_TOO_LARGE &&
	    b->parsed[i].payload_length >= LB_NOTICE_LENGTH &&
	    refuse_may_notify(lc, &flow->client, flow->zone))
		egress_notice(lc, flow, &b->path[i], LB_NOTICE_TOO_LARGE, framed->tag);
	lcore_drop(lc, b->packet[i], reason);
}

/* TSC of the request's deadline; 0: none. */
static inline uint64_t cut_deadline(const struct lcore *lc, const struct lb_service_config *config,
				    const struct framed *framed)
{
	uint64_t us = framed->deadline_us != 0 ? framed->deadline_us
					       : config->deadline_ms * UINT64_C(1000);

	return likely(us == 0) ? 0 : lc->now + us * lc->lb->tsc_per_ms / 1000;
}

static inline void cut_keep(struct lcore *lc, struct burst *b, unsigned int kept, unsigned int i,
			    const struct framed *framed, const struct lb_service_config *config)
{
	struct rte_mbuf *m = b->packet[i];

	rte_pktmbuf_adj(m, b->parsed[i].payload_offset + framed->offset);
	/* Not rte_pktmbuf_trim(), which would fetch the mbuf's second cache line */
	m->data_len = m->pkt_len = framed->length;
	b->tag[kept] = framed->tag;
	b->arrived[kept] = lc->now;
	b->deadline[kept] = cut_deadline(lc, config, framed);
	/* A client's priority cannot exceed its service's; a lower number is more urgent. */
	b->priority[kept] = (struct priority){.level = RTE_MAX(framed->priority, config->priority)};
	b->packet[kept] = m;
	if (unlikely(kept != i))
		b->path[kept] = b->path[i];
	b->hash[kept] = b->hash[i];
	b->handle[kept] = b->handle[i];
	b->flow[kept] = b->flow[i];
	b->service[kept] = b->flow[i]->service;
}

static void cut_move(struct burst *b, unsigned int to, unsigned int from)
{
	b->packet[to] = b->packet[from];
	b->flow[to] = b->flow[from];
	b->handle[to] = b->handle[from];
	b->service[to] = b->service[from];
	b->hash[to] = b->hash[from];
	b->path[to] = b->path[from];
	b->tag[to] = b->tag[from];
	b->arrived[to] = b->arrived[from];
	b->deadline[to] = b->deadline[from];
	b->priority[to] = b->priority[from];
}

/* Request <i> of the burst was cancelled by a later packet of the burst. */
static void cut_drop_cancelled(struct lcore *lc, struct burst *b, unsigned int i, unsigned int kept)
{
	egress_notice(lc, b->flow[i], &b->path[i], LB_NOTICE_CANCELLED, b->tag[i]);
	lc->service[b->flow[i]->service].stats.drops++;
	lcore_drop(lc, b->packet[i], LB_DROP_CANCELLED);
	for (; i + 1 < kept; i++)
		cut_move(b, i, i + 1);
}

/* Cancel a request that may be among the <kept> ones of this burst. Returns how many are left. */
static __rte_noinline unsigned int cut_cancel(struct lcore *lc, struct burst *b, unsigned int kept,
					      unsigned int i, uint64_t tag)
{
	for (unsigned int k = 0; k < kept; k++) {
		if (b->handle[k] != b->handle[i] || b->tag[k] != tag)
			continue;
		cut_drop_cancelled(lc, b, k, kept);
		return kept - 1;
	}
	cancel_request(lc, b->flow[i], b->flow[i]->service, b->handle[i], tag);
	return kept;
}

void cut_burst(struct lcore *lc, struct burst *b)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < b->n; i++) {
		struct rte_mbuf *m = b->packet[i];
		const struct parsed *p = &b->parsed[i];
		struct flow *flow = b->flow[i];
		const struct lb_service_config *config = lcore_service_config(lc, flow->service);
		struct framed framed;
		enum lb_drop reason =
			cut_read(config, rte_pktmbuf_mtod_offset(m, uint8_t *, p->payload_offset),
				 p->payload_length, &framed);

		if (unlikely(reason != LB_DROP_NONE)) {
			cut_refuse(lc, b, i, &framed, reason);
			continue;
		}
		conntrack_event(flow, FLOW_EVENT_FROM_CLIENT);
		if (unlikely(framed.cancel)) {
			kept = cut_cancel(lc, b, kept, i, framed.tag);
			rte_pktmbuf_free(m);
			continue;
		}
		lc->service[flow->service].stats.bytes_in += framed.length;
		cut_keep(lc, b, kept++, i, &framed, config);
	}
	b->n = kept;
}
