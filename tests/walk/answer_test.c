/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that the lcore answers itself (ARP, neighbour discovery, pings), and ICMP errors. */
#include <arpa/inet.h>

#include <rte_ethdev.h>

#include "packet/checksum.h"
#include "runtime/neigh.h"
#include "worker.h"
#include "lb.h"

static struct in6_addr address(const char *text)
{
	struct lb_address a;

	walk_need(lb_address_parse(text, &a) == 0);
	return a.addr;
}

/* Sends a request for <target>'s MAC address. */
static void ask_for(struct walk *w, unsigned int port, uint8_t family, const char *target,
		    uint16_t vlan)
{
	struct in6_addr from = address(family == 4 ? "192.0.2.7" : "2001:db8::7");
	struct in6_addr to = address(target);
	uint8_t frame[NEIGH_FRAME_MAX + 4];
	uint32_t length = neigh_request_build(frame, family, &to, &from, packet_their_mac);

	if (vlan != 0) {
		memmove(frame + 16, frame + 12, length - 12);
		memcpy(frame + 12, (uint8_t[]){0x81, 0, vlan >> 8, vlan}, 4);
		length += 4;
	}
	walk_send_frame(w, port, 0, frame, length);
	walk_turn(w);
}

struct question {
	const char *name;
	unsigned int port; /* 0 clients, 1 fabric */
	uint8_t family;
	const char *target;
	uint16_t vlan;
	enum lb_drop drop; /* LB_DROP_NONE: the lcore answers it */
};

static const struct question questions[] = {
	{"VIP", 0, 4, PACKET_DESTINATION4, 0, LB_DROP_NONE},
	{"VIP behind a VLAN tag", 0, 4, PACKET_DESTINATION4, 7, LB_DROP_NONE},
	{"IPv6 VIP", 0, 6, PACKET_DESTINATION6, 0, LB_DROP_NONE},
	{"IPv6 VIP behind a VLAN tag", 0, 6, PACKET_DESTINATION6, 7, LB_DROP_NONE},
	{"another address", 0, 4, "198.51.100.2", 0, LB_DROP_ARP_OTHER},
	{"another IPv6 address", 0, 6, "2001:db8:ffff::2", 0, LB_DROP_ND_OTHER},
	{"the fabric's address, on the clients' port", 0, 4, "10.9.0.1", 0, LB_DROP_ARP_OTHER},
};

WALK(questions_for_our_addresses_are_answered_where_they_live)
{
	struct walk *w = walk_create(NULL);
	static struct walk_frame f;

	for (size_t i = 0; i < RTE_DIM(questions); i++) {
		const struct question *q = &questions[i];
		struct neigh_message m;

		walk_context("%s", q->name);
		ask_for(w, q->port, q->family, q->target, q->vlan);
		if (q->drop != LB_DROP_NONE) {
			walk_expect_drops(w, {q->drop, 1});
			walk_expect_silence(w, q->port);
			continue;
		}
		walk_expect_no_drops(w);
		if (!walk_take(w, q->port, &f)) {
			walk_expect(false, "no answer");
			continue;
		}
		walk_expect_eq(f.kind, q->family == 4 ? WALK_ARP : WALK_ND);
		walk_expect_eq(f.tci, q->vlan);
		walk_expect(memcmp(f.destination_mac, packet_their_mac, 6) == 0);
		if (q->family == 6) {
			walk_expect(f.sums_hold);
			continue;
		}
		walk_expect(neigh_parse(0x0806, f.payload, f.n_payload, &m) &&
			    m.kind == NEIGH_REPLY && memcmp(m.sender_mac, packet_our_mac, 6) == 0);
	}
	walk_destroy(w);
}

WALK(an_answer_that_nobody_asked_for_moves_no_client)
{
	struct walk *w = walk_create(NULL);
	struct neigh_message question = {.kind = NEIGH_REQUEST,
					 .family = 4,
					 .target = address("192.0.2.9"),
					 .sender = address(PACKET_DESTINATION4)};
	uint8_t frame[NEIGH_FRAME_MAX];

	memcpy(question.sender_mac, packet_our_mac, 6);
	walk_send_frame(w, 0, 0, frame, neigh_reply_build(frame, &question, packet_their_mac));
	walk_turn(w);
	walk_expect_drops(w, {LB_DROP_ARP_OTHER, 1});
	walk_destroy(w);
}

/* --- cables ---------------------------------------------------------------------------------- */

/* Returns the number of packets sent since there were <*before>. */
static uint64_t sent_since(struct walk *w, uint64_t *before)
{
	uint64_t n = w->lb->lcore[0]->stats.packets_out - *before;

	*before += n;
	return n;
}

/* Expects one announcement of each family on the clients' port, with our MAC address. */
static void expect_announcements(struct walk *w)
{
	static struct walk_frame f;
	unsigned int said4 = 0, said6 = 0;

	while (walk_take(w, 0, &f)) {
		walk_expect(memcmp(f.source_mac, packet_our_mac, 6) == 0);
		said4 += f.kind == WALK_ARP;
		said6 += f.kind == WALK_ND;
	}
	walk_expect_eq(said4, 1);
	walk_expect_eq(said6, 1);
}

/*
 * The neighbours may have missed our announcements while a port had no link: real ports have none
 * in the first seconds.
 */
WALK(addresses_are_announced_when_a_cable_is_plugged_in)
{
	static const unsigned int addresses[] = {2, 1};
	struct walk *w = walk_create(NULL);
	uint64_t sent = 0;

	sent_since(w, &sent);
	for (unsigned int port = 0; port < 2; port++) {
		walk_context("port %u", port);
		walk_expect(lb_port_up(w->lb, port));
		walk_need(rte_eth_dev_set_link_down(w->nic[port].port) == 0);
		walk_pass(w, 500);
		walk_expect(!lb_port_up(w->lb, port));
		walk_expect_eq(sent_since(w, &sent), 0);
		walk_need(rte_eth_dev_set_link_up(w->nic[port].port) == 0);
		walk_pass(w, 500);
		walk_expect(lb_port_up(w->lb, port));
		walk_expect_eq(sent_since(w, &sent), addresses[port]);
	}
	expect_announcements(w);
	walk_destroy(w);
}

/* --- pings --------------------------------------------------------------------------------------
 */

static void one_ping(struct walk *w, const char *name, struct packet p, enum lb_drop drop)
{
	static struct walk_frame f;
	uint8_t bytes[PACKET_MAX];
	uint32_t length = packet_build(&p, bytes);
	uint32_t icmp = (p.tagged ? 18 : 14) + (p.family == 4 ? 20 + p.options : 40);

	walk_context("%s", name);
	walk_send(w, 0, &p);
	walk_turn(w);
	if (drop != LB_DROP_NONE) {
		walk_expect_drops(w, {drop, 1});
		walk_expect_silence(w, 0);
		return;
	}
	walk_expect_no_drops(w);
	if (!walk_take(w, 0, &f)) {
		walk_expect(false, "no answer");
		return;
	}
	/* walk_parse() takes no options. */
	walk_expect(p.options > 0 || (f.kind == WALK_ICMP && f.sums_hold));
	walk_expect_eq(f.length, length);
	walk_expect_eq(f.bytes[icmp], p.family == 4 ? 0 : 129);
	walk_expect(memcmp(f.bytes + icmp + 4, bytes + icmp + 4, length - icmp - 4) == 0);
	walk_expect(memcmp(f.destination_mac, packet_their_mac, 6) == 0);
}

WALK(pings_to_our_addresses_are_answered)
{
	struct walk *w = walk_create(NULL);
	struct packet p4 = {.family = 4, .icmp = true, .icmp_type = 8, .payload = 56};
	struct packet p6 = {.family = 6, .icmp = true, .icmp_type = 128, .payload = 56};
	struct packet p;

	one_ping(w, "IPv4", p4, LB_DROP_NONE);
	one_ping(w, "IPv6", p6, LB_DROP_NONE);
	p = p4;
	p.tagged = true;
	p.tci = 9;
	one_ping(w, "tagged", p, LB_DROP_NONE);
	p = p4;
	p.payload = 0;
	one_ping(w, "empty", p, LB_DROP_NONE);
	p.payload = 1472;
	one_ping(w, "long", p, LB_DROP_NONE);
	p.payload = 7;
	one_ping(w, "odd", p, LB_DROP_NONE);
	p.options = 8;
	one_ping(w, "with options", p, LB_DROP_NONE);
	p = p4;
	p.destination = "198.51.100.77";
	one_ping(w, "another address", p, LB_DROP_NOT_OUR_ADDRESS);
	p = p4;
	p.l4_sum = SUM_WRONG;
	one_ping(w, "wrong checksum", p, LB_DROP_ICMP_CHECKSUM);
	p = p6;
	p.l4_sum = SUM_WRONG;
	one_ping(w, "wrong IPv6 checksum", p, LB_DROP_ICMP_CHECKSUM);
	p = p4;
	p.icmp_type = 13;
	one_ping(w, "a timestamp request", p, LB_DROP_ICMP_OTHER);
	p = p4;
	p.icmp_type = 0;
	one_ping(w, "an answer", p, LB_DROP_ICMP_OTHER);
	walk_destroy(w);
}

/* --- errors about replies -----------------------------------------------------------------------
 */

static const struct packet ask = {.family = 4, .payload = 100};

/* The client's router reports that our reply, to the client of <to>, did not arrive. */
static void error_about(struct walk *w, unsigned int port, const struct packet *to, uint8_t type,
			uint8_t code)
{
	struct packet reply = *to, error = {.family = to->family,
					    .icmp = true,
					    .icmp_type = type,
					    .icmp_code = code,
					    .source = "192.0.2.254"};
	uint8_t bytes[PACKET_MAX];
	bool v4 = to->family == 4;
	uint32_t length;

	reply.source = v4 ? PACKET_DESTINATION4 : PACKET_DESTINATION6;
	reply.destination = to->source != NULL ? to->source : v4 ? PACKET_SOURCE4 : PACKET_SOURCE6;
	reply.source_port = PACKET_DESTINATION_PORT;
	reply.destination_port = to->source_port != 0 ? to->source_port : PACKET_SOURCE_PORT;
	reply.tagged = false;
	length = packet_build(&reply, bytes);
	if (!v4)
		error.source = "2001:db8::254";
	error.bytes = bytes + 14;
	error.n_bytes = RTE_MIN(length - 14, 60u);
	walk_send(w, port, &error);
	walk_settle(w);
}

struct error {
	const char *name;
	uint8_t family, type, code;
	enum lb_drop drop;
};

static const struct error errors[] = {
	{"port unreachable", 4, 3, 3, LB_DROP_ICMP_PORT},
	{"host unreachable", 4, 3, 1, LB_DROP_ICMP_UNREACHABLE},
	{"fragmentation needed", 4, 3, 4, LB_DROP_ICMP_TOO_BIG},
	{"time exceeded", 4, 11, 0, LB_DROP_ICMP_TIME},
	{"parameter problem", 4, 12, 0, LB_DROP_ICMP_PARAMETER},
	{"IPv6: port unreachable", 6, 1, 4, LB_DROP_ICMP_PORT},
	{"IPv6: no route", 6, 1, 0, LB_DROP_ICMP_UNREACHABLE},
	{"IPv6: packet too big", 6, 2, 0, LB_DROP_ICMP_TOO_BIG},
	{"IPv6: time exceeded", 6, 3, 0, LB_DROP_ICMP_TIME},
	{"IPv6: parameter problem", 6, 4, 0, LB_DROP_ICMP_PARAMETER},
};

WALK(errors_about_replies_are_counted_by_what_they_say)
{
	struct walk *w = walk_create(NULL);
	struct packet ask6 = {.family = 6, .payload = 100};

	walk_worker(w, NULL);
	walk_send(w, 0, &ask);
	walk_send(w, 0, &ask6);
	walk_settle(w);
	walk_forget(w, 0);
	for (size_t i = 0; i < RTE_DIM(errors); i++) {
		walk_context("%s", errors[i].name);
		error_about(w, 0, errors[i].family == 4 ? &ask : &ask6, errors[i].type,
			    errors[i].code);
		walk_expect_drops(w, {errors[i].drop, 1});
		walk_expect_silence(w, 0);
		walk_expect(walk_flow(w, &ask) != NULL && walk_flow(w, &ask6) != NULL);
	}
	walk_destroy(w);
}

WALK(an_error_about_a_reply_that_was_never_sent)
{
	struct walk *w = walk_create(NULL);

	error_about(w, 0, &ask, 3, 3);
	walk_expect_drops(w, {LB_DROP_ICMP_NO_FLOW, 1});
	walk_destroy(w);
}

WALK(an_error_finds_its_flow_on_another_lcore)
{
	for (unsigned int queues = 1; queues <= 3; queues += 2) {
		struct walk *w = walk_create(&(struct walk_params){.lcores = 3, .queues = queues});
		struct packet p = ask;

		walk_worker(w, NULL);
		for (unsigned int i = 0; i < 12; i++) {
			p.source_port = 2000 + i;
			walk_send_on(w, 0, i % queues, &p);
		}
		walk_settle(w);
		walk_expect_eq(walk_count(w, 0), 12);
		for (unsigned int i = 0; i < 12; i++) {
			p.source_port = 2000 + i;
			error_about(w, 0, &p, 3, 3);
		}
		walk_expect_drops(w, {LB_DROP_ICMP_PORT, 12});
		walk_destroy(w);
	}
}

WALK(an_error_from_the_fabric_is_nobodys)
{
	struct walk *w = walk_create(NULL);

	walk_worker(w, NULL);
	walk_send(w, 0, &ask);
	walk_settle(w);
	walk_forget(w, 0);
	w->lb->port[1].mac[4] = 0;
	error_about(w, 1, &ask, 3, 3);
	w->lb->port[1].mac[4] = 0xfa;
	walk_expect_drops(w, {LB_DROP_ICMP_OTHER, 1});
	walk_destroy(w);
}
