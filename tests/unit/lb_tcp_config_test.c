/* SPDX-License-Identifier: BSD-3-Clause */
/* Services with protocol tcp in the configuration, and what follows from the section tcp. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/config.h"
#include "config/config_diff.h"
#include "config/memory.h"
#include "lcore/tcp_settings.h"
#include "tcp/congestion.h"

/* Too large for the stack of a test process with sanitizers. */
static struct lb_config config, now, next;
static char error[2048];
static char seen[4096];

#define PORTS                                                                                      \
	"ports:\n"                                                                                 \
	"  - {name: c0, device: net_null0, roles: [clients]}\n"                                    \
	"  - {name: f0, device: net_null1, roles: [fabric], address: 10.9.0.1/24}\n"
#define LCORES          "lcores: [1, 2]\n" /* line 4 */
#define HEAD            PORTS LCORES "services:\n"
#define UDP             "  - {name: u, address: 10.0.0.100, port: 8500, model: m}\n" /* line 6 */
#define TCP             "  - {name: t, address: 10.0.0.100, port: 8500, protocol: tcp, model: m}\n"
#define UDP_WITH(extra) HEAD "  - {name: u, address: 10.0.0.100, port: 8500, model: m, " extra "}\n"
#define TCP_WITH(extra)                                                                            \
	HEAD "  - {name: t, address: 10.0.0.100, port: 8500, protocol: tcp, model: m, " extra "}"  \
	     "\n"
#define SECTION(keys) HEAD UDP "tcp: {" keys "}\n" /* line 7 */

static int parse_into(struct lb_config *out, const char *text)
{
	error[0] = '\0';
	return lb_config_parse("lb.yaml", text, strlen(text), out, error, sizeof(error));
}

static int parse(const char *text)
{
	return parse_into(&config, text);
}

Test(lb_tcp_config, the_smallest_service_gets_the_defaults)
{
	const struct lb_service_config *s = config.service;

	cr_assert_eq(parse(HEAD TCP), 0, "%s", error);
	cr_expect(config.tcp.used);
	cr_expect_eq(s->protocol, IPPROTO_TCP);
	cr_expect_eq(s->framing, LB_FRAMING_LENGTH);
	cr_expect_eq(s->max_request, 1 << 20);
	cr_expect_eq(s->max_reply, 1 << 20);
	cr_expect_eq(s->congestion, LB_CONGESTION_CUBIC);
	cr_expect(s->ecn);
	cr_assert_eq(parse(HEAD UDP), 0, "%s", error);
	cr_expect_not(config.tcp.used);
	cr_expect_eq(s->framing, LB_FRAMING_DATAGRAM);
}

Test(lb_tcp_config, the_section_that_is_left_out_has_its_defaults)
{
	static const struct lb_tcp_config usual = {
		.connections = 65536,
		.connections_percent = 50,
		.backlog = 1024,
		.buffer_mb = 256,
		.window = 1 << 20,
		.client_percent = 25,
		.unfinished = 64,
		.min_rate = 16384,
		.pipeline = 64,
		.keepalive_ms = 60000,
		.keepalive_interval_ms = 10000,
		.keepalive_probes = 3,
		.stream_heartbeat_ms = 15000,
		.handshake_ms = 10000,
		.fin_wait_ms = 10000,
		.time_wait_ms = 60000,
		.give_up_ms = 60000,
		.syn_retries = 3,
		.rto_min_ms = 200,
		.rto_max_ms = 60000,
		.ack_delay_ms = 10,
		.initial_segments = 10,
	};
	struct lb_tcp_config without;

	cr_assert_eq(parse(HEAD UDP), 0, "%s", error);
	without = config.tcp;
	cr_expect_eq(memcmp(&without, &usual, sizeof(usual)), 0);
	/* As the sample configuration has them. */
	cr_assert_eq(
		parse(SECTION("connections: 65536, connections_percent: 50, backlog: 1024,\n"
			      "  buffer_mb: 256, window: 1MiB,\n"
			      "  client_percent: 25, unfinished: 64, min_rate: 16KiB, pipeline: "
			      "64,\n"
			      "  keepalive_ms: 60000, keepalive_interval_ms: 10000,\n"
			      "  keepalive_probes: 3, idle_ms: 0, handshake_ms: 10000, "
			      "stream_heartbeat_ms: 15000, "
			      "fin_wait_ms: 10000,\n"
			      "  time_wait_ms: 60000, give_up_ms: 60000, syn_retries: 3,\n"
			      "  rto_min_ms: 200, rto_max_ms: 60000, ack_delay_ms: 10,\n"
			      "  initial_segments: 10, mss: 0")),
		0, "%s", error);
	cr_expect_eq(memcmp(&config.tcp, &without, sizeof(without)), 0);
}

Test(lb_tcp_config, every_key_reaches_its_field)
{
	const struct lb_tcp_config *t = &config.tcp;
	const struct lb_service_config *s = config.service;

	cr_assert_eq(
		parse(TCP_WITH(
			"framing: tagged, max_request: 64MiB, max_reply: 602112, "
			"congestion: dctcp, probe_bytes: 1KiB") "tcp: {connections: 101, "
								"connections_percent: 51, "
								"backlog: 102, buffer_mb: "
								"103, window: 104KiB,\n"
								"  client_percent: 35, "
								"unfinished: 106, min_rate: "
								"107, pipeline: 108,\n"
								"  keepalive_ms: 109, "
								"keepalive_interval_ms: 110, "
								"keepalive_probes: 11,\n"
								"  idle_ms: 112, handshake_ms: 4, "
								"stream_heartbeat_ms: 5, "
								"fin_wait_ms: "
								"113, time_wait_ms: 114, "
								"give_up_ms: 300,\n"
								"  syn_retries: 6, "
								"rto_min_ms: 117, rto_max_ms: "
								"118, ack_delay_ms: 119,\n"
								"  initial_segments: 20, mss: "
								"1200}\n"),
		0, "%s", error);
	cr_expect_eq(s->framing, LB_FRAMING_TAGGED);
	cr_expect_eq(s->max_request, 64 << 20);
	cr_expect_eq(s->max_reply, 602112);
	cr_expect_eq(s->congestion, LB_CONGESTION_DCTCP);
	cr_expect_eq(s->probe_bytes, 1024);
	cr_expect_eq(t->handshake_ms, 4);
	cr_expect_eq(t->connections, 101);
	cr_expect_eq(t->connections_percent, 51);
	cr_expect_eq(t->backlog, 102);
	cr_expect_eq(t->buffer_mb, 103);
	cr_expect_eq(t->window, 104 * 1024);
	cr_expect_eq(t->client_percent, 35);
	cr_expect_eq(t->unfinished, 106);
	cr_expect_eq(t->min_rate, 107);
	cr_expect_eq(t->pipeline, 108);
	cr_expect_eq(t->keepalive_ms, 109);
	cr_expect_eq(t->keepalive_interval_ms, 110);
	cr_expect_eq(t->keepalive_probes, 11);
	cr_expect_eq(t->idle_ms, 112);
	cr_expect_eq(t->stream_heartbeat_ms, 5);
	cr_expect_eq(t->fin_wait_ms, 113);
	cr_expect_eq(t->time_wait_ms, 114);
	cr_expect_eq(t->give_up_ms, 300);
	cr_expect_eq(t->syn_retries, 6);
	cr_expect_eq(t->rto_min_ms, 117);
	cr_expect_eq(t->rto_max_ms, 118);
	cr_expect_eq(t->ack_delay_ms, 119);
	cr_expect_eq(t->initial_segments, 20);
	cr_expect_eq(t->mss, 1200);
}

Test(lb_tcp_config, a_udp_and_a_tcp_service_share_address_and_port)
{
	cr_assert_eq(parse(HEAD UDP TCP), 0, "%s", error);
	cr_expect_eq(config.n_services, 2);
	/* RoCEv2's port is taken for UDP only. */
	cr_expect_eq(parse(HEAD "  - {name: t, address: 10.0.0.1, port: 4791, protocol: tcp, "
				"model: m}\n"),
		     0, "%s", error);
}

Test(lb_tcp_config, sizes_have_units)
{
	static const struct {
		const char *text;
		uint32_t bytes;
	} rows[] = {
		{"1", 1},
		{"602112", 602112},
		{"1KiB", 1024},
		{"16KiB", 16384},
		{"1MiB", 1 << 20},
		{"64MiB", 64 << 20},
		{"65536KiB", 64 << 20},
		{"67108864", 64 << 20},
		{"'8KiB'", 8192},
	};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[1024];

		snprintf(text, sizeof(text), TCP_WITH("max_request: %s"), rows[i].text);
		cr_expect_eq(parse(text), 0, "%s: %s", rows[i].text, error);
		cr_expect_eq(config.service[0].max_request, rows[i].bytes, "%s", rows[i].text);
	}
}

struct row {
	const char *text;
	const char *expected; /* substring of the error */
};

#define SIZES "is not a number of bytes; use 1 to 64MiB, as 1472, 16KiB or 1MiB"

#define MODEL_A                                                                                    \
	"  - {name: a, address: 10.0.0.100, port: 8500, protocol: tcp, framing: kserve, model: "   \
	"a}\n"
#define MODEL(keys) "  - {name: b, address: 10.0.0.100, port: 8500, protocol: tcp, " keys "}\n"

static const struct row rows[] = {
	{HEAD MODEL_A MODEL("model: b"), "lb.yaml:7: services[1].port: services[0] has this "
					 "address, port and protocol; use another "
					 "port, or framing: kserve for both"},
	{HEAD MODEL_A MODEL("framing: kserve, model: a"),
	 "lb.yaml:7: services[1].model: services[0] has this model, address and port"},
	{HEAD MODEL_A MODEL("framing: kserve, model: b, congestion: reno"),
	 "lb.yaml:7: services[1].congestion: services[0] has another value"},
	{HEAD MODEL_A MODEL("framing: kserve, model: b, ecn: false"),
	 "lb.yaml:7: services[1].ecn: services[0] has another value"},
	{HEAD MODEL_A MODEL("framing: kserve, model: b, tls: {certificate: /c, key: /k}"),
	 "lb.yaml:7: services[1].tls: services[0] has others or none"},
	{UDP_WITH("protocol: sctp"),
	 "lb.yaml:6: services[0].protocol: 'sctp' is not a protocol; use udp or tcp"},
	{TCP_WITH("framing: http"),
	 "services[0].framing: 'http' is not a framing; use datagram or tagged with protocol udp; "
	 "kserve, length or tagged with tcp"},
	{TCP_WITH("framing: datagram"), "lb.yaml:6: services[0].framing: 'datagram' is for "
					"protocol udp; use kserve, length or tagged "
					"with protocol tcp"},
	{UDP_WITH("framing: kserve"),
	 "lb.yaml:6: services[0].framing: 'kserve' is for protocol tcp; use datagram or tagged "
	 "with protocol udp"},
	{UDP_WITH("framing: length"),
	 "lb.yaml:6: services[0].framing: 'length' is for protocol tcp; use datagram or tagged "
	 "with protocol udp"},
	{HEAD TCP "  - {name: s, address: 10.0.0.100, port: 8500, protocol: tcp, model: m}\n",
	 "lb.yaml:7: services[1].port: services[0] has this address, port and protocol"},
	{UDP_WITH("congestion: reno"),
	 "services[0].congestion: is for protocol tcp, and this service has udp; remove it"},
	{UDP_WITH("ecn: true"),
	 "services[0].ecn: is for protocol tcp, and this service has udp; remove it"},
	{TCP_WITH("congestion: bbr"),
	 "services[0].congestion: 'bbr' is not a congestion control; use cubic, reno or dctcp"},
	{TCP_WITH("ecn: 1"), "services[0].ecn: '1' is not a yes or no; use true or false"},
	{TCP_WITH("congestion: dctcp, ecn: false"),
	 "services[0].ecn: congestion: dctcp works by ECN's marks; use true, or another"},
	{TCP_WITH("flow_timeout_ms: 30000"),
	 "services[0].flow_timeout_ms: is for protocol udp, and this service has tcp; remove it "
	 "(tcp.keepalive_ms and tcp.idle_ms end connections)"},
	{TCP_WITH("one_way_timeout_ms: 30000"),
	 "services[0].one_way_timeout_ms: is for protocol udp, and this service has tcp"},
	{UDP_WITH("max_request: 1MiB"),
	 "services[0].max_request: 1048576 bytes do not fit one datagram; use 1 to 1472 (MTU 1500 "
	 "less 28 of headers), or protocol: tcp"},
	{UDP_WITH("max_reply: 1473"),
	 "services[0].max_reply: 1473 bytes do not fit one datagram; use 1 to 1472 (MTU 1500 less "
	 "28 of headers), or protocol: tcp"},
	{TCP_WITH("max_request: 0"), "services[0].max_request: '0' " SIZES},
	{TCP_WITH("max_request: 67108865"), "services[0].max_request: '67108865' " SIZES},
	{TCP_WITH("max_request: 65MiB"), "services[0].max_request: '65MiB' " SIZES},
	{TCP_WITH("max_request: 4194304KiB"), "services[0].max_request: '4194304KiB' " SIZES},
	{TCP_WITH("max_request: 1GiB"), "services[0].max_request: '1GiB' " SIZES},
	{TCP_WITH("max_request: 1MB"), "services[0].max_request: '1MB' " SIZES},
	{TCP_WITH("max_request: 1 MiB"), "services[0].max_request: '1 MiB' " SIZES},
	{TCP_WITH("max_request: 1.5MiB"), "services[0].max_request: '1.5MiB' " SIZES},
	{TCP_WITH("max_request: MiB"), "services[0].max_request: 'MiB' " SIZES},
	{TCP_WITH("max_request: -1"), "services[0].max_request: '-1' " SIZES},
	{TCP_WITH("max_request: 18446744073709551617"), "'18446744073709551617' " SIZES},
	{TCP_WITH("max_reply: 64MiB"),
	 "services[0].max_reply: 64MiB is more than one client may hold on an lcore, 32MiB "
	 "(client_percent 25 of buffer_mb 256, over 2 lcores); use less, or tcp.buffer_mb: 512"},
	{TCP_WITH("max_request: 2000, probe_bytes: 2001"),
	 "services[0].probe_bytes: 2001 bytes do not fit one packet; use 0 to 1460"},
	{TCP_WITH("max_request: 1000, probe_bytes: 1001"),
	 "services[0].probe_bytes: 1001 bytes are more than max_request, which is 1000"},
	{SECTION("conections: 5"), "lb.yaml:7: tcp: unknown key 'conections'; did you mean "
				   "'connections'?"},
	{SECTION("connections: 0"),
	 "lb.yaml:7: tcp.connections: '0' is not a number of connections; use 1 to 16777216"},
	{SECTION("connections_percent: 0"),
	 "tcp.connections_percent: '0' is not a percentage; use 1 to 100"},
	{SECTION("backlog: 0"),
	 "tcp.backlog: '0' is not a number of connections; use 1 to 1048576"},
	{SECTION("buffer_mb: 0"), "tcp.buffer_mb: '0' is not a size in MiB; use 1 to 1048576"},
	{SECTION("window: 4095"),
	 "tcp.window: '4095' is not a number of bytes; use 4KiB to 512MiB, as 1472, 16KiB or 1MiB"},
	{SECTION("window: 33MiB"),
	 "lb.yaml:7: tcp.window: 33MiB is more than one client may hold on an lcore, 32MiB "
	 "(client_percent 25 of buffer_mb 256, over 2 lcores); use less, or tcp.buffer_mb: 264"},
	{SECTION("buffer_mb: 7"),
	 "lb.yaml:7: tcp.window: 1MiB is more than one client may hold on an lcore, 896KiB "
	 "(client_percent 25 of buffer_mb 7, over 2 lcores); use less, or tcp.buffer_mb: 8"},
	{SECTION("client_percent: 0"), "tcp.client_percent: '0' is not a percentage; use 1 to 100"},
	{SECTION("unfinished: 0"), "tcp.unfinished: '0' is not a number of requests; use 1 to"},
	{SECTION("min_rate: 2GiB"),
	 "tcp.min_rate: '2GiB' is not a number of bytes per second; use 0 to 1GiB"},
	{SECTION("pipeline: 0"), "tcp.pipeline: '0' is not a number of requests; use 1 to 65536"},
	{SECTION("keepalive_ms: 0"),
	 "tcp.keepalive_ms: '0' is not a time in ms; use 1 to 86400000"},
	{SECTION("keepalive_interval_ms: 0"),
	 "tcp.keepalive_interval_ms: '0' is not a time in ms; use 1 to 3600000"},
	{SECTION("keepalive_probes: 0"),
	 "tcp.keepalive_probes: '0' is not a number of probes; use 1 to 100"},
	{SECTION("idle_ms: 86400001"),
	 "tcp.idle_ms: '86400001' is not a time in ms; use 0 to 86400000"},
	{SECTION("fin_wait_ms: 0"), "tcp.fin_wait_ms: '0' is not a time in ms; use 1 to 3600000"},
	{SECTION("time_wait_ms: 0"), "tcp.time_wait_ms: '0' is not a time in ms; use 1 to 3600000"},
	{SECTION("give_up_ms: 0"), "tcp.give_up_ms: '0' is not a time in ms; use 1 to 3600000"},
	{SECTION("give_up_ms: 200"),
	 "lb.yaml:7: tcp.give_up_ms: 200 ms ends a connection before anything is sent again "
	 "(rto_min_ms: 200); use more"},
	{SECTION("syn_retries: 16"),
	 "tcp.syn_retries: '16' is not a number of retries; use 0 to 15"},
	{SECTION("rto_min_ms: 0"), "tcp.rto_min_ms: '0' is not a time in ms; use 1 to 60000"},
	{SECTION("rto_max_ms: 199"),
	 "lb.yaml:7: tcp.rto_max_ms: 199 ms is less than rto_min_ms, 200; use more"},
	{SECTION("ack_delay_ms: 500"), "tcp.ack_delay_ms: '500' is not a time in ms; use 0 to 499"},
	{SECTION("initial_segments: 0"),
	 "tcp.initial_segments: '0' is not a number of segments; use 1 to 100"},
	{SECTION("mss: 9561"), "tcp.mss: '9561' is not a number of bytes; use 0 to 9560"},
	{SECTION("mss: 535"),
	 "lb.yaml:7: tcp.mss: 535 bytes: use 536 to 1460 (MTU 1500 of the clients ports less 40 of "
	 "headers), or 0 for the largest"},
	{SECTION("mss: 1461"), "tcp.mss: 1461 bytes: use 536 to 1460"},
	{HEAD UDP "tcp: 5\n", "lb.yaml:7: tcp: expected a block of keys, found one value"},
};

Test(lb_tcp_config, what_does_not_fit_is_refused_with_its_name_and_the_fix)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int rc = parse(rows[i].text);

		cr_expect_eq(rc, -EINVAL, "row %zu returned %d, expected '%s'", i, rc,
			     rows[i].expected);
		cr_expect_not_null(strstr(error, rows[i].expected), "row %zu: got '%s' not '%s'", i,
				   error, rows[i].expected);
	}
}

Test(lb_tcp_config, the_usual_reply_is_no_larger_than_a_clients_share)
{
	cr_assert_eq(parse(HEAD TCP "tcp: {buffer_mb: 4, window: 64KiB}\n"), 0, "%s", error);
	cr_expect_eq(lb_tcp_client_share(&config), 512 * 1024);
	cr_expect_eq(config.service[0].max_reply, 512 * 1024);
	cr_expect_eq(config.service[0].max_request, 1 << 20);
}

/* --- changes ---------------------------------------------------------------------------------- */

static void note(void *context, const struct lb_config_change *c)
{
	size_t n = strlen(seen);

	snprintf(seen + n, sizeof(seen) - n, "%s: '%s' -> '%s' %s\n", c->key, c->from, c->to,
		 lb_config_effect_name(c->effect));
}

static const char *diff(const char *from, const char *to)
{
	cr_assert_eq(parse_into(&now, from), 0, "%s", error);
	cr_assert_eq(parse_into(&config, to), 0, "%s", error);
	seen[0] = '\0';
	lb_config_diff(&now, &config, note, NULL);
	return seen;
}

Test(lb_tcp_config, all_of_the_section_but_its_memory_changes_live)
{
	cr_expect_str_eq(diff(HEAD TCP, HEAD TCP
			      "tcp: {connections: 1000, connections_percent: 5, backlog: 5, "
			      "buffer_mb: 512,\n"
			      "  window: 1025KiB,\n"
			      "  client_percent: 50, unfinished: 5, min_rate: 0, pipeline: 5,\n"
			      "  keepalive_ms: 5, keepalive_interval_ms: 5, keepalive_probes: 5,\n"
			      "  idle_ms: 5, stream_heartbeat_ms: 5, fin_wait_ms: 5, time_wait_ms: "
			      "5, give_up_ms: 500,\n"
			      "  syn_retries: 5, rto_min_ms: 5, rto_max_ms: 500, ack_delay_ms: 5,\n"
			      "  initial_segments: 5, mss: 1400}\n"),
			 "tcp.connections: '65536' -> '1000' restart\n"
			 "tcp.connections_percent: '50' -> '5' live\n"
			 "tcp.backlog: '1024' -> '5' live\n"
			 "tcp.buffer_mb: '256' -> '512' restart\n"
			 "tcp.window: '1MiB' -> '1025KiB' live\n"
			 "tcp.client_percent: '25' -> '50' live\n"
			 "tcp.unfinished: '64' -> '5' live\n"
			 "tcp.min_rate: '16KiB' -> '0' live\n"
			 "tcp.pipeline: '64' -> '5' live\n"
			 "tcp.keepalive_ms: '60000' -> '5' live\n"
			 "tcp.keepalive_interval_ms: '10000' -> '5' live\n"
			 "tcp.keepalive_probes: '3' -> '5' live\n"
			 "tcp.idle_ms: '0' -> '5' live\n"
			 "tcp.stream_heartbeat_ms: '15000' -> '5' live\n"
			 "tcp.fin_wait_ms: '10000' -> '5' live\n"
			 "tcp.time_wait_ms: '60000' -> '5' live\n"
			 "tcp.give_up_ms: '60000' -> '500' live\n"
			 "tcp.syn_retries: '3' -> '5' live\n"
			 "tcp.rto_min_ms: '200' -> '5' live\n"
			 "tcp.rto_max_ms: '60000' -> '500' live\n"
			 "tcp.ack_delay_ms: '10' -> '5' live\n"
			 "tcp.initial_segments: '10' -> '5' live\n"
			 "tcp.mss: '0' -> '1400' live\n");
	next = now;
	lb_config_copy_live(&config, &next);
	cr_expect_eq(next.tcp.window, 1025 * 1024);
	cr_expect_eq(next.tcp.mss, 1400);
	cr_expect_eq(next.tcp.connections, 65536);
	cr_expect_eq(next.tcp.buffer_mb, 256);
}

Test(lb_tcp_config, a_services_keys_change_live_and_its_protocol_replaces_it)
{
	cr_expect_str_eq(diff(HEAD TCP, TCP_WITH("congestion: reno, ecn: false, max_request: 2MiB, "
						 "max_reply: 16KiB")),
			 "services[t].max_request: '1MiB' -> '2MiB' live\n"
			 "services[t].max_reply: '1MiB' -> '16KiB' live\n"
			 "services[t].congestion: 'cubic' -> 'reno' replace\n"
			 "services[t].ecn: 'true' -> 'false' live\n");
	cr_expect_str_eq(diff(HEAD TCP, TCP_WITH("framing: tagged")),
			 "services[t].framing: 'length' -> 'tagged' replace\n");
	diff(HEAD TCP, HEAD "  - {name: t, address: 10.0.0.100, port: 8500, model: m}\n");
	cr_expect_not_null(strstr(seen, "services[t].protocol: 'tcp' -> 'udp' replace\n"), "%s",
			   seen);
	cr_expect_str_eq(diff(HEAD UDP TCP, HEAD UDP),
			 "services[t]: '10.0.0.100 tcp port 8500, model m' -> '' live\n");
}

Test(lb_tcp_config, the_first_service_needs_a_restart_for_its_memory)
{
	cr_expect_str_eq(diff(HEAD UDP, HEAD UDP TCP),
			 "tcp: 'no service since the start' -> 'services[t]' restart\n"
			 "services[t]: '' -> '10.0.0.100 tcp port 8500, model m' live\n");
	cr_expect_eq(lb_config_merge(&now, &config, &next, error, sizeof(error)), -EBUSY);
	cr_expect_str_eq(error, "tcp changed from 'no service since the start' to 'services[t]': "
				"needs a restart, nothing was applied; restart doorbell-lb, or "
				"undo it");
}

#define FILES(name) "tls: {certificate: /c/" name ", key: /k/" name "}"

Test(lb_tcp_config, certificate_and_key_of_a_service_are_paths)
{
	static const struct {
		const char *keys, *error;
	} bad[] = {
		{"tls: {certificate: /c}", "services[0].tls: 'key' is missing"},
		{"tls: {key: /k}", "services[0].tls: 'certificate' is missing"},
		{"tls: {certificate: c, key: /k}", "'c' is not an absolute path"},
		{"tls: true", "services[0].tls: expected a block of keys"},
	};
	char file[1024];

	cr_assert_eq(parse(TCP_WITH(FILES("a"))), 0, "%s", error);
	cr_expect_str_eq(config.service[0].tls_certificate, "/c/a");
	cr_expect_str_eq(config.service[0].tls_key, "/k/a");
	cr_expect(lb_service_has_tls(&config.service[0]));
	cr_expect(config.tcp.secured);
	cr_assert_eq(parse(HEAD TCP), 0, "%s", error);
	cr_expect_not(lb_service_has_tls(&config.service[0]));
	cr_expect_not(config.tcp.secured);
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(file, sizeof(file), TCP_WITH("%s"), bad[i].keys);
		cr_expect_lt(parse(file), 0, "%s", bad[i].keys);
		cr_expect(strstr(error, bad[i].error), "%s", error);
	}
	cr_expect_lt(parse(UDP_WITH(FILES("a"))), 0);
	cr_expect(strstr(error, "services[0].tls: is for protocol tcp, and this service has udp"),
		  "%s", error);
}

Test(lb_tcp_config, certificates_change_live_and_the_first_needs_a_restart)
{
	cr_expect_str_eq(diff(TCP_WITH(FILES("a")), TCP_WITH(FILES("b"))),
			 "services[t].tls.certificate: '/c/a' -> '/c/b' live\n"
			 "services[t].tls.key: '/k/a' -> '/k/b' live\n");
	cr_expect_str_eq(diff(TCP_WITH(FILES("a")), HEAD TCP),
			 "services[t].tls.certificate: '/c/a' -> '' live\n"
			 "services[t].tls.key: '/k/a' -> '' live\n");
	cr_assert_eq(lb_config_merge(&now, &config, &next, error, sizeof(error)), 0, "%s", error);
	cr_expect(next.tcp.secured);
	diff(HEAD TCP, TCP_WITH(FILES("a")));
	cr_expect(strstr(seen, "tls: 'no service since the start' -> 'services[t]' restart\n"),
		  "%s", seen);
	cr_expect_eq(lb_config_merge(&now, &config, &next, error, sizeof(error)), -EBUSY);
}

Test(lb_tcp_config, the_memory_stays_when_the_last_service_has_left)
{
	diff(HEAD UDP TCP, HEAD UDP);
	cr_assert_eq(lb_config_merge(&now, &config, &next, error, sizeof(error)), 0, "%s", error);
	cr_expect(next.tcp.used);
	memset(&next.service[1], 0, sizeof(next.service[1])); /* it has left */
	cr_assert_eq(parse(HEAD UDP TCP), 0, "%s", error);
	cr_expect_eq(lb_config_merge(&next, &config, &now, error, sizeof(error)), 0, "%s", error);
	cr_expect(now.tcp.used);
}

/* --- memory ----------------------------------------------------------------------------------- */

Test(lb_tcp_config, memory_is_taken_only_where_there_is_a_service)
{
	static const struct lb_tcp_pools none;
	unsigned int without;
	struct lb_tcp_pools p;

	cr_assert_eq(parse(HEAD UDP), 0, "%s", error);
	p = lb_tcp_pools_per_lcore(&config);
	cr_expect_eq(memcmp(&p, &none, sizeof(p)), 0);
	without = lb_memory_mb(&config);
	cr_assert_eq(parse(HEAD UDP "tcp: {connections: 1000000, buffer_mb: 4096}\n"), 0, "%s",
		     error);
	cr_expect_eq(lb_memory_mb(&config), without);

	cr_assert_eq(parse(HEAD UDP TCP), 0, "%s", error);
	p = lb_tcp_pools_per_lcore(&config);
	cr_expect_eq(p.connections, 32768);
	cr_expect_geq(p.actives, p.connections);
	cr_expect_geq(p.chunks, p.connections);
	cr_expect_gt(p.helds, 0);
	/* Buffers of an MTU of 1500 and their mbufs, 128 MiB of them on each of two lcores. */
	cr_expect(p.packets > (128 << 20) / 2600 && p.packets < (128 << 20) / 1700, "%u",
		  p.packets);
	/* The buffers, and at least 256 bytes of each connection. */
	cr_expect_gt(lb_memory_mb(&config), without + 256 + 16);
	cr_expect_lt(lb_memory_mb(&config), without + 610);
}

Test(lb_tcp_config, what_takes_most_memory_is_what_to_lower)
{
	cr_assert_eq(parse(HEAD UDP), 0, "%s", error);
	cr_expect_str_eq(lb_memory_keys(&config), "flows");
	cr_assert_eq(parse(HEAD UDP TCP), 0, "%s", error);
	cr_expect_str_eq(lb_memory_keys(&config), "tcp.buffer_mb, tcp.connections");
	cr_assert_eq(parse(HEAD UDP TCP "flows: 10000000\n"), 0, "%s", error);
	cr_expect_str_eq(lb_memory_keys(&config), "flows");
	cr_assert_eq(parse(HEAD UDP TCP "flows: 10000000\ntcp: {connections: 8000000}\n"), 0, "%s",
		     error);
	cr_expect_str_eq(lb_memory_keys(&config), "tcp.buffer_mb, tcp.connections");
}

Test(lb_tcp_config, connections_at_rest_have_no_memory_to_send)
{
	struct lb_tcp_pools p;

	cr_assert_eq(parse(HEAD TCP "tcp: {connections: 1000000, buffer_mb: 64}\n"), 0, "%s",
		     error);
	p = lb_tcp_pools_per_lcore(&config);
	cr_expect_eq(p.connections, 1000000 / config.n_lcores);
	cr_expect_eq(p.actives, p.packets);
	cr_expect_lt(p.chunks, 2 * p.packets);
}

/* --- settings --------------------------------------------------------------------------------- */

Test(lb_tcp_config, the_defaults_are_those_of_the_endpoint)
{
	const struct tcp_settings *usual = &tcp_settings_default;
	struct tcp_settings s;

	cr_assert_eq(parse(HEAD TCP), 0, "%s", error);
	s = lb_tcp_settings(&config, &config.service[0]);
	cr_expect_eq(s.rto_min_ms, usual->rto_min_ms);
	cr_expect_eq(s.rto_max_ms, usual->rto_max_ms);
	cr_expect_eq(s.ack_delay_ms, usual->ack_delay_ms);
	cr_expect_eq(s.give_up_ms, usual->give_up_ms);
	cr_expect_eq(s.keepalive_ms, usual->keepalive_ms);
	cr_expect_eq(s.keepalive_interval_ms, usual->keepalive_interval_ms);
	cr_expect_eq(s.fin_wait_ms, usual->fin_wait_ms);
	cr_expect_eq(s.mss, usual->mss);
	cr_expect_eq(s.scale, usual->scale);
	cr_expect_eq(s.keepalive_probes, usual->keepalive_probes);
	cr_expect_eq(s.syn_retries, usual->syn_retries);
	cr_expect_eq(s.initial_segments, usual->initial_segments);
	cr_expect(s.sack && s.timestamps && s.ecn);
	cr_expect_eq(s.congestion, usual->congestion);
}

Test(lb_tcp_config, the_segment_size_is_what_the_clients_ports_leave)
{
	static const char v6[] =
		HEAD "  - {name: t, address: 'fd00::5', port: 1, protocol: tcp, model: m}\n";

	cr_assert_eq(parse(v6), 0, "%s", error);
	cr_expect_eq(lb_tcp_settings(&config, &config.service[0]).mss, 1440);
	config.tcp.mss = 1460; /* as much as an IPv4 service takes */
	cr_expect_eq(lb_tcp_settings(&config, &config.service[0]).mss, 1440);
	config.tcp.mss = 1200;
	cr_expect_eq(lb_tcp_settings(&config, &config.service[0]).mss, 1200);
}

Test(lb_tcp_config, the_scale_holds_the_window)
{
	static const struct {
		uint32_t window;
		uint8_t scale;
	} windows[] = {
		{4096, 7}, {1 << 20, 7}, {65535 << 7, 7}, {8 << 20, 8}, {512 << 20, 14},
	};

	cr_assert_eq(parse(HEAD TCP), 0, "%s", error);
	for (unsigned int i = 0; i < sizeof(windows) / sizeof(windows[0]); i++) {
		config.tcp.window = windows[i].window;
		cr_expect_eq(lb_tcp_settings(&config, &config.service[0]).scale, windows[i].scale,
			     "%u", windows[i].window);
	}
}

Test(lb_tcp_config, each_congestion_control_has_its_algorithm)
{
	static const char *const names[] = {"cubic", "reno", "dctcp"};

	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char text[1024];

		snprintf(text, sizeof(text), TCP_WITH("congestion: %s"), names[i]);
		cr_assert_eq(parse(text), 0, "%s", error);
		cr_expect_str_eq(lb_tcp_settings(&config, &config.service[0]).congestion->name,
				 names[i]);
	}
	cr_assert_eq(parse(TCP_WITH("ecn: false")), 0, "%s", error);
	cr_expect_not(lb_tcp_settings(&config, &config.service[0]).ecn);
}

Test(lb_tcp_config, models_share_an_address_up_to_a_limit)
{
	static char text[8192];
	int n = snprintf(text, sizeof(text), HEAD);

	for (unsigned int i = 0; i < LB_MODELS_MAX; i++)
		n += snprintf(text + n, sizeof(text) - n,
			      "  - {name: s%u, address: 10.0.0.100, port: 8500, protocol: tcp, "
			      "framing: kserve, model: m%u}\n",
			      i, i);
	cr_assert_eq(parse(text), 0, "%s", error);
	snprintf(text + n, sizeof(text) - n, MODEL_A);
	cr_assert_neq(parse(text), 0);
	cr_assert(strstr(error, "services[32].port: 32 services have this address") != NULL, "%s",
		  error);
}
