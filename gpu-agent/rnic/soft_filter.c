/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several workers may share an interface, each with an address and packet sockets of its own. The
 * kernel copies every frame to all of these sockets; this filter in the kernel drops the frames of
 * other workers.
 */
#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <string.h>
#include <sys/socket.h>

#include "rnic/soft_rnic_private.h"

#define ETHER_TYPE  12
#define IPV4_TARGET (14 + 16)
#define IPV6_TARGET (14 + 24)
#define ALL         0x40000

#define LOAD(width, at)       BPF_STMT(BPF_LD | BPF_##width | BPF_ABS, at)
#define UNLESS(value, beyond) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, beyond)
#define ANSWER(bytes)         BPF_STMT(BPF_RET | BPF_K, bytes)

static uint32_t address_word(const struct rnic_address *address, unsigned int i)
{
	uint32_t w;

	memcpy(&w, address->addr.s6_addr + 4 * i, sizeof(w));
	return ntohl(w);
}

/*
 * Drop only what certainly belongs to another: unicast IP of our family to another address. The
 * receiver itself sorts out frames with a VLAN tag, ARP and multicast (neighbour discovery).
 */
unsigned int soft_filter_make(const struct rnic_address *address, struct sock_filter *code)
{
	const struct sock_filter four[] = {
		LOAD(H, ETHER_TYPE),  UNLESS(ETH_P_IP, 2),
		LOAD(W, IPV4_TARGET), UNLESS(address_word(address, 3), 1),
		ANSWER(ALL),          ANSWER(0),
	};
	const struct sock_filter six[] = {
		LOAD(H, ETHER_TYPE),
		UNLESS(ETH_P_IPV6, 10),
		LOAD(B, IPV6_TARGET),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0xff, 8, 0),
		LOAD(W, IPV6_TARGET),
		UNLESS(address_word(address, 0), 7),
		LOAD(W, IPV6_TARGET + 4),
		UNLESS(address_word(address, 1), 5),
		LOAD(W, IPV6_TARGET + 8),
		UNLESS(address_word(address, 2), 3),
		LOAD(W, IPV6_TARGET + 12),
		UNLESS(address_word(address, 3), 1),
		ANSWER(ALL),
		ANSWER(0),
	};

	if (address->family == 4) {
		memcpy(code, four, sizeof(four));
		return sizeof(four) / sizeof(four[0]);
	}
	memcpy(code, six, sizeof(six));
	return sizeof(six) / sizeof(six[0]);
}

/* Attach the filter. Errors are ignored: without it everything works, at a higher cost per frame.
 */
void soft_filter_attach(const struct port *port, const struct rnic_address *address)
{
	struct sock_filter code[SOFT_FILTER_MAX];
	struct sock_fprog program = {.filter = code};

	program.len = (unsigned short)soft_filter_make(address, code);
	for (unsigned int i = 0; i < port->n_fds; i++) {
		socklen_t size = sizeof(int);
		int domain;

		if (getsockopt(port->fds[i], SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 &&
		    domain == AF_PACKET)
			setsockopt(port->fds[i], SOL_SOCKET, SO_ATTACH_FILTER, &program,
				   sizeof(program));
	}
}
