/* SPDX-License-Identifier: BSD-3-Clause */
/* TLS contexts from files. The limits on what a stranger may cost are set here. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "secure/secure.h"

#define CHAIN_BYTES_MAX 16384 /* of the peer's chain; OpenSSL would take 100 KiB */
#define CHAIN_DEPTH_MAX 4

static bool given(const char *path)
{
	return path != NULL && *path;
}

bool secure_wanted(const struct secure_files *files)
{
	return given(files->certificate) || given(files->key) || given(files->ca) ||
	       given(files->token);
}

/* Write "<doing> <path>: <OpenSSL's or the system's reason>". */
static bool context_fail(char *error, size_t size, const char *doing, const char *path,
			 const char *why)
{
	unsigned long code = ERR_peek_last_error();

	if (why == NULL)
		why = code ? ERR_reason_error_string(code) : NULL;
	snprintf(error, size, "%s %s: %s", doing, path,
		 why != NULL ? why : "it is not in PEM format");
	ERR_clear_error();
	return false;
}

/*
 * Returns -1 with a sentence in <error>. Opens regular files only: OpenSSL would wait
 * for data from a named pipe.
 */
static int context_open_file(const char *what, const char *path, struct stat *st, char *error,
			     size_t error_size)
{
	/* without O_NONBLOCK a named pipe would block the start of the program */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0) {
		snprintf(error, error_size, "cannot open the %s %s: %s", what, path,
			 strerror(errno));
		return -1;
	}
	if (fstat(fd, st) == 0 && S_ISREG(st->st_mode))
		return fd;
	snprintf(error, error_size, "the %s %s is not a regular file; give one", what, path);
	close(fd);
	return -1;
}

static bool can_be_read(const char *what, const char *path, char *error, size_t size)
{
	struct stat st;
	int fd = context_open_file(what, path, &st, error, size);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static bool is_private(const struct stat *st, const char *what, const char *path, char *error,
		       size_t size)
{
	if (!(st->st_mode & S_IRWXO))
		return true;
	snprintf(error, size, "the %s %s may be read by everybody; chmod 600 it", what, path);
	return false;
}

long secure_read_secret(const char *what, const char *path, char *text, size_t size, char *error,
			size_t error_size)
{
	struct stat st;
	int fd = context_open_file(what, path, &st, error, error_size);
	ssize_t n = -1;

	if (fd < 0)
		return -1;
	if (is_private(&st, what, path, error, error_size)) {
		n = read(fd, text, size);
		if (n < 0)
			snprintf(error, error_size, "cannot read the %s %s: %s", what, path,
				 strerror(errno));
	}
	close(fd);
	return n;
}

/* Refuse keys with a passphrase: a daemon has no terminal to ask for one. */
static int no_passphrase(char *buffer, int size, int writing, void *context)
{
	return 0;
}

static bool use_key(SSL_CTX *context, const struct secure_files *files, char *error, size_t size)
{
	char first;
	bool used;

	if (secure_read_secret("key", files->key, &first, 1, error, size) < 0)
		return false;
	used = SSL_CTX_use_PrivateKey_file(context, files->key, SSL_FILETYPE_PEM) == 1;
	/* With a key of another kind than the certificate's OpenSSL forgets that. */
	if (used && SSL_CTX_check_private_key(context) == 1)
		return true;
	return context_fail(error, size, "cannot use the key", files->key,
			    used || ERR_GET_REASON(ERR_peek_last_error()) ==
						    X509_R_KEY_VALUES_MISMATCH
				    ? "it does not belong to the certificate"
				    : NULL);
}

static bool use_certificates(SSL_CTX *context, const struct secure_files *files, char *error,
			     size_t size)
{
	if (!given(files->certificate) || !given(files->key) || !given(files->ca)) {
		snprintf(error, size, "TLS needs certificate, key and ca; %s is missing",
			 !given(files->certificate) ? "certificate"
			 : !given(files->key)       ? "key"
						    : "ca");
		return false;
	}
	SSL_CTX_set_default_passwd_cb(context, no_passphrase);
	if (!can_be_read("certificate", files->certificate, error, size))
		return false;
	if (SSL_CTX_use_certificate_chain_file(context, files->certificate) != 1)
		return context_fail(error, size, "cannot use the certificate", files->certificate,
				    NULL);
	if (!use_key(context, files, error, size))
		return false;
	if (!can_be_read("authority", files->ca, error, size))
		return false;
	/* Leaves out the authorities' names: a peer need not know them before the handshake. */
	if (SSL_CTX_load_verify_file(context, files->ca) != 1)
		return context_fail(error, size, "cannot use the authority", files->ca, NULL);
	return true;
}

/* Settings of every context, for both sides. */
static bool set_up(SSL_CTX *context)
{
	SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_IGNORE_UNEXPECTED_EOF);
	SSL_CTX_set_num_tickets(context, 0);
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	/* frees the buffers of idle connections, which would keep 34 KiB each */
	SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_max_cert_list(context, CHAIN_BYTES_MAX);
	SSL_CTX_set_verify_depth(context, CHAIN_DEPTH_MAX);
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	/* no ffdhe8192, with which a stranger could use up our CPU */
	return SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
	       SSL_CTX_set1_groups_list(context, "X25519:P-256") == 1 &&
	       SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:"
						 "TLS_CHACHA20_POLY1305_SHA256") == 1 &&
	       SSL_CTX_set_session_id_context(context, SECURE_CONTEXT_ID,
					      sizeof(SECURE_CONTEXT_ID)) == 1;
}

SSL_CTX *secure_context(enum secure_side side, const struct secure_files *files, char *error,
			size_t error_size)
{
	SSL_CTX *context;
	bool ready;

	if (given(files->token) &&
	    (given(files->certificate) || given(files->key) || given(files->ca))) {
		snprintf(error, error_size,
			 "a token goes without certificate, key and ca; give "
			 "either the one or the others");
		return NULL;
	}
	context = SSL_CTX_new(side == SECURE_AGENT ? TLS_client_method() : TLS_server_method());
	if (context == NULL || !set_up(context)) {
		snprintf(error, error_size, "OpenSSL gives no TLS 1.3 context: %s",
			 ERR_reason_error_string(ERR_peek_last_error()) ?: "no memory");
		ready = false;
	} else if (given(files->token)) {
		ready = secure_use_tokens(context, side, files->token, error, error_size);
	} else {
		ready = use_certificates(context, files, error, error_size);
	}
	ERR_clear_error();
	if (ready)
		return context;
	SSL_CTX_free(context);
	return NULL;
}

long secure_days_left(const SSL_CTX *context, bool *none)
{
	const X509 *certificate = SSL_CTX_get0_certificate(context);
	int days = 0, seconds = 0;

	*none = certificate == NULL;
	if (certificate != NULL)
		ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(certificate));
	return seconds < 0 && days == 0 ? -1 : days;
}

static time_t seconds_of(const ASN1_TIME *time)
{
	struct tm tm;

	return ASN1_TIME_to_tm(time, &tm) == 1 ? timegm(&tm) : 0;
}

enum secure_validity secure_validity_at(const SSL_CTX *context, time_t now, time_t *not_after,
					char *why, size_t size)
{
	const X509 *certificate = SSL_CTX_get0_certificate(context);
	time_t begin, end;
	char when[32];
	struct tm tm;

	*not_after = 0;
	if (certificate == NULL)
		return SECURE_VALID;
	begin = seconds_of(X509_get0_notBefore(certificate));
	*not_after = end = seconds_of(X509_get0_notAfter(certificate));
	gmtime_r(now < begin ? &begin : &end, &tm);
	strftime(when, sizeof(when), "%Y-%m-%d %H:%M UTC", &tm);
	if (now < begin) {
		snprintf(why, size, "is not valid before %s; is the clock right?", when);
		return SECURE_NOT_YET;
	}
	if (now > end) {
		snprintf(why, size, "ended %s; renew it", when);
		return SECURE_ENDED;
	}
	if (end - now >= SECURE_REMIND_DAYS * 86400l)
		return SECURE_VALID;
	snprintf(why, size, "ends %s; renew it before", when);
	return SECURE_ENDS_SOON;
}

SSL *secure_accept(SSL_CTX *context)
{
	SSL *ssl = SSL_new(context);

	if (ssl != NULL)
		SSL_set_accept_state(ssl);
	return ssl;
}

SSL *secure_dial(SSL_CTX *context, const char *peer)
{
	SSL *ssl = SSL_new(context);
	struct in6_addr address;
	bool named;

	if (ssl == NULL)
		return NULL;
	SSL_set_connect_state(ssl);
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	if (secure_context_tokens(context) != NULL)
		return ssl;
	if (inet_pton(AF_INET, peer, &address) == 1 || inet_pton(AF_INET6, peer, &address) == 1)
		named = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), peer) == 1;
	else
		named = SSL_set1_host(ssl, peer) == 1;
	if (named)
		return ssl;
	SSL_free(ssl);
	return NULL;
}

bool secure_proven(const SSL *ssl)
{
	if (SSL_version(ssl) != TLS1_3_VERSION)
		return false;
	if (secure_context_tokens(SSL_get_SSL_CTX(ssl)) != NULL)
		return SSL_session_reused(ssl) == 1;
	return SSL_get0_peer_certificate(ssl) != NULL && SSL_get_verify_result(ssl) == X509_V_OK;
}
