/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "config/address.h"

struct row {
	const char *text;
	uint8_t family; /* 0: refused */
	const char *shown;
};

static const struct row rows[] = {
	{"10.0.0.1", 4, "10.0.0.1"},
	{"0.0.0.0", 4, "0.0.0.0"},
	{"255.255.255.255", 4, "255.255.255.255"},
	{"::ffff:10.0.0.1", 4, "10.0.0.1"},
	{"::", 6, "::"},
	{"2001:DB8:0:0::1", 6, "2001:db8::1"},
	{"2001:db8:1111:2222:3333:4444:5555:6666", 6, "2001:db8:1111:2222:3333:4444:5555:6666"},
	{"", 0, NULL},
	{"10.0.0", 0, NULL},
	{"10.0.0.256", 0, NULL},
	{"10.0.0.1 ", 0, NULL},
	{"10.0.0.1/24", 0, NULL},
	{"10.0.0.1:80", 0, NULL},
	{"fe80::1%eth0", 0, NULL},
	{"[::1]", 0, NULL},
	{"localhost", 0, NULL},
};

Test(lb_address, text_is_parsed_and_shown_in_its_usual_form)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lb_address address = {.family = 99};
		char text[LB_ADDRESS_TEXT];
		int rc = lb_address_parse(rows[i].text, &address);

		cr_expect_eq(rc, rows[i].family != 0 ? 0 : -EINVAL, "'%s': %d", rows[i].text, rc);
		cr_expect_eq(address.family, rows[i].family != 0 ? rows[i].family : 99);
		if (rows[i].family != 0)
			cr_expect_str_eq(lb_address_format(&address, text, sizeof(text)),
					 rows[i].shown);
	}
}

Test(lb_address, ipv4_is_kept_mapped)
{
	static const uint8_t expected[16] = {[10] = 0xff, [11] = 0xff, 10, 9, 0, 1};
	struct lb_address address, mapped;

	memset(&address, 0xaa, sizeof(address));
	cr_assert_eq(lb_address_parse("10.9.0.1", &address), 0);
	cr_assert_arr_eq(address.addr.s6_addr, expected, sizeof(expected));
	cr_assert_eq(lb_address_parse("::ffff:10.9.0.1", &mapped), 0);
	cr_assert(lb_address_equal(&address, &mapped));
	/* padding included: addresses may be part of a hashed key */
	memset(&mapped, 0x55, sizeof(mapped));
	cr_assert_eq(lb_address_parse("10.9.0.1", &mapped), 0);
	cr_assert_arr_eq(&address, &mapped, sizeof(address));
}

Test(lb_address, an_unset_address_and_a_short_buffer_are_fine)
{
	struct lb_address address = {0};
	char text[LB_ADDRESS_TEXT] = "xxxxxxxx";

	cr_assert_str_eq(lb_address_format(&address, text, sizeof(text)), "none");
	cr_assert_eq(lb_address_parse("10.9.0.1", &address), 0);
	cr_assert_str_eq(lb_address_format(&address, text, 5), "10.9");
}
