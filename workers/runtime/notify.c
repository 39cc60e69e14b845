/* SPDX-License-Identifier: BSD-3-Clause */
#include "runtime/notify.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "runtime/clock.h"

#define MESSAGE_MAX 1024

static uint64_t notify_watchdog_us(void)
{
	const char *text = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");

	if (text == NULL || (pid != NULL && strtol(pid, NULL, 10) != getpid()))
		return 0;
	return strtoull(text, NULL, 10);
}

/* Connect to a path, or to an abstract name that starts with '@'. */
static int notify_connect(int fd, const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t n = strlen(name);

	if (n < 2 || (name[0] != '/' && name[0] != '@'))
		return -EINVAL;
	if (n >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, name, n);
	if (name[0] == '@')
		address.sun_path[0] = '\0';
	if (connect(fd, (struct sockaddr *)&address,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)) != 0)
		return -errno;
	return 0;
}

int notify_open(struct notify *notify)
{
	const char *name = getenv("NOTIFY_SOCKET");
	int ret = 0;

	*notify = (struct notify){.fd = -1};
	if (name != NULL) {
		notify->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		ret = notify->fd < 0 ? -errno : notify_connect(notify->fd, name);
		if (ret < 0)
			notify_close(notify);
		else
			notify->watchdog_us = notify_watchdog_us();
	}
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	return ret;
}

void notify_close(struct notify *notify)
{
	if (notify->fd >= 0)
		close(notify->fd);
	*notify = (struct notify){.fd = -1};
}

int notify_send(const struct notify *notify, const char *format, ...)
{
	char message[MESSAGE_MAX];
	va_list list;
	size_t n;

	if (notify->fd < 0)
		return 0;
	va_start(list, format);
	vsnprintf(message, sizeof(message), format, list);
	va_end(list);
	n = strlen(message);
	return send(notify->fd, message, n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)n ? 0 : -errno;
}

int notify_reloading(const struct notify *notify)
{
	return notify_send(notify, "RELOADING=1\nMONOTONIC_USEC=%llu",
			   (unsigned long long)clock_now_us());
}
