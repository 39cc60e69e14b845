/* SPDX-License-Identifier: BSD-3-Clause */
#include "membership/resolve.h"

#include <stdio.h>

#include <rte_ether.h>

#include "lcore/lcore.h"
#include "packet/parse.h"
#include "runtime/neigh.h"
#include "walk/forward.h"

/* ms between requests for an address: the interval doubles from the first value to the second. */
#define ASK_FIRST_MS 50
#define ASK_AGAIN_MS 500
/* ms; denied claims of a worker's address are logged once in this time, and always counted. */
#define TELL_AGAIN_MS 10000
/* ms between reads of the ports' link state, which some drivers fetch over a slow bus. */
#define CABLES_MS 100

static bool in_prefix(const struct lb_address *a, const struct lb_address *net, uint8_t prefix)
{
	/* In the mapped form, an IPv4 address follows a prefix of 96 bits. */
	unsigned int bits = net->family == 4 ? 96u + prefix : prefix;

	if (a->family != net->family)
		return false;
	for (unsigned int i = 0; i < bits; i += 8) {
		uint8_t mask = bits - i >= 8 ? 0xff : 0xff << (8 - (bits - i));

		if ((a->addr.s6_addr[i / 8] ^ net->addr.s6_addr[i / 8]) & mask)
			return false;
	}
	return true;
}

int resolve_port(const struct lb_config *config, const struct lb_address *address)
{
	for (unsigned int i = 0; i < config->n_ports; i++)
		if (config->port[i].fabric &&
		    in_prefix(address, &config->port[i].address, config->port[i].prefix))
			return i;
	return -1;
}

int resolve_gateway_port(const struct lb_config *config, const struct lb_address *address)
{
	for (unsigned int i = 0; i < config->n_ports; i++)
		if (config->port[i].fabric && config->port[i].gateway.family == address->family)
			return i;
	return -1;
}

void resolve_start(struct lb *lb, uint16_t worker, uint16_t port, const struct lb_address *address)
{
	bool direct = resolve_port(&lb->config, address) == port;

	lb->neighbour[worker] = (struct neighbour){
		/* For an RDMA device the kernel resolves the address. */
		.used = lb->verbs[port] == NULL,
		.resolved = lb->verbs[port] != NULL,
		.port = port,
		.address = *address,
		.next_hop = direct ? *address : lb->config.port[port].gateway,
	};
}

void resolve_stop(struct lb *lb, uint16_t worker)
{
	lb->neighbour[worker].used = false;
}

/* Allocate a packet to send. NULL when memory or room is short: all that is sent here is sent
 * again. */
static struct rte_mbuf *packet_for(struct lcore *lc, uint16_t port)
{
	return txq_room(&lc->tx[port]) == 0 ? NULL : rte_pktmbuf_alloc(lc->control);
}

static void send_on(struct lcore *lc, uint16_t port, struct rte_mbuf *m, uint32_t length)
{
	m->data_len = m->pkt_len = length;
	txq_push(&lc->tx[port], m);
}

/*
 * Ask the whole segment for the IP address, or, if <known> is not NULL, ask only that MAC address
 * whether it still has the IP address.
 */
static void resolve_send_question(struct lcore *lc, const struct neighbour *n, const uint8_t *known)
{
	const struct in6_addr *own = &lc->lb->config.port[n->port].address.addr;
	const uint8_t *own_mac = lc->lb->port[n->port].mac;
	struct rte_mbuf *m = packet_for(lc, n->port);
	uint8_t *frame;

	if (m == NULL)
		return;
	frame = rte_pktmbuf_mtod(m, uint8_t *);
	send_on(lc, n->port, m,
		known == NULL ? neigh_request_build(frame, n->next_hop.family, &n->next_hop.addr,
						    own, own_mac)
			      : neigh_probe_build(frame, n->next_hop.family, &n->next_hop.addr, own,
						  own_mac, known));
}

static void resolve_ask(void *lcore, void *argument)
{
	resolve_send_question(lcore, argument, NULL);
}

static void resolve_probe(void *lcore, void *argument)
{
	const struct neighbour *n = argument;

	resolve_send_question(lcore, n, n->mac);
}

static void count_kept(void *lcore, void *argument)
{
	struct lcore *lc = lcore;

	lc->stats.drop[LB_DROP_NEIGHBOUR_KEPT]++;
}

struct move {
	uint16_t worker;
	uint8_t mac[6];
};

static void resolve_set_link_mac(void *lcore, void *argument)
{
	struct lcore *lc = lcore;
	const struct move *move = argument;
	struct link *link = lc->link[move->worker];

	if (link == NULL)
		return;
	roce_path_set_mac(&link->path, move->mac);
	/* The acknowledgement of the first heartbeat may have waited for the MAC address. */
	lcore_mark_dirty(lc, link);
	forward_flush(lc);
}

static void resolve_set_mac(struct lb *lb, unsigned int worker, const uint8_t *mac)
{
	struct neighbour *n = &lb->neighbour[worker];
	struct move move = {.worker = worker};

	n->resolved = true;
	n->doubtful = false;
	n->again_ms = 0;
	memcpy(n->mac, mac, 6);
	memcpy(move.mac, mac, 6);
	/* Where too many calls wait, the address is asked for again. */
	for (unsigned int k = 0; k < lb->n_lcores; k++)
		n->resolved &= lcores_post(lb, k, resolve_set_link_mac, &move, sizeof(move));
}

/* Format a MAC address for the log. */
static const char *mac_text(const uint8_t *mac, char text[18])
{
	snprintf(text, 18, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4],
		 mac[5]);
	return text;
}

/* Log the outcome of a claim: <moved>, or denied by the old holder. */
static void resolve_log_claim(const struct lb *lb, unsigned int worker, const uint8_t *claimant,
			      bool moved)
{
	const struct worker *w = workers_get(lb->pool, worker);
	char address[LB_ADDRESS_TEXT], old[18], claimed[18];

	rte_log(moved ? RTE_LOG_NOTICE : RTE_LOG_WARNING, lb_logtype,
		"lb: worker=%s next_hop=%s mac=%s claimed_by=%s %s\n",
		w == NULL ? "-" : w->spec.name,
		lb_address_format(&lb->neighbour[worker].next_hop, address, sizeof(address)),
		mac_text(lb->neighbour[worker].mac, old), mac_text(claimant, claimed),
		moved ? "moved=yes: the old MAC address does not answer"
		      : "moved=no: the old MAC address still answers; two stations use the IP "
			"address, or one forges");
}

static void resolve_deny_claim(struct lb *lb, unsigned int worker, uint32_t now_ms)
{
	struct neighbour *n = &lb->neighbour[worker];

	lcores_post(lb, lcores_any(lb), count_kept, NULL, 0);
	if (n->told_ms != 0 && now_ms - n->told_ms < TELL_AGAIN_MS)
		return;
	n->told_ms = now_ms | 1;
	resolve_log_claim(lb, worker, n->claim.mac, false);
}

/* Use an answer. The first one counts; a later one with another MAC address is a claim to verify.
 */
static void resolve_learn(struct lb *lb, uint16_t port, const struct neigh_message *message,
			  uint32_t now_ms)
{
	for (const struct worker *w = workers_next(lb->pool, NULL); w != NULL;
	     w = workers_next(lb->pool, w)) {
		struct neighbour *n = &lb->neighbour[w->number];

		if (!n->used || n->port != port || n->next_hop.family != message->family ||
		    memcmp(&n->next_hop.addr, &message->sender, sizeof(message->sender)) != 0)
			continue;
		if (!n->resolved) {
			resolve_set_mac(lb, w->number, message->sender_mac);
			continue;
		}
		switch (neigh_claim_hear(&n->claim, n->mac, message->sender_mac, now_ms)) {
		case NEIGH_HEARD_DENIED:
			resolve_deny_claim(lb, w->number, now_ms);
			/* fall through */
		case NEIGH_HEARD_KNOWN:
			n->doubtful = false;
			n->again_ms = 0;
			break;
		case NEIGH_HEARD_CLAIM:
			n->claim_lost = __atomic_load_n(&lb->punt_lost, __ATOMIC_RELAXED);
			break;
		case NEIGH_HEARD_NOTHING:
			break;
		}
	}
}

/* Proceed with a claim: ask the old holder, or accept it. */
static void resolve_proceed_claim(struct lb *lb, unsigned int worker, uint32_t now_ms)
{
	struct neighbour *n = &lb->neighbour[worker];
	uint32_t lost = __atomic_load_n(&lb->punt_lost, __ATOMIC_RELAXED);

	/* Packets were lost, the old holder's answer perhaps among them: wait again, so that a
	 * flood cannot move an address. */
	if (n->claim_lost != lost) {
		n->claim_lost = lost;
		n->claim.since = now_ms;
	}
	switch (neigh_claim_due(&n->claim, now_ms, lb->config.neighbour_probe_ms)) {
	case NEIGH_DUE_PROBE:
		lcores_post(lb, lcores_any(lb), resolve_probe, n, sizeof(*n));
		break;
	case NEIGH_DUE_MOVE:
		resolve_log_claim(lb, worker, n->claim.mac, true);
		resolve_set_mac(lb, worker, n->claim.mac);
		break;
	case NEIGH_DUE_NOTHING:
		break;
	}
}

static void take_answer(struct lb *lb, struct rte_mbuf *m, uint32_t now_ms)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	uint16_t index = lb->port_index[m->port];
	struct flow_key key;
	struct parsed p;
	struct neigh_message message;

	parse_frame(frame, m->data_len, lb->port[index].mac, 0, &p, &key);
	if ((p.kind == PARSE_ARP || p.kind == PARSE_ND) &&
	    neigh_parse(p.kind == PARSE_ARP ? RTE_ETHER_TYPE_ARP : RTE_ETHER_TYPE_IPV6,
			frame + p.ip_offset, m->data_len - p.ip_offset, &message) &&
	    neigh_gives_mac(&message))
		resolve_learn(lb, index, &message, now_ms);
	rte_pktmbuf_free(m);
}

void resolve_doubt(struct lb *lb, uint16_t worker, uint64_t doubts)
{
	struct neighbour *n = &lb->neighbour[worker];

	n->doubtful |= doubts > n->doubts;
	n->doubts = doubts;
}

struct announcement {
	uint16_t port;
	struct lb_address address;
};

static void announce(void *lcore, void *argument)
{
	struct lcore *lc = lcore;
	const struct announcement *a = argument;
	const uint8_t *mac = lc->lb->port[a->port].mac;
	struct rte_mbuf *m = packet_for(lc, a->port);

	if (m != NULL)
		send_on(lc, a->port, m,
			neigh_announcement_build(rte_pktmbuf_mtod(m, uint8_t *), a->address.family,
						 &a->address.addr, mac));
}

static void announce_on(struct lb *lb, uint16_t port, const struct lb_address *address)
{
	struct announcement a = {.port = port, .address = *address};

	lcores_post(lb, lcores_any(lb), announce, &a, sizeof(a));
}

void resolve_announce_vip(struct lb *lb, const struct lb_address *vip)
{
	for (unsigned int i = 0; i < lb->config.n_ports; i++)
		if (lb->config.port[i].clients)
			announce_on(lb, i, vip);
}

static void announce_all_on(struct lb *lb, uint16_t port)
{
	const struct lb_config *config = &lb->config;

	if (config->port[port].fabric)
		announce_on(lb, port, &config->port[port].address);
	for (unsigned int k = 0; config->port[port].clients && k < config->n_services; k++)
		if (lb_service_used(&config->service[k]))
			announce_on(lb, port, &config->service[k].vip);
}

/* Announce addresses again on ports that came up: announcements without a link were lost. */
static void resolve_check_cables(struct lb *lb, uint32_t now_ms)
{
	bool first = lb->cables_ms == 0;

	if (!first && now_ms - lb->cables_ms < CABLES_MS)
		return;
	lb->cables_ms = now_ms | 1;
	for (unsigned int i = 0; i < lb->config.n_ports; i++) {
		bool up = lb->verbs[i] != NULL || port_up(&lb->port[i]);

		if (up && !lb->cable[i] && lb->verbs[i] == NULL)
			announce_all_on(lb, i);
		if (up != lb->cable[i] || first)
			LB_LOG(NOTICE, "port=%s link=%s", lb->config.port[i].name,
			       up ? "up" : "down");
		lb->cable[i] = up;
	}
}

void resolve_tick(struct lb *lb, uint32_t now_ms)
{
	unsigned int asker = lcores_any(lb);
	struct rte_mbuf *m;

	resolve_check_cables(lb, now_ms);
	while (rte_ring_sc_dequeue(lb->punt, (void **)&m) == 0)
		take_answer(lb, m, now_ms);
	for (const struct worker *w = workers_next(lb->pool, NULL); w != NULL;
	     w = workers_next(lb->pool, w)) {
		struct neighbour *n = &lb->neighbour[w->number];

		if (n->used && n->claim.open)
			resolve_proceed_claim(lb, w->number, now_ms);
		if (!n->used || (n->resolved && !n->doubtful) ||
		    (n->asked_ms != 0 && now_ms - n->asked_ms < n->again_ms))
			continue;
		/* Questions that nobody sends would only take the place of other calls. */
		if (lb_lcore_stands_ms(lb, asker) > 0)
			continue;
		n->again_ms = RTE_MIN(RTE_MAX(2 * n->again_ms, ASK_FIRST_MS), ASK_AGAIN_MS);
		n->asked_ms = now_ms | 1;
		lcores_post(lb, asker, resolve_ask, n, sizeof(*n));
	}
}
