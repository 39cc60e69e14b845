/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients with TLS: OpenSSL's, or one that writes records itself with its keys, where OpenSSL would
 * not. The thread that makes handshakes is a real one. */
#ifndef WALK_TLS_PEER_H
#define WALK_TLS_PEER_H

#include "walk.h"

#define FIXTURE_NEED(condition) walk_need(condition)
#include "secure_fixture.h"
#include "tls_client.h"

#include "edge/tls.h"
#include "http_client.h"

/* A client, and how much of what came OpenSSL has. */
struct peer {
	struct walk *w;
	struct http_client *tcp;
	struct tls_client tls;
	uint32_t fed;
};

/* The first lcore's. */
struct edge *peer_edge(const struct walk *w);
/* The jobs at the helper come back, and what follows from that. */
void peer_take_jobs(struct walk *w);

/* The helper has done with all of them, and none is taken. */
void peer_await_jobs(const struct walk *w);

/* A connection from <port>, before its handshake. */
struct peer *peer_dial(struct walk *w, uint16_t port, int version);
/* The handshake, whose bytes go <cut> at a time. The client's last flight is not sent yet. */
void peer_shake_hands(struct peer *p, uint32_t cut);
/* A connection with its handshake. */
struct peer *peer_meet(struct walk *w, uint16_t port, int version);
/* One of TLS 1.3 from another address, which outlives it. */
struct peer *peer_meet_from(struct walk *w, const char *source, uint16_t port);
/* One of TLS 1.3 with these suites; NULL: OpenSSL's choice. */
struct peer *peer_meet_with(struct walk *w, uint16_t port, const char *suites);
/* Resets the connection, and frees the client. */
void peer_forget(struct peer *p);

/* OpenSSL gets what came. */
void peer_feed(struct peer *p);
/* Sends what OpenSSL has for the server, in one segment and with the next turn. */
void peer_put(struct peer *p);
/* Sends what OpenSSL has for the server; <cut> bytes at a time. */
void peer_say(struct peer *p);
void peer_say_cut(struct peer *p, uint32_t cut);
/* All that is under way comes to its end. */
void peer_settle(struct peer *p);

struct edge_connection *peer_connection(const struct walk *w, const struct peer *p);
/* A session that writes with the keys of a client of TLS 1.3. */
struct tls_session *peer_forger(const struct walk *w, const struct peer *p);

#endif
