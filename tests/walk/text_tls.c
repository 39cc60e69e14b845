/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The same over TLS: what clients of the other kinds send, in records of some length, also by
 * several connections. Behind a hole, what came is read at once when it is filled. Handshakes are
 * made before, and not measured, but for the kinds that make some.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text_turns.h"
#include "tls_peer.h"

#define AES    "TLS_AES_128_GCM_SHA256"
#define CHACHA "TLS_CHACHA20_POLY1305_SHA256"

#define RECORDS_MAX (6u << 20) /* bytes of a client's */
#define SEGMENT     1000u
#define TURN        16u /* segments of all clients in a turn */
#define CLIENTS_MAX 4u
/* Of records of less than so many bytes so many bytes of content are sent: whole requests. */
#define SHORT       100u
#define SHORT_BYTES (400u * 25)

struct way {
	const char *name, *of; /* the kind without TLS */
	const char *suites;
	uint32_t record;  /* bytes of a record, */
	uint32_t empty;   /* and so many empty ones before each */
	uint32_t clients; /* with that */
	bool hole;        /* all segments but the first of what the window takes come first */
	bool beside;      /* another client uploads a long body, behind holes */
	bool v12;         /* it is TLS 1.2, and records are OpenSSL's */
	void (*run)(struct walk *w); /* NULL: as these say */
};

static void run_handshakes(struct walk *w);

static const struct way ways[] = {
	{"TLS, JSON of 1 MiB", "JSON of 1 MiB: UINT8", AES, 16384, 0, 1, true, false},
	{"TLS, JSON of 1 MiB, ties", "JSON of 1 MiB: FP32, ties", AES, 16384, 0, 1, true, false},
	{"TLS, reply of 1 MiB in JSON", "reply of 1 MiB in JSON: FP64", AES, 16384, 0, 3, true,
	 true},
	{"TLS, records of a byte", "requests of 25 bytes", AES, 1, 0, 1, true, false},
	{"TLS, empty records", "requests of 25 bytes", AES, 25, 30, 1, true, false},
	{"TLS, records of 16 KiB", "BYTES, one element in binary", AES, 16384, 0, 3, true, false},
	{"TLS, requests of 25 bytes", "requests of 25 bytes", AES, 16384, 0, 1, true, true},
	{"TLS, batches in JSON", "batches of 256 rows in JSON", AES, 16384, 0, 2, true, true},
	{"TLS, batches of BYTES", "BYTES, 256 rows of 4 empty ones by gRPC", AES, 16384, 0, 2, true,
	 true},
	{"TLS, ChaCha20: records of a byte", "requests of 25 bytes", CHACHA, 1, 0, 1, true, false},
	{"TLS, ChaCha20: records of 16 KiB", "BYTES, one element in binary", CHACHA, 16384, 0, 3,
	 true, true},
	{"TLS 1.2: records of 16 KiB", "BYTES, one element in binary", NULL, 16384, 0, 3, true,
	 true, true},
	{"TLS 1.2: records of a byte", "requests of 25 bytes", NULL, 1, 0, 1, true, false, true},
	{.name = "TLS, handshakes", .of = "requests of 25 bytes", .run = run_handshakes},
	{.name = "TLS 1.2: handshakes",
	 .of = "requests of 25 bytes",
	 .v12 = true,
	 .run = run_handshakes},
	{"TLS, ChaCha20: batches of BYTES", "BYTES, 256 rows of 4 empty ones by gRPC", CHACHA,
	 16384, 0, 2, true, true},
};

/* A client, and the records that it sends. */
struct sender {
	struct peer *peer;
	uint8_t *records;
	uint32_t n, at;
	bool hole;
};

static const struct way *way;
static struct sender sender[CLIENTS_MAX];
static unsigned int n_senders;

/* --- records -----------------------------------------------------------------------------------
 */

/* Writes <n> bytes as records of the way. Returns their size. */
static uint32_t write_records(struct tls_session *forger, const uint8_t *bytes, uint32_t n,
			      uint8_t *to)
{
	uint32_t size = 0;

	for (uint32_t at = 0, part; at < n; at += part) {
		part = RTE_MIN(way->record, n - at);
		walk_need(size + (way->empty + 1) * 64 + part < RECORDS_MAX, "too many records");
		for (uint32_t i = 0; i < way->empty; i++)
			size += tls_write_small(forger, TLS_DATA, NULL, 0, to + size);
		size += tls_write_record(forger, TLS_DATA, bytes + at, part, part, to + size);
	}
	return size;
}

/* The same by OpenSSL, for the version whose keys the forger does not have. */
static uint32_t write_by_openssl(struct peer *p, const uint8_t *bytes, uint32_t n, uint8_t *to)
{
	uint32_t size = 0;

	for (uint32_t at = 0, part; at < n; at += part) {
		part = RTE_MIN(way->record, n - at);
		walk_need(SSL_write(p->tls.ssl, bytes + at, (int)part) == (int)part);
		size += tls_client_take(&p->tls, to + size, RECORDS_MAX - size);
	}
	return size;
}

static void add_sender(struct walk *w, const void *bytes, uint32_t n, bool hole)
{
	struct sender *s = &sender[n_senders];
	uint16_t port = 3000 + n_senders;
	struct tls_session *forger;

	walk_need(n_senders < CLIENTS_MAX);
	*s = (struct sender){.peer = way->v12 ? peer_meet(w, port, TLS1_2_VERSION)
					      : peer_meet_with(w, port, way->suites),
			     .records = malloc(RECORDS_MAX),
			     .hole = hole};
	n_senders++;
	if (way->v12) {
		s->n = write_by_openssl(s->peer, bytes, n, s->records);
		return;
	}
	forger = peer_forger(w, s->peer);
	s->n = write_records(forger, bytes, n, s->records);
	tls_session_free(forger);
}

static void put(struct sender *s, uint32_t at)
{
	http_put(s->peer->tcp, s->records + at, RTE_MIN(SEGMENT, s->n - at));
}

/* --- sending -----------------------------------------------------------------------------------
 */

/* Segments that the window has room for. */
static uint32_t offered(const struct sender *s)
{
	uint32_t room = s->peer->tcp->offered - s->peer->tcp->seq;
	uint32_t left = (s->n - s->at + SEGMENT - 1) / SEGMENT;

	return (int32_t)room < 0 ? 0 : RTE_MIN(room / SEGMENT, left);
}

/* The first of <n> segments comes last. */
static void send_behind(struct walk *w, struct sender *s, uint32_t n)
{
	struct http_client *tcp = s->peer->tcp;
	uint32_t seq = tcp->seq, from = s->at;

	tcp->seq += SEGMENT;
	for (uint32_t i = 1; i < n; i++) {
		put(s, from + i * SEGMENT);
		if (i % TURN == 0)
			text_turn_all(w);
	}
	text_turn_all(w);
	tcp->seq = seq;
	put(s, from);
	s->at = RTE_MIN(from + n * SEGMENT, s->n);
	tcp->seq = seq + (s->at - from);
}

static void send_some(struct walk *w, struct sender *s)
{
	uint32_t n = offered(s);

	if (s->hole && n > 1)
		return send_behind(w, s, n);
	for (n = RTE_MIN(n, TURN / n_senders); n > 0; n--) {
		put(s, s->at);
		s->at = RTE_MIN(s->at + SEGMENT, s->n);
	}
}

static bool is_over(const struct sender *s)
{
	return s->at == s->n || s->peer->tcp->reset || s->peer->tcp->fin;
}

/* Takes the bytes that came as they are, and acknowledges them. */
static void take(struct sender *s)
{
	s->peer->tcp->n = 0;
	http_take_all(s->peer->tcp);
	http_acknowledge(s->peer->tcp);
}

static void send_all(struct walk *w)
{
	unsigned int idle = 0;

	for (unsigned int i = 0; i < 20000 && idle < 20; i++) {
		bool over = true;

		for (unsigned int k = 0; k < n_senders; k++) {
			if (!is_over(&sender[k]))
				send_some(w, &sender[k]);
			over &= is_over(&sender[k]);
		}
		text_turn_all(w);
		for (unsigned int k = 0; k < n_senders; k++)
			take(&sender[k]);
		walk_jump_us(w, 100);
		idle = over ? idle + 1 : 0;
	}
	walk_expect(idle == 20, "it does not go on");
}

static void run(struct walk *w)
{
	static const char upload[1000000] = "POST /v2 HTTP/1.1\r\nHost: h\r\n"
					    "Content-Length: 1000000000\r\n\r\n";
	const struct tls_counters *n = &peer_edge(w)->tls->counters;

	n_senders = 0;
	/* Short records take many turns. */
	for (unsigned int i = 0; i < way->clients; i++)
		add_sender(w, text_sent(), way->record < SHORT ? SHORT_BYTES : text_length(),
			   way->hole);
	if (way->beside)
		add_sender(w, upload, sizeof(upload), true);
	send_all(w);
	walk_expect(n->records_in >= n_senders && n->bad_records == 0, "%lu records, %lu bad",
		    n->records_in, n->bad_records);
	for (unsigned int i = 0; i < n_senders; i++) {
		walk_expect(!sender[i].peer->tcp->reset, "it is reset");
		peer_forget(sender[i].peer);
		free(sender[i].records);
	}
}

/* --- handshakes ----------------------------------------------------------------------------------
 */

#define HANDSHAKES 32u /* of one client, at once */

/* All that they have to say comes in one turn, and the helper's answers to all of it in the next
 * ones. Its own work is not the lcore's. */
static void exchange(struct walk *w, struct peer **p)
{
	for (unsigned int i = 0; i < HANDSHAKES; i++) {
		SSL_do_handshake(p[i]->tls.ssl);
		peer_put(p[i]);
	}
	text_turn(w);
	peer_await_jobs(w);
	text_turn_all(w);
	http_take_all(p[0]->tcp);
	for (unsigned int i = 0; i < HANDSHAKES; i++) {
		peer_feed(p[i]);
		http_acknowledge(p[i]->tcp);
	}
	text_turn_all(w);
}

static void run_handshakes(struct walk *w)
{
	const struct tls_counters *n = &peer_edge(w)->tls->counters;
	int version = way->v12 ? TLS1_2_VERSION : TLS1_3_VERSION;
	struct peer *p[HANDSHAKES];

	for (unsigned int i = 0; i < HANDSHAKES; i++)
		p[i] = peer_dial(w, 3000 + i, version);
	/* Two mostly: what the lcore says after it waited for the helper comes back in the next. */
	for (unsigned int i = 0; i < 20 && n->opened_12 + n->opened_13 < HANDSHAKES; i++)
		exchange(w, p);
	for (unsigned int i = 0; i < HANDSHAKES; i++)
		walk_need(SSL_do_handshake(p[i]->tls.ssl) == 1, "handshake %u", i);
	walk_expect_eq(n->opened_12 + n->opened_13, HANDSHAKES);
	for (unsigned int i = 0; i < HANDSHAKES; i++)
		peer_forget(p[i]);
}

/* --- kinds -------------------------------------------------------------------------------------
 */

static struct secure_fixture files;
static struct secure_party party;

/* The kind's service, with a certificate. */
static const struct walk_params *add_certificate(const struct walk_params *params)
{
	static char services[2048];
	static struct walk_params with;
	size_t length = strlen(params->services) - strlen("}\n");

	snprintf(services, sizeof(services), "%.*s, tls: {certificate: %s, key: %s}}\n",
		 (int)length, params->services, party.certificate_path, party.key_path);
	with = *params;
	with.services = services;
	with.packets = 8192;
	with.more = "tcp: {connections: 256, buffer_mb: 64}\n";
	return &with;
}

const struct text_kind *text_tls_next(void)
{
	static struct text_kind kind;

	if (way == NULL) {
		way = ways;
		secure_fixture_start(&files);
		party = secure_party_create(&files, NULL, "service", NULL, 30);
	} else if (++way == ways + RTE_DIM(ways)) {
		secure_party_free(&party);
		secure_fixture_stop(&files);
		return NULL;
	}
	kind = *text_kind_find(way->of);
	kind.name = way->name;
	kind.params = add_certificate(kind.params);
	kind.run = way->run != NULL ? way->run : run;
	return &kind;
}
