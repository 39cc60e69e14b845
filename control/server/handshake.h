/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TLS on the agents' port: connections between accept() and the end of their handshake. Until then
 * a connection carries nothing but TLS, has CONTROL_HANDSHAKE_MS, and counts against the bounds of
 * handshake_limit.h. Private to server.c and this file's tests.
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

/*
 * Called when the handshake is over and the peer's identity is proven. The callee takes over <bev>
 * and <names>, which is from malloc(): the workers that the peer may register, NULL for any
 * (secure.h).
 */
typedef void control_admit(void *context, struct bufferevent *bev, const char *peer, char *names);

/* True when <config> names certificates or a token; otherwise agents connect without TLS. */
bool control_handshakes_wanted(const struct lb_config *config);

/* Check our certificate again; log a warning when it ends soon or is not valid. */
void control_handshakes_remind(struct control_handshakes *h, const struct lb_config *config);
/*
 * When our certificate ended at the last check, seconds since 1970; 0 without one. Valid as long as
 * <h>.
 */
const time_t *control_handshakes_not_after(const struct control_handshakes *h);

/*
 * Read the certificates or the token of <config>. Refused peers are noted in <refusals>, which must
 * live longer. Returns NULL with a sentence in <error>.
 */
struct control_handshakes *control_handshakes_create(struct event_base *base,
						     const struct lb_config *config,
						     control_admit *admit, void *context,
						     struct refusals *refusals, char *error,
						     size_t error_size);
void control_handshakes_destroy(struct control_handshakes *h);

/*
 * Read the files again, for connections that come from now on. On -EINVAL the former ones stay in
 * use.
 */
int control_handshakes_reload(struct control_handshakes *h, const struct lb_config *config,
			      char *error, size_t error_size);

/* Set the time limit of handshakes that begin from now on; by default CONTROL_HANDSHAKE_MS. */
void control_handshakes_limit(struct control_handshakes *h, uint32_t ms);

/* Begin a handshake on <fd>, which this takes over. */
void control_handshake_start(struct control_handshakes *h, int fd, const struct sockaddr *address,
			     const char *peer);

struct lb_config;
/*
 * Check that the files of <config> can be used and that their certificate is valid. Returns 0; 1
 * with a sentence in <why> when the certificate ends soon; -EINVAL with a sentence when the files
 * cannot be used now. Needs no server.
 */
int control_server_tls_check(const struct lb_config *config, char *why, size_t size);

#endif
