/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys of records from the secrets of a handshake: RFC 8446, 7.1 to 7.3; RFC 5246, 5 and 6.3. */
#include <stdlib.h>
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include "tls/handshake.h"

#define KEY_MAX 32

/* See tls_work(): a record of a byte took 3,300 instructions with AES-GCM and 5,000 with ChaCha20,
 * and a byte of a large one 3.4 and 7. */
#define AES_RECORD    80
#define AES_BYTES     5 /* of 64 */
#define CHACHA_RECORD 120
#define CHACHA_BYTES  10

static bool derive(const char *name, const OSSL_PARAM params[], uint8_t *out, size_t n)
{
	EVP_KDF *kdf = EVP_KDF_fetch(NULL, name, NULL);
	EVP_KDF_CTX *context = kdf == NULL ? NULL : EVP_KDF_CTX_new(kdf);
	bool done = context != NULL && EVP_KDF_derive(context, out, n, params) == 1;

	EVP_KDF_CTX_free(context);
	EVP_KDF_free(kdf);
	return done;
}

/* HKDF-Expand-Label(<secret>, <label>, "", <n>). */
static bool expand(const struct tls_session *s, uint8_t *secret, const char *label, uint8_t *out,
		   uint8_t n)
{
	size_t length = strlen(label);
	int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY;
	uint8_t info[32] = {0, n, 6 + length, 't', 'l', 's', '1', '3', ' '};

	memcpy(info + 9, label, length); /* and the length of the context, 0 */
	const OSSL_PARAM params[] = {
		OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
		OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST,
						 (char *)EVP_MD_get0_name(s->hash), 0),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, secret, s->secret_size),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info, 10 + length),
		OSSL_PARAM_construct_end(),
	};
	return derive(OSSL_KDF_NAME_HKDF, params, out, n);
}

static const EVP_CIPHER *cipher_of(int nid)
{
	switch (nid) {
	case NID_aes_128_gcm:
		return EVP_aes_128_gcm();
	case NID_aes_256_gcm:
		return EVP_aes_256_gcm();
	case NID_chacha20_poly1305:
		return EVP_chacha20_poly1305();
	default:
		return NULL;
	}
}

/* <cipher>: NULL: the one that it has. */
static bool set_key(struct tls_direction *d, const EVP_CIPHER *cipher, const uint8_t *key, bool out)
{
	if (d->cipher == NULL)
		d->cipher = EVP_CIPHER_CTX_new();
	return d->cipher != NULL &&
	       EVP_CipherInit_ex2(d->cipher, cipher, key, NULL, out, NULL) == 1;
}

static bool set_keys_13(struct tls_session *s, struct tls_direction *d, const EVP_CIPHER *cipher)
{
	uint8_t key[KEY_MAX];
	bool set = expand(s, d->secret, "key", key, s->key_size) &&
		   expand(s, d->secret, "iv", d->iv, TLS_IV) &&
		   set_key(d, cipher, key, d == &s->out);

	OPENSSL_cleanse(key, sizeof(key));
	d->number = 0;
	return set;
}

bool tls_session_update(struct tls_session *s, struct tls_direction *d)
{
	uint8_t next[TLS_SECRET_MAX];
	bool made = expand(s, d->secret, "traffic upd", next, s->secret_size);

	memcpy(d->secret, next, sizeof(next));
	OPENSSL_cleanse(next, sizeof(next));
	return made && set_keys_13(s, d, NULL);
}

/* The client's key and the server's, then their secret parts of nonces. */
static bool set_keys_12(struct tls_session *s, const struct tls_keys *keys,
			const EVP_CIPHER *cipher)
{
	size_t iv = s->explicit_nonce ? 4 : TLS_IV;
	uint8_t block[2 * KEY_MAX + 2 * TLS_IV], seed[13 + 64] = "key expansion";
	const uint8_t *ivs = block + 2 * s->key_size;
	bool set;

	memcpy(seed + 13, keys->server_random, 32);
	memcpy(seed + 45, keys->client_random, 32);
	const OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST,
						 (char *)EVP_MD_get0_name(keys->hash), 0),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SECRET, (void *)keys->master,
						  keys->master_size),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SEED, seed, sizeof(seed)),
		OSSL_PARAM_construct_end(),
	};
	set = derive(OSSL_KDF_NAME_TLS1_PRF, params, block, 2 * s->key_size + 2 * iv) &&
	      set_key(&s->in, cipher, block, false) &&
	      set_key(&s->out, cipher, block + s->key_size, true);
	memcpy(s->in.iv, ivs, iv);
	memcpy(s->out.iv, ivs + iv, iv);
	OPENSSL_cleanse(block, sizeof(block));
	/* Each side's Finished was its first record. */
	s->in.number = s->out.number = 1;
	return set;
}

struct tls_session *tls_session_create(const struct tls_keys *keys)
{
	const EVP_CIPHER *cipher = cipher_of(keys->cipher);
	struct tls_session *s = cipher == NULL ? NULL : calloc(1, sizeof(*s));
	bool set;

	if (s == NULL)
		return NULL;
	s->version = keys->version;
	s->record_max = TLS_PLAIN_MAX;
	s->hash = keys->hash;
	s->secret_size = EVP_MD_get_size(keys->hash);
	s->key_size = EVP_CIPHER_get_key_length(cipher);
	s->work_record = keys->cipher == NID_chacha20_poly1305 ? CHACHA_RECORD : AES_RECORD;
	s->work_bytes = keys->cipher == NID_chacha20_poly1305 ? CHACHA_BYTES : AES_BYTES;
	s->explicit_nonce = !tls_is_13(s) && keys->cipher != NID_chacha20_poly1305;
	memcpy(s->in.secret, keys->client, sizeof(s->in.secret));
	memcpy(s->out.secret, keys->server, sizeof(s->out.secret));
	if (tls_is_13(s))
		set = set_keys_13(s, &s->in, cipher) && set_keys_13(s, &s->out, cipher);
	else
		set = set_keys_12(s, keys, cipher);
	if (set)
		return s;
	tls_session_free(s);
	return NULL;
}

void tls_session_free(struct tls_session *s)
{
	if (s == NULL)
		return;
	EVP_CIPHER_CTX_free(s->in.cipher);
	EVP_CIPHER_CTX_free(s->out.cipher);
	OPENSSL_cleanse(s, sizeof(*s));
	free(s);
}
