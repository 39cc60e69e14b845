/* SPDX-License-Identifier: BSD-3-Clause */
#include "runtime/memif.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define PREFIX   "net_memif"
#define HELLO_MS 500

/* Copy the value of <key> in the devargs of <device>; "" when it has none. */
static void memif_value(const char *device, const char *key, char *value, size_t size)
{
	size_t n = strlen(key);
	const char *at = device;

	value[0] = '\0';
	while ((at = strchr(at, ',')) != NULL) {
		at++;
		if (strncmp(at, key, n) != 0 || at[n] != '=')
			continue;
		snprintf(value, size, "%.*s", (int)strcspn(at + n + 1, ","), at + n + 1);
		return;
	}
}

/* As the driver reads it: it looks for the words, and connects without one. */
static bool memif_listens(const char *device)
{
	char role[32];

	memif_value(device, "role", role, sizeof(role));
	return strncmp(device, PREFIX, strlen(PREFIX)) == 0 &&
	       (strstr(role, "server") != NULL || strstr(role, "master") != NULL);
}

bool memif_connects(const char *device)
{
	return strncmp(device, PREFIX, strlen(PREFIX)) == 0 && !memif_listens(device);
}

/* False when somebody does, and when that cannot be found out. One that listens says hello first:
 * without anybody to say it to, DPDK's driver would end its process. */
static bool nobody_listens(const struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct pollfd hello = {.fd = fd, .events = POLLIN};
	bool nobody = false;

	if (fd < 0)
		return false;
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0)
		poll(&hello, 1, HELLO_MS);
	else
		nobody = errno == ECONNREFUSED;
	close(fd);
	return nobody;
}

void memif_remove_left(const char *device)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char abstract[16];
	struct stat st;

	memif_value(device, "socket", address.sun_path, sizeof(address.sun_path));
	memif_value(device, "socket-abstract", abstract, sizeof(abstract));
	/* An abstract name ends with its process. */
	if (memif_listens(device) && strstr(abstract, "no") != NULL &&
	    stat(address.sun_path, &st) == 0 && S_ISSOCK(st.st_mode) && nobody_listens(&address))
		unlink(address.sun_path);
}

bool memif_is_socket(int fd)
{
	int domain, type;
	socklen_t domain_size = sizeof(domain), type_size = sizeof(type);

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &domain_size) == 0 &&
	       domain == AF_UNIX && getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_size) == 0 &&
	       type == SOCK_SEQPACKET;
}

/* Call <what> with each of them; false when that is not possible. */
static bool each_memif_socket(void (*what)(int fd, void *argument), void *argument)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;

	if (dir == NULL)
		return false;
	while ((entry = readdir(dir)) != NULL) {
		int fd = atoi(entry->d_name);

		if (entry->d_name[0] != '.' && memif_is_socket(fd))
			what(fd, argument);
	}
	closedir(dir);
	return true;
}

/* One that is there already is refused, and one that was closed is gone by itself. */
static void watch_socket(int fd, void *argument)
{
	const int *epoll = argument;
	struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP};

	epoll_ctl(*epoll, EPOLL_CTL_ADD, fd, &event);
}

bool memif_watch(int *epoll)
{
	if (*epoll == 0)
		*epoll = epoll_create1(EPOLL_CLOEXEC);
	return each_memif_socket(watch_socket, epoll) && *epoll > 0;
}

void memif_socket(const char *device, char socket[MEMIF_SOCKET_MAX])
{
	memif_value(device, "socket", socket, MEMIF_SOCKET_MAX);
}

struct connection_search {
	const char *socket;
	bool found;
};

/* Those that our listeners accepted have a peer without a name. */
static void compare_peer(int fd, void *argument)
{
	struct connection_search *search = argument;
	struct sockaddr_un peer = {0};
	socklen_t size = sizeof(peer);
	const char *path = peer.sun_path;

	if (getpeername(fd, (struct sockaddr *)&peer, &size) != 0 ||
	    size <= offsetof(struct sockaddr_un, sun_path))
		return;
	/* An abstract name begins with a zero and ends with its process. */
	search->found |= path[0] != '\0'
				 ? strcmp(path, search->socket) == 0
				 : strncmp(path + 1, search->socket, strlen(search->socket)) == 0;
}

bool memif_has_connection(const char *socket)
{
	struct connection_search search = {.socket = socket};

	each_memif_socket(compare_peer, &search);
	return search.found;
}

bool memif_has_news(int epoll)
{
	struct epoll_event event;

	return epoll_wait(epoll, &event, 1, 0) > 0;
}
