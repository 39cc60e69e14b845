/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control server: operators on a UNIX socket, agents on TCP; the protocol is in control.h.
 * Everything runs on the control thread, which runs the event loop <base>.
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
 * Start to listen where the configuration of <lb> says. Returns NULL with a sentence in <error> on
 * failure. Takes over lb's worker events and ignores SIGPIPE for the whole process. The caller owns
 * the result, and keeps <lb> and <base> alive for longer.
 */
struct control_server *control_server_create(struct lb *lb, struct event_base *base, char *error,
					     size_t error_size);

/* Close every connection, which removes the agents' workers, and remove the socket. */
void control_server_destroy(struct control_server *server);

/*
 * Set the time limits, ms, of agents that connect from now on: for the TLS handshake (by default
 * 5000), and from its end to the agent's first message (by default CONTROL_HELLO_S of control.h).
 */
void control_server_limits(struct control_server *server, uint32_t handshake_ms, uint32_t hello_ms);

/* True when agents connect with TLS. */
bool control_server_has_tls(const struct control_server *server);

/*
 * Read the files of control.tls or control.token_file again; connections from now on use the new
 * contents. Returns 0, also without TLS. Returns -EINVAL with a sentence in <error>, and keeps
 * using the former contents, when the files are bad.
 */
int control_server_tls_reload(struct control_server *server, char *error, size_t error_size);

/* The TCP port for agents; differs from the configured one when that is 0 ("any"). */
uint16_t control_server_agents_port(const struct control_server *server);

/* The TCP port of the status page and of metrics; 0 when there is none. */
uint16_t control_server_http_port(const struct control_server *server);

#endif
