/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients: each reply goes to the client that asked, among equal addresses and forged packets. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "worker.h"

#define VICTIM 10 /* requests in flight */

static const struct packet ask = {.family = 4, .payload = 100, .tagged = true, .tci = 100};

/* --- replies that others want -------------------------------------------------------------------
 */

/* The packets of an attacker, all from the victim's address and port. */
static const struct {
	const char *name;
	unsigned int port;
	struct packet packet;
} attacks[] = {
	{"another VLAN", 0, {.family = 4, .tagged = true, .tci = 200}},
	{"no VLAN", 0, {.family = 4}},
	{"another port", 1, {.family = 4, .tagged = true, .tci = 100}},
	{"another station", 0, {.family = 4, .tagged = true, .tci = 100, .station = 0x66}},
	{"another priority", 0, {.family = 4, .tagged = true, .tci = 0xe000 | 100}},
};

/* Empty, one byte, as much as a request, more than may be. */
static const uint16_t sizes[] = {0, 1, 100, 1480};

/* Returns how many of the frames that came out of the port go back to <packet>'s source. */
static unsigned int count_for(const struct walk_frame *frames, unsigned int n,
			      const struct packet *packet)
{
	uint8_t station = packet->station != 0 ? packet->station : packet_their_mac[5];
	unsigned int count = 0;

	for (unsigned int i = 0; i < n; i++)
		count += frames[i].kind == WALK_UDP && frames[i].sums_hold &&
			 frames[i].destination_mac[5] == station &&
			 frames[i].tagged == packet->tagged && frames[i].tci == packet->tci &&
			 frames[i].n_payload == packet->payload && !frames[i].notice;
	return count;
}

#define FRAMES_MAX 32

/* Takes all frames that came out of the port. */
static unsigned int take_all(struct walk *w, unsigned int port, struct walk_frame *frames)
{
	unsigned int n = 0;

	while (n < FRAMES_MAX && walk_take(w, port, &frames[n]))
		n++;
	return n;
}

/*
 * The victim's requests wait at the worker, or half of them for a credit; then the attack comes.
 * Each client gets what it asked for, and the attacker gets no byte of the victim's.
 */
static void attack(struct walk *w, struct walk_worker *v, unsigned int i, uint16_t size)
{
	static struct walk_frame frames[FRAMES_MAX];
	struct packet packet = attacks[i].packet;
	bool answered = size > 0 && size <= 1472;
	unsigned int n;

	walk_context("%s, %u bytes", attacks[i].name, size);
	packet.payload = size;
	v->answers = false;
	for (int k = 0; k < VICTIM; k++)
		walk_send(w, 0, &ask);
	walk_settle(w);
	walk_send(w, attacks[i].port, &packet);
	walk_settle(w);
	walk_forget(w, attacks[i].port); /* the attacker's own notice */
	v->answers = true;
	walk_settle(w);
	n = take_all(w, 0, frames);
	walk_expect_eq(count_for(frames, n, &ask), VICTIM);
	walk_expect_eq(n, VICTIM + (answered && attacks[i].port == 0));
	if (attacks[i].port == 1)
		n = take_all(w, 1, frames);
	walk_expect_eq(count_for(frames, n, &packet), answered);
	walk_expect_silence(w, 1);
}

static void attack_all(const struct walk_params *params, uint32_t slots)
{
	for (unsigned int i = 0; i < RTE_DIM(attacks); i++)
		for (unsigned int k = 0; k < RTE_DIM(sizes); k++) {
			struct walk *w = walk_create(params);

			attack(w, walk_worker(w, &(struct walk_worker_params){.slots = slots}), i,
			       sizes[k]);
			walk_destroy(w);
		}
}

WALK(replies_in_flight_go_to_who_asked)
{
	attack_all(&(struct walk_params){.client_ports = 2}, 16);
}

WALK(replies_of_requests_that_wait_go_to_who_asked)
{
	attack_all(&(struct walk_params){.client_ports = 2}, 4);
}

/* Here only the station and the port tell them apart: the zone is the same. */
WALK(replies_go_to_who_asked_within_a_zone)
{
	attack_all(&(struct walk_params){.client_ports = 2,
					 .more = "zones: [{name: lan, ports: [clients0, clients1],"
						 " vlans: [0, 100, 200]}]\n"},
		   16);
}

WALK(notices_go_to_who_asked)
{
	for (unsigned int i = 0; i < RTE_DIM(attacks); i++) {
		struct walk *w = walk_create(&(struct walk_params){
			.client_ports = 2,
			.services = WALK_SERVICE("echo", 8000, "echo", ", request_timeout_ms: 50"),
			.more = "workers: {suspect_ms: 0}\n"});
		struct walk_worker *v = walk_worker(w, NULL);

		walk_context("%s", attacks[i].name);
		v->answers = false;
		for (int k = 0; k < VICTIM; k++)
			walk_send(w, 0, &ask);
		walk_settle(w);
		walk_pass(w, 30);
		walk_send(w, attacks[i].port, &attacks[i].packet);
		walk_pass(w, 30);
		for (int k = 0; k < VICTIM; k++)
			walk_expect_notice(w, 0, &ask, LB_NOTICE_TIMEOUT);
		walk_expect_silence(w, 0);
		walk_expect_silence(w, 1);
		walk_destroy(w);
	}
}

WALK(a_replayed_requests_reply_goes_to_who_asked)
{
	for (unsigned int i = 0; i < RTE_DIM(attacks); i++) {
		struct walk *w = walk_create(&(struct walk_params){
			.client_ports = 2,
			.services = WALK_SERVICE("echo", 8000, "echo", ", replay: 1")});
		struct walk_worker *a = walk_worker(w, NULL), *b;

		walk_context("%s", attacks[i].name);
		a->answers = false;
		walk_send(w, 0, &ask);
		walk_settle(w);
		b = walk_worker(w, NULL);
		walk_send(w, attacks[i].port, &attacks[i].packet);
		a->gone = true;
		walk_pass(w, 100);
		walk_expect_eq(b->answered, 1);
		walk_expect_echo(w, 0, &ask);
		walk_expect_silence(w, 0);
		walk_expect_silence(w, 1);
		walk_destroy(w);
	}
}

/* A sender that guesses the id of a request in the victim's flow ends it, but hears nothing of it.
 */
WALK(a_cancels_notice_goes_to_who_asked)
{
	static const char request[] = "db444251 01010000 4142434445464748 00000000 00000000 77";
	static const char cancel[] = "db444251 01020000 4142434445464748 00000000 00000000";
	struct packet victim = {.family = 4, .body = request};
	struct packet attacker = {.family = 4, .body = cancel, .station = 0x66};
	struct walk_frame f;
	struct walk *w = walk_create(&(struct walk_params){
		.services = WALK_SERVICE("echo", 8000, "echo", ", framing: tagged")});
	struct walk_worker *v = walk_worker(w, NULL);

	v->answers = false;
	walk_send(w, 0, &victim);
	walk_settle(w);
	walk_send(w, 0, &attacker);
	walk_settle(w);
	walk_need(walk_take(w, 0, &f));
	walk_expect(f.notice && f.code == LB_NOTICE_CANCELLED);
	walk_expect_eq(f.destination_mac[5], packet_their_mac[5]);
	walk_expect_silence(w, 0);
	walk_destroy(w);
}

/* --- zones --------------------------------------------------------------------------------------
 */

/* Both send in turn, from the same address and port, and each has a flow. */
static void expect_two_flows(struct walk *w, unsigned int port0, const struct packet *p0,
			     unsigned int port1, const struct packet *p1, unsigned int flows)
{
	static struct walk_frame frames[FRAMES_MAX];
	uint64_t live = 0;
	unsigned int n;

	for (int i = 0; i < 5; i++) {
		walk_send(w, port0, p0);
		walk_send(w, port1, p1);
	}
	walk_settle(w);
	n = take_all(w, port0, frames);
	walk_expect_eq(n, port0 == port1 ? 10 : 5);
	walk_expect_eq(count_for(frames, n, p0), 5);
	if (port0 != port1)
		n = take_all(w, port1, frames);
	walk_expect_eq(count_for(frames, n, p1), 5);
	for (unsigned int i = 0; i < w->lb->n_lcores; i++)
		live += conntrack_count(w->lb->lcore[i]->ct);
	walk_expect_eq(live, flows);
}

static const struct {
	const char *name, *zones;
	unsigned int port0, port1;
	uint16_t tci0, tci1;
	unsigned int flows;
} places[] = {
	{"two VLANs", "", 0, 0, 100, 101, 2},
	{"two VLANs on two ports", "", 0, 1, 100, 101, 2},
	{"one VLAN on two ports", "", 0, 1, 100, 100, 2},
	{"one VLAN, two priorities", "", 0, 0, 100, 0x6000 | 100, 1},
	{"two ports of a zone", "zones: [{name: lan, ports: [clients1, clients0]}]\n", 0, 1, 100,
	 100, 1},
	{"two ports of a zone, two VLANs", "zones: [{name: lan, ports: [clients1, clients0]}]\n", 0,
	 1, 100, 101, 2},
	{"two VLANs of a zone", "zones: [{name: lan, ports: [clients0], vlans: [100, 101]}]\n", 0,
	 0, 100, 101, 1},
	{"a VLAN of a zone and another",
	 "zones: [{name: lan, ports: [clients0], vlans: [100, 101]}]\n", 0, 0, 100, 102, 2},
};

/* Where a port has fewer queues than there are lcores, the receiver looks up the owner by the key.
 */
WALK(equal_addresses_of_different_zones_are_different_flows)
{
	for (unsigned int lcores = 1; lcores <= 2; lcores++)
		for (unsigned int i = 0; i < RTE_DIM(places); i++) {
			struct walk *w =
				walk_create(&(struct walk_params){.client_ports = 2,
								  .lcores = lcores,
								  .queues = 1,
								  .more = places[i].zones});
			struct packet p0 = ask, p1 = ask;

			walk_context("%s, %u lcores", places[i].name, lcores);
			walk_worker(w, NULL);
			p0.tci = places[i].tci0;
			p1.tci = places[i].tci1;
			expect_two_flows(w, places[i].port0, &p0, places[i].port1, &p1,
					 places[i].flows);
			walk_expect_no_drops(w);
			walk_destroy(w);
		}
}

/* The tag is in the descriptor where the port takes it off. */
WALK(datagrams_in_pieces_are_put_together_within_a_zone)
{
	struct walk *w = walk_create(&(struct walk_params){.client_ports = 2});
	struct packet whole = {.family = 4, .payload = 800, .tagged = true, .tci = 100};
	struct packet other = {.family = 4, .payload = 800, .tagged = true, .tci = 200};
	uint8_t frame[PACKET_MAX], piece[PACKET_MAX];
	uint32_t length = packet_build(&whole, frame), n;

	walk_worker(w, NULL);
	/* The first half in one VLAN, the second in another: no datagram. */
	n = packet_cut(frame, length, 0, 400, piece);
	walk_send_frame(w, 0, 0, piece, n);
	length = packet_build(&other, frame);
	n = packet_cut(frame, length, 400, 800, piece);
	walk_send_frame(w, 0, 0, piece, n);
	walk_settle(w);
	walk_expect_silence(w, 0);
	/* The other halves make two. */
	n = packet_cut(frame, length, 0, 400, piece);
	walk_send_frame(w, 0, 0, piece, n);
	walk_settle(w);
	walk_expect_echo(w, 0, &other);
	length = packet_build(&whole, frame);
	n = packet_cut(frame, length, 400, 800, piece);
	walk_send_frame(w, 0, 0, piece, n);
	walk_settle(w);
	walk_expect_echo(w, 0, &whole);
	walk_expect_no_drops(w);
	walk_destroy(w);
}

/* A host that sends the last piece by another port of the zone gets nothing there. */
WALK(a_datagram_in_pieces_is_answered_where_its_first_piece_came_from)
{
	struct walk *w = walk_create(&(struct walk_params){
		.client_ports = 2, .more = "zones: [{name: lan, ports: [clients0, clients1]}]\n"});
	struct packet whole = {.family = 4, .payload = 800, .tagged = true, .tci = 100};
	uint8_t frame[PACKET_MAX], piece[PACKET_MAX];
	uint32_t length = packet_build(&whole, frame), n;

	walk_worker(w, NULL);
	n = packet_cut(frame, length, 0, 400, piece);
	walk_send_frame(w, 0, 0, piece, n);
	n = packet_cut(frame, length, 400, 800, piece);
	walk_send_frame(w, 1, 0, piece, n);
	walk_settle(w);
	walk_expect_echo(w, 0, &whole);
	walk_expect_silence(w, 1);
	walk_destroy(w);
}

WALK(new_flows_of_a_source_are_counted_by_zone)
{
	struct walk *w = walk_create(&(struct walk_params){.more = "new_flows_per_source: 10\n"});

	walk_worker(w, NULL);
	for (uint16_t zone = 1; zone <= 2; zone++)
		for (uint16_t i = 0; i < 20; i++) {
			struct packet p = ask;

			p.tci = zone;
			p.source_port = 40000 + i;
			walk_send(w, 0, &p);
		}
	walk_settle(w);
	walk_expect_drops(w, {LB_DROP_SOURCE_LIMIT, 20});
	walk_expect_eq(walk_service_stats(w, 0).replies, 20);
	walk_destroy(w);
}

/* --- loops --------------------------------------------------------------------------------------
 */

static const struct {
	uint16_t hops; /* of the request; PACKET_HOPS_0: 0 */
	uint8_t back;  /* 0: it is dropped */
} hops[] = {
	{255, 64}, {128, 64}, {65, 64}, {64, 63}, {33, 32}, {2, 1}, {1, 0}, {PACKET_HOPS_0, 0},
};

WALK(what_goes_back_has_fewer_hops_left_than_what_came)
{
	struct walk *w = walk_create(NULL);
	struct walk_worker *v = walk_worker(w, NULL);

	for (unsigned int i = 0; i < 4 * RTE_DIM(hops); i++) {
		unsigned int row = i % RTE_DIM(hops);
		bool notice = i / RTE_DIM(hops) >= 2;
		struct packet p = {.family = i / RTE_DIM(hops) % 2 ? 6 : 4,
				   .payload = 50,
				   .hops = hops[row].hops};
		struct walk_frame f;

		walk_context("%u hops, IPv%u%s", hops[row].hops, p.family,
			     notice ? ", notice" : "");
		v->status = notice ? RING_ERROR : RING_OK;
		walk_send(w, 0, &p);
		walk_settle(w);
		if (hops[row].back == 0) {
			walk_expect_silence(w, 0);
			walk_expect_drops(w, {LB_DROP_LOOP, 1});
			continue;
		}
		walk_need(walk_take(w, 0, &f));
		walk_expect_eq(f.notice, notice);
		walk_expect_eq(f.hops, hops[row].back);
		walk_expect(f.sums_hold);
		walk_expect_no_drops(w);
	}
	walk_destroy(w);
}

/* The peer acts as another load balancer: it sends a reply with one hop less. */
WALK(what_goes_around_between_load_balancers_ends)
{
	struct walk *w = walk_create(NULL);
	struct packet p = {.family = 4,
			   .payload = 50,
			   .source = "203.0.113.9",
			   .source_port = 8000,
			   .hops = 255};
	unsigned int rounds = 0;
	struct walk_frame f;

	walk_worker(w, NULL);
	for (;; rounds++) {
		walk_send(w, 0, &p);
		walk_settle(w);
		if (!walk_take(w, 0, &f) || f.hops < 2)
			break;
		p.hops = f.hops - 1;
	}
	walk_expect(rounds <= 33, "%u", rounds);
	walk_destroy(w);
}

WALK(servers_that_answer_anything_are_not_answered)
{
	static const uint16_t ports[] = {1, 7, 19, 53, 123, 1023};
	struct walk *w = walk_create(NULL);
	struct packet p = {.family = 4, .payload = 50};

	walk_worker(w, NULL);
	for (unsigned int i = 0; i < RTE_DIM(ports); i++) {
		walk_context("port %u", ports[i]);
		p.source_port = ports[i];
		walk_send(w, 0, &p);
		walk_settle(w);
		walk_expect_silence(w, 0);
		walk_expect_drops(w, {LB_DROP_SOURCE_PORT, 1});
	}
	p.source_port = 1024;
	walk_send(w, 0, &p);
	walk_settle(w);
	walk_expect_echo(w, 0, &p);
	walk_expect_eq(conntrack_count(w->lb->lcore[0]->ct), 1);
	walk_destroy(w);
}

WALK(the_lowest_source_port_is_configured)
{
	struct walk *w = walk_create(&(struct walk_params){.more = "min_source_port: 7\n"});
	struct packet p = {.family = 6, .payload = 50, .source_port = 7};

	walk_worker(w, NULL);
	walk_send(w, 0, &p);
	walk_settle(w);
	walk_expect_echo(w, 0, &p);
	p.source_port = 6;
	walk_send(w, 0, &p);
	walk_settle(w);
	walk_expect_silence(w, 0);
	walk_expect_drops(w, {LB_DROP_SOURCE_PORT, 1});
	walk_destroy(w);
}

/* --- the cluster's secret -----------------------------------------------------------------------
 */

#define CLUSTER_FLOWS 10000

/* A load balancer's secret, the port of its clients, and the order in which its workers came. */
struct member {
	const char *secret; /* 64 digits; NULL: none */
	unsigned int port;
	bool reversed;
};

static void write_secret(const char *digits, char path[64])
{
	int fd;

	snprintf(path, 64, "/tmp/doorbell-secret-XXXXXX");
	fd = mkstemp(path); /* mode 600 */
	walk_need(fd >= 0 && write(fd, digits, strlen(digits)) == (ssize_t)strlen(digits));
	close(fd);
}

/* Finds the worker that each flow's request goes to. */
static void choose_all(const struct member *member, const char *service, uint8_t *chosen)
{
	static const char *const names[] = {"gpu-a", "gpu-b", "gpu-c"};
	struct walk_worker *worker[RTE_DIM(names)];
	char path[64] = "", more[160];
	struct packet p = {.family = 4, .payload = 20, .tagged = true, .tci = member->port};
	struct walk *w;

	if (member->secret != NULL) {
		write_secret(member->secret, path);
		snprintf(more, sizeof(more), "cluster_secret_file: %s\n", path);
	}
	w = walk_create(&(struct walk_params){.services = service,
					      .client_ports = 2,
					      .flows = 16384,
					      .more = member->secret != NULL ? more : NULL});
	for (unsigned int i = 0; i < RTE_DIM(names); i++) {
		unsigned int k = member->reversed ? RTE_DIM(names) - 1 - i : i;

		worker[k] = walk_worker(w, &(struct walk_worker_params){.name = names[k]});
	}
	for (unsigned int i = 0; i < CLUSTER_FLOWS; i++) {
		uint64_t before[RTE_DIM(names)];

		p.source_port = 2000 + i;
		for (unsigned int k = 0; k < RTE_DIM(names); k++)
			before[k] = worker[k]->answered;
		walk_send(w, member->port, &p);
		walk_settle(w);
		walk_forget(w, member->port);
		chosen[i] = UINT8_MAX;
		for (unsigned int k = 0; k < RTE_DIM(names); k++)
			if (worker[k]->answered != before[k])
				chosen[i] = k;
		walk_need(chosen[i] != UINT8_MAX);
	}
	walk_destroy(w);
	if (path[0] != '\0')
		unlink(path);
}

static unsigned int agreed(const struct member *a, const struct member *b, const char *service)
{
	static uint8_t by_a[CLUSTER_FLOWS], by_b[CLUSTER_FLOWS];
	unsigned int n = 0;

	choose_all(a, service, by_a);
	choose_all(b, service, by_b);
	for (unsigned int i = 0; i < CLUSTER_FLOWS; i++)
		n += by_a[i] == by_b[i];
	return n;
}

#define SECRET_A "0f1e2d3c4b5a69788796a5b4c3d2e1f0123456789abcdef00fedcba987654321\n"
#define SECRET_B "0f1e2d3c4b5a69788796a5b4c3d2e1f0123456789abcdef00fedcba987654322\n"

/* Each lb_create() draws its tables' seeds anew: the second is another load balancer, or a restart.
 */
WALK(load_balancers_of_a_cluster_choose_the_same_workers)
{
	static const struct member first = {SECRET_A, 0, false}, second = {SECRET_A, 1, true};

	walk_expect_eq(
		agreed(&first, &second, WALK_SERVICE("echo", 8000, "echo", ", policy: maglev")),
		CLUSTER_FLOWS);
	walk_expect_eq(
		agreed(&first, &second,
		       WALK_SERVICE("echo", 8000, "echo", ", policy: maglev, affinity: sticky")),
		CLUSTER_FLOWS);
}

WALK(load_balancers_without_a_common_secret_choose_others)
{
	static const struct member a = {SECRET_A}, b = {SECRET_B}, none = {NULL};
	const char *service = WALK_SERVICE("echo", 8000, "echo", ", policy: maglev");
	unsigned int n;

	n = agreed(&a, &b, service);
	walk_expect(n > CLUSTER_FLOWS / 4 && n < CLUSTER_FLOWS / 2, "%u", n);
	n = agreed(&none, &none, service);
	walk_expect(n > CLUSTER_FLOWS / 4 && n < CLUSTER_FLOWS / 2, "%u", n);
}

/* --- too large ----------------------------------------------------------------------------------
 */

static const struct {
	const char *name;
	struct packet in;
	enum lb_drop reason;
	bool told;
} too_large[] = {
	{"a byte too many", {.family = 4, .payload = 1473}, LB_DROP_REQUEST_TOO_LARGE, true},
	{"IPv6, a byte too many", {.family = 6, .payload = 1453}, LB_DROP_REQUEST_TOO_LARGE, true},
	{"the end is missing",
	 {.family = 4, .payload = 1000, .length = 600},
	 LB_DROP_TRUNCATED,
	 true},
	{"IPv6, the end is missing",
	 {.family = 6, .payload = 1000, .length = 600},
	 LB_DROP_TRUNCATED,
	 true},
	{"with a VLAN",
	 {.family = 4, .tagged = true, .tci = 7, .payload = 1000, .length = 600},
	 LB_DROP_TRUNCATED,
	 true},
	{"UDP says more than IP",
	 {.family = 4, .payload = 100, .udp_length = 1},
	 LB_DROP_UDP_LENGTH,
	 true},
	{"16 bytes came",
	 {.family = 4, .payload = 100, .length = 14 + 28 + 16},
	 LB_DROP_TRUNCATED,
	 true},
	{"15 bytes came",
	 {.family = 4, .payload = 100, .length = 14 + 28 + 15},
	 LB_DROP_TRUNCATED,
	 false},
	{"nothing came",
	 {.family = 4, .payload = 100, .length = 14 + 28},
	 LB_DROP_TRUNCATED,
	 false},
	{"half a UDP header",
	 {.family = 4, .payload = 100, .length = 14 + 24},
	 LB_DROP_TRUNCATED,
	 false},
	{"wrong IP checksum",
	 {.family = 4, .payload = 1000, .length = 600, .ip_sum = SUM_WRONG},
	 LB_DROP_TRUNCATED,
	 false},
	{"from port 7",
	 {.family = 4, .payload = 1000, .length = 600, .source_port = 7},
	 LB_DROP_TRUNCATED,
	 false},
	{"no hop left",
	 {.family = 4, .payload = 1000, .length = 600, .hops = 1},
	 LB_DROP_TRUNCATED,
	 false},
	{"no service",
	 {.family = 4, .payload = 1000, .length = 600, .destination_port = 1},
	 LB_DROP_TRUNCATED,
	 false},
	{"to another",
	 {.family = 4, .payload = 1000, .length = 600, .destination = "203.0.113.1"},
	 LB_DROP_TRUNCATED,
	 false},
	{"from a group",
	 {.family = 4, .payload = 1000, .length = 600, .source = "224.0.0.1"},
	 LB_DROP_TRUNCATED,
	 false},
};

WALK(what_is_too_large_gets_an_answer)
{
	struct walk *w = walk_create(NULL);

	walk_worker(w, NULL);
	for (unsigned int i = 0; i < RTE_DIM(too_large); i++) {
		struct packet whole = too_large[i].in;

		walk_context("%s", too_large[i].name);
		whole.length = 0;
		whole.udp_length = 0;
		walk_send(w, 0, &too_large[i].in);
		walk_settle(w);
		if (too_large[i].told)
			walk_expect_notice(w, 0, &whole, LB_NOTICE_TOO_LARGE);
		walk_expect_silence(w, 0);
		walk_expect_drops(w, {too_large[i].reason, 1});
	}
	walk_destroy(w);
}

/* Amplification: a notice is never longer than what it answers. */
WALK(a_notice_is_not_longer_than_what_is_too_large)
{
	struct walk *w = walk_create(&(struct walk_params){
		.services = WALK_SERVICE("echo", 8000, "echo", ", max_request: 2")});
	struct packet p = {.family = 4, .payload = 3};

	walk_worker(w, NULL);
	for (; p.payload <= 16; p.payload++) {
		walk_send(w, 0, &p);
		walk_settle(w);
		if (p.payload == 16)
			walk_expect_notice(w, 0, &p, LB_NOTICE_TOO_LARGE);
		walk_expect_silence(w, 0);
		walk_expect_drops(w, {LB_DROP_REQUEST_TOO_LARGE, 1});
	}
	walk_destroy(w);
}

#define LARGE  20000
#define PIECE  1480
#define PIECES ((LARGE + 8 + PIECE - 1) / PIECE)

/* Piece <i> of a datagram of 20,000 bytes. */
static void send_piece(struct walk *w, unsigned int i)
{
	bool last = i == PIECES - 1;
	struct packet p = {
		.family = 4, .payload = 1472, .fragment = (last ? 0 : 0x2000) | i * PIECE / 8};
	uint8_t frame[PACKET_MAX];
	uint32_t length = packet_build(&p, frame);

	walk_send_frame(w, 0, 0, frame, length);
}

static void expect_one_notice(struct walk *w)
{
	struct walk_frame f;

	walk_settle(w);
	walk_need(walk_take(w, 0, &f));
	walk_expect(f.notice && f.code == LB_NOTICE_TOO_LARGE && f.sums_hold);
	walk_expect_eq(f.destination_port, PACKET_SOURCE_PORT);
	walk_expect_eq(f.source_port, PACKET_DESTINATION_PORT);
	walk_expect_silence(w, 0);
	walk_expect_drops(w, {LB_DROP_FRAGMENT_TOO_LARGE, PIECES});
	walk_destroy(w);
}

WALK(a_datagram_in_pieces_that_is_too_large_gets_one_answer)
{
	struct walk *w = walk_create(NULL);

	for (unsigned int i = 0; i < PIECES; i++)
		send_piece(w, i);
	expect_one_notice(w);
}

WALK(also_when_its_first_piece_comes_last)
{
	struct walk *w = walk_create(NULL);

	for (unsigned int i = PIECES; i-- > 0;)
		send_piece(w, i);
	expect_one_notice(w);
}

WALK(a_source_gets_so_many_notices_about_what_is_too_large)
{
	struct walk *w = walk_create(&(struct walk_params){.more = "notices_per_source: 5\n"});
	struct packet p = {.family = 4, .payload = 1473};

	for (int i = 0; i < 20; i++)
		walk_send(w, 0, &p);
	walk_settle(w);
	walk_expect_eq(walk_count(w, 0), 5);
	walk_expect_drops(w, {LB_DROP_REQUEST_TOO_LARGE, 20}, {LB_DROP_NOTICE_LIMIT, 15});
	walk_forget(w, 0);
	walk_jump(w, 1000);
	for (int i = 0; i < 20; i++)
		walk_send(w, 0, &p);
	walk_settle(w);
	walk_expect_eq(walk_count(w, 0), 5);
	walk_forget(w, 0);
	/* An admitted request that cannot be served always gets a notice: there is no worker. */
	p.payload = 10;
	for (int i = 0; i < 20; i++)
		walk_send(w, 0, &p);
	walk_settle(w);
	walk_expect_eq(walk_count(w, 0), 20);
	walk_forget(w, 0);
	walk_expect_drops(w, {LB_DROP_REQUEST_TOO_LARGE, 20}, {LB_DROP_NOTICE_LIMIT, 15},
			  {LB_DROP_NO_WORKER, 20});
	walk_destroy(w);
}
