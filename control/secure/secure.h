/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Facade of secure/: TLS 1.3 between agents and load balancers, for both sides: contexts from
 * files, the peer's identity, and sentences for errors. Depends on OpenSSL and on no other folder;
 * has no sockets and no events.
 *
 * Either both sides have certificates of one authority, or both have the same token, which TLS uses
 * as an external pre-shared key with a fresh Diffie-Hellman exchange (RFC 8446, 4.2.9 and 4.2.11).
 * There are no session tickets, so a certificate is checked at each connection.
 */
#ifndef SECURE_H
#define SECURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <openssl/ssl.h>

enum secure_side { SECURE_LOAD_BALANCER, SECURE_AGENT };

/* Paths, "" or NULL when absent. Either the first three are given, or the last. */
struct secure_files {
	const char *certificate, *key, *ca; /* PEM */
	const char *token;
};

/* True when at least one file is given. */
bool secure_wanted(const struct secure_files *files);

/*
 * Make a context from <files>. NULL with a sentence in <error> that names the file and the fix. The
 * caller frees it with SSL_CTX_free(), also while connections made from it are still open.
 */
SSL_CTX *secure_context(enum secure_side side, const struct secure_files *files, char *error,
			size_t error_size);

/*
 * Days until <context>'s certificate ends, negative after that. 0 with <none> set when it has none.
 */
long secure_days_left(const SSL_CTX *context, bool *none);

/* Days before a certificate's end from which its owner is reminded. */
#define SECURE_REMIND_DAYS 7

enum secure_validity {
	SECURE_VALID, /* or there is no certificate */
	SECURE_ENDS_SOON,
	SECURE_ENDED,
	SECURE_NOT_YET,
};

/*
 * Check <context>'s certificate at <now>, seconds since 1970. Unless SECURE_VALID, <why> gets a
 * sentence with the fix. <not_after> gets the certificate's end; 0 without a certificate.
 */
enum secure_validity secure_validity_at(const SSL_CTX *context, time_t now, time_t *not_after,
					char *why, size_t size);

/*
 * Make one connection of a load balancer, or of an agent, which wants a certificate for <peer>, a
 * host name or an address. NULL when memory is out. The caller frees it with SSL_free().
 */
SSL *secure_accept(SSL_CTX *context);
SSL *secure_dial(SSL_CTX *context, const char *peer);

/*
 * After the handshake: true when the peer was authenticated. Checked again, as so much depends on
 * it.
 */
bool secure_proven(const SSL *ssl);

/*
 * Write why a handshake failed, for people on side <side>. <code> is from OpenSSL's error queue; 0
 * when the queue was empty.
 */
void secure_reason(enum secure_side side, const SSL *ssl, unsigned long code, char *out,
		   size_t size);

/* --- names: which workers a certificate may register ---------------------------------------- */

#define SECURE_NAMES_MAX 1024

/*
 * Read the DNS names of the peer's certificate, or its common name if it has no subjectAltName,
 * separated by blanks. Includes the limits on its workers: "ip:10.201.0.11" for an IP address of
 * its subjectAltName, "model:echo" for the URI doorbell:model:echo. Writes "" when the peer has no
 * certificate. False when the names do not fit in <size>.
 */
bool secure_peer_names(const SSL *ssl, char *names, size_t size);

/*
 * True when a certificate with these <names> may register worker <worker>: one of them is the
 * worker's name, with or without the "-gpu" or "-cpu" and digits by which an agent tells its
 * workers apart. A name "*.rest" stands for any one label before ".rest". Case does not matter.
 * Pure.
 */
bool secure_names_allow(const char *names, const char *worker);

/*
 * True when its worker may have this address on the fabric, or serve this model; always true when
 * <names> hold no address, or no model. Pure.
 */
bool secure_names_allow_address(const char *names, const char *address);
bool secure_names_allow_model(const char *names, const char *model);

/* --- tokens --------------------------------------------------------------------------------- */

#define SECURE_TOKENS_MAX 4 /* an agent sends the first; a load balancer takes all */
#define SECURE_TOKEN_MIN  32 /* bytes */
#define SECURE_TOKEN_MAX  64
#define SECURE_PSK_BYTES  32
#define SECURE_ID_BYTES   32
/* A name for our sessions: OpenSSL refuses sessions without one. It never travels. */
#define SECURE_CONTEXT_ID ((const unsigned char[]){'d', 'o', 'o', 'r', 'b', 'e', 'l', 'l'})

struct secure_token {
	char id[SECURE_ID_BYTES + 1]; /* names the key on the wire; hexadecimal digits */
	uint8_t key[SECURE_PSK_BYTES];
};

struct secure_tokens {
	unsigned int n;
	struct secure_token token[SECURE_TOKENS_MAX];
};

/*
 * Read tokens from the text of a file: one per line, each at least SECURE_TOKEN_MIN random bytes as
 * hexadecimal digits or base64; '#' starts a comment line. False with the end of a sentence in
 * <why>: "line 2 has 16 bytes; ...". Pure.
 */
bool secure_tokens_parse(const char *text, size_t n, struct secure_tokens *out, char *why,
			 size_t why_size);

/* The tokens of a context of ours; NULL when it has certificates. */
const struct secure_tokens *secure_context_tokens(const SSL_CTX *context);

/* Set up <context> with the tokens of <path>. False with a sentence. Private to this folder. */
bool secure_use_tokens(SSL_CTX *context, enum secure_side side, const char *path, char *error,
		       size_t error_size);

/*
 * Read a file that must not be readable for others. Returns its size, or -1 with a sentence.
 * Private to this folder.
 */
long secure_read_secret(const char *what, const char *path, char *text, size_t size, char *error,
			size_t error_size);

#endif
