/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The server's side of a handshake. OpenSSL makes it over two BIOs in memory; then its secrets are
 * taken, and it is not asked again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>

#include "tls/context.h"

/* Bytes that a client may say before its handshake is over. Some 2 KiB are usual, with tickets and
 * keys of other kinds 16 KiB; OpenSSL would keep 128 KiB of a message that is not complete. */
#define HANDSHAKE_MAX 32768

struct tls_handshake {
	struct tls_context *context;
	SSL *ssl;
	BIO *in, *out; /* the SSL's */
	struct tls_keys keys;
	uint32_t left, came;
	uint64_t records; /* that were written with the keys of after the handshake */
	char reason[96];
};

struct tls_handshake *tls_handshake_create(struct tls_context *context)
{
	struct tls_handshake *h = calloc(1, sizeof(*h));

	if (h == NULL)
		return NULL;
	h->ssl = SSL_new(context->ssl);
	h->in = BIO_new(BIO_s_mem());
	h->out = BIO_new(BIO_s_mem());
	if (h->ssl == NULL || h->in == NULL || h->out == NULL) {
		SSL_free(h->ssl);
		BIO_free(h->in);
		BIO_free(h->out);
		free(h);
		return NULL;
	}
	h->context = context;
	tls_context_hold(context);
	SSL_set_bio(h->ssl, h->in, h->out);
	SSL_set_app_data(h->ssl, h);
	SSL_set_accept_state(h->ssl);
	return h;
}

void tls_handshake_free(struct tls_handshake *h)
{
	if (h == NULL)
		return;
	SSL_free(h->ssl);
	tls_context_free(h->context);
	OPENSSL_cleanse(h, sizeof(*h));
	free(h);
}

/* --- secrets -----------------------------------------------------------------------------------
 */

static void read_hex(const char *text, uint8_t *out, size_t size)
{
	unsigned int byte;

	for (size_t i = 0; i < size && sscanf(text + 2 * i, "%2x", &byte) == 1; i++)
		out[i] = byte;
}

/* "<name> <the client's random number> <secret>", in hexadecimal digits */
void tls_note_secret(const SSL *ssl, const char *line)
{
	struct tls_handshake *h = SSL_get_app_data(ssl);
	const char *secret = strrchr(line, ' ');

	if (h == NULL || secret == NULL)
		return;
	if (strncmp(line, "CLIENT_TRAFFIC_SECRET_0 ", 24) == 0)
		read_hex(secret + 1, h->keys.client, sizeof(h->keys.client));
	else if (strncmp(line, "SERVER_TRAFFIC_SECRET_0 ", 24) == 0)
		read_hex(secret + 1, h->keys.server, sizeof(h->keys.server));
}

static uint16_t record_max(const SSL *ssl)
{
	uint8_t code = SSL_SESSION_get_max_fragment_length(SSL_get_session(ssl));

	/* RFC 6066, 4: 2^9 to 2^12 */
	return code >= 1 && code <= 4 ? 256u << code : TLS_PLAIN_MAX;
}

static uint8_t protocol_of(const SSL *ssl)
{
	const unsigned char *name;
	unsigned int n;

	SSL_get0_alpn_selected(ssl, &name, &n);
	if (n == 2)
		return TLS_PROTOCOL_HTTP2;
	return n == 8 ? TLS_PROTOCOL_HTTP1 : TLS_PROTOCOL_NONE;
}

struct tls_session *tls_handshake_session(struct tls_handshake *h)
{
	const SSL_CIPHER *cipher = SSL_get_current_cipher(h->ssl);
	struct tls_session *s;

	h->keys.version = SSL_version(h->ssl);
	h->keys.cipher = SSL_CIPHER_get_cipher_nid(cipher);
	h->keys.hash = SSL_CIPHER_get_handshake_digest(cipher);
	SSL_get_client_random(h->ssl, h->keys.client_random, sizeof(h->keys.client_random));
	SSL_get_server_random(h->ssl, h->keys.server_random, sizeof(h->keys.server_random));
	h->keys.master_size = SSL_SESSION_get_master_key(SSL_get_session(h->ssl), h->keys.master,
							 sizeof(h->keys.master));
	s = tls_session_create(&h->keys);
	if (s == NULL)
		return NULL;
	s->record_max = record_max(h->ssl);
	s->protocol = protocol_of(h->ssl);
	s->resumed = SSL_session_reused(h->ssl) == 1;
	/* Tickets follow the server's Finished with the keys of data. */
	if (tls_is_13(s))
		s->out.number = h->records;
	return s;
}

/* --- steps -------------------------------------------------------------------------------------
 */

static uint64_t count_records(const struct tls_handshake *h)
{
	uint32_t n, at = 0;
	const uint8_t *bytes = tls_handshake_output(h, &n);
	uint64_t records = 0;

	while (at + TLS_HEADER <= n) {
		at += TLS_HEADER + (bytes[at + 3] << 8 | bytes[at + 4]);
		records++;
	}
	return records;
}

/* <why>: NULL: as OpenSSL says. */
static enum tls_progress fail(struct tls_handshake *h, const char *why)
{
	if (why == NULL)
		why = ERR_reason_error_string(ERR_peek_last_error());
	snprintf(h->reason, sizeof(h->reason), "%s", why != NULL ? why : "no memory");
	ERR_clear_error();
	return TLS_FAILED;
}

enum tls_progress tls_handshake_step(struct tls_handshake *h, const uint8_t *bytes, uint32_t n)
{
	int rc;

	ERR_clear_error();
	BIO_reset(h->out);
	h->came += n;
	if (h->came > HANDSHAKE_MAX)
		return fail(h, "the client's handshake is too long");
	if (BIO_write(h->in, bytes, (int)n) != (int)n)
		return fail(h, NULL);
	rc = SSL_do_handshake(h->ssl);
	h->left = BIO_ctrl_pending(h->in);
	if (rc == 1) {
		/* The client's Finished was in this step, so the whole flight before it had left.
		 */
		h->records = count_records(h);
		return TLS_DONE;
	}
	return SSL_get_error(h->ssl, rc) == SSL_ERROR_WANT_READ ? TLS_GOING : fail(h, NULL);
}

uint32_t tls_handshake_left(const struct tls_handshake *h)
{
	return h->left;
}

const uint8_t *tls_handshake_output(const struct tls_handshake *h, uint32_t *n)
{
	char *bytes;
	long size = BIO_get_mem_data(h->out, &bytes);

	*n = size > 0 ? size : 0;
	return (const uint8_t *)bytes;
}

const char *tls_handshake_reason(const struct tls_handshake *h)
{
	return h->reason;
}
