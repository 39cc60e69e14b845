/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/config.h"
#include "config/config_schema.h"
#include "conntrack.h"
#include "runtime/log_line.h"

#define FIELD(type, member)  offsetof(struct type, member), sizeof(((struct type *)0)->member)
#define SECOND(type, member) .second = offsetof(struct type, member)

#define HOUR_MS 3600000

/* Keys that a running load balancer can change; see enum lb_config_effect. */
#define LIVE    .effect = LB_CONFIG_LIVE
#define REPLACE .effect = LB_CONFIG_REPLACE

static const struct config_choice truths[] = {{"true", true}, {"false", false}, {NULL, 0}};
static const struct config_choice idles[] = {{"sleep", true}, {"poll", false}, {NULL, 0}};
static const struct config_choice protocols[] = {
	{"udp", IPPROTO_UDP}, {"tcp", IPPROTO_TCP}, {NULL, 0}};

static const struct config_choice framings[] = {
	{"datagram", LB_FRAMING_DATAGRAM},
	{"tagged", LB_FRAMING_TAGGED},
	{"length", LB_FRAMING_LENGTH},
	{"kserve", LB_FRAMING_KSERVE},
	{NULL, 0},
};

static const struct config_choice congestions[] = {
	{"cubic", LB_CONGESTION_CUBIC},
	{"reno", LB_CONGESTION_RENO},
	{"dctcp", LB_CONGESTION_DCTCP},
	{NULL, 0},
};

static const struct config_choice log_levels[] = {{"error"}, {"warning"}, {"notice"},
						  {"info"},  {"debug"},   {NULL}};

static const struct config_choice log_formats[] = {
	{"text", LOG_FORMAT_TEXT},
	{"logfmt", LOG_FORMAT_LOGFMT},
	{"json", LOG_FORMAT_JSON},
	{NULL, 0},
};

static const struct config_choice controls[] = {{"dcqcn", true}, {"off", false}, {NULL, 0}};

static const struct config_choice tables[] = {
	{"tags", CONNTRACK_TABLE_TAGS},
	{"rte_hash", CONNTRACK_TABLE_RTE_HASH},
	{NULL, 0},
};

static const struct config_choice engines[] = {{"roce", false}, {"verbs", true}, {NULL, 0}};

static const struct config_choice roles[] = {
	{"clients", offsetof(struct lb_port_config, clients)},
	{"fabric", offsetof(struct lb_port_config, fabric)},
	{NULL, 0},
};

static const struct config_choice policies[] = {
	{"round-robin", PICK_ROUND_ROBIN},
	{"weighted", PICK_WEIGHTED},
	{"maglev", PICK_MAGLEV},
	{"least-outstanding", PICK_LEAST_OUTSTANDING},
	{"power-of-two", PICK_POWER_OF_TWO},
	{"earliest-finish", PICK_EARLIEST_FINISH},
	{NULL, 0},
};

static const struct config_choice members[] = {{"all", false}, {"assigned", true}, {NULL, 0}};
static const struct config_choice placements[] = {
	{"spread", ASSIGN_SPREAD}, {"pack", ASSIGN_PACK}, {NULL, 0}};

static const struct config_choice affinities[] = {
	{"flow", LB_AFFINITY_FLOW},
	{"request", LB_AFFINITY_REQUEST},
	{"sticky", LB_AFFINITY_STICKY},
	{NULL, 0},
};

static const struct config_key role = {NULL, &config_flag, .choices = roles, .noun = "a role"};

/* A row starts with its key, its kind and its field; all other members are named. */
static const struct config_key port_rows[] = {
	{"name", &config_name, FIELD(lb_port_config, name), .noun = "a name", .required = true,
	 .example = "clients0"},
	{"device", &config_text, FIELD(lb_port_config, device), .noun = "a device",
	 .required = true, .example = "0000:3b:00.0"},
	{"roles", &config_list, 0, 0, .max = 2, .item = &role, .required = true,
	 .example = "[clients]"},
	{"trusted", &config_choice, FIELD(lb_port_config, trusted), .noun = "a yes or no",
	 .choices = truths, .fallback = "false"},
	{"engine", &config_choice, FIELD(lb_port_config, verbs), .noun = "an RDMA engine",
	 .choices = engines, .fallback = "roce"},
	{"mtu", &config_number, FIELD(lb_port_config, mtu), .noun = "an MTU", .min = 576,
	 .max = 9600, .fallback = "1500"},
	{"rx_descriptors", &config_number, FIELD(lb_port_config, rx_descriptors),
	 .noun = "a number of descriptors", .min = 64, .max = 32768, .fallback = "1024"},
	{"tx_descriptors", &config_number, FIELD(lb_port_config, tx_descriptors),
	 .noun = "a number of descriptors", .min = 64, .max = 32768, .fallback = "1024"},
	{"queues", &config_number, FIELD(lb_port_config, queues), .noun = "a number of queues",
	 .min = 0, .max = LB_LCORES_MAX, .fallback = "0"},
	{"offloads", &config_choice, FIELD(lb_port_config, offloads), .noun = "a yes or no",
	 .choices = truths, .fallback = "true"},
	{"tso", &config_choice, FIELD(lb_port_config, tso), .noun = "a yes or no",
	 .choices = truths, .fallback = "true"},
	{"address", &config_network, FIELD(lb_port_config, address), SECOND(lb_port_config, prefix),
	 .noun = "a unicast address with its prefix length",
	 .example = "10.201.0.1/24 (prefix 1 to 32, IPv6 1 to 128)"},
	{"gateway", &config_address, FIELD(lb_port_config, gateway), .noun = "a unicast address",
	 .example = "10.201.0.254"},
	{NULL},
};

static const struct config_key service_tls_rows[] = {
	{"certificate", &config_path, FIELD(lb_service_config, tls_certificate),
	 .noun = "an absolute path", .required = true, .example = "/etc/doorbell/service.pem",
	 LIVE},
	{"key", &config_path, FIELD(lb_service_config, tls_key), .noun = "an absolute path",
	 .required = true, .example = "/etc/doorbell/service.key", LIVE},
	{NULL},
};

static const struct config_key service_rows[] = {
	{"name", &config_name, FIELD(lb_service_config, name), .noun = "a name", .required = true,
	 .example = "echo"},
	{"address", &config_address, FIELD(lb_service_config, vip), .noun = "a unicast address",
	 .required = true, .example = "10.200.0.100", REPLACE},
	{"port", &config_number, FIELD(lb_service_config, port), .noun = "a port", .min = 1,
	 .max = UINT16_MAX, .required = true, .example = "8500", REPLACE},
	{"protocol", &config_choice, FIELD(lb_service_config, protocol), .noun = "a protocol",
	 .choices = protocols, .fallback = "udp", REPLACE},
	/* tcp has another default, see config_tcp.c */
	{"framing", &config_choice, FIELD(lb_service_config, framing), .noun = "a framing",
	 .choices = framings, .fallback = "datagram",
	 .example = "datagram or tagged with protocol udp; kserve, length or tagged with tcp",
	 REPLACE},
	{"model", &config_label, FIELD(lb_service_config, model), .noun = "a model",
	 .required = true, .example = "echo", LIVE},
	{"policy", &config_choice, FIELD(lb_service_config, policy), .noun = "a policy",
	 .choices = policies, .fallback = "least-outstanding", LIVE},
	{"workers", &config_choice, FIELD(lb_service_config, assigned_only),
	 .noun = "a choice of workers", .choices = members, .fallback = "all", LIVE},
	{"min_workers", &config_number, FIELD(lb_service_config, min_workers),
	 .noun = "a number of workers", .min = 0, .max = WORKERS_MAX, .fallback = "0", LIVE},
	{"spares", &config_number, FIELD(lb_service_config, spares), .noun = "a number of workers",
	 .min = 0, .max = WORKERS_MAX, .fallback = "0", LIVE},
	{"placement", &config_choice, FIELD(lb_service_config, placement), .noun = "a placement",
	 .choices = placements, .fallback = "spread", LIVE},
	{"affinity", &config_choice, FIELD(lb_service_config, affinity), .noun = "an affinity",
	 .choices = affinities, .fallback = "request", LIVE},
	{"sticky_load_percent", &config_number, FIELD(lb_service_config, sticky_load_percent),
	 .noun = "a percentage", .min = 0, .max = 100000, .fallback = "125", LIVE},
	{"near", &config_label, FIELD(lb_service_config, near), .noun = "a label's key", LIVE},
	{"spread", &config_label, FIELD(lb_service_config, spread), .noun = "a label's key", LIVE},
	/* without a fallback: 0 until protocol and MTUs are known, see config.c, config_tcp.c */
	{"max_request", &config_size, FIELD(lb_service_config, max_request),
	 .noun = "a number of bytes", .min = 1, .max = WORKER_BYTES_MAX, LIVE},
	{"max_reply", &config_size, FIELD(lb_service_config, max_reply),
	 .noun = "a number of bytes", .min = 1, .max = WORKER_BYTES_MAX, LIVE},
	/* without a fallback: a share of memory.queue_packets, see config.c */
	{"queue", &config_number, FIELD(lb_service_config, queue), .noun = "a number of requests",
	 .min = 0, .max = 1 << 20, LIVE},
	{"queue_timeout_ms", &config_number, FIELD(lb_service_config, queue_timeout_ms),
	 .noun = "a time in ms", .min = 1, .max = HOUR_MS, .fallback = "1000", LIVE},
	{"request_timeout_ms", &config_number, FIELD(lb_service_config, request_timeout_ms),
	 .noun = "a time in ms", .min = 1, .max = HOUR_MS, .fallback = "10000", LIVE},
	/* without a fallback: 0 until the two above are known, see config.c */
	{"flow_timeout_ms", &config_number, FIELD(lb_service_config, flow_timeout_ms),
	 .noun = "a time in ms", .min = 1, .max = 24 * HOUR_MS, LIVE},
	{"one_way_timeout_ms", &config_number, FIELD(lb_service_config, one_way_timeout_ms),
	 .noun = "a time in ms", .min = 1, .max = 24 * HOUR_MS, LIVE},
	{"payload_crc", &config_choice, FIELD(lb_service_config, payload_crc),
	 .noun = "a yes or no", .choices = truths, .fallback = "false", LIVE},
	{"deadline_ms", &config_number, FIELD(lb_service_config, deadline_ms),
	 .noun = "a time in ms", .min = 0, .max = HOUR_MS, .fallback = "0", LIVE},
	{"priority", &config_number, FIELD(lb_service_config, priority), .noun = "a priority",
	 .min = 1, .max = 4, .fallback = "2", LIVE},
	{"replay", &config_number, FIELD(lb_service_config, replay),
	 .noun = "a number of further tries", .min = 0, .max = 8, .fallback = "0", LIVE},
	{"probe_bytes", &config_size, FIELD(lb_service_config, probe_bytes),
	 .noun = "a number of bytes", .min = 0, .max = WORKER_BYTES_MAX, .fallback = "0", LIVE},
	/* REPLACE: an open connection has the state of its algorithm. */
	{"congestion", &config_choice, FIELD(lb_service_config, congestion),
	 .noun = "a congestion control", .choices = congestions, .fallback = "cubic", REPLACE},
	{"ecn", &config_choice, FIELD(lb_service_config, ecn), .noun = "a yes or no",
	 .choices = truths, .fallback = "true", LIVE},
	{"tls", &config_block, .block = service_tls_rows},
	{NULL},
};

static const struct config_key zone_port = {
	NULL, &config_name, 0, LB_NAME_MAX, .noun = "a port's name", .example = "clients0"};
static const struct config_key zone_vlan = {
	NULL, &config_number, 0, sizeof(uint16_t), .noun = "a VLAN id", .min = 0, .max = 4094};

static const struct config_key zone_rows[] = {
	{"name", &config_name, FIELD(lb_zone_config, name), .noun = "a name", .required = true,
	 .example = "lan"},
	{"ports", &config_list, offsetof(struct lb_zone_config, port), LB_NAME_MAX,
	 SECOND(lb_zone_config, n_ports), .max = LB_PORTS_MAX, .item = &zone_port, .required = true,
	 .example = "[clients0, clients1]"},
	{"vlans", &config_list, offsetof(struct lb_zone_config, vlan), sizeof(uint16_t),
	 SECOND(lb_zone_config, n_vlans), .max = LB_VLANS_MAX, .item = &zone_vlan,
	 .example = "[100, 101]"},
	{NULL},
};

static const struct config_key memory_rows[] = {
	{"mb", &config_number, FIELD(lb_config, memory_mb), .noun = "a size in MiB", .min = 0,
	 .max = 1 << 20, .fallback = "0"},
	{"queue_packets", &config_number, FIELD(lb_config, queue_packets),
	 .noun = "a number of packets", .min = 0, .max = 1 << 22, .fallback = "8192"},
	{"window_packets", &config_number, FIELD(lb_config, window_packets),
	 .noun = "a number of packets", .min = 256, .max = 1 << 20, .fallback = "8192"},
	{"hugepages", &config_choice, FIELD(lb_config, hugepages), .noun = "a yes or no",
	 .choices = truths, .fallback = "true"},
	{NULL},
};

static const struct config_key tls_rows[] = {
	{"certificate", &config_path, FIELD(lb_config, agents_certificate),
	 .noun = "an absolute path", .required = true, .example = "/etc/doorbell/lb.pem"},
	{"key", &config_path, FIELD(lb_config, agents_key), .noun = "an absolute path",
	 .required = true, .example = "/etc/doorbell/lb.key"},
	{"ca", &config_path, FIELD(lb_config, agents_ca), .noun = "an absolute path",
	 .required = true, .example = "/etc/doorbell/ca.pem"},
	{NULL},
};

static const struct config_key control_rows[] = {
	{"socket", &config_path, FIELD(lb_config, control_socket), .noun = "an absolute path",
	 .example = "/run/doorbell/control.sock", .fallback = "/run/doorbell/control.sock"},
	{"socket_group", &config_label, FIELD(lb_config, control_group), .noun = "a group's name",
	 .example = "doorbell"},
	{"read_only_socket", &config_path, FIELD(lb_config, control_read_only_socket),
	 .noun = "an absolute path", .example = "/run/doorbell/read-only.sock"},
	{"read_only_group", &config_label, FIELD(lb_config, control_read_only_group),
	 .noun = "a group's name", .example = "monitoring"},
	{"agents", &config_endpoint, FIELD(lb_config, agents_address),
	 SECOND(lb_config, agents_port), .noun = "an address with a port",
	 .example = "0.0.0.0:4790 or [::]:4790", .fallback = "0.0.0.0:4790"},
	{"tls", &config_block, .block = tls_rows},
	{"token_file", &config_path, FIELD(lb_config, agents_token), .noun = "an absolute path",
	 .example = "/etc/doorbell/token"},
	{"state_file", &config_path_or_off, FIELD(lb_config, state_file),
	 .noun = "an absolute path or off", .example = "/var/lib/doorbell/state.json or off",
	 .fallback = "/var/lib/doorbell/state.json"},
	{"allow_plain", &config_choice, FIELD(lb_config, agents_plain), .noun = "a yes or no",
	 .choices = truths, .fallback = "false"},
	{"http", &config_endpoint_or_off, FIELD(lb_config, http_address),
	 SECOND(lb_config, http_port), .noun = "an address with a port",
	 .example = "127.0.0.1:9180, [::1]:9180 or off", .fallback = "127.0.0.1:9180"},
	{NULL},
};

static const struct config_key workers_rows[] = {
	{"timeout_ms", &config_number, FIELD(lb_config, worker_timeout_ms), .noun = "a time in ms",
	 .min = 20, .max = HOUR_MS, .fallback = "500", LIVE},
	{"suspect_ms", &config_number, FIELD(lb_config, suspect_ms), .noun = "a time in ms",
	 .min = 0, .max = HOUR_MS, .fallback = "50", LIVE},
	{"eject_error_percent", &config_number, FIELD(lb_config, eject_error_percent),
	 .noun = "a percentage", .min = 0, .max = 100, .fallback = "50", LIVE},
	{"eject_latency_factor", &config_number, FIELD(lb_config, eject_latency_factor),
	 .noun = "a factor", .min = 0, .max = 1000, .fallback = "0", LIVE},
	{"eject_ms", &config_number, FIELD(lb_config, eject_ms), .noun = "a time in ms", .min = 1,
	 .max = HOUR_MS, .fallback = "5000", LIVE},
	{"slow_start_ms", &config_number, FIELD(lb_config, slow_start_ms), .noun = "a time in ms",
	 .min = 0, .max = HOUR_MS, .fallback = "0", LIVE},
	{"replay_mb", &config_number, FIELD(lb_config, replay_mb), .noun = "a size in MiB",
	 .min = 0, .max = 1 << 20, .fallback = "16"},
	{"control_loss_max_percent", &config_number, FIELD(lb_config, control_loss_max_percent),
	 .noun = "a percentage", .min = 0, .max = 100, .fallback = "50", LIVE},
	{"lease_ms", &config_number, FIELD(lb_config, lease_ms), .noun = "a time in ms", .min = 300,
	 .max = HOUR_MS, .fallback = "5000"},
	{NULL},
};

static const struct config_key fabric_rows[] = {
	{"ack_timeout", &config_number, FIELD(lb_config, ack_timeout),
	 .noun = "a RoCE timeout exponent", .min = 1, .max = 31, .fallback = "14"},
	{"retry_count", &config_number, FIELD(lb_config, retry_count),
	 .noun = "a number of retries", .min = 0, .max = 7, .fallback = "7"},
	{"congestion_control", &config_choice, FIELD(lb_config, dcqcn), .noun = "a rate control",
	 .choices = controls, .fallback = "dcqcn"},
	{"rnr_retry", &config_number, FIELD(lb_config, rnr_retry), .noun = "a number of retries",
	 .min = 0, .max = 7, .fallback = "7"},
	{"neighbour_probe_ms", &config_number, FIELD(lb_config, neighbour_probe_ms),
	 .noun = "a time in ms", .min = 10, .max = 10000, .fallback = "100", LIVE},
	{NULL},
};

#define TCP(member) FIELD(lb_config, tcp.member)

static const struct config_key tcp_rows[] = {
	{"connections", &config_number, TCP(connections), .noun = "a number of connections",
	 .min = 1, .max = 1 << 24, .fallback = "65536"},
	{"connections_percent", &config_number, TCP(connections_percent), .noun = "a percentage",
	 .min = 1, .max = 100, .fallback = "50", LIVE},
	{"backlog", &config_number, TCP(backlog), .noun = "a number of connections", .min = 1,
	 .max = 1 << 20, .fallback = "1024", LIVE},
	{"buffer_mb", &config_number, TCP(buffer_mb), .noun = "a size in MiB", .min = 1,
	 .max = 1 << 20, .fallback = "256"},
	/* RFC 7323, 2.2: 65535 << 14 */
	{"window", &config_size, TCP(window), .noun = "a number of bytes", .min = 4096,
	 .max = 512 << 20, .fallback = "1MiB", LIVE},
	{"client_percent", &config_number, TCP(client_percent), .noun = "a percentage", .min = 1,
	 .max = 100, .fallback = "25", LIVE},
	{"unfinished", &config_number, TCP(unfinished), .noun = "a number of requests", .min = 1,
	 .max = 1 << 20, .fallback = "64", LIVE},
	{"min_rate", &config_size, TCP(min_rate), .noun = "a number of bytes per second", .min = 0,
	 .max = 1 << 30, .fallback = "16KiB", LIVE},
	{"pipeline", &config_number, TCP(pipeline), .noun = "a number of requests", .min = 1,
	 .max = 1 << 16, .fallback = "64", LIVE},
	{"keepalive_ms", &config_number, TCP(keepalive_ms), .noun = "a time in ms", .min = 1,
	 .max = 24 * HOUR_MS, .fallback = "60000", LIVE},
	{"keepalive_interval_ms", &config_number, TCP(keepalive_interval_ms),
	 .noun = "a time in ms", .min = 1, .max = HOUR_MS, .fallback = "10000", LIVE},
	{"keepalive_probes", &config_number, TCP(keepalive_probes), .noun = "a number of probes",
	 .min = 1, .max = 100, .fallback = "3", LIVE},
	{"idle_ms", &config_number, TCP(idle_ms), .noun = "a time in ms", .min = 0,
	 .max = 24 * HOUR_MS, .fallback = "0", LIVE},
	{"stream_heartbeat_ms", &config_number, TCP(stream_heartbeat_ms), .noun = "a time in ms",
	 .min = 0, .max = HOUR_MS, .fallback = "15000", LIVE},
	{"handshake_ms", &config_number, TCP(handshake_ms), .noun = "a time in ms", .min = 1,
	 .max = HOUR_MS, .fallback = "10000", LIVE},
	{"fin_wait_ms", &config_number, TCP(fin_wait_ms), .noun = "a time in ms", .min = 1,
	 .max = HOUR_MS, .fallback = "10000", LIVE},
	{"time_wait_ms", &config_number, TCP(time_wait_ms), .noun = "a time in ms", .min = 1,
	 .max = HOUR_MS, .fallback = "60000", LIVE},
	{"give_up_ms", &config_number, TCP(give_up_ms), .noun = "a time in ms", .min = 1,
	 .max = HOUR_MS, .fallback = "60000", LIVE},
	{"syn_retries", &config_number, TCP(syn_retries), .noun = "a number of retries", .min = 0,
	 .max = 15, .fallback = "3", LIVE},
	{"rto_min_ms", &config_number, TCP(rto_min_ms), .noun = "a time in ms", .min = 1,
	 .max = 60000, .fallback = "200", LIVE},
	{"rto_max_ms", &config_number, TCP(rto_max_ms), .noun = "a time in ms", .min = 1,
	 .max = HOUR_MS, .fallback = "60000", LIVE},
	/* RFC 9293, 3.8.6.3: less than 500 ms */
	{"ack_delay_ms", &config_number, TCP(ack_delay_ms), .noun = "a time in ms", .min = 0,
	 .max = 499, .fallback = "10", LIVE},
	{"initial_segments", &config_number, TCP(initial_segments), .noun = "a number of segments",
	 .min = 1, .max = 100, .fallback = "10", LIVE},
	{"mss", &config_number, TCP(mss), .noun = "a number of bytes", .min = 0, .max = 9560,
	 .fallback = "0", LIVE},
	{NULL},
};

static const struct config_key log_rows[] = {
	{"level", &config_word, FIELD(lb_config, log_level), .noun = "a log level",
	 .choices = log_levels, .fallback = "info", LIVE},
	{"format", &config_choice, FIELD(lb_config, log_format), .noun = "a log format",
	 .choices = log_formats, .fallback = "text", LIVE},
	{"access", &config_path_or_off, FIELD(lb_config, access_log),
	 .noun = "an absolute path or off", .example = "/var/log/doorbell/access.log or off",
	 .fallback = "off"},
	{"access_one_in", &config_number, FIELD(lb_config, access_log_one_in),
	 .noun = "a number of requests", .min = 1, .max = 1000000, .fallback = "1", LIVE},
	{NULL},
};

static const struct config_key port_item = {NULL, &config_block, .block = port_rows};
const struct config_key config_service_item = {NULL, &config_block, .block = service_rows};
static const struct config_key zone_item = {NULL, &config_block, .block = zone_rows};
/* CPU numbers end at glibc's CPU_SETSIZE. */
static const struct config_key lcore_item = {
	NULL, &config_number, 0, sizeof(uint16_t), .noun = "a CPU number", .min = 0, .max = 1023};

static const struct config_key label_item = {NULL, &config_label, 0, LB_LABEL_MAX,
					     .noun = "a label"};

static const struct config_key root_rows[] = {
	{"ports", &config_list, offsetof(struct lb_config, port), sizeof(struct lb_port_config),
	 SECOND(lb_config, n_ports), .max = LB_PORTS_MAX, .item = &port_item, .required = true,
	 .example = "[{name: port0, device: \"0000:3b:00.0\", ...}]"},
	{"services", &config_list, offsetof(struct lb_config, service),
	 sizeof(struct lb_service_config), SECOND(lb_config, n_services), .max = LB_SERVICES_MAX,
	 .item = &config_service_item, .required = true,
	 .example = "[{name: echo, address: 10.200.0.100, ...}]"},
	{"zones", &config_list, offsetof(struct lb_config, zone), sizeof(struct lb_zone_config),
	 SECOND(lb_config, n_zones), .max = LB_ZONES_MAX, .item = &zone_item,
	 .example = "[{name: lan, ports: [clients0, clients1]}]"},
	{"lcores", &config_list, offsetof(struct lb_config, lcore_cpu), sizeof(uint16_t),
	 SECOND(lb_config, n_lcores), .max = LB_LCORES_MAX, .item = &lcore_item, .required = true,
	 .example = "[1, 2]"},
	{"labels", &config_list, offsetof(struct lb_config, label), LB_LABEL_MAX,
	 SECOND(lb_config, n_labels), .max = WORKER_LABELS_MAX, .item = &label_item,
	 .example = "[host=lb1, rack=7]"},
	{"idle", &config_choice, FIELD(lb_config, idle_sleep), .noun = "a way to idle",
	 .choices = idles, .fallback = "sleep"},
	{"flows", &config_number, FIELD(lb_config, flows), .noun = "a number of flows", .min = 64,
	 .max = 1 << 28, .fallback = "1048576"},
	{"min_source_port", &config_number, FIELD(lb_config, min_source_port), .noun = "a port",
	 .min = 1, .max = UINT16_MAX, .fallback = "1024"},
	{"new_flows_per_source", &config_number, FIELD(lb_config, new_flows_per_source),
	 .noun = "a number of flows per second", .min = 0, .max = 4000000, .fallback = "0"},
	{"notices_per_source", &config_number, FIELD(lb_config, notices_per_source),
	 .noun = "a number of notices per second", .min = 1, .max = 4000000, .fallback = "100"},
	{"cluster_secret_file", &config_path, FIELD(lb_config, cluster_secret),
	 .noun = "an absolute path", .example = "/etc/doorbell/cluster.secret"},
	{"reclaim_after_ms", &config_number, FIELD(lb_config, reclaim_after_ms),
	 .noun = "a time in ms", .min = 0, .max = HOUR_MS, .fallback = "1000"},
	{"stop_timeout_ms", &config_number, FIELD(lb_config, stop_timeout_ms),
	 .noun = "a time in ms", .min = 0, .max = HOUR_MS, .fallback = "10000", LIVE},
	{"flow_table", &config_choice, FIELD(lb_config, flow_table), .noun = "a flow table",
	 .choices = tables, .fallback = "tags"},
	{"memory", &config_block, .block = memory_rows},
	{"control", &config_block, .block = control_rows},
	{"workers", &config_block, .block = workers_rows},
	{"fabric", &config_block, .block = fabric_rows},
	{"tcp", &config_block, .block = tcp_rows},
	{"log", &config_block, .block = log_rows},
	{"log_level", &config_word, FIELD(lb_config, log_level), .noun = "a log level",
	 .choices = log_levels, .alias = true},
	{NULL},
};

const struct config_key config_root = {NULL, &config_block, .block = root_rows};
