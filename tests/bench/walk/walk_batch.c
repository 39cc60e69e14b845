/* SPDX-License-Identifier: BSD-3-Clause */
#include <netinet/in.h>

#include <rte_ether.h>
#include <rte_ip.h>

#include "walk/walk_batch.h"
#include "lb.h"
#include "walk/loop.h"

/* Fails if counters show losses or copies, in any measurement. */
static void check_counters(const struct bench *b, uint64_t requests, uint64_t replies)
{
	const struct lb_lcore_stats *s = &b->rig.lc->stats;
	struct lb_link_stats link;

	for (unsigned int i = 0; i < LB_DROPS; i++)
		if (s->drop[i] != 0)
			rig_die("%lu packets were dropped: %s", s->drop[i], lb_drop_name(i));
	if (s->payload_copies != 0 || s->notices != 0)
		rig_die("%lu payloads were copied, %lu notices sent", s->payload_copies,
			s->notices);
	if (s->requests != requests || s->replies != replies)
		rig_die("the load balancer counts %lu requests and %lu replies, not %lu and %lu",
			s->requests, s->replies, requests, replies);
	for (unsigned int w = 0; w < RIG_WORKERS; w++) {
		lb_worker_stats_read(b->rig.lb, b->peer.worker[w].worker, &link);
		if (link.packets_resent != 0 || link.timeouts != 0 || link.naks_received != 0 ||
		    link.naks_sent != 0)
			rig_die("worker gpu%u: packets were sent again", w);
	}
}

uint64_t batch_bytes(const struct clients *c)
{
	uint64_t bytes = 0;

	for (unsigned int i = 0; i < RIG_BATCH; i++)
		bytes += CLIENT_HEADERS + c->length[i];
	return bytes;
}

static void timed_turn(struct bench *b, struct turns *turns)
{
	if (b->between != NULL)
		b->between(&b->rig);
	turns_turn(turns, b->rig.lc);
	b->worked += turns->cycles[turns->n - 1];
}

/* Ends all work between the measured turns: the last acknowledgements go in. */
static void settle(struct bench *b)
{
	while (peer_owes_acks(&b->peer)) {
		peer_acknowledge(&b->peer);
		lb_poll(b->rig.lc);
		peer_receive(&b->peer);
	}
}

static void send_requests(struct bench *b, struct load *load)
{
	clients_prepare(&b->clients, load);
	peer_expect(&b->peer);
	b->rig.clients.ol_flags =
		load->nic_checks || load->trace != NULL
			? RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD
			: 0;
	for (unsigned int i = 0; i < RIG_BATCH; i += LB_BURST) {
		nic_deliver(&b->rig.clients, b->clients.packet + i, LB_BURST);
		peer_acknowledge(&b->peer);
		timed_turn(b, &b->requests);
		peer_receive(&b->peer);
		if (b->peer.n_requests != i + LB_BURST)
			rig_die("%u requests reached the workers, %u were sent", b->peer.n_requests,
				i + LB_BURST);
	}
	b->bytes += batch_bytes(&b->clients);
	settle(b);
}

/* Leaves out what a connection of an earlier scenario is told meanwhile, such as its window. */
static unsigned int without_tcp(struct rte_mbuf **packet, unsigned int n)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < n; i++) {
		const struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod_offset(
			packet[i], const struct rte_ipv4_hdr *, RTE_ETHER_HDR_LEN);

		if (ip->next_proto_id == IPPROTO_TCP)
			rte_pktmbuf_free(packet[i]);
		else
			packet[kept++] = packet[i];
	}
	return kept;
}

static void take_replies(struct bench *b, const struct load *load, unsigned int first)
{
	struct rte_mbuf *packet[NIC_SIZE];
	unsigned int n = nic_collect(&b->rig.clients, 0, packet, NIC_SIZE);

	n = without_tcp(packet, n);
	if (n != LB_BURST)
		rig_die("%u replies reached the clients, %u were sent", n, LB_BURST);
	for (unsigned int i = 0; i < n; i++) {
		if (rte_pktmbuf_mtod_offset(packet[i], uint8_t *, CLIENT_HEADERS) !=
		    b->peer.reply_at[first + i])
			rig_die("reply %u: the payload was moved", first + i);
		if (b->peer.verify && !clients_is_reply(&b->clients, load, packet[i],
							b->peer.request[first + i].index))
			rig_die("reply %u: wrong bytes", first + i);
		rte_pktmbuf_free(packet[i]);
	}
}

static void send_replies(struct bench *b, const struct load *load)
{
	peer_prepare_replies(&b->peer, load);
	for (unsigned int i = 0; i < RIG_BATCH; i += LB_BURST) {
		nic_deliver(&b->rig.fabric, b->peer.reply + i, LB_BURST);
		timed_turn(b, &b->replies);
		peer_receive(&b->peer);
		take_replies(b, load, i);
	}
	if (!peer_all_acked(&b->peer))
		rig_die("replies were not acknowledged");
}

void batch_requests(struct bench *b, struct load *load)
{
	const struct lb_lcore_stats *s = &b->rig.lc->stats;
	uint64_t requests = s->requests, replies = s->replies;

	send_requests(b, load);
	check_counters(b, requests + RIG_BATCH, replies);
}

void batch_replies(struct bench *b, const struct load *load)
{
	const struct lb_lcore_stats *s = &b->rig.lc->stats;
	uint64_t requests = s->requests, replies = s->replies;

	send_replies(b, load);
	check_counters(b, requests, replies + RIG_BATCH);
}

void batch_run(struct bench *b, struct load *load)
{
	batch_requests(b, load);
	batch_replies(b, load);
}
