/* SPDX-License-Identifier: BSD-3-Clause */
/* Zones of a configuration: which ports and VLANs form one, and its name. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "config/zone.h"

/* Too large for the stack of a test process with sanitizers. */
static struct lb_config config;

/* Ports c0, c1 and c2 are the clients', f0 is not. */
static void read_config(const char *zones)
{
	char text[1024], error[512] = "";

	snprintf(text, sizeof(text),
		 "ports:\n"
		 "  - {name: c0, device: net_null0, roles: [clients]}\n"
		 "  - {name: f0, device: net_null1, roles: [fabric], address: 10.9.0.1/24}\n"
		 "  - {name: c1, device: net_null2, roles: [clients]}\n"
		 "  - {name: c2, device: net_null3, roles: [clients]}\n"
		 "services:\n"
		 "  - {name: echo, address: 10.0.0.100, port: 8500, model: echo}\n"
		 "lcores: [1]\n"
		 "%s",
		 zones);
	cr_assert_eq(lb_config_parse("t", text, strlen(text), &config, error, sizeof(error)), 0,
		     "%s", error);
}

struct row {
	unsigned int port;
	uint16_t tci;
	const char *name;
};

/* Expects each place to have this zone's name, and the name to lead to its zone. */
static void expect(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct row *r = &rows[i];
		uint16_t zone = zone_of_place(&config, zone_place(r->port, r->tci)), found = 0;
		char name[ZONE_NAME_MAX];

		cr_expect_str_eq(zone_name(&config, zone, name), r->name, "row %zu", i);
		cr_expect(zone_find(&config, r->name, &found) && found == zone, "row %zu: %s", i,
			  r->name);
		for (size_t k = 0; k < i; k++)
			cr_expect_eq(zone == zone_of_place(&config,
							   zone_place(rows[k].port, rows[k].tci)),
				     strcmp(r->name, rows[k].name) == 0, "rows %zu and %zu", i, k);
	}
}

#define EXPECT(rows) expect(rows, sizeof(rows) / sizeof((rows)[0]))

Test(lb_zone, a_port_and_vlan_are_a_zone_whatever_the_priority)
{
	static const struct row rows[] = {
		{0, 0, "c0"},
		{0, 100, "c0.100"},
		{0, 0xe000 | 100, "c0.100"},
		{0, 0xe000, "c0"},
		{0, 0x1000 | 4094, "c0.4094"},
		{2, 100, "c1.100"},
		{3, 4094, "c2.4094"},
	};

	read_config("");
	EXPECT(rows);
}

Test(lb_zone, ports_of_a_zone_without_vlans_share_each_vlan)
{
	static const struct row rows[] = {
		{0, 0, "lan"},         {2, 0, "lan"},  {0, 7, "lan.7"}, {2, 7, "lan.7"},
		{2, 4094, "lan.4094"}, {3, 7, "c2.7"}, {3, 0, "c2"},
	};

	read_config("zones: [{name: lan, ports: [c1, c0]}]\n");
	EXPECT(rows);
}

Test(lb_zone, vlans_of_a_zone_are_one)
{
	static const struct row rows[] = {
		{0, 7, "red"},  {0, 5, "red"}, {2, 5, "red"},  {0, 0, "blue"},
		{0, 9, "blue"}, {2, 0, "c1"},  {2, 9, "c1.9"}, {3, 5, "c2.5"},
	};

	read_config("zones:\n"
		    "  - {name: red, ports: [c0, c1], vlans: [7, 5]}\n"
		    "  - {name: blue, ports: [c0], vlans: [0, 9]}\n");
	EXPECT(rows);
}

Test(lb_zone, what_is_part_of_another_zone_has_only_that_ones_name)
{
	static const char *const names[] = {
		"c0",    "c1",   "c1.5",     "lan.",  "lan.0", "lan.4096", "lan.x", "lan.7x",
		"f0.7.", "none", "none.100", "red.5", "",      ".5",       "f0..7",
	};
	uint16_t zone;

	read_config("zones:\n"
		    "  - {name: lan, ports: [c0, c1]}\n"
		    "  - {name: red, ports: [c2], vlans: [5]}\n");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		cr_expect_not(zone_find(&config, names[i], &zone), "%s", names[i]);
}
