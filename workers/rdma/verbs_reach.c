/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/neighbour.h>
#include <linux/rtnetlink.h>

#include "rdma/verbs_reach.h"

/* Checks of the neighbour table and ms between them; an answer takes less than 1 ms in a data
 * centre. */
#define TRIES   8
#define WAIT_MS 3
/* UDP port of the discard service (RFC 863). */
#define DISCARD 9

struct question {
	struct nlmsghdr header;
	struct ndmsg body;
	struct rtattr attribute;
	uint8_t address[16];
};

/* Write an address in the kernel's form, 4 bytes for IPv4; returns its length. */
static unsigned int kernel_address(const struct in6_addr *a, uint8_t *out)
{
	bool four = IN6_IS_ADDR_V4MAPPED(a);

	memcpy(out, a->s6_addr + (four ? 12 : 0), four ? 4 : 16);
	return four ? 4 : 16;
}

/* The neighbour's state (NUD_*); NUD_NONE when the kernel has no entry. */
static uint16_t ask_kernel(int fd, uint32_t ifindex, const struct in6_addr *peer)
{
	struct question q = {
		.header = {.nlmsg_type = RTM_GETNEIGH, .nlmsg_flags = NLM_F_REQUEST},
		.body = {.ndm_ifindex = ifindex},
		.attribute = {.rta_type = NDA_DST},
	};
	union {
		struct nlmsghdr header;
		uint8_t bytes[1024];
	} answer;
	unsigned int length = kernel_address(peer, q.address);
	ssize_t n;

	q.body.ndm_family = length == 4 ? AF_INET : AF_INET6;
	q.attribute.rta_len = RTA_LENGTH(length);
	q.header.nlmsg_len = offsetof(struct question, address) + length;
	if (send(fd, &q, q.header.nlmsg_len, 0) < 0)
		return NUD_NONE;
	/* The kernel answers within send(). */
	n = recv(fd, &answer, sizeof(answer), MSG_DONTWAIT);
	if (n < (ssize_t)NLMSG_LENGTH(sizeof(struct ndmsg)) ||
	    answer.header.nlmsg_type != RTM_NEWNEIGH)
		return NUD_NONE;
	return ((const struct ndmsg *)NLMSG_DATA(&answer.header))->ndm_state;
}

/* Send an empty datagram, which makes the kernel resolve the address. False: it cannot be sent. */
static bool provoke_resolution(uint32_t ifindex, const struct in6_addr *ours,
			       const struct in6_addr *peer)
{
	struct sockaddr_in6 from = {.sin6_family = AF_INET6, .sin6_addr = *ours},
			    to = {.sin6_family = AF_INET6,
				  .sin6_addr = *peer,
				  .sin6_port = htons(DISCARD)};
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), only = 0;
	bool sent;

	if (fd < 0)
		return false;
	setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof(only));
	from.sin6_scope_id = to.sin6_scope_id = IN6_IS_ADDR_LINKLOCAL(peer) ? ifindex : 0;
	sent = bind(fd, (const struct sockaddr *)&from, sizeof(from)) == 0 &&
	       sendto(fd, "", 0, 0, (const struct sockaddr *)&to, sizeof(to)) == 0;
	close(fd);
	return sent;
}

static bool is_unresolved(uint16_t state)
{
	return state == NUD_INCOMPLETE || state == NUD_FAILED;
}

int verbs_reach(uint32_t ifindex, const struct in6_addr *ours, const struct in6_addr *peer)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	uint16_t state;

	if (fd < 0)
		return 0;
	state = ask_kernel(fd, ifindex, peer);
	if (state == NUD_NONE || is_unresolved(state))
		state = provoke_resolution(ifindex, ours, peer) ? ask_kernel(fd, ifindex, peer)
								: NUD_NONE;
	for (int i = 0; i < TRIES && is_unresolved(state); i++) {
		poll(NULL, 0, WAIT_MS);
		state = ask_kernel(fd, ifindex, peer);
	}
	close(fd);
	return is_unresolved(state) ? -ETIMEDOUT : 0;
}
