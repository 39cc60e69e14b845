/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A blocking client of the control protocol, for the CLI and tests. One thread at a time.
 */
#ifndef CONTROL_CLIENT_H
#define CONTROL_CLIENT_H

#include <stddef.h>

#include <jansson.h>

#include "protocol/control.h"
#include "protocol/scan.h"

struct control_client;

/* Connect to the UNIX socket <path>. NULL with a sentence in <error>. */
struct control_client *control_client_connect(const char *path, char *error, size_t error_size);

/* The same over a connected stream socket, which it takes over. */
struct control_client *control_client_wrap(int fd, char *error, size_t error_size);

void control_client_close(struct control_client *client);

/*
 * Call <method>; takes over <params>, NULL for none. Returns the result, which the caller owns.
 * NULL with a sentence in <error>, and in <code> the server's error code or 0 when the connection
 * failed. Notifications that arrive meanwhile are dropped.
 */
json_t *control_client_call(struct control_client *client, const char *method, json_t *params,
			    int *code, char *error, size_t error_size);

/*
 * The same for a result with many rows: <rows> gets the array <member> as text, valid until the
 * next call, and the result has an empty one instead.
 */
json_t *control_client_call_rows(struct control_client *client, const char *method, json_t *params,
				 const char *member, struct scan *rows, int *code, char *error,
				 size_t error_size);

/*
 * Connect to <path> for what comes without a reply: the socket, which the caller closes, after
 * <method> was sent there as a notification. -1 with a sentence in <error>. Takes over <params>.
 */
int control_client_stream(const char *path, const char *method, json_t *params, char *error,
			  size_t error_size);

/* Wait at most <ms>. 1 when the server has hung up, 0 when the time is over. */
int control_client_wait(struct control_client *client, int ms);

#endif
