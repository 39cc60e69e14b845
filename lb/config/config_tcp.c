/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/config_tcp.h"

#include <string.h>

#include "config/config_schema.h"

#define TCP_IN_IPV4   40  /* bytes of headers in one segment, without options */
#define MSS_MIN       536 /* RFC 9293, 3.7.1: what every IPv4 host takes */
#define MESSAGE_USUAL (1u << 20)

/* config_fail() at the line of tcp.<key>, or where it would be. */
#define tcp_fail(yaml, key, ...) config_fail(yaml, tcp_line(yaml, key), "tcp." key, __VA_ARGS__)

static size_t tcp_line(struct config_yaml *yaml, const char *key)
{
	yaml_node_t *root = yaml_document_get_root_node(&yaml->document);
	yaml_node_t *block = config_find(yaml, root, "tcp");
	yaml_node_t *node = block == NULL ? NULL : config_find(yaml, block, key);

	return config_node_line(node != NULL ? node : block != NULL ? block : root);
}

/* The share of one client, and how it comes about: "32MiB (25 % of 256 MiB over 2 lcores)". */
static const char *share_text(const struct lb_config *config, char *buf, size_t size)
{
	uint64_t share = lb_tcp_client_share(config);
	char bytes[CONFIG_SIZE_TEXT];

	if (share > 1024)
		share -= share % 1024;
	snprintf(buf, size, "%s (client_percent %u of buffer_mb %u, over %u lcores)",
		 config_size_text(share, bytes), config->tcp.client_percent, config->tcp.buffer_mb,
		 config->n_lcores);
	return buf;
}

/* The buffer_mb that gives one client <bytes>. */
static uint64_t buffer_for(const struct lb_config *config, uint64_t bytes)
{
	uint64_t percent = config->tcp.client_percent;

	return ((bytes * config->n_lcores * 100 + percent - 1) / percent + (1 << 20) - 1) >> 20;
}

static int tcp_check_window(struct config_yaml *yaml, const struct lb_config *config)
{
	const struct lb_tcp_config *tcp = &config->tcp;
	char window[CONFIG_SIZE_TEXT], share[128];

	if (tcp->window <= lb_tcp_client_share(config))
		return 0;
	return tcp_fail(yaml, "window",
			"%s is more than one client may hold on an lcore, %s; use less, or "
			"tcp.buffer_mb: %lu",
			config_size_text(tcp->window, window),
			share_text(config, share, sizeof(share)),
			(unsigned long)buffer_for(config, tcp->window));
}

static int tcp_check_mss(struct config_yaml *yaml, const struct lb_config *config)
{
	unsigned int mtu = lb_config_clients_mtu(config), limit = mtu - TCP_IN_IPV4;
	unsigned int mss = config->tcp.mss;

	if (mss == 0 || (mss >= MSS_MIN && mss <= limit))
		return 0;
	return tcp_fail(yaml, "mss",
			"%u bytes: use %u to %u (MTU %u of the clients ports less %u of headers), "
			"or 0 for the largest",
			mss, limit < MSS_MIN ? limit : MSS_MIN, limit, mtu, TCP_IN_IPV4);
}

int config_tcp_check(struct config_yaml *yaml, const struct lb_config *config)
{
	const struct lb_tcp_config *tcp = &config->tcp;
	int rc = tcp_check_window(yaml, config);

	if (rc == 0)
		rc = tcp_check_mss(yaml, config);
	if (rc < 0)
		return rc;
	if (tcp->rto_max_ms < tcp->rto_min_ms)
		return tcp_fail(yaml, "rto_max_ms", "%u ms is less than rto_min_ms, %u; use more",
				tcp->rto_max_ms, tcp->rto_min_ms);
	if (tcp->give_up_ms <= tcp->rto_min_ms)
		return tcp_fail(yaml, "give_up_ms",
				"%u ms ends a connection before anything is sent again "
				"(rto_min_ms: %u); use more",
				tcp->give_up_ms, tcp->rto_min_ms);
	return 0;
}

static const char *protocol_name(const struct lb_service_config *s)
{
	return s->protocol == IPPROTO_TCP ? "tcp" : "udp";
}

static int fit_framing(struct config_yaml *yaml, struct lb_service_config *s, unsigned int i)
{
	static const char *const names[] = {
		[LB_FRAMING_DATAGRAM] = "datagram",
		[LB_FRAMING_LENGTH] = "length",
		[LB_FRAMING_KSERVE] = "kserve",
	};
	bool tcp = s->protocol == IPPROTO_TCP;

	if (tcp && !config_given(yaml, "services", i, "framing"))
		s->framing = LB_FRAMING_LENGTH;
	if (s->framing == LB_FRAMING_TAGGED || tcp == (s->framing != LB_FRAMING_DATAGRAM))
		return 0;
	return config_fail_at(yaml, "services", i, "framing",
			      "'%s' is for protocol %s; use %s or tagged with protocol %s",
			      names[s->framing], tcp ? "udp" : "tcp",
			      tcp ? "kserve, length" : "datagram", protocol_name(s));
}

static int refuse_key(struct config_yaml *yaml, const struct lb_service_config *s, unsigned int i,
		      const char *key, uint8_t protocol, const char *more)
{
	if (s->protocol == protocol || !config_given(yaml, "services", i, key))
		return 0;
	return config_fail_at(yaml, "services", i, key,
			      "is for protocol %s, and this service has %s; remove it%s",
			      protocol == IPPROTO_TCP ? "tcp" : "udp", protocol_name(s), more);
}

static int fit_keys(struct config_yaml *yaml, struct lb_service_config *s, unsigned int i)
{
	static const char timeouts[] = " (tcp.keepalive_ms and tcp.idle_ms end connections)";
	int rc = fit_framing(yaml, s, i);

	if (rc == 0)
		rc = refuse_key(yaml, s, i, "congestion", IPPROTO_TCP, "");
	if (rc == 0)
		rc = refuse_key(yaml, s, i, "ecn", IPPROTO_TCP, "");
	if (rc == 0)
		rc = refuse_key(yaml, s, i, "tls", IPPROTO_TCP, "");
	if (rc == 0)
		rc = refuse_key(yaml, s, i, "flow_timeout_ms", IPPROTO_UDP, timeouts);
	if (rc == 0)
		rc = refuse_key(yaml, s, i, "one_way_timeout_ms", IPPROTO_UDP, timeouts);
	if (rc == 0 && s->congestion == LB_CONGESTION_DCTCP && !s->ecn)
		rc = config_fail_at(yaml, "services", i, "ecn",
				    "congestion: dctcp works by ECN's marks; use true, or another "
				    "congestion control");
	return rc;
}

int config_tcp_fit_keys(struct config_yaml *yaml, struct lb_config *config)
{
	int rc = 0;

	for (unsigned int i = 0; rc == 0 && i < config->n_services; i++) {
		rc = fit_keys(yaml, &config->service[i], i);
		config->tcp.used |= config->service[i].protocol == IPPROTO_TCP;
		config->tcp.secured |= lb_service_has_tls(&config->service[i]);
	}
	return rc;
}

/* A probe is one packet. */
static int tcp_check_probe(struct config_yaml *yaml, const struct lb_config *config, unsigned int i)
{
	uint32_t limit = lb_config_clients_mtu(config) - TCP_IN_IPV4;

	if (config->service[i].probe_bytes <= limit)
		return 0;
	return config_fail_at(yaml, "services", i, "probe_bytes",
			      "%u bytes do not fit one packet; use 0 to %u",
			      config->service[i].probe_bytes, limit);
}

int config_tcp_fit_sizes(struct config_yaml *yaml, struct lb_config *config, unsigned int i)
{
	uint64_t share = lb_tcp_client_share(config);
	struct lb_service_config *s = &config->service[i];
	char reply[CONFIG_SIZE_TEXT], text[128];

	if (s->max_request == 0)
		s->max_request = MESSAGE_USUAL;
	if (s->max_reply == 0)
		s->max_reply = share < MESSAGE_USUAL ? share : MESSAGE_USUAL;
	/* A worker sends a reply at its own pace, so all of it may wait for the client. */
	if (s->max_reply > share)
		return config_fail_at(yaml, "services", i, "max_reply",
				      "%s is more than one client may hold on an lcore, %s; use "
				      "less, or tcp.buffer_mb: %lu",
				      config_size_text(s->max_reply, reply),
				      share_text(config, text, sizeof(text)),
				      (unsigned long)buffer_for(config, s->max_reply));
	return tcp_check_probe(yaml, config, i);
}

/* Two services of one address: the path of a request names a model, which says whose it is. */
int config_tcp_check_beside(struct config_yaml *yaml, const struct lb_config *config,
			    unsigned int i, unsigned int earlier)
{
	const struct lb_service_config *a = &config->service[earlier], *b = &config->service[i];

	if (a->framing != LB_FRAMING_KSERVE || b->framing != LB_FRAMING_KSERVE)
		return config_fail_at(
			yaml, "services", i, "port",
			"services[%u] has this address, port and protocol; use another port, or "
			"framing: kserve for both, which may share them",
			earlier);
	if (strcmp(a->model, b->model) == 0)
		return config_fail_at(
			yaml, "services", i, "model",
			"services[%u] has this model, address and port; use another of them",
			earlier);
	if (a->congestion != b->congestion || a->ecn != b->ecn)
		return config_fail_at(
			yaml, "services", i, a->ecn != b->ecn ? "ecn" : "congestion",
			"services[%u] has another value, and its connections are the same; use one "
			"value for both",
			earlier);
	if (strcmp(a->tls_certificate, b->tls_certificate) != 0 ||
	    strcmp(a->tls_key, b->tls_key) != 0)
		return config_fail_at(yaml, "services", i, "tls",
				      "services[%u] has others or none, and its connections are "
				      "the same; use the same certificate and key for both",
				      earlier);
	return 0;
}

/* Services of a ring are looked through for each request. */
int config_tcp_check_beside_many(struct config_yaml *yaml, const struct lb_config *config,
				 unsigned int i)
{
	const struct lb_service_config *s = &config->service[i];
	unsigned int n = 0;

	for (unsigned int k = 0; k < i; k++)
		n += lb_address_equal(&config->service[k].vip, &s->vip) &&
		     config->service[k].port == s->port &&
		     config->service[k].protocol == s->protocol;
	if (n < LB_MODELS_MAX)
		return 0;
	return config_fail_at(
		yaml, "services", i, "port",
		"%u services have this address, port and protocol, as many as may; use "
		"another port",
		n);
}
