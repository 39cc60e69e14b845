/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ARP and neighbour discovery of the software RNIC: it answers for its own address, asks for its
 * peers' next hops until it knows them, and follows changes.
 */
#include <rte_cycles.h>

#include "runtime/neigh.h"
#include "rnic/soft_rnic_private.h"

#define ASK_AGAIN_MS 200

static void resolve_ask(struct soft_rnic *rnic, const struct rnic_address *next_hop)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(rnic->small);

	if (m == NULL || txq_room(soft_rnic_tx(rnic)) == 0) {
		rte_pktmbuf_free(m);
		return;
	}
	m->data_len = m->pkt_len =
		neigh_request_build(rte_pktmbuf_mtod(m, uint8_t *), next_hop->family,
				    &next_hop->addr, &rnic->params.address.addr, rnic->port.mac);
	txq_push(soft_rnic_tx(rnic), m);
}

/* Ask the known MAC address, by unicast, whether it still has the next hop's address. */
static void resolve_probe(struct soft_rnic *rnic, const struct soft_qp *qp)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(rnic->small);

	if (m == NULL || txq_room(soft_rnic_tx(rnic)) == 0) {
		rte_pktmbuf_free(m);
		return; /* retried at the next poll */
	}
	m->data_len = m->pkt_len = neigh_probe_build(
		rte_pktmbuf_mtod(m, uint8_t *), qp->next_hop.family, &qp->next_hop.addr,
		&rnic->params.address.addr, rnic->port.mac, qp->path.header);
	txq_push(soft_rnic_tx(rnic), m);
}

static uint32_t clock_ms(uint64_t now)
{
	return now / (rte_get_tsc_hz() / 1000);
}

static void resolve_claim(struct soft_rnic *rnic, struct soft_qp *qp, uint64_t now)
{
	switch (neigh_claim_due(&qp->claim, clock_ms(now), NEIGH_PROBE_MS)) {
	case NEIGH_DUE_PROBE:
		resolve_probe(rnic, qp);
		break;
	case NEIGH_DUE_MOVE:
		roce_path_set_mac(&qp->path, qp->claim.mac);
		break;
	case NEIGH_DUE_NOTHING:
		break;
	}
}

void soft_resolve_poll(struct soft_rnic *rnic, uint64_t now)
{
	uint64_t again = rte_get_tsc_hz() / 1000 * ASK_AGAIN_MS;

	for (unsigned int i = 0; i < rnic->n_qps; i++) {
		struct soft_qp *qp = rnic->qp[i];

		uint64_t doubts = qp->requester.stats.timeouts + qp->strangers;
		bool doubtful = doubts > qp->doubts;

		if (qp->connected && qp->claim.open)
			resolve_claim(rnic, qp, now);
		if (!qp->connected || (qp->resolved && !doubtful) ||
		    (qp->asked != 0 && now - qp->asked < again))
			continue;
		qp->doubts = doubts;
		qp->asked = now;
		resolve_ask(rnic, &qp->next_hop);
	}
}

/* Learn a MAC address. The first answer counts; a later one that differs is verified first. */
static void resolve_learn(struct soft_rnic *rnic, const struct neigh_message *message)
{
	for (unsigned int i = 0; i < rnic->n_qps; i++) {
		struct soft_qp *qp = rnic->qp[i];

		if (qp->connected && qp->next_hop.family == message->family &&
		    memcmp(&qp->next_hop.addr, &message->sender, sizeof(message->sender)) == 0) {
			if (qp->resolved) {
				neigh_claim_hear(&qp->claim, qp->path.header, message->sender_mac,
						 clock_ms(rte_rdtsc()));
				continue;
			}
			roce_path_set_mac(&qp->path, message->sender_mac);
			qp->resolved = true;
		}
	}
}

bool soft_resolve_receive(struct soft_rnic *rnic, struct rte_mbuf *m, uint16_t ether_type,
			  uint32_t offset, uint32_t length)
{
	static const uint8_t no_mac[6];
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	struct neigh_message message;

	if (!neigh_parse(ether_type, frame + offset, length, &message))
		return false;
	if (memcmp(message.sender_mac, no_mac, 6) == 0)
		memcpy(message.sender_mac, frame + 6, 6);
	/* A request for our address carries its sender's own (RFC 826). */
	resolve_learn(rnic, &message);
	if (message.kind != NEIGH_REQUEST ||
	    memcmp(&message.target, &rnic->params.address.addr, sizeof(message.target)) != 0 ||
	    txq_room(soft_rnic_tx(rnic)) == 0)
		return false;
	rte_pktmbuf_reset(m);
	m->data_len = m->pkt_len =
		neigh_reply_build(rte_pktmbuf_mtod(m, uint8_t *), &message, rnic->port.mac);
	txq_push(soft_rnic_tx(rnic), m);
	return true;
}
