/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Records: the AEADs of TLS 1.2 and 1.3. A context of EVP has its key for good; each record gives
 * it a nonce, and takes no memory.
 */
#include "tls/session.h"

#include <string.h>

#define WRITTEN_VERSION 0x0303 /* in the header of every record */
/* RFC 8446, 5.2. That of TLS 1.2 may be longer, but not with the ciphers that there are. */
#define CIPHERTEXT_MAX (TLS_PLAIN_MAX + 256)

static void put16(uint8_t *to, uint16_t value)
{
	to[0] = value >> 8;
	to[1] = value;
}

static void put64(uint8_t *to, uint64_t value)
{
	for (int i = 7; i >= 0; i--, value >>= 8)
		to[i] = value;
}

/* --- nonces and what is authenticated beside the bytes ------------------------------------------
 */

/* RFC 8446, 5.3; RFC 7905, 2: the number and the secret IV. RFC 5288, 3: the explicit nonce behind
 * four secret bytes. */
static void make_nonce(const struct tls_session *s, const struct tls_direction *d,
		       const uint8_t explicit_nonce[8], uint8_t nonce[TLS_IV])
{
	uint8_t number[8];

	memcpy(nonce, d->iv, TLS_IV);
	if (s->explicit_nonce) {
		memcpy(nonce + 4, explicit_nonce, 8);
		return;
	}
	put64(number, d->number);
	for (int i = 0; i < 8; i++)
		nonce[4 + i] ^= number[i];
}

/* <header>: as on the wire; <n>: bytes of content of TLS 1.2. Returns the size. */
static int make_beside(const struct tls_session *s, const struct tls_direction *d,
		       const uint8_t header[TLS_HEADER], uint16_t n, uint8_t beside[13])
{
	if (tls_is_13(s)) {
		memcpy(beside, header, TLS_HEADER);
		return TLS_HEADER;
	}
	put64(beside, d->number);
	memcpy(beside + 8, header, 3);
	put16(beside + 11, n);
	return 13;
}

/* --- reading -----------------------------------------------------------------------------------
 */

static struct tls_step step_fault(uint32_t taken, enum tls_alert alert)
{
	return (struct tls_step){.taken = taken, .result = TLS_READ_FAULT, .alert = alert};
}

/* Bytes of a part of <size>, of which <got> came, from <bytes>. Returns how many. */
static uint32_t collect(uint8_t *part, uint8_t *got, uint32_t size, const uint8_t *bytes,
			uint32_t n)
{
	uint32_t take = size - *got < n ? size - *got : n;

	memcpy(part + *got, bytes, take);
	*got += take;
	return take;
}

static bool type_may_come(const struct tls_session *s, uint8_t type)
{
	if (tls_is_13(s))
		return type == TLS_DATA;
	return type == TLS_ALERT || type == TLS_HANDSHAKE || type == TLS_DATA;
}

/* The header is whole. TLS_CLOSE_NOTIFY: nothing is wrong. */
static enum tls_alert read_header(struct tls_session *s)
{
	uint32_t length = s->header[3] << 8 | s->header[4];
	uint32_t least = TLS_TAG + (s->explicit_nonce ? 8 : 0) + tls_is_13(s);

	if (!type_may_come(s, s->header[0]) || s->header[1] != 3)
		return TLS_UNEXPECTED_MESSAGE;
	if (length > CIPHERTEXT_MAX)
		return TLS_RECORD_OVERFLOW;
	if (length < least)
		return TLS_BAD_RECORD_MAC;
	s->left = length - TLS_TAG - (s->explicit_nonce ? 8 : 0);
	if (s->left > TLS_PLAIN_MAX + tls_is_13(s))
		return TLS_RECORD_OVERFLOW;
	return TLS_CLOSE_NOTIFY;
}

static bool begin_decrypting(struct tls_session *s)
{
	uint8_t nonce[TLS_IV], beside[13];
	int n, size = make_beside(s, &s->in, s->header, s->left, beside);

	make_nonce(s, &s->in, s->nonce, nonce);
	return EVP_DecryptInit_ex2(s->in.cipher, NULL, NULL, nonce, NULL) == 1 &&
	       EVP_DecryptUpdate(s->in.cipher, NULL, &n, beside, size) == 1;
}

/* Of <n> bytes, those up to the last one that is not 0. A client may send nothing but zeros. */
static uint32_t skip_zeros(const uint8_t *plain, uint32_t n)
{
	uint64_t word;

	for (; n >= sizeof(word); n -= sizeof(word)) {
		memcpy(&word, plain + n - sizeof(word), sizeof(word));
		if (word != 0)
			break;
	}
	while (n > 0 && plain[n - 1] == 0)
		n--;
	return n;
}

/* Notes the last byte that is not 0: with TLS 1.3 it is the type, and what is before it counts. */
static void note_content(struct tls_session *s, const uint8_t *plain, uint32_t n)
{
	uint32_t end = tls_is_13(s) ? skip_zeros(plain, n) : 0;

	if (end > 0) {
		s->content = s->size + end;
		s->type = plain[end - 1];
	}
	s->size += n;
}

/* All of the record came. */
static struct tls_step end_record(struct tls_session *s, struct tls_step step)
{
	uint8_t none[TLS_TAG];
	int n;

	if (EVP_CIPHER_CTX_ctrl(s->in.cipher, EVP_CTRL_AEAD_SET_TAG, TLS_TAG, s->tag) != 1 ||
	    EVP_DecryptFinal_ex(s->in.cipher, none, &n) != 1)
		return step_fault(step.taken, TLS_BAD_RECORD_MAC);
	s->in.number++;
	if (!tls_is_13(s)) {
		s->content = s->size;
		s->type = s->header[0];
	} else if (s->content == 0) {
		return step_fault(step.taken, TLS_UNEXPECTED_MESSAGE);
	} else {
		s->content--;
	}
	s->got = s->nonces = s->tags = 0;
	s->size = 0;
	step.result = TLS_READ_RECORD;
	return step;
}

/* The header, and the nonce behind it, as far as they came. False: a fault, in <step>. */
static bool read_front(struct tls_session *s, const uint8_t *bytes, uint32_t n,
		       struct tls_step *step)
{
	uint32_t nonce = s->explicit_nonce ? 8 : 0;
	bool had_header = s->got == TLS_HEADER, had_nonce = had_header && s->nonces == nonce;
	enum tls_alert alert;

	/* Without an explicit nonce decryption begins with the last byte of the header. */
	if (had_nonce)
		return true;
	if (!had_header) {
		step->taken = collect(s->header, &s->got, TLS_HEADER, bytes, n);
		if (s->got < TLS_HEADER)
			return true;
		s->content = 0;
		alert = read_header(s);
		if (alert != TLS_CLOSE_NOTIFY) {
			*step = step_fault(step->taken, alert);
			return false;
		}
	}
	step->taken += collect(s->nonce, &s->nonces, nonce, bytes + step->taken, n - step->taken);
	if (s->nonces < nonce || begin_decrypting(s))
		return true;
	*step = step_fault(step->taken, TLS_INTERNAL_ERROR);
	return false;
}

struct tls_step tls_read(struct tls_session *s, const uint8_t *bytes, uint32_t n, uint8_t *to,
			 uint32_t room)
{
	struct tls_step step = {.result = TLS_READ_ON};
	uint32_t part;
	int size;

	if (!read_front(s, bytes, n, &step) || step.taken == n)
		return step;
	part = s->left < n - step.taken ? s->left : n - step.taken;
	if (part > room)
		part = room;
	if (part > 0) {
		if (EVP_DecryptUpdate(s->in.cipher, to, &size, bytes + step.taken, (int)part) != 1)
			return step_fault(step.taken, TLS_INTERNAL_ERROR);
		note_content(s, to, part);
		s->left -= part;
		step.taken += part;
		step.written = part;
	}
	if (s->left > 0)
		return step;
	step.taken += collect(s->tag, &s->tags, TLS_TAG, bytes + step.taken, n - step.taken);
	return s->tags == TLS_TAG ? end_record(s, step) : step;
}

/* --- writing -----------------------------------------------------------------------------------
 */

uint32_t tls_write_begin(struct tls_session *s, enum tls_type type, uint32_t n,
			 uint8_t head[TLS_HEAD_MAX])
{
	uint8_t nonce[TLS_IV], beside[13];
	int size, none;

	head[0] = tls_is_13(s) ? TLS_DATA : type;
	put16(head + 1, WRITTEN_VERSION);
	put16(head + 3, n + tls_overhead(s) - TLS_HEADER);
	/* Its number is a nonce that never comes twice. */
	if (s->explicit_nonce)
		put64(head + TLS_HEADER, s->out.number);
	make_nonce(s, &s->out, head + TLS_HEADER, nonce);
	size = make_beside(s, &s->out, head, n, beside);
	EVP_EncryptInit_ex2(s->out.cipher, NULL, NULL, nonce, NULL);
	EVP_EncryptUpdate(s->out.cipher, NULL, &none, beside, size);
	return TLS_HEADER + (s->explicit_nonce ? 8 : 0);
}

void tls_write_bytes(struct tls_session *s, const uint8_t *bytes, uint32_t n, uint8_t *to)
{
	int size;

	EVP_EncryptUpdate(s->out.cipher, to, &size, bytes, (int)n);
}

uint32_t tls_write_end(struct tls_session *s, enum tls_type type, uint8_t tail[TLS_TAIL_MAX])
{
	const uint8_t inner = type;
	uint32_t size = 0;
	int n;

	if (tls_is_13(s))
		tls_write_bytes(s, &inner, 1, tail + size++);
	EVP_EncryptFinal_ex(s->out.cipher, tail + size, &n);
	EVP_CIPHER_CTX_ctrl(s->out.cipher, EVP_CTRL_AEAD_GET_TAG, TLS_TAG, tail + size);
	s->out.number++;
	return size + TLS_TAG;
}

uint32_t tls_write_small(struct tls_session *s, enum tls_type type, const uint8_t *bytes,
			 uint32_t n, uint8_t *to)
{
	uint32_t size = tls_write_begin(s, type, n, to);

	tls_write_bytes(s, bytes, n, to + size);
	size += n;
	return size + tls_write_end(s, type, to + size);
}
