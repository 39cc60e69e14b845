/* SPDX-License-Identifier: BSD-3-Clause */
/* The private header of context.c and handshake.c. */
#ifndef LB_TLS_CONTEXT_H
#define LB_TLS_CONTEXT_H

#include <openssl/ssl.h>

#include "tls/handshake.h"

struct tls_ticket_key {
	uint64_t born; /* s */
	bool used;
	uint8_t name[16], secret[32], proof[32];
};

struct tls_context {
	uint32_t references; /* atomic */
	SSL_CTX *ssl;
	struct tls_protocols protocols;
	time_t not_after;
	uint8_t ticket_name[16]; /* tickets of other contexts are none of ours */
	/* the one of new tickets, and the one before; only the thread that makes handshakes looks
	 */
	struct tls_ticket_key ticket_key[2];
};

/* A line of OpenSSL's key log: secrets of a connection. */
void tls_note_secret(const SSL *ssl, const char *line);

#endif
