/* SPDX-License-Identifier: BSD-3-Clause */
/* The agents' port with TLS, over real sockets: who is let in, and what the others cost. */
#include <fcntl.h>

#include <openssl/err.h>

#include "control_fixture.h"
#include "protocol/control.h"
#include "server/handshake_limit.h"
#include "server/handshake.h"
#include "server/rpc.h"
#include "secure/secure.h"
#include "secure_fixture.h"

#define LINK(n)                                                                                    \
	"{\"lcore\":" n ",\"qpn\":17,\"psn\":5,\"rkey\":99,\"descriptors\":4096,\"payloads\":8192,"   \
	"\"cancels\":12288,\"stride\":2048,\"room\":0,\"entry\":64}"
#define REGISTER_CALL(name)                                                                        \
	"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"agent.register\",\"params\":{\"version\":3,"   \
	"\"name\":\"" name "\",\"model\":\"llama\",\"instance\":\"00000000deadbeef\","             \
	"\"slots\":64,\"max_request\":1472,\"max_reply\":1472,\"max_batch\":8,\"weight\":1,"       \
	"\"heartbeat_ms\":50,\"address\":\"10.9.0.2\",\"path_mtu\":4096,"                          \
	"\"links\":[" LINK("0") "," LINK("1") "]}}\n"

static struct fixture f;
static struct secure_fixture files;
static struct secure_party ca, other_ca, lb, agent;

static void start_server(void)
{
	f.server = control_server_create(f.lb, f.base, f.error, sizeof(f.error));
	cr_assert_not_null(f.server, "%s", f.error);
}

static void serve_certificates(const struct secure_party *party)
{
	struct lb_config *config = fake_lb_config(f.lb);

	strcpy(config->agents_certificate, party->certificate_path);
	strcpy(config->agents_key, party->key_path);
	strcpy(config->agents_ca, ca.certificate_path);
}

static void set_up(void)
{
	control_fixture_prepare(&f);
	secure_fixture_start(&files);
	ca = secure_party_create(&files, NULL, "authority", NULL, 30);
	other_ca = secure_party_create(&files, NULL, "another authority", NULL, 30);
	lb = secure_party_create(&files, &ca, "lb", "IP:127.0.0.1", 30);
	agent = secure_party_create(&files, &ca, "gpu1", NULL, 30);
	serve_certificates(&lb);
}

/* Called last in each test, not as .fini: a failure in .fini, such as a leak, does not count. */
static void tear_down(void)
{
	secure_party_free(&ca);
	secure_party_free(&other_ca);
	secure_party_free(&lb);
	secure_party_free(&agent);
	secure_fixture_stop(&files);
	control_fixture_stop(&f);
}

TestSuite(control_tls, .init = set_up);

/* --- a client that turns the server while it waits -------------------------------------------- */

struct tls_client {
	SSL_CTX *context;
	SSL *ssl;
	int fd;
};

/* From 127.0.0.<host>. */
static int dial_from(unsigned int host)
{
	struct sockaddr_in from = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(0x7f000000 + host)};
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				 .sin_port = htons(control_server_agents_port(f.server))};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	cr_assert_eq(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
	cr_assert_eq(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static void turn(void)
{
	for (int i = 0; i < 5; i++)
		event_base_loop(f.base, EVLOOP_NONBLOCK);
}

static struct tls_client client_of(SSL_CTX *context)
{
	struct tls_client c = {.context = context, .fd = dial_from(1)};

	cr_assert_eq(fcntl(c.fd, F_SETFL, O_NONBLOCK), 0);
	c.ssl = secure_dial(context, "127.0.0.1");
	SSL_set_fd(c.ssl, c.fd);
	return c;
}

static SSL_CTX *context_of(const struct secure_party *party, const struct secure_party *trusts)
{
	struct secure_files paths = {.certificate = party->certificate_path,
				     .key = party->key_path,
				     .ca = trusts->certificate_path};
	char error[512] = "";
	SSL_CTX *context = secure_context(SECURE_AGENT, &paths, error, sizeof(error));

	cr_assert_not_null(context, "%s", error);
	return context;
}

static SSL_CTX *context_of_token(const char *token)
{
	struct secure_files paths = {.token = secure_text_file(&files, token)};
	char error[512] = "";
	SSL_CTX *context = secure_context(SECURE_AGENT, &paths, error, sizeof(error));

	cr_assert_not_null(context, "%s", error);
	return context;
}

/* 1 when SSL_do_handshake() or SSL_read() did what it should, 0 when that failed. */
static bool settle(struct tls_client *c, char *byte)
{
	for (int i = 0; i < 20000; i++) {
		struct pollfd p = {.fd = c->fd, .events = POLLIN};
		int rc, error;

		ERR_clear_error();
		rc = byte ? SSL_read(c->ssl, byte, 1) : SSL_do_handshake(c->ssl);
		error = rc > 0 ? SSL_ERROR_NONE : SSL_get_error(c->ssl, rc);
		if (error == SSL_ERROR_NONE)
			return true;
		if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE)
			return false;
		event_base_loop(f.base, EVLOOP_NONBLOCK);
		poll(&p, 1, 1);
	}
	cr_assert_fail("nothing came in 20 s");
	return false;
}

static void say(struct tls_client *c, const char *text)
{
	cr_assert_eq(SSL_write(c->ssl, text, (int)strlen(text)), (int)strlen(text));
}

static void expect_line(struct tls_client *c, const char *part)
{
	char line[2048];
	size_t n = 0;

	while (n < sizeof(line) - 1) {
		cr_assert(settle(c, line + n), "the connection ended after '%.*s'", (int)n, line);
		if (line[n] == '\n')
			break;
		n++;
	}
	line[n] = '\0';
	cr_assert_not_null(strstr(line, part), "got '%.300s', not %s", line, part);
}

/* Expects that the server accepted no one: none of our bytes came, and it holds nothing more. */
static void expect_nothing(struct tls_client *c)
{
	char byte;
	bool in = settle(c, NULL) && settle(c, &byte);

	cr_assert(!in, "the server answered");
}

static void hang_up(struct tls_client *c)
{
	SSL_free(c->ssl);
	SSL_CTX_free(c->context);
	close(c->fd);
	turn();
}

static struct tls_client registered(void)
{
	struct tls_client c = client_of(context_of(&agent, &ca));

	cr_assert(settle(&c, NULL));
	say(&c, REGISTER_CALL("gpu1"));
	expect_line(&c, "\"worker\":0");
	return c;
}

static bool meets(const struct secure_party *trusts)
{
	struct tls_client c = client_of(context_of(&agent, trusts));
	bool met = settle(&c, NULL);

	hang_up(&c);
	return met;
}

/* --- who gets in ------------------------------------------------------------------------------ */

Test(control_tls, an_agent_with_a_certificate_registers_and_is_served)
{
	struct tls_client c;

	start_server();
	c = registered();
	say(&c, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"agent.ready\"}\n");
	expect_line(&c, "waits for a heartbeat");
	expect_line(&c, "\"result\":{}");
	hang_up(&c);
	cr_assert_null(workers_find(lb_pool(f.lb), "gpu1"), "it left with its connection");
	tear_down();
}

Test(control_tls, what_comes_with_the_end_of_the_handshake_is_answered)
{
	struct tls_client c;
	int rc;

	start_server();
	c = client_of(context_of(&agent, &ca));
	do {
		rc = SSL_do_handshake(c.ssl);
		if (rc != 1)
			turn();
	} while (rc != 1);
	/* the server has not had a turn since the client's last flight */
	say(&c, REGISTER_CALL("gpu1"));
	expect_line(&c, "\"worker\":0");
	hang_up(&c);
	tear_down();
}

Test(control_tls, a_certificate_registers_its_own_names_only)
{
	struct tls_client c;
	char byte;

	start_server();
	c = client_of(context_of(&agent, &ca));
	cr_assert(settle(&c, NULL));
	say(&c, REGISTER_CALL("gpu2"));
	expect_line(&c, "name: the agent's certificate is for gpu1, not for 'gpu2'; give --name");
	cr_assert_null(workers_find(lb_pool(f.lb), "gpu2"));
	cr_assert_not(settle(&c, &byte), "the connection goes on");
	hang_up(&c);
	c = client_of(context_of(&agent, &ca));
	cr_assert(settle(&c, NULL));
	say(&c, REGISTER_CALL("gpu1-gpu3"));
	expect_line(&c, "\"worker\":0");
	hang_up(&c);
	tear_down();
}

Test(control_tls, a_name_of_other_characters_is_refused_before_it_is_logged)
{
	struct tls_client c;

	start_server();
	c = client_of(context_of(&agent, &ca));
	cr_assert(settle(&c, NULL));
	say(&c, REGISTER_CALL("gpu1 certificate=gpu2"));
	expect_line(&c, "name has a character that is not allowed; use letters, digits and ._-");
	hang_up(&c);
	tear_down();
}

Test(control_tls, operators_go_on_without_tls_on_their_socket)
{
	int fd;

	start_server();
	fd = fixture_connect_unix(&f);
	fixture_send(fd, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"version\"}");
	fixture_expect(&f, fd, "\"protocol\":");
	close(fd);
	tear_down();
}

Test(control_tls, agents_with_the_token_may_have_any_name)
{
	struct lb_config *config = fake_lb_config(f.lb);
	struct tls_client c;

	config->agents_certificate[0] = config->agents_key[0] = config->agents_ca[0] = '\0';
	strcpy(config->agents_token, secure_text_file(&files, SECURE_TOKEN));
	start_server();
	c = client_of(context_of_token(SECURE_TOKEN));
	cr_assert(settle(&c, NULL));
	say(&c, REGISTER_CALL("whatever"));
	expect_line(&c, "\"worker\":0");
	hang_up(&c);
	c = client_of(context_of_token(SECURE_TOKEN_2));
	expect_nothing(&c);
	hang_up(&c);
	c = client_of(context_of(&agent, &ca));
	expect_nothing(&c);
	hang_up(&c);
	tear_down();
}

/* --- who does not ----------------------------------------------------------------------------- */

Test(control_tls, strangers_hear_nothing)
{
	struct secure_party late = secure_party_create(&files, &ca, "gpu1", NULL, -1);
	struct secure_party odd = secure_party_create(&files, &other_ca, "gpu1", NULL, 30);
	SSL_CTX *contexts[] = {
		context_of(&late, &ca),
		context_of(&odd, &ca),
		context_of(&agent, &ca), /* TLS 1.2, see below */
		context_of_token(SECURE_TOKEN),
	};

	SSL_CTX_set_min_proto_version(contexts[2], TLS1_2_VERSION);
	SSL_CTX_set_max_proto_version(contexts[2], TLS1_2_VERSION);
	start_server();
	for (unsigned int i = 0; i < 4; i++) {
		struct tls_client c = client_of(contexts[i]);

		expect_nothing(&c);
		hang_up(&c);
	}
	secure_party_free(&late);
	secure_party_free(&odd);
	tear_down();
}

Test(control_tls, who_speaks_no_tls_gets_an_alert_of_seven_bytes_at_most)
{
	static const char *const hellos[] = {
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"version\"}\n",
		"GET / HTTP/1.0\r\n\r\n",
		"SSH-2.0-OpenSSH_9.2\r\n",
		"\x16\x03\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff",
	};

	start_server();
	for (unsigned int i = 0; i < 4; i++) {
		int fd = fixture_connect_agent(&f);
		uint8_t answer[64];
		ssize_t n;

		fixture_send(fd, hellos[i]);
		fixture_turn_until(&f, fd);
		n = recv(fd, answer, sizeof(answer), MSG_WAITALL);
		cr_assert_leq(n, 7, "'%s' got %zd bytes", hellos[i], n);
		cr_assert(n <= 0 || answer[0] == 0x15, "not an alert: %02x", answer[0]);
		close(fd);
	}
	tear_down();
}

/* --- what they cost --------------------------------------------------------------------------- */

static bool has_ended(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

#define HANDSHAKE_LIMIT_MS 500

Test(control_tls, ends_a_handshake_that_takes_too_long)
{
	static const char begin[] = "\x16\x03\x01\x00\xc8\x01";
	uint64_t start_ms;
	int silent, slow;

	start_server();
	control_server_limits(f.server, HANDSHAKE_LIMIT_MS, CONTROL_HELLO_S * 1000);
	start_ms = clock_now_ms();
	silent = fixture_connect_agent(&f);
	slow = fixture_connect_agent(&f);
	/* A byte now and then does not help: its record has 200 bytes. */
	for (int i = 0; i < 200 && !has_ended(slow); i++) {
		if (write(slow, i < 6 ? &begin[i] : "", 1) != 1)
			break;
		turn();
		poll(NULL, 0, 20);
	}
	cr_assert(has_ended(slow), "it was still open after %lu ms",
		  (unsigned long)(clock_now_ms() - start_ms));
	cr_assert_geq(clock_now_ms() - start_ms,
		      HANDSHAKE_LIMIT_MS * 9 / 10); /* coarse clocks */
	fixture_expect_end(&f, silent);
	close(silent);
	close(slow);
	tear_down();
}

#define ALL 512

/* Takes all handshakes that one source may have, with clients that send nothing. */
static void fill_handshakes(int *fds)
{
	for (unsigned int i = 0; i < ALL; i++) {
		fds[i] = dial_from(2);
		if (i % 16 == 0)
			turn();
	}
	turn();
	turn();
	for (unsigned int i = 0; i < ALL; i++)
		cr_assert(!has_ended(fds[i]), "%u", i);
}

static void close_all(const int *fds)
{
	for (unsigned int i = 0; i < ALL; i++)
		close(fds[i]);
	turn();
}

Test(control_tls, when_512_are_under_way_the_greediest_source_makes_room)
{
	int fds[ALL], one_more, other;

	start_server();
	fill_handshakes(fds);
	one_more = dial_from(2);
	turn();
	cr_assert(has_ended(one_more));
	cr_assert(!has_ended(fds[0]));
	other = dial_from(9);
	turn();
	cr_assert(!has_ended(other));
	cr_assert(has_ended(fds[0]), "the oldest of the greediest");
	cr_assert(!has_ended(fds[1]));
	close(one_more);
	close(other);
	close_all(fds);
	tear_down();
}

Test(control_tls, agents_work_on_and_new_ones_come_while_strangers_fill_all_places)
{
	struct tls_client c, second;
	int fds[ALL];

	start_server();
	c = registered();
	fill_handshakes(fds);
	second = client_of(context_of(&agent, &ca));
	cr_assert(settle(&second, NULL));
	say(&second, REGISTER_CALL("gpu1-gpu1"));
	expect_line(&second, "\"worker\":1");
	say(&c, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"version\"}\n");
	expect_line(&c, "\"protocol\"");
	close_all(fds);
	hang_up(&second);
	hang_up(&c);
	tear_down();
}

Test(control_tls, who_only_looks_whether_the_port_is_open_is_not_shut_out)
{
	start_server();
	for (unsigned int i = 0; i < 200; i++) {
		close(dial_from(1));
		turn();
	}
	cr_assert(meets(&ca));
	tear_down();
}

/* Makes a handshake that costs the server work and fails. */
static void waste(struct secure_party *stranger)
{
	struct tls_client c = client_of(context_of(stranger, &ca));

	expect_nothing(&c);
	hang_up(&c);
}

Test(control_tls, who_fails_often_is_not_let_in_for_a_while_and_others_are)
{
	struct secure_party odd = secure_party_create(&files, &other_ca, "gpu1", NULL, 30);
	struct timespec start, end;
	unsigned int failed, back;
	bool shut_out = false;
	int fd, other;

	start_server();
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (failed = 0; failed < 1000 && !shut_out; failed++) {
		waste(&odd);
		fd = dial_from(1);
		turn();
		shut_out = has_ended(fd);
		close(fd);
		turn();
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	back = HANDSHAKE_SOURCE_REFILL * (unsigned int)(end.tv_sec - start.tv_sec + 1);
	cr_assert(shut_out);
	cr_assert_geq(failed, HANDSHAKE_SOURCE_FAILURES, "after %u", failed);
	cr_assert_leq(failed, HANDSHAKE_SOURCE_FAILURES + back, "after %u", failed);
	other = dial_from(2);
	turn();
	cr_assert(!has_ended(other));
	close(other);
	turn();
	secure_party_free(&odd);
	tear_down();
}

Test(control_tls, ends_with_handshakes_under_way)
{
	int fd;

	start_server();
	fd = fixture_connect_agent(&f);
	turn();
	control_server_destroy(f.server);
	f.server = NULL;
	turn(); /* what is freed is closed by the loop */
	cr_assert(has_ended(fd));
	close(fd);
	tear_down();
}

/* --- changing certificates -------------------------------------------------------------------- */

Test(control_tls, reads_renewed_certificates_while_agents_stay)
{
	struct secure_party renewed =
		secure_party_create(&files, &other_ca, "lb", "IP:127.0.0.1", 30);
	struct tls_client c;
	char error[256];

	start_server();
	c = registered();
	cr_assert(meets(&ca));
	serve_certificates(&renewed);
	cr_assert(control_server_has_tls(f.server));
	cr_assert_eq(control_server_tls_reload(f.server, error, sizeof(error)), 0, "%s", error);
	cr_assert(!meets(&ca));
	cr_assert(meets(&other_ca));
	say(&c, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"version\"}\n");
	expect_line(&c, "\"protocol\"");
	hang_up(&c);
	secure_party_free(&renewed);
	tear_down();
}

Test(control_tls, keeps_its_certificates_when_new_ones_cannot_be_read)
{
	char error[256] = "";

	start_server();
	strcpy(fake_lb_config(f.lb)->agents_key, agent.key_path);
	cr_assert_lt(control_server_tls_reload(f.server, error, sizeof(error)), 0);
	cr_assert_not_null(strstr(error, "does not belong to the certificate"), "%s", error);
	cr_assert(meets(&ca));
	tear_down();
}

Test(control_tls, does_not_start_without_its_files)
{
	strcpy(fake_lb_config(f.lb)->agents_key, "/nonexistent/lb.key");
	f.server = control_server_create(f.lb, f.base, f.error, sizeof(f.error));
	cr_assert_null(f.server);
	cr_assert_not_null(strstr(f.error, "cannot open the key /nonexistent/lb.key"), "%s",
			   f.error);
	tear_down();
}
