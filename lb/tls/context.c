/* SPDX-License-Identifier: BSD-3-Clause */
/* Certificates of services, what is offered to their clients, and the keys of tickets. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>

#include "tls/context.h"

#define TICKET_KEY_SECONDS 3600
#define CIPHERS_12                                                                                 \
	"ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:"                               \
	"ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:"                               \
	"ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305"
#define CIPHERS_13 "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
#define GROUPS     "X25519:P-256:P-384"

/* --- tickets -----------------------------------------------------------------------------------
 */

/* s of a clock that never steps: keys must not live on because the wall clock was set back. */
static uint64_t now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec;
}

static bool ticket_key_make(struct tls_ticket_key *k)
{
	k->born = now_s();
	k->used = RAND_bytes(k->name, sizeof(k->name)) == 1 &&
		  RAND_bytes(k->secret, sizeof(k->secret)) == 1 &&
		  RAND_bytes(k->proof, sizeof(k->proof)) == 1;
	return k->used;
}

/* The key of new tickets: one that is too old becomes the one before. NULL: no random numbers. */
static struct tls_ticket_key *ticket_key_now(struct tls_context *c)
{
	struct tls_ticket_key *k = &c->ticket_key[0];

	if (k->used && now_s() - k->born < TICKET_KEY_SECONDS)
		return k;
	c->ticket_key[1] = *k;
	return ticket_key_make(k) ? k : NULL;
}

static bool ticket_use(const struct tls_ticket_key *k, uint8_t *iv, EVP_CIPHER_CTX *cipher,
		       EVP_MAC_CTX *mac, int encrypt)
{
	const OSSL_PARAM params[] = {
		OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, (void *)k->proof,
						  sizeof(k->proof)),
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)"SHA256", 0),
		OSSL_PARAM_construct_end(),
	};

	return EVP_MAC_CTX_set_params(mac, params) == 1 &&
	       EVP_CipherInit_ex(cipher, EVP_aes_256_cbc(), NULL, k->secret, iv, encrypt) == 1;
}

/* OpenSSL's question; answers: -1: an error, 0: no such key, 1: it is set, 2: and a newer ticket is
 * due. */
static int ticket_keys(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher,
		       EVP_MAC_CTX *mac, int encrypt)
{
	struct tls_context *c = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
	struct tls_ticket_key *now = ticket_key_now(c);

	if (now == NULL)
		return -1;
	if (encrypt) {
		memcpy(name, now->name, sizeof(now->name));
		return RAND_bytes(iv, EVP_MAX_IV_LENGTH) == 1 && ticket_use(now, iv, cipher, mac, 1)
			       ? 1
			       : -1;
	}
	for (int i = 0; i < 2; i++) {
		const struct tls_ticket_key *k = &c->ticket_key[i];

		if (k->used && now_s() - k->born < 2 * TICKET_KEY_SECONDS &&
		    memcmp(name, k->name, sizeof(k->name)) == 0)
			return ticket_use(k, iv, cipher, mac, 0) ? 1 + (k != now) : -1;
	}
	return 0;
}

/* --- what clients are offered ------------------------------------------------------------------
 */

static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *n,
			   const unsigned char *offered, unsigned int n_offered, void *context)
{
	static const unsigned char both[] = "\x08http/1.1\x02h2";
	const struct tls_context *c = context;
	const unsigned char *ours = both + (c->protocols.http1 ? 0 : 9);
	unsigned int n_ours = (c->protocols.http1 ? 9 : 0) + (c->protocols.http2 ? 3 : 0);

	if (n_ours == 0)
		return SSL_TLSEXT_ERR_ALERT_FATAL; /* it speaks something else */
	return SSL_select_next_proto((unsigned char **)out, n, ours, n_ours, offered, n_offered) ==
			       OPENSSL_NPN_NEGOTIATED
		       ? SSL_TLSEXT_ERR_OK
		       : SSL_TLSEXT_ERR_ALERT_FATAL;
}

static bool set_up(struct tls_context *c)
{
	SSL_CTX *ssl = c->ssl;

	SSL_CTX_set_app_data(ssl, c);
	SSL_CTX_set_options(ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
					 SSL_OP_IGNORE_UNEXPECTED_EOF);
	SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_timeout(ssl, TICKET_KEY_SECONDS);
	SSL_CTX_set_num_tickets(ssl, 1);
	SSL_CTX_set_verify(ssl, SSL_VERIFY_NONE, NULL);
	SSL_CTX_set_alpn_select_cb(ssl, choose_protocol, c);
	SSL_CTX_set_keylog_callback(ssl, tls_note_secret);
	return SSL_CTX_set_tlsext_ticket_key_evp_cb(ssl, ticket_keys) == 1 &&
	       SSL_CTX_set_min_proto_version(ssl, TLS1_2_VERSION) == 1 &&
	       SSL_CTX_set_cipher_list(ssl, CIPHERS_12) == 1 &&
	       SSL_CTX_set_ciphersuites(ssl, CIPHERS_13) == 1 &&
	       SSL_CTX_set1_groups_list(ssl, GROUPS) == 1 &&
	       SSL_CTX_set_session_id_context(ssl, c->ticket_name, sizeof(c->ticket_name)) == 1;
}

/* --- files -------------------------------------------------------------------------------------
 */

/* A regular file, which for a key only its owner and group may read. False with a sentence. */
static bool file_is_good(const char *what, const char *path, bool secret, char *error, size_t size)
{
	/* O_NONBLOCK: to open a named pipe would wait for its writer. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	bool good = false;

	if (fd < 0 || fstat(fd, &st) < 0)
		snprintf(error, size, "cannot open the %s %s: %s", what, path, strerror(errno));
	else if (!S_ISREG(st.st_mode))
		snprintf(error, size, "the %s %s is no regular file; give one", what, path);
	else if (secret && (st.st_mode & S_IRWXO) != 0)
		snprintf(error, size, "the %s %s may be read by everybody; chmod 600 it", what,
			 path);
	else
		good = true;
	if (fd >= 0)
		close(fd);
	return good;
}

/* Writes what OpenSSL says of a file, or <why>, unless that is NULL. */
static bool file_fails(const char *what, const char *path, const char *why, char *error,
		       size_t size)
{
	if (why == NULL)
		why = ERR_reason_error_string(ERR_peek_last_error());
	snprintf(error, size, "cannot use the %s %s: %s", what, path,
		 why != NULL ? why : "it is not in PEM format");
	return false;
}

/* A daemon has no terminal to ask for a passphrase. */
static int no_passphrase(char *buffer, int size, int writing, void *context)
{
	bool *wanted = context;

	if (wanted != NULL)
		*wanted = true;
	return -1;
}

/* Is it the key of the certificate that <ssl> has? Looked at before it is used: with one of another
 * kind OpenSSL would forget the certificate. */
static bool key_belongs(const SSL_CTX *ssl, const EVP_PKEY *key)
{
	return EVP_PKEY_eq(X509_get0_pubkey(SSL_CTX_get0_certificate(ssl)), key) == 1;
}

static EVP_PKEY *read_key(const char *path, bool *has_passphrase)
{
	BIO *file = BIO_new_file(path, "r");
	EVP_PKEY *key =
		file == NULL ? NULL
			     : PEM_read_bio_PrivateKey(file, NULL, no_passphrase, has_passphrase);

	BIO_free(file);
	return key;
}

static bool use_key(SSL_CTX *ssl, const char *path, char *error, size_t size)
{
	bool has_passphrase = false, used = true;
	EVP_PKEY *key = read_key(path, &has_passphrase);

	if (key == NULL)
		used = file_fails("key", path,
				  has_passphrase ? "it has a passphrase, for which nobody can be "
						   "asked; take it away: openssl pkey -in OLD -out "
						   "NEW"
						 : NULL,
				  error, size);
	else if (!key_belongs(ssl, key))
		used = file_fails("key", path, "it does not belong to the certificate", error,
				  size);
	else if (SSL_CTX_use_PrivateKey(ssl, key) != 1)
		used = file_fails("key", path, NULL, error, size);
	EVP_PKEY_free(key);
	return used;
}

static bool use_files(SSL_CTX *ssl, const char *certificate, const char *key, char *error,
		      size_t size)
{
	SSL_CTX_set_default_passwd_cb(ssl, no_passphrase);
	if (!file_is_good("certificate", certificate, false, error, size) ||
	    !file_is_good("key", key, true, error, size))
		return false;
	if (SSL_CTX_use_certificate_chain_file(ssl, certificate) != 1)
		return file_fails("certificate", certificate, NULL, error, size);
	return use_key(ssl, key, error, size);
}

static time_t seconds_of(const ASN1_TIME *time)
{
	struct tm tm;

	return ASN1_TIME_to_tm(time, &tm) == 1 ? timegm(&tm) : 0;
}

bool tls_context_is_valid(const struct tls_context *c, char *why, size_t size)
{
	const X509 *x = SSL_CTX_get0_certificate(c->ssl);
	time_t now = time(NULL);

	if (now >= seconds_of(X509_get0_notBefore(x)) && now <= c->not_after)
		return true;
	snprintf(why, size, "%s",
		 now > c->not_after ? "has ended; renew it"
				    : "is not valid yet; is the clock right?");
	return false;
}

struct tls_context *tls_context_create(const char *certificate, const char *key,
				       const struct tls_protocols *protocols, char *error,
				       size_t size)
{
	struct tls_context *c = calloc(1, sizeof(*c));
	bool ready;

	if (c == NULL) {
		snprintf(error, size, "no memory for TLS");
		return NULL;
	}
	c->references = 1;
	c->protocols = *protocols;
	c->ssl = SSL_CTX_new(TLS_server_method());
	if (c->ssl == NULL || RAND_bytes(c->ticket_name, sizeof(c->ticket_name)) != 1 ||
	    !set_up(c)) {
		snprintf(error, size, "OpenSSL gives no TLS: %s",
			 ERR_reason_error_string(ERR_peek_last_error()) ?: "no memory");
		ready = false;
	} else {
		ready = use_files(c->ssl, certificate, key, error, size);
	}
	ERR_clear_error();
	if (ready) {
		c->not_after = seconds_of(X509_get0_notAfter(SSL_CTX_get0_certificate(c->ssl)));
		return c;
	}
	tls_context_free(c);
	return NULL;
}

void tls_context_hold(struct tls_context *context)
{
	__atomic_fetch_add(&context->references, 1, __ATOMIC_RELAXED);
}

void tls_context_free(struct tls_context *context)
{
	if (context == NULL || __atomic_sub_fetch(&context->references, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	SSL_CTX_free(context->ssl);
	OPENSSL_cleanse(context, sizeof(*context));
	free(context);
}

time_t tls_context_not_after(const struct tls_context *context)
{
	return context->not_after;
}
