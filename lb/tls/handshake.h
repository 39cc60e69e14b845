/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The facade of TLS before there are keys: certificates of services (context.c), the server's side
 * of a handshake over memory (handshake.c), and the keys that come of it (keys.c). All of it
 * allocates and computes for as long as it takes (an RSA signature takes a millisecond): for the
 * control thread and the helper (helper.h), never an lcore.
 *
 * TLS 1.3 and 1.2, with what Mozilla's "intermediate" advises, less DHE, which costs servers most:
 * ECDHE over X25519, P-256 or P-384, AES-GCM and ChaCha20-Poly1305. No renegotiation, no
 * compression, no early data; tickets are encrypted with keys that live for an hour, so no state is
 * kept for them.
 */
#ifndef LB_TLS_HANDSHAKE_H
#define LB_TLS_HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "tls/session.h"

/* A certificate with its key, and the keys of its tickets. */
struct tls_context;

/* The choices of ALPN (RFC 7301). A client that offers others only is refused, unless the service
 * has none of its own. */
struct tls_protocols {
	bool http1, http2; /* the first goes first: clients that offer both ask no gRPC */
};

/* NULL with a sentence in <error> that names the file and the reason. References count: it lives
 * until the last handshake has let go. */
struct tls_context *tls_context_create(const char *certificate, const char *key,
				       const struct tls_protocols *protocols, char *error,
				       size_t size);
void tls_context_hold(struct tls_context *context);
void tls_context_free(struct tls_context *context); /* NULL: does nothing */
/* The end of the certificate's validity, seconds since 1970. */
time_t tls_context_not_after(const struct tls_context *context);
/* False: the certificate has ended, or is not valid yet, and <why> says so: "has ended; ...". */
bool tls_context_is_valid(const struct tls_context *context, char *why, size_t size);

struct tls_handshake;

enum tls_progress {
	TLS_GOING, /* bytes of the client are needed */
	TLS_DONE,
	TLS_FAILED,
};

/* NULL: no memory. Holds the context. */
struct tls_handshake *tls_handshake_create(struct tls_context *context);
void tls_handshake_free(struct tls_handshake *h);

/* The <n> next bytes of the client. Bytes for the client are in tls_handshake_output() then. */
enum tls_progress tls_handshake_step(struct tls_handshake *h, const uint8_t *bytes, uint32_t n);
/* Bytes of the last step that are records of after the handshake. */
uint32_t tls_handshake_left(const struct tls_handshake *h);
/* Bytes for the client from the last step; valid until the next one. */
const uint8_t *tls_handshake_output(const struct tls_handshake *h, uint32_t *n);
/* Why it failed, in OpenSSL's words. */
const char *tls_handshake_reason(const struct tls_handshake *h);
/* After TLS_DONE: the connection's keys. NULL: no memory. The caller frees it. */
struct tls_session *tls_handshake_session(struct tls_handshake *h);

/* --- keys.c: what a session needs of keys -------------------------------------------------------
 */

struct tls_keys {
	uint16_t version;
	int cipher; /* NID */
	const EVP_MD *hash;
	/* of TLS 1.3: the secrets of its traffic */
	uint8_t client[TLS_SECRET_MAX], server[TLS_SECRET_MAX];
	/* of TLS 1.2 */
	uint8_t master[48];
	size_t master_size;
	uint8_t client_random[32], server_random[32];
};

/* NULL: no memory, or a cipher that is none of ours. */
struct tls_session *tls_session_create(const struct tls_keys *keys);
void tls_session_free(struct tls_session *s);
/* The next keys of a direction of TLS 1.3 (RFC 8446, 7.2). False: no memory. */
bool tls_session_update(struct tls_session *s, struct tls_direction *d);

#endif
