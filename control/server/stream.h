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
	STREAM_REGISTERING, /* until it registers: after its hello, or after losing its worker */
	STREAM_SERVING,
};

/* One accepted socket. The server owns it. */
struct control_stream {
	struct control_connection c;
	struct control_server *server;
	struct bufferevent *bev;
	struct event *timer;     /* ends the lease of its worker, or closes the stream */
	enum stream_phase phase; /* an agent's phase, which <timer> limits */
	bool closing;            /* takes no more lines; ends when its output is written */
	bool ended;              /* the peer has sent all that it will */
	char *names;             /* owns the memory of c.names */
	LIST_ENTRY(control_stream) next;
};

struct control_server {
	struct lb *lb;
	struct event_base *base;
	struct evconnlistener *listener[CONTROL_ROLES];
	struct event *retry;                   /* listens again after running out of descriptors */
	struct event *reminder;                /* once a day, for a certificate that ends soon */
	struct event *sampler;                 /* takes the samples of <window> */
	struct control_handshakes *handshakes; /* of agents; NULL when they connect without TLS */
	struct window *window;
	struct refusals refusals;
	struct control_http *http; /* NULL: off */
	LIST_HEAD(, control_stream) streams;
	unsigned int n_streams[CONTROL_ROLES];
	uint32_t hello_ms; /* time limit of an agent's first message */
	uint64_t start_ms;
	struct {
		dev_t dev; /* identity of our socket's file */
		ino_t ino; /* 0: no file */
		bool lost; /* it was removed, and that it cannot be made again is in the log */
	} socket[CONTROL_ROLES];
};

/*
 * Take over <bev>, and <names> from malloc(): the workers that the peer may register, NULL for any.
 * NULL, with both freed, when memory is short.
 */
struct control_stream *control_stream_create(struct control_server *server, struct bufferevent *bev,
					     enum control_role role, const char *peer, char *names);
void control_stream_destroy(struct control_stream *s);

/*
 * Send one message, which this consumes. Never destroys <s>: that happens in the next iteration of
 * the loop.
 */
void control_stream_send(struct control_stream *s, json_t *message);

/* Write the pending output, then end the stream, in a later iteration of the loop. */
void control_stream_finish(struct control_stream *s);

/* Start the timer again when an agent's phase changed or its lease was renewed. */
void control_stream_deadline(struct control_stream *s);

/*
 * Bind a socket without listening yet. Returns the descriptor, or -errno with a sentence in
 * <error>. Members of <group> may open the file; "": those of our own group.
 */
int control_listen_unix(const char *path, const char *group, char *error, size_t error_size);
int control_listen_tcp(const struct lb_address *address, uint16_t port, char *error,
		       size_t error_size);

#endif
