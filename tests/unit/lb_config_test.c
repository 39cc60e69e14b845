/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/config.h"
#include "config/config_places.h"

/* Too large for the stack of a test process with sanitizers. */
static struct lb_config config;
static char error[2048];

static int parse(const char *text)
{
	error[0] = '\0';
	return lb_config_parse("lb.yaml", text, strlen(text), &config, error, sizeof(error));
}

#define CLIENTS  "  - {name: c0, device: net_null0, roles: [clients]}\n"
#define FABRIC   "  - {name: f0, device: net_null1, roles: [fabric], address: 10.9.0.1/24}\n"
#define PORTS    "ports:\n" CLIENTS FABRIC /* lines 1 to 3 */
#define ECHO     "  - {name: echo, address: 10.0.0.100, port: 8500, model: echo}\n"
#define SERVICES "services:\n" ECHO /* lines 4 and 5 */
#define LCORES   "lcores: [1, 2]\n" /* line 6 */
#define GOOD     PORTS SERVICES LCORES
/* A file with one clients port, or one service, that has <extra> keys. */
#define CLIENTS_WITH(extra)                                                                        \
	"ports:\n  - {name: c0, device: net_null0, roles: [clients], " extra                       \
	"}\n" FABRIC SERVICES LCORES
#define FABRIC_WITH(extra)                                                                         \
	"ports:\n" CLIENTS "  - {name: f0, device: net_null1, roles: [fabric], " extra             \
	"}\n" SERVICES LCORES
#define SERVICE_WITH(extra)                                                                        \
	PORTS "services:\n  - {name: echo, address: 10.0.0.100, port: 8500, model: echo, " extra   \
	      "}\n" LCORES

/* The same with one zone. */
#define ZONES_WITH(zone) GOOD "zones:\n  - {" zone "}\n"

struct row {
	const char *text;
	const char *expected; /* substring of the error */
};

static void assert_refused(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int rc = parse(rows[i].text);

		cr_expect_eq(rc, -EINVAL, "row %zu returned %d, expected '%s'", i, rc,
			     rows[i].expected);
		cr_expect_not_null(strstr(error, rows[i].expected), "row %zu: got '%s' not '%s'", i,
				   error, rows[i].expected);
		cr_expect_eq(strncmp(error, "lb.yaml:", 8), 0, "row %zu: '%s'", i, error);
		for (const char *line = error; (line = strchr(line, '\n')) != NULL;)
			cr_expect_eq(strncmp(++line, "lb.yaml:", 8), 0, "row %zu: '%s'", i, error);
	}
}

#define ASSERT_REFUSED(rows) assert_refused(rows, sizeof(rows) / sizeof((rows)[0]))

static const struct row file_rows[] = {
	{"", "lb.yaml:1: the file is empty; it needs ports, services, lcores"},
	{"# nothing\n\n", "lb.yaml:1: the file is empty"},
	{"---\n...\n", "lb.yaml:1: the file is empty"},
	{"~\n", "lb.yaml:1: the file is not a mapping"},
	{"- a\n- b\n", "lb.yaml:1: the file is not a mapping; write keys as 'ports:'"},
	{GOOD "---\nports: []\n", "lb.yaml:7: a second document starts here; keep one"},
	{"ports:\n  - name: c0\n   device: x\n", "lb.yaml:3: not YAML: "},
	{"lcores: [1, 2\nidle: sleep\n", "lb.yaml:2: not YAML: "},
	{"lcores: [1]\n\tidle: sleep\n", "lb.yaml:2: not YAML: "},
	{"idle: \"sleep\n", "lb.yaml:2: not YAML: found unexpected end of stream while scanning a "
			    "quoted scalar that starts on line 1"},
	{"idle: sleep\nflows: \xff\n", "lb.yaml:2: not YAML: "},
	{"idle: &a sleep\nlog_level: *a\n",
	 "lb.yaml:2: aliases are not supported; write the value"},
	{"ports: &a [*a]\n", "lb.yaml:1: aliases are not supported"},
	{"a: *b\n", "lb.yaml:1: aliases are not supported"},
	{"ports:\n  [[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]\n",
	 "lb.yaml:2: nested too deep; use at most 16"},
};

Test(lb_config, a_file_that_is_not_one_mapping_is_refused)
{
	ASSERT_REFUSED(file_rows);
}

static const struct row shape_rows[] = {
	{GOOD "flow: 5\n", "lb.yaml:7: unknown key 'flow'; did you mean 'flows'?"},
	{GOOD "telemetry: yes\n",
	 "lb.yaml:7: unknown key 'telemetry'; known are ports, services, "},
	{GOOD "<<: {a: b}\n", "lb.yaml:7: unknown key '<<'; "},
	{GOOD "\"fl\\now\\u00e9s\": 5\n", "lb.yaml:7: unknown key 'fl?ow??s'; "},
	{GOOD "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggggggggg: 1\n",
	 "unknown key 'aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff...'; known "
	 "are"},
	{GOOD "? [a]\n: b\n", "lb.yaml:7: a key must be one word"},
	{SERVICE_WITH("polcy: maglev"),
	 "lb.yaml:5: services[0]: unknown key 'polcy'; did you mean 'policy'?"},
	{GOOD "memory:\n  mbs: 5\n", "lb.yaml:8: memory: unknown key 'mbs'; did you mean 'mb'?"},
	{GOOD "flows: 2000\nflows: 2000\n",
	 "lb.yaml:8: flows: given twice, first on line 7; keep one"},
	{SERVICE_WITH("port: 8501"), "lb.yaml:5: services[0].port: given twice, first on line 5"},
	{GOOD "flows: [5]\n", "lb.yaml:7: flows: expected one value, found a list"},
	{GOOD "flows: {a: 5}\n", "lb.yaml:7: flows: expected one value, found a block of keys"},
	{GOOD "memory: 5\n", "lb.yaml:7: memory: expected a block of keys, found one value"},
	{GOOD "control:\n", "lb.yaml:7: control: expected a block of keys, found nothing"},
	{PORTS SERVICES "lcores: 1\n",
	 "lb.yaml:6: lcores: expected a list, found one value; write e.g. 'lcores: [1, 2]'"},
	{PORTS "services: {name: echo}\n" LCORES,
	 "lb.yaml:4: services: expected a list, found a block"},
	{PORTS "services:\n  - echo\n" LCORES,
	 "lb.yaml:5: services[0]: expected a block of keys, found one"},
	{"ports:\n" SERVICES LCORES, "lb.yaml:1: ports: expected a list, found nothing"},
	{SERVICES LCORES, "lb.yaml:1: 'ports' is missing; add e.g. 'ports: ["},
	{PORTS LCORES, "lb.yaml:1: 'services' is missing"},
	{PORTS SERVICES, "lb.yaml:1: 'lcores' is missing; add e.g. 'lcores: [1, 2]'"},
	{PORTS "services:\n  - name: echo\n    port: 8500\n    model: echo\n" LCORES,
	 "lb.yaml:5: services[0]: 'address' is missing; add e.g. 'address: 10.200.0.100'"},
	{PORTS "services:\n" ECHO "  - {name: b, address: 10.0.0.101, model: b}\n" LCORES,
	 "lb.yaml:6: services[1]: 'port' is missing; add e.g. 'port: 8500'"},
	{"ports:\n  - {name: c0, roles: [clients]}\n" SERVICES LCORES,
	 "ports[0]: 'device' is missing"},
	{"ports:\n  - {name: c0, device: a}\n" SERVICES LCORES,
	 "lb.yaml:2: ports[0]: 'roles' is missing; add e.g. 'roles: [clients]'"},
	{PORTS SERVICES "lcores: []\n", "lb.yaml:6: lcores: has 0 entries; use 1 to 64"},
	{PORTS "services: []\n" LCORES, "lb.yaml:4: services: has 0 entries; use 1 to 256"},
};

Test(lb_config, a_block_of_the_wrong_shape_is_refused)
{
	ASSERT_REFUSED(shape_rows);
}

static const struct row value_rows[] = {
	{PORTS "services:\n" ECHO "  - name: b\n    address: 10.0.0.1\n    port: 70000\n",
	 "lb.yaml:8: services[1].port: '70000' is not a port; use 1 to 65535"},
	{GOOD "flows: 63\n",
	 "lb.yaml:7: flows: '63' is not a number of flows; use 64 to 268435456"},
	{GOOD "flows: 18446744073709551680\n", "flows: '18446744073709551680' is not a number"},
	{GOOD "flows: many\n", "flows: 'many' is not a number of flows"},
	{GOOD "flows: -5\n", "flows: '-5' is not"},
	{GOOD "flows: 0x1000\n", "flows: '0x1000' is not"},
	{GOOD "flows: 1e6\n", "flows: '1e6' is not"},
	{GOOD "flows: \"\"\n", "flows: '' is not"},
	{GOOD "flows:\n", "lb.yaml:7: flows: '' is not a number of flows"},
	{GOOD "flows: \"2000\\0\"\n", "flows: '2000?' is not a number of flows"},
	{GOOD "idle: nap\n", "lb.yaml:7: idle: 'nap' is not a way to idle; use sleep or poll"},
	{GOOD "log_level: loud\n",
	 "'loud' is not a log level; use error, warning, notice, info or debug"},
	{GOOD "log: {access: access.log}\n",
	 "log.access: 'access.log' is not an absolute path or off; use 1 to 255"},
	{GOOD "log: {access_one_in: 0}\n",
	 "log.access_one_in: '0' is not a number of requests; use 1 to 1000000"},
	{GOOD "memory: {hugepages: maybe}\n",
	 "memory.hugepages: 'maybe' is not a yes or no; use true or false"},
	{GOOD "memory: {mb: 1048577}\n",
	 "memory.mb: '1048577' is not a size in MiB; use 0 to 1048576"},
	{GOOD "control: {socket: run/sock}\n",
	 "control.socket: 'run/sock' is not an absolute path; use 1 to 107"},
	{GOOD "control: {state_file: state.json}\n",
	 "control.state_file: 'state.json' is not an absolute path or off; use 1 to 255 "
	 "characters"},
	{GOOD "control: {agents: 0.0.0.0}\n",
	 "control.agents: '0.0.0.0' is not an address with a port; use e.g."},
	{GOOD "control: {agents: \"0.0.0.0:0\"}\n", "control.agents: '0.0.0.0:0' is not"},
	{GOOD "control: {agents: \"::1:4790\"}\n", "control.agents: '::1:4790' is not"},
	{GOOD "control: {agents: \"[10.0.0.1]:4790\"}\n",
	 "control.agents: '[10.0.0.1]:4790' is not"},
	{GOOD "control: {agents: \":4790\"}\n", "control.agents: ':4790' is not"},
	{GOOD "control: {tls: {certificate: /a, key: /b}}\n",
	 "control.tls: 'ca' is missing; add e.g. 'ca: /etc/doorbell/ca.pem'"},
	{GOOD "control: {tls: {certificate: a.pem, key: /b, ca: /c}}\n",
	 "control.tls.certificate: 'a.pem' is not an absolute path"},
	{GOOD "control:\n  tls: {certificate: /a, key: /b, ca: /c}\n  token_file: /t\n",
	 "lb.yaml:9: control.token_file: agents have certificates (tls) or a token, not both"},
	{GOOD "workers: {lease_ms: 100}\n", "workers.lease_ms: '100' is not a time in ms; use 300"},
	{GOOD "workers: {timeout_ms: 5}\n",
	 "workers.timeout_ms: '5' is not a time in ms; use 20 to 3600000"},
	{GOOD "workers: {timeout_ms: 300, suspect_ms: 300}\n",
	 "7: workers.suspect_ms: 300 ms: a worker is dead by then (timeout_ms: 300); use less, or "
	 "0 "
	 "for never"},
	{GOOD "workers: {suspect_ms: 501}\n",
	 "workers.suspect_ms: 501 ms: a worker is dead by then (timeout_ms: 500)"},
	{GOOD "log: {access_one_in: 7}\n",
	 "log.access_one_in: it is for log.access; give that, too"},
	{GOOD "fabric: {ack_timeout: 32}\n",
	 "fabric.ack_timeout: '32' is not a RoCE timeout exponent; use 1 to 31"},
	{GOOD "fabric: {congestion_control: on}\n",
	 "fabric.congestion_control: 'on' is not a rate control; use dcqcn or off"},
	{GOOD "fabric: {rnr_retry: 8}\n",
	 "fabric.rnr_retry: '8' is not a number of retries; use 0 to 7"},
	{GOOD "fabric: {retry_count: 8}\n",
	 "fabric.retry_count: '8' is not a number of retries; use 0 to 7"},
	{PORTS SERVICES "lcores: [1, x]\n",
	 "lb.yaml:6: lcores[1]: 'x' is not a CPU number; use 0 to 1023"},
	{CLIENTS_WITH("mtu: 100"), "lb.yaml:2: ports[0].mtu: '100' is not an MTU; use 576 to 9600"},
	{CLIENTS_WITH("rx_descriptors: 1"),
	 "ports[0].rx_descriptors: '1' is not a number of descriptors"},
	{CLIENTS_WITH("tx_descriptors: 99999"), "ports[0].tx_descriptors: '99999' is not"},
	{"ports:\n  - {name: c 0, device: a, roles: [clients]}\n",
	 "ports[0].name: 'c 0' is not a name; use 1 to 63 letters"},
	{"ports:\n  - {name: c0, device: \"a\\nb\", roles: [clients]}\n",
	 "ports[0].device: 'a?b' is not a device"},
	{"ports:\n  - {name: c0, device: a, roles: [servers]}\n",
	 "ports[0].roles[0]: 'servers' is not a role; use clients or fabric"},
	{"ports:\n  - {name: c0, device: a, roles: []}\n",
	 "ports[0].roles: has 0 entries; use 1 to 2"},
	{FABRIC_WITH("address: 10.9.0.1"),
	 "lb.yaml:3: ports[1].address: '10.9.0.1' is not a unicast address with its prefix"},
	{FABRIC_WITH("address: 10.9.0.1/33"),
	 "'10.9.0.1/33' is not a unicast address with its prefix length; use e.g. "
	 "10.201.0.1/24 (prefix 1 to 32, IPv6 1 to 128)"},
	{FABRIC_WITH("address: 10.9.0.1/0"), "'10.9.0.1/0' is not"},
	{FABRIC_WITH("address: 'fd00::1/129'"), "'fd00::1/129' is not"},
	{FABRIC_WITH("address: 239.0.0.1/24"), "'239.0.0.1/24' is not a unicast address"},
	{FABRIC_WITH("address: 10.9.0.1/24, gateway: router"),
	 "ports[1].gateway: 'router' is not a unicast address"},
	{PORTS "services:\n  - {name: a, address: 10.0.0.256}\n",
	 "services[0].address: '10.0.0.256' is not a unicast address; use e.g. 10.200.0.100"},
	{PORTS "services:\n  - {name: a, address: 0.0.0.0}\n",
	 "services[0].address: '0.0.0.0' is not"},
	{PORTS "services:\n  - {name: a, address: 'ff02::1'}\n",
	 "services[0].address: 'ff02::1' is not"},
	{PORTS "services:\n  - {name: a, address: 127.0.0.1}\n",
	 "services[0].address: '127.0.0.1' is not"},
	{PORTS "services:\n  - {name: a, port: 0}\n", "services[0].port: '0' is not a port"},
	{PORTS "services:\n  - {name: a, model: a b}\n",
	 "services[0].model: 'a b' is not a model; use 1 to 63 printable"},
	{SERVICE_WITH("framing: http"),
	 "services[0].framing: 'http' is not a framing; use datagram"},
	{SERVICE_WITH("policy: random"), "services[0].policy: 'random' is not a policy; use "
					 "round-robin, weighted, maglev, least-outstanding, "
					 "power-of-two or earliest-finish"},
	{SERVICE_WITH("workers: some"),
	 "services[0].workers: 'some' is not a choice of workers; use all or assigned"},
	{SERVICE_WITH("placement: near"),
	 "services[0].placement: 'near' is not a placement; use spread or pack"},
	{SERVICE_WITH("spares: 1025"), "services[0].spares: '1025' is not a number of workers"},
	{SERVICE_WITH("spares: 1"),
	 "services[0].spares: this service has all workers of its model; "
	 "set workers: assigned"},
	{SERVICE_WITH("min_workers: 1"), "services[0].min_workers: this service has all workers"},
	{SERVICE_WITH("workers: assigned, spares: 1"),
	 "services[0].spares: spares step in when there are fewer than min_workers"},
	{SERVICE_WITH("placement: pack"),
	 "5: services[0].placement: this service has all workers of its model; set workers: "
	 "assigned, or leave placement out"},
	{SERVICE_WITH("placement: spread"), "services[0].placement: this service has all workers"},
	{SERVICE_WITH("workers: assigned, placement: pack"),
	 "services[0].placement: it says which spares step in, and there are none; set spares and "
	 "min_workers, too"},
	{SERVICE_WITH("sticky_load_percent: 200"),
	 "services[0].sticky_load_percent: it is for affinity: sticky, near and spread; set one of "
	 "them, or leave it out"},
	{SERVICE_WITH("replay: 1") "workers: {replay_mb: 0}\n",
	 "services[0].replay: workers.replay_mb: 0 leaves no room to keep requests for it; raise "
	 "that, or leave replay out"},
	{SERVICE_WITH("affinity: none"),
	 "services[0].affinity: 'none' is not an affinity; use flow, request or sticky"},
	{SERVICE_WITH("sticky_load_percent: 100001"),
	 "services[0].sticky_load_percent: '100001' is not a percentage; use 0 to 100000"},
	{SERVICE_WITH("affinity: sticky, sticky_load_percent: 99"),
	 "services[0].sticky_load_percent: 99 % of the mean is less than all have when loads are "
	 "equal; use 100 or more"},
	{SERVICE_WITH("near: a b"), "services[0].near: 'a b' is not a label's key"},
	{SERVICE_WITH("near: host, spread: host"),
	 "services[0].spread: a service is near or spread, not both"},
	{SERVICE_WITH("near: rack"),
	 "services[0].near: near what? The load balancer has no label 'rack'; add it to labels, or "
	 "use affinity: sticky"},
	{SERVICE_WITH("spread: host, policy: maglev"),
	 "services[0].spread: policy maglev chooses by turns or by chance, not by place; use "
	 "least-outstanding or earliest-finish"},
	{SERVICE_WITH("near: host, policy: round-robin"), "services[0].near: policy round-robin"},
	{GOOD "labels: [rack]\n", "labels[0]: 'rack' is not KEY=VALUE; write rack=7"},
	{GOOD "labels: [rack=]\n", "labels[0]: 'rack=' is not KEY=VALUE"},
	{GOOD "labels: [a=1, a=2]\n", "labels[1]: 'a' comes twice; give each key once"},
	{GOOD "labels: [a23456789012345678901234567890123=1]\n", "labels[0]: 'a234567890123"},
	{SERVICE_WITH("queue: 1048577"),
	 "services[0].queue: '1048577' is not a number of requests"},
	{SERVICE_WITH("queue: 8193"),
	 "lb.yaml:5: services[0].queue: the services' queues hold 8193 requests together, and "
	 "there "
	 "are packets for 8192; lower queues, or use memory.queue_packets: 8193"},
	{SERVICE_WITH("queue: 1025") "memory: {queue_packets: 1024}\n",
	 "services[0].queue: the services' queues hold 1025 requests together, and there are "
	 "packets "
	 "for 1024"},
	{GOOD "memory: {queue_packets: 15}\n",
	 "services[0]: memory.queue_packets: 15 leaves 15 packets for queues that no size is given "
	 "for, too few for 1; lower the other queues, or use 1024"},
	{GOOD "memory: {window_packets: 255}\n",
	 "memory.window_packets: '255' is not a number of packets; use 256 to 1048576"},
	{SERVICE_WITH("queue_timeout_ms: 0"),
	 "services[0].queue_timeout_ms: '0' is not a time in ms"},
	{SERVICE_WITH("request_timeout_ms: 3600001"),
	 "services[0].request_timeout_ms: '3600001' is not"},
	{SERVICE_WITH("one_way_timeout_ms: 5000"),
	 "services[0].one_way_timeout_ms: 5000 ms is less than a request may take"},
	{SERVICE_WITH("flow_timeout_ms: 10999"), "use 11000 or more"},
	{SERVICE_WITH("flow_timeout_ms: 0"), "services[0].flow_timeout_ms: '0' is not"},
	{SERVICE_WITH("one_way_timeout_ms: 86400001"),
	 "services[0].one_way_timeout_ms: '86400001' is not"},
	{SERVICE_WITH("payload_crc: 1"),
	 "services[0].payload_crc: '1' is not a yes or no; use true or false"},
	{SERVICE_WITH("max_request: 0"), "services[0].max_request: '0' is not a number of bytes"},
};

Test(lb_config, a_value_that_does_not_fit_its_key_is_refused)
{
	ASSERT_REFUSED(value_rows);
}

static const struct row check_rows[] = {
	{PORTS "  - {name: c0, device: net_null2, roles: [clients]}\n" SERVICES LCORES,
	 "lb.yaml:4: ports[2].name: 'c0' is ports[0]'s name; use another"},
	{PORTS "  - {name: c1, device: net_null0, roles: [clients]}\n" SERVICES LCORES,
	 "lb.yaml:4: ports[2].device: ports[0] has this device"},
	{PORTS "  - {name: c1, device: 'net_null0,copy=1', roles: [clients]}\n" SERVICES LCORES,
	 "lb.yaml:4: ports[2].device: ports[0] has this device; use another"},
	{PORTS "  - {name: f1, device: a, roles: [fabric], address: 10.9.0.1/16}\n" SERVICES LCORES,
	 "lb.yaml:4: ports[2].address: ports[1] has this address"},
	{"ports:\n" FABRIC SERVICES LCORES, "lb.yaml:2: ports: no port has the role clients"},
	{"ports:\n" CLIENTS SERVICES LCORES, "lb.yaml:2: ports: no port has the role fabric"},
	{FABRIC_WITH("mtu: 1500"),
	 "lb.yaml:3: ports[1]: a fabric port needs an address; add e.g. 'address: 10.201.0.1/24'"},
	{FABRIC_WITH("address: 10.9.0.0/24"),
	 "ports[1].address: is the network's or its broadcast address"},
	{FABRIC_WITH("address: 10.9.0.255/24"),
	 "ports[1].address: is the network's or its broadcast address"},
	{FABRIC_WITH("address: 10.9.0.1/24, gateway: 10.9.1.1"),
	 "lb.yaml:3: ports[1].gateway: outside 10.9.0.0/24; use an address in it"},
	{FABRIC_WITH("address: 10.9.130.1/23, gateway: 10.9.132.1"),
	 "ports[1].gateway: outside 10.9.130.0/23"},
	{FABRIC_WITH("address: 'fd00:0:0:5::1/64', gateway: 'fd00:0:0:6::1'"),
	 "ports[1].gateway: outside fd00:0:0:5::/64"},
	{FABRIC_WITH("address: 10.9.0.1/24, gateway: 'fd00::1'"),
	 "ports[1].gateway: outside 10.9.0.0/24"},
	{FABRIC_WITH("address: 10.9.0.1/24, gateway: 10.9.0.1"),
	 "ports[1].gateway: is the port's own address"},
	{FABRIC_WITH("address: 10.9.0.1/24, gateway: 10.9.0.255"),
	 "ports[1].gateway: is the network's or its broadcast"},
	{FABRIC_WITH("address: 10.9.0.1/24, trusted: true"),
	 "ports[1].trusted: is for ports with the roles clients and fabric; remove it"},
	{"ports:\n  - {name: b, device: d0, roles: [clients, fabric], address: "
	 "10.9.0.1/24}\n" SERVICES LCORES,
	 "lb.yaml:2: ports[0].roles: clients on the workers' segment can forge"},
	{CLIENTS_WITH("address: 10.1.0.1/24"), "ports[0].address: only fabric ports have one"},
	{CLIENTS_WITH("gateway: 10.1.0.1"), "ports[0].gateway: only fabric ports have one"},
	{PORTS SERVICES "  - {name: echo, address: 10.0.0.101, port: 1, model: a}\n" LCORES,
	 "lb.yaml:6: services[1].name: 'echo' is services[0]'s name; use another"},
	{PORTS SERVICES
	 "  - {name: b, address: '::ffff:10.0.0.100', port: 8500, model: a}\n" LCORES,
	 "lb.yaml:6: services[1].port: services[0] has this address, port and protocol"},
	{PORTS "services:\n  - {name: a, address: 10.9.0.1, port: 1, model: a}\n" LCORES,
	 "lb.yaml:5: services[0].address: is the fabric address of ports[1]; use another"},
	{PORTS SERVICES "lcores:\n  - 1\n  - 2\n  - 1\n",
	 "lb.yaml:9: lcores[2]: CPU 1 is lcores[0] already; list each once"},
	{SERVICE_WITH("max_request: 1473"),
	 "lb.yaml:5: services[0].max_request: 1473 bytes do not fit one datagram; "
	 "use 1 to 1472 (MTU 1500 less 28 of headers)"},
	{SERVICE_WITH("max_reply: 70000"),
	 "services[0].max_reply: 70000 bytes do not fit one datagram; use 1 to 1472"},
	{PORTS "services:\n  - {name: a, address: 'fd00::5', port: 1, model: a, max_reply: "
	       "1453}\n" LCORES,
	 "services[0].max_reply: 1453 bytes do not fit one datagram; use 1 to 1452 (MTU 1500 less "
	 "48 of headers)"},
	{GOOD "log: {level: debug}\nlog_level: info\n",
	 "lb.yaml:8: log_level: log.level is given, too; keep one"},
	{GOOD "control: {read_only_group: monitoring}\n",
	 "lb.yaml:7: control.read_only_group: it is for control.read_only_socket; give that, too"},
	{ZONES_WITH("name: c0, ports: [c0]"), "lb.yaml:8: zones[0].name: 'c0' is ports[0]'s name"},
	{ZONES_WITH("name: lan, ports: [f0]"),
	 "lb.yaml:8: zones[0].ports: 'f0' is the name of no port with the role clients"},
	{ZONES_WITH("name: lan, ports: [c0, c0]"), "zones[0].ports: has 'c0' twice"},
	{ZONES_WITH("name: lan, ports: [c0], vlans: [5, 6, 5]"), "zones[0].vlans: has 5 twice"},
	{ZONES_WITH("name: lan, ports: [c0], vlans: [4095]"),
	 "zones[0].vlans[0]: '4095' is not a VLAN id; use 0 to 4094"},
	{ZONES_WITH("name: lan"), "zones[0]: 'ports' is missing"},
	{ZONES_WITH("name: lan, ports: [c0], vlans: [5]}\n  - {name: lan, ports: [c0], vlans: [6]"),
	 "lb.yaml:9: zones[1].name: 'lan' is zones[0]'s name"},
	{ZONES_WITH("name: a, ports: [c0], vlans: [5, 7]}\n  - {name: b, ports: [c0], vlans: [7]"),
	 "lb.yaml:9: zones[1].ports: zones[0] has one of these ports with one of these vlans"},
	{ZONES_WITH("name: a, ports: [c0]}\n  - {name: b, ports: [c0], vlans: [7]"),
	 "lb.yaml:9: zones[1].ports: zones[0] has one of these ports with one of these vlans"},
	{GOOD "min_source_port: 0\n", "min_source_port: '0' is not a port; use 1 to 65535"},
};

Test(lb_config, keys_that_contradict_each_other_are_refused)
{
	ASSERT_REFUSED(check_rows);
}

Test(lb_config, the_smallest_file_gets_the_defaults)
{
	const struct lb_service_config *service = &config.service[0];
	const struct lb_port_config *port = config.port;
	char text[LB_ADDRESS_TEXT];

	cr_assert_eq(parse(GOOD), 0, "%s", error);
	cr_assert_eq(config.n_ports, 2);
	cr_assert_str_eq(port[0].device, "net_null0");
	cr_assert(port[0].clients && !port[0].fabric && !port[1].clients && port[1].fabric);
	cr_assert_eq(port[0].mtu, 1500);
	cr_assert_eq(port[0].rx_descriptors, 1024);
	cr_assert_eq(port[0].tx_descriptors, 1024);
	cr_assert_eq(port[0].queues, 0);
	cr_assert_str_eq(lb_address_format(&port[1].address, text, sizeof(text)), "10.9.0.1");
	cr_assert_eq(port[1].prefix, 24);
	cr_assert_eq(port[1].gateway.family, 0);

	cr_assert_eq(config.n_services, 1);
	cr_assert_str_eq(service->name, "echo");
	cr_assert_str_eq(lb_address_format(&service->vip, text, sizeof(text)), "10.0.0.100");
	cr_assert_eq(service->port, 8500);
	cr_assert_eq(service->protocol, IPPROTO_UDP);
	cr_assert_str_eq(service->model, "echo");
	cr_assert_eq(service->policy, PICK_LEAST_OUTSTANDING);
	cr_assert_eq(service->affinity, LB_AFFINITY_REQUEST);
	cr_assert_eq(service->sticky_load_percent, 125);
	cr_assert_str_empty(service->near);
	cr_assert_str_empty(service->spread);
	cr_assert_eq(config.n_labels, 0);
	cr_assert_eq(service->max_request, 1472);
	cr_assert_eq(service->max_reply, 1472);
	cr_assert_eq(service->queue, 1024);
	cr_assert_eq(service->queue_timeout_ms, 1000);
	cr_assert_eq(service->request_timeout_ms, 10000);
	cr_assert_eq(service->flow_timeout_ms, 30000);
	cr_assert_eq(service->one_way_timeout_ms, 12000);
	cr_assert_not(service->payload_crc);

	cr_assert_eq(config.n_lcores, 2);
	cr_assert_eq(config.lcore_cpu[0], 1);
	cr_assert_eq(config.lcore_cpu[1], 2);
	cr_assert(config.idle_sleep);
	cr_assert_eq(config.flows, 1048576);
	cr_assert_eq(config.memory_mb, 0);
	cr_assert_eq(config.queue_packets, 8192);
	cr_assert_eq(config.window_packets, 8192);
	cr_assert(config.hugepages);
	cr_assert_str_eq(config.control_socket, "/run/doorbell/control.sock");
	cr_assert_str_eq(config.state_file, "/var/lib/doorbell/state.json");
	cr_assert_str_empty(config.agents_ca);
	cr_assert_str_empty(config.agents_token);
	cr_assert_eq(config.lease_ms, 5000);
	cr_assert_str_eq(lb_address_format(&config.agents_address, text, sizeof(text)), "0.0.0.0");
	cr_assert_eq(config.agents_port, 4790);
	cr_assert_str_eq(lb_address_format(&config.http_address, text, sizeof(text)), "127.0.0.1");
	cr_assert_eq(config.http_port, 9180);
	cr_assert_eq(config.worker_timeout_ms, 500);
	cr_assert_eq(config.ack_timeout, 14);
	cr_assert_eq(config.retry_count, 7);
	cr_assert_eq(config.rnr_retry, 7);
	cr_assert(config.dcqcn);
	cr_assert_str_eq(config.log_level, "info");
	cr_assert_str_eq(config.access_log, "");
	cr_assert_eq(config.access_log_one_in, 1);
}

static const char everything[] =
	"ports:\n"
	"  - name: both\n"
	"    device: 'net_memif0,socket=/tmp/m'\n"
	"    roles: [clients, fabric]\n"
	"    trusted: true\n"
	"    offloads: false\n"
	"    tso: false\n"
	"    mtu: 9000\n"
	"    rx_descriptors: 512\n"
	"    tx_descriptors: 256\n"
	"    queues: 2\n"
	"    address: fd00::1/64\n"
	"    gateway: fd00::fe\n"
	"services:\n"
	"  - {name: v6, address: 2001:db8::5, port: 1, protocol: udp, framing: datagram,\n"
	"     model: 'meta/llama:8b', policy: maglev, affinity: flow, max_request: 100,\n"
	"     queue: 0, queue_timeout_ms: 1, request_timeout_ms: 2, flow_timeout_ms: 3,\n"
	"     one_way_timeout_ms: 4, payload_crc: true}\n"
	"  - {name: rr, address: 10.0.0.1, port: 65535, model: m, policy: round-robin,\n"
	"     affinity: sticky, sticky_load_percent: 100}\n"
	"lcores: [5]\n"
	"idle: poll\n"
	"flows: 64\n"
	"memory: {mb: 64, hugepages: false, queue_packets: 1024, window_packets: 256}\n"
	"control: {socket: /tmp/s, state_file: off, agents: '[::]:1', tls: {certificate: /c, key: "
	"/k, ca: /a}}\n"
	"workers: {timeout_ms: 20, lease_ms: 300}\n"
	"fabric: {ack_timeout: 8, retry_count: 0, rnr_retry: 3, congestion_control: off,\n"
	"  neighbour_probe_ms: 70}\n"
	"log: {access: /var/log/a, access_one_in: 7}\n"
	"log_level: debug\n";

Test(lb_config, every_key_reaches_its_field)
{
	const struct lb_service_config *service = config.service;
	const struct lb_port_config *port = config.port;
	char text[LB_ADDRESS_TEXT];

	cr_assert_eq(parse(everything), 0, "%s", error);
	cr_assert_str_eq(port->name, "both");
	cr_assert_str_eq(port->device, "net_memif0,socket=/tmp/m");
	cr_assert(port->clients && port->fabric && port->trusted && !port->offloads && !port->tso);
	cr_assert_eq(config.neighbour_probe_ms, 70);
	cr_assert_eq(port->mtu, 9000);
	cr_assert_eq(port->rx_descriptors, 512);
	cr_assert_eq(port->tx_descriptors, 256);
	cr_assert_eq(port->queues, 2);
	cr_assert_str_eq(lb_address_format(&port->address, text, sizeof(text)), "fd00::1");
	cr_assert_eq(port->prefix, 64);
	cr_assert_str_eq(lb_address_format(&port->gateway, text, sizeof(text)), "fd00::fe");

	cr_assert_eq(config.n_services, 2);
	cr_assert_eq(service[0].vip.family, 6);
	cr_assert_str_eq(service[0].model, "meta/llama:8b");
	cr_assert_eq(service[0].policy, PICK_MAGLEV);
	cr_assert_eq(service[0].affinity, LB_AFFINITY_FLOW);
	cr_assert_eq(service[0].max_request, 100);
	cr_assert_eq(service[0].max_reply, 9000 - 48);
	cr_assert_eq(service[0].queue, 0);
	cr_assert_eq(service[0].queue_timeout_ms, 1);
	cr_assert_eq(service[0].request_timeout_ms, 2);
	cr_assert_eq(service[0].flow_timeout_ms, 3);
	cr_assert_eq(service[0].one_way_timeout_ms, 4);
	cr_assert(service[0].payload_crc);
	cr_assert_eq(service[1].policy, PICK_ROUND_ROBIN);
	cr_assert_eq(service[1].affinity, LB_AFFINITY_STICKY);
	cr_assert_eq(service[1].sticky_load_percent, 100);
	cr_assert_eq(service[1].max_request, 9000 - 28);
	cr_assert_not(service[1].payload_crc);

	cr_assert_not(config.idle_sleep);
	cr_assert_eq(config.flows, 64);
	cr_assert_eq(config.memory_mb, 64);
	cr_assert_eq(config.queue_packets, 1024);
	cr_assert_eq(config.window_packets, 256);
	cr_assert_not(config.hugepages);
	cr_assert_str_eq(config.control_socket, "/tmp/s");
	cr_assert_str_eq(config.state_file, "");
	cr_assert_str_eq(config.agents_certificate, "/c");
	cr_assert_str_eq(config.agents_key, "/k");
	cr_assert_str_eq(config.agents_ca, "/a");
	cr_assert_eq(config.lease_ms, 300);
	cr_assert_eq(config.agents_address.family, 6);
	cr_assert_eq(config.agents_port, 1);
	cr_assert_eq(config.worker_timeout_ms, 20);
	cr_assert_eq(config.ack_timeout, 8);
	cr_assert_eq(config.retry_count, 0);
	cr_assert_eq(config.rnr_retry, 3);
	cr_assert_not(config.dcqcn);
	cr_assert_str_eq(config.log_level, "debug");
	cr_assert_str_eq(config.access_log, "/var/log/a");
	cr_assert_eq(config.access_log_one_in, 7);
}

Test(lb_config, the_limit_of_a_datagram_follows_the_smallest_clients_port)
{
	/* the fabric port's MTU does not count */
	cr_assert_eq(parse("ports:\n"
			   "  - {name: c0, device: a, roles: [clients], mtu: 9000}\n"
			   "  - {name: c1, device: b, roles: [clients], mtu: 1400}\n"
			   "  - {name: f0, device: c, roles: [fabric], mtu: 576, "
			   "address: 10.9.0.1/24}\n" SERVICES LCORES),
		     0, "%s", error);
	cr_assert_eq(config.service[0].max_request, 1372);
	cr_assert_eq(config.service[0].max_reply, 1372);
}

Test(lb_config, policies_are_called_what_workers_call_them)
{
	for (enum pick_policy policy = 0; policy < PICK_POLICIES; policy++) {
		char text[1024];

		snprintf(text, sizeof(text), SERVICE_WITH("policy: %s"), pick_policy_name(policy));
		cr_assert_eq(parse(text), 0, "%s", error);
		cr_assert_eq(config.service[0].policy, policy);
	}
}

Test(lb_config, a_point_to_point_network_may_use_both_its_addresses)
{
	cr_assert_eq(parse(FABRIC_WITH("address: 10.9.0.0/31, gateway: 10.9.0.1")), 0, "%s", error);
	cr_assert_eq(parse(FABRIC_WITH("address: 10.9.0.7/32")), 0, "%s", error);
	cr_assert_eq(parse(FABRIC_WITH("address: 'fd00::7/128'")), 0, "%s", error);
}

Test(lb_config, text_is_as_long_as_its_field)
{
	char name[LB_NAME_MAX + 1], text[1024];

	memset(name, 'n', sizeof(name));
	name[LB_NAME_MAX] = '\0';
	snprintf(text, sizeof(text), GOOD "control: {socket: /%s%.43s}\n", name, name);
	cr_assert_neq(parse(text), 0);
	snprintf(text, sizeof(text), GOOD "control: {socket: /%s%.42s}\n", name, name);
	cr_assert_eq(parse(text), 0, "%s", error);
	cr_assert_eq(strlen(config.control_socket), sizeof(config.control_socket) - 1);
}

/* One clients port, one fabric port, <n> services, in one text. */
static char *many_services(unsigned int n)
{
	size_t size = 256 + n * 96, used;
	char *text = malloc(size);

	cr_assert_not_null(text);
	used = snprintf(text, size, PORTS LCORES "services:\n");
	for (unsigned int i = 0; i < n; i++)
		used += snprintf(text + used, size - used,
				 "  - {name: s%u, address: 10.0.0.1, port: %u, model: m}\n", i,
				 i + 1);
	return text;
}

Test(lb_config, lists_end_at_their_limit)
{
	char *text = many_services(LB_SERVICES_MAX);

	cr_assert_eq(parse(text), 0, "%s", error);
	cr_assert_eq(config.n_services, LB_SERVICES_MAX);
	cr_assert_eq(config.service[LB_SERVICES_MAX - 1].port, LB_SERVICES_MAX);
	free(text);
	text = many_services(LB_SERVICES_MAX + 1);
	cr_assert_eq(parse(text), -EINVAL);
	cr_assert_not_null(strstr(error, "services: has 257 entries; use 1 to 256"), "%s", error);
	free(text);
}

Test(lb_config, anchors_without_aliases_are_fine)
{
	cr_assert_eq(parse(GOOD "idle: &idle poll\n"), 0, "%s", error);
	cr_assert_not(config.idle_sleep);
}

Test(lb_config, more_than_a_mebibyte_is_refused)
{
	size_t size = (1 << 20) + 1;
	char *text = malloc(size);

	cr_assert_not_null(text);
	memset(text, '#', size);
	cr_assert_eq(lb_config_parse("lb.yaml", text, size, &config, error, sizeof(error)), -EFBIG);
	cr_assert_str_eq(error, "lb.yaml:1: larger than 1 MiB");
	/* one byte less is one long comment: an empty file */
	cr_assert_eq(lb_config_parse("lb.yaml", text, size - 1, &config, error, sizeof(error)),
		     -EINVAL);
	free(text);
}

Test(lb_config, a_short_error_buffer_is_not_overrun)
{
	char small[16];

	memset(small, 'x', sizeof(small));
	cr_assert_eq(lb_config_parse("lb.yaml", "a: b", 4, &config, small, 8), -EINVAL);
	cr_assert_eq(strlen(small), 7);
	cr_assert_eq(small[8], 'x');
	cr_assert_eq(lb_config_parse("lb.yaml", "a: b", 4, &config, NULL, 0), -EINVAL);
}

Test(lb_config, a_file_is_loaded_by_path)
{
	char path[] = "/tmp/lb_config_test.XXXXXX", expected[64];
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, GOOD, strlen(GOOD)), (ssize_t)strlen(GOOD));
	cr_assert_eq(lb_config_load(path, &config, error, sizeof(error)), 0, "%s", error);
	cr_assert_eq(config.n_services, 1);
	cr_assert_eq(write(fd, "x: y\n", 5), 5);
	close(fd);
	cr_assert_eq(lb_config_load(path, &config, error, sizeof(error)), -EINVAL);
	snprintf(expected, sizeof(expected), "%s:7: unknown key 'x'; ", path);
	cr_assert_eq(strncmp(error, expected, strlen(expected)), 0, "%s", error);
	unlink(path);

	cr_assert_eq(lb_config_load(path, &config, error, sizeof(error)), -ENOENT);
	cr_assert_not_null(strstr(error, "cannot open: No such file"), "%s", error);
	cr_assert_eq(lb_config_load("", &config, error, sizeof(error)), -ENOENT);
	cr_assert_str_eq(error, "'': cannot open: No such file or directory");
	cr_assert_eq(lb_config_load("/tmp", &config, error, sizeof(error)), -EINVAL);
	cr_assert_str_eq(error, "/tmp: not a regular file; give one");
}

Test(lb_config, a_named_pipe_is_refused_and_holds_nobody_up, .timeout = 10)
{
	char folder[] = "/tmp/lb_config_test.XXXXXX", path[64];

	cr_assert_not_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/pipe", folder);
	cr_assert_eq(mkfifo(path, 0600), 0);
	cr_assert_eq(lb_config_load(path, &config, error, sizeof(error)), -EINVAL);
	cr_assert_not_null(strstr(error, "not a regular file"), "%s", error);
	unlink(path);
	rmdir(folder);
}

/* <n> services, the first of them with <extra> keys. */
static void parse_services(unsigned int n, const char *extra, const char *more)
{
	static char text[64 * 1024];
	int length = snprintf(text, sizeof(text), PORTS LCORES "%sservices:\n", more);

	for (unsigned int i = 0; i < n; i++)
		length +=
			snprintf(text + length, sizeof(text) - length,
				 "  - {name: s%u, address: 10.0.0.100, port: %u, model: echo%s}\n",
				 i, 1000 + i, i == 0 ? extra : "");
	cr_assert_eq(parse(text), 0, "%s", error);
}

Test(lb_config, queues_without_a_size_share_what_is_left)
{
	static const struct {
		unsigned int n;
		const char *extra, *more;
		uint32_t first, others;
	} rows[] = {
		{1, "", "", 1024, 0},
		{8, "", "", 1024, 1024},
		{9, "", "", 512, 512},
		{16, "", "", 512, 512},
		{256, "", "", 32, 32},
		{256, "", "memory: {queue_packets: 262144}\n", 1024, 1024},
		{2, ", queue: 7168", "", 7168, 1024},
		{2, ", queue: 7169", "", 7169, 512},
		{3, ", queue: 0", "", 0, 1024},
	};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		parse_services(rows[i].n, rows[i].extra, rows[i].more);
		cr_expect_eq(config.service[0].queue, rows[i].first, "row %u", i);
		for (unsigned int k = 1; k < rows[i].n; k++)
			cr_expect_eq(config.service[k].queue, rows[i].others, "row %u", i);
	}
}

Test(lb_config, the_sample_configuration_loads)
{
	cr_assert_eq(lb_config_load(SAMPLE_CONFIG, &config, error, sizeof(error)), 0, "%s", error);
	cr_assert_eq(config.n_ports, 2);
	cr_assert_eq(config.n_services, 1);
}

Test(lb_config, strangers_are_let_in_only_when_the_file_says_so)
{
	static const struct {
		const char *control;
		bool strangers;
	} rows[] = {
		{"", true},
		{"control: {agents: '10.0.0.1:4790'}\n", true},
		{"control: {agents: '[fd00::1]:4790'}\n", true},
		{"control: {agents: '10.0.0.1:4790', allow_plain: false}\n", true},
		{"control: {agents: '10.0.0.1:4790', allow_plain: true}\n", false},
		{"control: {agents: '127.0.0.1:4790'}\n", false},
		{"control: {agents: '[::1]:4790'}\n", false},
		{"control: {token_file: /t}\n", false},
		{"control: {tls: {certificate: /a, key: /b, ca: /c}}\n", false},
	};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[4096], why[512] = "";

		snprintf(text, sizeof(text), "%s%s", GOOD, rows[i].control);
		cr_assert_eq(lb_config_parse("lb.yaml", text, strlen(text), &config, error,
					     sizeof(error)),
			     0, "%s", error);
		cr_expect_eq(lb_config_lets_strangers_in(&config, why, sizeof(why)),
			     rows[i].strangers, "%s", rows[i].control);
		cr_expect(!rows[i].strangers || strstr(why, "control.allow_plain: true"), "%s",
			  why);
	}
}

Test(lb_config, faults_that_have_nothing_to_do_with_each_other_come_in_one_run)
{
	cr_assert_eq(parse("ports:\n"
			   "  - {name: p, device: d, roles: clients}\n"
			   "services:\n"
			   "  - {name: echo, address: 10.0.0.300, port: 0, model: echo}\n"
			   "flows: many\n"),
		     -EINVAL);
	cr_assert_str_eq(
		error, "lb.yaml:2: ports[0].roles: expected a list, found one value; write e.g. "
		       "'roles: [clients]'\n"
		       "lb.yaml:4: services[0].address: '10.0.0.300' is not a unicast address; use "
		       "e.g. 10.200.0.100\n"
		       "lb.yaml:4: services[0].port: '0' is not a port; use 1 to 65535\n"
		       "lb.yaml:5: flows: 'many' is not a number of flows; use 64 to 268435456\n"
		       "lb.yaml:1: 'lcores' is missing; add e.g. 'lcores: [1, 2]'");
}

Test(lb_config, the_faults_of_one_run_are_bounded_and_whole)
{
	char text[4096] = "ports:\n", *line = error;
	unsigned int lines = 1;

	for (int i = 0; i < 100; i++)
		strcat(text, "  - {nome: x}\n");
	cr_assert_eq(parse(text), -EINVAL);
	for (; (line = strchr(line, '\n')) != NULL; line++)
		lines++;
	cr_assert_leq(lines, 8);
	cr_assert_gt(lines, 1);
	cr_assert(error[strlen(error) - 1] == '?' || strstr(error, "e.g.") != NULL, "%s", error);
}

Test(lb_config, a_tab_is_named_with_what_to_use_instead)
{
	cr_assert_eq(parse("ports:\n\t- name: p\n"), -EINVAL);
	cr_assert_str_eq(error, "lb.yaml:2: not YAML: a tab indents this line; indent with spaces");
}

Test(lb_config, places_are_read_and_our_own_labels_found)
{
	cr_assert_eq(parse(SERVICE_WITH("near: rack") "labels: [rack=7, host=lb1]\n"), 0, "%s",
		     error);
	cr_assert_str_eq(config.service[0].near, "rack");
	cr_assert_str_eq(lb_config_label(&config, "rack", "me"), "7");
	cr_assert_str_eq(lb_config_label(&config, "host", "me"), "lb1");
	cr_assert_null(lb_config_label(&config, "rac", "me"));
	cr_assert_eq(parse(SERVICE_WITH("near: nvlink, affinity: sticky")), 0, "%s", error);
	cr_assert_eq(parse(SERVICE_WITH("near: host")), 0, "%s", error);
	cr_assert_str_eq(lb_config_label(&config, "host", "me"), "me");
	cr_assert_eq(parse(SERVICE_WITH("spread: host, policy: earliest-finish")), 0, "%s", error);
}
