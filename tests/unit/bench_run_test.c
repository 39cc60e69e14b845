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
enum answers { OTHER_BYTES, ECHO, TWICE, NONE };

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
