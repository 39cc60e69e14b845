/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Records of TLS: genuine ones, damaged ones and bytes that are none, cut anywhere. Genuine ones
 * give their content, whatever the cuts; a damaged one ends the stream, and gives nothing. The
 * first byte chooses the cipher, the second seeds the cuts; then steps, each of a kind, a length
 * and bytes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/obj_mac.h>

#include "tls/handshake.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SUITES 6

static struct tls_session *server[SUITES], *client[SUITES];

static void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

static void make_sessions(void)
{
	static const int ciphers[] = {NID_aes_128_gcm, NID_aes_256_gcm, NID_chacha20_poly1305};

	for (unsigned int i = 0; i < SUITES; i++) {
		struct tls_keys keys = {.version = 0x0303 + i / 3, .cipher = ciphers[i % 3]};
		struct tls_direction in;

		keys.hash = i % 3 == 1 ? EVP_sha384() : EVP_sha256();
		keys.master_size = sizeof(keys.master);
		memset(keys.client, 1, sizeof(keys.client));
		memset(keys.server, 2, sizeof(keys.server));
		memset(keys.master, 3, sizeof(keys.master));
		server[i] = tls_session_create(&keys);
		client[i] = tls_session_create(&keys);
		require(server[i] != NULL && client[i] != NULL, "no session");
		/* The client writes with the keys with which the server reads. */
		in = client[i]->in;
		client[i]->in = client[i]->out;
		client[i]->out = in;
	}
}

static void begin(struct tls_session *s)
{
	s->in.number = s->out.number = 1;
	s->got = s->nonces = s->tags = 0;
	s->left = s->size = s->content = 0;
}

struct reader {
	struct tls_session *s;
	uint8_t record[TLS_PLAIN_MAX + 256];
	uint32_t n;
	uint32_t chance;
	bool over;
	uint32_t records;
	/* of the last record */
	uint32_t content;
	uint8_t type;
};

static uint32_t cut(struct reader *r)
{
	r->chance = r->chance * 1103515245 + 12345;
	return 1 + (r->chance >> 16) % ((r->chance >> 13) % 2 ? 8 : 3000);
}

static void feed(struct reader *r, const uint8_t *bytes, uint32_t n)
{
	for (uint32_t at = 0; at < n && !r->over;) {
		uint32_t part = cut(r), room = cut(r);
		uint8_t *exact, *to;
		struct tls_step step;

		part = part < n - at ? part : n - at;
		room = room < sizeof(r->record) - r->n ? room : sizeof(r->record) - r->n;
		/* The sanitizer sees a byte too much on either side. */
		exact = memcpy(malloc(part), bytes + at, part);
		to = malloc(room);
		step = tls_read(r->s, exact, part, to, room);
		require(step.taken <= part && step.written <= room, "more than there is");
		require(step.taken > 0 || step.result != TLS_READ_ON || room == 0,
			"it stands still");
		memcpy(r->record + r->n, to, step.written);
		free(exact);
		free(to);
		r->n += step.written;
		at += step.taken;
		r->over = step.result == TLS_READ_FAULT;
		if (step.result != TLS_READ_RECORD)
			continue;
		require(r->s->content <= r->n, "more content than bytes");
		r->content = r->s->content;
		r->type = r->s->type;
		r->records++;
		r->n = 0;
	}
}

/* A genuine record, of which byte <damage> is changed unless that is 0. */
static void feed_record(struct reader *r, struct tls_session *c, uint8_t type, const uint8_t *bytes,
			uint32_t n, uint8_t damage)
{
	bool inside = tls_is_inside(r->s);
	uint8_t wire[TLS_HEAD_MAX + 300 + TLS_TAIL_MAX];
	uint32_t size = tls_write_small(c, type, bytes, n, wire), before = r->records;

	if (damage != 0)
		wire[5 + damage % (size - 5)] ^= damage;
	feed(r, wire, size);
	if (inside)
		return; /* other bytes came before */
	if (damage != 0) {
		require(r->over && r->records == before, "a damaged record counts");
		return;
	}
	require(!r->over && r->records == before + 1, "a genuine record does not count");
	require(r->type == type && r->content == n && memcmp(r->record, bytes, n) == 0,
		"another content");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct reader r;
	struct tls_session *c;

	if (server[0] == NULL)
		make_sessions();
	if (size < 2)
		return 0;
	memset(&r, 0, sizeof(r));
	r.s = server[data[0] % SUITES];
	c = client[data[0] % SUITES];
	r.chance = data[1];
	begin(r.s);
	begin(c);
	data += 2;
	size -= 2;
	while (size >= 3 && !r.over) {
		uint8_t kind = data[0], damage = data[1];
		uint32_t n = data[2] < size - 3 ? data[2] : size - 3;
		const uint8_t *bytes = data + 3;

		if (kind % 4 == 0)
			feed(&r, bytes, n);
		else
			feed_record(&r, c, kind % 4 == 3 ? TLS_ALERT : TLS_DATA, bytes, n,
				    kind % 16 == 1 ? damage : 0);
		data += 3 + n;
		size -= 3 + n;
	}
	return 0;
}
