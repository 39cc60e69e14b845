/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of a daemon to the notify socket of its service manager. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "runtime/notify.h"

static int listener;
static char said[4096];

static void listen_at(const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	memcpy(address.sun_path, name, strlen(name));
	if (name[0] == '@')
		address.sun_path[0] = '\0';
	listener = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	cr_assert_eq(bind(listener, (struct sockaddr *)&address,
			  offsetof(struct sockaddr_un, sun_path) + strlen(name)),
		     0, "%s", strerror(errno));
	setenv("NOTIFY_SOCKET", name, 1);
}

static const char *heard(void)
{
	ssize_t n = recv(listener, said, sizeof(said) - 1, 0);

	said[n > 0 ? n : 0] = '\0';
	return said;
}

Test(daemon_notify, without_a_socket_nothing_happens)
{
	struct notify n;

	unsetenv("NOTIFY_SOCKET");
	cr_expect_eq(notify_open(&n), 0);
	cr_expect_eq(notify_send(&n, "READY=1"), 0);
	notify_close(&n);
}

Test(daemon_notify, speaks_to_a_path)
{
	char name[64];
	struct notify n;

	snprintf(name, sizeof(name), "/tmp/doorbell-notify-%d", getpid());
	listen_at(name);
	cr_assert_eq(notify_open(&n), 0);
	cr_expect_eq(notify_send(&n, "READY=1\nSTATUS=%d services", 3), 0);
	cr_expect_str_eq(heard(), "READY=1\nSTATUS=3 services");
	notify_close(&n);
	unlink(name);
}

Test(daemon_notify, speaks_to_an_abstract_name_and_says_when_it_reloads)
{
	unsigned long long us;
	char name[64];
	struct notify n;

	snprintf(name, sizeof(name), "@doorbell-notify-%d", getpid());
	listen_at(name);
	cr_assert_eq(notify_open(&n), 0);
	cr_expect_eq(notify_reloading(&n), 0);
	cr_expect_eq(sscanf(heard(), "RELOADING=1\nMONOTONIC_USEC=%llu", &us), 1, "%s", said);
	cr_expect_gt(us, 0);
	notify_close(&n);
	cr_expect_eq(notify_send(&n, "READY=1"), 0);
	cr_expect_str_eq(heard(), "");
}

Test(daemon_notify, children_do_not_speak_for_us)
{
	char name[64];
	struct notify n;

	snprintf(name, sizeof(name), "@doorbell-notify-%d", getpid());
	listen_at(name);
	setenv("WATCHDOG_USEC", "500000", 1);
	notify_open(&n);
	cr_expect_eq(n.watchdog_us, 500000);
	cr_expect_null(getenv("NOTIFY_SOCKET"));
	cr_expect_null(getenv("WATCHDOG_USEC"));
	notify_close(&n);
}

Test(daemon_notify, a_watchdog_of_another_process_is_not_ours)
{
	char name[64];
	struct notify n;

	snprintf(name, sizeof(name), "@doorbell-notify-%d", getpid());
	listen_at(name);
	setenv("WATCHDOG_USEC", "500000", 1);
	setenv("WATCHDOG_PID", "1", 1);
	notify_open(&n);
	cr_expect_eq(n.watchdog_us, 0);
	notify_close(&n);
}

Test(daemon_notify, names_that_are_no_sockets_are_refused)
{
	static const char *const names[] = {
		"", "/", "@", "relative", "vsock:2:1234", "/nonexistent/socket"};
	char longest[200];
	struct notify n;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		setenv("NOTIFY_SOCKET", names[i], 1);
		cr_expect_lt(notify_open(&n), 0, "'%s'", names[i]);
		cr_expect_eq(notify_send(&n, "READY=1"), 0);
	}
	memset(longest, 'x', sizeof(longest) - 1);
	longest[0] = '/';
	longest[sizeof(longest) - 1] = '\0';
	setenv("NOTIFY_SOCKET", longest, 1);
	cr_expect_eq(notify_open(&n), -ENAMETOOLONG);
}

Test(daemon_notify, a_message_that_is_too_long_is_cut_not_lost)
{
	char name[64], text[3000];
	struct notify n;

	snprintf(name, sizeof(name), "@doorbell-notify-%d", getpid());
	listen_at(name);
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	notify_open(&n);
	cr_expect_eq(notify_send(&n, "STATUS=%s", text), 0);
	cr_expect_eq(strlen(heard()), 1023);
	notify_close(&n);
}
