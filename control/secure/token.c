/* SPDX-License-Identifier: BSD-3-Clause */
/* Tokens: from text to keys, and from keys to TLS's external pre-shared keys. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "secure/secure.h"

#define TEXT_MAX     4096
#define DIFFERENT    12 /* different bytes; 32 random bytes never have fewer */
#define DECODED_MAX  (TEXT_MAX / 4 * 3 + 3)
#define SUITE_SHA256 "\x13\x01" /* TLS_AES_128_GCM_SHA256: the key's hash is SHA-256 */
#define SUITES       "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256"

/* --- text ------------------------------------------------------------------------------------- */

static int from_hex(const char *text, size_t n, uint8_t *out)
{
	for (size_t i = 0; i < n; i++) {
		int c = tolower((unsigned char)text[i]);
		int digit = isdigit(c) ? c - '0' : c - 'a' + 10;

		out[i / 2] = (uint8_t)(i % 2 ? out[i / 2] | digit : digit << 4);
	}
	return (int)(n / 2);
}

static int from_base64(const char *text, size_t n, uint8_t *out)
{
	int length, padding = 0;

	if (n % 4 != 0)
		return -1;
	while (padding < 2 && text[n - 1 - (size_t)padding] == '=')
		padding++;
	length = EVP_DecodeBlock(out, (const unsigned char *)text, (int)n);
	return length < 0 ? -1 : length - padding;
}

static bool token_is_hex(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isxdigit((unsigned char)text[i]))
			return false;
	return n % 2 == 0;
}

/* Catches typing errors such as "0000..."; does not measure entropy. */
static bool token_looks_random(const uint8_t *bytes, int n)
{
	bool seen[256] = {false};
	int different = 0;

	for (int i = 0; i < n; i++) {
		different += !seen[bytes[i]];
		seen[bytes[i]] = true;
	}
	return different >= DIFFERENT;
}

/*
 * Derive the id and the key. The token itself never travels, and neither of the two reveals the
 * other.
 */
static void derive(const uint8_t *bytes, int n, struct secure_token *out)
{
	static const char for_key[] = "doorbell agents v1 key", for_id[] = "doorbell agents v1 id";
	uint8_t digest[EVP_MAX_MD_SIZE];
	unsigned int size;

	HMAC(EVP_sha256(), bytes, n, (const uint8_t *)for_key, sizeof(for_key) - 1, out->key,
	     &size);
	HMAC(EVP_sha256(), bytes, n, (const uint8_t *)for_id, sizeof(for_id) - 1, digest, &size);
	for (int i = 0; i < SECURE_ID_BYTES / 2; i++)
		snprintf(out->id + 2 * i, 3, "%02x", digest[i]);
}

static bool parse_line(const char *line, size_t n, unsigned int number, struct secure_token *out,
		       char *why, size_t why_size)
{
	uint8_t bytes[DECODED_MAX];
	int length = token_is_hex(line, n) ? from_hex(line, n, bytes) : from_base64(line, n, bytes);
	bool good = false;

	if (length < 0)
		snprintf(why, why_size,
			 "line %u is neither hexadecimal digits nor base64; make it with openssl "
			 "rand -hex 32",
			 number);
	else if (length < SECURE_TOKEN_MIN || length > SECURE_TOKEN_MAX)
		snprintf(why, why_size,
			 "line %u has %d bytes, and needs %d to %d; make it with openssl rand -hex "
			 "32",
			 number, length, SECURE_TOKEN_MIN, SECURE_TOKEN_MAX);
	else if (!token_looks_random(bytes, length))
		snprintf(why, why_size, "line %u is not random; make it with openssl rand -hex 32",
			 number);
	else
		good = true;
	if (good)
		derive(bytes, length, out);
	OPENSSL_cleanse(bytes, sizeof(bytes));
	return good;
}

bool secure_tokens_parse(const char *text, size_t n, struct secure_tokens *out, char *why,
			 size_t why_size)
{
	const char *end = text + n;

	memset(out, 0, sizeof(*out));
	if (n > TEXT_MAX) {
		snprintf(why, why_size, "it is longer than %d bytes", TEXT_MAX);
		return false;
	}
	for (unsigned int number = 1; text < end; number++) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *stop = newline != NULL ? newline : end,
			   *next = newline != NULL ? newline + 1 : end;

		while (stop > text && isspace((unsigned char)stop[-1]))
			stop--;
		while (text < stop && isspace((unsigned char)*text))
			text++;
		if (text < stop && *text != '#') {
			if (out->n == SECURE_TOKENS_MAX) {
				snprintf(why, why_size, "line %u: more than %d tokens", number,
					 SECURE_TOKENS_MAX);
				return false;
			}
			if (!parse_line(text, (size_t)(stop - text), number, &out->token[out->n],
					why, why_size))
				return false;
			out->n++;
		}
		text = next;
	}
	if (out->n == 0)
		snprintf(why, why_size, "it is empty; make it with openssl rand -hex 32");
	return out->n > 0;
}

/* --- TLS -------------------------------------------------------------------------------------- */

static int tokens_index = -1;

static void free_tokens(void *parent, void *tokens, CRYPTO_EX_DATA *data, int index, long argument,
			void *pointer)
{
	if (tokens != NULL)
		OPENSSL_clear_free(tokens, sizeof(struct secure_tokens));
}

/* Make the index once per process; contexts are made on one thread. */
static int index_of_tokens(void)
{
	if (tokens_index < 0)
		tokens_index = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, free_tokens);
	return tokens_index;
}

const struct secure_tokens *secure_context_tokens(const SSL_CTX *context)
{
	return tokens_index < 0 ? NULL : SSL_CTX_get_ex_data(context, tokens_index);
}

/* Make a session that carries the pre-shared key, as OpenSSL wants it. NULL when memory is out. */
static SSL_SESSION *make_session(SSL *ssl, const struct secure_token *token)
{
	const SSL_CIPHER *suite = SSL_CIPHER_find(ssl, (const unsigned char *)SUITE_SHA256);
	SSL_SESSION *session = SSL_SESSION_new();

	if (session != NULL && suite != NULL &&
	    SSL_SESSION_set1_master_key(session, token->key, sizeof(token->key)) == 1 &&
	    SSL_SESSION_set_cipher(session, suite) == 1 &&
	    SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1 &&
	    SSL_SESSION_set1_id_context(session, SECURE_CONTEXT_ID, sizeof(SECURE_CONTEXT_ID)) == 1)
		return session;
	SSL_SESSION_free(session);
	return NULL;
}

static int on_server(SSL *ssl, const unsigned char *identity, size_t n, SSL_SESSION **session)
{
	const struct secure_tokens *tokens = secure_context_tokens(SSL_get_SSL_CTX(ssl));

	*session = NULL;
	for (unsigned int i = 0; i < tokens->n; i++) {
		const struct secure_token *token = &tokens->token[i];

		if (n != SECURE_ID_BYTES || memcmp(identity, token->id, n) != 0)
			continue;
		*session = make_session(ssl, token);
		return *session != NULL;
	}
	return 1; /* no such token: without a certificate to fall back on, this ends in an alert */
}

static int on_client(SSL *ssl, const EVP_MD *digest, const unsigned char **identity, size_t *n,
		     SSL_SESSION **session)
{
	const struct secure_token *token = secure_context_tokens(SSL_get_SSL_CTX(ssl))->token;

	*identity = (const unsigned char *)token->id;
	*n = SECURE_ID_BYTES;
	*session = NULL;
	/*
	 * the key is for SHA-256 only; OpenSSL may ask again for another hash, for which there is
	 * none
	 */
	if (digest != NULL && !EVP_MD_is_a(digest, "SHA256"))
		return 1;
	*session = make_session(ssl, token);
	return *session != NULL;
}

bool secure_use_tokens(SSL_CTX *context, enum secure_side side, const char *path, char *error,
		       size_t error_size)
{
	struct secure_tokens *tokens = OPENSSL_zalloc(sizeof(*tokens));
	char text[TEXT_MAX + 1], why[160] = "no memory";
	long n = secure_read_secret("token", path, text, sizeof(text), error, error_size);
	bool good = false;

	if (n >= 0 && tokens != NULL)
		good = secure_tokens_parse(text, (size_t)n, tokens, why, sizeof(why));
	if (good && (SSL_CTX_set_ciphersuites(context, SUITES) != 1 ||
		     SSL_CTX_set_ex_data(context, index_of_tokens(), tokens) != 1)) {
		snprintf(why, sizeof(why), "no memory");
		good = false;
	}
	if (n >= 0 && !good)
		snprintf(error, error_size, "the token file %s: %s", path, why);
	OPENSSL_cleanse(text, sizeof(text));
	if (!good) {
		free_tokens(NULL, tokens, NULL, 0, 0, NULL);
		return false;
	}
	/* No authority is loaded, so no certificate passes: a peer needs the token. */
	if (side == SECURE_AGENT)
		SSL_CTX_set_psk_use_session_callback(context, on_client);
	else
		SSL_CTX_set_psk_find_session_callback(context, on_server);
	return true;
}
