/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes to a control server, over its real sockets. The first says how:
 *   0  as they are, to the agents' port, which wants TLS: a stranger
 *   1  the hello of an agent that has the token, changed by them (exclusive or)
 *   2  as lines of an agent that has the token, through TLS
 *   3  as lines of an operator
 * For every input: a stranger receives TLS records or nothing, and after the connections have
 * closed no worker of theirs remains.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <event2/event.h>
#include <openssl/err.h>
#include <rte_log.h>

#include "../unit/control_fake_lb.h"
#include "secure/secure.h"
#include "server.h"

#define TOKEN "6a1e0f3b5c7d29488fe0b1a2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f6"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct lb *lb;
static struct event_base *base;
static struct control_server *server;
static SSL_CTX *context;

static void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

static void write_token(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0600);

	require(fd >= 0 && write(fd, TOKEN, sizeof(TOKEN) - 1) == sizeof(TOKEN) - 1, "no token");
	close(fd);
}

static char folder[] = "/tmp/doorbell-fuzz-XXXXXX";

static void leave(void)
{
	unlink(fake_lb_config(lb)->control_socket);
	rmdir(folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct lb_config *config;
	char error[512] = "";

	rte_log_set_global_level(RTE_LOG_ERR);
	fake_eal();
	lb = fake_lb_create();
	base = event_base_new();
	require(mkdtemp(folder) != NULL, "no folder");
	config = fake_lb_config(lb);
	snprintf(config->control_socket, sizeof(config->control_socket), "%s/socket", folder);
	snprintf(config->agents_token, sizeof(config->agents_token), "%s/token", folder);
	write_token(config->agents_token);
	server = control_server_create(lb, base, error, sizeof(error));
	require(server != NULL, error);
	context =
		secure_context(SECURE_AGENT, &(struct secure_files){.token = config->agents_token},
			       error, sizeof(error));
	require(context != NULL, error);
	unlink(config->agents_token);
	atexit(leave);
	return 0;
}

static void turn(void)
{
	for (int i = 0; i < 4; i++)
		event_base_loop(base, EVLOOP_NONBLOCK);
}

/* Strangers that share an address would be shut out: each comes from an address of its own. */
static int dial_agents_port(void)
{
	static uint32_t host;
	struct sockaddr_in from = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(0x7f000001 + host++ % 0xfffff0)};
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				 .sin_port = htons(control_server_agents_port(server))};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	require(bind(fd, (struct sockaddr *)&from, sizeof(from)) == 0 &&
			connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0,
		"no connection to the agents' port");
	turn();
	return fd;
}

static int dial_operators_socket(void)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(to.sun_path, sizeof(to.sun_path), "%s", fake_lb_config(lb)->control_socket);
	require(connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0, "no operators' socket");
	turn();
	return fd;
}

static void push(int fd, const void *data, size_t size)
{
	send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
	turn();
}

/* TLS records are alerts (21), handshake (22) or the dummy change of ciphers (20). */
static void expect_tls(int fd)
{
	uint8_t answer[4096];
	ssize_t n = recv(fd, answer, sizeof(answer), MSG_DONTWAIT);

	require(n <= 0 || (answer[0] >= 20 && answer[0] <= 22), "a stranger heard more than TLS");
}

static void stranger(const uint8_t *data, size_t size)
{
	int fd = dial_agents_port();

	push(fd, data, size / 2);
	push(fd, data + size / 2, size - size / 2);
	expect_tls(fd);
	close(fd);
}

static void changed_hello(const uint8_t *data, size_t size)
{
	SSL *ssl = secure_dial(context, "127.0.0.1");
	int fd = dial_agents_port();
	uint8_t hello[1024];
	BIO *out = BIO_new(BIO_s_mem());
	int n;

	SSL_set_bio(ssl, BIO_new(BIO_s_mem()), out);
	SSL_do_handshake(ssl);
	n = BIO_read(out, hello, sizeof(hello));
	for (size_t i = 0; i < size; i++)
		hello[i % (size_t)n] ^= data[i];
	push(fd, hello, (size_t)n);
	expect_tls(fd);
	SSL_free(ssl);
	ERR_clear_error();
	close(fd);
}

static void agent(const uint8_t *data, size_t size)
{
	SSL *ssl = secure_dial(context, "127.0.0.1");
	int fd = dial_agents_port();
	char answer[4096];

	fcntl(fd, F_SETFL, O_NONBLOCK);
	SSL_set_fd(ssl, fd);
	for (int i = 0; i < 100 && SSL_do_handshake(ssl) != 1; i++)
		turn();
	require(SSL_is_init_finished(ssl), "who has the token does not get in");
	if (size > 0)
		SSL_write(ssl, data, (int)size);
	SSL_write(ssl, "\n", 1);
	for (int i = 0; i < 20; i++) {
		turn();
		while (SSL_read(ssl, answer, sizeof(answer)) > 0)
			;
	}
	SSL_free(ssl);
	ERR_clear_error();
	close(fd);
}

static void operators_lines(const uint8_t *data, size_t size)
{
	int fd = dial_operators_socket();

	push(fd, data, size);
	push(fd, "\n", 1);
	turn();
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const ways[])(const uint8_t *, size_t) = {stranger, changed_hello, agent,
								operators_lines};

	if (size == 0)
		return 0;
	ways[data[0] % 4](data + 1, size - 1);
	turn();
	for (unsigned int i = 0; i < WORKERS_MAX; i++)
		require(!workers_get(lb_pool(lb), i), "a worker outlived its connection");
	return 0;
}
