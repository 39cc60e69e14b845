/* SPDX-License-Identifier: BSD-3-Clause */
/* The socket filter of a software RNIC, run by the kernel: which frames it drops before the copy.
 */
#include <linux/filter.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "rnic/soft_rnic_private.h"

static int ends[2];

static void attach(uint8_t family, const uint8_t last[4])
{
	struct sock_filter code[SOFT_FILTER_MAX];
	struct sock_fprog program = {.filter = code};
	struct rnic_address address = {.family = family};

	address.addr.s6_addr[0] = family == 6 ? 0xfd : 0;
	memcpy(address.addr.s6_addr + 12, last, 4);
	program.len = (unsigned short)soft_filter_make(&address, code);
	cr_assert_leq(program.len, SOFT_FILTER_MAX);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, ends), 0);
	cr_assert_eq(setsockopt(ends[1], SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)),
		     0);
}

/* True if a frame of this type to this address arrives whole. */
static bool arrives(uint16_t type, size_t at, const uint8_t *target, size_t n)
{
	uint8_t frame[1200] = {0}, got[1500];
	ssize_t length;

	frame[12] = (uint8_t)(type >> 8);
	frame[13] = (uint8_t)type;
	memcpy(frame + at, target, n);
	(void)!send(ends[0], frame, sizeof(frame), 0);
	length = recv(ends[1], got, sizeof(got), 0);
	cr_assert(length < 0 || length == (ssize_t)sizeof(frame));
	return length > 0;
}

Test(soft_filter, ipv4_to_another_address_stays_out)
{
	const uint8_t us[4] = {10, 9, 0, 11}, other[4] = {10, 9, 0, 12}, low[4] = {10, 9, 1, 11};

	attach(4, us);
	cr_expect(arrives(0x0800, 30, us, 4));
	cr_expect_not(arrives(0x0800, 30, other, 4));
	cr_expect_not(arrives(0x0800, 30, low, 4));
	cr_expect(arrives(0x0806, 30, other, 4), "ARP is looked at by who receives");
	cr_expect(arrives(0x8100, 30, other, 4), "so is a frame with a VLAN tag");
	cr_expect(arrives(0x86dd, 38, other, 4));
}

Test(soft_filter, ipv6_to_another_address_stays_out)
{
	const uint8_t last[4] = {0, 0, 0, 0x11};
	uint8_t us[16] = {0xfd}, other[16];

	memcpy(us + 12, last, 4);
	attach(6, last);
	cr_expect(arrives(0x86dd, 38, us, 16));
	for (unsigned int word = 0; word < 4; word++) {
		memcpy(other, us, 16);
		other[4 * word + 3] ^= 0x40;
		cr_expect_not(arrives(0x86dd, 38, other, 16), "word %u differs", word);
	}
	memcpy(other, us, 16);
	other[0] = 0xff;
	cr_expect(arrives(0x86dd, 38, other, 16), "multicast: neighbour discovery");
	cr_expect(arrives(0x0800, 30, other, 4));
}
