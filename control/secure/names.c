/* SPDX-License-Identifier: BSD-3-Clause */
/* Which workers a certificate may register. */
#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include <openssl/x509v3.h>

#include "secure/secure.h"

/* Prefixes that mark addresses and models. DNS names have no colon, so they cannot be mistaken. */
#define ADDRESS   "ip:"
#define MODEL     "model:"
#define MODEL_URI "doorbell:model:"

/* False when there is no room. */
static bool names_append(const char *kind, const char *text, size_t n, char *names, size_t size)
{
	size_t used = strlen(names), k = strlen(kind);

	if (used + 1 + k + n + 1 > size)
		return false;
	if (used > 0)
		names[used++] = ' ';
	memcpy(names + used, kind, k);
	memcpy(names + used + k, text, n);
	names[used + k + n] = '\0';
	return true;
}

static bool names_is_plain(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)text[i]) &&
		    strchr("._-*", text[i] ? text[i] : ' ') == NULL)
			return false;
	return n > 0;
}

/* Add one name; skip a name that could not be a host's. False when there is no room. */
static bool names_add(const ASN1_STRING *string, char *names, size_t size)
{
	const char *text = (const char *)ASN1_STRING_get0_data(string);
	size_t n = (size_t)ASN1_STRING_length(string);

	return !names_is_plain(text, n) || names_append("", text, n, names, size);
}

/*
 * Add an address. An unreadable one becomes "?", which matches no worker: the certificate still
 * limits the addresses.
 */
static bool names_add_address(const ASN1_OCTET_STRING *string, char *names, size_t size)
{
	const unsigned char *bytes = ASN1_STRING_get0_data(string);
	int n = ASN1_STRING_length(string);
	char text[INET6_ADDRSTRLEN] = "?";

	if (n == 4 || n == 16)
		inet_ntop(n == 4 ? AF_INET : AF_INET6, bytes, text, sizeof(text));
	return names_append(ADDRESS, text, strlen(text), names, size);
}

/* Read "doorbell:model:echo"; other URIs are ignored. */
static bool add_uri(const ASN1_STRING *string, char *names, size_t size)
{
	const char *text = (const char *)ASN1_STRING_get0_data(string);
	size_t n = (size_t)ASN1_STRING_length(string), k = strlen(MODEL_URI);

	if (n < k || strncasecmp(text, MODEL_URI, k) != 0)
		return true;
	if (!names_is_plain(text + k, n - k))
		return names_append(MODEL, "?", 1, names, size);
	return names_append(MODEL, text + k, n - k, names, size);
}

static bool add_common_name(const X509 *certificate, char *names, size_t size)
{
	const X509_NAME *subject = X509_get_subject_name(certificate);
	int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);

	return at < 0 ||
	       names_add(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)), names, size);
}

/* Add the names in the certificate's subjectAltName; without that extension, its common name. */
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
			room = names_add(name->d.dNSName, names, size);
		else if (name->type == GEN_IPADD)
			room = names_add_address(name->d.iPAddress, names, size);
		else if (name->type == GEN_URI)
			room = add_uri(name->d.uniformResourceIdentifier, names, size);
	}
	GENERAL_NAMES_free(others);
	return room;
}

bool secure_peer_names(const SSL *ssl, char *names, size_t size)
{
	const X509 *certificate = SSL_get0_peer_certificate(ssl);

	names[0] = '\0';
	return certificate == NULL || add_all(certificate, names, size);
}

/*
 * Length of "gpu-host" in "gpu-host-gpu3" or "gpu-host-cpu3"; of all of it when it ends otherwise.
 */
static size_t without_number(const char *worker)
{
	size_t n = strlen(worker), end = n;

	while (end > 0 && isdigit((unsigned char)worker[end - 1]))
		end--;
	if (end == n || end <= 4)
		return n;
	return memcmp(worker + end - 4, "-gpu", 4) == 0 || memcmp(worker + end - 4, "-cpu", 4) == 0
		       ? end - 4
		       : n;
}

/* True when none of <names> begins with <kind>, or when one of them is <kind> and <value>. */
static bool bound_to(const char *names, const char *kind, const char *value)
{
	size_t k = strlen(kind), n = strlen(value);
	bool bound = false;

	while (*names) {
		size_t length = strcspn(names, " ");

		if (length > k && memcmp(names, kind, k) == 0) {
			bound = true;
			if (length == k + n && strncasecmp(names + k, value, n) == 0)
				return true;
		}
		names += length;
		names += strspn(names, " ");
	}
	return !bound;
}

bool secure_names_allow_address(const char *names, const char *address)
{
	return bound_to(names, ADDRESS, address);
}

bool secure_names_allow_model(const char *names, const char *model)
{
	return bound_to(names, MODEL, model);
}

static bool equal(const char *name, size_t n, const char *worker, size_t worker_n)
{
	return n == worker_n && strncasecmp(name, worker, n) == 0;
}

static bool allows(const char *name, size_t n, const char *worker, size_t worker_n)
{
	const char *dot;

	/* a name with a prefix is an address or a model */
	if (memchr(name, ':', n) != NULL)
		return false;
	if (equal(name, n, worker, worker_n))
		return n > 0 && memchr(name, '*', n) == NULL;
	if (n < 3 || name[0] != '*' || name[1] != '.' || memchr(name + 1, '*', n - 1) != NULL)
		return false;
	dot = memchr(worker, '.', worker_n);
	return dot != NULL && dot > worker &&
	       equal(name + 1, n - 1, dot, worker_n - (size_t)(dot - worker));
}

bool secure_names_allow(const char *names, const char *worker)
{
	size_t n = strlen(worker), host = without_number(worker);

	while (*names) {
		size_t length = strcspn(names, " ");

		if (allows(names, length, worker, n) || allows(names, length, worker, host))
			return true;
		names += length;
		names += strspn(names, " ");
	}
	return false;
}
