/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control server: operators on a UNIX socket, agents on TCP; the protocol is in control.h.
 * Everything runs on the thread that turns <base>, the control thread.
 */
#ifndef CONTROL_SERVER_H
#define CONTROL_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct control_server;
struct event_base;
struct lb;
struct lb_config;

/*
 * Listen where the configuration of <lb> says. NULL with a sentence in <error>. Takes lb's worker
 * events, and ignores SIGPIPE for the process. The caller owns the result and keeps <lb> and <base>
 * alive for longer than it.
 */
struct control_server *control_server_create(struct lb *lb, struct event_base *base, char *error,
					     size_t error_size);

/* Close every connection, which removes the agents' workers, and remove the socket. */
void control_server_destroy(struct control_server *server);

/*
 * How long agents that connect from now on may take: for the TLS handshake, and from then to their
 * first word; by default 5 s, and CONTROL_HELLO_S of control.h.
 */
void control_server_limits(struct control_server *server, uint32_t handshake_ms, uint32_t hello_ms);

/* Do agents come with TLS? */
bool control_server_has_tls(const struct control_server *server);

/*
 * Read the files of control.tls or control.token_file again: connections from now on use what is in
 * them. 0, also without TLS; or -EINVAL with a sentence in <error>, and what was read before stays.
 */
int control_server_tls_reload(struct control_server *server, char *error, size_t error_size);

/* The TCP port that agents reach; differs from the configuration when that says 0, "any". */
uint16_t control_server_agents_port(const struct control_server *server);

/* The TCP port of the status page and of metrics; 0 when there is none. */
uint16_t control_server_http_port(const struct control_server *server);

#endif
