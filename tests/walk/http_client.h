/* SPDX-License-Identifier: BSD-3-Clause */
/* A client of HTTP that sends what it is told, byte by byte or not, and keeps all that comes. */
#ifndef WALK_HTTP_CLIENT_H
#define WALK_HTTP_CLIENT_H

#include "walk.h"

struct http_client {
	struct walk *w;
	const char *source; /* address; NULL: that of all */
	uint16_t port;
	uint32_t seq, ack, acked;
	uint32_t offered; /* it may send up to here */
	uint16_t window; /* bytes that it offers */
	bool fin, reset;
	uint32_t n;
	char got[262144]; /* with a NUL */
};

/* A connection from <port> to port 8000. http_hang_up() ends it and frees the client. */
struct http_client *http_dial(struct walk *w, uint16_t port);
/* From another address; it outlives the client. Ports are of one client each. */
struct http_client *http_dial_from(struct walk *w, const char *source, uint16_t port);
/* Acknowledges what was taken, in the next turn. */
void http_acknowledge(struct http_client *c);
/* Sends the bytes in segments of 1,000. */
void http_say(struct http_client *c, const char *bytes, uint32_t n);
/* Sends the bytes in one segment, which waits for the next turn. */
void http_put(struct http_client *c, const void *bytes, uint32_t n);
/* Sends a FIN: nothing may be said after it. */
void http_finish(struct http_client *c);
/* Waits and acknowledges until nothing more comes. */
void http_wait(struct http_client *c);
/* Takes all that came, for this and all other clients. */
void http_take_all(struct http_client *any);
void http_hang_up(struct http_client *c);
/* The same by a reset. */
void http_abort(struct http_client *c);
/* Its halves: the reset, which waits for the next turn; the client is freed. */
void http_put_reset(struct http_client *c);
void http_forget(struct http_client *c);

#endif
