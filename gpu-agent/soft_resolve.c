/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ARP and neighbour discovery of the software RNIC: answers for its own address, asks for its
 * peers' next hops until it knows them, and follows changes.
 */
#include <rte_cycles.h>

#include "neigh.h"
#include "soft_rnic_private.h"

#define ASK_AGAIN_MS 200

static void ask(struct soft_rnic *rnic, const struct rnic_address *next_hop)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(rnic->small);

	if (m == NULL || txq_room(&rnic->tx) == 0) {
		rte_pktmbuf_free(m);
		return;
	}
	m->data_len = m->pkt_len =
		neigh_request_build(rte_pktmbuf_mtod(m, uint8_t *), next_hop->family,
				    &next_hop->addr, &rnic->params.address.addr, rnic->port.mac);
	txq_push(&rnic->tx, m);
}

void soft_resolve_poll(struct soft_rnic *rnic, uint64_t now)
{
	uint64_t again = rte_get_tsc_hz() / 1000 * ASK_AGAIN_MS;

	for (unsigned int i = 0; i < rnic->n_qps; i++) {
		struct soft_qp *qp = rnic->qp[i];

		bool doubtful = qp->requester.stats.timeouts > qp->timeouts;

		if (!qp->connected || (qp->resolved && !doubtful) ||
		    (qp->asked != 0 && now - qp->asked < again))
			continue;
		qp->timeouts = qp->requester.stats.timeouts;
		qp->asked = now;
		ask(rnic, &qp->next_hop);
	}
}

static void learn(struct soft_rnic *rnic, const struct neigh_message *message)
{
	for (unsigned int i = 0; i < rnic->n_qps; i++) {
		struct soft_qp *qp = rnic->qp[i];

		if (qp->connected && qp->next_hop.family == message->family &&
		    memcmp(&qp->next_hop.addr, &message->sender, sizeof(message->sender)) == 0) {
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
	/* Who asks for us tells its own address along the way (RFC 826). */
	learn(rnic, &message);
	if (message.kind != NEIGH_REQUEST ||
	    memcmp(&message.target, &rnic->params.address.addr, sizeof(message.target)) != 0 ||
	    txq_room(&rnic->tx) == 0)
		return false;
	rte_pktmbuf_reset(m);
	m->data_len = m->pkt_len =
		neigh_reply_build(rte_pktmbuf_mtod(m, uint8_t *), &message, rnic->port.mac);
	txq_push(&rnic->tx, m);
	return true;
}
