/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TLS on the agents' port: connections between accept() and the end of their handshake. Until then
 * they are none of the server's business: they send nothing but TLS, have CONTROL_HANDSHAKE_MS, and
 * are bounded by handshake_limit.h. Private to server.c and this file's tests.
 */
#ifndef CONTROL_HANDSHAKE_H
#define CONTROL_HANDSHAKE_H

#include <stddef.h>
#include <stdint.h>

#define CONTROL_HANDSHAKE_MS 5000

struct bufferevent;
#include <stdbool.h>
#include <time.h>

struct control_handshakes;
struct event_base;
struct lb_config;
struct refusals;
struct sockaddr;

/* The handshake is over and the peer's identity is proven. The callee takes <bev> and <names>,
 * which is from malloc(): the workers that the peer may register, NULL for any (secure.h). */
typedef void control_admit(void *context, struct bufferevent *bev, const char *peer, char *names);

/* Does <config> name certificates or a token? Otherwise agents come without TLS. */
bool control_handshakes_wanted(const struct lb_config *config);

/* Look at our certificate again: a warning in the log when it ends soon, or is not valid. */
void control_handshakes_remind(struct control_handshakes *h, const struct lb_config *config);
/* When it ends, seconds since 1970, as of the last look; 0 without one. As long as <h>. */
const time_t *control_handshakes_not_after(const struct control_handshakes *h);

/* Read the certificates or the token of <config>. Who is refused is noted in <refusals>, which
 * lives longer. NULL with a sentence in <error>. */
struct control_handshakes *control_handshakes_create(struct event_base *base,
						     const struct lb_config *config,
						     control_admit *admit, void *context,
						     struct refusals *refusals, char *error,
						     size_t error_size);
void control_handshakes_destroy(struct control_handshakes *h);

/* Read the files again, for connections that come from now on. On -EINVAL all stays as it was. */
int control_handshakes_reload(struct control_handshakes *h, const struct lb_config *config,
			      char *error, size_t error_size);

/* Handshakes that begin from now on may take so long; by default CONTROL_HANDSHAKE_MS. */
void control_handshakes_limit(struct control_handshakes *h, uint32_t ms);

/* Begin one on <fd>, which is taken over. */
void control_handshake_start(struct control_handshakes *h, int fd, const struct sockaddr *address,
			     const char *peer);

struct lb_config;
/*
 * Can the files of <config> be used, and is their certificate valid? 0; 1 with a sentence in <why>
 * when it ends soon; -EINVAL with one when they are of no use now. Needs no server.
 */
int control_server_tls_check(const struct lb_config *config, char *why, size_t size);

#endif
