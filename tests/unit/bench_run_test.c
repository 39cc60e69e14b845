/* SPDX-License-Identifier: BSD-3-Clause */
/* doorbell bench as its users run it, against services whose answers each test sets. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Which replies a service sends to a request. */
enum answers { OTHER_BYTES, ECHO, TWICE, NONE, REFUSALS, CLOSES };

static char output[65536];
static unsigned int port;

/* A service in a process of its own, on a port that the kernel chose. */
static void start_service(enum answers answers)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	char datagram[2048];

	cr_assert_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&address, &length), 0);
	port = ntohs(address.sin_port);
	if (fork() != 0) {
		close(fd);
		return;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		struct sockaddr_in from;
		socklen_t n = sizeof(from);
		ssize_t got =
			recvfrom(fd, datagram, sizeof(datagram), 0, (struct sockaddr *)&from, &n);

		if (got < 0 || answers == NONE)
			continue;
		if (answers != ECHO) {
			memset(datagram, 'x', 4);
			got = 4; /* a short reply, such as a class */
		}
		for (int i = 0; i < (answers == TWICE ? 2 : 1); i++)
			sendto(fd, datagram, (size_t)got, 0, (struct sockaddr *)&from, n);
	}
}

/* --- a service by TCP ---------------------------------------------------------------------------
 */

static bool stream_read(int fd, uint8_t *at, size_t n)
{
	for (ssize_t got; n > 0; at += got, n -= (size_t)got)
		if ((got = recv(fd, at, n, 0)) <= 0)
			return false;
	return true;
}

/* An answer's head: framing tagged, that of the request <head>; else length. */
static void stream_head(int fd, bool tagged, const uint8_t *head, uint32_t length, bool more)
{
	uint8_t out[24] = {0};

	if (tagged) {
		memcpy(out, head, sizeof(out));
		out[5] = 3; /* a reply */
		out[6] = more;
		length = htonl(length);
		memcpy(out + 20, &length, sizeof(length));
		send(fd, out, sizeof(out), MSG_NOSIGNAL);
		return;
	}
	memcpy(out, &length, sizeof(length));
	out[5] = more; /* 256 */
	send(fd, out, 8, MSG_NOSIGNAL);
}

/* Answers in two chunks, so that heads and bytes are cut where it suits nobody. */
static void stream_answer(int fd, bool tagged, const uint8_t *head, const uint8_t *bytes,
			  uint32_t length)
{
	uint32_t part = length / 3;

	stream_head(fd, tagged, head, part, true);
	send(fd, bytes, part, MSG_NOSIGNAL);
	stream_head(fd, tagged, head, length - part, false);
	send(fd, bytes + part, length - part, MSG_NOSIGNAL);
}

static void stream_notice(int fd, bool tagged, const uint8_t *head, uint8_t code)
{
	uint8_t out[24] = {0};

	if (tagged)
		memcpy(out, head, sizeof(out));
	else
		out[4] = code;
	if (tagged) {
		out[5] = 4;
		out[6] = code;
		memset(out + 20, 0, 4);
	}
	send(fd, out, tagged ? 24 : 8, MSG_NOSIGNAL);
}

static void stream_serve(int fd, bool tagged, enum answers answers)
{
	static uint8_t bytes[4 << 20];
	uint8_t head[24];
	uint32_t length;

	while (stream_read(fd, head, tagged ? 24 : 4)) {
		memcpy(&length, head + (tagged ? 20 : 0), sizeof(length));
		length = tagged ? ntohl(length) : length;
		if (length > sizeof(bytes) || !stream_read(fd, bytes, length))
			break;
		if (answers == ECHO)
			stream_answer(fd, tagged, head, bytes, length);
		else if (answers == OTHER_BYTES)
			stream_answer(fd, tagged, head, (const uint8_t *)"xxxx", 4);
		else if (answers == REFUSALS)
			stream_notice(fd, tagged, head, 1);
		else if (answers == CLOSES)
			break;
	}
	_exit(0);
}

static void start_stream(enum answers answers, bool tagged)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	cr_assert_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&address, &length), 0);
	cr_assert_eq(listen(fd, 64), 0);
	port = ntohs(address.sin_port);
	if (fork() != 0) {
		close(fd);
		return;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		int one = accept(fd, NULL, NULL);

		if (one >= 0 && fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			stream_serve(one, tagged, answers);
		}
		close(one);
	}
}

/* Runs the bench and returns its exit status; <output> has what it printed, stderr included. */
static int bench(const char *options)
{
	char command[512];
	FILE *pipe;

	snprintf(command, sizeof(command),
		 "env DOORBELL_SOCKET=/nonexistent " DOORBELL_CLI " bench --quiet %s 2>&1",
		 options);
	pipe = popen(command, "r");
	cr_assert_not_null(pipe);
	output[fread(output, 1, sizeof(output) - 1, pipe)] = '\0';
	return WEXITSTATUS(pclose(pipe));
}

static int bench_service(enum answers answers, const char *options)
{
	char all[256];

	start_service(answers);
	snprintf(all, sizeof(all), "--to 127.0.0.1:%u --requests 40 %s", port, options);
	return bench(all);
}

static json_int_t number(const char *key)
{
	json_t *object = json_loads(output, 0, NULL);
	json_int_t value;

	cr_assert_not_null(object, "%s", output);
	value = json_integer_value(json_object_get(object, key));
	json_decref(object);
	return value;
}

Test(bench_run, a_model_may_answer_what_it_likes)
{
	cr_assert_eq(bench_service(OTHER_BYTES, "--window 4 --flows 2 --json"), 0, "%s", output);
	cr_assert_eq(number("answered"), 40);
	cr_assert_eq(number("lost"), 0);
	cr_assert_eq(number("duplicates"), 0);
	cr_assert_not_null(strstr(output, "\"verify\": \"none\""));
}

Test(bench_run, replies_are_compared_when_asked)
{
	cr_assert_eq(bench_service(OTHER_BYTES, "--window 1 --flows 1 --verify id --timeout-ms 20 "
						"--requests 3 --json"),
		     1);
	cr_assert_eq(number("wrong"), 3, "%s", output);
	cr_assert_eq(bench_service(ECHO, "--window 4 --verify echo --json"), 0, "%s", output);
	cr_assert_eq(number("answered"), 40);
}

Test(bench_run, a_second_reply_is_a_duplicate_also_where_any_bytes_will_do)
{
	cr_assert_eq(bench_service(TWICE, "--window 1 --flows 40 --json"), 1);
	cr_assert_eq(number("answered"), 40, "%s", output);
	cr_assert_gt(number("duplicates"), 0);
}

Test(bench_run, without_an_answer_there_is_no_latency)
{
	cr_assert_eq(bench_service(NONE, "--window 40 --flows 1 --timeout-ms 20"), 1);
	cr_assert_not_null(strstr(output, "latency     -  no request was answered\n"), "%s",
			   output);
	cr_assert_null(strstr(output, "p50"), "%s", output);
	cr_assert_eq(bench_service(NONE, "--window 40 --flows 1 --timeout-ms 20 --json"), 1);
	cr_assert_not_null(strstr(output, "\"p50_us\": null"), "%s", output);
	cr_assert_eq(number("lost"), 40);
}

/* 192.0.2.0/24 is for documentation; a test that failed would send one datagram there. */
static int bench_stream(enum answers answers, bool tagged, const char *options)
{
	char all[256];

	start_stream(answers, tagged);
	snprintf(all, sizeof(all), "--to 127.0.0.1:%u --tcp --framing %s %s", port,
		 tagged ? "tagged" : "length", options);
	return bench(all);
}

Test(bench_run, by_tcp_every_byte_of_requests_of_all_sizes_comes_back)
{
	for (int tagged = 0; tagged < 2; tagged++) {
		cr_assert_eq(bench_stream(ECHO, tagged,
					  "--requests 400 --window 8 --flows 4 --verify echo "
					  "--mix 8,100,20000,300000,2000000:0.05 --json"),
			     0, "%s", output);
		cr_assert_eq(number("answered"), 400);
		cr_assert_eq(number("unreachable"), 0);
	}
}

Test(bench_run, by_tcp_replies_of_any_bytes_answer_their_requests)
{
	for (int tagged = 0; tagged < 2; tagged++) {
		cr_assert_eq(bench_stream(OTHER_BYTES, tagged,
					  "--requests 200 --window 8 --flows 2 --json"),
			     0, "%s", output);
		cr_assert_eq(number("answered"), 200);
		cr_assert_eq(bench_stream(OTHER_BYTES, tagged,
					  "--requests 40 --window 8 --verify id --json"),
			     1);
		cr_assert_eq(number("wrong"), 40);
	}
}

Test(bench_run, by_tcp_notices_have_their_codes)
{
	for (int tagged = 0; tagged < 2; tagged++) {
		cr_assert_eq(bench_stream(REFUSALS, tagged, "--requests 40 --window 4 --json"), 0);
		cr_assert_eq(number("refused"), 40);
	}
}

Test(bench_run, by_tcp_a_connection_that_ends_loses_its_requests_and_is_opened_again)
{
	cr_assert_eq(bench_stream(CLOSES, false,
				  "--requests 8 --window 1 --flows 2 --timeout-ms 200 --json"),
		     1);
	cr_assert_eq(number("lost"), 8);
	cr_assert_geq(number("unreachable"), 8);
}

Test(bench_run, by_tcp_somebody_must_listen)
{
	cr_assert_eq(bench("--to 127.0.0.1:1 --tcp --window 1"), 2);
	cr_assert_not_null(strstr(output, "no connection to 127.0.0.1:1: Connection refused"), "%s",
			   output);
	cr_assert_eq(bench("--to 127.0.0.1:1 --framing tagged --window 1"), 2);
	cr_assert_eq(bench("--to 127.0.0.1:1 --mix 65508 --window 1"), 2);
	cr_assert_not_null(strstr(output, "--tcp"), "%s", output);
}

Test(bench_run, another_machine_must_be_asked_for)
{
	cr_assert_eq(bench("--to 192.0.2.9:9 --rate 1 --requests 1"), 2);
	cr_assert_not_null(strstr(output, "--to 192.0.2.9:9 is neither this machine's nor a "
					  "service of a load balancer here (none answers); add "
					  "--remote"),
			   "%s", output);
	cr_assert_eq(bench("--to [2001:db8::9]:9 --rate 1 --requests 1"), 2);
	cr_assert_eq(bench("--to 192.0.2.9:9 --rate 1 --requests 1 --remote --timeout-ms 1"), 1,
		     "%s", output);
	cr_assert_not_null(strstr(output, "requests    1 "), "%s", output);
}

Test(bench_run, help_says_what_is_verified)
{
	cr_assert_eq(bench("--help"), 0);
	cr_assert_not_null(strstr(output, "none (any will do), id"), "%s", output);
}
