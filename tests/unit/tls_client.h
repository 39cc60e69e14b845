/* SPDX-License-Identifier: BSD-3-Clause */
/* OpenSSL's client and our server's side of TLS, with the bytes between them in memory. */
#ifndef TLS_CLIENT_H
#define TLS_CLIENT_H

#include <string.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "tls/handshake.h"

/* Tests without Criterion say first how they end. */
#ifndef FIXTURE_NEED
#include <criterion/criterion.h>
#define FIXTURE_NEED(condition) cr_assert(condition)
#endif

struct tls_client {
	SSL_CTX *context;
	SSL *ssl;
	BIO *in, *out; /* the SSL's */
};

/* <ciphers>: of TLS 1.2, or NULL; <suites>: of TLS 1.3, or NULL. */
static inline void tls_client_open(struct tls_client *c, int version, const char *ciphers,
				   const char *suites, SSL_SESSION *ticket)
{
	c->context = SSL_CTX_new(TLS_client_method());
	SSL_CTX_set_min_proto_version(c->context, version);
	SSL_CTX_set_max_proto_version(c->context, version);
	SSL_CTX_set_session_cache_mode(c->context, SSL_SESS_CACHE_CLIENT);
	FIXTURE_NEED(ciphers == NULL || SSL_CTX_set_cipher_list(c->context, ciphers) == 1);
	FIXTURE_NEED(suites == NULL || SSL_CTX_set_ciphersuites(c->context, suites) == 1);
	c->ssl = SSL_new(c->context);
	c->in = BIO_new(BIO_s_mem());
	c->out = BIO_new(BIO_s_mem());
	BIO_set_mem_eof_return(c->in, -1);
	SSL_set_bio(c->ssl, c->in, c->out);
	SSL_set_connect_state(c->ssl);
	if (ticket != NULL)
		SSL_set_session(c->ssl, ticket);
}

static inline void tls_client_close(struct tls_client *c)
{
	SSL_free(c->ssl);
	SSL_CTX_free(c->context);
}

/* The bytes that the client has for the server. */
static inline uint32_t tls_client_take(struct tls_client *c, uint8_t *to, uint32_t room)
{
	int n = BIO_read(c->out, to, (int)room);

	return n > 0 ? (uint32_t)n : 0;
}

static inline void tls_client_give(struct tls_client *c, const uint8_t *bytes, uint32_t n)
{
	if (n > 0)
		FIXTURE_NEED(BIO_write(c->in, bytes, (int)n) == (int)n);
}

/*
 * A handshake, in which the client's bytes come <cut> at a time. NULL: it failed, and the reason is
 * in <reason>. Bytes that came behind the handshake are in <left>, and their number in <n_left>.
 */
static inline struct tls_session *tls_client_meet(struct tls_client *c, struct tls_context *context,
						  uint32_t cut, char reason[96], uint8_t *left,
						  uint32_t *n_left)
{
	struct tls_handshake *h = tls_handshake_create(context);
	enum tls_progress progress = TLS_GOING;
	struct tls_session *s = NULL;
	const uint8_t *to_client;
	uint8_t bytes[32768];
	uint32_t n, out, at = 0;

	*n_left = 0;
	reason[0] = '\0';
	while (progress == TLS_GOING) {
		SSL_do_handshake(c->ssl);
		n = tls_client_take(c, bytes, sizeof(bytes));
		if (n == 0)
			break;
		for (at = 0; at < n && progress == TLS_GOING; at += cut) {
			uint32_t part = n - at < cut ? n - at : cut;

			progress = tls_handshake_step(h, bytes + at, part);
			to_client = tls_handshake_output(h, &out);
			tls_client_give(c, to_client, out);
			if (progress == TLS_DONE) {
				*n_left = tls_handshake_left(h) + (n - at - part);
				memcpy(left, bytes + n - *n_left, *n_left);
			}
		}
	}
	ERR_clear_error();
	if (progress == TLS_DONE)
		s = tls_handshake_session(h);
	if (progress == TLS_FAILED)
		strcpy(reason, tls_handshake_reason(h));
	tls_handshake_free(h);
	return s;
}

/* A whole record of <n> bytes, which lie in pieces of <cut>. Returns its size. */
static inline uint32_t tls_write_record(struct tls_session *s, enum tls_type type,
					const uint8_t *bytes, uint32_t n, uint32_t cut, uint8_t *to)
{
	uint32_t size = tls_write_begin(s, type, n, to);

	for (uint32_t at = 0; at < n; at += cut) {
		uint32_t part = n - at < cut ? n - at : cut;

		tls_write_bytes(s, bytes + at, part, to + size);
		size += part;
	}
	return size + tls_write_end(s, type, to + size);
}

#endif
