/* SPDX-License-Identifier: BSD-3-Clause */
/* Which workers a certificate may register. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include <openssl/x509v3.h>

#include "secure.h"

/* Add one name; those that could not be a host's are left out. False when there is no room. */
static bool add(const ASN1_STRING *string, char *names, size_t size)
{
	const char *text = (const char *)ASN1_STRING_get0_data(string);
	size_t n = (size_t)ASN1_STRING_length(string), used = strlen(names);

	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr("._-*", text[i] ? text[i] : ' '))
			return true;
	if (n == 0)
		return true;
	if (used + 1 + n + 1 > size)
		return false;
	if (used > 0)
		names[used++] = ' ';
	memcpy(names + used, text, n);
	names[used + n] = '\0';
	return true;
}

static bool add_common_name(const X509 *certificate, char *names, size_t size)
{
	const X509_NAME *subject = X509_get_subject_name(certificate);
	int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);

	return at < 0 ||
	       add(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)), names, size);
}

/* A certificate that says by extension what it is for is for nothing else, whatever that is. */
static bool add_all(const X509 *certificate, char *names, size_t size)
{
	GENERAL_NAMES *others;
	bool room = true;

	if (X509_get_ext_by_NID(certificate, NID_subject_alt_name, -1) < 0)
		return add_common_name(certificate, names, size);
	others = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
	for (int i = 0; room && i < sk_GENERAL_NAME_num(others); i++) {
		const GENERAL_NAME *name = sk_GENERAL_NAME_value(others, i);

		if (name->type == GEN_DNS)
			room = add(name->d.dNSName, names, size);
	}
	GENERAL_NAMES_free(others);
	return room;
}

bool secure_peer_names(const SSL *ssl, char *names, size_t size)
{
	const X509 *certificate = SSL_get0_peer_certificate(ssl);

	names[0] = '\0';
	return !certificate || add_all(certificate, names, size);
}

/* "gpu-host" of "gpu-host-gpu3"; all of it when that is not how it ends. */
static size_t without_gpu(const char *worker)
{
	size_t n = strlen(worker), end = n;

	while (end > 0 && isdigit((unsigned char)worker[end - 1]))
		end--;
	return end < n && end > 4 && memcmp(worker + end - 4, "-gpu", 4) == 0 ? end - 4 : n;
}

static bool equal(const char *name, size_t n, const char *worker, size_t worker_n)
{
	return n == worker_n && strncasecmp(name, worker, n) == 0;
}

static bool allows(const char *name, size_t n, const char *worker, size_t worker_n)
{
	const char *dot;

	if (equal(name, n, worker, worker_n))
		return n > 0 && !memchr(name, '*', n);
	if (n < 3 || name[0] != '*' || name[1] != '.' || memchr(name + 1, '*', n - 1))
		return false;
	dot = memchr(worker, '.', worker_n);
	return dot && dot > worker &&
	       equal(name + 1, n - 1, dot, worker_n - (size_t)(dot - worker));
}

bool secure_names_allow(const char *names, const char *worker)
{
	size_t n = strlen(worker), host = without_gpu(worker);

	while (*names) {
		size_t length = strcspn(names, " ");

		if (allows(names, length, worker, n) || allows(names, length, worker, host))
			return true;
		names += length;
		names += strspn(names, " ");
	}
	return false;
}
