/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/bench/local_address.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NAMESPACES "/run/netns"

static bool local_address_is_same(const struct endpoint_address *a, const struct sockaddr *b)
{
	const struct sockaddr_in6 *a6 = (const struct sockaddr_in6 *)&a->socket;
	const struct sockaddr_in *a4 = (const struct sockaddr_in *)&a->socket;

	if (b == NULL || b->sa_family != a->socket.ss_family)
		return false;
	if (b->sa_family == AF_INET)
		return ((const struct sockaddr_in *)(const void *)b)->sin_addr.s_addr ==
		       a4->sin_addr.s_addr;
	return memcmp(&((const struct sockaddr_in6 *)(const void *)b)->sin6_addr, &a6->sin6_addr,
		      sizeof(a6->sin6_addr)) == 0;
}

/* All of 127.0.0.0/8 is this host, not only the address that an interface has. */
static bool is_loopback(const struct endpoint_address *a)
{
	const struct sockaddr_in *a4 = (const struct sockaddr_in *)&a->socket;

	return a->socket.ss_family == AF_INET && ntohl(a4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

static bool is_of_interfaces(const struct endpoint_address *address)
{
	struct ifaddrs *list;
	bool found = false;

	if (getifaddrs(&list) != 0)
		return false;
	for (const struct ifaddrs *i = list; i != NULL && !found; i = i->ifa_next)
		found = local_address_is_same(address, i->ifa_addr);
	freeifaddrs(list);
	return found;
}

struct visit {
	const struct endpoint_address *address;
	bool found;
};

/*
 * Runs on a thread of its own, as entering a namespace cannot be undone. Without the right to
 * enter, there is nothing to find.
 */
static void *visit_namespaces(void *context)
{
	struct visit *visit = context;
	DIR *folder = opendir(NAMESPACES);
	const struct dirent *entry;

	while (folder != NULL && !visit->found && (entry = readdir(folder)) != NULL) {
		int fd = openat(dirfd(folder), entry->d_name, O_RDONLY | O_CLOEXEC);

		if (fd >= 0 && setns(fd, CLONE_NEWNET) == 0)
			visit->found = is_of_interfaces(visit->address);
		if (fd >= 0)
			close(fd);
	}
	if (folder != NULL)
		closedir(folder);
	return NULL;
}

bool local_address_is(const struct endpoint_address *address)
{
	struct visit visit = {.address = address};
	pthread_t thread;

	if (is_loopback(address) || is_of_interfaces(address))
		return true;
	if (pthread_create(&thread, NULL, visit_namespaces, &visit) != 0)
		return false;
	pthread_join(thread, NULL);
	return visit.found;
}
