/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ICMP errors about our replies find the flow that the reply was for, and are counted by what they
 * say. They are never answered and never believed far: whoever guesses a client's address and port
 * can forge one (RFC 5927). So no flow ends by one, no reply changes its size or its headers.
 */
#include "walk/icmp.h"

#include "lcore/lcore.h"
#include "packet/parse.h"
#include "walk/drop_packet.h"
#include "walk/handover.h"

/* Errors that a lcore passes on in a millisecond, where nobody knows who owns their flow. */
#define PASS_MAX 32

/* Not here: the next one may know. How many have yet to be asked travels with the packet. */
static void pass_on(struct lcore *lc, struct rte_mbuf *m, unsigned int left)
{
	if (left == 0 || lc->errors_passed >= PASS_MAX)
		return lcore_drop(lc, m, LB_DROP_ICMP_NO_FLOW);
	lc->errors_passed++;
	m->hash.usr = left - 1;
	handover_add(lc, (lc->index + 1) % lc->lb->n_lcores, m);
}

void icmp_error(struct lcore *lc, struct rte_mbuf *m, const struct parsed *p,
		const struct flow_key *key, bool handed)
{
	uint16_t port = lc->lb->port_index[m->port];
	bool known = lc->lb->owner_rule[port] != OWNER_RECEIVER;
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
	if (flow != NULL) {
		if (p->reason == LB_DROP_ICMP_PORT)
			conntrack_event(flow, FLOW_EVENT_UNREACHABLE);
		return lcore_drop(lc, m, p->reason);
	}
	left = handed ? m->hash.usr : known ? 0 : lc->lb->n_lcores - 1;
	pass_on(lc, m, left);
}
