/* SPDX-License-Identifier: BSD-3-Clause */
/* TLS of services: handshakes and records beside OpenSSL's client, cut anywhere. */
#include <stdlib.h>
#include <string.h>

#include "secure_fixture.h"
#include "tls_client.h"

static struct secure_fixture f;
static struct secure_party own, other;
static struct tls_context *context;
static uint8_t random_bytes[65536];
static char error[512];

static const struct tls_protocols http1 = {.http1 = true}, both = {.http1 = true, .http2 = true},
				  none;

static void set_up(void)
{
	secure_fixture_start(&f);
	own = secure_party_create(&f, NULL, "service", "DNS:service.example", 30);
	other = secure_party_create(&f, NULL, "another", NULL, 30);
	context = tls_context_create(own.certificate_path, own.key_path, &http1, error,
				     sizeof(error));
	cr_assert_not_null(context, "%s", error);
	srandom(7);
	for (size_t i = 0; i < sizeof(random_bytes); i++)
		random_bytes[i] = (uint8_t)random();
}

static void tear_down(void)
{
	tls_context_free(context);
	secure_party_free(&own);
	secure_party_free(&other);
	secure_fixture_stop(&f);
}

TestSuite(lb_tls, .init = set_up, .fini = tear_down);

static const struct suite {
	int version;
	const char *ciphers, *suites;
} suites[] = {
	{TLS1_2_VERSION, "ECDHE-ECDSA-AES128-GCM-SHA256", NULL},
	{TLS1_2_VERSION, "ECDHE-ECDSA-AES256-GCM-SHA384", NULL},
	{TLS1_2_VERSION, "ECDHE-ECDSA-CHACHA20-POLY1305", NULL},
	{TLS1_3_VERSION, NULL, "TLS_AES_128_GCM_SHA256"},
	{TLS1_3_VERSION, NULL, "TLS_AES_256_GCM_SHA384"},
	{TLS1_3_VERSION, NULL, "TLS_CHACHA20_POLY1305_SHA256"},
};
#define SUITES (sizeof(suites) / sizeof(suites[0]))

/* A client and a session that have met. */
struct pair {
	struct tls_client client;
	struct tls_session *session;
	uint8_t left[32768];
	uint32_t n_left;
	char reason[96];
};

static struct pair *meet_as(const struct suite *suite, uint32_t cut, SSL_SESSION *ticket)
{
	struct pair *p = calloc(1, sizeof(*p));

	tls_client_open(&p->client, suite->version, suite->ciphers, suite->suites, ticket);
	p->session = tls_client_meet(&p->client, context, cut, p->reason, p->left, &p->n_left);
	return p;
}

static struct pair *meet(const struct suite *suite)
{
	struct pair *p = meet_as(suite, UINT32_MAX, NULL);

	cr_assert_not_null(p->session, "%s", p->reason);
	cr_assert_eq(p->n_left, 0);
	return p;
}

static void part(struct pair *p)
{
	tls_client_close(&p->client);
	tls_session_free(p->session);
	free(p);
}

/* Records of <bytes>, in pieces of <cut>, of which the plain bytes go to rooms of <room>. */
struct reading {
	uint8_t plain[65536 * 2];
	uint32_t n;
	uint8_t type, alert;
	bool fault;
	uint32_t records;
};

static void read_all(struct tls_session *s, const uint8_t *bytes, uint32_t n, uint32_t cut,
		     uint32_t room, struct reading *r)
{
	static uint8_t record[TLS_PLAIN_MAX + 256];
	uint32_t of_record = 0;

	memset(r, 0, sizeof(*r));
	for (uint32_t at = 0; at < n && !r->fault;) {
		uint32_t piece = cut - at % cut < n - at ? cut - at % cut : n - at;
		struct tls_step step = tls_read(s, bytes + at, piece, record + of_record, room);

		at += step.taken;
		of_record += step.written;
		cr_assert_leq(step.taken, piece);
		cr_assert_leq(step.written, room);
		r->fault = step.result == TLS_READ_FAULT;
		r->alert = step.alert;
		if (step.result != TLS_READ_RECORD)
			continue;
		cr_assert_leq(s->content, of_record);
		memcpy(r->plain + r->n, record, s->content);
		r->n += s->content;
		r->type = s->type;
		r->records++;
		of_record = 0;
	}
}

static void expect_from_client(struct pair *p, uint32_t n, uint32_t cut, uint32_t room)
{
	static uint8_t wire[131072];
	static struct reading r;
	uint32_t size;

	cr_assert_eq(SSL_write(p->client.ssl, random_bytes, (int)n), (int)n);
	size = tls_client_take(&p->client, wire, sizeof(wire));
	read_all(p->session, wire, size, cut, room, &r);
	cr_assert_not(r.fault, "alert %u", r.alert);
	cr_assert_eq(r.n, n);
	cr_assert_eq(r.type, TLS_DATA);
	cr_assert_eq(memcmp(r.plain, random_bytes, n), 0);
	cr_expect_not(tls_is_inside(p->session));
}

static void expect_at_client(struct pair *p, uint32_t n, uint32_t cut)
{
	static uint8_t wire[TLS_RECORD_MAX], got[TLS_PLAIN_MAX];
	uint32_t size = tls_write_record(p->session, TLS_DATA, random_bytes, n, cut, wire);

	cr_assert_eq(size, n + tls_overhead(p->session));
	tls_client_give(&p->client, wire, size);
	cr_assert_eq(SSL_read(p->client.ssl, got, sizeof(got)), (int)n);
	cr_assert_eq(memcmp(got, random_bytes, n), 0);
}

Test(lb_tls, every_cipher_reads_and_writes)
{
	static const uint32_t sizes[] = {1, 2, 15, 16, 17, 1000, 16383, 16384};

	for (unsigned int i = 0; i < SUITES; i++) {
		struct pair *p = meet(&suites[i]);

		for (unsigned int k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
			expect_from_client(p, sizes[k], UINT32_MAX, TLS_PLAIN_MAX + 1);
			expect_at_client(p, sizes[k], 700);
		}
		expect_from_client(p, 50000, UINT32_MAX, TLS_PLAIN_MAX + 1);
		part(p);
	}
}

Test(lb_tls, records_may_be_cut_anywhere)
{
	for (unsigned int i = 0; i < SUITES; i++) {
		struct pair *p = meet(&suites[i]);

		for (uint32_t cut = 1; cut < 60; cut++) {
			expect_from_client(p, 40, cut, 1 + cut % 7);
			expect_at_client(p, 40, cut);
		}
		expect_from_client(p, 30000, 1448, 1600);
		part(p);
	}
}

Test(lb_tls, handshakes_may_be_cut_anywhere)
{
	for (unsigned int i = 0; i < SUITES; i++)
		for (uint32_t cut = 1; cut < 300; cut += 1 + cut / 9) {
			struct pair *p = meet_as(&suites[i], cut, NULL);

			cr_assert_not_null(p->session, "cut %u: %s", cut, p->reason);
			expect_from_client(p, 100, 11, 100);
			expect_at_client(p, 100, 100);
			part(p);
		}
}

Test(lb_tls, bytes_behind_the_handshake_are_left)
{
	struct tls_client c;
	struct tls_handshake *h = tls_handshake_create(context);
	uint8_t bytes[32768];
	static struct reading r;
	const uint8_t *to_client;
	struct tls_session *s;
	uint32_t n, out;

	tls_client_open(&c, TLS1_3_VERSION, NULL, NULL, NULL);
	SSL_do_handshake(c.ssl);
	n = tls_client_take(&c, bytes, sizeof(bytes));
	cr_assert_eq(tls_handshake_step(h, bytes, n), TLS_GOING);
	to_client = tls_handshake_output(h, &out);
	tls_client_give(&c, to_client, out);
	cr_assert_eq(SSL_do_handshake(c.ssl), 1);
	cr_assert_eq(SSL_write(c.ssl, random_bytes, 500), 500);
	n = tls_client_take(&c, bytes, sizeof(bytes));
	cr_assert_eq(tls_handshake_step(h, bytes, n), TLS_DONE);
	cr_assert_eq(tls_handshake_left(h), 500 + 22);
	s = tls_handshake_session(h);
	read_all(s, bytes + n - 522, 522, 100, 100, &r);
	cr_expect_eq(r.n, 500);
	cr_expect_eq(memcmp(r.plain, random_bytes, 500), 0);
	tls_session_free(s);
	tls_handshake_free(h);
	tls_client_close(&c);
}

/* The ticket that came behind the handshake, or with the first bytes. */
static SSL_SESSION *last_ticket;

static int note_ticket(SSL *ssl, SSL_SESSION *ticket)
{
	SSL_SESSION_free(last_ticket);
	last_ticket = ticket;
	return 1;
}

Test(lb_tls, tickets_shorten_handshakes_at_their_own_service)
{
	struct tls_context *renewed = tls_context_create(own.certificate_path, own.key_path, &http1,
							 error, sizeof(error));

	for (unsigned int i = 0; i < SUITES; i++) {
		struct pair *p = calloc(1, sizeof(*p)), *again;
		struct tls_context *usual = context;

		tls_client_open(&p->client, suites[i].version, suites[i].ciphers, suites[i].suites,
				NULL);
		SSL_CTX_sess_set_new_cb(p->client.context, note_ticket);
		p->session = tls_client_meet(&p->client, context, UINT32_MAX, p->reason, p->left,
					     &p->n_left);
		cr_assert_not_null(p->session);
		cr_expect_not(p->session->resumed);
		expect_at_client(p, 10, 10);
		cr_assert_not_null(last_ticket);
		again = meet_as(&suites[i], UINT32_MAX, last_ticket);
		cr_assert_not_null(again->session);
		cr_expect(again->session->resumed);
		expect_from_client(again, 1000, 300, 300);
		expect_at_client(again, 1000, 300);
		part(again);
		context = renewed;
		again = meet_as(&suites[i], UINT32_MAX, last_ticket);
		context = usual;
		cr_assert_not_null(again->session);
		cr_expect_not(again->session->resumed);
		expect_at_client(again, 1000, 300);
		part(again);
		part(p);
	}
	SSL_SESSION_free(last_ticket);
	tls_context_free(renewed);
}

Test(lb_tls, keys_are_replaced_when_the_client_wants_it_and_when_we_do)
{
	static const uint8_t update[] = {24, 0, 0, 1, 0};

	for (unsigned int i = 3; i < SUITES; i++) {
		struct pair *p = meet(&suites[i]);
		uint8_t wire[4096];
		static struct reading r;
		uint32_t n;

		for (unsigned int k = 0; k < 3; k++) {
			cr_assert_eq(SSL_key_update(p->client.ssl, SSL_KEY_UPDATE_REQUESTED), 1);
			cr_assert_eq(SSL_do_handshake(p->client.ssl), 1);
			n = tls_client_take(&p->client, wire, sizeof(wire));
			read_all(p->session, wire, n, 3, 3, &r);
			cr_assert_not(r.fault);
			cr_expect_eq(r.type, TLS_HANDSHAKE);
			cr_expect_eq(r.n, 5);
			cr_expect_eq(r.plain[4], 1);
			cr_assert(tls_session_update(p->session, &p->session->in));
			expect_from_client(p, 3000, 1000, 1000);
			n = tls_write_small(p->session, TLS_HANDSHAKE, update, sizeof(update),
					    wire);
			tls_client_give(&p->client, wire, n);
			cr_assert(tls_session_update(p->session, &p->session->out));
			expect_at_client(p, 3000, 1000);
		}
		part(p);
	}
}

Test(lb_tls, padding_is_no_content)
{
	struct pair *p = meet(&suites[3]);

	SSL_set_block_padding(p->client.ssl, 1000);
	expect_from_client(p, 1, 7, 5);
	expect_from_client(p, 999, 1448, 700);
	expect_from_client(p, 5000, 1448, 700);
	part(p);
}

Test(lb_tls, a_client_gets_records_as_small_as_it_asked_for)
{
	struct pair *p = calloc(1, sizeof(*p));

	tls_client_open(&p->client, TLS1_3_VERSION, NULL, NULL, NULL);
	SSL_set_tlsext_max_fragment_length(p->client.ssl, TLSEXT_max_fragment_length_1024);
	p->session =
		tls_client_meet(&p->client, context, UINT32_MAX, p->reason, p->left, &p->n_left);
	cr_assert_not_null(p->session);
	cr_expect_eq(p->session->record_max, 1024);
	part(p);
}

/* --- what is refused ---------------------------------------------------------------------------
 */

/* A record of the client, of which byte <at> is changed. Returns the alert, or -1. */
static int alert_of_damaged(const struct suite *suite, uint32_t at)
{
	struct pair *p = meet(suite);
	static struct reading r;
	uint8_t wire[4096];
	uint32_t n;

	SSL_write(p->client.ssl, random_bytes, 100);
	n = tls_client_take(&p->client, wire, sizeof(wire));
	cr_assert_lt(at, n);
	wire[at] ^= 0x40;
	read_all(p->session, wire, n, 17, 13, &r);
	part(p);
	cr_expect_eq(r.n, 0, "bytes of a forged record");
	return r.fault ? r.alert : -1;
}

Test(lb_tls, no_byte_of_a_record_may_change)
{
	for (unsigned int i = 0; i < SUITES; i++)
		for (uint32_t at = 5; at < 115; at += 3)
			cr_expect_eq(alert_of_damaged(&suites[i], at), TLS_BAD_RECORD_MAC,
				     "suite %u byte %u", i, at);
	cr_expect_eq(alert_of_damaged(&suites[3], 0), TLS_UNEXPECTED_MESSAGE);
	cr_expect_eq(alert_of_damaged(&suites[3], 1), TLS_UNEXPECTED_MESSAGE);
	cr_expect_eq(alert_of_damaged(&suites[0], 3), TLS_RECORD_OVERFLOW);
}

Test(lb_tls, records_come_once_and_in_order)
{
	for (unsigned int i = 0; i < SUITES; i++) {
		struct pair *p = meet(&suites[i]);
		static struct reading r;
		uint8_t wire[4096];
		uint32_t n;

		SSL_write(p->client.ssl, random_bytes, 100);
		n = tls_client_take(&p->client, wire, sizeof(wire));
		read_all(p->session, wire, n, n, 1000, &r);
		cr_expect_not(r.fault);
		read_all(p->session, wire, n, n, 1000, &r);
		cr_expect(r.fault && r.alert == TLS_BAD_RECORD_MAC);
		part(p);
	}
}

static int alert_of_header(const struct suite *suite, uint8_t type, uint32_t length)
{
	const uint8_t header[] = {type, 3, 3, length >> 8, length};
	struct pair *p = meet(suite);
	static struct reading r;

	read_all(p->session, header, sizeof(header), 2, 100, &r);
	part(p);
	return r.fault ? r.alert : -1;
}

Test(lb_tls, headers_are_checked_before_their_bytes_come)
{
	cr_expect_eq(alert_of_header(&suites[3], TLS_DATA, 16384 + 256), TLS_RECORD_OVERFLOW);
	cr_expect_eq(alert_of_header(&suites[3], TLS_DATA, 16384 + 17), -1);
	cr_expect_eq(alert_of_header(&suites[3], TLS_DATA, 16384 + 18), TLS_RECORD_OVERFLOW);
	cr_expect_eq(alert_of_header(&suites[3], TLS_DATA, 16), TLS_BAD_RECORD_MAC);
	cr_expect_eq(alert_of_header(&suites[0], TLS_DATA, 16384 + 24), -1);
	cr_expect_eq(alert_of_header(&suites[0], TLS_DATA, 16384 + 25), TLS_RECORD_OVERFLOW);
	cr_expect_eq(alert_of_header(&suites[0], TLS_DATA, 23), TLS_BAD_RECORD_MAC);
	cr_expect_eq(alert_of_header(&suites[0], TLS_DATA, 24), -1);
	cr_expect_eq(alert_of_header(&suites[2], TLS_DATA, 15), TLS_BAD_RECORD_MAC);
	cr_expect_eq(alert_of_header(&suites[0], TLS_CHANGE_CIPHER, 1), TLS_UNEXPECTED_MESSAGE);
	cr_expect_eq(alert_of_header(&suites[3], TLS_CHANGE_CIPHER, 1), TLS_UNEXPECTED_MESSAGE);
	cr_expect_eq(alert_of_header(&suites[3], TLS_HANDSHAKE, 40), TLS_UNEXPECTED_MESSAGE);
	cr_expect_eq(alert_of_header(&suites[0], 99, 40), TLS_UNEXPECTED_MESSAGE);
}

Test(lb_tls, a_client_without_a_version_or_cipher_of_ours_is_refused)
{
	static const struct suite bad[] = {
		{TLS1_1_VERSION, "ALL:@SECLEVEL=0", NULL},
		{TLS1_2_VERSION, "ECDHE-ECDSA-AES128-SHA", NULL},
		{TLS1_2_VERSION, "ECDHE-RSA-AES128-GCM-SHA256", NULL}, /* the key is of ECDSA */
		{TLS1_3_VERSION, NULL, "TLS_AES_128_CCM_SHA256"},
	};

	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct pair *p = meet_as(&bad[i], UINT32_MAX, NULL);

		cr_expect_null(p->session, "suite %u", i);
		cr_expect_neq(p->reason[0], '\0', "suite %u", i);
		part(p);
	}
}

/* OpenSSL would keep a first message of 128 KiB until it is complete. */
Test(lb_tls, a_handshake_without_end_takes_little_memory)
{
	struct tls_handshake *h = tls_handshake_create(context);
	uint8_t record[5 + 4000] = {22, 3, 1, 4000 >> 8, 4000 & 0xff, 1, 1, 0xff, 0};
	uint32_t bytes = 0;

	while (bytes < 65536 && tls_handshake_step(h, record, sizeof(record)) == TLS_GOING)
		bytes += sizeof(record);
	cr_expect_lt(bytes, 65536);
	cr_expect_str_eq(tls_handshake_reason(h), "the client's handshake is too long");
	tls_handshake_free(h);
}

/* --- ALPN --------------------------------------------------------------------------------------
 */

/* The protocol that is chosen of <offer>; -1: the client was refused. */
static int protocol_of(const struct tls_protocols *protocols, const char *offer)
{
	struct tls_context *c = tls_context_create(own.certificate_path, own.key_path, protocols,
						   error, sizeof(error));
	struct pair *p = calloc(1, sizeof(*p));
	int chosen;

	tls_client_open(&p->client, TLS1_3_VERSION, NULL, NULL, NULL);
	SSL_set_alpn_protos(p->client.ssl, (const uint8_t *)offer, strlen(offer));
	p->session = tls_client_meet(&p->client, c, UINT32_MAX, p->reason, p->left, &p->n_left);
	chosen = p->session == NULL ? -1 : p->session->protocol;
	part(p);
	tls_context_free(c);
	return chosen;
}

Test(lb_tls, the_protocol_is_one_that_the_service_has)
{
	cr_expect_eq(protocol_of(&http1, "\x02h2\x08http/1.1"), TLS_PROTOCOL_HTTP1);
	cr_expect_eq(protocol_of(&both, "\x02h2\x08http/1.1"), TLS_PROTOCOL_HTTP1);
	cr_expect_eq(protocol_of(&both, "\x02h2"), TLS_PROTOCOL_HTTP2);
	cr_expect_eq(protocol_of(&both, "\x08http/1.1"), TLS_PROTOCOL_HTTP1);
	cr_expect_eq(protocol_of(&http1, "\x02h2"), -1);
	cr_expect_eq(protocol_of(&http1, ""), TLS_PROTOCOL_NONE);
	/* RFC 9325, 3.7: it is no client of a framing that has no name there. */
	cr_expect_eq(protocol_of(&none, "\x02h2"), -1);
	cr_expect_eq(protocol_of(&none, ""), TLS_PROTOCOL_NONE);
}

/* --- files -------------------------------------------------------------------------------------
 */

static const char *refusal_of(const char *certificate, const char *key)
{
	struct tls_context *c = tls_context_create(certificate, key, &none, error, sizeof(error));

	cr_expect_null(c);
	tls_context_free(c);
	return error;
}

Test(lb_tls, files_that_do_not_work_are_named_with_the_reason)
{
	const char *text = secure_text_file(&f, "no PEM\n");

	cr_expect(
		strstr(refusal_of("/nowhere", own.key_path), "certificate /nowhere: No such file"));
	cr_expect(
		strstr(refusal_of(own.certificate_path, "/nowhere"), "key /nowhere: No such file"));
	cr_expect(strstr(refusal_of(own.certificate_path, other.key_path),
			 "it does not belong to the certificate"));
	cr_expect(strstr(refusal_of(text, own.key_path), "cannot use the certificate"));
	cr_expect(strstr(refusal_of(own.certificate_path, text), "cannot use the key"));
	cr_expect(strstr(refusal_of(f.folder, own.key_path), "no regular file"));
	chmod(own.key_path, 0644);
	cr_expect(strstr(refusal_of(own.certificate_path, own.key_path), "chmod 600"));
	chmod(own.key_path, 0600);
}

Test(lb_tls, a_key_of_another_kind_is_not_the_certificate_s)
{
	struct secure_party rsa =
		secure_party_with_key(&f, NULL, "rsa", NULL, 30, EVP_RSA_gen(2048));

	cr_expect(strstr(refusal_of(rsa.certificate_path, own.key_path),
			 "it does not belong to the certificate"),
		  "%s", error);
	cr_expect(strstr(refusal_of(own.certificate_path, rsa.key_path),
			 "it does not belong to the certificate"),
		  "%s", error);
	secure_party_free(&rsa);
}

Test(lb_tls, a_key_with_a_passphrase_is_named_as_such)
{
	const char *path;
	FILE *file = secure_file(&f, &path);

	PEM_write_PKCS8PrivateKey(file, own.key, EVP_aes_128_cbc(), "secret", 6, NULL, NULL);
	fclose(file);
	cr_expect(strstr(refusal_of(own.certificate_path, path), "passphrase"), "%s", error);
}

Test(lb_tls, clients_get_the_certificates_behind_the_first)
{
	struct secure_party leaf = secure_party_create(&f, &other, "leaf", NULL, 30);
	struct pair *p = calloc(1, sizeof(*p));
	const char *chain;
	FILE *file = secure_file(&f, &chain);
	struct tls_context *c;

	PEM_write_X509(file, leaf.certificate);
	PEM_write_X509(file, other.certificate);
	fclose(file);
	c = tls_context_create(chain, leaf.key_path, &none, error, sizeof(error));
	cr_assert_not_null(c, "%s", error);
	tls_client_open(&p->client, TLS1_3_VERSION, NULL, NULL, NULL);
	p->session = tls_client_meet(&p->client, c, UINT32_MAX, p->reason, p->left, &p->n_left);
	cr_assert_not_null(p->session, "%s", p->reason);
	cr_expect_eq(sk_X509_num(SSL_get_peer_cert_chain(p->client.ssl)), 2);
	part(p);
	tls_context_free(c);
	secure_party_free(&leaf);
}

Test(lb_tls, a_certificate_that_has_ended_is_told)
{
	struct secure_party old = secure_party_create(&f, NULL, "old", NULL, -1);
	struct tls_context *c =
		tls_context_create(old.certificate_path, old.key_path, &none, error, sizeof(error));
	char why[96];

	cr_assert_not_null(c, "%s", error);
	cr_expect_not(tls_context_is_valid(c, why, sizeof(why)));
	cr_expect_str_eq(why, "has ended; renew it");
	cr_expect(tls_context_is_valid(context, why, sizeof(why)));
	cr_expect_gt(tls_context_not_after(context), time(NULL));
	tls_context_free(c);
	secure_party_free(&old);
}
