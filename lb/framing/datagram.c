/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagram framing: every datagram is one request. What is left of the packet is its payload, where
 * the NIC put it.
 */
#include "../lcore.h"

/* Why a datagram is no request, or LB_DROPS. */
static enum lb_drop refusal(const uint8_t *payload, uint32_t length, uint32_t max_request)
{
	if (length == 0)
		return LB_DROP_EMPTY_REQUEST;
	if (length > max_request)
		return LB_DROP_REQUEST_TOO_LARGE;
	/* Answering a notice with a notice would never end. */
	if (length == LB_NOTICE_LENGTH && memcmp(payload, LB_NOTICE_MAGIC, 4) == 0)
		return LB_DROP_NOTICE_RECEIVED;
	return LB_DROPS;
}

static uint64_t tag_of(const uint8_t *payload, uint32_t length)
{
	uint64_t tag = 0;

	if (likely(length >= sizeof(tag)))
		memcpy(&tag, payload, sizeof(tag));
	else
		memcpy(&tag, payload, length);
	return tag;
}

void framing_datagram_cut(struct lcore *lc, struct burst *b)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < b->n; i++) {
		struct rte_mbuf *m = b->packet[i];
		const struct parsed *p = &b->parsed[i];
		struct flow *flow = b->flow[i];
		struct lcore_service *s = &lc->service[flow->service];
		const uint8_t *payload = rte_pktmbuf_mtod_offset(m, uint8_t *, p->payload_offset);
		enum lb_drop reason = refusal(payload, p->payload_length,
					      lcore_service_config(lc, flow->service)->max_request);

		if (unlikely(reason != LB_DROPS)) {
			s->stats.drops++;
			lcore_drop(lc, m, reason);
			continue;
		}
		rte_pktmbuf_adj(m, p->payload_offset);
		/* Not rte_pktmbuf_trim(), which would fetch the mbuf's second cache line */
		m->data_len = m->pkt_len = p->payload_length;
		b->tag[kept] = tag_of(payload, p->payload_length);
		s->stats.bytes_in += p->payload_length;
		conntrack_event(flow, FLOW_EVENT_FROM_CLIENT);
		b->packet[kept] = m;
		b->hash[kept] = b->hash[i];
		b->handle[kept] = b->handle[i];
		b->flow[kept++] = flow;
	}
	b->n = kept;
}
