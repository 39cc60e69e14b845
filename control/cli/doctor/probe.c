/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <ifaddrs.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/doctor/probe.h"
#include "runtime/clock.h"

#define WAIT_MS   1000
#define BYTES_MAX 9216
#define ANY_PORT  4791 /* any port: only the route is asked for */
#define FILLING   0x5a

/* Type, code, checksum, identifier, number (RFC 792, RFC 4443), and a cookie of ours. */
struct echo {
	uint8_t type, code;
	uint16_t sum, id, number;
	uint64_t cookie;
};

static socklen_t socket_address(const struct lb_address *to, uint16_t port,
				struct sockaddr_storage *out)
{
	struct sockaddr_in *four = (void *)out;
	struct sockaddr_in6 *six = (void *)out;

	memset(out, 0, sizeof(*out));
	if (to->family == 4) {
		four->sin_family = AF_INET;
		four->sin_port = htons(port);
		memcpy(&four->sin_addr, to->addr.s6_addr + 12, 4);
		return sizeof(*four);
	}
	six->sin6_family = AF_INET6;
	six->sin6_port = htons(port);
	six->sin6_addr = to->addr;
	return sizeof(*six);
}

static bool same_host(const struct sockaddr *a, const struct sockaddr *b)
{
	if (a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET)
		return ((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)(const void *)b)->sin_addr.s_addr;
	return a->sa_family == AF_INET6 &&
	       memcmp(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr,
		      &((const struct sockaddr_in6 *)(const void *)b)->sin6_addr,
		      sizeof(struct in6_addr)) == 0;
}

void probe_add(struct probe *probe, unsigned int bytes, unsigned int tag)
{
	if (probe->n < PROBE_SIZES_MAX && bytes <= BYTES_MAX)
		probe->size[probe->n++] = (struct probe_size){.bytes = bytes, .tag = tag};
}

void probe_route(const struct lb_address *to, char interface[IF_NAMESIZE])
{
	struct sockaddr_storage there, here;
	socklen_t length = socket_address(to, ANY_PORT, &there), size = sizeof(here);
	struct ifaddrs *list = NULL;
	int fd = socket(there.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	interface[0] = '\0';
	if (fd < 0)
		return;
	/* sends nothing: it only makes the kernel choose a source address */
	if (connect(fd, (struct sockaddr *)&there, length) == 0 &&
	    getsockname(fd, (struct sockaddr *)&here, &size) == 0 && getifaddrs(&list) == 0)
		for (struct ifaddrs *i = list; i != NULL; i = i->ifa_next)
			if (i->ifa_addr != NULL && same_host(i->ifa_addr, (struct sockaddr *)&here))
				snprintf(interface, IF_NAMESIZE, "%s", i->ifa_name);
	if (list != NULL)
		freeifaddrs(list);
	close(fd);
}

/* Open a ping socket where the kernel allows one without privileges, else a raw socket. */
static int open_icmp(const struct lb_address *to)
{
	bool four = to->family == 4;
	int family = four ? AF_INET : AF_INET6, protocol = four ? IPPROTO_ICMP : IPPROTO_ICMPV6;
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, protocol), mode;

	if (fd < 0)
		fd = socket(family, SOCK_RAW | SOCK_CLOEXEC, protocol);
	if (fd < 0)
		return -errno;
	/* never fragment, and ignore the path MTU that the kernel learnt before */
	mode = four ? IP_PMTUDISC_PROBE : IPV6_PMTUDISC_PROBE;
	if (setsockopt(fd, four ? IPPROTO_IP : IPPROTO_IPV6,
		       four ? IP_MTU_DISCOVER : IPV6_MTU_DISCOVER, &mode, sizeof(mode)) != 0) {
		mode = -errno;
		close(fd);
		return mode;
	}
	return fd;
}

/* Checksum of RFC 1071; for ICMPv6 the kernel computes it. */
static uint16_t sum_of(const uint8_t *bytes, size_t n)
{
	uint32_t sum = 0;

	for (size_t i = 0; i + 1 < n; i += 2)
		sum += (uint32_t)bytes[i] << 8 | bytes[i + 1];
	if (n % 2)
		sum += (uint32_t)bytes[n - 1] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

static int send_all(struct probe *probe, int fd, const struct lb_address *to, uint64_t cookie)
{
	struct sockaddr_storage there;
	socklen_t length = socket_address(to, 0, &there);
	unsigned int header = to->family == 4 ? 20 : 40;
	int sent = 0, err = 0;

	for (unsigned int i = 0; i < probe->n; i++) {
		uint8_t bytes[BYTES_MAX];
		size_t n = probe->size[i].bytes - header;
		struct echo echo = {.type = to->family == 4 ? 8 : 128,
				    .id = (uint16_t)getpid(),
				    .number = htons((uint16_t)i),
				    .cookie = cookie};

		memset(bytes, FILLING, n);
		memcpy(bytes, &echo, sizeof(echo));
		echo.sum = to->family == 4 ? sum_of(bytes, n) : 0;
		memcpy(bytes, &echo, sizeof(echo));
		if (sendto(fd, bytes, n, 0, (struct sockaddr *)&there, length) >= 0)
			sent++;
		else if (errno == EMSGSIZE)
			probe->size[i].too_long = true;
		else
			err = errno;
	}
	return sent > 0 ? sent : -err;
}

/* Take one packet; true when it is an answer that was missing. */
static bool probe_receive(struct probe *probe, int fd, const struct lb_address *to, uint64_t cookie)
{
	uint8_t bytes[BYTES_MAX];
	ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	struct echo echo;
	size_t at = 0;

	/* a raw IPv4 socket also gives the IP header */
	if (n > 0 && to->family == 4 && bytes[0] >> 4 == 4)
		at = (size_t)(bytes[0] & 15) * 4;
	if (n < 0 || (size_t)n < at + sizeof(echo))
		return false;
	memcpy(&echo, bytes + at, sizeof(echo));
	if (echo.type != (to->family == 4 ? 0 : 129) || echo.cookie != cookie ||
	    ntohs(echo.number) >= probe->n || probe->size[ntohs(echo.number)].answered)
		return false;
	probe->size[ntohs(echo.number)].answered = true;
	return true;
}

int probe_run(struct probe *probe, const struct lb_address *to)
{
	uint64_t end = clock_now_ms() + WAIT_MS;
	uint64_t cookie = 0;
	int fd = open_icmp(to), missing;

	if (fd < 0)
		return fd;
	if (getrandom(&cookie, sizeof(cookie), 0) != sizeof(cookie))
		cookie = (uint64_t)end;
	missing = send_all(probe, fd, to, cookie);
	while (missing > 0) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		long left = (long)(end - clock_now_ms());

		if (left <= 0 || poll(&p, 1, (int)left) != 1)
			break;
		missing -= probe_receive(probe, fd, to, cookie);
	}
	close(fd);
	return missing < 0 ? missing : 0;
}
