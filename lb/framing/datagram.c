/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagram framing: every datagram is one request. What is left of the packet is its payload, where
 * the NIC put it.
 */
#include "../lcore.h"

void framing_datagram_cut(struct lcore *lc, struct burst *b)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < b->n; i++) {
		struct rte_mbuf *m = b->packet[i];
		const struct parsed *p = &b->parsed[i];
		struct flow *flow = b->flow[i];
		struct lcore_service *s = &lc->service[flow->service];

		if (unlikely(p->payload_length == 0 ||
			     p->payload_length >
				     lc->lb->config.service[flow->service].max_request)) {
			s->stats.drops++;
			lcore_drop(lc, m,
				   p->payload_length == 0 ? LB_DROP_EMPTY_REQUEST
							  : LB_DROP_REQUEST_TOO_LARGE);
			continue;
		}
		rte_pktmbuf_adj(m, p->payload_offset);
		rte_pktmbuf_trim(m, m->data_len - p->payload_length);
		b->tag[kept] = 0;
		memcpy(&b->tag[kept], rte_pktmbuf_mtod(m, void *),
		       RTE_MIN(p->payload_length, (uint16_t)sizeof(b->tag[0])));
		s->stats.bytes_in += p->payload_length;
		b->packet[kept] = m;
		b->hash[kept] = b->hash[i];
		b->handle[kept] = b->handle[i];
		b->flow[kept++] = flow;
	}
	b->n = kept;
}
