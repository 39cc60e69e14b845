/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The thin half of control: sockets around struct control_connection. Private to server.c,
 * stream.c and listen.c.
 *
 * Facade of stream.c and listen.c.
 */
#ifndef CONTROL_STREAM_H
#define CONTROL_STREAM_H

#include <stdbool.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "server/rpc.h"

struct bufferevent;
struct evconnlistener;
struct event;
struct control_http;
struct event_base;

enum stream_phase {
	STREAM_NEW,
	STREAM_GREETING,    /* until its hello */
	STREAM_REGISTERING, /* after that, or after losing its worker */
	STREAM_SERVING,
};

/* One accepted socket. The server owns it. */
struct control_stream {
	struct control_connection c;
	struct control_server *server;
	struct bufferevent *bev;
	struct event *timer;     /* ends the lease of its worker, or closes the stream */
	enum stream_phase phase; /* of an agent: what <timer> is for */
	bool closing;            /* takes no more lines, ends when its output is written */
	bool ended;              /* the peer sends no more */
	char *names;             /* behind c.names */
	LIST_ENTRY(control_stream) next;
};

struct control_server {
	struct lb *lb;
	struct event_base *base;
	struct evconnlistener *listener[CONTROL_ROLES];
	struct event *retry;                   /* listens again after running out of descriptors */
	struct event *reminder;                /* once a day, of a certificate that ends */
	struct event *sampler;                 /* of <window> */
	struct control_handshakes *handshakes; /* of agents; NULL when they come without TLS */
	struct window *window;
	struct refusals refusals;
	struct control_http *http; /* NULL: off */
	LIST_HEAD(, control_stream) streams;
	unsigned int n_streams[CONTROL_ROLES];
	uint32_t hello_ms; /* for an agent's first word */
	uint64_t start_ms;
	struct {
		dev_t dev; /* which file at its path is ours */
		ino_t ino; /* 0: none */
	} socket[CONTROL_ROLES];
};

/*
 * Take over <bev>, and <names> from malloc(): the workers that the peer may register, NULL for any.
 * NULL, with both freed, when memory is short.
 */
struct control_stream *control_stream_create(struct control_server *server, struct bufferevent *bev,
					     enum control_role role, const char *peer, char *names);
void control_stream_destroy(struct control_stream *s);

/* Send one message, which is consumed. Never destroys <s>: that waits for the next loop turn. */
void control_stream_send(struct control_stream *s, json_t *message);

/* Write out what is there, then end; in a later turn of the loop. */
void control_stream_finish(struct control_stream *s);

/* Start the time that an agent has when what it has to do has changed, or its lease was renewed. */
void control_stream_deadline(struct control_stream *s);

/*
 * Bound, not yet listening sockets; or -errno with a sentence in <error>. Members of <group> may
 * open the file; "": those of our own.
 */
int control_listen_unix(const char *path, const char *group, char *error, size_t error_size);
int control_listen_tcp(const struct lb_address *address, uint16_t port, char *error,
		       size_t error_size);

#endif
