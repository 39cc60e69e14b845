/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration file: read by the schema, then checked across keys. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/config.h"
#include "config/config_places.h"
#include "config/config_schema.h"
#include "config/config_tcp.h"
#include "packet/request.h"

#define LINGER_MS     1000 /* of a default flow timeout, beyond a request's longest time */
#define ROCE_UDP_PORT 4791
#define UDP_IN_IPV4   28 /* bytes of headers in one datagram */
#define UDP_IN_IPV6   48

/* True when the first <bits> of both are equal. */
static bool same_prefix(const struct lb_address *a, const struct lb_address *b, unsigned int bits)
{
	const uint8_t *x = a->addr.s6_addr, *y = b->addr.s6_addr;

	if (memcmp(x, y, bits / 8) != 0)
		return false;
	return bits % 8 == 0 || (x[bits / 8] ^ y[bits / 8]) >> (8 - bits % 8) == 0;
}

/* The port's prefix length in the 128-bit form of its address. */
static unsigned int prefix_bits(const struct lb_port_config *port)
{
	return port->prefix + (port->address.family == 4 ? 96 : 0);
}

/* The first address of the port's network, or the last one if <last>. */
static struct lb_address network_edge(const struct lb_port_config *port, bool last)
{
	struct lb_address edge = port->address;

	for (unsigned int bit = prefix_bits(port); bit < 128; bit++) {
		uint8_t mask = 0x80 >> bit % 8;

		if (last)
			edge.addr.s6_addr[bit / 8] |= mask;
		else
			edge.addr.s6_addr[bit / 8] &= ~mask;
	}
	return edge;
}

/*
 * True for the network's own and broadcast address: IPv4 only, and not in a /31 or /32 (RFC 3021).
 */
static bool is_network_edge(const struct lb_port_config *port, const struct lb_address *address)
{
	struct lb_address first = network_edge(port, false), last = network_edge(port, true);

	return port->address.family == 4 && port->prefix <= 30 &&
	       (lb_address_equal(address, &first) || lb_address_equal(address, &last));
}

static int check_gateway(struct config_yaml *yaml, const struct lb_port_config *port,
			 unsigned int i)
{
	char network[LB_ADDRESS_TEXT];
	struct lb_address first;

	if (port->gateway.family == 0)
		return 0;
	if (port->gateway.family != port->address.family ||
	    !same_prefix(&port->gateway, &port->address, prefix_bits(port))) {
		first = network_edge(port, false);
		return config_fail_at(
			yaml, "ports", i, "gateway", "outside %s/%u; use an address in it",
			lb_address_format(&first, network, sizeof(network)), port->prefix);
	}
	if (lb_address_equal(&port->gateway, &port->address))
		return config_fail_at(yaml, "ports", i, "gateway",
				      "is the port's own address; use the router's");
	if (is_network_edge(port, &port->gateway))
		return config_fail_at(
			yaml, "ports", i, "gateway",
			"is the network's or its broadcast address; use the router's");
	return 0;
}

/* Clients on the workers' segment can forge workers' packets: refused unless declared trusted. */
static int check_trusted(struct config_yaml *yaml, const struct lb_port_config *port,
			 unsigned int i)
{
	if (port->clients && port->fabric && !port->trusted)
		return config_fail_at(
			yaml, "ports", i, "roles",
			"clients on the workers' segment can forge ARP, acknowledgements "
			"and congestion notifications; use a port for each role, or set "
			"'trusted: true' if no client there would do so");
	if (port->trusted && !(port->clients && port->fabric))
		return config_fail_at(yaml, "ports", i, "trusted",
				      "is for ports with the roles clients and fabric; remove it");
	return 0;
}

static int check_fabric_address(struct config_yaml *yaml, const struct lb_port_config *port,
				unsigned int i)
{
	if (port->verbs && (port->clients || !port->fabric))
		return config_fail_at(
			yaml, "ports", i, "engine",
			"verbs is for ports whose only role is fabric; clients need a DPDK "
			"device");
	if (port->verbs && port->gateway.family != 0)
		return config_fail_at(yaml, "ports", i, "gateway",
				      "the kernel routes for engine verbs; remove it");
	if (!port->fabric && port->address.family != 0)
		return config_fail_at(
			yaml, "ports", i, "address",
			"only fabric ports have one; remove it or add fabric to roles");
	if (!port->fabric && port->gateway.family != 0)
		return config_fail_at(
			yaml, "ports", i, "gateway",
			"only fabric ports have one; remove it or add fabric to roles");
	if (!port->fabric)
		return 0;
	if (port->address.family == 0)
		return config_fail_at(
			yaml, "ports", i, NULL,
			"a fabric port needs an address; add e.g. 'address: 10.201.0.1/24'");
	if (is_network_edge(port, &port->address))
		return config_fail_at(
			yaml, "ports", i, "address",
			"is the network's or its broadcast address; use another in it");
	return check_gateway(yaml, port, i);
}

/* A device string is a name or PCI address, and then its arguments. */
static bool is_same_device(const char *a, const char *b)
{
	size_t length = strcspn(a, ",");

	return length == strcspn(b, ",") && strncmp(a, b, length) == 0;
}

static int check_port_pair(struct config_yaml *yaml, const struct lb_config *config, unsigned int i,
			   unsigned int earlier)
{
	const struct lb_port_config *a = &config->port[earlier], *b = &config->port[i];

	if (strcmp(a->name, b->name) == 0)
		return config_fail_at(yaml, "ports", i, "name",
				      "'%s' is ports[%u]'s name; use another", b->name, earlier);
	if (is_same_device(a->device, b->device))
		return config_fail_at(
			yaml, "ports", i, "device",
			"ports[%u] has this device; use another, or give one port both roles",
			earlier);
	if (a->fabric && b->fabric && lb_address_equal(&a->address, &b->address))
		return config_fail_at(yaml, "ports", i, "address",
				      "ports[%u] has this address; use another", earlier);
	return 0;
}

static int check_ports(struct config_yaml *yaml, const struct lb_config *config)
{
	size_t line = config_node_line(
		config_find(yaml, yaml_document_get_root_node(&yaml->document), "ports"));
	bool clients = false, fabric = false;

	for (unsigned int i = 0; i < config->n_ports; i++) {
		int rc = check_fabric_address(yaml, &config->port[i], i);

		if (rc == 0)
			rc = check_trusted(yaml, &config->port[i], i);
		for (unsigned int earlier = 0; rc == 0 && earlier < i; earlier++)
			rc = check_port_pair(yaml, config, i, earlier);
		if (rc < 0)
			return rc;
		clients |= config->port[i].clients;
		fabric |= config->port[i].fabric;
	}
	if (!clients)
		return config_fail(yaml, line, "ports",
				   "no port has the role clients; add it to the port they reach");
	if (!fabric)
		return config_fail(yaml, line, "ports",
				   "no port has the role fabric; add it to the workers' port");
	return 0;
}

/* --- zones ------------------------------------------------------------------------------------ */

static int check_zone_port(struct config_yaml *yaml, const struct lb_config *config, unsigned int i,
			   const char *name)
{
	const struct lb_zone_config *zone = &config->zone[i];
	unsigned int times = 0;

	for (unsigned int k = 0; k < zone->n_ports; k++)
		times += strcmp(zone->port[k], name) == 0;
	if (times > 1)
		return config_fail_at(yaml, "zones", i, "ports", "has '%s' twice; list each once",
				      name);
	for (unsigned int p = 0; p < config->n_ports; p++)
		if (config->port[p].clients && strcmp(config->port[p].name, name) == 0)
			return 0;
	return config_fail_at(yaml, "zones", i, "ports",
			      "'%s' is the name of no port with the role clients; use one of those",
			      name);
}

static bool shares_port(const struct lb_zone_config *a, const struct lb_zone_config *b)
{
	for (unsigned int i = 0; i < a->n_ports; i++)
		for (unsigned int k = 0; k < b->n_ports; k++)
			if (strcmp(a->port[i], b->port[k]) == 0)
				return true;
	return false;
}

static bool shares_vlan(const struct lb_zone_config *a, const struct lb_zone_config *b)
{
	for (unsigned int i = 0; i < a->n_vlans; i++)
		for (unsigned int k = 0; k < b->n_vlans; k++)
			if (a->vlan[i] == b->vlan[k])
				return true;
	return a->n_vlans == 0 || b->n_vlans == 0;
}

static int check_zone_pair(struct config_yaml *yaml, const struct lb_config *config, unsigned int i,
			   unsigned int earlier)
{
	const struct lb_zone_config *a = &config->zone[earlier], *b = &config->zone[i];

	if (strcmp(a->name, b->name) == 0)
		return config_fail_at(yaml, "zones", i, "name",
				      "'%s' is zones[%u]'s name; use another", b->name, earlier);
	if (shares_port(a, b) && shares_vlan(a, b))
		return config_fail_at(
			yaml, "zones", i, "ports",
			"zones[%u] has one of these ports with one of these vlans; each can "
			"be in one zone only",
			earlier);
	return 0;
}

static int check_zone(struct config_yaml *yaml, const struct lb_config *config, unsigned int i)
{
	const struct lb_zone_config *zone = &config->zone[i];
	int rc = 0;

	for (unsigned int p = 0; p < config->n_ports; p++)
		if (strcmp(config->port[p].name, zone->name) == 0)
			return config_fail_at(yaml, "zones", i, "name",
					      "'%s' is ports[%u]'s name; use another", zone->name,
					      p);
	for (unsigned int k = 0; rc == 0 && k < zone->n_ports; k++)
		rc = check_zone_port(yaml, config, i, zone->port[k]);
	for (unsigned int k = 0; rc == 0 && k < zone->n_vlans; k++)
		for (unsigned int first = 0; rc == 0 && first < k; first++)
			if (zone->vlan[first] == zone->vlan[k])
				rc = config_fail_at(yaml, "zones", i, "vlans",
						    "has %u twice; list each once", zone->vlan[k]);
	for (unsigned int earlier = 0; rc == 0 && earlier < i; earlier++)
		rc = check_zone_pair(yaml, config, i, earlier);
	return rc;
}

static int check_zones(struct config_yaml *yaml, const struct lb_config *config)
{
	int rc = 0;

	for (unsigned int i = 0; rc == 0 && i < config->n_zones; i++)
		rc = check_zone(yaml, config, i);
	return rc;
}

static int check_service_pair(struct config_yaml *yaml, const struct lb_config *config,
			      unsigned int i, unsigned int earlier)
{
	const struct lb_service_config *a = &config->service[earlier], *b = &config->service[i];

	if (strcmp(a->name, b->name) == 0)
		return config_fail_at(yaml, "services", i, "name",
				      "'%s' is services[%u]'s name; use another", b->name, earlier);
	if (!lb_address_equal(&a->vip, &b->vip) || a->port != b->port || a->protocol != b->protocol)
		return 0;
	return config_tcp_check_beside(yaml, config, i, earlier);
}

static int check_services(struct config_yaml *yaml, const struct lb_config *config)
{
	for (unsigned int i = 0; i < config->n_services; i++) {
		int rc = 0;

		if (config->service[i].port == ROCE_UDP_PORT &&
		    config->service[i].protocol == IPPROTO_UDP)
			return config_fail_at(yaml, "services", i, "port",
					      "%u is RoCEv2's own port; use another",
					      ROCE_UDP_PORT);
		for (unsigned int p = 0; rc == 0 && p < config->n_ports; p++)
			if (lb_address_equal(&config->service[i].vip, &config->port[p].address))
				rc = config_fail_at(
					yaml, "services", i, "address",
					"is the fabric address of ports[%u]; use another", p);
		for (unsigned int earlier = 0; rc == 0 && earlier < i; earlier++)
			rc = check_service_pair(yaml, config, i, earlier);
		if (rc == 0)
			rc = config_tcp_check_beside_many(yaml, config, i);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* 0 (left out) becomes the largest size that fits without fragments; a larger one is refused. */
static int fit_datagram(struct config_yaml *yaml, unsigned int service, const char *key,
			uint32_t *bytes, uint16_t mtu, unsigned int headers)
{
	uint32_t limit = mtu - headers;

	if (*bytes > limit)
		return config_fail_at(
			yaml, "services", service, key,
			"%u bytes do not fit one datagram; use 1 to %u (MTU %u less %u of "
			"headers), or protocol: tcp",
			*bytes, limit, mtu, headers);
	if (*bytes == 0)
		*bytes = limit;
	return 0;
}

/* A flow must outlive its requests, or their answers find no flow. 0 means left out. */
static int fit_flow_timeout(struct config_yaml *yaml, unsigned int i, const char *key, uint32_t *ms,
			    uint32_t usual, const struct lb_service_config *service)
{
	uint32_t request = service->queue_timeout_ms + service->request_timeout_ms;

	if (*ms == 0)
		*ms = usual > request + LINGER_MS ? usual : request + LINGER_MS;
	if (*ms < request)
		return config_fail_at(
			yaml, "services", i, key,
			"%u ms is less than a request may take (queue_timeout_ms + "
			"request_timeout_ms), so late answers would find no flow; use %u or "
			"more",
			*ms, request);
	return 0;
}

static int fit_timeouts(struct config_yaml *yaml, struct lb_config *config)
{
	for (unsigned int i = 0; i < config->n_services; i++) {
		struct lb_service_config *s = &config->service[i];
		int rc =
			fit_flow_timeout(yaml, i, "flow_timeout_ms", &s->flow_timeout_ms, 30000, s);

		if (rc == 0)
			rc = fit_flow_timeout(yaml, i, "one_way_timeout_ms", &s->one_way_timeout_ms,
					      5000, s);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* A service that has all workers of its model has none left to step in as spares. */
static int check_spares(struct config_yaml *yaml, unsigned int i, const struct lb_service_config *s)
{
	const char *key = s->spares > 0 ? "spares" : "min_workers";

	if (!s->assigned_only && (s->spares > 0 || s->min_workers > 0))
		return config_fail_at(
			yaml, "services", i, key,
			"this service has all workers of its model; set workers: assigned, "
			"or leave %s out",
			key);
	if (s->spares > 0 && s->min_workers == 0)
		return config_fail_at(yaml, "services", i, key,
				      "spares step in when there are fewer than min_workers; set "
				      "min_workers, too");
	if (!s->assigned_only && config_given(yaml, "services", i, "placement"))
		return config_fail_at(
			yaml, "services", i, "placement",
			"this service has all workers of its model; set workers: assigned, "
			"or leave placement out");
	if (s->spares == 0 && s->placement != ASSIGN_SPREAD)
		return config_fail_at(yaml, "services", i, "placement",
				      "it says which spares step in, and there are none; set "
				      "spares and min_workers, too");
	return 0;
}

/* A worker with fewer outstanding requests than the mean cannot be saturated. */
static int check_sticky(struct config_yaml *yaml, unsigned int i, const struct lb_service_config *s)
{
	if (s->affinity != LB_AFFINITY_STICKY && s->near[0] == '\0' && s->spread[0] == '\0' &&
	    config_given(yaml, "services", i, "sticky_load_percent"))
		return config_fail_at(yaml, "services", i, "sticky_load_percent",
				      "it is for affinity: sticky, near and spread; set one of "
				      "them, or leave it out");
	if (s->sticky_load_percent == 0 || s->sticky_load_percent >= 100)
		return 0;
	return config_fail_at(
		yaml, "services", i, "sticky_load_percent",
		"%u %% of the mean is less than all have when loads are equal; use 100 or "
		"more, or 0 for no bound",
		s->sticky_load_percent);
}

/* Datagrams are kept in memory of this key; connections keep their own bytes. */
static int check_replay(struct config_yaml *yaml, const struct lb_config *config, unsigned int i)
{
	if (config->service[i].replay == 0 || config->replay_mb > 0 ||
	    config->service[i].protocol == IPPROTO_TCP)
		return 0;
	return config_fail_at(yaml, "services", i, "replay",
			      "workers.replay_mb: 0 leaves no room to keep requests for it; raise "
			      "that, or leave replay out");
}

static int fit_datagrams(struct config_yaml *yaml, struct lb_config *config, unsigned int i)
{
	struct lb_service_config *service = &config->service[i];
	unsigned int headers = service->vip.family == 4 ? UDP_IN_IPV4 : UDP_IN_IPV6;
	uint16_t mtu = lb_config_clients_mtu(config);
	int rc;

	if (service->framing == LB_FRAMING_TAGGED)
		headers += LB_REQUEST_LENGTH;
	rc = fit_datagram(yaml, i, "max_request", &service->max_request, mtu, headers);
	if (rc == 0)
		rc = fit_datagram(yaml, i, "max_reply", &service->max_reply, mtu, headers);
	return rc;
}

static int fit_services(struct config_yaml *yaml, struct lb_config *config)
{
	for (unsigned int i = 0; i < config->n_services; i++) {
		struct lb_service_config *service = &config->service[i];
		int rc = service->protocol == IPPROTO_TCP ? config_tcp_fit_sizes(yaml, config, i)
							  : fit_datagrams(yaml, config, i);

		if (rc == 0 && service->probe_bytes > service->max_request)
			rc = config_fail_at(
				yaml, "services", i, "probe_bytes",
				"%u bytes are more than max_request, which is %u; use 0 to %u",
				service->probe_bytes, service->max_request, service->max_request);
		if (rc == 0)
			rc = check_spares(yaml, i, service);
		if (rc == 0)
			rc = check_sticky(yaml, i, service);
		if (rc == 0)
			rc = check_replay(yaml, config, i);
		if (rc < 0)
			return rc;
	}
	return 0;
}

#define QUEUE_USUAL 1024u
/*
 * Places of the smallest queue for a service without the key; a file that leaves fewer is refused.
 */
#define QUEUE_LEAST 16u

/* The share of <packets> of each of <n> services: a power of two, so that adding or removing a
 * service rarely changes the shares of the others. */
static uint32_t equal_share(uint32_t packets, unsigned int n)
{
	uint32_t share = QUEUE_USUAL;

	while (share > 0 && (uint64_t)share * n > packets)
		share /= 2;
	return share;
}

/* Queues are not shared between services, so there must be packets for all of them at once. */
static int fit_queues(struct config_yaml *yaml, struct lb_config *config)
{
	unsigned int unnamed = 0, last = 0;
	uint64_t sum = 0;
	uint32_t share;

	for (unsigned int i = 0; i < config->n_services; i++) {
		if (!config_given(yaml, "services", i, "queue")) {
			unnamed++;
			continue;
		}
		if (sum <= config->queue_packets)
			last = i;
		sum += config->service[i].queue;
	}
	if (sum > config->queue_packets)
		return config_fail_at(
			yaml, "services", last, "queue",
			"the services' queues hold %lu requests together, and there are "
			"packets for %u; lower queues, or use memory.queue_packets: %lu",
			sum, config->queue_packets, sum + unnamed * QUEUE_USUAL);
	share = equal_share(config->queue_packets - sum, unnamed);
	for (unsigned int i = 0; i < config->n_services; i++) {
		if (config_given(yaml, "services", i, "queue"))
			continue;
		if (share < QUEUE_LEAST)
			return config_fail_at(
				yaml, "services", i, NULL,
				"memory.queue_packets: %u leaves %lu packets for queues "
				"that no size is given for, too few for %u; lower the other "
				"queues, or use %lu",
				config->queue_packets, config->queue_packets - sum, unnamed,
				sum + unnamed * QUEUE_USUAL);
		config->service[i].queue = share;
	}
	return 0;
}

static int check_lcores(struct config_yaml *yaml, const struct lb_config *config)
{
	for (unsigned int i = 0; i < config->n_lcores; i++)
		for (unsigned int earlier = 0; earlier < i; earlier++)
			if (config->lcore_cpu[i] == config->lcore_cpu[earlier])
				return config_fail_at(
					yaml, "lcores", i, NULL,
					"CPU %u is lcores[%u] already; list each once",
					config->lcore_cpu[i], earlier);
	return 0;
}

/* With both, an agent could not know which one it needs. */
static int check_trust(struct config_yaml *yaml, const struct lb_config *config)
{
	yaml_node_t *root = yaml_document_get_root_node(&yaml->document), *node;

	if (config->agents_ca[0] == '\0' || config->agents_token[0] == '\0')
		return 0;
	node = config_find(yaml, config_find(yaml, root, "control"), "token_file");
	return config_fail(yaml, config_node_line(node), "control.token_file",
			   "agents have certificates (tls) or a token, not both; remove one");
}

/* The key's node, or NULL if the file does not have it. */
static yaml_node_t *find_in(struct config_yaml *yaml, const char *block, const char *key)
{
	yaml_node_t *node = config_find(yaml, yaml_document_get_root_node(&yaml->document), block);

	return node == NULL ? NULL : config_find(yaml, node, key);
}

static int check_log(struct config_yaml *yaml, const struct lb_config *config)
{
	yaml_node_t *node = find_in(yaml, "log", "access_one_in");

	if (config->access_log[0] == '\0' && config->access_log_one_in != 1)
		return config_fail(yaml, config_node_line(node), "log.access_one_in",
				   "it is for log.access; give that, too");
	node = config_find(yaml, yaml_document_get_root_node(&yaml->document), "log_level");
	if (node == NULL || find_in(yaml, "log", "level") == NULL)
		return 0;
	return config_fail(yaml, config_node_line(node), "log_level",
			   "log.level is given, too; keep one");
}

/* The default is no mistake where the timeout is short: such a worker is dead first. */
static int check_suspect(struct config_yaml *yaml, const struct lb_config *config)
{
	yaml_node_t *node = find_in(yaml, "workers", "suspect_ms");

	if (node == NULL || config->suspect_ms < config->worker_timeout_ms)
		return 0;
	return config_fail(
		yaml, config_node_line(node), "workers.suspect_ms",
		"%u ms: a worker is dead by then (timeout_ms: %u); use less, or 0 for never",
		config->suspect_ms, config->worker_timeout_ms);
}

/* Refuse keys that contradict each other, and those that mean nothing without another. */
static int check_pairs(struct config_yaml *yaml, const struct lb_config *config)
{
	int rc = check_log(yaml, config);

	if (rc == 0)
		rc = check_suspect(yaml, config);
	if (rc < 0 || config->control_read_only_group[0] == '\0' ||
	    config->control_read_only_socket[0] != '\0')
		return rc;
	return config_fail(yaml, config_node_line(find_in(yaml, "control", "read_only_group")),
			   "control.read_only_group",
			   "it is for control.read_only_socket; give that, too");
}

bool lb_config_lets_strangers_in(const struct lb_config *config, char *why, size_t size)
{
	const struct lb_address *at = &config->agents_address;
	bool loopback =
		at->family == 4 ? at->addr.s6_addr[12] == 127 : IN6_IS_ADDR_LOOPBACK(&at->addr);
	char address[LB_ADDRESS_TEXT];

	if (loopback || config->agents_plain || config->agents_ca[0] != '\0' ||
	    config->agents_token[0] != '\0')
		return false;
	snprintf(why, size,
		 "control.agents: any host that reaches %s port %u could register a worker and "
		 "read requests; set control.tls or control.token_file (deploy/make-ca.sh makes "
		 "their files), or control.allow_plain: true where all hosts on that network are "
		 "trusted",
		 lb_address_format(at, address, sizeof(address)), config->agents_port);
	return true;
}

uint16_t lb_config_clients_mtu(const struct lb_config *config)
{
	uint16_t mtu = UINT16_MAX;

	for (unsigned int i = 0; i < config->n_ports; i++)
		if (config->port[i].clients && config->port[i].mtu < mtu)
			mtu = config->port[i].mtu;
	return mtu;
}

uint64_t lb_tcp_client_share(const struct lb_config *config)
{
	uint64_t bytes = (uint64_t)config->tcp.buffer_mb << 20;

	return bytes * config->tcp.client_percent / 100 / config->n_lcores;
}

int lb_config_parse(const char *name, const char *text, size_t length, struct lb_config *config,
		    char *error, size_t error_size)
{
	struct config_yaml yaml = {.name = name, .error = error, .error_size = error_size};
	int rc;

	memset(config, 0, sizeof(*config));
	rc = config_yaml_open(&yaml, text, length);
	if (rc < 0)
		return rc;
	rc = config_read(&yaml, &config_root, config);
	if (rc == 0)
		rc = check_ports(&yaml, config);
	if (rc == 0)
		rc = check_zones(&yaml, config);
	if (rc == 0)
		rc = check_services(&yaml, config);
	if (rc == 0)
		rc = config_places_check(&yaml, config);
	if (rc == 0)
		rc = config_tcp_check(&yaml, config);
	if (rc == 0)
		rc = config_tcp_fit_keys(&yaml, config);
	if (rc == 0)
		rc = fit_services(&yaml, config);
	if (rc == 0)
		rc = fit_timeouts(&yaml, config);
	if (rc == 0)
		rc = fit_queues(&yaml, config);
	if (rc == 0)
		rc = check_lcores(&yaml, config);
	if (rc == 0)
		rc = check_trust(&yaml, config);
	if (rc == 0)
		rc = check_pairs(&yaml, config);
	config_yaml_close(&yaml);
	return rc;
}

/* Open regular files only: reading a named pipe or a terminal would block the control thread, which
 * also reads while it serves.
 */
static int config_open_regular(const char *path, char *error, size_t error_size)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC), rc;
	struct stat st;

	if (fd < 0) {
		rc = -errno;
		snprintf(error, error_size, "%s: cannot open: %s", path[0] != '\0' ? path : "''",
			 strerror(-rc));
		return rc;
	}
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return fd;
	snprintf(error, error_size, "%s: not a regular file; give one", path);
	close(fd);
	return -EINVAL;
}

int lb_config_load(const char *path, struct lb_config *config, char *error, size_t error_size)
{
	const size_t room = CONFIG_BYTES_MAX + 1; /* one byte more shows a file that is too long */
	int rc = config_open_regular(path, error, error_size);
	size_t length;
	FILE *file;
	char *text;

	if (rc < 0)
		return rc;
	file = fdopen(rc, "r");
	if (file == NULL) {
		snprintf(error, error_size, "%s: out of memory", path);
		close(rc);
		return -ENOMEM;
	}
	rc = 0;
	text = malloc(room);
	if (text == NULL) {
		snprintf(error, error_size, "%s: out of memory", path);
		fclose(file);
		return -ENOMEM;
	}
	length = fread(text, 1, room, file);
	if (ferror(file)) {
		rc = -errno;
		snprintf(error, error_size, "%s: cannot read: %s", path, strerror(-rc));
	} else {
		rc = lb_config_parse(path, text, length, config, error, error_size);
	}
	free(text);
	fclose(file);
	return rc;
}
