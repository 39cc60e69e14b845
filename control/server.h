/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control server: operators on a UNIX socket, agents on TCP; the protocol is in control.h.
 * Everything runs on the thread that turns <base>, the control thread.
 */
#ifndef CONTROL_SERVER_H
#define CONTROL_SERVER_H

#include <stddef.h>
#include <stdint.h>

struct control_server;
struct event_base;
struct lb;

/*
 * Listen where the configuration of <lb> says. NULL with a sentence in <error>. Takes lb's worker
 * events, and ignores SIGPIPE for the process. The caller owns the result and keeps <lb> and <base>
 * alive for longer than it.
 */
struct control_server *control_server_create(struct lb *lb, struct event_base *base, char *error,
					     size_t error_size);

/* Close every connection, which removes the agents' workers, and remove the socket. */
void control_server_destroy(struct control_server *server);

/* The TCP port that agents reach; differs from the configuration when that says 0, "any". */
uint16_t control_server_agents_port(const struct control_server *server);

/* The TCP port of the status page and of metrics; 0 when there is none. */
uint16_t control_server_http_port(const struct control_server *server);

#endif
