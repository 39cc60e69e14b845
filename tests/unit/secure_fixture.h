/* SPDX-License-Identifier: BSD-3-Clause */
/* Certificates and tokens in a temporary folder, for the tests of TLS. */
#ifndef SECURE_FIXTURE_H
#define SECURE_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

/* Tests without Criterion say first how they end. */
#ifndef FIXTURE_NEED
#include <criterion/criterion.h>
#define FIXTURE_NEED(condition) cr_assert(condition)
#endif

#define SECURE_TOKEN   "6a1e0f3b5c7d29488fe0b1a2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f6"
#define SECURE_TOKEN_2 "92b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8091"

struct secure_fixture {
	char folder[64];
	unsigned int files;
	char path[32][96];
};

/* An authority, or a party that one signed. Its files are paths of the fixture. */
struct secure_party {
	EVP_PKEY *key;
	X509 *certificate;
	const char *key_path, *certificate_path;
};

static inline void secure_fixture_start(struct secure_fixture *f)
{
	memset(f, 0, sizeof(*f));
	snprintf(f->folder, sizeof(f->folder), "/tmp/doorbell-secure-XXXXXX");
	FIXTURE_NEED(mkdtemp(f->folder) != NULL);
}

static inline void secure_fixture_stop(struct secure_fixture *f)
{
	for (unsigned int i = 0; i < f->files; i++)
		unlink(f->path[i]);
	rmdir(f->folder);
}

/* A new file that only we may read. */
static inline FILE *secure_file(struct secure_fixture *f, const char **path)
{
	char name[96];
	FILE *file;

	FIXTURE_NEED(f->files < 32);
	snprintf(name, sizeof(name), "%s/%u.pem", f->folder, f->files);
	*path = strcpy(f->path[f->files++], name);
	file = fopen(*path, "w");
	FIXTURE_NEED(file != NULL);
	FIXTURE_NEED(chmod(*path, 0600) == 0);
	return file;
}

static inline const char *secure_text_file(struct secure_fixture *f, const char *text)
{
	const char *path;
	FILE *file = secure_file(f, &path);

	fputs(text, file);
	fclose(file);
	return path;
}

static inline void secure_extension(X509 *certificate, int nid, const char *value)
{
	X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, nid, value);

	FIXTURE_NEED(extension != NULL);
	X509_add_ext(certificate, extension, -1);
	X509_EXTENSION_free(extension);
}

/*
 * Creates a party, signed by <authority>, or by itself if that is NULL. <names> is a subjectAltName
 * like "DNS:gpu1,IP:10.0.0.1", or NULL. It is valid for <days> more; a negative number is a
 * certificate that has expired. Takes <key>.
 */
static inline struct secure_party secure_party_with_key(struct secure_fixture *f,
							const struct secure_party *authority,
							const char *common_name, const char *names,
							int days, EVP_PKEY *key)
{
	struct secure_party p = {.key = key, .certificate = X509_new()};
	static long serial;
	X509_NAME *subject = X509_get_subject_name(p.certificate);
	FILE *file;

	X509_set_version(p.certificate, X509_VERSION_3);
	ASN1_INTEGER_set(X509_get_serialNumber(p.certificate), ++serial);
	X509_gmtime_adj(X509_getm_notBefore(p.certificate), -10 * 86400);
	X509_gmtime_adj(X509_getm_notAfter(p.certificate), days * 86400l);
	X509_set_pubkey(p.certificate, p.key);
	X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)common_name,
				   -1, -1, 0);
	X509_set_issuer_name(p.certificate,
			     authority ? X509_get_subject_name(authority->certificate) : subject);
	if (!authority)
		secure_extension(p.certificate, NID_basic_constraints, "critical,CA:TRUE");
	if (names)
		secure_extension(p.certificate, NID_subject_alt_name, names);
	FIXTURE_NEED(X509_sign(p.certificate, authority ? authority->key : p.key, EVP_sha256()) >
		     0);
	file = secure_file(f, &p.key_path);
	PEM_write_PrivateKey(file, p.key, NULL, NULL, 0, NULL, NULL);
	fclose(file);
	file = secure_file(f, &p.certificate_path);
	PEM_write_X509(file, p.certificate);
	fclose(file);
	return p;
}

static inline struct secure_party secure_party_create(struct secure_fixture *f,
						      const struct secure_party *authority,
						      const char *common_name, const char *names,
						      int days)
{
	return secure_party_with_key(f, authority, common_name, names, days, EVP_EC_gen("P-256"));
}

static inline void secure_party_free(struct secure_party *p)
{
	EVP_PKEY_free(p->key);
	X509_free(p->certificate);
}

#endif
