/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "protocol/client.h"

#define ANSWER_TIMEOUT_S 10

struct control_client {
	int fd;
	FILE *in; /* lines from <fd>, which it closes */
	json_int_t id;
	char *line; /* getline()'s buffer */
	size_t line_size;
};

/*
 * A read that has a time limit ends with EINTR at SIGCONT, even without a handler: when a program
 * that the terminal halted goes on. It has missed nothing, and reads again.
 */
static ssize_t client_read_on(void *cookie, char *buf, size_t n)
{
	const struct control_client *client = cookie;
	ssize_t got;

	do {
		got = read(client->fd, buf, n);
	} while (got < 0 && errno == EINTR);
	return got;
}

static int client_hang_up(void *cookie)
{
	const struct control_client *client = cookie;

	return close(client->fd);
}

struct control_client *control_client_wrap(int fd, char *error, size_t error_size)
{
	const cookie_io_functions_t reading = {.read = client_read_on, .close = client_hang_up};
	const struct timeval timeout = {.tv_sec = ANSWER_TIMEOUT_S};
	struct control_client *client = calloc(1, sizeof(*client));

	if (client == NULL)
		goto failed;
	client->fd = fd;
	client->in = fopencookie(client, "r", reading);
	if (client->in == NULL)
		goto failed;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	return client;

failed:
	snprintf(error, error_size, "out of memory");
	free(client);
	close(fd);
	return NULL;
}

/* Returns a socket that is connected to <path>, or -1 with a sentence in <error>. */
static int client_open_socket(const char *path, char *error, size_t error_size)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd;

	if (*path == '\0' || strlen(path) >= sizeof(address.sun_path)) {
		snprintf(error, error_size, "socket path '%s': give 1 to %zu bytes", path,
			 sizeof(address.sun_path) - 1);
		return -1;
	}
	memcpy(address.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
		snprintf(error, error_size,
			 "cannot reach doorbell-lb at %s: %s; is it running? (--socket to choose "
			 "another)",
			 path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	return fd;
}

struct control_client *control_client_connect(const char *path, char *error, size_t error_size)
{
	int fd = client_open_socket(path, error, error_size);

	return fd < 0 ? NULL : control_client_wrap(fd, error, error_size);
}

void control_client_close(struct control_client *client)
{
	if (client == NULL)
		return;
	fclose(client->in);
	free(client->line);
	free(client);
}

static int client_send_all(int fd, const char *data, size_t n)
{
	while (n > 0) {
		ssize_t sent = send(fd, data, n, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return -errno;
		data += sent;
		n -= (size_t)sent;
	}
	return 0;
}

/*
 * Send a message as one line. With <id> 0 it is a notification, which has no reply. Takes over
 * <params>.
 */
static int send_message(int fd, json_int_t id, const char *method, json_t *params)
{
	json_t *message =
		json_pack("{s:s, s:o*, s:s, s:o*}", "jsonrpc", "2.0", "id",
			  id ? json_integer(id) : NULL, "method", method, "params", params);
	char *text = message != NULL ? json_dumps(message, JSON_COMPACT) : NULL;
	size_t n;
	int rc;

	json_decref(message);
	if (text == NULL)
		return -ENOMEM;
	n = strlen(text);
	text[n] = '\n'; /* in place of the terminating zero, which the given length makes
			   unnecessary */
	rc = client_send_all(fd, text, n + 1);
	free(text);
	return rc;
}

int control_client_stream(const char *path, const char *method, json_t *params, char *error,
			  size_t error_size)
{
	int fd = client_open_socket(path, error, error_size), rc;

	if (fd < 0) {
		json_decref(params);
		return -1;
	}
	rc = send_message(fd, 0, method, params);
	if (rc == 0)
		return fd;
	snprintf(error, error_size, "cannot send to doorbell-lb: %s", strerror(-rc));
	close(fd);
	return -1;
}

static json_t *load_value(struct scan text)
{
	return json_loadb(text.at, (size_t)(text.end - text.at), JSON_DECODE_ANY, NULL);
}

/*
 * Build <text>, an object, as a value without its member <name>; <member> gets that one's text and
 * stays as it was when there is none. NULL when <text> is no JSON object.
 */
static json_t *load_object(struct scan text, const char *name, struct scan *member)
{
	json_t *object = json_object();
	struct scan key, value;
	bool good = object != NULL;

	while (good && scan_next_member(&text, &key, &value)) {
		char *key_text = strndup(key.at, (size_t)(key.end - key.at));

		if (key_text != NULL && strcmp(key_text, name) == 0)
			*member = value;
		else
			good = key_text != NULL &&
			       json_object_set_new(object, key_text, load_value(value)) == 0;
		free(key_text);
	}
	if (good && scan_object_ended(text))
		return object;
	json_decref(object);
	return NULL;
}

/*
 * Load a reply. An array <member> of its result goes to <rows> as text, and the result gets an
 * empty array instead.
 */
static json_t *load_reply(struct scan line, const char *member, struct scan *rows)
{
	struct scan text = {NULL, NULL};
	json_t *reply = load_object(line, "result", &text), *result;

	if (reply == NULL || text.at == NULL)
		return reply;
	result = load_object(text, member, rows);
	if (rows->at != NULL && *rows->at == '[') {
		json_object_set_new(result, member, json_array());
	} else if (rows->at != NULL) {
		json_decref(result);
		result = load_value(text);
		rows->at = rows->end = NULL;
	}
	if (json_object_set_new(reply, "result", result) == 0)
		return reply;
	json_decref(reply);
	return NULL;
}

/*
 * Read the next message. NULL with errno, which is 0 at the end of the stream. <rows> as for
 * load_reply().
 */
static json_t *client_receive(struct control_client *client, const char *member, struct scan *rows)
{
	json_t *message;
	ssize_t n;

	errno = 0;
	n = getline(&client->line, &client->line_size, client->in);
	if (n < 0)
		return NULL;
	if (member != NULL)
		message = load_reply((struct scan){client->line, client->line + n}, member, rows);
	else
		message = json_loadb(client->line, (size_t)n, 0, NULL);
	if (message == NULL)
		errno = EPROTO;
	return message;
}

static const char *why_nothing_came(int err)
{
	if (err == 0)
		return "it closed the connection";
	if (err == EAGAIN)
		return "no answer in time";
	if (err == EPROTO)
		return "it answered with something else than JSON-RPC";
	return strerror(err);
}

/* Read the reply to the last call and skip notifications. */
static json_t *receive_reply(struct control_client *client, const char *member, struct scan *rows)
{
	json_t *message;

	while ((message = client_receive(client, member, rows)) != NULL) {
		const json_t *id = json_object_get(message, "id");

		/* an error with id null is about our line, too */
		if (json_is_null(id) || json_integer_value(id) == client->id)
			return message;
		json_decref(message);
	}
	return NULL;
}

json_t *control_client_call(struct control_client *client, const char *method, json_t *params,
			    int *code, char *error, size_t error_size)
{
	return control_client_call_rows(client, method, params, NULL, NULL, code, error,
					error_size);
}

json_t *control_client_call_rows(struct control_client *client, const char *method, json_t *params,
				 const char *member, struct scan *rows, int *code, char *error,
				 size_t error_size)
{
	json_t *reply, *result, *fault;
	int rc = send_message(client->fd, ++client->id, method, params);

	*code = 0;
	if (rows != NULL)
		rows->at = rows->end = NULL;
	/* a server that refused us sent the reason before it closed: read that first */
	if (rc != 0 && rc != -EPIPE) {
		snprintf(error, error_size, "cannot send to doorbell-lb: %s", strerror(-rc));
		return NULL;
	}
	reply = receive_reply(client, member, rows);
	if (reply == NULL) {
		snprintf(error, error_size, "lost doorbell-lb: %s", why_nothing_came(errno));
		return NULL;
	}
	result = json_incref(json_object_get(reply, "result"));
	if (result == NULL) {
		const char *message;

		fault = json_object_get(reply, "error");
		message = json_string_value(json_object_get(fault, "message"));
		*code = (int)json_integer_value(json_object_get(fault, "code"));
		snprintf(error, error_size, "%s",
			 message != NULL ? message : "an error without a message");
	}
	json_decref(reply);
	return result;
}

int control_client_wait(struct control_client *client, int ms)
{
	struct pollfd poller = {.fd = client->fd, .events = POLLRDHUP};

	return poll(&poller, 1, ms) > 0;
}
