/* SPDX-License-Identifier: BSD-3-Clause */
/* Files, tokens and names: which are accepted, and the error for each of the others. */
#include <criterion/criterion.h>

#include "secure/secure.h"
#include "secure_fixture.h"

static struct secure_fixture f;
static struct secure_party ca, lb, other;

static void set_up(void)
{
	secure_fixture_start(&f);
	ca = secure_party_create(&f, NULL, "authority", NULL, 30);
	lb = secure_party_create(&f, &ca, "lb", "IP:10.0.0.1", 30);
	other = secure_party_create(&f, &ca, "other", "IP:10.0.0.2", -1);
}

static void tear_down(void)
{
	secure_party_free(&ca);
	secure_party_free(&lb);
	secure_party_free(&other);
	secure_fixture_stop(&f);
}

TestSuite(secure_files, .init = set_up, .fini = tear_down);

static void expect_error(const struct secure_files *files, const char *part)
{
	char error[512] = "";

	cr_assert_null(secure_context(SECURE_LOAD_BALANCER, files, error, sizeof(error)));
	cr_expect_not_null(strstr(error, part), "'%s', not '%s'", error, part);
}

Test(secure_files, names_the_file_that_does_not_do)
{
	struct secure_files good = {lb.certificate_path, lb.key_path, ca.certificate_path, NULL};
	struct secure_files bad = good;
	const char *garbage = secure_text_file(&f, "-----BEGIN CERTIFICATE-----\nAAAA\n");
	struct secure_party rsa =
		secure_party_with_key(&f, &ca, "rsa", NULL, 30, EVP_RSA_gen(2048));

	bad.key = "";
	expect_error(&bad, "TLS needs certificate, key and ca; key is missing");
	bad.key = "/nonexistent/key.pem";
	expect_error(&bad, "cannot open the key /nonexistent/key.pem: No such file or directory");
	bad.key = other.key_path;
	expect_error(&bad, "it does not belong to the certificate");
	bad.key = rsa.key_path;
	expect_error(&bad, "it does not belong to the certificate");
	secure_party_free(&rsa);
	bad = good;
	bad.certificate = garbage;
	expect_error(&bad, garbage);
	bad = good;
	bad.ca = lb.key_path;
	expect_error(&bad, "cannot use the authority");
	bad = good;
	bad.token = garbage;
	expect_error(&bad, "either the one or the others");
}

Test(secure_files, takes_no_named_pipe_and_waits_for_none, .timeout = 10)
{
	struct secure_files good = {lb.certificate_path, lb.key_path, ca.certificate_path, NULL};
	struct secure_files bad = good, token = {0};
	const char *pipe = secure_text_file(&f, "");

	unlink(pipe);
	cr_assert_eq(mkfifo(pipe, 0600), 0);
	bad.certificate = pipe;
	expect_error(&bad, "is not a regular file");
	bad = good;
	bad.key = pipe;
	expect_error(&bad, "is not a regular file");
	bad = good;
	bad.ca = pipe;
	expect_error(&bad, "is not a regular file");
	token.token = pipe;
	expect_error(&token, "is not a regular file");
}

Test(secure_files, refuses_a_key_or_token_that_everybody_may_read)
{
	struct secure_files files = {lb.certificate_path, lb.key_path, ca.certificate_path, NULL};
	struct secure_files token = {.token = secure_text_file(&f, SECURE_TOKEN)};

	chmod(lb.key_path, 0644);
	expect_error(&files, "may be read by everybody; chmod 600 it");
	chmod(token.token, 0604);
	expect_error(&token, "may be read by everybody; chmod 600 it");
}

Test(secure_files, knows_how_long_the_certificate_lasts)
{
	struct secure_files files = {lb.certificate_path, lb.key_path, ca.certificate_path, NULL};
	struct secure_files late = {other.certificate_path, other.key_path, ca.certificate_path,
				    NULL};
	struct secure_files token = {.token = secure_text_file(&f, SECURE_TOKEN)};
	const struct {
		const struct secure_files *files;
		long least, most;
		bool none;
	} rows[] = {{&files, 29, 30, false}, {&late, -2, -1, false}, {&token, 0, 0, true}};

	for (unsigned int i = 0; i < 3; i++) {
		char error[512];
		SSL_CTX *context =
			secure_context(SECURE_LOAD_BALANCER, rows[i].files, error, sizeof(error));
		bool none;
		long days;

		cr_assert_not_null(context, "%s", error);
		days = secure_days_left(context, &none);
		cr_expect(days >= rows[i].least && days <= rows[i].most, "%ld", days);
		cr_expect_eq(none, rows[i].none);
		SSL_CTX_free(context);
	}
}

Test(secure_files, says_in_time_that_a_certificate_ends)
{
	struct secure_files files = {lb.certificate_path, lb.key_path, ca.certificate_path, NULL};
	struct secure_files token = {.token = secure_text_file(&f, SECURE_TOKEN)};
	const long day = 86400;
	const struct {
		long at; /* from its end */
		enum secure_validity expected;
		const char *why;
	} rows[] = {
		{-41 * day, SECURE_NOT_YET, "is the clock right?"},
		{-8 * day, SECURE_VALID, ""},
		{-7 * day - 1, SECURE_VALID, ""},
		{-7 * day + 1, SECURE_ENDS_SOON, "renew it before"},
		{-1, SECURE_ENDS_SOON, "ends "},
		{1, SECURE_ENDED, "ended "},
	};
	char error[512], why[160];
	time_t end, ignored;
	SSL_CTX *context = secure_context(SECURE_LOAD_BALANCER, &files, error, sizeof(error));

	cr_assert_not_null(context, "%s", error);
	secure_validity_at(context, time(NULL), &end, why, sizeof(why));
	cr_expect(labs(end - time(NULL) - 30 * day) < 60, "%ld", (long)end);
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		why[0] = '\0';
		cr_expect_eq(
			secure_validity_at(context, end + rows[i].at, &ignored, why, sizeof(why)),
			rows[i].expected, "%ld", rows[i].at);
		cr_expect_not_null(strstr(why, rows[i].why), "%s", why);
	}
	SSL_CTX_free(context);
	context = secure_context(SECURE_LOAD_BALANCER, &token, error, sizeof(error));
	cr_assert_not_null(context, "%s", error);
	cr_expect_eq(secure_validity_at(context, end, &ignored, why, sizeof(why)), SECURE_VALID);
	cr_expect_eq(ignored, 0);
	SSL_CTX_free(context);
}

#define HEX_32 SECURE_TOKEN
#define HEX_31 "6a1e0f3b5c7d29488fe0b1a2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5"

Test(secure_files, token_files_hold_32_random_bytes_or_more_per_line)
{
	static const struct {
		const char *text, *why; /* NULL: good */
	} rows[] = {
		{HEX_32, NULL},
		{"  " HEX_32 " \r\n\n# comment\n", NULL},
		{HEX_32 "\n" SECURE_TOKEN_2 "\n", NULL},
		{"ah4PO1x9KUiP4LGiw9Tl9gcYKTpLXG1+j5ChssPU5fY=", NULL},
		{"", "it is empty"},
		{"# nothing\n\n", "it is empty"},
		{HEX_31, "line 1 has 31 bytes, and needs 32 to 64"},
		{"\nhello", "line 2 is neither hexadecimal digits nor base64"},
		{"c2hvcnQ=", "line 1 has 5 bytes"},
		{"!!!!", "line 1 is neither"},
		{"====", "line 1"},
		{"0000000000000000000000000000000000000000000000000000000000000000", "not random"},
		{HEX_32 HEX_32 HEX_32, "line 1 has 96 bytes"},
		{HEX_32 "\n" HEX_32 "\n" HEX_32 "\n" HEX_32 "\n" HEX_32, "line 5: more than 4"},
	};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct secure_tokens tokens;
		char why[160] = "";
		bool good = secure_tokens_parse(rows[i].text, strlen(rows[i].text), &tokens, why,
						sizeof(why));

		cr_expect_eq(good, !rows[i].why, "row %u: %s", i, why);
		cr_expect(good || strstr(why, rows[i].why), "row %u: '%s', not '%s'", i, why,
			  rows[i].why);
	}
}

Test(secure_files, hexadecimal_and_base64_of_a_token_are_the_same_key)
{
	static const char hex[] = HEX_32, base64[] = "ah4PO1x9KUiP4LGiw9Tl9gcYKTpLXG1+j5ChssPU5fY=";
	struct secure_tokens a, b;
	char why[160];

	cr_assert(secure_tokens_parse(hex, sizeof(hex) - 1, &a, why, sizeof(why)));
	cr_assert(secure_tokens_parse(base64, sizeof(base64) - 1, &b, why, sizeof(why)));
	cr_assert_arr_eq(&a, &b, sizeof(a));
	cr_assert_eq(strlen(a.token[0].id), SECURE_ID_BYTES);
}

Test(secure_files, a_certificate_allows_its_names_and_the_gpus_of_its_host)
{
	static const struct {
		const char *names, *worker;
		bool allowed;
	} rows[] = {
		{"gpu-host-1", "gpu-host-1", true},
		{"GPU-Host-1", "gpu-host-1", true},
		{"gpu-host-1", "gpu-host-1-gpu0", true},
		{"gpu-host-1", "gpu-host-1-gpu15", true},
		{"gpu-host-1", "gpu-host-1-cpu1", true},
		{"a b c", "c", true},
		{"*.rack1.example", "h7.rack1.example", true},
		{"*.rack1.example", "h7.rack1.example-gpu3", true},
		{"gpu-host-1", "gpu-host-10", false},
		{"gpu-host-1", "gpu-host", false},
		{"gpu-host-1", "gpu-host-1-gpu", false},
		{"gpu-host-1", "gpu-host-1-gpux", false},
		{"gpu-host-1", "gpu-host-1-evil", false},
		{"gpu-host-1", "gpu-host-1.example", false},
		{"gpu-host-1-gpu0", "gpu-host-1", false},
		{"gpu-host-1", "-gpu0", false},
		{"", "", false},
		{"", "gpu1", false},
		{"*", "gpu1", false},
		{"*.example", "example", false},
		{"*.example", ".example", false},
		{"*.example", "a.b.example", false},
		{"*.", "a.", false},
		{"*.*.example", "a.*.example", false},
		{"ip:10.9.0.11 model:echo", "ip:10.9.0.11", false},
		{"ip:10.9.0.11 model:echo gpu1", "gpu1", true},
	};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_eq(secure_names_allow(rows[i].names, rows[i].worker), rows[i].allowed,
			     "'%s' and '%s'", rows[i].names, rows[i].worker);
}

Test(secure_files, a_certificate_may_bind_the_address_and_the_model)
{
	static const struct {
		const char *names, *address, *model;
		bool address_allowed, model_allowed;
	} rows[] = {
		{"w1", "10.9.0.11", "echo", true, true},
		{"w1 ip:10.9.0.11", "10.9.0.11", "echo", true, true},
		{"w1 ip:10.9.0.11", "10.9.0.1", "echo", false, true},
		{"w1 ip:10.9.0.11", "10.9.0.111", "echo", false, true},
		{"w1 ip:10.9.0.11 ip:10.9.0.12", "10.9.0.12", "echo", true, true},
		{"w1 ip:fd00::b", "fd00::b", "echo", true, true},
		{"w1 ip:fd00::b", "10.9.0.11", "echo", false, true},
		{"w1 ip:?", "10.9.0.11", "echo", false, true},
		{"w1 model:mlp", "10.9.0.11", "echo", true, false},
		{"w1 model:mlp model:echo", "10.9.0.11", "echo", true, true},
		{"w1 model:echo2", "10.9.0.11", "echo", true, false},
		{"", "10.9.0.11", "echo", true, true},
	};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cr_expect_eq(secure_names_allow_address(rows[i].names, rows[i].address),
			     rows[i].address_allowed, "'%s' and %s", rows[i].names,
			     rows[i].address);
		cr_expect_eq(secure_names_allow_model(rows[i].names, rows[i].model),
			     rows[i].model_allowed, "'%s' and %s", rows[i].names, rows[i].model);
	}
}
