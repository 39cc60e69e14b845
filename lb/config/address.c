/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/address.h"

static const uint8_t mapped_prefix[12] = {[10] = 0xff, [11] = 0xff};

int lb_address_parse(const char *text, struct lb_address *out)
{
	struct lb_address parsed;

	memset(&parsed, 0, sizeof(parsed));
	if (inet_pton(AF_INET, text, &parsed.addr.s6_addr[12]) == 1) {
		memcpy(parsed.addr.s6_addr, mapped_prefix, sizeof(mapped_prefix));
		parsed.family = 4;
	} else if (inet_pton(AF_INET6, text, &parsed.addr) == 1) {
		parsed.family = IN6_IS_ADDR_V4MAPPED(&parsed.addr) ? 4 : 6;
	} else {
		return -EINVAL;
	}
	memcpy(out, &parsed, sizeof(parsed));
	return 0;
}

const char *lb_address_format(const struct lb_address *address, char *buf, size_t size)
{
	char text[LB_ADDRESS_TEXT] = "none";

	if (address->family == 4)
		inet_ntop(AF_INET, &address->addr.s6_addr[12], text, sizeof(text));
	else if (address->family == 6)
		inet_ntop(AF_INET6, &address->addr, text, sizeof(text));
	snprintf(buf, size, "%s", text);
	return buf;
}

bool lb_address_equal(const struct lb_address *a, const struct lb_address *b)
{
	return a->family == b->family && memcmp(&a->addr, &b->addr, sizeof(a->addr)) == 0;
}
