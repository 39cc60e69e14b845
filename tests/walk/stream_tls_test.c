/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Services with TLS: handshakes, whose thread is a real one, and records over the walk.
 */
#include <stdlib.h>
#include <string.h>

#include "edge/edge.h"
#include "tls_peer.h"
#include "worker.h"

#define REQUEST_MAX 65536
#define KEY_UPDATE  24

static const uint8_t update_wanted[] = {KEY_UPDATE, 0, 0, 1, 1};
static uint8_t random_bytes[REQUEST_MAX];

/* --- the load balancer, its certificate, its clients ---------------------------------------------
 */

static struct secure_fixture files;
static struct secure_party party;

static struct walk *create_walk_of(uint32_t mb, const char *more)
{
	const struct walk_worker_params roomy = {.max_request = REQUEST_MAX,
						 .max_reply = REQUEST_MAX,
						 .room = mb * 32768,
						 .slots = 128};
	static char services[1024], tcp[256];
	struct walk_params params = {.services = services, .more = tcp, .packets = mb * 256};
	struct walk *w;

	secure_fixture_start(&files);
	party = secure_party_create(&files, NULL, "service", NULL, 30);
	snprintf(services, sizeof(services),
		 "  - {name: echo, protocol: tcp, address: " PACKET_DESTINATION4
		 ", port: 8000, model: echo, max_request: 64KiB, max_reply: 64KiB, tls: "
		 "{certificate: %s, key: %s}}\n",
		 party.certificate_path, party.key_path);
	snprintf(tcp, sizeof(tcp), "tcp: {connections: 1024, buffer_mb: %u%s}\n", mb, more);
	w = walk_create(&params);
	walk_worker(w, &roomy);
	srandom(7);
	for (size_t i = 0; i < sizeof(random_bytes); i++)
		random_bytes[i] = (uint8_t)random();
	return w;
}

static struct walk *create_walk(const char *more)
{
	return create_walk_of(8, more);
}

static struct tls_counters *counters_of(const struct walk *w)
{
	return &peer_edge(w)->tls->counters;
}

static void destroy_walk(struct walk *w)
{
	/* Connections that clients left end by their timers. */
	for (unsigned int i = 0; i < 30 && conntrack_count(w->lb->lcore[0]->ct) > 0; i++) {
		walk_jump(w, 5000);
		walk_turn(w);
		peer_take_jobs(w);
	}
	walk_expect_eq(peer_edge(w)->n_open, 0);
	walk_expect_eq(peer_edge(w)->tls->n_opening, 0);
	walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
	walk_destroy(w);
	secure_party_free(&party);
	secure_fixture_stop(&files);
}

static uint32_t write_request(uint8_t *to, uint32_t n)
{
	memcpy(to, &n, 4);
	memcpy(to + 4, random_bytes, n);
	return 4 + n;
}

static void ask(struct peer *p, uint32_t n)
{
	static uint8_t bytes[REQUEST_MAX + 4];
	int size = (int)write_request(bytes, n);

	walk_need(SSL_write(p->tls.ssl, bytes, size) == size);
}

/* The reply to a request of <n> bytes came. */
static void expect_answer(struct peer *p, uint32_t n)
{
	static uint8_t got[REQUEST_MAX + 8];
	uint32_t size = 0;
	int part;

	ERR_clear_error();
	while (size < n + 8 && (part = SSL_read(p->tls.ssl, got + size, (int)(n + 8 - size))) > 0)
		size += (uint32_t)part;
	walk_expect_eq(size, n + 8);
	walk_expect(memcmp(got + 8, random_bytes, n) == 0, "another answer");
}

/* The server ends the connection, and says so before. */
static void expect_goodbye(struct peer *p)
{
	uint8_t byte;

	walk_expect_eq(SSL_read(p->tls.ssl, &byte, 1), 0);
	walk_expect(SSL_get_shutdown(p->tls.ssl) & SSL_RECEIVED_SHUTDOWN, "no close_notify");
	walk_expect(p->tcp->fin, "no FIN");
}

/* --- what clients usually do ---------------------------------------------------------------------
 */

WALK(requests_and_replies_of_both_versions)
{
	struct walk *w = create_walk("");

	for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
		struct peer *p = peer_meet(w, 2000 + version, version);

		for (uint32_t n = 1; n <= 60000; n = 3 * n + 1) {
			ask(p, n);
			peer_say(p);
			peer_settle(p);
			expect_answer(p, n);
		}
		SSL_shutdown(p->tls.ssl);
		peer_say(p);
		peer_settle(p);
		expect_goodbye(p);
		peer_forget(p);
	}
	walk_expect_eq(counters_of(w)->opened_12, 1);
	walk_expect_eq(counters_of(w)->opened_13, 1);
	walk_expect_no_drops(w);
	destroy_walk(w);
}

WALK(handshakes_and_records_that_are_cut_anywhere)
{
	struct walk *w = create_walk("");

	for (uint32_t cut = 1; cut < 400; cut += 1 + cut / 2) {
		struct peer *p = peer_dial(w, 2000 + cut, TLS1_2_VERSION + cut % 2);

		peer_shake_hands(p, cut);
		ask(p, 700);
		peer_say_cut(p, cut);
		peer_settle(p);
		expect_answer(p, 700);
		peer_forget(p);
	}
	walk_expect_no_drops(w);
	destroy_walk(w);
}

WALK(all_that_a_client_may_say_with_the_end_of_its_handshake)
{
	struct walk *w = create_walk("");
	struct peer *p = peer_dial(w, 2000, TLS1_3_VERSION);

	peer_shake_hands(p, UINT32_MAX / 2);
	for (unsigned int i = 0; i < 3; i++) {
		walk_need(SSL_key_update(p->tls.ssl, SSL_KEY_UPDATE_REQUESTED) == 1);
		ask(p, 100);
	}
	peer_say(p);
	peer_settle(p);
	for (unsigned int i = 0; i < 3; i++)
		expect_answer(p, 100);
	walk_expect_no_drops(w);
	peer_forget(p);
	destroy_walk(w);
}

WALK(a_request_before_the_client_s_goodbye_is_answered)
{
	struct walk *w = create_walk("");

	for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
		struct peer *p = peer_meet(w, 2000 + version, version);

		ask(p, 5000);
		SSL_shutdown(p->tls.ssl);
		peer_say(p);
		peer_settle(p);
		expect_answer(p, 5000);
		expect_goodbye(p);
		peer_forget(p);
	}
	walk_expect_no_drops(w);
	destroy_walk(w);
}

WALK(a_reader_whose_window_is_closed_gets_its_reply_when_it_opens)
{
	struct walk *w = create_walk("");
	struct peer *p = peer_meet(w, 2000, TLS1_3_VERSION);
	uint32_t before = p->tcp->n;

	p->tcp->window = 0;
	ask(p, 60000);
	peer_say(p);
	peer_settle(p);
	walk_expect(p->tcp->n - before <= 3000, "%u bytes beyond the window", p->tcp->n - before);
	p->tcp->window = 65535;
	peer_settle(p);
	for (unsigned int i = 0; i < 5; i++)
		peer_settle(p);
	expect_answer(p, 60000);
	walk_expect_no_drops(w);
	peer_forget(p);
	destroy_walk(w);
}

/* --- connections that end in the middle ----------------------------------------------------------
 */

WALK(a_client_that_resets_while_the_helper_works_for_it)
{
	static const uint8_t hello[] = {22, 3, 1, 0, 100, 1};
	struct walk *w = create_walk("");

	for (unsigned int i = 0; i < 60; i++) {
		struct peer *p = peer_dial(w, 2000 + i, TLS1_3_VERSION);
		unsigned int step = i % 3;
		uint8_t bytes[4096];
		uint32_t n = sizeof(hello);

		walk_context("step %u", step);
		memcpy(bytes, hello, sizeof(hello));
		if (step > 0)
			peer_shake_hands(p, UINT32_MAX / 2);
		if (step == 2) {
			peer_say(p);
			peer_settle(p);
			SSL_key_update(p->tls.ssl, SSL_KEY_UPDATE_REQUESTED);
			SSL_do_handshake(p->tls.ssl);
		}
		if (step > 0)
			n = tls_client_take(&p->tls, bytes, sizeof(bytes));
		/* In one turn, at the end of which the job is seldom back. */
		http_put(p->tcp, bytes, n);
		http_abort(p->tcp);
		walk_expect_eq(peer_edge(w)->n_open, 0);
		peer_take_jobs(w);
		walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
		tls_client_close(&p->tls);
		free(p);
	}
	walk_context("%s", "");
	destroy_walk(w);
}

static bool keys_are_away(const struct walk *w, const struct peer *p)
{
	const struct edge_busy *b = peer_connection(w, p)->busy;

	return b != NULL && b->tls->away;
}

/* The helper is faster than a turn at times: the client tries again until it is not. */
WALK(a_connection_that_ends_while_its_keys_are_away_says_goodbye)
{
	struct walk *w = create_walk("");
	struct peer *p = peer_meet(w, 2000, TLS1_3_VERSION), *other[100];
	unsigned int n_others = 0;

	for (; n_others < RTE_DIM(other) && !keys_are_away(w, p); n_others++) {
		uint8_t hello[4096], update[64];
		uint32_t n;

		peer_settle(p);
		ask(p, 1);
		peer_say(p);
		peer_settle(p);
		expect_answer(p, 1);
		other[n_others] = peer_dial(w, 3000 + n_others, TLS1_3_VERSION);
		SSL_do_handshake(other[n_others]->tls.ssl);
		n = tls_client_take(&other[n_others]->tls, hello, sizeof(hello));
		http_put(other[n_others]->tcp, hello, n);
		SSL_key_update(p->tls.ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
		SSL_do_handshake(p->tls.ssl);
		n = tls_client_take(&p->tls, update, sizeof(update));
		http_put(p->tcp, update, n);
		walk_turn(w);
	}
	walk_need(keys_are_away(w, p));
	edge_close_all(w->lb->lcore[0]);
	edge_transmit(w->lb->lcore[0]);
	peer_settle(p);
	expect_goodbye(p);
	peer_forget(p);
	while (n_others > 0)
		peer_forget(other[--n_others]);
	destroy_walk(w);
}

/* The stream of a client is cut by someone who cannot forge its end. */
WALK(half_a_request_before_a_FIN_is_none)
{
	struct walk *w = create_walk("");

	for (unsigned int goodbye = 0; goodbye < 2; goodbye++) {
		struct peer *p = peer_meet(w, 2000 + goodbye, TLS1_3_VERSION);
		uint8_t request[1004];
		uint8_t byte;

		write_request(request, 1000);
		SSL_write(p->tls.ssl, request, 600);
		if (goodbye)
			SSL_shutdown(p->tls.ssl);
		peer_say(p);
		http_finish(p->tcp);
		peer_settle(p);
		walk_expect_eq(walk_stats(w).requests, 0);
		walk_expect_eq(SSL_read(p->tls.ssl, &byte, 1), 0);
		peer_forget(p);
	}
	destroy_walk(w);
}

WALK(plain_HTTP_gets_an_alert_and_an_end)
{
	static const char request[] = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
	struct walk *w = create_walk("");
	struct http_client *c = http_dial(w, 2000);

	http_say(c, request, sizeof(request) - 1);
	http_wait(c);
	walk_expect_eq(c->n, 7);
	walk_expect_eq(c->got[0], TLS_ALERT);
	walk_expect_eq(c->got[6], TLS_UNEXPECTED_MESSAGE);
	walk_expect(c->fin, "it stays");
	walk_expect_eq(counters_of(w)->not_tls, 1);
	walk_expect_drops(w, {LB_DROP_TCP_TLS, 1});
	http_hang_up(c);
	destroy_walk(w);
}

/* --- floods --------------------------------------------------------------------------------------
 */

/* Records that say nothing: each costs the server a decryption, or new keys, and the client next to
 * nothing. */
WALK(a_client_that_says_nothing_by_many_records_is_ended)
{
	static const uint8_t canceled[] = {1, TLS_USER_CANCELED};
	static const struct {
		const char *what;
		enum tls_type type;
		const uint8_t *bytes;
		uint32_t n;
	} rows[] = {
		{"empty records", TLS_DATA, NULL, 0},
		{"warnings", TLS_ALERT, canceled, sizeof(canceled)},
		{"updates", TLS_HANDSHAKE, update_wanted, sizeof(update_wanted)},
	};

	for (unsigned int i = 0; i < RTE_DIM(rows); i++) {
		struct walk *w = create_walk("");
		struct peer *p = peer_meet(w, 2000, TLS1_3_VERSION);
		struct tls_session *forger = peer_forger(w, p);
		unsigned int n = 0;

		walk_context("%s", rows[i].what);
		for (; n < 100 && !p->tcp->fin; n++) {
			char record[64];
			uint32_t size = tls_write_small(forger, rows[i].type, rows[i].bytes,
							rows[i].n, (uint8_t *)record);

			http_say(p->tcp, record, size);
			if (rows[i].type == TLS_HANDSHAKE)
				tls_session_update(forger, &forger->out);
			peer_take_jobs(w);
		}
		walk_expect(n > 16 && n < 100, "it ended after %u", n);
		walk_expect_drops(w, {LB_DROP_TCP_TLS, 1});
		tls_session_free(forger);
		peer_forget(p);
		destroy_walk(w);
	}
	walk_context("%s", "");
}

/* It wants new keys again and again, and never reads the answers. */
WALK(answers_to_updates_take_no_memory)
{
	struct walk *w = create_walk("");
	struct peer *p = peer_meet(w, 2000, TLS1_3_VERSION);
	struct tls_session *forger = peer_forger(w, p);
	uint8_t request[404];

	write_request(request, 400);
	p->tcp->window = 0;
	for (unsigned int i = 0; i < sizeof(request); i++) {
		uint8_t records[128];
		uint32_t n = tls_write_small(forger, TLS_HANDSHAKE, update_wanted,
					     sizeof(update_wanted), records);

		tls_session_update(forger, &forger->out);
		n += tls_write_small(forger, TLS_DATA, request + i, 1, records + n);
		http_say(p->tcp, (char *)records, n);
		peer_take_jobs(w);
	}
	walk_expect(edge_held_packets(w->lb->lcore[0]) < 16, "%u packets are held",
		    edge_held_packets(w->lb->lcore[0]));
	p->tcp->window = 65535;
	peer_settle(p);
	expect_answer(p, 400);
	tls_session_free(forger);
	peer_forget(p);
	destroy_walk(w);
}

/* A request in records of <each> bytes. Returns the size. */
static uint32_t write_records(struct tls_session *forger, uint32_t n, uint32_t each, uint8_t *to)
{
	static uint8_t request[REQUEST_MAX];
	uint32_t size = 0, of = write_request(request, n);

	for (uint32_t at = 0; at < of; at += each)
		size += tls_write_small(forger, TLS_DATA, request + at, RTE_MIN(each, of - at),
					to + size);
	return size;
}

/* Sends what is behind the first <skip> bytes, in segments. */
static void put_behind(struct peer *p, const uint8_t *bytes, uint32_t n, uint32_t skip)
{
	uint32_t first = p->tcp->seq;

	p->tcp->seq += skip;
	for (uint32_t at = skip; at < n; at += 1400) {
		http_put(p->tcp, bytes + at, RTE_MIN(1400u, n - at));
		if ((at - skip) / 1400 % 16 == 15)
			walk_turn(p->w);
	}
	walk_turn(p->w);
	p->tcp->seq = first;
}

/* Records of 257 bytes need a packet each, five for a segment. Here they come behind holes, which
 * are filled when the client has its share. */
WALK(small_records_take_no_more_than_a_share)
{
	static uint8_t stream[64][2 * REQUEST_MAX];
	struct walk *w = create_walk("");
	struct edge *e = peer_edge(w);
	struct peer *p[64];
	uint32_t n[64], most = 0;

	w->worker[0]->answers = false;
	for (unsigned int i = 0; i < RTE_DIM(p); i++) {
		struct tls_session *forger;

		p[i] = peer_meet(w, 2000 + i, TLS1_3_VERSION);
		forger = peer_forger(w, p[i]);
		n[i] = write_records(forger, 50000, 257, stream[i]);
		tls_session_free(forger);
		put_behind(p[i], stream[i], n[i], 1400);
	}
	walk_expect(edge_held_packets(w->lb->lcore[0]) > e->share / 4, "they hold little");
	for (unsigned int i = 0; i < RTE_DIM(p); i++) {
		http_put(p[i]->tcp, stream[i], 1400);
		walk_turn(w);
		most = RTE_MAX(most, edge_held_packets(w->lb->lcore[0]));
	}
	for (unsigned int i = 0; i < 200; i++) {
		walk_pass(w, 1);
		most = RTE_MAX(most, edge_held_packets(w->lb->lcore[0]));
	}
	walk_expect(most <= e->share + 16, "%u packets are held, of %u", most, e->share);
	for (unsigned int i = 0; i < RTE_DIM(p); i++)
		peer_forget(p[i]);
	destroy_walk(w);
}

WALK(a_handshake_that_waits_gets_the_job_of_a_silent_one)
{
	struct walk *w = create_walk("");
	struct http_client *silent[TLS_JOBS / 4];
	struct peer *p;

	for (unsigned int i = 0; i < RTE_DIM(silent); i++) {
		silent[i] = http_dial(w, 3000 + i);
		http_say(silent[i], "\x16", 1);
		peer_take_jobs(w);
	}
	p = peer_dial(w, 2000, TLS1_3_VERSION);
	SSL_do_handshake(p->tls.ssl);
	peer_say(p);
	peer_settle(p);
	walk_expect_eq(p->tcp->n, 0);
	walk_pass(w, 1100);
	peer_settle(p);
	peer_shake_hands(p, UINT32_MAX / 2);
	walk_expect_eq(counters_of(w)->crowded_out, 1);
	peer_forget(p);
	for (unsigned int i = 0; i < RTE_DIM(silent); i++)
		http_abort(silent[i]);
	destroy_walk(w);
}

/* A turn has some work for records and for text together, of which each small record takes 80. */
WALK(a_turn_reads_few_of_many_small_records)
{
	struct walk *w = create_walk("");
	struct peer *p = peer_meet(w, 2000, TLS1_3_VERSION);
	struct tls_session *forger = peer_forger(w, p);
	uint8_t request[1604], segment[1400];
	uint64_t before = counters_of(w)->records_in, most = 0;
	uint32_t n = 0;

	write_request(request, 1600);
	for (unsigned int i = 0; i < sizeof(request); i++) {
		n += tls_write_small(forger, TLS_DATA, request + i, 1, segment + n);
		if (n + 23 <= sizeof(segment) && i + 1 < sizeof(request))
			continue;
		http_put(p->tcp, segment, n);
		n = 0;
	}
	for (unsigned int i = 0; i < 1000 && walk_stats(w).replies == 0; i++) {
		uint64_t now = counters_of(w)->records_in;

		walk_turn(w);
		most = RTE_MAX(most, counters_of(w)->records_in - now);
		peer_take_jobs(w);
	}
	walk_expect_eq(counters_of(w)->records_in - before, sizeof(request));
	walk_expect(most >= 10 && most <= 24, "%lu records in a turn", most);
	peer_settle(p);
	expect_answer(p, 1600);
	tls_session_free(forger);
	peer_forget(p);
	destroy_walk(w);
}

/* All clients acknowledge in each turn what came for them, so each has something to write in each:
 * those that had no time for that in one turn are the first ones in the next. */
WALK(replies_that_are_written_have_their_turns)
{
	struct walk *w = create_walk(", client_percent: 100");
	struct peer *p[3];
	uint32_t n, waited = 0, most = 0;

	for (unsigned int i = 0; i < RTE_DIM(p); i++) {
		p[i] = peer_meet(w, 2000 + i, TLS1_3_VERSION);
		p[i]->tcp->window = 0;
		for (unsigned int k = 0; k < 15; k++) {
			ask(p[i], 15000);
			peer_say(p[i]);
			http_wait(p[i]->tcp);
		}
	}
	walk_expect_eq(walk_stats(w).replies, 15 * RTE_DIM(p));
	for (unsigned int i = 0; i < RTE_DIM(p); i++) {
		struct edge_connection *c = peer_connection(w, p[i]);

		p[i]->tcp->window = 65535;
		/* As of clients in a fast network. */
		c->tcp.mss = 1440;
		c->tcp.cwnd = 1 << 20;
	}
	for (unsigned int turns = 0; turns < 40; turns++) {
		n = p[2]->tcp->n;
		for (unsigned int i = 0; i < RTE_DIM(p); i++)
			http_acknowledge(p[i]->tcp);
		walk_turn(w);
		http_take_all(p[0]->tcp);
		waited = p[2]->tcp->n > n ? 0 : waited + 1;
		if (p[2]->tcp->n < 220000)
			most = RTE_MAX(most, waited);
	}
	walk_expect(most < RTE_DIM(p), "it waited for %u turns", most);
	walk_expect(edge_deadline(w->lb->lcore[0]) > w->lb->lcore[0]->now, "there is more to do");
	for (unsigned int i = 0; i < RTE_DIM(p); i++)
		peer_forget(p[i]);
	destroy_walk(w);
}

/* Small records of many connections that come in each turn take no turn of one that waits. */
WALK(records_that_come_in_each_turn_leave_time_to_read_for_others)
{
	enum { OTHERS = 24 };
	struct walk *w = create_walk("");
	struct peer *p[OTHERS], *last = peer_meet(w, 1999, TLS1_3_VERSION);
	struct tls_session *forger[OTHERS], *its = peer_forger(w, last);
	uint8_t request[104], record[256], big[4] = {0, 64, 0, 0};
	uint64_t before = walk_stats(w).replies;
	uint32_t n, turns = 0;

	for (unsigned int i = 0; i < OTHERS; i++) {
		p[i] = peer_meet(w, 2000 + i, TLS1_3_VERSION);
		forger[i] = peer_forger(w, p[i]);
		n = tls_write_small(forger[i], TLS_DATA, big, 4, record);
		http_put(p[i]->tcp, record, n);
		walk_turn(w);
	}
	write_request(request, 20);
	for (; walk_stats(w).replies == before && turns < 200; turns++) {
		for (unsigned int i = 0; i < OTHERS; i++) {
			n = tls_write_small(forger[i], TLS_DATA, request, 1, record);
			http_put(p[i]->tcp, record, n);
		}
		if (turns == 3) {
			n = tls_write_small(its, TLS_DATA, request, 24, record);
			http_put(last->tcp, record, n);
		}
		walk_turn(w);
		http_take_all(last->tcp);
	}
	walk_expect(turns <= 20, "it waited for %u turns", turns);
	for (unsigned int i = 0; i < OTHERS; i++) {
		tls_session_free(forger[i]);
		peer_forget(p[i]);
	}
	tls_session_free(its);
	peer_forget(last);
	destroy_walk(w);
}

/* --- turns by client -----------------------------------------------------------------------------
 */

static const char other[] = "192.0.2.99";

#define FLOODERS 100u
#define AT_ONCE  24u /* of them send in a turn, */
#define RECORDS  10u /* so many records of a byte: more than a turn has time for */

/* The next of them send some records of a byte. */
static void flood_some(struct peer **p, struct tls_session **forger, unsigned int *next)
{
	for (unsigned int i = 0; i < AT_ONCE; i++, *next = (*next + 1) % FLOODERS) {
		uint8_t records[RECORDS * 32];
		uint32_t n = 0;

		for (unsigned int k = 0; k < RECORDS; k++)
			n += tls_write_small(forger[*next], TLS_DATA, random_bytes, 1, records + n);
		http_put(p[*next]->tcp, records, n);
	}
}

/* A client has many connections with records that wait, and sends more in each turn: another one's
 * request waits for a turn of its client, and not for one of each of these. */
WALK(connections_with_records_that_wait_delay_their_client)
{
	static const uint8_t large[] = {0, 64, 0, 0};
	struct walk *w = create_walk(", client_percent: 100");
	struct peer *p[FLOODERS], *last = peer_meet_from(w, other, 1999);
	struct tls_session *forger[FLOODERS], *its = peer_forger(w, last);
	uint8_t request[24], record[64];
	unsigned int next = 0, turns;
	uint32_t n, before;

	for (unsigned int i = 0; i < FLOODERS; i++) {
		p[i] = peer_meet(w, 2000 + i, TLS1_3_VERSION);
		forger[i] = peer_forger(w, p[i]);
		n = tls_write_small(forger[i], TLS_DATA, large, sizeof(large), record);
		http_put(p[i]->tcp, record, n);
		walk_turn(w);
	}
	for (turns = 0; turns < 5; turns++) {
		flood_some(p, forger, &next);
		walk_turn(w);
	}
	n = tls_write_small(its, TLS_DATA, request, write_request(request, 20), record);
	before = last->tcp->n;
	for (turns = 0; last->tcp->n == before && turns < 200; turns++) {
		flood_some(p, forger, &next);
		if (turns == 0)
			http_put(last->tcp, record, n);
		walk_turn(w);
		http_take_all(last->tcp);
	}
	walk_expect(turns <= 6, "it waited for %u turns", turns);
	for (unsigned int i = 0; i < FLOODERS; i++) {
		tls_session_free(forger[i]);
		peer_forget(p[i]);
	}
	tls_session_free(its);
	peer_forget(last);
	destroy_walk(w);
}

#define READERS 60u

/* The same of replies that wait to be encrypted. */
WALK(connections_with_replies_that_wait_delay_their_client)
{
	struct walk *w = create_walk_of(64, ", client_percent: 100");
	struct peer *p[READERS], *last = peer_meet_from(w, other, 1999);
	struct walk_worker *v = w->worker[0];
	unsigned int turns;
	uint32_t before;

	v->answers = false;
	for (unsigned int i = 0; i < READERS; i++) {
		p[i] = peer_meet(w, 2000 + i, TLS1_3_VERSION);
		ask(p[i], 15000);
		peer_say(p[i]);
		http_wait(p[i]->tcp);
	}
	walk_expect_eq(v->n_requests, READERS);
	walk_answer_all(v);
	while (walk_stats(w).replies < READERS)
		walk_turn(w);
	v->answers = true;
	ask(last, 100);
	peer_put(last);
	before = last->tcp->n;
	for (turns = 0; last->tcp->n == before && turns < 100; turns++) {
		walk_turn(w);
		http_take_all(last->tcp);
	}
	walk_expect(turns <= 6, "it waited for %u turns", turns);
	for (unsigned int i = 0; i < READERS; i++)
		peer_forget(p[i]);
	peer_forget(last);
	destroy_walk(w);
}

/* Packets that wait to be encrypted for connections that end in the same turn are freed in some
 * turns. */
WALK(replies_that_wait_to_be_encrypted_are_freed_in_some_turns)
{
	static uint8_t reply[60000];
	struct walk *w = create_walk_of(64, ", client_percent: 100");
	const struct lcore *lc = w->lb->lcore[0];
	unsigned int most = 0, before, now, first;
	struct walk_worker *v = w->worker[0];
	struct peer *p[READERS];

	v->answers = false;
	for (unsigned int i = 0; i < READERS; i++) {
		p[i] = peer_meet(w, 2000 + i, TLS1_3_VERSION);
		ask(p[i], 100);
		peer_say(p[i]);
		http_wait(p[i]->tcp);
	}
	while (v->n_requests > 0) {
		walk_answer(v, 0, &(struct walk_reply){.bytes = reply, .n_bytes = sizeof(reply)});
		walk_turns(w, 1 + sizeof(reply) / (LB_BURST * 1024));
	}
	walk_expect_eq(walk_stats(w).replies, READERS);
	http_take_all(p[0]->tcp);
	for (unsigned int i = 0; i < READERS; i++)
		http_put_reset(p[i]->tcp);
	first = before = rte_mempool_avail_count(lc->packets);
	for (unsigned int turns = 0; turns < 50; turns++, before = now) {
		walk_turn(w);
		now = rte_mempool_avail_count(lc->packets);
		if (now > before)
			most = RTE_MAX(most, now - before);
	}
	walk_expect(before - first > 1500, "%u were freed", before - first);
	walk_expect(most <= 8 * 2 * READERS + 256, "%u of them in a turn", most);
	for (unsigned int i = 0; i < READERS; i++)
		peer_forget(p[i]);
	destroy_walk(w);
}

/* --- keys that have encrypted much ---------------------------------------------------------------
 */

WALK(worn_keys_are_replaced_or_the_connection_ends)
{
	struct walk *w = create_walk("");

	for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
		struct peer *p = peer_meet(w, 2000 + version, version);
		struct tls_session *s = edge_session_of(peer_edge(w), peer_connection(w, p));

		s->out.number = TLS_KEY_RECORDS - 1;
		ask(p, 100);
		ask(p, 100);
		peer_say(p);
		peer_settle(p);
		ask(p, 100);
		peer_say(p);
		peer_settle(p);
		walk_expect_eq(p->tcp->fin, version == TLS1_2_VERSION);
		walk_expect_eq(counters_of(w)->rekeys, version == TLS1_3_VERSION);
		peer_forget(p);
	}
	destroy_walk(w);
}
