/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <unistd.h>

#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <openssl/err.h>

#include "agent.h"
#include "dial.h"
#include "secure/secure.h"

static struct secure_files dial_files(const struct agent_options *o)
{
	return (struct secure_files){
		.certificate = o->tls_certificate,
		.key = o->tls_key,
		.ca = o->tls_ca,
		.token = o->token_file,
	};
}

bool agent_dial_wants_tls(const struct agent_options *o)
{
	struct secure_files files = dial_files(o);

	return secure_wanted(&files);
}

bool agent_dial_check(const struct agent_options *o, char *error, size_t size)
{
	struct secure_files files = dial_files(o);
	SSL_CTX *context;

	if (!secure_wanted(&files))
		return true;
	context = secure_context(SECURE_AGENT, &files, error, size);
	SSL_CTX_free(context);
	return context != NULL;
}

bool agent_dial_ends_soon(const struct agent_options *o, char *why, size_t size)
{
	struct secure_files files = dial_files(o);
	enum secure_validity validity;
	time_t not_after;
	SSL_CTX *context;

	if (!secure_wanted(&files))
		return false;
	context = secure_context(SECURE_AGENT, &files, why, size);
	if (context == NULL)
		return true;
	validity = secure_validity_at(context, time(NULL), &not_after, why, size);
	SSL_CTX_free(context);
	return validity != SECURE_VALID;
}

/* The name or address that must be in the load balancer's certificate. */
static const char *dial_peer_name(const struct agent_options *o)
{
	return o->tls_name != NULL ? o->tls_name : o->lb.host;
}

static struct bufferevent *dial_handshake(struct event_base *base, int fd,
					  const struct agent_options *o, char *error, size_t size)
{
	struct secure_files files = dial_files(o);
	SSL_CTX *context = secure_context(SECURE_AGENT, &files, error, size);
	struct bufferevent *connection = NULL;
	SSL *ssl;

	if (context == NULL)
		return NULL;
	ssl = secure_dial(context, dial_peer_name(o));
	SSL_CTX_free(context); /* <ssl> holds a reference */
	if (ssl != NULL)
		connection = bufferevent_openssl_socket_new(
			base, fd, ssl, BUFFEREVENT_SSL_CONNECTING, BEV_OPT_CLOSE_ON_FREE);
	if (connection == NULL) {
		SSL_free(ssl);
		snprintf(error, size, "no memory for a TLS connection");
	}
	return connection;
}

struct bufferevent *agent_dial_secure(struct event_base *base, struct bufferevent *plain,
				      const struct agent_options *o, char *error, size_t size)
{
	int fd = bufferevent_getfd(plain);
	struct bufferevent *connection;

	bufferevent_setfd(plain, -1);
	bufferevent_free(plain);
	connection = dial_handshake(base, fd, o, error, size);
	if (connection == NULL)
		close(fd);
	return connection;
}

bool agent_dial_proven(struct bufferevent *connection)
{
	const SSL *ssl = bufferevent_openssl_get_ssl(connection);

	return ssl == NULL || secure_proven(ssl);
}

bool agent_dial_reason(struct bufferevent *connection, char *reason, size_t size)
{
	SSL *ssl = bufferevent_openssl_get_ssl(connection);
	unsigned long code;
	char byte;

	if (ssl == NULL)
		return false;
	code = bufferevent_get_openssl_error(connection);
	/*
	 * A refusal may arrive after our side has finished the handshake: then a write may fail
	 * before the alert with the reason was read.
	 */
	if (code == 0) {
		ERR_clear_error();
		SSL_read(ssl, &byte, 1);
		code = ERR_peek_last_error();
		ERR_clear_error();
	}
	if (code == 0)
		return false;
	secure_reason(SECURE_AGENT, ssl, code, reason, size);
	return true;
}
