/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ICMP errors about replies: find the flow that the reply was for, and count the error by its kind.
 * Errors are never answered. A host that guesses a client's address and port can forge one
 * (RFC 5927), so an error neither ends a flow nor changes the headers of replies. Only that a
 * segment of TCP was too big has an effect, if its number is under way.
 */
#include "walk/icmp.h"

#include <netinet/in.h>

#include "edge/edge.h"
#include "lcore/lcore.h"
#include "packet/parse.h"
#include "observe/drop_packet.h"
#include "walk/handover.h"

/* Errors per ms that an lcore passes on because the owner of their flow is not known. */
#define PASS_MAX 32

/* Pass the error to the next lcore, which may have its flow. The number of lcores that are left
 * travels in the packet. */
static void icmp_pass_on(struct lcore *lc, struct rte_mbuf *m, unsigned int left)
{
	if (left == 0 || lc->errors_passed >= PASS_MAX)
		return lcore_drop(lc, m, LB_DROP_ICMP_NO_FLOW);
	lc->errors_passed++;
	m->hash.usr = left - 1;
	handover_add(lc, (lc->index + 1) % lc->lb->n_lcores, m);
}

/* Returns the counter of an error about a segment. */
static enum lb_drop icmp_tcp_error(struct lcore *lc, const struct rte_mbuf *m,
				   const struct parsed *p, const struct flow *flow)
{
	struct parsed_error error;

	if (p->reason != LB_DROP_ICMP_TOO_BIG)
		return p->reason;
	parse_error(rte_pktmbuf_mtod(m, const uint8_t *), p, &error);
	return edge_too_big(lc, flow, error.seq, error.mtu) ? p->reason : LB_DROP_ICMP_NO_FLOW;
}

void icmp_error(struct lcore *lc, struct rte_mbuf *m, const struct parsed *p,
		const struct flow_key *key, bool handed)
{
	uint16_t port = lc->lb->port_index[m->port];
	bool known = lc->lb->owner_rule[port] != OWNER_RECEIVER ||
		     (key->protocol == IPPROTO_TCP && lc->lb->tcp_by_hash[port]);
	unsigned int owner, left;
	struct flow *flow;
	uint32_t hash;

	if (!lc->lb->config.port[port].clients)
		return lcore_drop(lc, m, LB_DROP_ICMP_OTHER);
	owner = known ? handover_owner(lc, port, key) : lc->index;
	if (owner != lc->index && !handed) {
		m->hash.usr = 0;
		return handover_add(lc, owner, m);
	}
	hash = conntrack_hash(lc->ct, key);
	conntrack_lookup_burst(lc->ct, key, &hash, 1, &flow);
	if (flow != NULL && flow_state_is_tcp(flow->state))
		return lcore_drop(lc, m, icmp_tcp_error(lc, m, p, flow));
	if (flow != NULL) {
		if (p->reason == LB_DROP_ICMP_PORT)
			conntrack_event(flow, FLOW_EVENT_UNREACHABLE);
		return lcore_drop(lc, m, p->reason);
	}
	left = handed ? m->hash.usr : known ? 0 : lc->lb->n_lcores - 1;
	icmp_pass_on(lc, m, left);
}
