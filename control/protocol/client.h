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

/* As control_client_connect(), over a connected stream socket, which this takes over. */
struct control_client *control_client_wrap(int fd, char *error, size_t error_size);

void control_client_close(struct control_client *client);

/*
 * Call <method> with <params>, which this takes over; NULL for none. Returns the result, which the
 * caller owns. NULL with a sentence in <error>; <code> is then the server's error code, or 0 when
 * the connection failed. Drops notifications that arrive before the reply.
 */
json_t *control_client_call(struct control_client *client, const char *method, json_t *params,
			    int *code, char *error, size_t error_size);

/*
 * As control_client_call(), for a result with many rows: <rows> gets the array <member> as text,
 * valid until the next call, and the result has an empty array instead.
 */
json_t *control_client_call_rows(struct control_client *client, const char *method, json_t *params,
				 const char *member, struct scan *rows, int *code, char *error,
				 size_t error_size);

/*
 * Connect to <path> and send <method> as a notification, for data that arrives without a reply.
 * Returns the socket, which the caller closes, or -1 with a sentence in <error>. Takes over
 * <params>.
 */
int control_client_stream(const char *path, const char *method, json_t *params, char *error,
			  size_t error_size);

/* Wait at most <ms>. Returns 1 when the server has closed the connection, 0 after <ms>. */
int control_client_wait(struct control_client *client, int ms);

#endif
