/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stranger on the wire, a client or another host of the fabric, forges packets of a worker:
 * they change nothing. A worker that really moved is found again.
 */
#include "runtime/neigh.h"
#include "worker.h"
#include "lb.h"

static const struct packet ask = {.family = 4, .payload = 100};
static const uint8_t stranger_mac[6] = {2, 0, 0, 0, 0x66, 0x66};
static const uint8_t other_mac[6] = {2, 0, 0, 0, 0x77, 0x77};

static struct link *link_of(const struct walk_worker *v, unsigned int lcore)
{
	return v->walk->lb->lcore[lcore]->link[walk_worker_of(v)->number];
}

static bool reached_at(const struct walk_worker *v, const uint8_t mac[6])
{
	for (unsigned int i = 0; i < v->walk->lb->n_lcores; i++)
		if (memcmp(link_of(v, i)->path.header, mac, 6) != 0)
			return false;
	return true;
}

/* The worker's path, from another station; all but the MAC address is right. */
static struct roce_path forged_path(const struct walk_worker *v)
{
	struct roce_path path = v->link[0].path;

	memcpy(path.header + 6, stranger_mac, 6);
	return path;
}

static void expect_served(struct walk *w)
{
	walk_send(w, 0, &ask);
	walk_settle(w);
	walk_expect_echo(w, 0, &ask);
}

/* --- RoCE ------------------------------------------------------------------------------------ */

static uint32_t forge_cnp(uint8_t *frame, const struct walk_worker *v)
{
	struct roce_path path = forged_path(v);

	return roce_cnp_build(frame, &path);
}

/* The PSN is that of a WRITE on its way, so only the MAC address is wrong. */
static uint32_t forge_ack(uint8_t *frame, const struct walk_worker *v)
{
	struct roce_path path = forged_path(v);

	return roce_ack_build(frame, &path, link_of(v, 0)->requester.una_psn, ROCE_CREDITS_UNUSED,
			      1);
}

static uint32_t forge_nak(uint8_t *frame, const struct walk_worker *v)
{
	struct roce_path path = forged_path(v);

	return roce_ack_build(frame, &path, link_of(v, 0)->requester.una_psn,
			      ROCE_NAK_REMOTE_ACCESS, 1);
}

static const struct {
	const char *name;
	uint32_t (*forge)(uint8_t *frame, const struct walk_worker *v);
} forgeries[] = {{"CNP", forge_cnp}, {"ACK", forge_ack}, {"NAK", forge_nak}};

static void expect_untouched(const struct walk_worker *v, uint64_t una)
{
	const struct link *link = link_of(v, 0);

	walk_expect_eq(link->requester.una_psn, una);
	walk_expect_eq(link->requester.error, REQUESTER_OK);
	walk_expect_eq(link->requester.stats.notifications, 0);
}

WALK(what_another_host_forges_of_a_queue_pair)
{
	uint8_t frame[WALK_FRAME_MAX];

	for (unsigned int i = 0; i < RTE_DIM(forgeries); i++) {
		struct walk *w = walk_create(NULL);
		struct walk_worker *v = walk_worker(w, NULL);
		uint32_t una;

		walk_context("%s", forgeries[i].name);
		v->acknowledges = v->answers = false;
		walk_send(w, 0, &ask);
		walk_turn(w);
		una = link_of(v, 0)->requester.una_psn;
		walk_send_frame(w, w->fabric, 0, frame, forgeries[i].forge(frame, v));
		walk_turn_lcore(w, 0);
		walk_expect_drops(w, {LB_DROP_ROCE_MAC, 1});
		expect_untouched(v, una);
		v->acknowledges = true;
		walk_answer_all(v);
		walk_pass(w, 100); /* what was not acknowledged is sent again */
		walk_expect_echo(w, 0, &ask);
		walk_destroy(w);
	}
	walk_context("%s", "");
}

WALK(what_a_client_forges_of_a_queue_pair)
{
	uint8_t frame[WALK_FRAME_MAX];
	struct walk *w = walk_create(NULL);
	struct walk_worker *v = walk_worker(w, NULL);
	uint32_t una = link_of(v, 0)->requester.una_psn;

	for (unsigned int i = 0; i < RTE_DIM(forgeries); i++) {
		uint32_t length = forgeries[i].forge(frame, v);

		walk_context("%s", forgeries[i].name);
		memcpy(frame, w->lb->port[0].mac, 6);
		walk_send_frame(w, 0, 0, frame, length);
		walk_turn_lcore(w, 0);
		walk_expect_drops(w, {LB_DROP_ROCE_CLIENT_PORT, 1});
		expect_untouched(v, una);
	}
	walk_context("%s", "");
	walk_destroy(w);
}

/* A router's packets may come from any of its MAC addresses. */
WALK(a_worker_behind_a_gateway_has_no_mac_address)
{
	static const char ports[] = "  - {name: clients0, device: net_ring_clients0, roles: "
				    "[clients]}\n"
				    "  - {name: fabric, device: net_ring_fabric, roles: [fabric], "
				    "address: 10.9.0.1/24, gateway: 10.9.0.254}\n";
	struct walk *w = walk_create(&(struct walk_params){.ports = ports});
	struct walk_worker *v =
		walk_worker_register(w, &(struct walk_worker_params){.address = "10.77.0.5"});
	struct neigh_message question = {.family = 4, .sender = w->config.port[1].address.addr};
	uint8_t frame[WALK_FRAME_MAX];

	walk_need(v != NULL, "%s", w->error);
	question.target = w->config.port[1].gateway.addr;
	memcpy(question.sender_mac, w->lb->port[1].mac, 6);
	walk_send_frame(w, 1, 0, frame, neigh_reply_build(frame, &question, v->mac));
	walk_need(walk_worker_start(v), "it does not start");
	expect_served(w);
	memcpy(v->link[0].path.header + 6, stranger_mac, 6);
	expect_served(w);
	walk_expect_no_drops(w);
	walk_destroy(w);
}

/* One number reveals nothing of the others: workers come and go, and all steps between numbers
 * differ. */
WALK(queue_pair_numbers_cannot_be_guessed)
{
	struct walk *w = walk_create(&(struct walk_params){.lcores = 2});
	uint32_t qpn[2][40], same = 0;

	for (unsigned int i = 0; i < 40; i++) {
		struct walk_worker *v = walk_worker_register(w, NULL);

		for (unsigned int lcore = 0; lcore < 2; lcore++) {
			qpn[lcore][i] = v->link[lcore].info.qpn;
			walk_expect_eq(LINK_QPN_LCORE(qpn[lcore][i]), lcore);
		}
		if (i % 2 == 0)
			lb_worker_remove(w->lb, walk_worker_of(v), "it goes");
	}
	for (unsigned int i = 2; i < 40; i++) {
		uint32_t step = qpn[0][i] - qpn[0][i - 1];

		same += step == qpn[0][i - 1] - qpn[0][i - 2];
		same += (qpn[0][i] & LINK_TAG_MASK) == (qpn[1][i] & LINK_TAG_MASK);
	}
	walk_expect(same <= 1, "%u of 76 can be told from another", same);
	walk_destroy(w);
}

/* --- ARP and neighbour discovery ---------------------------------------------------------------
 */

/* The ways to claim that an address has moved. */
enum saying { SAID_REPLY, SAID_GRATUITOUS, SAID_UNASKED };

static uint32_t say(uint8_t *frame, const struct walk_worker *v, enum saying how,
		    const uint8_t mac[6])
{
	const struct lb_port_config *port = &v->walk->config.port[v->walk->fabric];
	struct neigh_message question = {.family = v->address.family,
					 .target = v->address.addr,
					 .sender = port->address.addr};
	uint32_t length;

	memcpy(question.sender_mac, v->walk->lb->port[v->walk->fabric].mac, 6);
	if (how == SAID_REPLY)
		return neigh_reply_build(frame, &question, mac);
	length = neigh_announcement_build(frame, v->address.family, &v->address.addr, mac);
	if (how == SAID_UNASKED && v->address.family == 4)
		frame[21] = 2; /* ARP operation: a reply without a request */
	return length;
}

static const struct {
	const char *name;
	bool v6;
	enum saying how;
} sayings[] = {
	{"ARP reply", false, SAID_REPLY},
	{"gratuitous ARP request", false, SAID_GRATUITOUS},
	{"gratuitous ARP reply", false, SAID_UNASKED},
	{"solicited advertisement", true, SAID_REPLY},
	{"unsolicited advertisement", true, SAID_UNASKED},
};

WALK(another_host_claims_a_workers_address)
{
	uint8_t frame[NEIGH_FRAME_MAX];

	for (unsigned int i = 0; i < RTE_DIM(sayings); i++) {
		struct walk *w = walk_create(&(struct walk_params){.fabric6 = sayings[i].v6});
		struct walk_worker *v = walk_worker(w, NULL);

		walk_context("%s", sayings[i].name);
		for (unsigned int times = 1; times <= 3; times++) {
			walk_send_frame(w, w->fabric, 0, frame,
					say(frame, v, sayings[i].how, stranger_mac));
			walk_turn(w);
			walk_tick(w);
			walk_expect(reached_at(v, v->mac));
			walk_pass(w, 300);
			walk_expect(reached_at(v, v->mac));
			walk_expect_drops(w, {LB_DROP_NEIGHBOUR_KEPT, 1});
		}
		expect_served(w);
		walk_destroy(w);
	}
	walk_context("%s", "");
}

/* The worker's address goes to another MAC address, as with the NICs of a bond. */
static void move(struct walk_worker *v, const uint8_t mac[6])
{
	memcpy(v->mac, mac, 6);
	for (unsigned int i = 0; i < v->walk->lb->n_lcores; i++)
		memcpy(v->link[i].path.header + 6, mac, 6);
}

/* Sends again, from the new MAC address, what was not taken. */
static void resend(struct walk_worker *v)
{
	for (unsigned int i = 0; i < v->walk->lb->n_lcores; i++)
		v->link[i].psn = link_of(v, i)->responder.epsn;
}

WALK(a_worker_that_moved_and_says_so)
{
	uint8_t frame[NEIGH_FRAME_MAX];

	for (unsigned int i = 0; i < RTE_DIM(sayings); i++) {
		struct walk *w =
			walk_create(&(struct walk_params){.fabric6 = sayings[i].v6, .lcores = 2});
		struct walk_worker *v = walk_worker(w, NULL);

		walk_context("%s", sayings[i].name);
		move(v, other_mac);
		walk_send_frame(w, w->fabric, 0, frame, say(frame, v, sayings[i].how, other_mac));
		walk_pass(w, 150);
		walk_expect(reached_at(v, other_mac));
		walk_need(walk_worker_of(v) != NULL, "it was lost");
		resend(v);
		walk_pass(w, 150);
		expect_served(w);
		walk_destroy(w);
	}
	walk_context("%s", "");
}

WALK(a_worker_that_moved_without_a_word)
{
	struct walk *w = walk_create(NULL);
	struct walk_worker *v = walk_worker(w, NULL);

	move(v, other_mac);
	walk_pass(w, 300); /* its heartbeats come from a strange MAC address */
	walk_need(walk_worker_of(v) != NULL, "it was lost");
	walk_expect(reached_at(v, other_mac));
	walk_expect(walk_stats(w).drop[LB_DROP_ROCE_MAC] > 0);
	resend(v);
	walk_pass(w, 100);
	expect_served(w);
	walk_destroy(w);
}

/* The flood of forged answers may leave no room for the old holder's denials. */
WALK(a_flood_of_answers_moves_nobody)
{
	struct walk *w = walk_create(NULL);
	struct walk_worker *v = walk_worker(w, NULL);
	uint8_t frame[NEIGH_FRAME_MAX];

	v->resolves = false;
	for (unsigned int ms = 0; ms < 300; ms += 10) {
		walk_send_frame(w, w->fabric, 0, frame, say(frame, v, SAID_REPLY, stranger_mac));
		w->lb->punt_lost++;
		walk_pass(w, 10);
	}
	walk_expect(reached_at(v, v->mac));
	v->resolves = true;
	walk_pass(w, 200);
	walk_expect(reached_at(v, v->mac));
	walk_destroy(w);
}

WALK(a_client_claims_a_workers_address)
{
	struct walk *w = walk_create(NULL);
	struct walk_worker *v = walk_worker(w, NULL);
	uint8_t frame[NEIGH_FRAME_MAX];

	v->resolves = false;
	walk_send_frame(w, 0, 0, frame, say(frame, v, SAID_UNASKED, stranger_mac));
	walk_pass(w, 300);
	walk_expect(reached_at(v, v->mac));
	walk_expect_drops(w, {LB_DROP_ARP_OTHER, 1});
	walk_destroy(w);
}

/* The fabric has no VLANs: a sender with a tag is on another network. */
WALK(an_address_is_not_claimed_from_a_vlan)
{
	struct walk *w = walk_create(NULL);
	struct walk_worker *v = walk_worker(w, NULL);
	uint8_t frame[NEIGH_FRAME_MAX + 4];

	v->resolves = false;
	say(frame, v, SAID_UNASKED, stranger_mac);
	memmove(frame + 16, frame + 12, NEIGH_FRAME_MAX - 12);
	memcpy(frame + 12, (uint8_t[]){0x81, 0, 0, 77}, 4);
	walk_send_frame(w, w->fabric, 0, frame, 14 + 4 + 28);
	walk_pass(w, 300);
	walk_expect(reached_at(v, v->mac));
	walk_expect_drops(w, {LB_DROP_ARP_OTHER, 1});
	walk_destroy(w);
}

/* RFC 1812, 3.3.2: no station has a group's address. */
WALK(no_worker_is_at_a_groups_address)
{
	static const uint8_t group[2][6] = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, {0}};
	struct walk *w = walk_create(NULL);
	struct walk_worker *v = walk_worker_register(w, NULL);
	uint8_t frame[NEIGH_FRAME_MAX];

	for (unsigned int i = 0; i < 2; i++) {
		walk_send_frame(w, w->fabric, 0, frame, say(frame, v, SAID_UNASKED, group[i]));
		memcpy(frame + 6, stranger_mac, 6);
		walk_send_frame(w, w->fabric, 0, frame, 14 + 28);
	}
	walk_turn(w);
	walk_expect(walk_worker_start(v));
	walk_expect(reached_at(v, v->mac));
	expect_served(w);
	walk_destroy(w);
}
