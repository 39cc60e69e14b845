/* SPDX-License-Identifier: BSD-3-Clause */
/* The service that a packet is for. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "lcore/service.h"

/* Too large for the stack. */
static struct lb_config config;
static struct service_table table;

static void add_protocol(const char *vip, uint16_t port, uint8_t protocol)
{
	struct lb_service_config *s = &config.service[config.n_services++];

	cr_assert_eq(lb_address_parse(vip, &s->vip), 0);
	s->port = port;
	s->protocol = protocol;
}

static void add(const char *vip, uint16_t port)
{
	add_protocol(vip, port, IPPROTO_UDP);
}

static uint16_t look_up(const char *destination, uint16_t port, uint8_t protocol)
{
	struct flow_key key = {.dst_port = htons(port), .protocol = protocol};
	struct lb_address a;

	cr_assert_eq(lb_address_parse(destination, &a), 0);
	key.family = a.family;
	key.dst = a.addr;
	return service_lookup(&table, &key);
}

static bool has(const char *address)
{
	struct lb_address a;

	cr_assert_eq(lb_address_parse(address, &a), 0);
	return service_has_address(&table, &a.addr);
}

struct row {
	const char *address;
	uint16_t port;
	uint8_t protocol;
	uint16_t service;
};

/* 0: 10.0.0.1:80, 1: 10.0.0.1:81, 2: 10.0.0.2:80, 3: [fd00::1]:80 */
static const struct row rows[] = {
	{"10.0.0.1", 80, IPPROTO_UDP, 0},
	{"10.0.0.1", 81, IPPROTO_UDP, 1},
	{"10.0.0.2", 80, IPPROTO_UDP, 2},
	{"fd00::1", 80, IPPROTO_UDP, 3},
	{"10.0.0.2", 81, IPPROTO_UDP, SERVICE_NONE},
	{"10.0.0.1", 0, IPPROTO_UDP, SERVICE_NONE},
	{"10.0.0.1", 0x5000, IPPROTO_UDP, SERVICE_NONE}, /* 80 in the other byte order */
	{"10.0.0.1", 80, IPPROTO_TCP, SERVICE_NONE},
	{"fd00::1", 81, IPPROTO_UDP, SERVICE_NONE},
	{"10.0.0.3", 80, IPPROTO_UDP, SERVICE_NOT_OURS},
	{"fd00::2", 80, IPPROTO_UDP, SERVICE_NOT_OURS},
	{"0.0.0.0", 80, IPPROTO_UDP, SERVICE_NOT_OURS},
	{"::", 80, IPPROTO_UDP, SERVICE_NOT_OURS},
	{"::a00:1", 80, IPPROTO_UDP, SERVICE_NOT_OURS}, /* 10.0.0.1 without its mapping */
};

Test(lb_service, finds_the_service_of_address_and_port)
{
	add("10.0.0.1", 80);
	add("10.0.0.1", 81);
	add("10.0.0.2", 80);
	add("fd00::1", 80);
	for (uint64_t seed = 0; seed < 1000; seed++) {
		service_table_init(&table, &config, seed * 0x9e3779b97f4a7c15ull);
		for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
			cr_assert_eq(look_up(rows[i].address, rows[i].port, rows[i].protocol),
				     rows[i].service, "%s:%u, seed %lu", rows[i].address,
				     rows[i].port, (unsigned long)seed);
	}
}

Test(lb_service, tells_udp_and_tcp_on_the_same_port_apart)
{
	add_protocol("10.0.0.1", 8500, IPPROTO_UDP);
	add_protocol("10.0.0.1", 8500, IPPROTO_TCP);
	add_protocol("10.0.0.1", 8501, IPPROTO_TCP);
	service_table_init(&table, &config, 1);
	cr_expect_eq(look_up("10.0.0.1", 8500, IPPROTO_UDP), 0);
	cr_expect_eq(look_up("10.0.0.1", 8500, IPPROTO_TCP), 1);
	cr_expect_eq(look_up("10.0.0.1", 8501, IPPROTO_TCP), 2);
	cr_expect_eq(look_up("10.0.0.1", 8501, IPPROTO_UDP), SERVICE_NONE);
}

Test(lb_service, a_snapshot_has_what_tcp_services_are_configured_with)
{
	static struct service_snapshot snapshot;

	config.n_ports = 1;
	config.port[0] = (struct lb_port_config){.clients = true, .mtu = 1500};
	config.tcp = (struct lb_tcp_config){.window = 1 << 20, .pipeline = 7, .rto_min_ms = 150};
	add_protocol("10.0.0.1", 8500, IPPROTO_UDP);
	add_protocol("fd00::1", 8500, IPPROTO_TCP);
	memset(&snapshot, 0xff, sizeof(snapshot));
	service_snapshot_init(&snapshot, &config, 1);
	cr_expect_eq(snapshot.tcp.pipeline, 7);
	cr_expect_eq(snapshot.tcp_settings[0].mss, 0);
	cr_expect_eq(snapshot.tcp_settings[1].mss, 1440);
	cr_expect_eq(snapshot.tcp_settings[1].rto_min_ms, 150);
}

/* 1, 3 and 4 have one address; 5 had it, too, and is being retired. */
Test(lb_service, services_with_one_address_are_a_ring)
{
	static struct service_snapshot snapshot;

	add_protocol("10.0.0.1", 8500, IPPROTO_UDP);
	for (unsigned int i = 1; i < 6; i++) {
		add_protocol("10.0.0.1", i == 2 ? 8501 : 8500, IPPROTO_TCP);
		config.service[i].max_request = 1000 * i;
	}
	config.service[5].leaving = true;
	config.n_ports = 1;
	service_snapshot_init(&snapshot, &config, 1);
	table = snapshot.table;
	cr_expect_eq(look_up("10.0.0.1", 8500, IPPROTO_TCP), 1);
	cr_expect_eq(snapshot.beside[1], 3);
	cr_expect_eq(snapshot.beside[3], 4);
	cr_expect_eq(snapshot.beside[4], 1);
	cr_expect_eq(snapshot.max_request[1], 4000);
	cr_expect_eq(snapshot.max_request[3], 4000);
	cr_expect_eq(snapshot.max_request[4], 4000);
	for (unsigned int i = 0; i < 6; i += i == 2 ? 3 : 2) {
		cr_expect_eq(snapshot.beside[i], i);
		cr_expect_eq(snapshot.max_request[i], 1000 * i);
	}
}

Test(lb_service, knows_its_addresses)
{
	add("10.0.0.1", 80);
	add("fd00::1", 80);
	service_table_init(&table, &config, 1);
	cr_expect(has("10.0.0.1"));
	cr_expect(has("fd00::1"));
	cr_expect_not(has("10.0.0.2"));
	cr_expect_not(has("fd00::2"));
	cr_expect_not(has("::"));
}

Test(lb_service, has_nothing_when_nothing_is_configured)
{
	service_table_init(&table, &config, 1);
	cr_expect_eq(look_up("10.0.0.1", 80, IPPROTO_UDP), SERVICE_NOT_OURS);
	cr_expect_not(has("0.0.0.0"));
}

Test(lb_service, forgets_the_configuration_before)
{
	add("10.0.0.1", 80);
	service_table_init(&table, &config, 1);
	config.n_services = 0;
	add("10.0.0.2", 80);
	service_table_init(&table, &config, 1);
	cr_expect_eq(look_up("10.0.0.1", 80, IPPROTO_UDP), SERVICE_NOT_OURS);
	cr_expect_eq(look_up("10.0.0.2", 80, IPPROTO_UDP), 0);
}

Test(lb_service, knows_the_address_of_one_that_leaves_and_nothing_of_a_free_place)
{
	add("10.0.0.1", 80);
	add("10.0.0.2", 80);
	add("10.0.0.3", 80);
	config.service[0].leaving = true;
	memset(&config.service[1], 0, sizeof(config.service[1]));
	service_table_init(&table, &config, 1);
	cr_expect_eq(look_up("10.0.0.1", 80, IPPROTO_UDP), SERVICE_NONE);
	cr_expect_eq(look_up("10.0.0.2", 80, IPPROTO_UDP), SERVICE_NOT_OURS);
	cr_expect_eq(look_up("10.0.0.3", 80, IPPROTO_UDP), 2);
	cr_expect_not(has("::"));
}

Test(lb_service, holds_the_most_services_there_can_be_on_as_many_addresses)
{
	char vip[16];

	for (unsigned int i = 0; i < LB_SERVICES_MAX; i++) {
		snprintf(vip, sizeof(vip), "10.0.%u.1", i);
		add(vip, 1000 + i);
	}
	service_table_init(&table, &config, 42);
	for (unsigned int i = 0; i < LB_SERVICES_MAX; i++) {
		snprintf(vip, sizeof(vip), "10.0.%u.1", i);
		cr_expect_eq(look_up(vip, 1000 + i, IPPROTO_UDP), i);
		cr_expect_eq(look_up(vip, 999 + i, IPPROTO_UDP), SERVICE_NONE);
	}
	cr_expect_eq(look_up("10.1.0.1", 1000, IPPROTO_UDP), SERVICE_NOT_OURS);
}

Test(lb_service, holds_the_most_services_there_can_be_on_one_address)
{
	for (unsigned int i = 0; i < LB_SERVICES_MAX; i++)
		add("fd00::1", 1 + i);
	service_table_init(&table, &config, 42);
	for (unsigned int i = 0; i < LB_SERVICES_MAX; i++)
		cr_expect_eq(look_up("fd00::1", 1 + i, IPPROTO_UDP), i);
	cr_expect_eq(look_up("fd00::1", 2000, IPPROTO_UDP), SERVICE_NONE);
}
