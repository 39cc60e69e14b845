/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * IP addresses as configuration and control show them. Pure.
 */
#ifndef LB_ADDRESS_H
#define LB_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * IPv4 addresses are stored as ::ffff:a.b.c.d in <addr>; <family> is 4 or 6, or 0 when not set.
 * The padding after <family> is zero in what lb_address_parse() fills.
 */
struct lb_address {
	uint8_t family;
	struct in6_addr addr;
};

/* Bytes of any address as text, terminator included. */
#define LB_ADDRESS_TEXT INET6_ADDRSTRLEN

/*
 * Parse "10.0.0.1" or "2001:db8::1", without port, prefix, zone or brackets. A mapped
 * "::ffff:10.0.0.1" is the IPv4 address. Returns 0, or -EINVAL and leaves <out> unchanged.
 */
int lb_address_parse(const char *text, struct lb_address *out);

/* Write the address to <buf> in inet_ntop()'s form, "none" when not set; cut short when <size> is
 * too small. Returns <buf>. */
const char *lb_address_format(const struct lb_address *address, char *buf, size_t size);

bool lb_address_equal(const struct lb_address *a, const struct lb_address *b);

#endif
