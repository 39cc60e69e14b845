/* SPDX-License-Identifier: BSD-3-Clause */
#include "tls_peer.h"

#include <arpa/inet.h>
#include <sched.h>
#include <stdlib.h>

#include "edge/edge.h"

struct edge *peer_edge(const struct walk *w)
{
	return w->lb->lcore[0]->edge;
}

void peer_await_jobs(const struct walk *w)
{
	const struct edge_tls_room *room = peer_edge(w)->tls;

	while (tls_line_back(room->line) < room->away)
		sched_yield();
}

void peer_take_jobs(struct walk *w)
{
	struct edge_tls_room *room = peer_edge(w)->tls;

	while (room->away > 0) {
		while (tls_line_back(room->line) == 0)
			sched_yield();
		walk_turn(w);
	}
}

void peer_feed(struct peer *p)
{
	http_take_all(p->tcp);
	tls_client_give(&p->tls, (uint8_t *)p->tcp->got + p->fed, p->tcp->n - p->fed);
	p->fed = p->tcp->n;
}

void peer_put(struct peer *p)
{
	uint8_t bytes[1400];
	uint32_t n = tls_client_take(&p->tls, bytes, sizeof(bytes));

	if (n > 0)
		http_put(p->tcp, bytes, n);
}

void peer_settle(struct peer *p)
{
	do {
		peer_take_jobs(p->w);
		http_wait(p->tcp);
	} while (peer_edge(p->w)->tls->away > 0);
	peer_feed(p);
}

void peer_say_cut(struct peer *p, uint32_t cut)
{
	static uint8_t bytes[131072];
	uint32_t n = tls_client_take(&p->tls, bytes, sizeof(bytes));

	for (uint32_t at = 0; at < n; at += cut) {
		http_say(p->tcp, (char *)bytes + at, RTE_MIN(cut, n - at));
		peer_take_jobs(p->w);
	}
}

void peer_say(struct peer *p)
{
	peer_say_cut(p, UINT32_MAX / 2);
}

static struct peer *peer_dial_with(struct walk *w, const char *source, uint16_t port, int version,
				   const char *suites)
{
	struct peer *p = calloc(1, sizeof(*p));

	p->w = w;
	p->tcp = http_dial_from(w, source, port);
	tls_client_open(&p->tls, version, NULL, suites, NULL);
	return p;
}

struct peer *peer_dial(struct walk *w, uint16_t port, int version)
{
	return peer_dial_with(w, NULL, port, version, NULL);
}

void peer_shake_hands(struct peer *p, uint32_t cut)
{
	for (unsigned int i = 0; i < 4 && SSL_do_handshake(p->tls.ssl) != 1; i++) {
		peer_say_cut(p, cut);
		peer_settle(p);
	}
	walk_need(SSL_is_init_finished(p->tls.ssl));
}

static struct peer *peer_open(struct peer *p)
{
	peer_shake_hands(p, UINT32_MAX / 2);
	peer_say(p);
	peer_settle(p);
	return p;
}

struct peer *peer_meet(struct walk *w, uint16_t port, int version)
{
	return peer_open(peer_dial(w, port, version));
}

struct peer *peer_meet_with(struct walk *w, uint16_t port, const char *suites)
{
	return peer_open(peer_dial_with(w, NULL, port, TLS1_3_VERSION, suites));
}

struct peer *peer_meet_from(struct walk *w, const char *source, uint16_t port)
{
	return peer_open(peer_dial_with(w, source, port, TLS1_3_VERSION, NULL));
}

void peer_forget(struct peer *p)
{
	http_abort(p->tcp);
	peer_take_jobs(p->w);
	tls_client_close(&p->tls);
	free(p);
}

struct edge_connection *peer_connection(const struct walk *w, const struct peer *p)
{
	struct edge *e = peer_edge(w);

	for (uint32_t i = 1; i <= e->connections; i++) {
		const struct flow *flow =
			e->connection[i].handle == 0 ? NULL : edge_flow(e, &e->connection[i]);

		if (flow != NULL && flow->client_port == htons(p->tcp->port))
			return &e->connection[i];
	}
	walk_need(false, "no connection");
	return NULL;
}

struct tls_session *peer_forger(const struct walk *w, const struct peer *p)
{
	const struct tls_session *s = edge_session_of(peer_edge(w), peer_connection(w, p));
	struct tls_keys keys = {
		.version = 0x0304, .cipher = EVP_CIPHER_CTX_get_nid(s->in.cipher), .hash = s->hash};
	struct tls_session *forger;

	memcpy(keys.server, s->in.secret, sizeof(keys.server));
	forger = tls_session_create(&keys);
	walk_need(forger != NULL);
	forger->out.number = s->in.number;
	return forger;
}
