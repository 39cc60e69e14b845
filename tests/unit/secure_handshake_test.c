/* SPDX-License-Identifier: BSD-3-Clause */
/* Both sides of a connection in memory: who is let in, who is not, and the reason that is logged.
 */
#include <criterion/criterion.h>

#include <openssl/err.h>

#include "secure/secure.h"
#include "secure_fixture.h"

static struct secure_fixture f;
static struct secure_party ca, other_ca, lb, agent;

static void set_up(void)
{
	secure_fixture_start(&f);
	ca = secure_party_create(&f, NULL, "authority", NULL, 30);
	other_ca = secure_party_create(&f, NULL, "another authority", NULL, 30);
	lb = secure_party_create(&f, &ca, "lb", "DNS:lb.example,IP:10.0.0.1", 30);
	agent = secure_party_create(&f, &ca, "gpu1", NULL, 30);
}

static void tear_down(void)
{
	secure_party_free(&ca);
	secure_party_free(&other_ca);
	secure_party_free(&lb);
	secure_party_free(&agent);
	secure_fixture_stop(&f);
}

TestSuite(secure_handshake, .init = set_up, .fini = tear_down);

struct end {
	SSL_CTX *context;
	SSL *ssl;
	unsigned long code; /* of its failure */
	char reason[256];
};

struct meeting {
	struct end lb, agent;
	bool met;
};

static SSL_CTX *context(enum secure_side side, const struct secure_files *files)
{
	char error[512] = "";
	SSL_CTX *made = secure_context(side, files, error, sizeof(error));

	cr_assert_not_null(made, "%s", error);
	return made;
}

static void step(struct end *e, enum secure_side side)
{
	char byte;
	int rc;

	if (e->code)
		return;
	ERR_clear_error();
	rc = SSL_is_init_finished(e->ssl) ? SSL_read(e->ssl, &byte, 1) : SSL_do_handshake(e->ssl);
	if (rc <= 0 && SSL_get_error(e->ssl, rc) == SSL_ERROR_SSL) {
		e->code = ERR_peek_last_error();
		secure_reason(side, e->ssl, e->code, e->reason, sizeof(e->reason));
	}
}

/* Passes bytes both ways until neither side has more. */
static void talk(struct meeting *m)
{
	for (int i = 0; i < 10; i++) {
		step(&m->agent, SECURE_AGENT);
		step(&m->lb, SECURE_LOAD_BALANCER);
	}
	m->met = SSL_is_init_finished(m->lb.ssl) && SSL_is_init_finished(m->agent.ssl) &&
		 !m->lb.code && !m->agent.code && secure_proven(m->lb.ssl) &&
		 secure_proven(m->agent.ssl);
}

static struct meeting meet_contexts(SSL_CTX *for_lb, SSL_CTX *for_agent, const char *dialled)
{
	struct meeting m = {.lb.context = for_lb, .agent.context = for_agent};
	BIO *a, *b;

	cr_assert_eq(BIO_new_bio_pair(&a, 0, &b, 0), 1);
	m.lb.ssl = secure_accept(for_lb);
	m.agent.ssl = secure_dial(for_agent, dialled);
	cr_assert_not_null(m.agent.ssl);
	SSL_set_bio(m.lb.ssl, a, a);
	SSL_set_bio(m.agent.ssl, b, b);
	talk(&m);
	return m;
}

static struct meeting meet(const struct secure_files *for_lb, const struct secure_files *for_agent,
			   const char *dialled)
{
	return meet_contexts(context(SECURE_LOAD_BALANCER, for_lb),
			     context(SECURE_AGENT, for_agent), dialled);
}

static void part(struct meeting *m)
{
	SSL_free(m->lb.ssl);
	SSL_free(m->agent.ssl);
	SSL_CTX_free(m->lb.context);
	SSL_CTX_free(m->agent.context);
}

static struct secure_files files_of(const struct secure_party *p, const struct secure_party *trusts)
{
	return (struct secure_files){.certificate = p->certificate_path,
				     .key = p->key_path,
				     .ca = trusts->certificate_path};
}

static void expect_refused(struct meeting *m, const char *at_lb, const char *at_agent)
{
	cr_assert(!m->met);
	cr_expect_not_null(strstr(m->lb.reason, at_lb), "load balancer: '%s', not '%s'",
			   m->lb.reason, at_lb);
	cr_expect_not_null(strstr(m->agent.reason, at_agent), "agent: '%s', not '%s'",
			   m->agent.reason, at_agent);
	part(m);
}

Test(secure_handshake, certificates_of_one_authority_meet_and_tell_the_agents_name)
{
	struct secure_files for_lb = files_of(&lb, &ca), for_agent = files_of(&agent, &ca);
	static const char *const dialled[] = {"10.0.0.1", "lb.example", "LB.Example"};

	for (unsigned int i = 0; i < 3; i++) {
		struct meeting m = meet(&for_lb, &for_agent, dialled[i]);
		char names[SECURE_NAMES_MAX];

		cr_assert(m.met, "%s: %s %s", dialled[i], m.lb.reason, m.agent.reason);
		cr_assert_str_eq(SSL_get_version(m.agent.ssl), "TLSv1.3");
		cr_assert(secure_peer_names(m.lb.ssl, names, sizeof(names)));
		cr_assert_str_eq(names, "gpu1");
		part(&m);
	}
}

Test(secure_handshake, the_common_name_counts_only_without_other_names)
{
	static const struct {
		const char *alternative, *names;
	} rows[] = {
		{NULL, "gpu1"},
		{"DNS:gpu2", "gpu2"},
		{"DNS:gpu2,DNS:gpu3", "gpu2 gpu3"},
		{"IP:10.0.0.9", "ip:10.0.0.9"},
		{"DNS:gpu2,IP:fd00::b,URI:doorbell:model:echo,URI:https://example.org",
		 "gpu2 ip:fd00::b model:echo"},
		{"URI:doorbell:model:a b", "model:?"},
		{"email:gpu@example.com", ""},
	};
	struct secure_files for_lb = files_of(&lb, &ca);

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct secure_party p =
			secure_party_create(&f, &ca, "gpu1", rows[i].alternative, 30);
		struct secure_files for_agent = files_of(&p, &ca);
		struct meeting m = meet(&for_lb, &for_agent, "10.0.0.1");
		char names[SECURE_NAMES_MAX];

		cr_assert(m.met, "%s %s", m.lb.reason, m.agent.reason);
		cr_assert(secure_peer_names(m.lb.ssl, names, sizeof(names)));
		cr_expect_str_eq(names, rows[i].names, "%u: '%s'", i, names);
		part(&m);
		secure_party_free(&p);
	}
}

Test(secure_handshake, refuses_an_agent_of_another_authority)
{
	struct secure_party stranger = secure_party_create(&f, &other_ca, "gpu1", NULL, 30);
	struct secure_files for_lb = files_of(&lb, &ca), for_agent = files_of(&stranger, &ca);
	struct meeting m = meet(&for_lb, &for_agent, "10.0.0.1");

	expect_refused(&m, "the agent's certificate is refused: ",
		       "the load balancer's ca did not sign --tls-certificate");
	secure_party_free(&stranger);
}

Test(secure_handshake, agent_refuses_a_load_balancer_of_another_authority)
{
	struct secure_files for_lb = files_of(&lb, &ca), for_agent = files_of(&agent, &other_ca);
	struct meeting m = meet(&for_lb, &for_agent, "10.0.0.1");

	expect_refused(&m, "the agent's --tls-ca did not sign our certificate",
		       "the load balancer's certificate is refused: ");
}

Test(secure_handshake, refuses_a_certificate_that_has_expired_on_either_side)
{
	struct secure_party late = secure_party_create(&f, &ca, "gpu1", NULL, -1);
	struct secure_party late_lb = secure_party_create(&f, &ca, "lb", "IP:10.0.0.1", -1);
	struct secure_files for_lb = files_of(&lb, &ca), for_agent = files_of(&late, &ca);
	struct meeting m = meet(&for_lb, &for_agent, "10.0.0.1");

	expect_refused(&m, "certificate has expired", "--tls-certificate has expired");
	for_lb = files_of(&late_lb, &ca);
	for_agent = files_of(&agent, &ca);
	m = meet(&for_lb, &for_agent, "10.0.0.1");
	expect_refused(&m, "our certificate has expired", "certificate has expired");
	secure_party_free(&late);
	secure_party_free(&late_lb);
}

Test(secure_handshake, agent_refuses_a_load_balancer_that_it_did_not_dial)
{
	static const char *const dialled[] = {"10.0.0.2", "other.example", "lb"};
	struct secure_files for_lb = files_of(&lb, &ca), for_agent = files_of(&agent, &ca);

	for (unsigned int i = 0; i < 3; i++) {
		struct meeting m = meet(&for_lb, &for_agent, dialled[i]);

		expect_refused(&m, "the agent finds our certificate bad",
			       "is not for the name or address in --lb; --tls-name");
	}
}

Test(secure_handshake, refuses_an_agent_without_certificate)
{
	struct secure_files for_lb = files_of(&lb, &ca);
	SSL_CTX *bare = SSL_CTX_new(TLS_client_method());
	struct meeting m;

	SSL_CTX_load_verify_file(bare, ca.certificate_path);
	m = meet_contexts(context(SECURE_LOAD_BALANCER, &for_lb), bare, "10.0.0.1");
	expect_refused(&m, "the agent has no certificate", "the load balancer wants a certificate");
}

Test(secure_handshake, refuses_tls_1_2)
{
	struct secure_files for_lb = files_of(&lb, &ca), for_agent = files_of(&agent, &ca);
	SSL_CTX *old = context(SECURE_AGENT, &for_agent);
	struct meeting m;

	SSL_CTX_set_min_proto_version(old, TLS1_2_VERSION);
	SSL_CTX_set_max_proto_version(old, TLS1_2_VERSION);
	m = meet_contexts(context(SECURE_LOAD_BALANCER, &for_lb), old, "10.0.0.1");
	expect_refused(&m, "the agent does not speak TLS 1.3",
		       "the load balancer does not speak TLS 1.3");
}

Test(secure_handshake, gives_no_tickets_so_every_connection_shows_its_certificate)
{
	struct secure_files for_lb = files_of(&lb, &ca), for_agent = files_of(&agent, &ca);
	struct meeting m = meet(&for_lb, &for_agent, "10.0.0.1");

	cr_assert(m.met);
	cr_assert_eq(SSL_SESSION_is_resumable(SSL_get_session(m.agent.ssl)), 0);
	part(&m);
}

Test(secure_handshake, the_same_token_meets_with_fresh_keys)
{
	struct secure_files files = {.token = secure_text_file(&f, SECURE_TOKEN "\n")};
	struct meeting m = meet(&files, &files, "10.0.0.1");

	cr_assert(m.met, "%s %s", m.lb.reason, m.agent.reason);
	cr_assert_eq(SSL_get_negotiated_group(m.agent.ssl), NID_X25519);
	part(&m);
}

Test(secure_handshake, takes_the_old_and_the_new_token_while_they_are_changed)
{
	struct secure_files both = {.token = secure_text_file(&f, "# new, then old\n" SECURE_TOKEN_2
								  "\n" SECURE_TOKEN)};
	const char *texts[] = {SECURE_TOKEN, SECURE_TOKEN_2};

	for (int i = 0; i < 2; i++) {
		struct secure_files one = {.token = secure_text_file(&f, texts[i])};
		struct meeting m = meet(&both, &one, "10.0.0.1");

		cr_assert(m.met, "%s %s", m.lb.reason, m.agent.reason);
		part(&m);
	}
}

Test(secure_handshake, refuses_another_token)
{
	struct secure_files for_lb = {.token = secure_text_file(&f, SECURE_TOKEN)};
	struct secure_files for_agent = {.token = secure_text_file(&f, SECURE_TOKEN_2)};
	struct meeting m = meet(&for_lb, &for_agent, "10.0.0.1");

	expect_refused(&m, "the agent has another token, or none",
		       "the load balancer does not take what we offer");
}

Test(secure_handshake, refuses_a_token_of_which_only_the_name_is_known)
{
	struct secure_files files = {.token = secure_text_file(&f, SECURE_TOKEN)};
	SSL_CTX *for_agent = context(SECURE_AGENT, &files);
	struct secure_tokens *tokens = (void *)secure_context_tokens(for_agent);
	struct meeting m;

	tokens->token[0].key[7] ^= 1;
	m = meet_contexts(context(SECURE_LOAD_BALANCER, &files), for_agent, "10.0.0.1");
	expect_refused(&m, "another token of the same name", "does not have our token");
}

/* A man in the middle that has some certificate, but not the token, must not be let in. */
Test(secure_handshake, agent_with_a_token_takes_no_certificate_instead)
{
	struct secure_files for_agent = {.token = secure_text_file(&f, SECURE_TOKEN)};
	SSL_CTX *between = SSL_CTX_new(TLS_server_method());
	struct meeting m;

	SSL_CTX_use_certificate_file(between, lb.certificate_path, SSL_FILETYPE_PEM);
	SSL_CTX_use_PrivateKey_file(between, lb.key_path, SSL_FILETYPE_PEM);
	m = meet_contexts(between, context(SECURE_AGENT, &for_agent), "10.0.0.1");
	expect_refused(&m, "", "the load balancer does not have our token, but certificates");
}

Test(secure_handshake, a_token_does_not_open_a_port_for_certificates)
{
	struct secure_files for_lb = files_of(&lb, &ca);
	struct secure_files for_agent = {.token = secure_text_file(&f, SECURE_TOKEN)};
	struct meeting m = meet(&for_lb, &for_agent, "10.0.0.1");

	cr_assert(!m.met);
	cr_assert_not_null(strstr(m.agent.reason, "does not have our token, but certificates"),
			   "%s", m.agent.reason);
	part(&m);
}

Test(secure_handshake, says_when_the_other_side_speaks_no_tls)
{
	struct secure_files files = files_of(&agent, &ca);
	struct end e = {.context = context(SECURE_AGENT, &files)};
	BIO *a, *b;

	cr_assert_eq(BIO_new_bio_pair(&a, 0, &b, 0), 1);
	e.ssl = secure_dial(e.context, "10.0.0.1");
	SSL_set_bio(e.ssl, a, a);
	BIO_write(b, "{\"jsonrpc\":\"2.0\"}\n", 18);
	step(&e, SECURE_AGENT);
	cr_assert_not_null(strstr(e.reason, "does not speak TLS there"), "%s", e.reason);
	SSL_free(e.ssl);
	SSL_CTX_free(e.context);
	BIO_free(b);
}
