/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TLS after the handshake: records (RFC 8446, 5; RFC 5246, 6.2 with RFC 5288 and 7905) over memory.
 * Nothing here allocates: an lcore reads and writes records with a session that a handshake has
 * made (handshake.h). Bytes may come in any pieces, and go where the owner says.
 *
 * A session belongs to one thread at a time.
 */
#ifndef LB_TLS_SESSION_H
#define LB_TLS_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include <openssl/evp.h>

#define TLS_PLAIN_MAX  16384 /* bytes of content of a record */
#define TLS_HEADER     5     /* bytes */
#define TLS_TAG        16
#define TLS_HEAD_MAX   (TLS_HEADER + 8) /* in front of a record's bytes */
#define TLS_TAIL_MAX   (1 + TLS_TAG)    /* behind them */
#define TLS_RECORD_MAX (TLS_HEAD_MAX + TLS_PLAIN_MAX + TLS_TAIL_MAX)
#define TLS_SECRET_MAX 48
#define TLS_IV         12
/* After so many records keys are replaced: a fraction of what RFC 8446, 5.5 allows. */
#define TLS_KEY_RECORDS (1u << 23)
/* Records without bytes for the framing that a client may send one behind the other: each takes
 * time here, new keys most. */
#define TLS_USELESS_MAX 32

enum tls_type {
	TLS_CHANGE_CIPHER = 20,
	TLS_ALERT = 21,
	TLS_HANDSHAKE = 22,
	TLS_DATA = 23,
};

/* Alerts, RFC 8446, 6. */
enum tls_alert {
	TLS_CLOSE_NOTIFY = 0,
	TLS_UNEXPECTED_MESSAGE = 10,
	TLS_BAD_RECORD_MAC = 20,
	TLS_RECORD_OVERFLOW = 22,
	TLS_DECODE_ERROR = 50,
	TLS_INTERNAL_ERROR = 80,
	TLS_USER_CANCELED = 90,
	TLS_NO_RENEGOTIATION = 100,
};

/* The choice of ALPN. */
enum tls_protocol { TLS_PROTOCOL_NONE, TLS_PROTOCOL_HTTP1, TLS_PROTOCOL_HTTP2 };

struct tls_direction {
	EVP_CIPHER_CTX *cipher;
	uint64_t number; /* of the next record */
	uint8_t iv[TLS_IV];
	uint8_t secret[TLS_SECRET_MAX]; /* of TLS 1.3, for the next keys */
};

struct tls_session {
	struct tls_session *next; /* of those that are given back */
	struct tls_direction in, out;
	uint16_t version;    /* 0x0303 or 0x0304 */
	uint16_t record_max; /* bytes of content that the client takes */
	uint8_t secret_size, key_size;
	uint8_t protocol; /* enum tls_protocol */
	uint8_t useless;  /* records without bytes for the framing, in a row */
	/* what reading or writing a record takes, and 64 bytes of it, by cipher: see tls_work() */
	uint8_t work_record, work_bytes;
	bool explicit_nonce;
	bool resumed;
	bool update_due;    /* the client wants us to have new keys before more bytes go to it */
	const EVP_MD *hash; /* of TLS 1.3 */
	/* the record that is being read */
	uint8_t got;    /* bytes of its header */
	uint8_t nonces; /* bytes of its explicit nonce that came, */
	uint8_t tags;   /* and of its tag */
	uint8_t header[TLS_HEADER], nonce[8], tag[TLS_TAG];
	uint16_t left; /* bytes of it that are to be decrypted */
	uint16_t size; /* bytes that were decrypted */
	/* of a record that is complete: the bytes that count, and their kind */
	uint16_t content;
	uint8_t type; /* enum tls_type */
};

static inline bool tls_is_13(const struct tls_session *s)
{
	return s->version == 0x0304;
}

enum tls_read {
	TLS_READ_ON,     /* more bytes, or more room, are needed */
	TLS_READ_RECORD, /* a record is complete and genuine: s->type, s->content */
	TLS_READ_FAULT,  /* the connection ends with <alert> */
};

struct tls_step {
	uint32_t taken; /* bytes that were read */
	uint32_t
		written; /* bytes of the record that were written; they count when it is complete */
	uint8_t result;  /* enum tls_read */
	uint8_t alert;   /* enum tls_alert */
};

/*
 * Read of the <n> next bytes of the stream, and write what is decrypted to the <room> bytes at
 * <to>. Ends where a record does. With TLS 1.3 more is written than is content: the first
 * s->content bytes of the record are.
 */
struct tls_step tls_read(struct tls_session *s, const uint8_t *bytes, uint32_t n, uint8_t *to,
			 uint32_t room);

/*
 * Work of a record, and of bytes of one, that are read or written: in the unit of a turn of lb/edge
 * (EDGE_WORK). Counted on processors with AES-NI, whose newer instructions take fewer.
 */
static inline uint32_t tls_record_work(const struct tls_session *s)
{
	return s->work_record;
}

static inline uint32_t tls_work(const struct tls_session *s, uint32_t bytes)
{
	return bytes * s->work_bytes / 64 + 1;
}

/* Bytes whose work that is. */
static inline uint32_t tls_bytes_for(const struct tls_session *s, uint32_t work)
{
	return work * 64 / s->work_bytes;
}

/* Is the session in the middle of a record? */
static inline bool tls_is_inside(const struct tls_session *s)
{
	return s->got > 0;
}

/* Does the record that is being read want room for bytes? */
static inline bool tls_wants_room(const struct tls_session *s)
{
	return s->left > 0;
}

/* Bytes of a record beside its content. */
static inline uint32_t tls_overhead(const struct tls_session *s)
{
	return TLS_HEADER + TLS_TAG + (s->explicit_nonce ? 8 : 0) + tls_is_13(s);
}

/*
 * Write a record: tls_write_begin() writes what is in front of its <n> bytes, tls_write_bytes()
 * encrypts them, in any pieces, and tls_write_end() writes what is behind them. The first and the
 * last return how many bytes they wrote.
 */
uint32_t tls_write_begin(struct tls_session *s, enum tls_type type, uint32_t n,
			 uint8_t head[TLS_HEAD_MAX]);
void tls_write_bytes(struct tls_session *s, const uint8_t *bytes, uint32_t n, uint8_t *to);
uint32_t tls_write_end(struct tls_session *s, enum tls_type type, uint8_t tail[TLS_TAIL_MAX]);

/* A whole record of few bytes, such as an alert. Returns its size. */
uint32_t tls_write_small(struct tls_session *s, enum tls_type type, const uint8_t *bytes,
			 uint32_t n, uint8_t *to);

#endif
